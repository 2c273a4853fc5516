use super::*;
use crate::{
    chunk::{Chunk, Hold},
    files::Retention,
    output::Style,
    verdict::{Fault, Verdict},
};
use canter_formats::{FORMATS, by_extension};
use canter_frame::{BusId, Frame, RawRecord};
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

#[test]
fn a_receiver_that_panics_ends_the_recording_with_a_truthful_account() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("d.pcapng");
    let recording = recording(&output, |shared| {
        shared.queue.send(Item::Interface("can0".to_owned()));
        let mut chunk = Chunk::new(false, 7);
        let frame: Frame = "123#1122".parse().unwrap();
        let bytes = &frame.kernel_bytes()[..16];
        (0..7).for_each(|at| assert!(chunk.hold(&RawRecord::new(1_000 + at, BusId(0), bytes))));
        assert!(shared.queue.push(chunk).is_ok());
        panic!("a fault that the test has planted");
    });
    let began = Instant::now();
    while !recording.is_over() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody notices that the receiver has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(Box::new(recording.finish())));
    let account = ended.recv_timeout(Duration::from_secs(60)).expect("the recording ends");
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
