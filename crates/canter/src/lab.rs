//! The lab: a QEMU machine with CAN cards and the host's files, booted for one command.
//! `kernel` finds what to boot, `topology` says what is in the machine, `initramfs` and the scripts in `guest/` bring
//! the command there, `guest` carries its streams and its exit code back.

mod apt;
mod arch;
mod bare_metal;
mod cache;
mod canchar;
mod cpio;
mod fd_driver;
mod foreign;
mod guest;
mod headers;
mod initramfs;
mod kernel;
mod kvm;
mod modules;
mod out_of_tree;
mod probe;
mod programs;
mod progress;
mod shell;
pub(crate) mod topology;
mod vmlinux;
mod wire;

use crate::duration;
use crate::failure::{Exit, Failure, Result};
use crate::options::Common;
use arch::Arch;
use canter_io::sys::file;
use clap::{Args, ValueEnum};
use guest::{Boot, Outcome, Signals};
use kernel::Kernel;
use progress::Progress;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
The machine has five SJA1000 cards, all down, the modules for vcan, vxcan, can-gw and the rest,
and the host's files: changes in the current directory stay, all others are thrown away.
A COMMAND of one word is a line for bash; several words are a program and its arguments.

Examples:
  canter lab -- canter methods
  canter lab -- 'ip link set can0 up type can bitrate 500000 && ip -details link show can0'
  canter lab --clock virtual --kernel 6.12-rt -- ./target/release/canter study run gateway
  canter lab --canchar 3,4 -- 'ls /dev/canchar*; cat /sys/class/canchar/*/board'
  canter lab --bare-metal -- canter methods
  canter lab --fd-cards 2 --net -- ./test.sh 'with an argument'
  canter lab --bus wire --clock virtual -- 'canter wire list && canter analyze wcan0 --count 3'
  canter lab --systemd -- 'systemctl start canter-rules; journalctl --no-pager'
  canter lab --arch arm64 -- 'uname -m; ip -br link'
  canter lab --kernel ~/src/linux -- uname -r

The exit code is the command's, or 125 when the lab itself failed.";

/// Run a command in a virtual machine that has CAN
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// 6.12, 6.1, 6.12-rt, 6.1-rt, or the folder of a kernel: an extracted package or a build tree
    #[arg(long, value_name = "KERNEL", default_value = "6.12")]
    kernel: String,
    /// What the machine is; arm64 has a Debian root of its own, and the current folder from the host
    #[arg(long, value_enum, default_value_t = Arch::Amd64)]
    arch: Arch,
    /// real: as fast as it goes; virtual: 2^SHIFT ns for each instruction, so that figures repeat
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// In the virtual clock: an instruction takes 2^N ns (0…10, default 0)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=10))]
    shift: Option<u8>,
    /// Processors of the guest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    cpus: u8,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    memory: String,
    /// SJA1000 cards, one channel each: can0 can1 can3 on bus A, can2 can4 on bus B
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=5))]
    cards: u8,
    /// CAN FD cards, two channels each: can5 can6 can7 on bus A, can8 on bus B
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    fd_cards: u8,
    /// wire: also wcan0…wcan4 on buses A and B of canwire, where frames take their time; probe: the exact instrument
    #[arg(long, value_enum, default_value_t = Bus::Sja1000)]
    bus: Bus,
    /// Load the module canchar: `virtual` for two virtual devices, numbers of SJA1000 cards for it to drive
    #[arg(long, value_name = "LIST")]
    canchar: Option<canchar::Devices>,
    /// One processor more, which Linux does not get, and the module canbare: for --method bare-metal
    #[arg(long)]
    bare_metal: bool,
    /// Two network cards on one hub, for Ethernet load
    #[arg(long)]
    net: bool,
    /// Run the command under the host's systemd as process 1, with a journal
    #[arg(long)]
    systemd: bool,
    /// Another folder, beside the current one, in which changes stay
    #[arg(long, value_name = "DIR")]
    share: Vec<PathBuf>,
    /// tcg: emulation; kvm: the host's processor; auto: kvm where a first boot has shown that it works
    #[arg(long, value_enum, default_value_t = Accel::Auto)]
    accel: Accel,
    /// More words for the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// End the guest after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse_ns)]
    timeout: u64,
    /// Keep the guest's console in FILE
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What a second is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    Real,    // the host's time; figures are as noisy as the host
    Virtual, // counted instructions (QEMU's icount); figures repeat
}

/// What joins the interfaces of the papers' testbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// QEMU's CAN bus between the cards, on which a frame takes no time
    #[default]
    Sja1000,
    /// The module canwire, built for the guest's kernel: bits, arbitration, hardware stamps
    Wire,
    /// As sja1000, with the module canprobe loaded for `canter latency --instrument probe`
    Probe,
}

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    Auto,
    Tcg,
    Kvm,
}

impl Accel {
    fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }
}

/// A machine to run commands in.
#[derive(Clone, Debug)]
pub struct Machine {
    /// A series (`6.12-rt`) or the path of a tree.
    pub kernel: String,
    pub arch: Arch,
    pub clock: Clock,
    /// In the virtual clock an instruction takes 2^shift ns.
    pub shift: u8,
    pub cpus: u8,
    /// As QEMU reads it: `2G`.
    pub memory: String,
    /// SJA1000 cards, 0…5.
    pub cards: u8,
    /// CAN FD cards of two channels, 0…2.
    pub fd_cards: u8,
    pub bus: Bus,
    /// Devices of canchar.
    pub canchar: Option<canchar::Devices>,
    /// A processor more than `cpus`, and memory, that Linux leaves alone; the module canbare, which starts it.
    pub bare_metal: bool,
    /// Two network cards on one hub.
    pub net: bool,
    /// systemd is process 1.
    pub systemd: bool,
    /// Folders, beside the current one, in which changes stay.
    pub shares: Vec<PathBuf>,
    pub accel: Accel,
    /// Words for the kernel's command line.
    pub append: Vec<String>,
    /// For one boot, from its start to the end of the command.
    pub timeout: Duration,
    pub console: Option<PathBuf>,
    pub quiet: bool,
    pub verbose: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            kernel: "6.12".to_owned(),
            arch: Arch::Amd64,
            clock: Clock::Real,
            shift: 0,
            cpus: 1,
            memory: "2G".to_owned(),
            cards: 5,
            fd_cards: 0,
            bus: Bus::Sja1000,
            canchar: None,
            bare_metal: false,
            net: false,
            systemd: false,
            shares: Vec::new(),
            accel: Accel::Auto,
            append: Vec::new(),
            timeout: Duration::from_secs(600),
            console: None,
            quiet: false,
            verbose: false,
        }
    }
}

/// How a command in the lab ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With its exit code: 128 + N when signal N ended it.
    Exit(u8),
    /// This signal reached us, and the guest was ended.
    Interrupted(i32),
    /// Nobody reads our output any more, and the guest was ended.
    OutputClosed,
}

impl Ended {
    /// The exit code as a shell would tell it.
    pub fn code(self) -> u8 {
        let of_signal = |signal: i32| 128 + u8::try_from(signal).unwrap_or(0);
        match self {
            Self::Exit(code) => code,
            Self::Interrupted(signal) => of_signal(signal),
            Self::OutputClosed => of_signal(signal_hook::consts::SIGPIPE),
        }
    }
}

/// What the command in the guest reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Null,
    /// Our own standard input, to its end.
    Inherited,
}

/// Where the command's streams come from and go to.
pub struct Streams {
    pub stdin: Input,
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
}

impl Streams {
    /// Our own three, without a buffer between.
    pub fn inherited() -> io::Result<Self> {
        let own = |stream: &dyn AsFdObject| stream.duplicate();
        Ok(Self {
            stdin: if reads_input() { Input::Inherited } else { Input::Null },
            stdout: Box::new(own(&io::stdout())?),
            stderr: Box::new(own(&io::stderr())?),
        })
    }
}

trait AsFdObject {
    fn duplicate(&self) -> io::Result<File>;
}

impl<T: AsFd> AsFdObject for T {
    fn duplicate(&self) -> io::Result<File> {
        Ok(File::from(self.as_fd().try_clone_to_owned()?))
    }
}

/// A job in the background must not read from its terminal: it would be stopped (SIGTTIN).
fn reads_input() -> bool {
    !io::stdin().is_terminal() || in_foreground(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// Fields 5 and 8 of proc_pid_stat(5): our process group is that of the terminal's foreground.
fn in_foreground(stat: &str) -> bool {
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<_> = behind_name.split(' ').collect();
    matches!(fields[..], [_state, _parent, group, _session, _terminal, foreground, ..] if group == foreground)
}

impl Machine {
    /// Runs a command with our own streams and tells how it ended; an `Err` is a failure of the lab.
    pub fn run(&self, command: &[String]) -> Result<Ended> {
        let streams = || Streams::inherited().map_err(|e| lab_failure(format!("standard streams: {e}")));
        self.run_with(command, streams)
    }

    /// Runs a command with the streams that `streams` makes: once, or twice when a boot has to be tried again.
    ///
    /// One word is a line for bash, several are a program and its arguments. The command's folder is the current
    /// one; what it writes there stays, all else is thrown away. Blocks until the end; SIGINT, SIGTERM and SIGHUP end
    /// the guest.
    pub fn run_with(&self, command: &[String], streams: impl Fn() -> Result<Streams>) -> Result<Ended> {
        if !cfg!(target_arch = "x86_64") {
            let here = std::env::consts::ARCH;
            return Err(Failure::unable(format!(
                "lab: this machine is {here}: the lab's machine is an x86-64 PC"
            )));
        }
        programs::require(&[&[self.arch.qemu()], programs::ALWAYS].concat())?;
        let progress = Progress::new(self.quiet);
        let signals = Signals::catch()?;
        let done = self.prepare_and_run(command, streams, &signals, &progress);
        match signals.caught() {
            // Ctrl-C while a package is downloaded or a driver built ends that first.
            Some(signal) if done.is_err() => Ok(Ended::Interrupted(signal)),
            _ => done,
        }
    }

    fn prepare_and_run(
        &self,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        signals: &Signals,
        progress: &Progress,
    ) -> Result<Ended> {
        let cache = cache::Cache::open()?;
        let mut kernel = kernel::find(&self.kernel, self.arch, &cache, progress)?;
        if self.fd_cards > 0 {
            fd_driver::add(&mut kernel, &cache, progress)?;
        }
        if self.bus == Bus::Wire {
            out_of_tree::add(&wire::SOURCE, wire::parameters(), &mut kernel, &cache, progress)?;
        }
        if self.bus == Bus::Probe {
            out_of_tree::add(&probe::SOURCE, String::new(), &mut kernel, &cache, progress)?;
        }
        if self.bare_metal {
            out_of_tree::add(&bare_metal::SOURCE, String::new(), &mut kernel, &cache, progress)?;
        }
        let canchar_module = match &self.canchar {
            Some(_) => Some(canchar::module(&kernel, &cache, progress)?),
            None => None,
        };
        let here = Here::find(&self.shares, progress)?;
        let (root, read_only) = self.root(&kernel, &cache, progress)?;
        let (folder, _held) = run_folder()
            .map_err(|e| lab_failure(format!("folder for the run: {e} (TMPDIR names another)")))?;
        let run = Run {
            kernel: &kernel,
            canchar_module: canchar_module.as_deref(),
            here: &here,
            root: &root,
            read_only: &read_only,
            folder: folder.path(),
            token: &token().map_err(|e| lab_failure(format!("random number: {e}")))?,
            qemu_version: &qemu_version(self.arch)?,
            signals,
        };
        let accel = kvm::choose(self, &cache, run.qemu_version, progress, |machine, streams| {
            let nothing = ["true".to_owned(), String::new()];
            match run.boot(machine, &nothing, "probe", streams, progress)? {
                Outcome::Ended(ended) => Ok(Some(ended)),
                Outcome::NotBegun(_) | Outcome::Failed(_) => Ok(None),
            }
        })?;
        run.boot_twice(&Self { accel, ..self.clone() }, command, streams, progress)
    }
}

impl Machine {
    /// What the guest finds as its root; and what else it reads, where that is not the host's.
    fn root(
        &self,
        kernel: &Kernel,
        cache: &cache::Cache,
        progress: &Progress,
    ) -> Result<(PathBuf, Vec<(&'static str, PathBuf)>)> {
        if self.arch.is_host() {
            return Ok((PathBuf::from("/"), Vec::new()));
        }
        let root = foreign::root(self.arch, cache, progress)?;
        let modules = kernel.modules.clone().map(|folder| ("modules", folder));
        let program = foreign::program_folder(self.arch).map(|folder| ("program", folder));
        if program.is_none() && !self.quiet {
            let target = self.arch.target();
            progress.say(&format!("no canter in this machine: cargo build --target {target} makes it"));
        }
        Ok((root, modules.into_iter().chain(program).collect()))
    }
}

/// Why there can be no lab here, one whose kernel gets modules of ours when it `builds`; `None`: there can.
pub fn obstacle(builds: bool) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the lab's machine is an x86-64 PC".to_owned());
    }
    let tools: &[programs::Program] = if builds { &[programs::MAKE, programs::GCC] } else { &[] };
    programs::require(&[programs::ALWAYS, &[programs::QEMU], tools].concat())
        .err()
        .map(|failure| failure.message)
}

/// All that is the same in every boot of one run.
struct Run<'a> {
    kernel: &'a Kernel,
    canchar_module: Option<&'a Path>,
    here: &'a Here,
    root: &'a Path,
    read_only: &'a [(&'static str, PathBuf)],
    folder: &'a Path,
    token: &'a str,
    qemu_version: &'a str,
    signals: &'a Signals,
}

impl Run<'_> {
    /// About one boot in a hundred with several emulated processors dies early (code patching): once more, then.
    fn boot_twice(
        &self,
        machine: &Machine,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        progress: &Progress,
    ) -> Result<Ended> {
        let outcome = self.boot(machine, command, "first", streams()?, progress)?;
        let outcome = match outcome {
            Outcome::NotBegun(_) => {
                progress.say("boot failed before the command, trying once more");
                self.boot(machine, command, "second", streams()?, progress)?
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Ended(ended) => Ok(ended),
            Outcome::NotBegun(failure) | Outcome::Failed(failure) => Err(failure),
        }
    }

    /// One boot in a folder of its own.
    fn boot(
        &self,
        machine: &Machine,
        command: &[String],
        name: &str,
        streams: Streams,
        progress: &Progress,
    ) -> Result<Outcome> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder).map_err(|e| lab_failure(format!("{}: {e}", folder.display())))?;
        let (here, token) = (self.here, self.token);
        let canchar_module = self.canchar_module;
        let session = initramfs::Session {
            command,
            folder: &here.folder,
            shares: &here.shares,
            token,
            root: self.root,
            read_only: self.read_only,
            canchar_module,
        };
        let initramfs = folder.join("initramfs");
        fs::write(&initramfs, initramfs::build(machine, self.kernel, &session, progress)?)
            .map_err(|e| lab_failure(format!("{}: {e}", initramfs.display())))?;
        let console = match &machine.console {
            Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
            None => folder.join("console"),
        };
        File::create(&console).map_err(|e| lab_failure(format!("console {}: {e}", console.display())))?;
        let boot = Boot {
            machine,
            kernel: &self.kernel.image,
            initramfs: &initramfs,
            shares: &here.shares,
            root: self.root,
            read_only: self.read_only,
            folder: &folder,
            console: &console,
            token,
            qemu_version: self.qemu_version,
            signals: self.signals,
        };
        guest::boot(&boot, streams)
    }
}

/// Where the command runs, and the folders in which its changes stay.
struct Here {
    folder: PathBuf,
    shares: Vec<PathBuf>,
}

impl Here {
    fn find(others: &[PathBuf], progress: &Progress) -> Result<Self> {
        let folder = std::env::current_dir().map_err(|e| lab_failure(format!("current directory: {e}")))?;
        shareable(&folder)?;
        let mut shares = Vec::new();
        if folder == Path::new("/") {
            progress
                .say("the current directory is /: what the command writes stays in the guest and is lost");
        } else {
            shares.push(folder.clone());
        }
        for other in others {
            let path = fs::canonicalize(other)
                .map_err(|e| lab_failure(format!("--share {}: {e}", other.display())))?;
            if !path.is_dir() || path == Path::new("/") {
                let message = format!("--share {}: it must be a folder, and not the root", other.display());
                return Err(lab_failure(message));
            }
            shareable(&path)?;
            shares.push(path);
        }
        // The outer before the inner, or it would be mounted over it.
        shares.sort();
        shares.dedup();
        Ok(Self { folder, shares })
    }
}

/// A folder that can be at the same place in the guest.
fn shareable(folder: &Path) -> Result<()> {
    if folder.to_str().is_none_or(|name| name.contains('\n')) {
        return Err(lab_failure(format!(
            "folder {}: not a name that the guest can be told",
            folder.display()
        )));
    }
    let own = ["/proc", "/sys", "/dev"].iter().find(|own| folder.starts_with(own));
    match own.filter(|_| !folder.starts_with("/dev/shm")) {
        Some(own) => Err(lab_failure(format!(
            "folder {}: the guest has a {own} of its own: use another",
            folder.display()
        ))),
        None => Ok(()),
    }
}

const RUN_FOLDER: &str = "canter-lab-";

/// A folder for one run, and a lock on it that ends with us however we end: folders without a holder are swept away.
fn run_folder() -> io::Result<(tempfile::TempDir, File)> {
    for entry in fs::read_dir(std::env::temp_dir())?.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(RUN_FOLDER);
        if ours
            && File::open(entry.path().join("lock")).is_ok_and(|lock| file::try_lock(&lock).unwrap_or(false))
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER).tempdir()?;
    // Locked before it has its name, so that nobody finds it without its holder.
    let lock = File::create(folder.path().join("new"))?;
    file::try_lock(&lock)?;
    fs::rename(folder.path().join("new"), folder.path().join("lock"))?;
    Ok((folder, lock))
}

/// Ends a stream: beginning with characters that text does not have, and random, so that no output contains it.
fn token() -> io::Result<String> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(format!("\u{1}\u{4}{}", random.trim()))
}

fn qemu_version(arch: Arch) -> Result<String> {
    let qemu = arch.qemu().0;
    let output = apt::run(qemu, &["--version"], Path::new("/"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split("version ").nth(1).and_then(|rest| rest.split_whitespace().next());
    version.map(str::to_owned).ok_or_else(|| lab_failure(format!("{qemu} --version: {}", text.trim())))
}

/// A failure of the lab itself: exit code 125.
fn lab_failure(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Lab, format!("lab: {}", message.into()))
}

/// `512M`, `2G`.
fn memory(text: &str) -> std::result::Result<String, String> {
    let digits = text.strip_suffix(['M', 'G', 'm', 'g']).ok_or("a size like 512M or 2G")?;
    match digits.parse::<u32>() {
        Ok(1..) => Ok(text.to_owned()),
        _ => Err("a size like 512M or 2G".to_owned()),
    }
}

/// `canter lab`.
pub fn run(arguments: Arguments, common: &Common) -> Result {
    let usage = |message: &str| Err(Failure::new(Exit::Usage, format!("lab: {message}")));
    if arguments.shift.is_some() && arguments.clock == Clock::Real {
        return usage("--shift is for --clock virtual: in the real clock instructions take what they take");
    }
    if arguments.accel == Accel::Kvm && arguments.clock == Clock::Virtual {
        return usage("--accel kvm cannot count instructions: the virtual clock is --accel tcg");
    }
    if arguments.timeout == 0 {
        return usage("--timeout 0: the guest would never start");
    }
    if arguments.canchar.as_ref().is_some_and(|devices| devices.cards_needed() > arguments.cards) {
        return usage("--canchar: there is no such card (--cards says how many there are)");
    }
    if !arguments.arch.is_host() {
        let built = arguments.fd_cards > 0 || arguments.bus == Bus::Wire || arguments.canchar.is_some();
        if built || arguments.bare_metal || arguments.systemd || arguments.accel == Accel::Kvm {
            return usage(
                "--arch: its machine has the cards of --cards and vcan; what is built for the host's kernels, the \
                 host's systemd and KVM are not there",
            );
        }
    }
    if common.json.is_some() || common.realtime.is_some() || common.cpu.is_some() {
        return usage("--json, --realtime and --cpu are for the command inside: give them behind --");
    }
    let machine = Machine {
        kernel: arguments.kernel,
        arch: arguments.arch,
        clock: arguments.clock,
        shift: arguments.shift.unwrap_or(0),
        cpus: arguments.cpus,
        memory: arguments.memory,
        cards: arguments.cards,
        fd_cards: arguments.fd_cards,
        bus: arguments.bus,
        canchar: arguments.canchar,
        bare_metal: arguments.bare_metal,
        net: arguments.net,
        systemd: arguments.systemd,
        shares: arguments.share,
        accel: arguments.accel,
        append: arguments.append,
        timeout: Duration::from_nanos(arguments.timeout),
        console: arguments.console,
        quiet: common.quiet,
        verbose: common.verbose > 0,
    };
    let ended = machine.run(&arguments.command)?;
    // The command's own code, which may be any: beyond what `Exit` can say.
    std::process::exit(ended.code().into());
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

    #[test]
    fn an_end_has_the_exit_code_that_a_shell_would_tell() {
        let table = [
            (Ended::Exit(7), 7),
            (Ended::Interrupted(2), 130),
            (Ended::Interrupted(15), 143),
            (Ended::OutputClosed, 141),
        ];
        for (ended, code) in table {
            assert_eq!(ended.code(), code);
        }
    }

    #[test]
    fn a_background_job_is_told_from_one_in_the_foreground() {
        assert!(in_foreground("12 (a) b) S 1 12 10 34816 12 4194304"));
        assert!(!in_foreground("12 (canter) S 1 12 10 34816 10 4194304"));
        assert!(!in_foreground(""));
    }
}
