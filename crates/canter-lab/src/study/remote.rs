//! The gateway on another machine: `canter study run --gateway-by "ssh pi"` starts `canter study gateway` there as a
//! subprocess, which executes the orders on its standard input and answers on its standard output, a line of JSON each.
//! The far side ends when its standard input does, and restores its machine: it outlives no killed run and no lost
//! connection.

use super::{
    ethernet::Ethernet,
    load::{self, Part, Running},
    preparation::Rate,
    side::{Local, Order, Place, Side},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
};
use canter_io::Interface;
use canter_measure::identity::Build;
use canter_route::rules::counts::Counts;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    iter,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Timeout of the greeting: somebody may have to type a passphrase.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of an answer: a gateway with 2048 rules starts slowly on a slow machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the far side may take to end, before the near side kills the command that carries it.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The period at which the near side checks whether that command has ended.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long to wait for another line of standard error after the end.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(200);
/// The period at which the far side checks for a signal.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The first line of the far side.
#[derive(Serialize, Deserialize)]
struct Greeting {
    build: String,
    /// The addresses of the far side and of the near side, for an Ethernet load between the two.
    addresses: Option<[String; 2]>,
}

#[derive(Serialize, Deserialize)]
enum Request {
    Begin(Order),
    End,
}

/// The gateway's account at its end, or why an order was not executed.
type Answer = Result<Counts, Refusal>;

#[derive(Serialize, Deserialize)]
enum Refusal {
    /// The far machine cannot do this, for this reason.
    Unable(String),
    Failed(String),
}

/// The version that must be equal on both sides.
fn build() -> String {
    let Build { commit, sources } = Build::current();
    format!("{} (commit {commit:?}, sources {sources})", env!("CARGO_PKG_VERSION"))
}

/// A gateway on another machine.
pub struct Remote {
    /// The command that starts programs on the other machine.
    by: String,
    process: Child,
    /// The input of the far side; `None`: the far side is lost.
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    /// The lines of the far side's standard error.
    complaints: Receiver<String>,
    addresses: Option<[String; 2]>,
    load: Option<Running>,
    stop: Arc<AtomicBool>,
    /// The flag that Ctrl-C sets, which also ends ssh.
    interrupted: Arc<AtomicBool>,
}

impl Remote {
    /// Starts the far side by a command to which `canter study gateway IN OUT` is appended; its words are split as a shell
    /// does.
    pub fn start(by: &str, ends: [&str; 2], greeting_timeout: Duration) -> failure::Result<Self> {
        let words = shlex::split(by).filter(|words| !words.is_empty());
        let Some(words) = words else {
            return Err(Failure::new(
                Exit::Usage,
                format!("--gateway-by {by}: not a command (\"ssh HOST\")"),
            ));
        };
        let failed = |what: String| Failure::failed(format!("--gateway-by {by:?}: {what}"));
        let mut process = Command::new(&words[0])
            .args(&words[1..])
            .args(["canter", "study", "gateway"])
            .args(ends)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("start {}: {error} (\"ssh HOST\")", words[0])))?;
        let (Some(answers), Some(complaints)) = (process.stdout.take(), process.stderr.take()) else {
            return Err(failed("start: no pipes".to_owned()));
        };
        let stop = interrupt_flag()?;
        let mut remote = Self {
            by: by.to_owned(),
            orders: process.stdin.take(),
            process,
            answers: lines(answers, Some(Arc::clone(&stop))),
            complaints: lines(complaints, None),
            addresses: None,
            load: None,
            stop,
            interrupted: interrupt_flag()?,
        };
        let way_out = format!("needs this build of canter there; try {by} canter --version");
        let greeting: Greeting = remote.receive(greeting_timeout, &way_out)?;
        if greeting.build != build() {
            let there = greeting.build;
            return Err(failed(format!(
                "canter is {there} there and {} here (install the same build)",
                build()
            )));
        }
        remote.addresses = greeting.addresses;
        Ok(remote)
    }

    fn ask(&mut self, request: &Request) -> failure::Result<Counts> {
        const WAY_OUT: &str = "the same command continues";
        let sent = self.orders.as_mut().map(|orders| send(orders, request));
        if let Some(Err(error)) = sent
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(self.lose(&error.to_string(), WAY_OUT));
        }
        let answer: Answer = self.receive(ANSWER_TIMEOUT, WAY_OUT)?; // after a broken pipe: the far side's last words
        answer.map_err(|refusal| match refusal {
            Refusal::Unable(why) => Failure::unable(why),
            Refusal::Failed(why) => Failure::failed(format!("--gateway-by {:?}: {why}", self.by)),
        })
    }

    /// Receives a line. If it does not come, the far side is lost.
    fn receive<T: DeserializeOwned>(&mut self, timeout: Duration, way_out: &str) -> failure::Result<T> {
        match self.answers.recv_timeout(timeout) {
            Ok(line) => serde_json::from_str(&line)
                .map_err(|_| self.lose(&format!("{line:?} is no answer of canter"), way_out)),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.lose(&format!("no answer within {} s", timeout.as_secs()), way_out))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.lose("", way_out)),
        }
    }

    /// Ends the far side; without a reason, the reason is its exit code and its last words.
    fn lose(&mut self, why: &str, way_out: &str) -> Failure {
        let status = self.end_process();
        let why = match (why, status, self.complaints().last()) {
            ("", status, None) => status,
            ("", status, Some(complaint)) => format!("{status}: {complaint}"),
            (why, ..) => why.to_owned(),
        };
        let exit = if self.interrupted.load(Ordering::Acquire) { Exit::Interrupted } else { Exit::Failed };
        Failure::new(exit, format!("--gateway-by {:?}: {why} ({way_out})", self.by))
    }

    /// Closes the standard input of the far side and waits for its end; returns how it ended.
    fn end_process(&mut self) -> String {
        self.orders = None;
        let since = Instant::now();
        while since.elapsed() < END_TIMEOUT {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(END_CHECK_INTERVAL),
                Ok(Some(status)) => return format!("ended, {status}"),
                Err(error) => return error.to_string(),
            }
        }
        let _ = self.process.kill(); // fails only for a process that has ended
        let _ = self.process.wait();
        "killed".to_owned()
    }

    fn complaints(&self) -> impl Iterator<Item = String> {
        let next = || self.complaints.recv_timeout(LAST_WORDS_TIMEOUT).ok();
        iter::from_fn(next).map(|line| line.trim_start_matches("canter: ").to_owned())
    }
}

impl Side for Remote {
    fn begin(&mut self, order: &Order) -> failure::Result<()> {
        self.ask(&Request::Begin(order.clone()))?;
        let ethernet = self.addresses.as_ref().map(|[gateway, own]| Ethernet::between(gateway, own));
        match load::start(order.load, None, ethernet.as_ref(), Part::Other) {
            Ok(load) => self.load = Some(load),
            Err(failure) => {
                self.end()?;
                return Err(failure);
            }
        }
        Ok(())
    }

    fn end(&mut self) -> failure::Result<Counts> {
        self.load = None;
        self.ask(&Request::End)
    }

    fn interfaces(&self) -> failure::Result<Vec<Interface>> {
        Ok(Vec::new()) // none of this machine
    }

    fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    fn is_lost(&self) -> bool {
        self.orders.is_none()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.load = None;
        self.end_process();
        self.complaints().for_each(|line| eprintln!("canter: --gateway-by {:?}: {line}", self.by));
    }
}

/// The lines of a stream, as they come; its end sets `ended`.
fn lines(source: impl Read + Send + 'static, ended: Option<Arc<AtomicBool>>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            let _ = sender.send(line); // fails when nobody reads on
        }
        if let Some(ended) = ended {
            ended.store(true, Ordering::Release);
        }
    });
    receiver
}

fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

/// The far side: executes orders until standard input ends, or a signal comes.
pub fn serve(input: String, output: String) -> failure::Result {
    let addresses = addresses(&std::env::var("SSH_CONNECTION").unwrap_or_default());
    let greeting = Greeting { build: build(), addresses: addresses.clone() };
    let place = Place { input, output, part: Part::Gateway, addresses, ..Place::default() };
    let mut local = Local::new(place)?;
    local.set_up(Rate::Classic)?;
    let failed = |error: io::Error| Failure::failed(format!("study gateway: answer: {error}"));
    send(&mut io::stdout(), &greeting).map_err(failed)?;
    let orders = lines(io::stdin(), None);
    loop {
        let answer = match orders.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(request) => answer(&mut local, request),
                Err(error) => Err(Refusal::Failed(format!("order: {error}"))),
            },
            Err(RecvTimeoutError::Disconnected) => return local.end().map(|_| Exit::Done),
            Err(RecvTimeoutError::Timeout) if local.stop().load(Ordering::Acquire) => {
                local.end()?;
                return Err(Failure::new(Exit::Interrupted, "study gateway: interrupted"));
            }
            Err(RecvTimeoutError::Timeout) => continue,
        };
        send(&mut io::stdout(), &answer).map_err(failed)?; // an error ends what runs: `local` is dropped
    }
}

/// The addresses of this machine and of the one that gives orders, by the variable of ssh(1): `CLIENT PORT SERVER PORT`.
fn addresses(ssh_connection: &str) -> Option<[String; 2]> {
    let words: Vec<&str> = ssh_connection.split(' ').collect();
    let [other, _, own, _] = words[..] else { return None };
    Some([own.to_owned(), other.to_owned()])
}

fn answer(local: &mut Local, request: Request) -> Answer {
    let done = match request {
        Request::Begin(order) => {
            local.set_up(Rate::of(order.fd)).and_then(|()| local.begin(&order)).map(|()| Counts::default())
        }
        Request::End => local.end(),
    };
    done.map_err(|failure| match failure.exit {
        Exit::Unable => Refusal::Unable(failure.message),
        _ => Refusal::Failed(failure.message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a prefix, which must be one line.
    fn refusal(by: &str, greeting_timeout: Duration) -> Failure {
        let started = Remote::start(by, ["can3", "can4"], greeting_timeout);
        let failure = started.err().unwrap_or_else(|| panic!("{by} was taken"));
        assert_eq!(failure.message.lines().count(), 1, "{}", failure.message);
        failure
    }

    #[test]
    fn a_prefix_that_starts_no_canter_is_one_line() {
        let greeting =
            |build: &str| format!(r#"sh -c "echo '{{\"build\":\"{build}\",\"addresses\":null}}'; cat" --"#);
        for (by, parts) in [
            ("no-such-program pi", &["start no-such-program: ", "ssh HOST"][..]),
            ("sh -c 'exec no-such-canter' --", &["ended, exit status: 127", "no-such-canter", "this build"]),
            ("sh -c 'echo no route to pi >&2; exit 255'", &["exit status: 255: no route to pi"]),
            ("sh -c 'kill -9 $$'", &["signal: 9"]),
            ("echo", &["\"canter study gateway can3 can4\" is no answer of canter"]),
            (&greeting("0.0.1"), &["canter is 0.0.1 there", "here (install the same build)"]),
        ] {
            let failure = refusal(by, GREETING_TIMEOUT);
            assert_eq!(failure.exit, Exit::Failed);
            for part in parts {
                assert!(failure.message.contains(part), "{part}: {}", failure.message);
            }
        }
    }

    #[test]
    fn a_prefix_without_a_word_is_a_wrong_command_line() {
        for by in ["", " ", "sh -c 'open"] {
            assert_eq!(refusal(by, GREETING_TIMEOUT).exit, Exit::Usage, "{by}");
        }
    }

    #[test]
    fn a_prefix_that_says_nothing_is_given_up() {
        let failure = refusal("sh -c 'cat >&2' --", Duration::from_secs(1));
        let why = "no answer within 1 s (needs this build of canter there; try sh -c 'cat >&2' -- canter --version)";
        assert!(failure.message.ends_with(why), "{failure}");
    }

    #[test]
    fn a_far_side_that_has_ended_is_lost() {
        let greeting =
            serde_json::to_string(&Greeting { build: build(), addresses: None }).expect("it is text");
        let script = format!("echo {}; echo gone >&2", shlex::try_quote(&greeting).expect("no zero byte"));
        let prefix = format!("sh -c {}", shlex::try_quote(&script).expect("no zero byte"));
        let started = Remote::start(&prefix, ["can3", "can4"], GREETING_TIMEOUT);
        let mut remote = started.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(!remote.is_lost());
        let failure = remote.end().expect_err("nobody answers");
        assert!(failure.message.contains("exit status: 0: gone (the same command continues)"), "{failure}");
        assert!(remote.is_lost());
    }

    #[test]
    fn the_addresses_of_both_machines_are_those_of_ssh() {
        let known = addresses("192.168.1.2 50022 192.168.1.5 22");
        assert_eq!(known, Some(["192.168.1.5".to_owned(), "192.168.1.2".to_owned()]));
        assert_eq!(addresses(""), None);
    }
}
