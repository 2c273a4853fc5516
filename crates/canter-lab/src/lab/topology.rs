//! The machine as QEMU's arguments: the slot, bus and interrupt line of each card.

use super::{
    analyzer::Loaded,
    arch::Arch,
    machine::{Accel, Clock, Machine},
    memory::Memory,
    usb_stick,
};
use crate::analyzer::board::Board;
use std::path::{Path, PathBuf};

/// A CAN card: its PCI slot and the bus of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    pub slot: u8,
    pub buses: &'static [&'static str],
}

/// The SJA1000 cards, can0…can4. On q35 each of these slots has a separate interrupt line (IO-APIC 20, 21, 22, 23 and
/// 16), so that no handler runs for another card's frame.
pub const SJA1000_CARDS: &[Card] = &[
    Card { slot: 0x04, buses: &["A"] },
    Card { slot: 0x05, buses: &["A"] },
    Card { slot: 0x06, buses: &["B"] },
    Card { slot: 0x07, buses: &["A"] },
    Card { slot: 0x1a, buses: &["B"] },
];

/// The PCI address of the SJA1000 card of this number.
pub fn card_address(number: u8) -> String {
    format!("0000:00:{:02x}.0", SJA1000_CARDS[usize::from(number)].slot)
}

/// The FD cards, two channels and one interrupt line each (shared with can0 and can1 when those are up).
pub const FD_CARDS: &[Card] =
    &[Card { slot: 0x08, buses: &["A", "A"] }, Card { slot: 0x09, buses: &["A", "B"] }];

/// The slot of the network cards' bridge, behind which they share no interrupt line with a CAN card (IO-APIC 17 and 18).
const BRIDGE_SLOT: u8 = 0x19;
const NETWORK_SLOTS: [u8; 2] = [1, 2];

/// The slot of the USB stick's controller, which has no interrupt line: its interrupts are messages (MSI-X).
const USB_SLOT: u8 = 0x18;

/// Files and sockets of one run.
pub struct Paths<'a> {
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub console: &'a Path,
    /// The folder with the sockets of `PORTS` and of the monitor.
    pub sockets: &'a Path,
    /// The host's folders that the guest may write to.
    pub shares: &'a [PathBuf],
    /// The guest's root.
    pub root: &'a Path,
    /// The file of the guest's memory; without one, QEMU has the memory.
    pub memory: Option<Memory<'a>>,
    /// Folders that the guest mounts read-only, by their tags.
    pub read_only: &'a [(&'static str, PathBuf)],
    /// The analyzer's plugin and its folder.
    pub analyzer: Option<&'a Loaded>,
    /// The image of the USB stick.
    pub usb_stick: Option<&'a Path>,
}

/// The virtio-serial ports in the order of their numbers, 1 to 5: `/dev/vport0p1` and so on.
pub const PORTS: [&str; 5] = ["stdout", "stderr", "stdin", "control", "symbols"];
/// The socket of QEMU's monitor, by which a machine is saved and restored.
pub const MONITOR: &str = "monitor";

/// The kernel's command line. Programs in the guest read their environment from it.
///
/// `noautogroup`: the command runs in a new session, which would be a scheduling group and add about 1300 instructions
/// to every wake-up; services have no such group. `no_timer_check`: on a PC the kernel tests at boot whether the timer's
/// interrupt comes, and panics when it does not come soon enough, as happens to a guest whose host is busy.
/// `transparent_hugepage=madvise`: otherwise khugepaged joins pages of long-lived programs every 10 s, and on a kernel without
/// full preemption even a real-time task waits for it: 3.2 million instructions were counted. `norandmaps`: QEMU translates
/// code anew for each address at which it runs, and that is half to five sixths of a short command's time. The analyzer
/// tells programs by their addresses, so it needs random ones. `nohz=off`: in the virtual clock a machine that waits for a file
/// of a busy host jumps from timer to timer, past the time limits of systemd; so it jumps no further than a tick.
pub fn kernel_command_line(machine: &Machine, qemu_version: &str) -> String {
    let timer = if machine.arch == Arch::Amd64 { " no_timer_check" } else { "" };
    let emulated = if machine.accel == Accel::Kvm { "" } else { machine.arch.kernel_words() };
    let addresses = match (machine.accel, machine.analyzer) {
        (Accel::Kvm, _) => "",
        (_, true) => machine.arch.random_addresses(),
        (_, false) => " norandmaps",
    };
    let mut words = vec![format!(
        "console={} panic=-1{timer}{emulated}{addresses} quiet noautogroup transparent_hugepage=madvise canter.lab=1",
        machine.arch.console()
    )];
    match machine.clock {
        Clock::Real => words.push("canter.clock=real".to_owned()),
        Clock::Virtual => words.push(format!("canter.clock=virtual canter.shift={}", machine.shift)),
    }
    if machine.systemd && machine.clock == Clock::Virtual {
        words.push("nohz=off".to_owned());
    }
    words.push(format!("canter.accel={} canter.qemu={qemu_version}", machine.accel.name()));
    let of_modules = machine.modules.iter().map(|chosen| (chosen.module.kernel_words)(machine.cpus));
    words.extend(of_modules.filter(|words| !words.is_empty()));
    words.extend(machine.append.clone());
    words.join(" ")
}

/// QEMU's arguments.
pub fn qemu_arguments(machine: &Machine, paths: &Paths, qemu_version: &str) -> Vec<String> {
    let mut list = Arguments(Vec::new());
    list.pair("-M", machine.arch.board()).words("-nodefaults -display none -no-reboot");
    if let Some(Memory { file, shared }) = paths.memory {
        let (size, file, share) = (&machine.memory, escaped(file), if shared { "on" } else { "off" });
        list.pair(
            "-object",
            format!("memory-backend-file,id=memory,size={size},share={share},mem-path={file}"),
        );
        list.words("-machine memory-backend=memory");
    }
    match (machine.clock, machine.accel) {
        (Clock::Virtual, _) => list
            .pair("-accel", "tcg")
            .pair("-icount", format!("shift={},sleep=off", machine.shift))
            .pair("-cpu", machine.arch.processor()),
        (Clock::Real, Accel::Kvm) => list.words("-accel kvm -cpu host"),
        (Clock::Real, _) => list.words("-accel tcg,thread=multi").pair("-cpu", machine.arch.processor()),
    };
    let beside: u8 = machine.modules.iter().map(|chosen| chosen.module.processors).sum();
    list.pair("-smp", (machine.cpus + beside).to_string()).pair("-m", machine.memory.as_str());
    list.pair("-kernel", text(paths.kernel)).pair("-initrd", text(paths.initramfs));
    list.pair("-append", kernel_command_line(machine, qemu_version));
    list.pair("-chardev", format!("file,id=console,append=on,path={}", escaped(paths.console)));
    list.words("-serial chardev:console");
    cards(machine, &mut list);
    if machine.net {
        network(&mut list);
    }
    if let Some(image) = paths.usb_stick {
        usb_stick(image, &mut list);
    }
    if machine.can_be_saved() {
        // Tells the guest's kernel that this start of QEMU is another one than that of the saved machine.
        list.words("-device vmgenid,guid=auto");
        list.pair(
            "-chardev",
            format!("socket,id={MONITOR},server=off,path={}", escaped(&paths.sockets.join(MONITOR))),
        );
        list.words("-mon chardev=monitor,mode=control");
    }
    list.words("-device virtio-serial-pci");
    for (port, name) in PORTS.iter().enumerate() {
        let socket = escaped(&paths.sockets.join(name));
        list.pair("-chardev", format!("socket,id={name},server=off,path={socket}"));
        list.pair("-device", format!("virtserialport,nr={},chardev={name}", port + 1));
    }
    share(&mut list, "root", paths.root, true);
    for (tag, folder) in paths.read_only {
        share(&mut list, tag, folder, true);
    }
    if let Some(Loaded { plugin, folder, cost }) = paths.analyzer {
        let [file, shared] = [plugin, folder].map(|path| escaped(path));
        let caches = cost.map(Board::plugin_arguments).unwrap_or_default();
        list.pair("-plugin", format!("file={file},folder={shared},shift={}{caches}", machine.shift));
        share(&mut list, ANALYZER_TAG, folder, false);
    }
    for (number, folder) in paths.shares.iter().enumerate() {
        share(&mut list, &share_tag(number), folder, false);
    }
    list.0
}

fn cards(machine: &Machine, list: &mut Arguments) {
    list.words("-object can-bus,id=A -object can-bus,id=B");
    for card in &SJA1000_CARDS[..usize::from(machine.cards)] {
        list.pair("-device", format!("kvaser_pci,canbus={},addr={:#x}", card.buses[0], card.slot));
    }
    for card in &FD_CARDS[..usize::from(machine.fd_cards)] {
        let [first, second] = card.buses else { unreachable!("an FD card has two channels") };
        list.pair("-device", format!("ctucan_pci,canbus0={first},canbus1={second},addr={:#x}", card.slot));
    }
}

/// The arguments for two network cards on one hub, for Ethernet load inside the guest. They are not virtio, which stalls
/// in the virtual clock.
fn network(list: &mut Arguments) {
    list.pair("-device", format!("pci-bridge,id=bridge,chassis_nr=1,addr={BRIDGE_SLOT:#x}"));
    for (number, slot) in NETWORK_SLOTS.iter().enumerate() {
        list.pair("-netdev", format!("hubport,id=net{number},hubid=0"));
        list.pair("-device", format!("e1000,netdev=net{number},bus=bridge,addr={slot:#x}"));
    }
}

/// The arguments for a USB stick. What the guest makes the stick keep stays in the host's memory (`cache=unsafe`): nobody
/// reads the image later.
fn usb_stick(image: &Path, list: &mut Arguments) {
    list.pair("-device", format!("qemu-xhci,id=usb,addr={USB_SLOT:#x}"));
    list.pair("-drive", format!("if=none,id=stick,format=raw,cache=unsafe,file={}", escaped(image)));
    list.pair("-device", format!("usb-storage,bus=usb.0,drive=stick,serial={}", usb_stick::SERIAL));
}

/// The tag by which the guest mounts the analyzer's folder.
pub const ANALYZER_TAG: &str = "analyzer";

/// The tag by which the guest mounts a shared folder.
pub fn share_tag(number: usize) -> String {
    format!("share{number}")
}

fn share(list: &mut Arguments, tag: &str, folder: &Path, readonly: bool) {
    let readonly = if readonly { ",readonly=on" } else { "" };
    let path = escaped(folder);
    list.pair("-fsdev", format!("local,id={tag},security_model=none,multidevs=remap{readonly},path={path}"));
    list.pair("-device", format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"));
}

struct Arguments(Vec<String>);

impl Arguments {
    fn words(&mut self, words: &str) -> &mut Self {
        self.0.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    fn pair(&mut self, option: &str, value: impl Into<String>) -> &mut Self {
        self.0.extend([option.to_owned(), value.into()]);
        self
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Doubles every comma in a value, as QEMU's option lists require.
fn escaped(path: &Path) -> String {
    text(path).replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(machine: &Machine) -> String {
        let loaded = Loaded { plugin: "/c/a.so".into(), folder: "/t/analyzer".into(), cost: None };
        let paths = Paths {
            kernel: Path::new("/k/vmlinux"),
            initramfs: Path::new("/t/initramfs"),
            console: Path::new("/t/console"),
            sockets: Path::new("/t"),
            shares: &["/home/a,b".into(), "/srv".into()],
            root: Path::new("/"),
            memory: None,
            read_only: &[("modules", "/k/lib/modules".into())],
            analyzer: machine.analyzer.then_some(&loaded),
            usb_stick: machine.usb_stick.then_some(Path::new("/t/a,stick")),
        };
        qemu_arguments(machine, &paths, "7.2.22").join(" ")
    }

    #[test]
    fn every_option_reaches_qemu() {
        let base = || Machine { arch: Arch::Amd64, ..Machine::default() };
        let virtual_ = |shift| Machine { clock: Clock::Virtual, shift, ..base() };
        let bare_metal = || {
            let modules = vec![crate::lab::module("canbare", "").unwrap()];
            Machine { cpus: 2, modules, ..base() }
        };
        let table = [
            (base(), "-accel tcg,thread=multi -cpu max,-erms,-fsrm -smp 1 -m 2048M"),
            (
                base(),
                "panic=-1 no_timer_check clearcpuid=141 norandmaps quiet noautogroup transparent_hugepage=madvise canter.lab=1 canter.clock=real canter.accel=tcg",
            ),
            (base(), "canter.clock=real canter.accel=tcg canter.qemu=7.2.22"),
            (virtual_(3), "-icount shift=3,sleep=off"),
            (virtual_(3), "canter.clock=virtual canter.shift=3 canter.accel"),
            (
                Machine { systemd: true, ..virtual_(3) },
                "canter.clock=virtual canter.shift=3 nohz=off canter.accel",
            ),
            (Machine { systemd: true, ..base() }, "canter.clock=real canter.accel"),
            (Machine { accel: Accel::Kvm, ..base() }, "-accel kvm -cpu host"),
            (Machine { cpus: 2, memory: "512M".into(), ..base() }, "-smp 2 -m 512M"),
            (bare_metal(), "-smp 3 "),
            (bare_metal(), "maxcpus=2 memmap=64K$0x10000"),
            (
                Machine { append: vec!["nokaslr".into(), "x=1".into()], ..base() },
                "canter.qemu=7.2.22 nokaslr x=1",
            ),
            (Machine { arch: Arch::Arm64, ..base() }, "-M virt "),
            (Machine { arch: Arch::Arm64, ..base() }, "-accel tcg,thread=multi -cpu cortex-a53"),
            (Machine { arch: Arch::Arm64, ..base() }, "console=ttyAMA0 panic=-1 nokaslr norandmaps quiet"),
            (
                Machine { arch: Arch::Arm64, analyzer: true, ..virtual_(0) },
                "nokaslr sysctl.vm.mmap_rnd_bits=28 quiet",
            ),
            (base(), "readonly=on,path=/k/lib/modules -device virtio-9p-pci,fsdev=modules,mount_tag=modules"),
            (
                Machine { analyzer: true, ..virtual_(3) },
                "-plugin file=/c/a.so,folder=/t/analyzer,shift=3 -fsdev local,id=analyzer",
            ),
            (Machine { fd_cards: 2, ..base() }, "ctucan_pci,canbus0=A,canbus1=B,addr=0x9"),
            (Machine { net: true, ..base() }, "e1000,netdev=net1,bus=bridge,addr=0x2"),
            (
                Machine { usb_stick: true, ..base() },
                "-device qemu-xhci,id=usb,addr=0x18 -drive if=none,id=stick,format=raw,cache=unsafe,file=/t/a,,stick -device usb-storage,",
            ),
            (base(), "kvaser_pci,canbus=B,addr=0x1a"),
            (
                base(),
                "-chardev socket,id=control,server=off,path=/t/control -device virtserialport,nr=4,chardev=control",
            ),
            (base(), "security_model=none,multidevs=remap,readonly=on,path=/ "),
            (base(), "multidevs=remap,path=/home/a,,b "),
            (base(), "path=/srv -device virtio-9p-pci,fsdev=share1,mount_tag=share1"),
        ];
        for (machine, wanted) in table {
            let all = arguments(&machine) + " ";
            assert!(all.contains(wanted), "{wanted} is not in {all}");
        }
    }

    #[test]
    fn qemu_gets_the_requested_number_of_cards() {
        for cards in 0..=5 {
            let all = arguments(&Machine { cards, ..Machine::default() });
            assert_eq!(all.matches("kvaser_pci").count(), usize::from(cards));
        }
        assert_eq!(arguments(&Machine::default()).matches("ctucan_pci").count(), 0);
    }

    /// The interrupt line of a slot on ICH9: slots 0…24 are wired to lines E…H in turn, slot 0x1a to A.
    #[test]
    fn no_two_sja1000_cards_share_an_interrupt_line() {
        let line = |slot: u8| if slot < 25 { 20 + slot % 4 } else { 16 };
        let mut lines: Vec<_> = SJA1000_CARDS.iter().map(|card| line(card.slot)).collect();
        lines.sort_unstable();
        assert_eq!(lines, [16, 20, 21, 22, 23]);
    }
}
