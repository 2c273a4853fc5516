//! A recorder while it runs: when it listens, when it has nothing left to do, and how it ends.

use canter_io::process;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A recorder that uses less of a processor than [`BUSY_SHARE`] for so long has nothing left to do.
const IDLE: Duration = Duration::from_millis(1500);
const BUSY_SHARE: f64 = 0.05;
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// How long it may take to begin, to write what waits, or to end.
const LIMIT: Duration = Duration::from_secs(120);
/// What it prints, in its folder.
const LOG: &str = "said";

pub struct RunningRecorder {
    child: Child,
    log: PathBuf,
}

impl RunningRecorder {
    /// Starts it and waits until it listens and waits for frames. The inner `Err` is the reason why it does not run here.
    pub fn start(words: &[String], folder: &Path) -> Result<Result<Self, String>, String> {
        let log = folder.join(LOG);
        let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = output.map_err(|error| format!("{}: {error}", log.display()))?;
        let before = listeners();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(format!("{} is not installed", words[0])));
            }
            Err(error) => return Err(format!("start: {error}")),
        };
        let mut running = Self { child, log };
        let begun = Instant::now();
        while listeners() == before {
            if running.has_ended()? {
                return Ok(Err(running.last_words()));
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("did not listen within {} s", LIMIT.as_secs()));
            }
            thread::sleep(CHECK_PERIOD);
        }
        running.wait_until_idle()?;
        Ok(Ok(running))
    }

    /// Waits until it has written what waits for it.
    pub fn wait_until_idle(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let (mut since, mut before) = (Instant::now(), self.busy());
        while since.elapsed() < IDLE {
            if self.has_ended()? {
                return Err(format!("ended early: {}", self.last_words()));
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("was still busy after {} s", LIMIT.as_secs()));
            }
            thread::sleep(CHECK_PERIOD);
            let now = self.busy();
            if (now - before).as_secs_f64() > BUSY_SHARE * CHECK_PERIOD.as_secs_f64() {
                since = Instant::now();
            }
            before = now;
        }
        Ok(())
    }

    /// Ends it as Ctrl-C would, and returns its exit code.
    pub fn end(mut self) -> Result<i32, String> {
        process::terminate(&self.child).map_err(|error| format!("end: {error}"))?;
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return status.code().ok_or_else(|| format!("{status}: {}", self.last_words()));
            }
            thread::sleep(CHECK_PERIOD);
        }
        Err(format!("did not end within {} s", LIMIT.as_secs()))
    }

    fn has_ended(&mut self) -> Result<bool, String> {
        self.child.try_wait().map(|status| status.is_some()).map_err(|error| error.to_string())
    }

    /// The time that all its threads have run.
    fn busy(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        let of_thread = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(threads.filter_map(of_thread).sum())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.trim().lines().last().unwrap_or("it ended without a word").to_owned()
    }
}

impl Drop for RunningRecorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of sockets that receive frames: packet sockets that run, and receivers of CAN_RAW sockets.
fn listeners() -> usize {
    const RUNS: usize = 5;
    let packet = fs::read_to_string("/proc/net/packet").unwrap_or_default();
    let runs = |line: &&str| line.split_whitespace().nth(RUNS) == Some("1");
    let raw = fs::read_dir("/proc/net/can").into_iter().flatten().flatten();
    let raw = raw.filter(|list| list.file_name().to_string_lossy().starts_with("rcvlist_"));
    let lists: Vec<_> = raw.filter_map(|list| fs::read_to_string(list.path()).ok()).collect();
    let receivers = |text: &String| text.lines().filter(|line| line.trim_end().ends_with(" raw")).count();
    packet.lines().filter(runs).count() + lists.iter().map(receivers).sum::<usize>()
}
