//! A long run: random operations at the same time, and every frame accounted for. On a kernel with KASAN and lockdep the
//! run finds faults that no other test looks for.

use super::{
    Bench, CARD, FAR, NEAR, blocking, bring_back, frame, open, recording::send_some, send, start_card, unbind,
};
use crate::testbed::{cards_up, soak_frames};
use canter_io::{
    Batch, Interface,
    canchar::{Device, OVERWRITE, Options, POLL_CHIP, RawFrame},
    method::{ReceiveMethod, ReceiveOptions},
    thread::Worker,
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

/// The frames in all, unless `make soak` asks for more.
const USUAL: u32 = 20_000;

/// Xorshift (Marsaglia 2003): the same numbers each time.
struct Random(u32);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % limit
    }
}

/// A reader that reads now and then, and the frames that it should have got.
struct Reader {
    device: Device,
    /// Which of four kinds of frames the reader wants; 4: all.
    kind: u32,
    wanted: u64,
    received: u64,
    /// Frames that the device counted as lost.
    lost: u64,
}

impl Reader {
    fn open(random: &mut Random) -> Self {
        let device = open(FAR);
        let (slots, overwrites, kind) = (4 << random.below(6), random.below(2) == 1, random.below(5));
        device.change(|set| set.rx_slots = slots).unwrap();
        if overwrites {
            device.change(|set| set.flags |= OVERWRITE).unwrap();
        }
        if kind < 4 {
            device.set_filters(&format!("{kind:03X}:003").parse().unwrap()).unwrap();
        }
        Self { device, kind, wanted: 0, received: 0, lost: 0 }
    }

    fn read(&mut self) {
        let mut frames = [RawFrame::default(); 32];
        while let Ok(count) = self.device.read(&mut frames) {
            self.received += count as u64;
        }
    }

    /// Asserts that every wanted frame was read or is counted as lost.
    fn close(mut self) {
        self.read();
        self.lost = self.device.statistics().unwrap().file_rx_lost;
        assert_eq!(self.wanted, self.received + self.lost, "kind {}", self.kind);
    }
}

/// Reads all frames by calls that block and that signals interrupt; returns the numbers of frames read and lost.
fn blocked_reader() -> Worker<(u64, u64)> {
    let device = blocking(FAR);
    let read = move |stop: &AtomicBool| {
        let mut received = 0;
        let mut frames = [RawFrame::default(); 32];
        while !stop.load(Ordering::Acquire) || device.wait(1, 0).unwrap() > 0 {
            match device.read(&mut frames) {
                Ok(count) => received += count as u64,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::Interrupted),
            }
        }
        (received, device.statistics().unwrap().file_rx_lost)
    };
    Worker::start("reader", read).unwrap()
}

/// Reads a card until it is gone or stopped, waiting in one of the ways.
fn last_reader(polls: bool, spin_ns: u64) -> Worker<()> {
    let device = blocking(CARD);
    let set = |options: &mut Options| {
        options.spin_ns = spin_ns;
        options.flags |= if polls { POLL_CHIP } else { 0 };
    };
    device.change(set).unwrap();
    let read = move |_: &AtomicBool| {
        let (mut received, mut frames) = (0, [RawFrame::default(); 32]);
        let ended = loop {
            match device.read(&mut frames) {
                Ok(count) => received += count as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(ended.raw_os_error(), Some(NO_DEVICE | NET_DOWN)), "{ended}");
        // What was counted can still be asked, and all that was put there was read before the trouble.
        let counted = device.statistics().unwrap();
        assert_eq!(received, counted.file_rx_frames, "{counted:?}");
    };
    Worker::start("last reader", read).unwrap()
}

/// Reads a card by the mapped ring until it is gone or stopped.
fn last_ring_reader() -> Worker<()> {
    let method: ReceiveMethod = "canchar-ring".parse().unwrap();
    let mut receive = method.open(&Interface::find(CARD).unwrap(), &ReceiveOptions::default()).unwrap();
    let read = move |_: &AtomicBool| {
        let mut batch = Batch::new(32);
        while receive.receive(&mut batch).is_ok() {
            batch.clear();
        }
    };
    Worker::start("last ring reader", read).unwrap()
}

/// `ENODEV` and `ENETDOWN`.
const NO_DEVICE: i32 = 19;
const NET_DOWN: i32 = 100;

/// Takes the card from its driver while files are open, read, polled, mapped and written, and frames come from its bus;
/// then gives it back.
fn take_the_card_away(random: &mut Random) {
    let runs = random.below(4) > 0;
    if runs {
        start_card(CARD, 1_000_000);
    }
    let readers =
        [last_reader(false, 0), last_reader(true, u64::from(random.below(2) * 100_000)), last_ring_reader()];
    let writer = open(CARD);
    if runs {
        send_some("can0", random.below(64));
    }
    let _ = writer.write(&[frame(1), frame(2)]);
    unbind();
    // What had come before can still be read.
    let gone = std::iter::repeat_with(|| writer.read(&mut [RawFrame::default()])).find_map(Result::err);
    assert_eq!(gone.and_then(|error| error.raw_os_error()), Some(NO_DEVICE));
    drop(writer);
    readers.into_iter().for_each(Worker::stop);
    bring_back();
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_long_run_of_opens_filters_signals_and_unbinds_accounts_for_every_frame() {
    let _bench = Bench::new();
    let mut random = Random(0x5eed);
    cards_up(&["can0"]);
    let near = open(NEAR);
    let blocked = blocked_reader();
    let (mut readers, mut sent): (Vec<Reader>, u32) = (Vec::new(), 0);
    while sent < soak_frames(USUAL) {
        for _ in 0..1 + random.below(32) {
            let id = random.below(0x800);
            send(&near, [id]);
            sent += 1;
            readers
                .iter_mut()
                .filter(|one| one.kind > 3 || one.kind == id & 3)
                .for_each(|one| one.wanted += 1);
        }
        match random.below(8) {
            0 | 1 if readers.len() < 12 => readers.push(Reader::open(&mut random)),
            2 | 3 if !readers.is_empty() => {
                readers.swap_remove(random.below(readers.len() as u32) as usize).close()
            }
            4 | 5 => readers.iter_mut().for_each(Reader::read),
            6 => blocked.interrupt(),
            _ if random.below(40) == 0 => take_the_card_away(&mut random),
            _ => {}
        }
    }
    readers.into_iter().for_each(Reader::close);
    let (received, lost) = blocked.stop();
    assert_eq!(received + lost, u64::from(sent));
}
