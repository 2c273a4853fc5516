//! Sends frames to an interface when they are due, waits for room up to a timeout, and counts the frames that were sent,
//! refused and late.

use canter_cli::{duration, trouble, units};
use canter_io::{
    Error, Frame, Interface, clock,
    frame::BitRate,
    interface::{State, remedy},
    method::{Echo, Transmit, TransmitMethod, TransmitOptions},
    poll,
};
use canter_measure::{histogram::Histogram, result::Latency};
use serde::Serialize;
use std::{
    fmt, io,
    sync::atomic::{AtomicBool, Ordering},
};

/// Longest poll(2) for room before the next attempt to send.
const ROOM_POLL_NS: u64 = 5_000_000;
/// Sleep after ENOBUFS, when poll(2) reports room but the queue is full; doubled up to [`ROOM_SLEEP_DOUBLINGS`] times.
const ROOM_SLEEP_NS: u64 = 50_000;
const ROOM_SLEEP_DOUBLINGS: u32 = 6;
/// The longest sleep of a thread before it checks whether to stop.
const SLEEP_NS: u64 = 50_000_000;
/// Default limit: a frame that is sent later than this after its time counts as late.
const LATE_NS: u64 = 1_000_000;

/// Sends to one interface.
pub struct Sender {
    interface: Interface,
    method: TransmitMethod,
    transmit: Box<dyn Transmit>,
    rate: Option<BitRate>,
    patience_ns: u64,
    late_limit_ns: u64,
    /// A frame has waited for `patience_ns` in vain. Until the interface accepts a frame, frames do not wait.
    stuck: bool,
    tally: Tally,
    lateness: Histogram,
}

/// Counts of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: u64,
    refused: u64,
    late: u64,
    /// Sum of the durations of the sent frames, if the bit rate is known.
    busy_ns: u64,
}

/// Settings of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub echo: Echo,
    /// In place of the interface's rate.
    pub rate: Option<BitRate>,
    /// Timeout of a frame that is due and waits for room.
    pub patience_ns: u64,
    /// A frame that is sent later than this after its time counts as late; `None`: [`LATE_NS`].
    pub late_ns: Option<u64>,
}

impl Sender {
    /// Opens the interface with this method, or with the usual one of the interface.
    pub fn open(
        interface: &Interface,
        method: Option<TransmitMethod>,
        setup: &Setup,
    ) -> canter_io::Result<Self> {
        let method = method.map_or_else(|| TransmitMethod::usual(&interface.name), Ok)?;
        let options = TransmitOptions { echo: setup.echo, ..TransmitOptions::default() }.without_waiting();
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

    /// Sends frames that are due, in order; returns the number of frames that were sent or refused, which is less than
    /// given only when `stop` was set. `due_ns` are their times in CLOCK_MONOTONIC; a frame without one waits for room
    /// without a timeout.
    pub fn send(
        &mut self,
        frames: &[Frame],
        due_ns: &[Option<u64>],
        stop: &Stop<'_>,
    ) -> canter_io::Result<usize> {
        let (mut done, mut full) = (0, Full::default());
        while done < frames.len() || (self.transmit.pending() > 0 && !self.stuck) {
            let now_ns = clock::monotonic_ns();
            let taken = match self.transmit(&frames[done..]) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.refuse_unsupported(&frames[done], error);
                    done += 1;
                    continue;
                }
                // The interface may come up again.
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => 0,
                answer => answer.map_err(|error| trouble::explain(self.name(), "send", error))?,
            };
            for (frame, due_ns) in frames.iter().zip(due_ns).skip(done).take(taken) {
                self.count_sent(frame, *due_ns, now_ns);
            }
            done += taken;
            let full_now = (taken == 0 && done < frames.len()) || self.transmit.pending() > 0;
            if !full_now {
                (full, self.stuck) = (Full::default(), false);
                canter_io::thread::relax(); // in the lab's virtual clock, lets the receiver run
                continue;
            }
            let since_ns = *full.since_ns.get_or_insert(now_ns);
            let has_no_timeout = done < frames.len() && due_ns[done].is_none();
            let patience_ns = if self.stuck && !has_no_timeout { 0 } else { self.patience_ns };
            if now_ns.saturating_sub(since_ns) >= patience_ns {
                self.report_stuck();
                if !has_no_timeout {
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

    /// Passes frames to the method, and makes the kernel send those that wait in the method.
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let taken = self.transmit.transmit(frames)?;
        match self.transmit.flush() {
            Err(error) if error.kind() != io::ErrorKind::NetworkDown => Err(error),
            _ => Ok(taken),
        }
    }

    fn count_sent(&mut self, frame: &Frame, due_ns: Option<u64>, now_ns: u64) {
        self.tally.sent += 1;
        self.tally.busy_ns += self.rate.map_or(0, |rate| frame.duration_with_interframe_ns(rate));
        if let Some(due_ns) = due_ns {
            let late_ns = now_ns.saturating_sub(due_ns);
            self.tally.late += u64::from(late_ns > self.late_limit_ns);
            self.lateness.record(late_ns as i64);
        }
    }

    /// Refuses a frame that the interface cannot carry, such as an FD frame on a classic interface; reports the first one.
    fn refuse_unsupported(&mut self, frame: &Frame, error: io::Error) {
        if self.tally.refused == 0 {
            let name = self.name();
            let error = Error::new(name, "send", error).hint(format!("ip link set {name} mtu 72"));
            let kind = if frame.is_fd() && !self.interface.supports_fd() { " is FD" } else { "" };
            eprintln!("canter: {error}; frame {frame}{kind} and all others like it are refused");
        }
        self.tally.refused += 1;
    }

    /// Reports once why the interface accepts no frames.
    fn report_stuck(&mut self) {
        if std::mem::replace(&mut self.stuck, true) {
            return;
        }
        let name = self.name();
        let found = Interface::find(name);
        let state = found.as_ref().ok().and_then(|found| found.controller.as_ref()?.state);
        let reason = match &found {
            Err(_) => "it has disappeared".to_owned(),
            Ok(found) if !found.up => format!("it is down: {}", remedy::up(name, false)),
            Ok(_) if state == Some(State::BusOff) => {
                format!("it is bus-off: {}", remedy::restart(name))
            }
            Ok(_) => "its queue stays full: check that another node acknowledges frames".to_owned(),
        };
        let patience = units::round_span(self.patience_ns);
        eprintln!(
            "canter: {name}: send: no room for {patience} ({reason}); sending continues when there is room"
        );
    }

    /// Waits for room by poll(2). From the second attempt on, it also sleeps, longer each time: poll(2) reports room in the
    /// socket although the interface's queue is full (`ENOBUFS`).
    fn wait_for_room(&self, full: &mut Full) -> io::Result<()> {
        let descriptor = self.transmit.descriptor();
        if let Some(descriptor) = descriptor {
            poll::writable(descriptor, Some(ROOM_POLL_NS))?;
        }
        if full.attempts > 0 || descriptor.is_none() {
            clock::sleep_until_ns(
                clock::monotonic_ns() + (ROOM_SLEEP_NS << full.attempts.min(ROOM_SLEEP_DOUBLINGS)),
            );
        }
        full.attempts += 1;
        Ok(())
    }

    /// Closes the account. Frames that wait in the method and cannot be sent count as refused. `elapsed_ns`: from the start
    /// to the end.
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

/// A time without room.
#[derive(Default)]
struct Full {
    since_ns: Option<u64>,
    attempts: u32,
}

/// The bit rates of an interface, if it has any.
pub fn own_rate(interface: &Interface) -> Option<BitRate> {
    let nominal = interface.bitrate()?;
    Some(BitRate { nominal, data: interface.data_bitrate().unwrap_or(nominal) })
}

/// When to stop: when the flag is set, or at a time in CLOCK_MONOTONIC.
pub struct Stop<'a> {
    pub flag: &'a AtomicBool,
    pub until_ns: u64,
}

impl Stop<'_> {
    pub fn now(&self) -> bool {
        self.flag.load(Ordering::Acquire) || clock::monotonic_ns() >= self.until_ns
    }

    /// Sleeps until a time in CLOCK_MONOTONIC; false when it must stop before.
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

/// The frames of an interface, as `--json` writes them.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub interface: String,
    pub method: String,
    pub sent: u64,
    /// Frames that found no room in time, or that the interface cannot carry.
    pub refused: u64,
    pub elapsed_ns: u64,
    pub frames_per_s: f64,
    /// With stuff bits and interframe space; null when the bit rate is not known.
    pub load_percent: Option<f64>,
    /// Frames passed to the kernel more than `late_limit_ns` after their time.
    pub late: u64,
    pub late_limit_ns: u64,
    /// Delay between the time of a frame and the call that passed it to the kernel.
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

/// The error of a command whose frames were refused.
pub fn refused_message(frames: u64) -> String {
    format!("{frames} frames refused: no room within --wait, or the interface cannot carry them")
}

/// Bit rates in canbusload's notation: `500000`, `500k`, `500k,2M`.
pub fn parse_rate(text: &str) -> Result<BitRate, String> {
    let one = |text: &str| {
        let (digits, unit) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1_000),
            None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
        };
        let rate = digits.parse::<u32>().ok().and_then(|rate| rate.checked_mul(unit));
        rate.filter(|&rate| rate > 0)
            .ok_or_else(|| format!("{text:?} is not a bit rate (500000, 500k, 500k,2M)"))
    };
    let (nominal, data) = text.split_once(',').map_or((text, text), |parts| parts);
    Ok(BitRate { nominal: one(nominal)?, data: one(data)? })
}

/// A time in the notation of cangen and canplayer, in ms, or with its unit: `4.73`, `10ms`.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    duration::parse_ns_or(text, "ms")
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

    /// A sender to a simulated bus whose clock does not advance: it accepts the ten frames of its queue and no more.
    fn sender(world: &str, patience_ns: u64) -> Sender {
        let interface = Interface::find(&format!("sim:{world}/bus")).unwrap();
        let method: TransmitMethod = "sim".parse().unwrap();
        let setup = Setup { echo: Echo::Auto, rate: None, patience_ns, late_ns: None };
        Sender::open(&interface, Some(method), &setup).unwrap()
    }

    #[test]
    fn a_full_bus_delays_the_first_frame_only() {
        let mut sender = sender("sender-stuck", 30_000_000);
        let (flag, frame) = (AtomicBool::new(false), Frame::classic(Identifier::Sff(1), &[1]).unwrap());
        let stop = Stop { flag: &flag, until_ns: u64::MAX };
        let started_ns = clock::monotonic_ns();
        for _ in 0..40 {
            assert_eq!(sender.send(&[frame; 5], &[Some(started_ns); 5], &stop).unwrap(), 5);
        }
        assert!(clock::monotonic_ns() - started_ns < 30_000_000 * 20, "it waited for each");
        sim::world("sender-stuck").advance(1_000_000_000); // the queue empties, and sending continues
        assert_eq!(sender.send(&[frame; 5], &[Some(started_ns); 5], &stop).unwrap(), 5);
        let account = sender.close(1_000_000_000);
        let sent = account.sent;
        assert_eq!((sent + account.refused, account.late_ns.count), (205, sent));
        assert!(sent >= 15 && account.refused > 150, "{account:?}");
    }

    #[test]
    fn a_frame_without_a_time_waits_until_the_stop() {
        let mut sender = sender("sender-flood", 1_000_000);
        let (flag, frame) = (AtomicBool::new(false), Frame::default());
        let stop = Stop { flag: &flag, until_ns: clock::monotonic_ns() + 20_000_000 };
        let ended = sender.send(&[frame; 64], &[None; 64], &stop).unwrap();
        let account = sender.close(20_000_000);
        assert!(ended < 64 && account.sent == ended as u64 && account.refused == 0, "{account:?}");
    }
}
