//! read(2) and write(2), by which the papers' programs received and sent. The methods `read` and `write` call recv(2) and
//! send(2), which do the same for some 300 instructions less; only `canter syscalls` measures both.

use canter_io::{
    Batch, Frame, Interface, Result,
    method::{
        Receive, ReceiveMethod, ReceiveOptions, Receiver, Transmit, TransmitMethod, TransmitOptions,
        Transmitter,
    },
};
use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::BorrowedFd,
    sync::LazyLock,
};

/// The size of a classic frame in a call.
const FRAME_BYTES: usize = canter_io::frame::CAN_MTU;

/// `read`, by another call on the same socket.
pub static READ: LazyLock<Receiver> = LazyLock::new(|| {
    let about = "one frame per system call, by read(2) on a raw CAN socket";
    Receiver { name: "read(2)", about, open: reader, ..*read() }
});

/// `write`, by another call on the same socket.
pub static WRITE: LazyLock<Transmitter> = LazyLock::new(|| {
    let about = "one frame per system call, by write(2) on a raw CAN socket";
    Transmitter { name: "write(2)", about, open: writer, ..*write() }
});

fn read() -> &'static Receiver {
    "read".parse::<ReceiveMethod>().expect("canter-io has it").row
}

fn write() -> &'static Transmitter {
    "write".parse::<TransmitMethod>().expect("canter-io has it").row
}

struct Reader {
    file: File,
    socket: Box<dyn Receive>,
}

fn reader(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = (read().open)(interface, options)?;
    Ok(Box::new(Reader { file: file(socket.descriptor(), interface)?, socket }))
}

impl Receive for Reader {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let Some((frame, _)) = batch.place() else { return Ok(0) };
        let mut bytes = [0; FRAME_BYTES];
        let count = self.file.read(&mut bytes)?;
        frame.received_as(count);
        batch.commit(1);
        Ok(1)
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.socket.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }
}

struct Writer {
    file: File,
    socket: Box<dyn Transmit>,
}

fn writer(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let socket = (write().open)(interface, options)?;
    Ok(Box::new(Writer { file: file(socket.descriptor(), interface)?, socket }))
}

impl Transmit for Writer {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for frame in frames {
            self.file.write_all(&bytes(frame))?;
        }
        Ok(frames.len())
    }

    fn set_waiting(&mut self, waits: bool) {
        self.socket.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }
}

/// A file of the same open socket.
fn file(descriptor: Option<BorrowedFd<'_>>, interface: &Interface) -> Result<File> {
    let missing = || io::Error::other("the method has no socket");
    descriptor
        .ok_or_else(missing)
        .and_then(|descriptor| descriptor.try_clone_to_owned())
        .map(File::from)
        .map_err(|error| canter_io::Error::moving(&interface.name, "open", error))
}

/// A classic frame as the kernel reads it: `struct can_frame`.
fn bytes(frame: &Frame) -> [u8; FRAME_BYTES] {
    let mut bytes = [0; FRAME_BYTES];
    bytes[..4].copy_from_slice(&frame.can_id.to_ne_bytes());
    bytes[4] = frame.data().len() as u8;
    bytes[8..8 + frame.data().len()].copy_from_slice(frame.data());
    bytes
}
