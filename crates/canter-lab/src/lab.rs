//! The lab: a QEMU machine with CAN cards and the host's files, booted for one command.
//! `kernel` finds what to boot, `topology` says what is in the machine, `module` and `table` which modules of ours it
//! can have, `initramfs` and the scripts in `guest/` bring the command there, `guest` and `streams` carry its streams
//! and its exit code back.

mod analyzer;
mod apt;
mod arch;
mod bare_metal;
mod bring_up;
mod cache;
mod canchar;
mod cpio;
mod distribution;
mod fd_driver;
mod foreign;
mod guest;
mod headers;
mod here;
mod initramfs;
mod kernel;
mod kvm;
mod machine;
mod memory;
mod modprobe;
mod module;
mod monitor;
mod out_of_tree;
mod playground;
mod probe;
mod profiled;
mod programs;
mod progress;
mod qemu_version;
mod run;
mod saved;
mod shell;
mod signals;
mod streams;
mod table;
pub(crate) mod topology;
pub(crate) mod usb_stick;
mod vmlinux;
mod wire;

pub(crate) use arch::Arch;
pub(crate) use foreign::program_folder;
pub(crate) use machine::{Clock, Ended, Machine, at_once as machines_at_once};
pub(crate) use module::Chosen;
pub(crate) use signals::Signals;
pub(crate) use streams::{Input, Streams};

use crate::analyzer::board::Board;
use canter_cli::duration;
use canter_cli::failure::{Exit, Failure, Result};
use canter_cli::options::Common;
use canter_cli::size;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use machine::Accel;
use std::path::PathBuf;
use std::time::Duration;

/// The longest run of a command, and of a shell.
const TIMEOUT: Duration = Duration::from_secs(600);
const SHELL_TIMEOUT: Duration = Duration::from_secs(86_400);

const EXAMPLES: &str = "\
The machine has five SJA1000 cards, all down, the modules for vcan, vxcan, can-gw and the rest,
and the host's files. Changes in the current directory stay; all other changes are discarded.
A COMMAND of one word is a line for bash; several words are a program and its arguments.

Examples:
  canter lab                       a shell with the cards up, on a terminal
  canter lab -- canter methods
  canter lab -- 'ip link set can0 up type can bitrate 500000 && ip -details link show can0'
  canter lab --clock virtual --kernel 6.12-rt -- ./target/release/canter study run gateway
  canter lab --canchar 3,4 -- 'ls /dev/canchar*; cat /sys/class/canchar/*/board'
  canter lab --bus wire --canchar wcan1,wcan3 -- 'cat /sys/class/canchar/*/node'
  canter lab --bare-metal -- canter methods
  canter lab --fd-cards 2 --net -- ./test.sh 'with an argument'
  canter lab --bus wire --clock virtual -- 'canter wire list && canter analyze wcan0 --count 3'
  canter lab --analyzer --clock virtual -- './measure.sh'   with canter latency --instrument analyzer
  canter lab --profile --clock virtual -- canter syscalls --methods write   instructions by function
  canter lab --usb-stick -- 'mount /dev/sda /mnt && df /mnt'
  canter lab --systemd -- 'systemctl start canter-rules; journalctl --no-pager'
  canter lab --arch arm64 -- 'uname -m; ip -br link'
  canter lab --kernel ~/src/linux -- uname -r
  canter lab --kernel-config > lab.config        a small configuration for such a kernel (docs/kernels.md)
  canter lab --ci -- ./my-test     in a container of a CI (docs/lab.md)
  canter lab --clean

The exit code is the command's, or 125 when the lab itself failed.";

/// Run a command in a virtual machine that has CAN
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Kernel: a series (6.12, 6.1-rt, 7.3), or a folder with extracted packages or a build tree; list: prints what
    /// there is
    #[arg(long, value_name = "KERNEL", default_value = "6.12")]
    kernel: String,
    /// Architecture; another than the host's has its own Debian root, and the current folder of the host
    #[arg(long, value_enum, default_value_t)]
    arch: Arch,
    /// real: full speed; virtual: each instruction takes 2^SHIFT ns, so that figures repeat
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// With --clock virtual, an instruction takes 2^N ns (0…10, default 0)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=10))]
    shift: Option<u8>,
    /// Number of the guest's processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    cpus: u8,
    /// Size of the guest's memory
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    memory: String,
    /// Number of SJA1000 cards, one channel each: can0 can1 can3 on bus A, can2 can4 on bus B
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=5))]
    cards: u8,
    /// Number of CAN FD cards, two channels each: can5 can6 can7 on bus A, can8 on bus B
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    fd_cards: u8,
    #[command(flatten)]
    modules: Modules,
    /// Add two network cards on one hub, for Ethernet load
    #[arg(long)]
    net: bool,
    /// Add a USB stick of 64 MiB with an empty FAT file system: /dev/sda
    #[arg(long)]
    usb_stick: bool,
    /// Run the command under the host's systemd as process 1, with a journal
    #[arg(long)]
    systemd: bool,
    /// Keep changes in this folder too, in addition to the current one
    #[arg(long, value_name = "DIR")]
    share: Vec<PathBuf>,
    /// tcg: emulation; kvm: the host's processor; auto: kvm if a test boot has succeeded with it
    #[arg(long, value_enum, default_value_t = Accel::Auto)]
    accel: Accel,
    /// Boot, even if this machine was saved after an earlier boot
    #[arg(long)]
    boot: bool,
    /// Let `canter latency --instrument analyzer` and --stages see every instruction of the guest (--clock virtual)
    #[arg(long)]
    analyzer: bool,
    /// Print which functions of kernel and programs the command's instructions are in (--clock virtual)
    #[arg(long)]
    profile: bool,
    /// Model the time on this board too, where caches, registers and kernel entries take time: --analyzer or --profile
    #[arg(long, value_enum, value_name = "BOARD")]
    cost: Option<Board>,
    /// Inside the lab: run the command and leave its profile for the host
    #[arg(long, hide = true)]
    profiled: bool,
    /// Add this to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Stop the guest after this time; 10m unless given, a shell after a day
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    timeout: Option<u64>,
    /// Write the guest's console to FILE
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// In a container of a CI, as root: first install what the lab needs and the container lacks (apt)
    #[arg(long)]
    ci: bool,
    /// Remove everything that the lab keeps between runs and that no running lab uses; runs no command
    #[arg(long, exclusive = true)]
    clean: bool,
    /// Print the configuration of a small kernel that --kernel boots (make KCONFIG_ALLCONFIG=FILE allnoconfig); runs no command
    #[arg(long, exclusive = true)]
    kernel_config: bool,
    /// The command and its arguments; on a terminal, a shell unless given
    #[arg(last = true)]
    command: Vec<String>,
}

/// The options of the table's modules, and which of these the command line asks for.
#[derive(Clone, Debug)]
struct Modules(Vec<Chosen>);

impl FromArgMatches for Modules {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let wrong = |why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why);
        module::chosen(matches, table::MODULES).map(Self).map_err(wrong)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Modules {
    fn augment_args(command: Command) -> Command {
        module::add_options(command, table::MODULES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The module of ours called `name`, as it is loaded for this value of its option.
pub(crate) fn module(name: &str, value: &str) -> std::result::Result<Chosen, String> {
    let row = table::MODULES.iter().find(|module| module.name() == name);
    row.ok_or_else(|| format!("the lab has no module {name}"))?.choose(value)
}

/// Why there can be no lab here, one whose kernel gets modules of ours when it `builds`; `None`: there can.
pub(crate) fn obstacle(builds: bool) -> Option<String> {
    if let Some(why) = arch::obstacle(std::env::consts::ARCH) {
        return Some(why);
    }
    let tools: &[programs::Program] = if builds { &[programs::MAKE, programs::GCC] } else { &[] };
    programs::require(&[programs::ALWAYS, &[Arch::default().qemu()], tools].concat())
        .err()
        .map(|failure| failure.message)
}

/// A failure of the lab itself: exit code 125.
fn lab_failure(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Lab, format!("lab: {}", message.into()))
}

/// A size as QEMU takes it, in MiB.
fn memory(text: &str) -> std::result::Result<String, String> {
    match size::parse_bytes(text)? >> 20 {
        0 => Err("must be at least 1M".to_owned()),
        mebibytes => Ok(format!("{mebibytes}M")),
    }
}

/// Runs `canter lab`.
pub fn run(arguments: Arguments, common: &Common) -> Result {
    if let Some(why) = refusal(&arguments, common) {
        return Err(Failure::new(Exit::Usage, format!("lab: {why}")));
    }
    if arguments.clean {
        return clean();
    }
    if arguments.kernel_config {
        print!("{KERNEL_CONFIG}");
        return Ok(Exit::Done);
    }
    if arguments.ci {
        let builds = arguments.fd_cards > 0 || !arguments.modules.0.is_empty();
        let tools: &[programs::Program] = if builds { &[programs::MAKE, programs::GCC] } else { &[] };
        programs::install(&[programs::ALWAYS, &[arguments.arch.qemu(), programs::IP], tools].concat())?;
    }
    if arguments.kernel == LIST {
        return list(&arguments, common);
    }
    let command = arguments.command.clone();
    if arguments.profiled {
        return profiled::run(&command);
    }
    if arguments.profile {
        return profiled::run_in(machine(arguments, common), &command, common);
    }
    let machine = machine(arguments, common);
    let ended = if command.is_empty() { playground::run(&machine)? } else { machine.run(&command)? };
    // The command's own code, which may be any: beyond what `Exit` can say.
    std::process::exit(ended.code().into());
}

/// The configuration of a small kernel that the lab boots.
const KERNEL_CONFIG: &str = include_str!("../carried/kernel/lab.config");

/// The value of `--kernel` that prints the kernels.
const LIST: &str = "list";

/// `canter lab --kernel list`.
fn list(arguments: &Arguments, common: &Common) -> Result {
    let cache = cache::Cache::open(None)?;
    kernel::print_list(arguments.arch, &cache, &progress::Progress::new(common.quiet))?;
    Ok(Exit::Done)
}

/// `canter lab --clean`.
fn clean() -> Result {
    let cache = cache::Cache::open(None)?;
    println!("{}", cache::clean(&cache).join("\n"));
    Ok(Exit::Done)
}

/// Why these options cannot be together.
fn refusal(arguments: &Arguments, common: &Common) -> Option<&'static str> {
    let modules = &arguments.modules.0;
    let built = arguments.fd_cards > 0 || !modules.is_empty();
    let of_host = built || arguments.systemd || arguments.accel == Accel::Kvm;
    let lists = arguments.kernel == LIST;
    let rules = [
        (lists && !arguments.command.is_empty(), "--kernel list prints the kernels and runs no command"),
        (
            arguments.shift.is_some() && arguments.clock == Clock::Real,
            "--shift is for --clock virtual: in the real clock instructions take what they take",
        ),
        (
            arguments.accel == Accel::Kvm && arguments.clock == Clock::Virtual,
            "--accel kvm cannot count instructions: the virtual clock is --accel tcg",
        ),
        (
            (arguments.analyzer || arguments.profile) && arguments.clock == Clock::Real,
            "--analyzer and --profile need --clock virtual, in which instructions are time",
        ),
        (
            arguments.cost.is_some() && !(arguments.analyzer || arguments.profile),
            "--cost needs --analyzer or --profile, which count what costs",
        ),
        (arguments.timeout == Some(0), "--timeout 0: the guest would never start"),
        (
            modules.iter().any(|chosen| chosen.cards_needed() > arguments.cards),
            "--canchar: there is no such card (--cards says how many there are)",
        ),
        (
            modules.iter().any(|chosen| chosen.lacks_one_of(modules)),
            "--canchar: nodes of wires are there with --bus wire",
        ),
        (
            !arguments.arch.is_host() && of_host,
            "--arch: its machine has the cards of --cards and vcan; what is built for the host's kernels, the \
             host's systemd and KVM are not there",
        ),
        (
            modules.iter().any(|chosen| !chosen.module.arch.is_none_or(|arch| arch == arguments.arch)),
            "--bare-metal: its processor is a PC's, and this machine is none",
        ),
        (
            !(lists || arguments.clean || arguments.kernel_config)
                && arguments.command.is_empty()
                && !playground::has_terminal(),
            "COMMAND: is missing (canter lab -- canter methods; canter lab alone is a shell, and needs a terminal)",
        ),
        (
            (common.json.is_some() && !arguments.profile)
                || common.realtime.is_some()
                || common.cpu.is_some(),
            "--json, --realtime and --cpu are for the command inside: give them behind --",
        ),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map(|(_, why)| why)
}

fn machine(arguments: Arguments, common: &Common) -> Machine {
    Machine {
        kernel: arguments.kernel,
        arch: arguments.arch,
        clock: arguments.clock,
        shift: arguments.shift.unwrap_or(0),
        cpus: arguments.cpus,
        memory: arguments.memory,
        cards: arguments.cards,
        fd_cards: arguments.fd_cards,
        modules: arguments.modules.0,
        net: arguments.net,
        usb_stick: arguments.usb_stick,
        systemd: arguments.systemd,
        shares: arguments.share,
        accel: arguments.accel,
        saved: (!arguments.boot).then_some(0),
        analyzer: arguments.analyzer || arguments.profile,
        cost: arguments.cost,
        profile: None,
        terminal: false,
        append: arguments.append,
        timeout: arguments
            .timeout
            .map_or(if arguments.command.is_empty() { SHELL_TIMEOUT } else { TIMEOUT }, Duration::from_nanos),
        console: arguments.console,
        quiet: common.quiet,
        verbose: common.verbose > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_memory_has_a_unit() {
        assert_eq!(memory("512M").as_deref(), Ok("512M"));
        for text in ["", "G", "0G", "2", "2T", "2G,maxmem=4G"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }
}
