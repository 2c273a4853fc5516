//! A recorder while it runs: when it listens, when it has nothing left to do, and how it ends.

use canter_cli::failure::{self, Failure};
use canter_io::process;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The time after which a recorder that uses less of a processor than [`BUSY_SHARE`] has nothing left to do.
const IDLE: Duration = Duration::from_millis(1500);
const BUSY_SHARE: f64 = 0.05;
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Timeout of a recorder's beginning, of its writing, and of its end.
const LIMIT: Duration = Duration::from_secs(120);
/// The file with the recorder's output, in its folder.
const LOG: &str = "said";

pub struct RunningRecorder {
    /// The recorder's name, for errors.
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl RunningRecorder {
    /// Starts a recorder and waits until it listens and waits for frames.
    pub fn start(name: &'static str, words: &[String], folder: &Path) -> failure::Result<Self> {
        let log = folder.join(LOG);
        let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = output.map_err(|error| failed(name, format!("{}: {error}", log.display())))?;
        let before = listeners();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::unable(format!("{} is not installed", words[0])),
            _ => failed(name, format!("start: {error}")),
        })?;
        let mut running = Self { name, child, log };
        let begun = Instant::now();
        while listeners() == before {
            if running.has_ended()? {
                return Err(Failure::unable(running.last_words()));
            }
            if begun.elapsed() > LIMIT {
                return Err(failed(name, format!("did not listen within {} s", LIMIT.as_secs())));
            }
            thread::sleep(CHECK_PERIOD);
        }
        running.wait_until_idle()?;
        Ok(running)
    }

    /// Waits until the recorder has written all received frames.
    pub fn wait_until_idle(&mut self) -> failure::Result<()> {
        let begun = Instant::now();
        let (mut since, mut before) = (Instant::now(), self.busy());
        while since.elapsed() < IDLE {
            if self.has_ended()? {
                return Err(failed(self.name, format!("ended early: {}", self.last_words())));
            }
            if begun.elapsed() > LIMIT {
                return Err(failed(self.name, format!("was still busy after {} s", LIMIT.as_secs())));
            }
            thread::sleep(CHECK_PERIOD);
            let now = self.busy();
            if now.saturating_sub(before).as_secs_f64() > BUSY_SHARE * CHECK_PERIOD.as_secs_f64() {
                since = Instant::now();
            }
            before = now;
        }
        Ok(())
    }

    /// Ends the recorder as Ctrl-C would, and returns its exit code.
    pub fn end(mut self) -> failure::Result<i32> {
        process::terminate(&self.child).map_err(|error| failed(self.name, format!("end: {error}")))?;
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            if let Some(status) =
                self.child.try_wait().map_err(|error| failed(self.name, error.to_string()))?
            {
                let killed = || failed(self.name, format!("{status}: {}", self.last_words()));
                return status.code().ok_or_else(killed);
            }
            thread::sleep(CHECK_PERIOD);
        }
        Err(failed(self.name, format!("did not end within {} s", LIMIT.as_secs())))
    }

    fn has_ended(&mut self) -> failure::Result<bool> {
        let ended = self.child.try_wait().map_err(|error| failed(self.name, error.to_string()))?;
        Ok(ended.is_some())
    }

    /// The processor time of all threads of the recorder; less when one of them has ended.
    pub fn busy(&self) -> Duration {
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

/// The failure of a recorder.
pub fn failed(name: &str, why: String) -> Failure {
    Failure::failed(format!("study: record by {name}: {why}"))
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
