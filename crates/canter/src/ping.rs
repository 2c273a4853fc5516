//! `canter ping`: measures round-trip times to `canter pong`. Several pings run in parallel, each with one frame on its
//! way.
//!
//! Ping k sends identifier ID + 2k and is answered with ID + 2k + 1. One thread receives and reads the clock; the
//! other reads the clock and sends. So the time is that of an application: from its call to send until it has the
//! answer.

mod flight;
mod identifiers;
pub mod pong;

pub use identifiers::Identifiers;

use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble::{explain, refuse_classic, refuse_down},
};
use canter_io::{
    Batch, Frame, Interface, clock,
    method::{Pair, Receive, ReceiveOptions, Transmit, TransmitOptions},
    thread::Worker,
};
use canter_measure::{
    environment,
    histogram::Histogram,
    result::{Condition, Latency, Ledger, Lost, Series},
};
use canter_route::traffic::random::{Random, SEED};
use clap::Args;
use flight::{Answer, Flight, Plan, Step};
use std::{
    io::{self, Write},
    sync::atomic::Ordering,
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

/// Measure round-trip times to a `canter pong`
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter pong can1 &
  canter ping can0                                  one frame per second, until Ctrl-C
  canter ping can0 --count 10000 --flood --len 8    each frame as soon as the previous one is answered
  canter ping can0 --parallel 4 --interval 10ms --realtime 60 --json rtt.json
  canter ping /dev/canchar0 --method canchar/chip-poll+canchar --flood --count 1000
Exit code 0; 1 when no frame was answered; 3 when some frames were not.")]
pub struct Arguments {
    /// Interface to send and receive on
    #[arg(value_name = "INTERFACE")]
    interface: String,
    #[command(flatten)]
    common: Shared,
    /// Number of frames that each ping sends; until Ctrl-C unless given
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between two frames of a ping
    #[arg(long, short = 'I', default_value = "1s", value_name = "TIME", value_parser = duration::parse_ns)]
    interval: u64,
    /// Add up to this random time, so that frames are in step with nothing else
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = duration::parse_ns)]
    jitter: u64,
    /// The seed of the random additions
    #[arg(long, default_value_t = SEED, value_name = "N")]
    seed: u64,
    /// Send each frame as soon as the previous one is answered, and print only lost frames
    #[arg(long, short, conflicts_with = "interval")]
    flood: bool,
    /// Timeout of an answer
    #[arg(long, short = 'W', default_value = "1s", value_name = "TIME", value_parser = duration::parse_ns)]
    timeout: u64,
    /// Payload in bytes; at least 2 for the frame's number
    #[arg(long, default_value_t = 8, value_name = "BYTES")]
    len: u8,
    /// FD frames
    #[arg(long)]
    fd: bool,
    /// FD: switch the bit rate for the payload
    #[arg(long, requires = "fd")]
    brs: bool,
}

/// Options that must be the same at both ends.
#[derive(Args, Clone)]
pub struct Shared {
    #[command(flatten)]
    pub identifiers: Identifiers,
    /// Pair of methods; read+write, or the interface's own, unless given
    #[arg(long, short, value_name = "PAIR")]
    pub method: Option<Pair>,
}

impl Shared {
    /// The pair to use on an interface.
    pub fn pair(&self, interface: &Interface) -> failure::Result<Pair> {
        let name = &interface.name;
        let pair = self.method.map_or_else(|| Pair::usual(name, name), Ok)?;
        pair.receive.check(interface)?;
        pair.transmit.check(interface)?;
        Ok(pair)
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let interface = Interface::find(&arguments.interface)?;
    refuse_down(&interface)?;
    let pair = arguments.common.pair(&interface)?;
    let frame = arguments.frame(&interface)?;
    let stop = interrupt_flag()?;
    let receive = pair.receive.open(
        &interface,
        &ReceiveOptions { filters: arguments.common.identifiers.answers(), ..ReceiveOptions::default() },
    )?;
    let transmit = pair.transmit.open(&interface, &TransmitOptions::default())?;
    common.apply()?;
    if common.shows_table() {
        let Shared { identifiers, .. } = &arguments.common;
        let kind = if frame.is_fd() { "FD " } else { "" };
        println!("PING {} {identifiers}: {} bytes, {kind}by {pair}", interface.name, frame.len);
    }
    let (answer_sender, answers) = mpsc::channel();
    let worker = receiving(receive, arguments.common.identifiers.clone(), answer_sender)
        .map_err(|error| Failure::failed(format!("{}: start: {error}", interface.name)))?;
    let lines = common.shows_table();
    let mut session = Session {
        arguments: &arguments,
        interface: &interface,
        transmit,
        frame,
        flight: Flight::new(arguments.plan()),
        histogram: Histogram::new(),
        random: Random(arguments.seed),
        lines,
    };
    let began_ns = clock::monotonic_ns();
    let outcome = session.exchange(&answers, &stop);
    let took_ns = clock::monotonic_ns() - began_ns;
    if let Some(error) = worker.stop() {
        return Err(explain(&interface.name, "receive", error).into());
    }
    outcome?;
    let interrupted = arguments.count.is_some() && stop.load(Ordering::Acquire);
    session.finish(pair, took_ns, interrupted, common)
}

/// Starts the thread that receives and reads the clock after each frame. It runs when this function returns, so that no
/// ping waits for its start.
fn receiving(
    mut receive: Box<dyn Receive>,
    identifiers: Identifiers,
    answer_sender: mpsc::Sender<Answer>,
) -> io::Result<Worker<Option<io::Error>>> {
    let (ready, begun) = mpsc::channel();
    let worker = Worker::start("ping", move |stop| {
        let mut batch = Batch::new(canter_io::batch::BATCH_FRAMES);
        let _ = ready.send(());
        while !stop.load(Ordering::Acquire) {
            batch.clear();
            if let Err(error) = receive.receive(&mut batch) {
                return Some(error); // this drops the sender, which the other thread notices
            }
            let at_ns = clock::monotonic_ns();
            for frame in batch.frames() {
                let Some(ping) = identifiers.ping_of_answer(frame) else { continue };
                if frame.len >= 2 {
                    let number = u16::from_le_bytes([frame.data[0], frame.data[1]]);
                    let _ = answer_sender.send(Answer { ping, number, at_ns, frame: *frame });
                }
            }
        }
        None
    })?;
    let _ = begun.recv();
    Ok(worker)
}

impl Arguments {
    fn plan(&self) -> Plan {
        Plan {
            pings: self.common.identifiers.count(),
            count: self.count,
            interval_ns: if self.flood { 0 } else { self.interval },
            timeout_ns: self.timeout,
        }
    }

    /// The frame to send, without identifier and number.
    fn frame(&self, interface: &Interface) -> failure::Result<Frame> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        if self.len < 2 {
            return Err(usage(format!("--len {}: must be at least 2, for the frame's number", self.len)));
        }
        if self.timeout == 0 {
            return Err(usage("--timeout 0: must be above 0".to_owned()));
        }
        if self.fd {
            refuse_classic(interface)?;
        }
        let data: Vec<u8> = (0..self.len).map(|at| if at < 2 { 0 } else { 0x50 | at & 0xf }).collect();
        let id = self.common.identifiers.request(0)?;
        let flags = if self.brs { canter_io::frame::BRS } else { 0 };
        let frame = if self.fd { Frame::fd(id, &data, flags) } else { Frame::classic(id, &data) };
        frame.map_err(|error| usage(format!("--len {}: {error}", self.len)))
    }
}

/// One run.
struct Session<'a> {
    arguments: &'a Arguments,
    interface: &'a Interface,
    transmit: Box<dyn Transmit>,
    frame: Frame,
    flight: Flight,
    histogram: Histogram,
    random: Random,
    lines: bool,
}

impl Session<'_> {
    /// Sends and receives until all pings are complete or a signal arrives.
    fn exchange(
        &mut self,
        answers: &mpsc::Receiver<Answer>,
        stop: &std::sync::atomic::AtomicBool,
    ) -> failure::Result<()> {
        // A signal does not end a wait.
        const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
        while !stop.load(Ordering::Acquire) {
            match self.flight.next(clock::monotonic_ns()) {
                Step::Send { ping, number } => self.send(ping, number)?,
                Step::Lost { ping, number } => {
                    self.print(&format!("no answer: {}", self.describe(ping, number)))
                }
                Step::Done => break,
                Step::Wait { ns } => {
                    match answers.recv_timeout(SIGNAL_CHECK_INTERVAL.min(Duration::from_nanos(ns))) {
                        Ok(answer) => self.answered(&answer),
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => return Ok(()), // the receiver has the error
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, ping: usize, number: u16) -> failure::Result<()> {
        let mut frame = self.frame;
        frame.can_id = self.arguments.common.identifiers.request(ping)?.bits().unwrap_or_default();
        frame.data[..2].copy_from_slice(&number.to_le_bytes());
        let at_ns = clock::monotonic_ns();
        let failed = |error| Failure::from(explain(&self.interface.name, "send", error));
        let taken = self.transmit.transmit(&[frame]).map_err(failed)?;
        self.transmit.flush().map_err(failed)?;
        if taken > 0 {
            let jitter_ns = self.random.below(self.arguments.jitter.saturating_add(1));
            self.flight.sent(ping, number, at_ns, jitter_ns);
        }
        Ok(())
    }

    fn answered(&mut self, answer: &Answer) {
        let name = self.describe(answer.ping, answer.number);
        let intact = answer.frame.len == self.frame.len
            && answer.frame.is_fd() == self.frame.is_fd()
            && answer.frame.data()[2..] == self.frame.data()[2..];
        match self.flight.answered(answer) {
            Some(_) if !intact => self.print(&format!("wrong payload: {name}: {}", answer.frame)),
            Some(ns) => {
                self.histogram.record(ns as i64);
                if !self.arguments.flood {
                    self.print(&format!("{} bytes: {name} time={}", answer.frame.len, time(ns)));
                }
            }
            None => self.print(&format!("late or duplicate: {name}")),
        }
    }

    fn describe(&self, ping: usize, number: u16) -> String {
        format!("{} seq={number}", self.arguments.common.identifiers.answer_text(ping))
    }

    fn print(&self, line: &str) {
        if self.lines {
            let _ = writeln!(io::stdout(), "{line}");
        }
    }

    fn finish(&self, pair: Pair, took_ns: u64, interrupted: bool, common: &Common) -> failure::Result {
        let (sent, received) = (self.flight.sent_count(), self.histogram.count());
        // Frames on their way at the end are not lost: nobody waited for them.
        let lost = sent - received;
        let latency = self.histogram.to_latency();
        if self.lines {
            println!("--- {} ping statistics ---", self.interface.name);
            let percent = 100.0 * lost as f64 / (sent.max(1) as f64);
            println!(
                "{sent} frames sent, {received} answered, {percent:.3}% lost, {} late or duplicate, took {}",
                self.flight.strays(),
                time(took_ns)
            );
            if received > 0 {
                println!("rtt min/p50/p90/p99/max = {}", summary(&latency));
            }
        }
        let series = self.series(pair, latency, sent, lost);
        let title = format!("Round-trip time on {}", self.interface.name);
        let interfaces = [self.interface.clone()];
        common.write_result(&environment::result("", &title, &interfaces, vec![series]).to_json())?;
        Ok(match (received, lost, interrupted) {
            (0, _, _) => Exit::Failed,
            (_, _, true) => Exit::Interrupted,
            (_, 0, _) => Exit::Done,
            _ => Exit::Lost,
        })
    }

    fn series(&self, pair: Pair, latency: Latency, sent: u64, lost: u64) -> Series {
        let plan = self.arguments.plan();
        let method = pair.to_string();
        Series {
            paper_name: canter_route::gateway::table::paper_name(&method).to_owned(),
            method,
            condition: Condition {
                traffic: if plan.interval_ns == 0 { "one-at-a-time" } else { "period" }.to_owned(),
                period_ns: plan.interval_ns,
                frames: sent,
                len: self.frame.len.into(),
                load: "none".to_owned(),
                interfaces: vec![self.interface.name.clone()],
                ..Condition::default()
            },
            ledger: Ledger {
                sent,
                received: latency.count,
                lost: Lost { unaccounted: lost, ..Lost::default() },
                duplicated: self.flight.strays(),
                ..Ledger::default()
            },
            latency_ns: Some(latency),
            ..Series::default()
        }
    }
}

fn summary(latency: &Latency) -> String {
    let quantiles = [latency.min, latency.p50, latency.p90, latency.p99, latency.max];
    format!("{} ms", quantiles.map(|ns| format!("{:.3}", ns as f64 / 1e6)).join("/"))
}

fn time(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}
