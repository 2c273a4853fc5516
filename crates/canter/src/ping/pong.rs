//! `canter pong`: answers each frame of `canter ping` with the same payload and flags and the next identifier.

use super::{Identifiers, Shared};
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble::{explain, refuse_down},
};
use canter_io::{
    Batch, Frame, Interface,
    batch::BATCH_FRAMES,
    method::{Receive, ReceiveOptions, Transmit, TransmitOptions, Wait},
    poll,
    thread::Worker,
};
use clap::Args;
use serde::Serialize;
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Answer the frames of a `canter ping`
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter pong can1                         answer 780 with 781, until Ctrl-C
  canter pong can1 --parallel 16           answer 780…79E, for 16 pings at once
  canter pong /dev/canchar0 --method canchar/chip-poll+canchar --realtime 60
Exit code 0; 1 when the interface went down; 3 when frames were lost before they could be answered.")]
pub struct Arguments {
    /// Interface to receive and answer on
    #[arg(value_name = "INTERFACE")]
    interface: String,
    #[command(flatten)]
    common: Shared,
}

/// Frames received and answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    received: u64,
    answered: u64,
    /// Frames lost in the receiver's queue.
    lost: u64,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let interface = Interface::find(&arguments.interface)?;
    refuse_down(&interface)?;
    let Shared { identifiers, .. } = &arguments.common;
    identifiers.request(0)?;
    let pair = arguments.common.pair(&interface)?;
    let stop = interrupt_flag()?;
    let options = ReceiveOptions { filters: identifiers.requests(), ..ReceiveOptions::default() };
    let mut mirror = Mirror {
        receive: pair.receive.open(&interface, &options)?,
        transmit: pair.transmit.open(&interface, &TransmitOptions::default())?,
        identifiers: identifiers.clone(),
        spins: matches!(pair.receive.wait, Wait::Spin),
        counts: Counts::default(),
    };
    common.apply()?;
    let worker = Worker::start("pong", move |stop| {
        let ended = mirror.run(stop);
        mirror.counts.lost = mirror.receive.drops().unwrap_or(0);
        (mirror.counts, ended)
    });
    let worker = worker.map_err(|error| Failure::failed(format!("{}: start: {error}", interface.name)))?;
    if !common.quiet {
        eprintln!("pong: answers {identifiers} on {} by {pair}; Ctrl-C ends it", interface.name);
    }
    while !stop.load(Ordering::Acquire) && !worker.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (counts, ended) = worker.stop();
    common.write_json(&counts)?;
    if !common.quiet {
        let Counts { received, answered, lost } = counts;
        eprintln!("pong: {received} received, {answered} answered, {lost} lost in the receive queue");
    }
    if let Err((step, error)) = ended {
        return Err(explain(&interface.name, step, error).into());
    }
    Ok(if counts.lost > 0 { Exit::Lost } else { Exit::Done })
}

struct Mirror {
    receive: Box<dyn Receive>,
    transmit: Box<dyn Transmit>,
    identifiers: Identifiers,
    spins: bool,
    counts: Counts,
}

type Trouble = (&'static str, io::Error);

impl Mirror {
    fn run(&mut self, stop: &AtomicBool) -> Result<(), Trouble> {
        let mut batch = Batch::new(BATCH_FRAMES);
        let mut answers = Vec::with_capacity(BATCH_FRAMES);
        while !stop.load(Ordering::Acquire) {
            batch.clear();
            answers.clear();
            self.receive.receive(&mut batch).map_err(|error| ("receive", error))?;
            answers.extend(batch.frames().iter().filter_map(|frame| self.identifiers.answer_to(frame)));
            self.counts.received += answers.len() as u64;
            self.send(&answers, stop).map_err(|error| ("send", error))?;
        }
        Ok(())
    }

    /// Sends all answers, without a time limit.
    fn send(&mut self, answers: &[Frame], stop: &AtomicBool) -> io::Result<()> {
        let mut taken = 0;
        while taken < answers.len() && !stop.load(Ordering::Acquire) {
            let count = self.transmit.transmit(&answers[taken..])?;
            self.transmit.flush()?;
            taken += count;
            if count == 0 && !self.spins {
                self.wait_for_room()?;
            }
        }
        if self.transmit.pending() > 0 {
            self.transmit.flush()?;
        }
        self.counts.answered += taken as u64;
        Ok(())
    }

    /// Sleeps a little: a program cannot wait for room in an interface's queue (`ENOBUFS`).
    fn wait_for_room(&mut self) -> io::Result<()> {
        const A_FRAME_OR_TWO: Duration = Duration::from_micros(200);
        if let Some(descriptor) = self.transmit.descriptor() {
            poll::writable(descriptor, Some(A_FRAME_OR_TWO.as_nanos() as u64))?;
        }
        std::thread::sleep(A_FRAME_OR_TWO);
        Ok(())
    }
}
