use super::*;
use crate::{
    chunk::{Chunk, Hold},
    files::{Files, Retention, Unsynced},
    output::Style,
    syncer::Syncer,
};
use canter_formats::{FORMATS, Reader, by_extension};
use canter_frame::{BusId, Frame, RawRecord};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};
use tempfile::TempDir;

/// A sync interval that is always over.
const SOON: Duration = Duration::ZERO;

/// A disk whose syncs end when the test says so.
struct Disk {
    /// A message for each sync that begins: whether it syncs the folder, too.
    begun: Receiver<bool>,
    /// The result of each sync.
    end: Sender<io::Result<()>>,
}

/// A writer's thread that writes to a folder.
struct Recorder {
    folder: TempDir,
    shared: Arc<(Queue, Live)>,
    disk: Disk,
    writer: JoinHandle<Progress>,
}

/// A chunk of classic frames of the first interface.
fn chunk(frames: u64) -> Chunk {
    let mut chunk = Chunk::new(false, frames as usize);
    let frame: Frame = "123#1122".parse().unwrap();
    let bytes = &frame.kernel_bytes()[..16];
    (0..frames).for_each(|at| assert!(chunk.hold(&RawRecord::new(1_000 + at, BusId(0), bytes))));
    chunk
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Recorder {
    fn new() -> Self {
        Self::to("d.log", false, SOON)
    }

    fn to(name: &str, rotates: bool, sync: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join(name);
        let files = Files::create(&target, rotates, Retention::default(), false).unwrap();
        let format = by_extension(&target, FORMATS).unwrap();
        let (zstd, rotate_bytes) = (name.ends_with(".zst"), rotates.then_some(1000));
        let style = Style { zstd, rotate_bytes, sync, ..Style::plain(format) };
        let (begins, begun) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let work = move |job: &Unsynced| {
            begins.send(job.folder_of.is_some()).map_err(io::Error::other)?;
            ends.recv().unwrap_or(Ok(())).and_then(|()| job.sync())
        };
        let syncer = Some(Syncer::start(Box::new(work)).unwrap());
        let shared = Arc::new((Queue::new(1 << 20), Live::default()));
        shared.0.send(Item::Interface("can0".to_owned()));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                run(&shared.0, &shared.1, Output::new(files, style, &shared.1, syncer), None)
            })
        };
        Self { folder, shared, disk: Disk { begun, end }, writer }
    }

    /// Records 7 frames into a file whose sync fails, and 3 into the next one.
    fn lose_the_first_file(&self, next: &str) {
        self.record(7);
        self.next_sync();
        eventually("it is written", || self.in_file() == 7);
        self.disk.end.send(Err(io::Error::from_raw_os_error(5))).unwrap();
        eventually("the recording continues", || self.path(next).exists());
        self.record(3);
        eventually("it is written", || self.in_file() == 3);
    }

    /// Waits until a sync begins; whether it syncs the folder, too.
    fn next_sync(&self) -> bool {
        self.disk.begun.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record(&self, frames: u64) {
        assert!(self.shared.0.push(chunk(frames)).is_ok());
        self.shared.0.set_complete_until(u64::MAX);
    }

    fn in_file(&self) -> u64 {
        self.shared.1.written.lock().unwrap().in_file.iter().sum()
    }

    fn events(&self) -> String {
        self.shared.1.take_events().into_iter().map(|event| event.what + "\n").collect()
    }

    /// Ends the recording, with a disk that answers.
    fn finish(self) -> (Progress, TempDir) {
        self.shared.0.send(Item::End(Box::new(ending)));
        drop(self.disk.end);
        (self.writer.join().unwrap(), self.folder)
    }
}

/// The end of a recording of which the writer's counts are all that is known.
fn ending(written: &Progress) -> (Vec<canter_formats::Closing>, String) {
    let closing = canter_formats::Closing::default();
    (vec![closing], format!("{} frames lost at the disk", written.lost.iter().sum::<u64>()))
}

fn lines(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| line.starts_with('(')).count()
}

#[test]
fn a_disk_that_does_not_answer_a_sync_delays_no_frame() {
    let recorder = Recorder::new();
    recorder.record(5);
    recorder.next_sync();
    // The disk is busy: what comes now is written all the same, and its memory is free again.
    for round in 1..4 {
        recorder.record(100);
        eventually("it is written", || recorder.in_file() == 5 + round * 100);
        eventually("its memory is free", || recorder.shared.0.used().0 == 0);
    }
    assert!(recorder.disk.begun.try_recv().is_err(), "one sync at a time");
    recorder.disk.end.send(Ok(())).unwrap();
    // What was written meanwhile is synced next.
    recorder.next_sync();
    assert_eq!(lines(&recorder.path("d.log")), 305);
    let (progress, _folder) = recorder.finish();
    assert_eq!((progress.in_file, progress.lost, progress.error), (vec![305], vec![0], None));
}

#[test]
fn frames_of_a_file_whose_sync_has_failed_are_lost_and_the_next_file_has_the_later_ones() {
    let recorder = Recorder::new();
    recorder.lose_the_first_file("d-000002.log");
    let events = recorder.events();
    assert!(events.contains("d.log: sync: "), "{events}");
    let (progress, _folder) = recorder.finish();
    assert_eq!((progress.in_file, progress.lost), (vec![3], vec![7]));
    let frames: Vec<u64> = progress.files.iter().map(|file| file.frames).collect();
    assert_eq!(frames, [0, 3], "{:?}", progress.files);
}

#[test]
fn a_sync_that_fails_while_the_file_is_closed_is_no_less_a_loss() {
    let recorder = Recorder::new();
    recorder.record(7);
    recorder.next_sync();
    eventually("it is written", || recorder.in_file() == 7);
    recorder.shared.0.send(Item::End(Box::new(ending)));
    recorder.disk.end.send(Err(io::Error::from_raw_os_error(5))).unwrap();
    let progress = recorder.writer.join().unwrap();
    assert_eq!((progress.in_file, progress.lost), (vec![0], vec![7]));
    assert!(progress.error.is_some_and(|error| error.contains("d.log: sync: ")));
}

#[test]
fn what_the_disk_has_after_a_sync_is_a_whole_recording_in_every_format() {
    for name in ["d.log", "d.pcapng", "d.log.zst", "d.pcapng.zst"] {
        let recorder = Recorder::to(name, false, SOON);
        for round in 0..3 {
            recorder.record(50);
            eventually("it is written", || recorder.in_file() == 50 * (round + 1));
            recorder.next_sync();
            let (mut bytes, frames) = (fs::read(recorder.path(name)).unwrap(), recorder.in_file());
            if name.ends_with(".zst") {
                bytes = zstd::decode_all(bytes.as_slice()).unwrap();
            }
            let mut reader = Reader::from_read(name, Box::new(io::Cursor::new(bytes)), FORMATS).unwrap();
            while reader.next_record().unwrap().is_some() {}
            assert_eq!((reader.frames(), reader.cut()), (frames, None), "{name}");
            recorder.disk.end.send(Ok(())).unwrap();
        }
        let (progress, _folder) = recorder.finish();
        assert_eq!((progress.in_file, progress.lost), (vec![150], vec![0]), "{name}");
    }
}

#[test]
fn each_new_file_of_a_rotation_is_synced_at_once_with_its_name() {
    let recorder = Recorder::to("d.log", true, Duration::from_secs(3600));
    for file in 1..4 {
        assert!(recorder.next_sync(), "the folder of file {file}, too");
        recorder.disk.end.send(Ok(())).unwrap();
        // One file of 1000 bytes: a few frames are in the next.
        recorder.record(30);
        eventually("the next file begins", || recorder.path(&format!("d-{:06}.log", file + 1)).exists());
    }
    let (progress, _folder) = recorder.finish();
    assert_eq!((progress.in_file, progress.lost), (vec![90], vec![0]));
}

#[test]
fn the_last_file_tells_what_the_disk_has_lost_before_it() {
    let recorder = Recorder::to("d.pcapng", false, SOON);
    recorder.lose_the_first_file("d-000002.pcapng");
    let last = recorder.path("d-000002.pcapng");
    let (progress, _folder) = recorder.finish();
    assert_eq!((progress.in_file, progress.lost), (vec![3], vec![7]));
    let bytes = fs::read(last).unwrap();
    let says = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(says("7 frames lost at the disk"), "{}", String::from_utf8_lossy(&bytes));
}
