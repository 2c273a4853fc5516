//! `canter syscalls`: what sending and receiving a frame costs, by the virtual CAN method of the 2014 paper (3.1).
//!
//! Two sockets on a virtual interface: send so many frames into a receive queue that holds them all and time that;
//! then read them and time that. Three figures per method, apart:
//! - *send*: the sender's calls while nobody receives;
//! - *delivery*: what they grow by because a receiver is open: the kernel's work to queue the frame there;
//! - *receive*: the receiver's own calls.
//!
//! Senders are measured on a vxcan pair, because what a packet ring sends reaches nobody on a vcan; receivers on a
//! vcan, as in the paper.

mod cost;

use crate::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    measure::{
        environment,
        result::{Condition, Cost, Ledger, Lost, Series},
    },
    options::Common,
    report,
};
use canter_io::{
    Interface,
    batch::BATCH_FRAMES,
    frame::Frame,
    method::{ReceiveMethod, TransmitMethod, Wait},
};
use clap::Args;
use cost::{Bench, Run};

/// Measure what sending and receiving a frame costs
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter syscalls                                      every method, on interfaces made for it
  canter syscalls --methods read,recvmmsg,ring --frames 1000,10000,50000
  canter syscalls --batch 1,8,64 --queue 64            read whenever 64 frames are there
Run it in the lab's virtual clock for figures that repeat:
  canter lab --clock virtual -- canter syscalls")]
pub struct Arguments {
    #[command(flatten)]
    pub setup: Setup,
}

/// What is measured, and how.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    /// The virtual interface for receivers, made and deleted again unless given; or two canchar devices of one bus,
    /// /dev/canchar0,/dev/canchar1, to measure its methods too
    #[arg(long, short, value_name = "VCAN")]
    pub interface: Option<String>,
    /// How many frames, several times for a straight line
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 2000, 4000, 8000], value_name = "N")]
    pub frames: Vec<u64>,
    /// Frames per call (of methods that can)
    #[arg(long, value_delimiter = ',', default_values_t = [BATCH_FRAMES], value_name = "N")]
    pub batch: Vec<usize>,
    /// Receivers read whenever so many frames wait; unless given, when all have been sent (the paper's way)
    #[arg(long, value_name = "N")]
    pub queue: Option<u64>,
    /// Only these methods
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub methods: Vec<String>,
    /// Payload in bytes
    #[arg(long, default_value_t = 2, value_name = "BYTES", value_parser = clap::value_parser!(u8).range(0..=8))]
    pub len: u8,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    common.apply()?;
    let (series, interfaces) = measure(&arguments.setup)?;
    let lost = series.iter().any(|series| series.ledger.lost.total() > 0);
    let title = "What a frame costs: system calls to send and to receive it";
    let result = environment::result("", title, &interfaces, series);
    common.write_result(&result.to_json())?;
    if common.shows_table() {
        print!("{}", report::summary(&result));
    }
    Ok(if lost { Exit::Lost } else { Exit::Done })
}

/// Measures every method asked for.
pub fn measure(setup: &Setup) -> failure::Result<(Vec<Series>, Vec<Interface>)> {
    refuse_nonsense(setup)?;
    let bench = Bench::set_up(setup.interface.as_deref(), frame(setup.len)?, interrupt_flag()?)?;
    let mut series = Vec::new();
    for method in receivers(setup)? {
        for batch in batches(setup, method.row.capabilities.batch) {
            series.push(receiver_series(&bench, setup, method, batch)?);
        }
    }
    for method in transmitters(setup)? {
        for batch in batches(setup, method.row.capabilities.batch) {
            series.push(transmitter_series(&bench, setup, method, batch)?);
        }
    }
    let interfaces = bench.interfaces();
    bench.tear_down()?;
    Ok((series, interfaces))
}

fn frame(len: u8) -> failure::Result<Frame> {
    let data = [0x55; 8];
    Frame::classic(canter_io::Identifier::Sff(0x123), &data[..usize::from(len)])
        .map_err(|error| Failure::new(Exit::Usage, format!("--len {len}: {error}")))
}

fn refuse_nonsense(setup: &Setup) -> failure::Result<()> {
    let usage = |text: &str| Err(Failure::new(Exit::Usage, text.to_owned()));
    if setup.frames.contains(&0) || setup.batch.contains(&0) || setup.queue == Some(0) {
        return usage("--frames, --batch and --queue count from 1");
    }
    if setup.frames.iter().any(|&frames| frames > cost::FRAMES_MAX) {
        return usage(&format!("--frames: at most {}", cost::FRAMES_MAX));
    }
    let known =
        |name: &String| name.parse::<ReceiveMethod>().is_ok() || name.parse::<TransmitMethod>().is_ok();
    match setup.methods.iter().find(|name| !known(name)) {
        Some(name) => usage(&format!("{name}: no such method (canter methods lists them)")),
        None => Ok(()),
    }
}

/// Unless it is named, a method is measured where it can work: canchar's where there are devices of it, beside the
/// others; port's nowhere, since it makes no system call.
fn wanted(setup: &Setup, name: &str) -> bool {
    let on_device = setup.interface.as_ref().is_some_and(|name| name.starts_with("/dev/"));
    let by_default = (on_device || !name.starts_with("canchar")) && name != "port";
    if setup.methods.is_empty() { by_default } else { setup.methods.iter().any(|wanted| wanted == name) }
}

/// Waits make no difference to a queue that is full, so each receiver is measured once, with the wait that never
/// sleeps, and named by its row.
fn receivers(setup: &Setup) -> failure::Result<Vec<ReceiveMethod>> {
    let measured = |method: &ReceiveMethod| match method.row.name {
        "read" => method.wait == Wait::Block,
        "sim" => false,
        _ => method.wait == Wait::Spin,
    };
    Ok(ReceiveMethod::all().filter(measured).filter(|method| wanted(setup, method.row.name)).collect())
}

fn transmitters(setup: &Setup) -> failure::Result<Vec<TransmitMethod>> {
    Ok(TransmitMethod::all()
        .filter(|method| method.row.name != "sim" && wanted(setup, method.row.name))
        .collect())
}

fn batches(setup: &Setup, can_batch: bool) -> Vec<usize> {
    if can_batch { setup.batch.clone() } else { vec![1] }
}

fn receiver_series(
    bench: &Bench,
    setup: &Setup,
    method: ReceiveMethod,
    batch: usize,
) -> failure::Result<Series> {
    let condition = condition(setup, "receive", batch, bench.heard(method.row.name));
    if let Err(reason) = method.check(bench.heard(method.row.name)) {
        return Ok(Series::unavailable(method.row.name, condition, reason.to_string()));
    }
    let mut runs = Vec::new();
    for &frames in &setup.frames {
        let queue = setup.queue.unwrap_or(frames).min(frames);
        runs.push(bench.receive(method, frames, queue, batch)?);
    }
    Ok(series(method.row.name, condition, &runs, |run| run.calls_ns))
}

fn transmitter_series(
    bench: &Bench,
    setup: &Setup,
    method: TransmitMethod,
    batch: usize,
) -> failure::Result<Series> {
    let condition = condition(setup, "send", batch, bench.sent_on(method.row.name));
    if let Err(reason) = method.check(bench.sent_on(method.row.name)) {
        return Ok(Series::unavailable(method.row.name, condition, reason.to_string()));
    }
    let mut runs = Vec::new();
    for &frames in &setup.frames {
        runs.push(bench.send(method, frames, batch)?);
    }
    Ok(series(method.row.name, condition, &runs, |run| run.calls_ns))
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
            total: per_frame as i64 + delivery,
            fit: cost::fit(&points),
            points,
        }),
        ledger: Ledger { sent, received, lost, ..Ledger::default() },
        ..Series::default()
    }
}
