//! bpf(2): a table of numbers in the kernel, a program that writes to it, and the program's place on an interface.
//!
//! linux/bpf.h. Each command takes a part of `union bpf_attr`; what a kernel does not know must be 0.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// One instruction, `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Class, operation, source or size.
    pub code: u8,
    /// The register that is changed in the low half, the other one in the high half; swapped on big-endian machines.
    pub registers: u8,
    /// Of a jump, in instructions, or of an access, in bytes.
    pub offset: i16,
    /// The constant.
    pub constant: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8 && std::mem::offset_of!(Instruction, constant) == 4);

// enum bpf_cmd
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const LINK_DETACH: libc::c_int = 34;

const MAP_TYPE_ARRAY: u32 = 2;
const PROG_TYPE_SCHED_CLS: u32 = 3;
/// Linux 6.6.
const TCX_INGRESS: u32 = 46;

/// The licence of a program; the program calls no function that is for GPL programs only.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";
/// As bpftool shows it.
const NAME: [u8; 16] = *b"canter\0\0\0\0\0\0\0\0\0\0";

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries_max: u32,
    flags: u32,
    inner: u32,
}

#[repr(C)]
struct MapLookup {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    /// The expected revision of the interface's list of programs; 1: empty. 0: any.
    revision: u64,
}

fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let (pointer, len) = (std::ptr::from_mut(attributes), size_of::<T>());
    // SAFETY: `attributes` is the command's part of union bpf_attr, of this size, and it and all it points to outlive
    // the call. bpf(2).
    super::check(unsafe { libc::syscall(libc::SYS_bpf, command, pointer, len) } as libc::c_int)
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor, and nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// `N` numbers that programs count in.
#[derive(Debug)]
pub struct Counters<const N: usize>(OwnedFd);

impl<const N: usize> Counters<N> {
    /// All 0.
    ///
    /// # Errors
    /// `EPERM` without `CAP_BPF`, `ENOSYS` where the kernel was built without bpf(2).
    pub fn new() -> io::Result<Self> {
        let value_size = 8 * N as u32;
        let mut create =
            MapCreate { kind: MAP_TYPE_ARRAY, key_size: 4, value_size, entries_max: 1, flags: 0, inner: 0 };
        call(MAP_CREATE, &mut create).map(owned).map(Self)
    }

    /// For the instruction that names them.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// What they are now.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn read(&self) -> io::Result<[u64; N]> {
        let (key, mut values) = (0u32, [0u64; N]);
        let mut lookup = MapLookup {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: &raw const key as u64,
            value: values.as_mut_ptr() as u64,
            flags: 0,
        };
        call(MAP_LOOKUP_ELEM, &mut lookup)?;
        Ok(values)
    }
}

/// Loads a program for frames that an interface receives.
///
/// # Errors
/// `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`; `EACCES` or `EINVAL` when the kernel's verifier refuses it, with
/// the verifier's last message.
pub fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let mut load = ProgLoad {
        kind: PROG_TYPE_SCHED_CLS,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: NAME,
    };
    let error = match call(PROG_LOAD, &mut load) {
        Ok(descriptor) => return Ok(owned(descriptor)),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(error),
        Err(error) => error,
    };
    let mut log = vec![0u8; 1 << 20];
    (load.log_level, load.log_size, load.log) = (1, log.len() as u32, log.as_mut_ptr() as u64);
    let _ = call(PROG_LOAD, &mut load); // once more, for its words
    let text = String::from_utf8_lossy(&log);
    let mut lines = text.trim_end_matches('\0').lines().rev().filter(|line| !line.starts_with("processed "));
    match lines.next() {
        Some(message) => Err(io::Error::new(error.kind(), format!("{error}: the kernel reports: {message}"))),
        None => Err(error),
    }
}

/// A program's place on an interface, which ends when this is dropped or the process ends, however that happens.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Attaches the program as the only one of its kind on frames that the interface receives.
    ///
    /// # Errors
    /// `EINVAL` before Linux 6.6; `ESTALE` when the interface has a program.
    pub fn attach(program: BorrowedFd<'_>, interface: u32) -> io::Result<Self> {
        let mut create = LinkCreate {
            program: program.as_raw_fd() as u32,
            interface,
            attach_type: TCX_INGRESS,
            flags: 0,
            relative: 0,
            padding: 0,
            revision: 1,
        };
        call(LINK_CREATE, &mut create).map(owned).map(Self)
    }
}

impl Drop for Link {
    /// Detaches at once: after close(2), some kernels detach later in a kernel thread.
    fn drop(&mut self) {
        let _ = call(LINK_DETACH, &mut (self.0.as_raw_fd() as u32)); // fails when the interface has disappeared, which detaches it
    }
}
