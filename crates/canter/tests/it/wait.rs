//! Waits for the thing that a test needs, instead of sleeping for a time that is too long here and too short there.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{OnceLock, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// The longest wait of a test, on the slowest machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A timeout, `SLOWNESS` times as long on a kernel that checks each of its memory accesses.
pub fn patience(limit: Duration) -> Duration {
    static SLOWNESS: OnceLock<u32> = OnceLock::new();
    limit * *SLOWNESS.get_or_init(|| std::env::var("SLOWNESS").map_or(1, |times| times.parse().unwrap()))
}

/// A moment, by the clock of this machine and by that of the host. In the lab's virtual clock hours pass in a second while
/// the guest waits for the host's files, so that its own clock says nothing about patience; its real-time clock is the host's.
pub struct Moment {
    guest: Instant,
    host: Option<Duration>,
}

impl Moment {
    pub fn now() -> Self {
        Self { guest: Instant::now(), host: Self::host() }
    }

    fn host() -> Option<Duration> {
        let seconds = fs::read_to_string("/sys/class/rtc/rtc0/since_epoch").ok()?;
        Some(Duration::from_secs(seconds.trim().parse().ok()?))
    }

    /// Whether `limit` has passed by both clocks.
    pub fn is_over(&self, limit: Duration) -> bool {
        // The host's clock has whole seconds.
        let is_over_on_host =
            || self.host.zip(Self::host()).is_none_or(|(then, now)| now.saturating_sub(then) > limit);
        self.guest.elapsed() > limit && is_over_on_host()
    }
}

/// Waits until `holds`; fails after [`DEADLINE`].
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_in_time(Duration::from_millis(5), holds), "still not: {what}");
}

/// Waits until `holds`, with a pause after each check; false after [`DEADLINE`].
pub fn holds_in_time(pause: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let since = Moment::now();
    while !holds() {
        if since.is_over(patience(DEADLINE)) {
            return false;
        }
        std::thread::sleep(pause);
    }
    true
}

/// The state of a thread, whose folder in /proc is `task`: `R` runs, `S` sleeps in a call, `X` has ended (proc_pid_stat(5),
/// the field behind the name in brackets).
pub fn state(task: &Path) -> char {
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next()).unwrap_or('X')
}

/// Sends the signal `name` to a process. After `STOP` each thread has stopped, which kill(1) alone does not wait for.
#[track_caller]
pub fn signal(process: &str, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), process]).status().unwrap();
    assert!(status.success(), "kill -{name} {process}: {status}");
    if name == "STOP" {
        let tasks = Path::new("/proc").join(process).join("task");
        eventually("each thread has stopped", || {
            fs::read_dir(&tasks).unwrap().all(|task| matches!(state(&task.unwrap().path()), 'T' | 'X'))
        });
    }
}

/// Runs `call` in a thread, and waits until that thread sleeps in it, or has ended.
#[track_caller]
pub fn asleep_in<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        sender.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        call()
    });
    let task = Path::new("/proc").join(receiver.recv().unwrap());
    eventually("the thread sleeps in its call", || matches!(state(&task), 'S' | 'X'));
    thread
}
