//! What every transmitter must do.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use canter_io::method::{Transmit, TransmitMethod, TransmitOptions};
use canter_io::thread::{self, Worker};
use canter_io::{Frame, Identifier};

use super::Sentence;
use super::frames::{every_shape, numbered, sequence};
use super::links::{Link, assert_frames};

pub const SENTENCES: &[Sentence<TransmitMethod>] = super::sentences![
    everywhere: frames_of_every_shape_arrive_once_in_order_and_unchanged,
    everywhere: an_empty_slice_is_no_error,
    everywhere: more_frames_than_a_call_takes_all_arrive,
    everywhere: what_several_threads_hand_over_arrives_once_and_in_order,
    simulated: a_full_queue_is_a_short_count_and_the_rest_stays_the_callers,
    has_queue: every_frame_is_taken_over_or_the_callers_when_the_queue_is_full,
    has_queue: waiting_for_room_loses_nothing_and_takes_as_long_as_the_queue,
    has_queue: a_worker_that_waits_for_room_stops_when_told,
    has_queue: patience_ends_a_wait_and_abandoned_frames_are_never_sent,
    with_kernel: an_interface_that_is_down_is_an_error_and_loses_nothing,
    is_virtual: an_interface_that_has_gone_is_an_error,
    classic_with_kernel: an_fd_frame_on_a_classic_interface_is_an_error,
    classic_with_kernel: classic_frames_before_an_fd_frame_are_a_short_count,
];

/// How long anything may take; the machine may be slow.
const DEADLINE: Duration = Duration::from_secs(10);

fn without_waiting() -> TransmitOptions {
    TransmitOptions::default().without_waiting()
}

/// Hands all frames over, not faster than the link carries them, and gives them to the kernel.
pub fn transmit_all(link: &Link, transmitter: &mut dyn Transmit, frames: &[Frame]) {
    let deadline = Instant::now() + DEADLINE;
    let nothing_more: &[Frame] = &[]; // but perhaps some that wait
    for burst in frames.chunks(link.burst()).chain([nothing_more]) {
        let mut taken = 0;
        while taken < burst.len() || transmitter.pending() > 0 {
            assert!(Instant::now() < deadline, "{taken} taken over, {} of them wait", transmitter.pending());
            taken += transmitter.transmit(&burst[taken..]).unwrap();
            transmitter.flush().unwrap();
            link.settle();
        }
    }
    assert_eq!(transmitter.lost(), 0);
}

fn frames_of_every_shape_arrive_once_in_order_and_unchanged(method: TransmitMethod, link: &Link) {
    for options in [TransmitOptions::default(), without_waiting()] {
        let mut listener = link.listen();
        let mut transmitter = link.transmitter(method, &options);
        let frames = every_shape(link);
        transmit_all(link, transmitter.as_mut(), &frames);
        assert_frames(&listener.hear(frames.len()), &frames);
    }
}

fn an_empty_slice_is_no_error(method: TransmitMethod, link: &Link) {
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    assert_eq!(transmitter.transmit(&[]).unwrap(), 0);
    transmitter.flush().unwrap();
    assert_eq!((transmitter.pending(), transmitter.lost()), (0, 0));
    assert_frames(&listener.hear(0), &[]);
}

fn more_frames_than_a_call_takes_all_arrive(method: TransmitMethod, link: &Link) {
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames = sequence(link, if link.burst() == usize::MAX { 600 } else { 50 });
    transmit_all(link, transmitter.as_mut(), &frames);
    assert_frames(&listener.hear(frames.len()), &frames);
}

fn what_several_threads_hand_over_arrives_once_and_in_order(method: TransmitMethod, link: &Link) {
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames: Vec<_> = (0..4).map(numbered).collect();
    transmit_all(link, transmitter.as_mut(), &frames[..1]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| transmit_all(link, transmitter.as_mut(), &frames[1..3]));
        other.join().expect("another thread sends as well");
    });
    transmit_all(link, transmitter.as_mut(), &frames[3..]);
    assert_frames(&listener.hear(frames.len()), &frames);
}

fn a_full_queue_is_a_short_count_and_the_rest_stays_the_callers(method: TransmitMethod, link: &Link) {
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &without_waiting());
    let frames = sequence(link, 40);
    let taken = transmitter.transmit(&frames).unwrap();
    assert!(taken > 0 && taken < frames.len(), "{taken} of {} taken over", frames.len());
    assert_eq!(transmitter.transmit(&frames[taken..]).unwrap(), 0);
    assert_frames(&listener.hear(taken), &frames[..taken]);
    transmit_all(link, transmitter.as_mut(), &frames[taken..]);
    assert_frames(&listener.hear(frames.len() - taken), &frames[taken..]);
}

fn every_frame_is_taken_over_or_the_callers_when_the_queue_is_full(method: TransmitMethod, link: &Link) {
    let slow = link.slow("256kbit", 160);
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &without_waiting());
    let frames = sequence(link, 120);
    let (mut taken, mut full, deadline) = (0, 0, Instant::now() + DEADLINE);
    let mut heard = Vec::new();
    while taken < frames.len() || transmitter.pending() > 0 {
        assert!(Instant::now() < deadline, "{taken} taken over, {} of them wait", transmitter.pending());
        let offered = frames.len().min(taken + 64);
        let count = transmitter.transmit(&frames[taken..offered]).unwrap();
        taken += count;
        transmitter.flush().unwrap();
        full += usize::from(taken < offered || transmitter.pending() > 0);
        heard.extend(listener.heard());
        assert!(heard.len() + transmitter.pending() <= taken, "more is there than was taken over");
        std::thread::sleep(Duration::from_micros(300));
    }
    assert!(full > 0, "the queue was never full");
    assert_eq!(transmitter.lost(), 0);
    heard.extend(listener.hear(taken - heard.len()));
    assert_frames(&heard, &frames);
    drop(slow);
}

fn waiting_for_room_loses_nothing_and_takes_as_long_as_the_queue(method: TransmitMethod, link: &Link) {
    const BYTES_PER_SECOND: u64 = 8000;
    const AHEAD: usize = 20; // frames in the bucket and in the queue
    let slow = link.slow("64kbit", 1000);
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames: Vec<_> = (0..60).map(numbered).collect();
    let began = Instant::now();
    assert_eq!(transmitter.transmit(&frames).unwrap(), frames.len());
    transmitter.flush().unwrap();
    let took = began.elapsed();
    assert_eq!((transmitter.pending(), transmitter.lost()), (0, 0));
    let bytes = ((frames.len() - AHEAD) * frames[0].mtu()) as u64;
    let least = Duration::from_millis(1000 * bytes / BYTES_PER_SECOND);
    assert!(took >= least, "took {took:?}, and the queue carries so much in {least:?}");
    assert_frames(&listener.hear(frames.len()), &frames);
    drop(slow);
}

fn a_worker_that_waits_for_room_stops_when_told(method: TransmitMethod, link: &Link) {
    let slow = link.slow("64bit", 1000); // a frame in two seconds
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames = sequence(link, 100);
    let worker = Worker::start("transmitter", move |stop| {
        let _ = thread::pin(1);
        let mut taken = 0;
        while !stop.load(Ordering::Acquire) && taken < frames.len() {
            taken += transmitter.transmit(&frames[taken..]).unwrap();
            transmitter.flush().unwrap();
            while !stop.load(Ordering::Acquire) && transmitter.pending() > 0 {
                transmitter.flush().unwrap();
            }
        }
        taken - transmitter.pending()
    })
    .unwrap();
    std::thread::sleep(Duration::from_millis(50)); // in which the thread must not end
    assert!(!worker.is_finished(), "it does not wait");
    let asked = Instant::now();
    let sent = worker.stop();
    assert!(asked.elapsed() < Duration::from_secs(1), "stopped {:?} after it was told to", asked.elapsed());
    assert!(sent < 100, "all frames were sent through a queue that hardly drains");
    drop(slow);
}

fn patience_ends_a_wait_and_abandoned_frames_are_never_sent(method: TransmitMethod, link: &Link) {
    let slow = link.slow("64bit", 1000); // a frame in two seconds
    let patience = Duration::from_millis(30);
    let mut transmitter =
        link.transmitter(method, &TransmitOptions { patience: Some(patience), ..TransmitOptions::default() });
    let frames = sequence(link, 100);
    // It returns at all: without patience it would wait for 200 seconds.
    let mut taken = transmitter.transmit(&frames).unwrap();
    transmitter.flush().unwrap();
    transmitter.set_waiting(false);
    let asked = Instant::now();
    taken += transmitter.transmit(&frames[taken..]).unwrap();
    transmitter.flush().unwrap();
    let pending = transmitter.pending();
    assert!(taken - pending < frames.len(), "all frames were sent through a queue that hardly drains");
    assert!(asked.elapsed() < Duration::from_secs(1), "it waited though told not to");
    assert_eq!((transmitter.abandon(), transmitter.pending()), (pending, 0));
    drop(slow); // and what is in its queue
    let mut listener = link.listen();
    transmitter.set_waiting(true);
    let last = numbered(999);
    transmit_all(link, transmitter.as_mut(), &[last]);
    assert_frames(&listener.hear(1), &[last]);
}

fn an_interface_that_is_down_is_an_error_and_loses_nothing(method: TransmitMethod, link: &Link) {
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames: Vec<_> = (0..3).map(numbered).collect();
    link.near().down().unwrap();
    // A method may take frames over and tell only when it gives them to the kernel; they wait then.
    let (taken, error) = match transmitter.transmit(&frames) {
        Ok(taken) => (taken, transmitter.flush().unwrap_err()),
        Err(error) => (0, error),
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    assert_eq!((transmitter.pending(), transmitter.lost()), (taken, 0));
    link.make_ready();
    let mut listener = link.listen();
    transmit_all(link, transmitter.as_mut(), &frames[taken..]);
    assert_frames(&listener.hear(frames.len()), &frames);
}

fn an_interface_that_has_gone_is_an_error(method: TransmitMethod, link: &Link) {
    let link = link.another();
    let near = link.near();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    near.clone().delete().unwrap();
    let error = transmitter.transmit(&[numbered(1)]).and_then(|_| transmitter.flush()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    let Err(error) = method.open(&near, &TransmitOptions::default()) else { panic!("it opened") };
    assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{error}");
}

fn fd_frame() -> Frame {
    Frame::fd(Identifier::Sff(0x123), &[1, 2, 3], 0).unwrap()
}

fn an_fd_frame_on_a_classic_interface_is_an_error(method: TransmitMethod, link: &Link) {
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let error = transmitter.transmit(&[fd_frame(), numbered(1)]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert_eq!((transmitter.pending(), transmitter.lost()), (0, 0));
}

fn classic_frames_before_an_fd_frame_are_a_short_count(method: TransmitMethod, link: &Link) {
    let mut listener = link.listen();
    let mut transmitter = link.transmitter(method, &TransmitOptions::default());
    let frames = [numbered(1), numbered(2), fd_frame(), numbered(3)];
    assert_eq!(transmitter.transmit(&frames).unwrap(), 2);
    transmitter.flush().unwrap();
    assert_frames(&listener.hear(2), &frames[..2]);
}
