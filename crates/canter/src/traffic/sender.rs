//! An interface that frames go to: hands over what is due, waits for room but not for ever, and counts what became of
//! every frame and how late it was.

use crate::{
    duration,
    measure::{histogram::Histogram, result::Latency},
    trouble, units,
};
use canter_io::{
    Error, Frame, Interface, clock,
    frame::BitRate,
    interface::{State, remedy},
    method::{Echo, Transmit, TransmitMethod, TransmitOptions},
    poll,
};
use serde::Serialize;
use std::{
    fmt, io,
    sync::atomic::{AtomicBool, Ordering},
};

/// How long to wait for room before it is looked at again.
const ROOM_LOOK_NS: u64 = 5_000_000;
/// How long to sleep when there is no room although the kernel says so; doubled up to [`ROOM_AGAIN_DOUBLED`] times.
const ROOM_AGAIN_NS: u64 = 50_000;
const ROOM_AGAIN_DOUBLED: u32 = 6;
/// The longest sleep: how soon a thread sees that it is to stop.
const SLEEP_NS: u64 = 50_000_000;
/// A frame that is handed over so long after its time counts as late, unless told otherwise.
const LATE_NS: u64 = 1_000_000;

/// Sends to one interface.
pub struct Sender {
    interface: Interface,
    method: TransmitMethod,
    transmit: Box<dyn Transmit>,
    rate: Option<BitRate>,
    patience_ns: u64,
    late_limit_ns: u64,
    /// It has taken nothing for so long: until it does, frames do not wait.
    stuck: bool,
    tally: Tally,
    lateness: Histogram,
}

/// What became of the frames.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: u64,
    refused: u64,
    late: u64,
    /// ns of the bus that the sent ones took, where the bit rate is known.
    busy_ns: u64,
}

/// How a sender is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub echo: Echo,
    /// In place of the interface's own.
    pub rate: Option<BitRate>,
    /// How long a frame that is due may wait for room.
    pub patience_ns: u64,
    /// A frame that is handed over so long after its time counts as late; `None`: [`LATE_NS`].
    pub late_ns: Option<u64>,
}

impl Sender {
    /// By this method, or by what the interface usually is sent on.
    pub fn open(
        interface: &Interface,
        method: Option<TransmitMethod>,
        setup: &Setup,
    ) -> canter_io::Result<Self> {
        let method = method.map_or_else(|| TransmitMethod::usual(&interface.name), Ok)?;
        let options = TransmitOptions { echo: setup.echo, no_wait: true, ..TransmitOptions::default() };
        let transmit = method.open(interface, &options)?;
        Ok(Self {
            rate: setup.rate.or_else(|| own_rate(interface)),
            interface: interface.clone(),
            method,
            transmit,
            patience_ns: setup.patience_ns,
            late_limit_ns: setup.late_ns.unwrap_or(LATE_NS),
            stuck: false,
            tally: Tally::default(),
            lateness: Histogram::new(),
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface.name
    }

    /// Hands over frames that are due, in order, and answers how many had an end: sent or refused. Fewer than given:
    /// `stop` was set. `due_ns` are their times by the monotonic clock; a frame without one waits for room as long as
    /// it takes.
    pub fn send(
        &mut self,
        frames: &[Frame],
        due_ns: &[Option<u64>],
        stop: &Stop<'_>,
    ) -> canter_io::Result<usize> {
        let (mut done, mut full) = (0, Full::default());
        while done < frames.len() || (self.transmit.pending() > 0 && !self.stuck) {
            let now_ns = clock::monotonic_ns();
            let taken = match self.hand(&frames[done..]) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.unfit(&frames[done], error);
                    done += 1;
                    continue;
                }
                // It may come up again.
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => 0,
                answer => answer.map_err(|error| trouble::explain(self.name(), "send", error))?,
            };
            for (frame, due_ns) in frames.iter().zip(due_ns).skip(done).take(taken) {
                self.sent(frame, *due_ns, now_ns);
            }
            done += taken;
            let full_now = (taken == 0 && done < frames.len()) || self.transmit.pending() > 0;
            if !full_now {
                (full, self.stuck) = (Full::default(), false);
                std::hint::spin_loop(); // lets whoever receives it run, where processors take turns
                continue;
            }
            let since_ns = *full.since_ns.get_or_insert(now_ns);
            let waits_for_ever = done < frames.len() && due_ns[done].is_none();
            let patience_ns = if self.stuck && !waits_for_ever { 0 } else { self.patience_ns };
            if now_ns.saturating_sub(since_ns) >= patience_ns {
                self.complain();
                if !waits_for_ever {
                    self.tally.refused += (frames.len() - done) as u64;
                    return Ok(frames.len());
                }
            }
            if stop.now() {
                return Ok(done);
            }
            self.wait_for_room(&mut full).map_err(|error| trouble::explain(self.name(), "poll", error))?;
        }
        Ok(done)
    }

    /// Hands over what it can, and makes the kernel send what waits in the method.
    fn hand(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let taken = self.transmit.transmit(frames)?;
        match self.transmit.flush() {
            Err(error) if error.kind() != io::ErrorKind::NetworkDown => Err(error),
            _ => Ok(taken),
        }
    }

    fn sent(&mut self, frame: &Frame, due_ns: Option<u64>, now_ns: u64) {
        self.tally.sent += 1;
        self.tally.busy_ns += self.rate.map_or(0, |rate| frame.duration_with_interframe_ns(rate));
        if let Some(due_ns) = due_ns {
            let late_ns = now_ns.saturating_sub(due_ns);
            self.tally.late += u64::from(late_ns > self.late_limit_ns);
            self.lateness.record(late_ns as i64);
        }
    }

    /// An FD frame for a classic interface: the others go on.
    fn unfit(&mut self, frame: &Frame, error: io::Error) {
        if self.tally.refused == 0 {
            let name = self.name();
            let error = Error::new(name, "send", error).hint(format!("ip link set {name} mtu 72"));
            let kind = if frame.is_fd() && !self.interface.supports_fd() { " is FD" } else { "" };
            eprintln!("canter: {error}; frame {frame}{kind}: refused, and so are others like it");
        }
        self.tally.refused += 1;
    }

    /// Says once what is the matter, when nothing has been taken for too long.
    fn complain(&mut self) {
        if std::mem::replace(&mut self.stuck, true) {
            return;
        }
        let name = self.name();
        let looked = Interface::find(name);
        let state = looked.as_ref().ok().and_then(|found| found.controller.as_ref()?.state);
        let why = match &looked {
            Err(_) => "it has disappeared".to_owned(),
            Ok(found) if !found.up => format!("it is down: {}", remedy::up(name, false)),
            Ok(_) if state == Some(State::BusOff) => {
                format!("off the bus: {}", remedy::restart(name))
            }
            Ok(_) => "its queue stays full: is anybody else on the bus?".to_owned(),
        };
        let patience = units::round_span(self.patience_ns);
        eprintln!("canter: {name}: send: no room for {patience} ({why}); goes on when there is");
    }

    /// A short while. Where the kernel reports room that is not there (`ENOBUFS`), it sleeps, longer and longer.
    fn wait_for_room(&self, full: &mut Full) -> io::Result<()> {
        let descriptor = self.transmit.descriptor();
        if let Some(descriptor) = descriptor {
            poll::writable(descriptor, Some(ROOM_LOOK_NS))?;
        }
        if full.looks > 0 || descriptor.is_none() {
            clock::sleep_until_ns(
                clock::monotonic_ns() + (ROOM_AGAIN_NS << full.looks.min(ROOM_AGAIN_DOUBLED)),
            );
        }
        full.looks += 1;
        Ok(())
    }

    /// Closes the account: what the method took over and did not get rid of is refused, not sent. `elapsed_ns`: from
    /// the start to the end.
    pub fn close(mut self, elapsed_ns: u64) -> Account {
        let patience_ns = if self.stuck { 0 } else { self.patience_ns };
        let (until_ns, mut full) = (clock::monotonic_ns() + patience_ns, Full::default());
        while self.transmit.flush().is_ok() && self.transmit.pending() > 0 && clock::monotonic_ns() < until_ns
        {
            if self.wait_for_room(&mut full).is_err() {
                break;
            }
        }
        let unsent = self.transmit.pending() as u64 + self.transmit.lost();
        let Tally { sent, refused, late, busy_ns } = self.tally;
        let seconds = elapsed_ns as f64 / 1e9;
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let sent = sent.saturating_sub(unsent);
        Account {
            method: self.method.to_string(),
            sent,
            refused: refused + unsent,
            elapsed_ns,
            frames_per_s: per_second(sent as f64),
            load_percent: self.rate.map(|_| per_second(busy_ns as f64 / 1e9) * 100.0),
            late,
            late_limit_ns: self.late_limit_ns,
            late_ns: self.lateness.to_latency(),
            interface: self.interface.name,
        }
    }
}

/// How long there has been no room.
#[derive(Default)]
struct Full {
    since_ns: Option<u64>,
    looks: u32,
}

/// The bit rates of an interface, if it has any.
pub fn own_rate(interface: &Interface) -> Option<BitRate> {
    let nominal = interface.bitrate()?;
    Some(BitRate { nominal, data: interface.data_bitrate().unwrap_or(nominal) })
}

/// When to stop: told to, or at a time by the monotonic clock.
pub struct Stop<'a> {
    pub flag: &'a AtomicBool,
    pub until_ns: u64,
}

impl Stop<'_> {
    pub fn now(&self) -> bool {
        self.flag.load(Ordering::Acquire) || clock::monotonic_ns() >= self.until_ns
    }

    /// Sleeps until a time by the monotonic clock; false when it is to stop before.
    pub fn sleep_until(&self, at_ns: u64) -> bool {
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= at_ns {
                return !self.flag.load(Ordering::Acquire);
            }
            if self.now() {
                return false;
            }
            clock::sleep_until_ns(at_ns.min(self.until_ns).min(now_ns + SLEEP_NS));
        }
    }
}

/// What was sent to an interface, as `--json` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub interface: String,
    pub method: String,
    /// Frames.
    pub sent: u64,
    /// Frames that found no room in time, or that the interface cannot carry.
    pub refused: u64,
    pub elapsed_ns: u64,
    pub frames_per_s: f64,
    /// With stuff bits and interframe space; null where the bit rate is not known.
    pub load_percent: Option<f64>,
    /// Frames handed over more than `late_limit_ns` after their time.
    pub late: u64,
    pub late_limit_ns: u64,
    /// How long after its time each frame with one was handed to the kernel.
    pub late_ns: Latency,
}

/// Accounts as a table.
pub struct Table<'a>(pub &'a [Account]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|one| one.interface.chars().count()).max().unwrap_or(0).max(9);
        let limit = self.0.first().map_or(LATE_NS, |one| one.late_limit_ns);
        let over = format!("> {}", units::round_span(limit));
        let head = ["sent", "refused", "frames/s", "load", "late p50", "p99", "max", &over];
        write!(f, "{:width$}", "interface")?;
        head.iter().try_for_each(|name| write!(f, " {name:>10}"))?;
        writeln!(f)?;
        for one in self.0 {
            let Latency { count, p50, p99, max, .. } = one.late_ns;
            let span = |ns| if count > 0 { units::span(ns) } else { "–".to_owned() };
            let cells = [
                one.sent.to_string(),
                one.refused.to_string(),
                format!("{:.1}", one.frames_per_s),
                one.load_percent.map_or("–".to_owned(), |load| format!("{load:.2} %")),
                span(p50),
                span(p99),
                span(max),
                one.late.to_string(),
            ];
            write!(f, "{:width$}", one.interface)?;
            cells.iter().try_for_each(|cell| write!(f, " {cell:>10}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Bit rates as canbusload has them: `500000`, `500k`, `500k,2M`.
pub fn parse_rate(text: &str) -> Result<BitRate, String> {
    let one = |text: &str| {
        let (digits, unit) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1_000),
            None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
        };
        let rate = digits.parse::<u32>().ok().and_then(|rate| rate.checked_mul(unit));
        rate.filter(|&rate| rate > 0).ok_or_else(|| format!("{text:?}: bit/s, 500000 or 500k or 500k,2M"))
    };
    let (nominal, data) = text.split_once(',').map_or((text, text), |parts| parts);
    Ok(BitRate { nominal: one(nominal)?, data: one(data)? })
}

/// A time as cangen and canplayer have it, in ms, or with its unit: `4.73`, `10ms`.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    let bare = text.ends_with(|last: char| last.is_ascii_digit());
    if bare { duration::parse_ns(&format!("{text}ms")) } else { duration::parse_ns(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::{Identifier, method::sim};

    #[test]
    fn bit_rates_and_gaps_are_those_of_can_utils() {
        assert_eq!(parse_rate("500000"), Ok(BitRate { nominal: 500_000, data: 500_000 }));
        assert_eq!(parse_rate("500k,2M"), Ok(BitRate { nominal: 500_000, data: 2_000_000 }));
        for text in ["", "0", "k", "1,", "5000M", "1.5M"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(
            [parse_ms("4.73"), parse_ms("200"), parse_ms("0")],
            [Ok(4_730_000), Ok(200_000_000), Ok(0)]
        );
        assert_eq!([parse_ms("10us"), parse_ms("1s")], [Ok(10_000), Ok(1_000_000_000)]);
        assert!(parse_ms("fast").is_err());
    }

    /// A simulated bus whose clock stands still takes the ten frames of its queue, and nothing more.
    fn sender(world: &str, patience_ns: u64) -> Sender {
        let interface = Interface::find(&format!("sim:{world}/bus")).unwrap();
        let method: TransmitMethod = "sim".parse().unwrap();
        let setup = Setup { echo: Echo::Auto, rate: None, patience_ns, late_ns: None };
        Sender::open(&interface, Some(method), &setup).unwrap()
    }

    #[test]
    fn a_bus_that_takes_nothing_more_costs_one_wait_and_then_none() {
        let mut sender = sender("sender-stuck", 30_000_000);
        let (flag, frame) = (AtomicBool::new(false), Frame::classic(Identifier::Sff(1), &[1]).unwrap());
        let stop = Stop { flag: &flag, until_ns: u64::MAX };
        let started_ns = clock::monotonic_ns();
        for _ in 0..40 {
            assert_eq!(sender.send(&[frame; 5], &[Some(started_ns); 5], &stop).unwrap(), 5);
        }
        assert!(clock::monotonic_ns() - started_ns < 30_000_000 * 20, "it waited for each");
        sim::world("sender-stuck").advance(1_000_000_000); // the queue empties, and it goes on
        assert_eq!(sender.send(&[frame; 5], &[Some(started_ns); 5], &stop).unwrap(), 5);
        let account = sender.close(1_000_000_000);
        let sent = account.sent;
        assert_eq!((sent + account.refused, account.late_ns.count), (205, sent));
        assert!(sent >= 15 && account.refused > 150, "{account:?}");
    }

    #[test]
    fn a_frame_without_a_time_waits_until_it_is_told_to_stop() {
        let mut sender = sender("sender-flood", 1_000_000);
        let (flag, frame) = (AtomicBool::new(false), Frame::default());
        let stop = Stop { flag: &flag, until_ns: clock::monotonic_ns() + 20_000_000 };
        let ended = sender.send(&[frame; 64], &[None; 64], &stop).unwrap();
        let account = sender.close(20_000_000);
        assert!(ended < 64 && account.sent == ended as u64 && account.refused == 0, "{account:?}");
    }
}
