//! What else a machine does while it is measured. Each load is a process of its own that runs until it is ended:
//! `ping` of iputils, or this program (`canter study load NAME`), so that nothing of it is in the meter.

use super::ethernet::{self, Ethernet};
use crate::failure::{self, Failure};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    str::FromStr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// A load by its name in study files and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    #[default]
    None,
    /// The pattern of `hackbench --threads`: groups of threads that send each other short messages.
    Cpu,
    /// `ping -f -s 60000` to the gateway's network card.
    EthernetReceive,
    /// `ping -f -s 60000` from the gateway's network card.
    EthernetSend,
    /// A TCP stream to the gateway, as fast as it goes.
    EthernetTcp,
    /// A file written, synchronised and deleted again and again.
    Disk,
}

const NAMES: [&str; 6] = ["none", "cpu", "ethernet-receive", "ethernet-send", "ethernet-tcp", "disk"];

impl Load {
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    pub fn is_ethernet(self) -> bool {
        matches!(self, Self::EthernetReceive | Self::EthernetSend | Self::EthernetTcp)
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all =
            [Self::None, Self::Cpu, Self::EthernetReceive, Self::EthernetSend, Self::EthernetTcp, Self::Disk];
        let found = all.into_iter().find(|load| load.name() == text);
        found.ok_or_else(|| format!("{text}: no such load ({})", NAMES.join(", ")))
    }
}

/// What makes a load, until it is dropped.
#[derive(Default)]
pub struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill(); // one that has ended already is ended
            let _ = child.wait();
        }
    }
}

/// Which lines of a load run on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    Both,
    Gateway,
    Other,
}

/// A load whose processes have all worked for so long is under way, in ticks of 10 ms.
const SETTLED_TICKS: u64 = 5;
/// One that is not by then never will be.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// Starts a load on a processor of the gateway; `Err` of the inner result: this machine cannot make it, and why.
pub fn start(
    load: Load,
    processor: Option<usize>,
    ethernet: Option<&Ethernet>,
    part: Part,
) -> failure::Result<Result<Running, String>> {
    let mut running = Running::default();
    let Some(lines) = lines(load, ethernet) else {
        return Ok(Err(format!("load {}: needs two network cards (canter lab --net)", load.name())));
    };
    if load.is_ethernet()
        && let Err(why) = ethernet::ping_is_there()
    {
        return Ok(Err(why));
    }
    let program = super::program()?;
    let here = |line: &Line| part == Part::Both || line.on_gateway == (part == Part::Gateway);
    for Line { words, on_gateway } in lines.into_iter().filter(here) {
        let processor = match on_gateway {
            true => processor,
            false => processor.map(|_| super::testbed::SENDER_CPU),
        };
        let pinned = processor.map(|number| ["taskset".to_owned(), "-c".to_owned(), number.to_string()]);
        let mut words = pinned.into_iter().flatten().chain(words).map(|word| match word.as_str() {
            CANTER => program.clone().into_os_string(),
            _ => word.into(),
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        running.0.push(command.spawn().map_err(|error| failed(load, error))?);
    }
    Ok(running.settle(load).map(|()| running))
}

impl Running {
    /// Waits until it is under way. How long that takes says no clock: programs are read from a file first.
    fn settle(&mut self, load: Load) -> Result<(), String> {
        let since = Instant::now();
        while !self.0.iter().all(|child| ticks(child) >= SETTLED_TICKS) {
            if let Some(status) = self.0.iter_mut().find_map(|child| child.try_wait().ok().flatten()) {
                return Err(format!("load {}: ended by itself: {status}", load.name()));
            }
            if since.elapsed() > SETTLED_WITHIN {
                return Err(format!("load {}: has hardly worked in {SETTLED_WITHIN:?}", load.name()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// The processor's time that a process has had: utime and stime of proc(5), the 12th and 13th word after its name.
fn ticks(process: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

fn failed(load: Load, error: io::Error) -> Failure {
    Failure::failed(format!("load {}: start: {error}", load.name()))
}

/// This program, in a [`Line`].
const CANTER: &str = "canter";

/// A command of a load.
struct Line {
    words: Vec<String>,
    on_gateway: bool,
}

/// `None`: there is no Ethernet for it.
fn lines(load: Load, ethernet: Option<&Ethernet>) -> Option<Vec<Line>> {
    let gateway = |words: &[&str]| Line {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        on_gateway: true,
    };
    let own = |name: &str| gateway(&[CANTER, "study", "load", name]);
    Some(match load {
        Load::None => Vec::new(),
        Load::Cpu => vec![own("cpu")],
        Load::Disk => vec![own("disk")],
        Load::EthernetReceive => {
            let ethernet = ethernet?;
            let words =
                ethernet.on_the_other_side(&["ping", "-f", "-q", "-s", "60000", &ethernet.gateway_address]);
            vec![Line { words, on_gateway: false }]
        }
        Load::EthernetSend => vec![gateway(&["ping", "-f", "-q", "-s", "60000", &ethernet?.other_address])],
        Load::EthernetTcp => {
            let ethernet = ethernet?;
            let source = [CANTER, "study", "load", "tcp-source", "--to", &ethernet.gateway_address];
            let words = ethernet.on_the_other_side(&source);
            vec![own("tcp-sink"), Line { words, on_gateway: false }]
        }
    })
}

/// The work of `canter study load NAME`; returns only when something fails.
pub fn work(name: &str, to: Option<&str>) -> failure::Result<()> {
    let done = match (name, to) {
        ("cpu", _) => messages(),
        ("disk", _) => disk(),
        ("tcp-sink", _) => tcp_sink(),
        ("tcp-source", Some(to)) => tcp_source(to),
        _ => return Err(Failure::new(failure::Exit::Usage, format!("{name}: no such load"))),
    };
    done.map_err(|error| Failure::failed(format!("load {name}: {error}")))
}

/// As hackbench has them: groups, senders and receivers of a group, bytes of a message.
const GROUPS: usize = 2;
const THREADS: usize = 20;
const MESSAGE: usize = 100;

/// Every sender of a group sends to every receiver of it, without end.
fn messages() -> io::Result<()> {
    let mut senders = Vec::new();
    for _ in 0..GROUPS {
        let mut ends = Vec::new();
        for _ in 0..THREADS {
            let (mut receiver, sender) = UnixStream::pair()?;
            ends.push(sender);
            thread::spawn(move || {
                let mut message = [0; MESSAGE];
                while receiver.read_exact(&mut message).is_ok() {}
            });
        }
        let ends = Arc::new(ends);
        for _ in 0..THREADS {
            let ends = Arc::clone(&ends);
            senders.push(thread::spawn(move || {
                while ends.iter().all(|end| (&*end).write_all(&[0; MESSAGE]).is_ok()) {}
            }));
        }
    }
    senders.into_iter().for_each(|sender| drop(sender.join()));
    Err(io::ErrorKind::BrokenPipe.into())
}

const FILE_BYTES: usize = 1 << 20;

/// Writes to the fastest place that keeps a file: in the lab a file system on a loop device in memory.
fn disk() -> io::Result<()> {
    let folder = if crate::measure::environment::in_lab() { loop_device()? } else { std::env::temp_dir() };
    let path = folder.join(format!("canter-load-{}", std::process::id()));
    let block = vec![0x55; FILE_BYTES];
    loop {
        let mut file = File::create(&path)?;
        file.write_all(&block)?;
        file.sync_all()?;
        drop(file);
        fs::remove_file(&path)?;
    }
}

/// There is no disk in the lab: ext4 on a loop device on a file in memory has everything but the disk's interrupts.
fn loop_device() -> io::Result<PathBuf> {
    let folder = Path::new("/tmp/canter-disk");
    if folder.exists() {
        return Ok(folder.to_owned());
    }
    let image = "/tmp/canter-disk.img";
    File::create(image)?.set_len(64 << 20)?;
    let run =
        |words: &[&str]| match Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status()? {
            status if status.success() => Ok(()),
            status => Err(io::Error::other(format!("{}: {status}", words.join(" ")))),
        };
    run(&["modprobe", "-a", "loop", "ext4"])?;
    run(&["mkfs.ext4", "-q", "-F", image])?;
    fs::create_dir(folder)?;
    run(&["mount", "-o", "loop", image, "/tmp/canter-disk"])?;
    Ok(folder.to_owned())
}

/// The discard service's number with a 1 before it.
const PORT: u16 = 10009;

fn tcp_sink() -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    for stream in TcpListener::bind(("0.0.0.0", PORT))?.incoming() {
        let mut stream = stream?;
        while stream.read(&mut bytes)? > 0 {}
    }
    Ok(())
}

fn tcp_source(to: &str) -> io::Result<()> {
    const TRIES: u32 = 100;
    let connect = |_| {
        let stream = TcpStream::connect((to, PORT));
        if stream.is_err() {
            thread::sleep(Duration::from_millis(1)); // the sink has just been started
        }
        stream.ok()
    };
    let mut stream = (0..TRIES).find_map(connect).ok_or(io::ErrorKind::ConnectionRefused)?;
    let bytes = vec![0x55; 1 << 16];
    loop {
        stream.write_all(&bytes)?;
    }
}
