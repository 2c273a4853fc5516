//! The thread that sends each frame at its time, all buses in the recording's order.

use super::feed::{Chunk, Item};
use canter_cli::{
    failure::{self, Failure},
    trouble::refuse_down,
};
use canter_io::{Frame, Interface, batch::BATCH_FRAMES, clock, method::TransmitMethod, thread};
use canter_route::traffic::sender::{Account, Sender, Setup, Stop};
use std::sync::{atomic::AtomicBool, mpsc::Receiver};

/// Time between the arrival of the first chunk and the first deadline.
const HEAD_START_NS: u64 = 20_000_000;

/// Settings of the player.
#[derive(Clone)]
pub struct Player {
    pub method: Option<TransmitMethod>,
    pub setup: Setup,
    /// Print each frame that was sent.
    pub prints_frames: bool,
}

/// The player's results.
pub struct Played {
    pub accounts: Vec<Account>,
    /// Frames that were sent or refused.
    pub handled: u64,
    pub failure: Option<Failure>,
}

/// The interface of this name; `canchar0` is what recordings call /dev/canchar0.
fn destination(name: &str) -> canter_io::Result<Interface> {
    let is_device = name.strip_prefix("canchar").is_some_and(|number| number.parse::<u32>().is_ok());
    Interface::find(name)
        .or_else(|error| if is_device { Interface::find(&format!("/dev/{name}")) } else { Err(error) })
}

impl Player {
    /// Sends chunks until the channel is closed or `flag` is set.
    pub fn run(self, chunks: Receiver<Chunk>, flag: &AtomicBool) -> Played {
        let _ = thread::wake_on_time(); // later wake-ups show as lateness
        let stop = Stop { flag, until_ns: u64::MAX };
        let (mut senders, mut start_ns, mut handled) = (Vec::new(), None, 0);
        let mut failure = None;
        for chunk in chunks {
            if let Err(error) = self.open(&chunk.destinations, &mut senders) {
                failure = Some(error);
                break;
            }
            let start_ns = *start_ns.get_or_insert_with(|| clock::monotonic_ns() + HEAD_START_NS);
            match self.play(&chunk.items, &mut senders, start_ns, &stop) {
                Ok(count) => handled += count as u64,
                Err((count, error)) => {
                    handled += count as u64;
                    failure = Some(error);
                    break;
                }
            }
            if stop.now() {
                break;
            }
        }
        let elapsed_ns = clock::monotonic_ns().saturating_sub(start_ns.unwrap_or(u64::MAX));
        let accounts = senders.into_iter().map(|sender| sender.close(elapsed_ns)).collect();
        Played { accounts, handled, failure }
    }

    fn open(&self, names: &[String], senders: &mut Vec<Sender>) -> failure::Result<()> {
        for name in names {
            let interface = destination(name).map_err(|error| {
                let way_out = format!("{}; DESTINATION={name} sends its frames elsewhere", error.way_out);
                error.hint(way_out)
            })?;
            refuse_down(&interface)?;
            senders.push(Sender::open(&interface, self.method, &self.setup)?);
        }
        Ok(())
    }

    /// Sends a chunk; returns the number of frames that were sent or refused.
    fn play(
        &self,
        items: &[Item],
        senders: &mut [Sender],
        start_ns: u64,
        stop: &Stop<'_>,
    ) -> Result<usize, (usize, Failure)> {
        let due = |item: &Item| item.at_ns.map(|at_ns| start_ns.saturating_add(at_ns));
        let (mut frames, mut due_ns): (Vec<Frame>, Vec<Option<u64>>) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < items.len() && stop.sleep_until(due(&items[done]).unwrap_or(0)) {
            // One call sends successive frames of the same bus that are due now; a frame of another bus ends the run.
            let (destination, now_ns) = (items[done].destination, clock::monotonic_ns());
            let run = items[done..].iter().take(BATCH_FRAMES);
            let run =
                run.take_while(|item| item.destination == destination && due(item).unwrap_or(0) <= now_ns);
            frames.clear();
            due_ns.clear();
            for item in run {
                frames.push(item.frame);
                due_ns.push(due(item));
            }
            let sender = &mut senders[destination];
            let sent = sender.send(&frames, &due_ns, stop).map_err(|error| (done, error.into()))?;
            if self.prints_frames {
                frames[..sent].iter().for_each(|frame| println!("{} {frame}", sender.name()));
            }
            done += sent;
            if sent < frames.len() {
                break;
            }
        }
        Ok(done)
    }
}
