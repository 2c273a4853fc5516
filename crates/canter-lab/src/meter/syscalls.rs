//! `canter syscalls`: the cost of sending and receiving a frame, by the virtual CAN method of the 2014 paper (3.1).
//!
//! Two sockets on a virtual interface: canter times sending frames into a receive queue that holds them all, then times
//! reading them. Three figures per method:
//! - *send*: the sender's calls without a receiver;
//! - *delivery*: the additional time of these calls with an open receiver: the kernel's work to queue the frame there,
//!   while few frames are held, and while all of them are;
//! - *receive*: the receiver's calls.
//!
//! Senders are measured on a vxcan pair, because frames of a packet ring do not reach receivers on a vcan; receivers on
//! a vcan, as in the paper.

mod cost;
mod file_calls;

use crate::report;
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
};
use canter_io::{
    Interface,
    batch::BATCH_FRAMES,
    carrier::{self, Access, Carrier},
    frame::Frame,
    method::{
        ReceiveMethod, Receiver, TransmitMethod, Transmitter,
        table::{RECEIVERS, TRANSMITTERS},
    },
};
use canter_measure::{
    environment,
    result::{Condition, Cost, Ledger, Lost, Series, Varied},
};
use clap::Args;
use cost::{Bench, Readers, Run};

/// Before each method, this number of frames passes that no figure includes, and is held where a receiver's figure has as many:
/// the first calls fill caches and free lists.
const WARM_UP_FRAMES: u64 = 1000;

/// The maximum number of frames that a receiver holds when it keeps up.
const FEW_FRAMES: u64 = 64;

/// Measure what sending and receiving a frame costs
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter syscalls                                      every method, on temporary interfaces
  canter syscalls --methods read,recvmmsg,ring --frames 1000,10000,50000
  canter syscalls --batch 1,8,64 --queue 64            read as soon as 64 frames wait
Figures repeat exactly in the lab's virtual clock:
  canter lab --clock virtual -- canter syscalls")]
pub struct Arguments {
    #[command(flatten)]
    setup: Setup,
}

/// The setup of a measurement.
#[derive(Args, Clone, Debug)]
pub(crate) struct Setup {
    /// The virtual interface for receivers, made and deleted again unless given; or two canchar devices of one bus,
    /// /dev/canchar0,/dev/canchar1, to measure its methods too
    #[arg(long, short, value_name = "VCAN")]
    pub interface: Option<String>,
    /// Number of frames; with several numbers, canter fits a straight line
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 2000, 4000, 8000], value_name = "N")]
    pub frames: Vec<u64>,
    /// Frames per call, for methods that support batches
    #[arg(long, value_delimiter = ',', default_values_t = [BATCH_FRAMES], value_name = "N")]
    pub batch: Vec<usize>,
    /// Receivers read as soon as this number of frames waits; unless given, after all are sent (as in the paper)
    #[arg(long, value_name = "N")]
    pub queue: Option<u64>,
    /// Open receivers of the same frames, of which one is measured: what another one costs the delivery
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_name = "N")]
    pub readers: Vec<usize>,
    /// Measure only these methods
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub methods: Vec<String>,
    /// Payload in bytes
    #[arg(long, default_value_t = 2, value_name = "BYTES", value_parser = clap::value_parser!(u8).range(0..=8))]
    pub len: u8,
}

/// Runs `canter syscalls`.
pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    common.apply()?;
    let (series, interfaces) = measure(&arguments.setup)?;
    let lost = series.iter().any(|series| series.ledger.lost.total() > 0);
    let title = "Cost per frame: system calls to send and to receive it";
    let result = environment::result("", title, &interfaces, series);
    common.write_result(&result.to_json())?;
    if common.shows_table() {
        print!("{}", report::summary(&result));
    }
    Ok(if lost { Exit::Lost } else { Exit::Done })
}

/// Measures all requested methods.
pub(crate) fn measure(setup: &Setup) -> failure::Result<(Vec<Series>, Vec<Interface>)> {
    refuse_nonsense(setup)?;
    let bench = Bench::set_up(setup.interface.as_deref(), frame(setup.len)?, interrupt_flag()?)?;
    let mut series = Vec::new();
    for row in wanted_receivers(setup, &receivers()) {
        for batch in batches(setup, row.capabilities.batch) {
            for &number in &setup.readers {
                series.push(receiver_series(&bench, setup, row, Readers { number, batch })?);
            }
        }
    }
    for row in wanted_transmitters(setup, &transmitters()) {
        for batch in batches(setup, row.capabilities.batch) {
            series.push(transmitter_series(&bench, setup, row, batch)?);
        }
    }
    let interfaces = bench.interfaces();
    bench.tear_down()?;
    Ok((series, interfaces))
}

/// canter's receivers, and what the papers' programs called.
fn receivers() -> Vec<&'static Receiver> {
    [&[&*file_calls::READ], RECEIVERS].concat()
}

fn transmitters() -> Vec<&'static Transmitter> {
    [&[&*file_calls::WRITE], TRANSMITTERS].concat()
}

/// A frame of this length, of whose bits none is stuffed in the data.
pub(crate) fn frame(len: u8) -> failure::Result<Frame> {
    let data = [0x55; 8];
    Frame::classic(canter_io::Identifier::Sff(0x123), &data[..usize::from(len)])
        .map_err(|error| Failure::new(Exit::Usage, format!("--len {len}: {error}")))
}

fn refuse_nonsense(setup: &Setup) -> failure::Result<()> {
    let usage = |text: &str| Err(Failure::new(Exit::Usage, text.to_owned()));
    if setup.frames.contains(&0) || setup.batch.contains(&0) || setup.queue == Some(0) {
        return usage("--frames, --batch and --queue must be at least 1");
    }
    if !setup.readers.iter().all(|readers| (1..=cost::READERS_MAX).contains(readers)) {
        return usage(&format!("--readers: 1 to {}", cost::READERS_MAX));
    }
    if setup.frames.iter().any(|&frames| frames > cost::FRAMES_MAX) {
        return usage(&format!("--frames: at most {}", cost::FRAMES_MAX));
    }
    let receivers = receivers().into_iter().map(|row| row.name);
    let known: Vec<_> = receivers.chain(transmitters().into_iter().map(|row| row.name)).collect();
    match setup.methods.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => usage(&format!(
            "{name}: no such method (canter methods lists them; read(2) and write(2) are the plain calls)"
        )),
        None => Ok(()),
    }
}

/// Whether a method is listed: when it is named, or when one of `carriers` carries its frames (virtual interfaces
/// always, canchar devices when given). A listed method that cannot be measured gets the reason.
fn wanted(setup: &Setup, name: &str, carriers: &[&Carrier]) -> bool {
    if !setup.methods.is_empty() {
        return setup.methods.iter().any(|wanted| wanted == name);
    }
    let on_devices = setup.interface.as_ref().is_some_and(|name| are_devices(name));
    carriers.iter().any(|carrier| match carrier.access {
        Access::Sockets => true,
        Access::File => on_devices,
        Access::Process => false,
    })
}

/// Whether the names are those of devices, `/dev/canchar0,/dev/canchar1`.
fn are_devices(names: &str) -> bool {
    carrier::table::carrier_of(names).access == Access::File
}

fn wanted_receivers(setup: &Setup, table: &[&'static Receiver]) -> Vec<&'static Receiver> {
    table.iter().copied().filter(|row| wanted(setup, row.name, row.carriers)).collect()
}

fn wanted_transmitters(setup: &Setup, table: &[&'static Transmitter]) -> Vec<&'static Transmitter> {
    table.iter().copied().filter(|row| wanted(setup, row.name, row.carriers)).collect()
}

fn batches(setup: &Setup, can_batch: bool) -> Vec<usize> {
    if can_batch { setup.batch.clone() } else { vec![1] }
}

/// A receiver with the wait for its measurement. With a full queue the wait makes no difference, so each receiver is
/// measured once and named by its row. The error is the reason why it cannot be measured.
fn measurable(row: &'static Receiver, on: &Interface) -> Result<ReceiveMethod, String> {
    let method = ReceiveMethod { row, wait: row.syscalls? };
    method.check(on).map_err(|error| error.to_string())?;
    Ok(method)
}

fn receiver_series(
    bench: &Bench,
    setup: &Setup,
    row: &'static Receiver,
    readers: Readers,
) -> failure::Result<Series> {
    let interface = bench.receiving(row.carriers);
    let mut condition = condition(setup, "receive", readers.batch, interface);
    if setup.readers != [1] {
        let value = readers.number as u64;
        condition.varied = Some(Varied { name: "readers".to_owned(), unit: String::new(), value });
    }
    let method = match measurable(row, interface) {
        Ok(method) => method,
        Err(reason) => return Ok(Series::unavailable(row.name, condition, reason)),
    };
    let queue = |frames: u64| setup.queue.unwrap_or(frames).min(frames);
    bench.receive(method, WARM_UP_FRAMES, queue(WARM_UP_FRAMES), readers)?;
    let mut runs = Vec::new();
    for &frames in &setup.frames {
        runs.push(bench.receive(method, frames, queue(frames), readers)?);
    }
    let longest = setup.frames.iter().copied().max().unwrap_or(FEW_FRAMES);
    let few = bench.receive(method, longest, FEW_FRAMES.min(longest), readers)?;
    let mut series = series(row.name, condition, &runs, |run| run.calls_ns);
    if let Some(cost) = &mut series.cost_ns {
        cost.delivery_few = Some(few.delivery_ns / longest as i64);
    }
    Ok(series)
}

fn transmitter_series(
    bench: &Bench,
    setup: &Setup,
    row: &'static Transmitter,
    batch: usize,
) -> failure::Result<Series> {
    let (interface, method) = (bench.sending(row.carriers), TransmitMethod { row });
    let condition = condition(setup, "send", batch, interface);
    let check = || method.check(interface).map_err(|error| error.to_string());
    if let Err(reason) = row.syscalls.map_err(str::to_owned).and_then(|()| check()) {
        return Ok(Series::unavailable(row.name, condition, reason));
    }
    bench.send(method, WARM_UP_FRAMES, batch)?;
    let mut runs = Vec::new();
    for &frames in &setup.frames {
        runs.push(bench.send(method, frames, batch)?);
    }
    Ok(series(row.name, condition, &runs, |run| run.calls_ns))
}

fn condition(setup: &Setup, direction: &str, batch: usize, interface: &Interface) -> Condition {
    Condition {
        traffic: "virtual CAN".to_owned(),
        direction: direction.to_owned(),
        batch: batch as u32,
        frames: setup.frames.iter().sum(),
        len: u32::from(setup.len),
        load: "none".to_owned(),
        interfaces: vec![interface.name.clone()],
        ..Condition::default()
    }
}

/// The figures of a method: per frame from its longest run, and a line through all.
fn series(method: &str, condition: Condition, runs: &[Run], value: fn(&Run) -> u64) -> Series {
    let points: Vec<[u64; 2]> = runs.iter().map(|run| [run.frames, value(run)]).collect();
    let longest = runs.iter().max_by_key(|run| run.frames);
    let per_frame = longest.map_or(0, |run| value(run).div_ceil(run.frames));
    let delivery = longest.map_or(0, |run| run.delivery_ns / run.frames as i64);
    let (sent, received) = runs.iter().fold((0, 0), |(s, r), run| (s + run.frames, r + run.received));
    let lost = Lost { socket: sent - received, ..Lost::default() }; // a run receives no more than it sends
    Series {
        method: method.to_owned(),
        condition,
        cost_ns: Some(Cost {
            per_frame,
            delivery,
            delivery_few: None,
            total: per_frame as i64 + delivery,
            fit: cost::fit(&points),
            points,
        }),
        ledger: Ledger { sent, received, lost, ..Ledger::default() },
        ..Series::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::carrier::table::{CANCHAR, NETWORK};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        setup: Setup,
    }

    fn setup(line: &str) -> Setup {
        Line::parse_from(std::iter::once("syscalls").chain(line.split_whitespace())).setup
    }

    fn names(line: &str) -> Vec<&'static str> {
        wanted_receivers(&setup(line), RECEIVERS).iter().map(|row| row.name).collect()
    }

    #[test]
    fn methods_are_listed_when_named_or_when_a_carrier_fits() {
        let carried_by = |carriers: &[&Carrier]| -> Vec<_> {
            let rows = RECEIVERS.iter().filter(|row| row.carriers.iter().any(|one| carriers.contains(one)));
            rows.map(|row| row.name).collect()
        };
        assert_eq!(names(""), carried_by(&[&NETWORK]));
        assert_eq!(names("-i vcan7"), carried_by(&[&NETWORK]));
        assert_eq!(names("-i /dev/canchar0,/dev/canchar1"), carried_by(&[&NETWORK, &CANCHAR]));
        assert_eq!(names("--methods port,sim"), ["port", "sim"]);
    }

    #[test]
    fn a_receiver_that_cannot_be_measured_is_listed_with_the_reason() {
        let toy = Receiver { name: "toy", syscalls: Err("it only blocks"), ..*RECEIVERS[0] };
        let toy: &'static Receiver = Box::leak(Box::new(toy));
        let table = [RECEIVERS, &[toy]].concat();
        let wanted = wanted_receivers(&setup(""), &table);
        assert_eq!(wanted.last().map(|row| row.name), Some("toy"));
        let on = Interface::find("sim:syscalls/bus").unwrap();
        assert_eq!(measurable(toy, &on).err().as_deref(), Some("it only blocks"));
        let ring = RECEIVERS.iter().find(|row| row.name == "ring").unwrap();
        assert!(measurable(ring, &on).err().unwrap().contains("has no sockets"));
    }
}
