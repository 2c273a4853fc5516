//! What a receiver and a transmitter must do together: a long random mixture of calls.

use canter_io::Batch;
use canter_io::method::{Pair, ReceiveOptions, TransmitOptions};
use std::time::{Duration, Instant};

use super::Sentence;
use super::frames::{Random, sequence};
use super::links::{Link, assert_nothing_comes, difference};

pub const SENTENCES: &[Sentence<Pair>] = super::sentences![
    takes_floods: every_frame_arrives_once_in_order_whatever_the_calls_and_batches,
];

/// Frames of a run.
const FRAMES: usize = 250;
/// Frames on their way at a time; a socket's queue holds 222.
const ON_THEIR_WAY_MAX: usize = 120;

/// Where the mixture comes from; `CANTER_SEED=17` in the environment gives another one.
fn seed() -> u64 {
    std::env::var("CANTER_SEED").map_or(2014, |text| text.parse().unwrap())
}

fn every_frame_arrives_once_in_order_whatever_the_calls_and_batches(pair: Pair, link: &Link) {
    let seed = seed();
    let mut random = Random::new(seed);
    let mut receiver = link.receiver(pair.receive, &ReceiveOptions::default());
    let mut transmitter = link.transmitter(pair.transmit, &TransmitOptions::default());
    let frames = sequence(link, FRAMES);
    let (mut taken, mut came) = (0, Vec::new());
    let deadline = Instant::now() + Duration::from_secs(10);
    while came.len() < FRAMES {
        assert!(Instant::now() < deadline, "seed {seed}: {taken} taken over, {} came", came.len());
        let room = ON_THEIR_WAY_MAX - (taken - came.len());
        let next = (1 + random.below(80)).min(room).min(FRAMES - taken);
        match random.below(4) {
            0 => taken += transmitter.transmit(&frames[taken..taken + next]).unwrap(),
            1 => transmitter.flush().unwrap(),
            2 => link.settle(),
            // A receiver that blocks must not be called when nothing is on its way to it.
            _ if taken - transmitter.pending() > came.len() => {
                let mut batch = Batch::new(1 + random.below(80));
                receiver.receive(&mut batch).unwrap();
                came.extend_from_slice(batch.frames());
            }
            _ => {}
        }
    }
    let difference = difference(&came, &frames);
    assert_eq!(difference, None, "seed {seed}");
    assert_nothing_comes(link, receiver.as_mut());
    assert_eq!((receiver.drops().unwrap(), transmitter.lost()), (0, 0));
}
