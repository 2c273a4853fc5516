use super::*;
use crate::{
    bus::{self, Tally},
    buses::tests::interface,
    chunk::{Chunk, Hold},
    files::Retention,
    judge::RingLoss,
    lost::Lost,
    output::Style,
    verdict::{Fault, Method, Verdict},
};
use canter_formats::{FORMATS, Reader, by_extension};
use canter_frame::{BusId, Frame, RawRecord};
use canter_io::interface::FrameCounters;
use std::time::{Duration, Instant};

/// A recording to this file, with a writer and a receiver that does this.
fn recording(
    output: &Path,
    receiver: impl FnOnce(&Shared) -> receiver::Report + Send + 'static,
) -> Recording {
    let shared = Arc::new(Shared { queue: Queue::new(1 << 20), live: Live::default() });
    let format = by_extension(output, FORMATS).unwrap();
    let style = Style::plain(format);
    let files = Files::create(output, false, Retention::default(), false).unwrap();
    let writer = {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            writer::run(&shared.queue, &shared.live, Output::new(files, style, &shared.live, None), None)
        })
    };
    let receiver = {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || receiver(&shared))
    };
    let observer = Observer {
        shared: Arc::clone(&shared),
        output: output.to_owned(),
        started_ns: 5,
        queue_bytes: 1 << 20,
        triggers: None,
    };
    Recording {
        shared,
        output: output.to_owned(),
        format,
        queue_bytes: 1 << 20,
        observer,
        receiver: Some(receiver),
        writer: Some(writer),
        received: None,
    }
}

/// Hands frames of can0 to the writer, as a receiver does.
fn receive(shared: &Shared, frames: u64) {
    shared.queue.send(Item::Interface("can0".to_owned()));
    let mut chunk = Chunk::new(false, frames as usize);
    let frame: Frame = "123#1122".parse().unwrap();
    let bytes = &frame.kernel_bytes()[..16];
    (0..frames).for_each(|at| assert!(chunk.hold(&RawRecord::new(1_000 + at, BusId(0), bytes))));
    assert!(shared.queue.push(chunk).is_ok());
}

/// The report of a receiver that has seen all frames that can0 has counted, once it shall stop.
fn report(shared: &Shared, seen: u64) -> receiver::Report {
    while !shared.live.stop.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interface = interface("can0", 1_000_001); // no interface has this index
    let mut bus = bus::Bus::new(interface, "can0".to_owned(), None, None);
    let counted = Some(FrameCounters { rx_frames: seen, ..FrameCounters::default() });
    bus.tally = Tally { seen, counted, ..Tally::default() };
    receiver::Report {
        buses: vec![bus],
        method: Method::Ring,
        ring_bytes: 0,
        ring: RingLoss::default(),
        backlog_lost: 0,
        unnamed: 0,
        clock_steps: 0,
        started_ns: 5,
        ended_ns: 9,
        error: None,
    }
}

/// Makes the writer panic when it has written all frames.
fn plant_a_fault(shared: &Shared) {
    shared.queue.send(Item::End(Box::new(|_| panic!("a fault that the test has planted"))));
}

fn wait_until_over(recording: &Recording) {
    let began = Instant::now();
    while !recording.is_over() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody notices that a thread has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn finish(recording: Recording) -> Box<Account> {
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(Box::new(recording.finish())));
    ended.recv_timeout(Duration::from_secs(60)).expect("the recording ends")
}

#[test]
fn a_receiver_that_panics_ends_the_recording_with_a_truthful_account() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("d.pcapng");
    let recording = recording(&output, |shared| {
        receive(shared, 7);
        panic!("a fault that the test has planted");
    });
    wait_until_over(&recording);
    let account = finish(recording);
    let Verdict::Incomplete { faults, .. } = &account.verdict else { panic!("{account}") };
    assert!(
        matches!(&faults[..], [Fault::Failed(why)] if why.contains("its receiver has ended")),
        "{account}"
    );
    let buses: Vec<(&str, u64, Option<u64>)> =
        account.buses.iter().map(|bus| (bus.name.as_str(), bus.in_file, bus.counted)).collect();
    assert_eq!(buses, [("can0", 7, None)]);
    assert_eq!((account.frames, account.started_ns, account.files.len()), (7, 5, 1));
    let bytes = std::fs::read(output).unwrap();
    let verdict = account.verdict.to_string();
    assert!(bytes.windows(verdict.len()).any(|part| part == verdict.as_bytes()), "the file says it, too");
}

#[test]
fn a_writer_that_panics_ends_the_recording_at_once_with_a_truthful_account() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("d.pcapng");
    let recording = recording(&output, |shared| {
        receive(shared, 7);
        plant_a_fault(shared);
        report(shared, 10)
    });
    wait_until_over(&recording);
    let account = finish(recording);
    assert!(account.failure.contains("its writer has ended"), "{account}");
    let Verdict::Incomplete { faults, .. } = &account.verdict else { panic!("{account}") };
    assert_eq!(faults[..], [Fault::Lost(Lost { disk: 3, ..Lost::default() }, Method::Ring)], "{account}");
    let bus = &account.buses[0];
    assert_eq!((bus.seen, bus.in_file, bus.disk_lost), (10, 7, 3));
    let mut reader = Reader::open(&output, FORMATS).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.frames(), 7, "the file has them");
}

#[test]
fn frames_that_disappear_inside_canter_are_counted_as_its_fault() {
    // Seven frames are written.
    for (seen, writer_panics, inside) in [(7, false, 0), (10, false, 3), (5, false, 2), (5, true, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let recording = recording(&folder.path().join("d.log"), move |shared| {
            receive(shared, 7);
            if writer_panics {
                plant_a_fault(shared);
            }
            report(shared, seen)
        });
        if writer_panics {
            wait_until_over(&recording);
        }
        let account = finish(recording);
        match &account.verdict {
            Verdict::Complete => assert_eq!(inside, 0, "{account}"),
            Verdict::Incomplete { faults, .. } => {
                assert_eq!(faults[..], [Fault::Inside(inside)], "{account}")
            }
            Verdict::Ambiguous(_) => panic!("{account}"),
        }
    }
}
