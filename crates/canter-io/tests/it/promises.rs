//! Every row of the tables of methods, on every kind of link, through the same sentences.
//!
//! What a receiver must do stands in `receivers`, what a transmitter must do in `transmitters`, each as a list of
//! sentences. A link is a place where frames go in at one end and come out at the other; `links` makes them. Which
//! method cannot work on which link follows from its row's carriers and a table of exceptions, so that nothing is skipped
//! unseen: a method whose own check refuses a link that it should take is a failure, and so is the reverse.
//!
//! A sentence runs in its own thread with a deadline, so that a method that hangs fails its sentence and no other.

mod frames;
mod links;
mod pairs;
mod receivers;
mod transmitters;

use std::any::Any;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::skip::skip;
use canter_io::carrier::Carrier;
use canter_io::method::{Pair, ReceiveMethod, TransmitMethod};
use canter_io::socket::Socket;
pub use links::Kind;
use links::Link;

/// How long a sentence may take. The slowest takes about a second.
const SENTENCE_DEADLINE: Duration = Duration::from_secs(20);

/// What a method promises, where the promise makes sense, and how it is checked: by not panicking.
pub struct Sentence<Method> {
    name: &'static str,
    applies_to: fn(&Link) -> bool,
    check: fn(Method, &Link),
}

/// A list of sentences: where it applies (a method of [`Link`]) and the function's name.
macro_rules! sentences {
    ($($place:ident: $name:ident,)*) => {
        &[$(crate::promises::Sentence { name: stringify!($name), applies_to: crate::promises::links::Link::$place, check: $name }),*]
    };
}
pub(crate) use sentences;

/// Refusals that do not follow from the carriers of a row: the method as in the name of a pair, on which links, and whether
/// that is all there is to say. A method that would only have no effect is put through the sentences all the same.
const REFUSALS: &[(&str, OnKind, Refusal)] = &[
    ("read/busy-poll", |kind| kind != Kind::Canwire, Refusal::NoEffect), // no other driver gives sockets a NAPI context
    ("+ring", |kind| matches!(kind, Kind::Vcan | Kind::VcanFd), Refusal::Final),
];

/// Whether a method refuses a kind of link.
type OnKind = fn(Kind) -> bool;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Final,
    NoEffect,
}

/// What came out on one link.
struct Tally {
    link: Arc<Link>,
    checks: usize,
    failures: Vec<String>,
    started: Instant,
}

impl Tally {
    fn new(link: Link) -> Self {
        Self { link: Arc::new(link), checks: 0, failures: Vec::new(), started: Instant::now() }
    }

    /// Whether the method is to be put through the sentences; says why when not, and fails when the method's own check is
    /// of another opinion than its carriers and the table of refusals.
    fn takes(&mut self, name: &str, carriers: &[&Carrier], answer: canter_io::Result<()>) -> bool {
        let kind = self.link.kind;
        let mut refusals = REFUSALS.iter().filter(|(method, refuses, _)| *method == name && refuses(kind));
        let expected = if carriers.contains(&self.link.near().carrier) {
            refusals.next().map(|(_, _, refusal)| *refusal)
        } else {
            Some(Refusal::Final)
        };
        match (answer, expected) {
            (Ok(()), None) => true,
            (Err(reason), Some(refusal)) => {
                say(&format!(
                    "{} {name} on {kind}: {reason}",
                    match refusal {
                        Refusal::Final => "REFUSED",
                        Refusal::NoEffect => "NOTE",
                    }
                ));
                refusal == Refusal::NoEffect
            }
            (answer, _) => {
                let answer = answer.map_err(|error| error.to_string());
                self.failures.push(format!("{name} on {kind}: its check answered {answer:?}"));
                false
            }
        }
    }

    /// Puts a method through the sentences.
    fn put<M: Copy + Display + Send + 'static>(&mut self, method: M, sentences: &'static [Sentence<M>]) {
        for sentence in sentences.iter().filter(|sentence| (sentence.applies_to)(&self.link)) {
            let link = Arc::clone(&self.link);
            self.checks += 1;
            let verdict = within(SENTENCE_DEADLINE, move || {
                link.make_ready();
                (sentence.check)(method, &link);
            });
            if let Err(why) = verdict {
                let failure = format!("{method} on {}: {}: {why}", self.link.kind, sentence.name);
                say(&format!("FAIL {failure}"));
                self.failures.push(failure);
            }
        }
    }

    fn finish(self) {
        let Self { link, checks, failures, started } = self;
        let seconds = started.elapsed().as_secs_f32();
        say(&format!("{}: {checks} checks, {} failures, {seconds:.1} s", link.kind, failures.len()));
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    }
}

/// Past the test harness, which hides what a passing test prints.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs `work` in its own thread; the thread stays behind when it is not done in time.
fn within(deadline: Duration, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let (done, finished) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _at_the_end = done; // dropped when the work returns and when it panics
        // Virtual links queue a frame on the processor that sends it, so a sender that wanders reorders its frames.
        // Workers of the sentences run on the next one, when there is one.
        let _ = canter_io::thread::pin(0);
        work();
    });
    match finished.recv_timeout(deadline) {
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("not done after {deadline:?}")),
        _ => thread.join().map_err(|panic| text(panic.as_ref())),
    }
}

fn text(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

/// Every method that works on a link of this kind keeps every promise that makes sense there.
pub fn every_method_keeps_its_promises_on(kind: Kind) {
    let _stamped = (kind != Kind::Sim).then(keep_stamping);
    let link = match Link::new(kind, "c") {
        Ok(link) => link,
        Err(why) if kind.has_no_driver() => return skip(&format!("no driver of a {kind}: {why}")),
        Err(why) => panic!("{kind}: {why}"),
    };
    let mut tally = Tally::new(link);
    let (near, far) = (tally.link.near(), tally.link.far());
    let receive: Vec<_> = ReceiveMethod::all()
        .filter(|method| tally.takes(&method.to_string(), method.row.carriers, method.check(&far)))
        .collect();
    let transmit: Vec<_> = TransmitMethod::all()
        .filter(|method| tally.takes(&format!("+{method}"), method.row.carriers, method.check(&near)))
        .collect();
    receive.iter().for_each(|&method| tally.put(method, receivers::SENTENCES));
    transmit.iter().for_each(|&method| tally.put(method, transmitters::SENTENCES));
    for &receive in &receive {
        transmit.iter().for_each(|&transmit| tally.put(Pair { receive, transmit }, pairs::SENTENCES));
    }
    tally.finish();
}

/// A socket that asks for stamps, held open: the kernel patches its code when the first asks and when the last has
/// gone, and QEMU 7.2 with several processors at a time sometimes kills the guest then ("Oops: int3").
fn keep_stamping() -> Socket {
    let socket = Socket::can_raw().unwrap();
    socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32).unwrap();
    socket
}
