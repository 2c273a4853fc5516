//@ machine: --bus probe --canchar virtual,3,4
//@ commands: capture generate latency methods ping top
//@ also: all --kernel 6.1 --bus probe --canchar virtual,3,4
//@ also: all --kernel 7.3 --bus probe --canchar virtual,3,4
//@ also: all --kernel 7.3-rt --bus probe --canchar virtual,3,4
//@ parts: 2
//! The module canchar from outside: queues, filters, priorities, waits, errors, rings, and what must not harm it.
//! On its machine canchar0 and canchar1 are virtual, canchar2 is can3, canchar3 is can4.
//! After each test the kernel's log must be without a warning.

pub mod recording;
mod soak;

use crate::testbed::{self, DEADLINE, Watched, asleep_in, canter, eventually, ip, start};
use canter_io::{
    Batch, Filter, Filters, Interface,
    canchar::{
        Device, ECHO, ECHO_OWN, FOREVER, FRAME_LOCAL, FRAME_OWN, OVERWRITE, POLL_CHIP, PollEntry, RawFrame,
    },
    frame::{EFF_MASK, ERR_FLAG},
    interface::BitTiming,
    method::{ReceiveMethod, ReceiveOptions},
    thread::Worker,
};
use serde_json::Value;
use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

pub const NEAR: &str = "/dev/canchar0";
pub const FAR: &str = "/dev/canchar1";
/// The device of the card can3.
pub const CARD: &str = "/dev/canchar2";
const ADDRESS: &str = "0000:00:07.0";
const OTHER_CARD: &str = "/dev/canchar3";
/// Timeout of a study of this file.
const STUDY_DEADLINE: Duration = Duration::from_secs(120);
const SECOND_NS: u64 = 1_000_000_000;

/// Resets the virtual devices, and fails the test at its end if the kernel logged a warning.
pub struct Bench {
    _watched: Watched,
}

impl Bench {
    pub fn new() -> Self {
        let bench = Self { _watched: Watched::alone() };
        set_rate(0);
        bench
    }
}

/// Gives the virtual devices a bit rate; 0: frames take no time.
fn set_rate(bitrate: u32) {
    for name in [NEAR, FAR] {
        let mut device = Interface::find(name).unwrap();
        device.down().unwrap();
        fs::write(attribute(name, "restart_ms"), "0").unwrap();
        fs::write(attribute(name, "bitrate"), bitrate.to_string()).unwrap();
        device.up().unwrap();
    }
}

pub fn attribute(device: &str, name: &str) -> String {
    format!("/sys/class/canchar/{}/{name}", device.trim_start_matches("/dev/"))
}

fn open(name: &str) -> Device {
    Device::open(Path::new(name), true).unwrap()
}

fn blocking(name: &str) -> Device {
    Device::open(Path::new(name), false).unwrap()
}

fn frame(can_id: u32) -> RawFrame {
    RawFrame { can_id, len: 2, data: [1, 2, 0, 0, 0, 0, 0, 0], ..RawFrame::default() }
}

/// Writes frames, one at a time so that each has gone before the next.
fn send(device: &Device, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        assert_eq!(device.write(&[frame(id)]).unwrap(), 1);
    }
}

/// Receives frames until there are `count`.
fn receive(device: &Device, count: usize) -> Vec<RawFrame> {
    let (mut frames, since) = (Vec::new(), Instant::now());
    while frames.len() < count {
        assert!(since.elapsed() < DEADLINE, "{} of {count} frames came", frames.len());
        let mut some = [RawFrame::default(); 32];
        match device.read(&mut some) {
            Ok(came) => frames.extend_from_slice(&some[..came]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    }
    frames
}

fn ids(frames: &[RawFrame]) -> Vec<u32> {
    frames.iter().map(|frame| frame.can_id).collect()
}

fn nothing_comes(device: &Device) -> bool {
    let answer = device.read(&mut [RawFrame::default()]);
    answer.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn errors_only() -> Filters {
    Filters { list: vec![Filter { id: ERR_FLAG, mask: 0 }], error_mask: EFF_MASK, join: false }
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn every_open_file_gets_every_frame_that_its_filters_pass() {
    let _bench = Bench::new();
    let (near, all, some, none) = (open(NEAR), open(FAR), open(FAR), open(FAR));
    some.set_filters(&"123:7FF,7F0:7F0".parse().unwrap()).unwrap();
    none.set_filters(&"0~0".parse().unwrap()).unwrap();
    send(&near, [0x123, 0x124, 0x7f5]);
    assert_eq!(ids(&receive(&all, 3)), [0x123, 0x124, 0x7f5]);
    assert_eq!(ids(&receive(&some, 2)), [0x123, 0x7f5]);
    assert!(nothing_comes(&all) && nothing_comes(&some) && nothing_comes(&none));
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_card_and_a_virtual_device_whose_handlers_are_threads_lose_no_frame() {
    let _bench = Bench::new();
    let threaded = |name, on| fs::write(attribute(name, "threaded"), if on { "1" } else { "0" }).unwrap();
    let start_card = |name: &str| {
        let mut card = Interface::find(name).unwrap();
        card.down().unwrap();
        card.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
        card.up().unwrap();
    };
    ["can0", CARD].into_iter().for_each(start_card);
    for (from, to) in [(NEAR, FAR), ("can0", CARD), (CARD, "can0")] {
        let device = if from == CARD { from } else { to };
        threaded(device, true);
        let listener = (to != "can0").then(|| open(to));
        let before = open(device).statistics().unwrap();
        // A controller holds twelve of them, however late its thread is: a bus between QEMU's cards has no time.
        let words = ["generate", from, "-n", "10", "-g", "0", "-I", "i", "-L", "2", "-D", "i", "--quiet"];
        for _ in 0..5 {
            let sent = canter(&words).ended(DEADLINE);
            assert_eq!(sent.code, Some(0), "{sent:?}");
            if let Some(listener) = &listener {
                assert_eq!(ids(&receive(listener, 10)), (0..10).collect::<Vec<_>>(), "{from} to {to}");
            }
        }
        if listener.is_none() {
            let counted = open(device).statistics().unwrap();
            assert_eq!(counted.tx_frames - before.tx_frames, 50, "{counted:?}");
        }
        threaded(device, false);
    }
    ip("link set can0 down");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_full_queue_loses_the_new_frame_and_marks_the_next() {
    let _bench = Bench::new();
    let (near, far) = (open(NEAR), open(FAR));
    far.change(|options| options.rx_slots = 8).unwrap();
    send(&near, 1..=11);
    assert_eq!(far.statistics().unwrap().file_rx_lost, 3);
    assert_eq!(ids(&receive(&far, 8)), [1, 2, 3, 4, 5, 6, 7, 8]);
    send(&near, [12, 13]);
    let marked: Vec<_> = receive(&far, 2).iter().map(|frame| (frame.can_id, frame.lost)).collect();
    assert_eq!(marked, [(12, 3), (13, 0)]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn an_overwriting_queue_loses_the_oldest_frames_and_says_how_many() {
    let _bench = Bench::new();
    let (near, far) = (open(NEAR), open(FAR));
    far.change(|options| {
        options.rx_slots = 8;
        options.flags |= OVERWRITE;
    })
    .unwrap();
    send(&near, 1..=20);
    assert_eq!(far.statistics().unwrap().file_rx_lost, 13); // 7 are left: the eighth slot may be being filled
    let came = receive(&far, 7);
    assert_eq!(ids(&came), (14..=20).collect::<Vec<_>>());
    assert_eq!((came[0].lost, came[1].lost), (13, 0));
    assert_eq!(far.statistics().unwrap().file_rx_lost, 13);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn of_what_waits_the_higher_priority_goes_first_and_equals_take_turns() {
    let _bench = Bench::new();
    set_rate(500); // a frame takes more than 120 ms: all is written during the first, also on a host that is late
    let (far, [first, second, urgent]) = (open(FAR), [(); 3].map(|()| open(NEAR)));
    urgent.change(|options| options.priority = 2).unwrap();
    let three_from = |base: u32| [0, 1, 2].map(|n| frame(base + n));
    assert_eq!(first.write(&three_from(0x100)).unwrap(), 3);
    assert_eq!(second.write(&three_from(0x200)).unwrap(), 3);
    assert_eq!(urgent.write(&three_from(0x300)).unwrap(), 3);
    let order = ids(&receive(&far, 9));
    assert_eq!(order[..4], [0x100, 0x300, 0x301, 0x302], "{order:x?}");
    let turns: Vec<_> = order[4..].iter().map(|id| id >> 8).collect();
    assert!(turns[..4] == [1, 2, 1, 2] || turns[..4] == [2, 1, 2, 1], "{order:x?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_write_takes_what_the_queue_has_room_for_and_waits_only_for_the_first() {
    let _bench = Bench::new();
    set_rate(10_000); // a frame takes longer than a call, on the slowest kernel
    let (far, impatient, patient) = (open(FAR), open(NEAR), blocking(NEAR));
    for device in [&impatient, &patient] {
        device.change(|options| options.tx_slots = 4).unwrap();
    }
    let many: Vec<_> = (0..20).map(frame).collect();
    let began = Instant::now();
    let taken = impatient.write(&many).unwrap();
    let left = began.elapsed().as_micros() as usize / 6300; // 63 bits each
    assert!((4..=5 + left).contains(&taken), "{taken} frames in four slots and the controller, {left} sent");
    assert_eq!(impatient.write(&many).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    impatient.wait_sent(10 * SECOND_NS).unwrap();
    assert_eq!(receive(&far, taken).len(), taken);
    let (mut sent, mut calls) = (0, 0);
    while sent < many.len() {
        sent += patient.write(&many[sent..]).unwrap();
        calls += 1;
    }
    assert!(calls > 1, "it never came to wait");
    patient.wait_sent(10 * SECOND_NS).unwrap();
    assert_eq!(ids(&receive(&far, 20)), (0..20).collect::<Vec<_>>());
    assert_eq!(patient.statistics().unwrap().file_tx_frames, 20);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn waiting_until_all_is_sent_takes_as_long_as_the_frames() {
    let _bench = Bench::new();
    set_rate(100_000);
    let near = open(NEAR);
    let began = Instant::now();
    assert_eq!(near.write(&[frame(1); 10]).unwrap(), 10);
    assert_eq!(near.wait_sent(0).unwrap_err().raw_os_error(), Some(libc_etime()));
    near.wait_sent(10 * SECOND_NS).unwrap();
    let least = Duration::from_micros(10 * 10 * (47 + 16)); // ten frames of 63 bits at 10 us
    assert!(began.elapsed() >= least, "{:?} for what takes {least:?}", began.elapsed());
    assert_eq!(near.statistics().unwrap().tx_aborted, open(NEAR).statistics().unwrap().tx_aborted);
}

/// `ETIME`.
const fn libc_etime() -> i32 {
    62
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_read_waits_for_so_many_frames_or_so_long() {
    let _bench = Bench::new();
    let (near, far) = (open(NEAR), blocking(FAR));
    far.change(|options| {
        options.read_min = 3;
        options.timeout_ns = SECOND_NS / 20;
    })
    .unwrap();
    let mut room = [RawFrame::default(); 8];
    let began = Instant::now();
    assert_eq!(far.read(&mut room).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(began.elapsed() >= Duration::from_millis(50));
    send(&near, [1, 2]);
    assert_eq!(far.read(&mut room).unwrap(), 2, "what is there when the time has passed");
    far.change(|options| options.timeout_ns = 0).unwrap();
    let reader = asleep_in(move || far.read(&mut room).unwrap());
    send(&near, [3, 4]);
    std::thread::sleep(Duration::from_millis(30)); // in which nothing must happen
    assert!(!reader.is_finished(), "two frames ended a wait for three");
    send(&near, [5]);
    assert_eq!(reader.join().unwrap(), 3);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn what_was_sent_comes_back_to_those_who_asked_when_it_was_on_the_bus() {
    let _bench = Bench::new();
    set_rate(100_000);
    let (sender, neighbour) = (open(NEAR), open(NEAR));
    sender.change(|options| options.flags |= ECHO | ECHO_OWN).unwrap();
    let before = canter_io::clock::realtime_ns();
    send(&sender, [0x123]);
    let (own, other) = (receive(&sender, 1)[0], receive(&neighbour, 1)[0]);
    assert_eq!((own.can_id, own.flags), (0x123, FRAME_OWN));
    assert_eq!((other.can_id, other.flags), (0x123, FRAME_LOCAL));
    assert!(own.stamp_ns - before >= 630_000, "it was stamped before it was on the bus");
    send(&neighbour, [0x124]);
    neighbour.wait_sent(SECOND_NS).unwrap();
    assert!(nothing_comes(&sender), "an echo that nobody asked for");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn bus_off_is_told_and_ended_by_hand_or_by_itself() {
    let _bench = Bench::new();
    let (near, far, errors) = (open(NEAR), open(FAR), open(NEAR));
    errors.set_filters(&errors_only()).unwrap();
    let class = |frame: &RawFrame| frame.can_id & 0x1ff;
    let report = |state: &str| fs::write(attribute(NEAR, "report"), state).unwrap();
    report("error-warning");
    report("error-passive");
    let came = receive(&errors, 2);
    assert_eq!((class(&came[0]), came[0].data[1]), (0x004, 0x08)); // CAN_ERR_CRTL, TX_WARNING
    assert_eq!((class(&came[1]), came[1].data[1], came[1].data[6]), (0x004, 0x20, 128));
    report("bus-off");
    assert_eq!(class(&receive(&errors, 1)[0]), 0x040);
    assert_eq!(Interface::find(NEAR).unwrap().controller.unwrap().state.unwrap().to_string(), "BUS-OFF");
    send(&near, [0x55]); // waits until the device is back
    assert!(nothing_comes(&far));
    fs::write(attribute(NEAR, "running"), "1").unwrap();
    assert_eq!(class(&receive(&errors, 1)[0]), 0x100); // CAN_ERR_RESTARTED
    assert_eq!(ids(&receive(&far, 1)), [0x55]);
    fs::write(attribute(NEAR, "restart_ms"), "20").unwrap();
    report("bus-off");
    assert_eq!(receive(&errors, 2).iter().map(class).collect::<Vec<_>>(), [0x040, 0x100]);
    let counted = near.statistics().unwrap();
    assert!(counted.bus_off >= 2 && counted.restarts >= 2, "{counted:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_stopped_device_is_an_error_and_what_waited_in_it_is_lost_and_counted() {
    let _bench = Bench::new();
    set_rate(10_000); // a third of a second for all of them
    let (near, sleeper) = (open(NEAR), blocking(NEAR));
    assert_eq!(near.write(&[frame(1); 50]).unwrap(), 50);
    let reader = asleep_in(move || sleeper.read(&mut [RawFrame::default()]).unwrap_err());
    Interface::find(NEAR).unwrap().down().unwrap();
    assert_eq!(reader.join().unwrap().kind(), io::ErrorKind::NetworkDown);
    assert_eq!(near.write(&[frame(1)]).unwrap_err().kind(), io::ErrorKind::NetworkDown);
    let counted = near.statistics().unwrap();
    assert!(counted.file_tx_lost > 0 && counted.file_tx_frames + counted.file_tx_lost == 50, "{counted:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn one_call_looks_at_many_polled_devices() {
    let _bench = Bench::new();
    let (near, far) = (open(NEAR), open(FAR));
    for device in [&near, &far] {
        device.change(|options| options.flags |= POLL_CHIP).unwrap();
    }
    let mut set = [&near, &far].map(|device| PollEntry { fd: device.as_fd().as_raw_fd(), ready: 9 });
    assert_eq!(near.poll_set(&mut set, 0).unwrap(), 0);
    assert_eq!(set.map(|entry| entry.ready), [0, 0]);
    send(&near, [1, 2]);
    assert_eq!(near.poll_set(&mut set, SECOND_NS).unwrap(), 1);
    assert_eq!(set.map(|entry| entry.ready), [0, 2]);
    let began = Instant::now();
    receive(&far, 2);
    assert_eq!(near.poll_set(&mut set, SECOND_NS / 50).unwrap(), 0);
    assert!(began.elapsed() >= Duration::from_millis(20));
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn who_sleeps_beside_one_who_polls_the_chip_is_woken() {
    let _bench = Bench::new();
    let (near, polling, sleeping) = (open(NEAR), blocking(FAR), blocking(FAR));
    polling.change(|options| options.flags |= POLL_CHIP).unwrap();
    send(&near, [1]);
    assert_eq!(polling.read(&mut [RawFrame::default()]).unwrap(), 1); // the interrupt is masked now
    receive(&sleeping, 1);
    let sleeper = asleep_in(move || sleeping.read(&mut [RawFrame::default()]).unwrap());
    send(&near, [2]);
    eventually("the sleeper wakes", || sleeper.is_finished());
    // A hybrid: it polls for a moment and sleeps then.
    polling.change(|options| options.spin_ns = 1_000_000).unwrap();
    receive(&polling, 1);
    let hybrid = asleep_in(move || polling.wait(1, FOREVER).unwrap());
    send(&near, [3]);
    eventually("the hybrid wakes", || hybrid.is_finished());
    assert_eq!(hybrid.join().unwrap(), 1);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn what_comes_while_a_receiver_is_opened_gets_past_no_filter_and_counts_as_no_loss() {
    let _bench = Bench::new();
    let flood = move |stop: &AtomicBool| {
        let near = open(NEAR);
        while !stop.load(Ordering::Acquire) {
            send(&near, 0x200..0x210);
        }
    };
    let flood = Worker::start("flood", flood).unwrap();
    let (far, method) = (Interface::find(FAR).unwrap(), "canchar/spin".parse::<ReceiveMethod>().unwrap());
    let filters: Filters = "123:7FF".parse().unwrap();
    for _ in 0..200 {
        let options = ReceiveOptions { filters: filters.clone(), ..ReceiveOptions::default() };
        let mut receive = method.open(&far, &options).unwrap();
        let mut batch = Batch::new(64);
        receive.receive(&mut batch).unwrap();
        assert_eq!((receive.drops().unwrap(), batch.frames()), (0, &[][..]));
    }
    flood.stop();
}

/// A program of kernel/tests/canchar, built where the host's compiler is.
pub fn build(name: &str, options: &[&str]) -> String {
    let source = format!("{}/../../kernel/tests/canchar/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    let done = Command::new("cc").args(options).args(["-Wall", "-o", &program, &source]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// Runs a program of kernel/tests/canchar on the virtual devices: each of its tests passes, and none is skipped.
fn passes(name: &str, options: &[&str], deadline: Duration) {
    let ended = start(&build(name, options), &[NEAR, FAR]).ended(deadline);
    let intact = !ended.stdout.contains("not ok") && !ended.stdout.contains("# SKIP");
    assert!(ended.code == Some(0) && intact, "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn nonsense_in_rings_and_bad_arguments_do_no_harm() {
    let _bench = Bench::new();
    passes("abuse", &[], 4 * DEADLINE);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn files_of_one_device_do_not_harm_starve_or_delay_each_other() {
    let _bench = Bench::new();
    passes("sharing", &["-pthread"], 8 * DEADLINE);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_card_goes_back_to_the_kernels_driver_with_files_open_and_comes_again() {
    let _bench = Bench::new();
    start_card(CARD, 500_000);
    let (idle, sleeper) = (open(CARD), blocking(CARD));
    let reader = asleep_in(move || sleeper.read(&mut [RawFrame::default()]).unwrap_err());
    bind("\n");
    let gone = io::Error::from_raw_os_error(19).raw_os_error();
    assert_eq!(reader.join().unwrap().raw_os_error(), gone);
    assert_eq!(idle.write(&[frame(1)]).unwrap_err().raw_os_error(), gone);
    assert!(idle.statistics().is_ok(), "what was counted can still be asked");
    eventually("the card is an interface again", || Interface::find("can3").is_ok());
    ip("link set can3 up type can bitrate 500000");
    ip("link set can3 down");
    bind("canchar_kvaser_pci\n");
    // A file from before the card left keeps its error: it does not reach the card that came back.
    eventually("the device is there", || Path::new(CARD).exists());
    start_card(CARD, 500_000);
    assert_eq!(open(CARD).write(&[frame(1)]).unwrap(), 1);
    assert_eq!(idle.write(&[frame(1)]).unwrap_err().raw_os_error(), gone);
    drop(idle);
    assert!(Path::new(CARD).exists());
    assert_eq!(open(CARD).write(&[frame(2)]).unwrap(), 1);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn the_module_stays_as_long_as_a_file_is_open() {
    let _bench = Bench::new();
    let file = open(NEAR);
    let refused = start("rmmod", &["canchar"]).ended(DEADLINE);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(file.statistics().is_ok());
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn pings_are_answered_on_a_device_by_every_pair_of_canchars_methods() {
    let _bench = Bench::new();
    for (receiver, transmitter) in [
        ("canchar", "canchar"),
        ("canchar/poll", "canchar-ring"),
        ("canchar-ring", "canchar"),
        ("canchar-ring/chip-poll", "canchar-ring"),
        ("canchar/adaptive", "canchar"),
        ("canchar-ring/adaptive", "canchar-ring"),
        ("canchar/coalesce", "canchar"),
    ] {
        let method = format!("{receiver}+{transmitter}");
        let mut pong = canter(&["pong", FAR, "--parallel", "3", "--method", &method]);
        pong.until_it_says("answers");
        let ping =
            ["ping", NEAR, "--parallel", "3", "--count", "20", "--flood", "--timeout", "20s", "--json", "-"];
        let pinged = canter(&ping).ended(DEADLINE);
        assert_eq!(pinged.code, Some(0), "{method}: {pinged:?}");
        let ledger = &pinged.json()["series"][0]["ledger"];
        assert_eq!((ledger["sent"].as_u64(), ledger["received"].as_u64()), (Some(60), Some(60)), "{method}");
        pong.signal("INT");
        let ponged = pong.ended(DEADLINE);
        assert_eq!(ponged.code, Some(0), "{method}: {ponged:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn pings_are_answered_between_two_interfaces_and_without_a_pong_the_exit_code_says_so() {
    let _bench = Bench::new();
    for name in ["can0", "can1"] {
        ip(&format!("link set {name} down"));
        ip(&format!("link set {name} up type can bitrate 500000"));
    }
    let alone = canter(&["ping", "can0", "--count", "1", "--timeout", "100ms"]).ended(DEADLINE);
    assert_eq!(alone.code, Some(1), "{alone:?}");
    let pong = canter(&["pong", "can1"]);
    eventually("the pong answers", || {
        canter(&["ping", "can0", "-q", "-c", "1"]).ended(DEADLINE).code == Some(0)
    });
    let pinged =
        canter(&["ping", "can0", "--count", "3", "--interval", "10ms", "--len", "4"]).ended(DEADLINE);
    assert_eq!(pinged.code, Some(0), "{pinged:?}");
    assert_eq!(pinged.stdout.matches("4 bytes: 781 seq=").count(), 3, "{pinged:?}");
    assert!(pinged.stdout.contains("3 frames sent, 3 answered, 0.000% lost"), "{pinged:?}");
    pong.signal("INT");
    assert_eq!(pong.ended(DEADLINE).code, Some(0));
}

/// Gives the card to a driver; an empty line: to the kernel's.
fn bind(driver: &str) {
    fs::write(format!("/sys/bus/pci/devices/{ADDRESS}/driver_override"), driver).unwrap();
    unbind();
    fs::write("/sys/bus/pci/drivers_probe", ADDRESS).unwrap();
}

/// Takes the card away from its driver.
fn unbind() {
    fs::write(format!("/sys/bus/pci/devices/{ADDRESS}/driver/unbind"), ADDRESS).unwrap();
}

/// Gives the card to canchar again, after [`unbind`].
fn bring_back() {
    fs::write("/sys/bus/pci/drivers_probe", ADDRESS).unwrap();
    eventually("the device is there", || Path::new(CARD).exists());
}

/// A card with a bit rate, started.
fn start_card(name: &str, bitrate: u32) {
    let mut card = Interface::find(name).unwrap();
    card.down().unwrap();
    card.set_bit_timing(&BitTiming::classic(bitrate)).unwrap();
    card.up().unwrap();
}

/// The result of a study with this `[latency]` on cards with the exact instrument.
pub fn measured(latency: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exact.toml");
    let lab = "[lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\ncpus = 1\nbus = \"probe\"\n";
    let head = "name = \"exact\"\ntitle = \"A test\"\nsource = \"\"\n";
    fs::write(&file, format!("{head}{lab}[latency]\n{latency}")).unwrap();
    let ended = canter(&["study", "inside", file.to_str().unwrap()]).ended(STUDY_DEADLINE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let events = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    testbed::series(&events.collect::<Vec<_>>())
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn how_long_a_handler_runs_is_told_of_each_driver_and_of_none_that_never_runs() {
    let _bench = Bench::new();
    let handler = |end: &str| {
        let plan = format!(
            "methods = [\"can-gw\", \"canchar+canchar\"]\nlens = [8]\ncount = 20\nhandler = \"{end}\"\n"
        );
        let series = measured(&plan);
        assert!(series.iter().all(|one| one["quantity"] == "handler time"), "{series:?}");
        assert!(series.iter().all(|one| one["ledger"]["received"] == 20), "{series:?}");
        series
    };
    let ran = |one: &Value, what: &str| one["latency_ns"][what].as_u64();
    let never_ran = |one: &Value| {
        ran(one, "count").is_none() && one["unavailable"].as_str().unwrap().contains("never ran")
    };
    let ran_each_time = |one: &Value| ran(one, "count") == Some(20) && ran(one, "min") > Some(100);
    // The kernel's driver has a thread there, and what wakes it is not its handler; canchar's card has none.
    let realtime = fs::read_to_string("/proc/version").unwrap().contains("PREEMPT_RT");
    let [socket, device] = &handler("input")[..] else { panic!("two methods") };
    assert!(if realtime { never_ran(socket) } else { ran_each_time(socket) }, "{socket}");
    assert!(ran_each_time(device), "an interrupt a frame: {device}");
    // Nothing waits behind these frames, so canchar does not ask to hear that they have left.
    let [socket, device] = &handler("output")[..] else { panic!("two methods") };
    assert!(if realtime { never_ran(socket) } else { ran_each_time(socket) }, "{socket}");
    assert!(never_ran(device), "{device}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_handler_that_cannot_be_watched_is_refused_in_a_line() {
    let _bench = Bench::new();
    let probe = ["latency", "--instrument", "probe", "--send", "can0", "--routed", "can2", "--handler"];
    for (card, code, why) in [("can0", 2, "is a card of the instrument"), ("can77", 1, "can77: find")] {
        let ended = canter(&[&probe[..], &[card]].concat()).ended(DEADLINE);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(why) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
    let ended =
        canter(&["latency", "--send", "can0", "--routed", "can2", "--handler", "can3"]).ended(DEADLINE);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("needs --instrument probe"), "{}", ended.stderr);
}

/// The case of the 2010 paper: a controller's FIFO holds five frames of 8 bytes, and six come before a program reads.
#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn of_a_burst_of_six_frames_a_fifo_of_five_loses_the_sixth() {
    let _bench = Bench::new();
    [CARD, OTHER_CARD].iter().for_each(|card| start_card(card, 1_000_000));
    let mut gateway = canter(&["gateway", CARD, OTHER_CARD, "--method", "canchar+canchar"]);
    gateway.until_it_says("Ctrl-C ends it");
    for (burst, lost) in [(5, 0), (6, 10)] {
        // Far apart: two that came together would be too many for the instrument too.
        let traffic = format!("burst={burst}/100ms");
        let count = (10 * burst).to_string();
        let words = ["latency", "--instrument", "probe", "--send", "can0", "--routed", "can2", "--len", "8"];
        let more = ["--traffic", &traffic, "--count", &count, "--json", "-"];
        let result = canter(&[&words[..], &more].concat()).ended(STUDY_DEADLINE).json();
        let ledger = &result["series"][0]["ledger"];
        let lost_frames: u64 = ledger["lost"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!((lost_frames, &ledger["sent"]), (lost, &(10 * burst).into()), "{ledger}");
    }
    gateway.signal("TERM");
    gateway.ended(DEADLINE);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn what_a_frame_costs_is_measured_on_two_devices_beside_sockets() {
    let _bench = Bench::new();
    let pair = format!("{NEAR},{FAR}");
    let words =
        ["syscalls", "--interface", &pair, "--frames", "64", "--queue", "32", "--batch", "32", "--json", "-"];
    let costs = canter(&words).ended(DEADLINE).json();
    let measured =
        |name: &str| costs["series"].as_array().unwrap().iter().filter(|one| one["method"] == name).count();
    assert_eq!((measured("canchar"), measured("canchar-ring"), measured("write")), (2, 2, 1), "{costs}");
}
