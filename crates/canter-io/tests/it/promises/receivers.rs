//! What every receiver must do.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use canter_io::batch::{Clock, Origin};
use canter_io::filter::INVERSE;
use canter_io::frame::{EFF_FLAG, EFF_MASK, ERR_FLAG, RTR_FLAG};
use canter_io::method::{
    Echo, Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions,
};
use canter_io::{Batch, Filter, Filters, Frame, Interface};
use canter_io::{clock, poll, thread, thread::Worker};

use super::Sentence;
use super::frames::{Random, every_shape, numbered, of_few_identifiers, sequence, without_data};
use super::links::{Link, assert_frames, assert_nothing_comes, receive_all, send_by};

pub const SENTENCES: &[Sentence<ReceiveMethod>] = super::sentences![
    everywhere: frames_of_every_shape_arrive_in_order_and_unchanged,
    everywhere: a_batch_takes_what_fits_and_the_rest_comes_with_the_next_call,
    everywhere: a_full_batch_takes_nothing_and_loses_nothing,
    everywhere: filters_pass_what_matches_says,
    everywhere: error_frames_come_only_when_asked_for,
    everywhere: stamps_are_of_the_right_clock_and_never_run_back,
    everywhere: every_frame_names_its_interface,
    everywhere: a_frame_of_the_bus_is_told_from_one_of_this_machine,
    with_kernel: what_a_receivers_own_socket_sends_comes_only_when_asked_for,
    everywhere: a_full_queue_loses_frames_and_counts_them_at_once,
    has_descriptors: its_descriptor_is_readable_when_a_frame_waits,
    everywhere: a_frame_ends_the_wait,
    everywhere: a_worker_that_waits_stops_when_told,
    with_kernel: an_interface_that_goes_down_ends_the_wait_with_an_error,
    with_kernel: frames_that_came_before_the_interface_went_down_come_before_the_error,
    with_kernel: frames_come_again_when_the_interface_is_up_again,
    is_virtual: an_interface_that_disappears_ends_the_wait_with_an_error,
    is_virtual: opening_on_an_interface_that_has_gone_is_an_error,
    echoes: a_ring_hears_what_a_ring_sends_on_its_interface_only_when_asked_to,
    with_kernel: nobody_here_hears_what_is_sent_without_echo,
];

/// How soon a wait must end. The machine may be slow; a wait that does not end takes for ever.
const SOON: Duration = Duration::from_secs(1);
/// Long enough for a worker to be in its wait, most likely.
const ASLEEP: Duration = Duration::from_millis(20);

fn with_stamps() -> ReceiveOptions {
    ReceiveOptions { stamps: true, ..ReceiveOptions::default() }
}

fn frames_of<T>(received: &[(Frame, T)]) -> Vec<Frame> {
    received.iter().map(|(frame, _)| *frame).collect()
}

fn frames_of_every_shape_arrive_in_order_and_unchanged(method: ReceiveMethod, link: &Link) {
    for options in [ReceiveOptions::default(), with_stamps()] {
        let mut receiver = link.receiver(method, &options);
        for frames in every_shape(link).chunks(100) {
            link.send(frames);
            let came = receive_all(link, receiver.as_mut(), frames.len());
            assert_frames(&frames_of(&came), frames);
        }
        assert_nothing_comes(link, receiver.as_mut());
    }
}

fn a_batch_takes_what_fits_and_the_rest_comes_with_the_next_call(method: ReceiveMethod, link: &Link) {
    let mut receiver = link.receiver(method, &ReceiveOptions::default());
    let frames = sequence(link, 10);
    link.send(&frames);
    let mut came = Vec::new();
    while came.len() < frames.len() {
        let mut batch = Batch::new(4);
        batch.push(&numbered(99), canter_io::Meta::default()); // of an earlier call
        let count = receiver.receive(&mut batch).unwrap();
        assert!(count <= 3 && batch.len() == 1 + count, "{count} frames in room for 3");
        assert_eq!(batch.frames()[0], numbered(99));
        came.extend_from_slice(&batch.frames()[1..]);
    }
    assert_frames(&came, &frames);
}

fn a_full_batch_takes_nothing_and_loses_nothing(method: ReceiveMethod, link: &Link) {
    let mut receiver = link.receiver(method, &ReceiveOptions::default());
    let mut full = Batch::new(1);
    full.push(&numbered(99), canter_io::Meta::default());
    assert_eq!(receiver.receive(&mut full).unwrap(), 0); // and does not wait
    let frames = sequence(link, 3);
    link.send(&frames);
    assert_eq!(receiver.receive(&mut full).unwrap(), 0);
    assert_frames(full.frames(), &[numbered(99)]);
    assert_frames(&frames_of(&receive_all(link, receiver.as_mut(), 3)), &frames);
}

fn filters_pass_what_matches_says(method: ReceiveMethod, link: &Link) {
    let mut random = Random::new(2014);
    let mut sets: Vec<Filters> = [
        "",
        "123:7FF",
        "123:C00007FF",
        "123~7FF",
        "123:7FF,124:7FF",
        "100:700,23:0FF,j",
        "12345678:DFFFFFFF",
        "040000123:C00007FF",
        "#FFFFFFFF",
        "0~0,#FFFFFFFF",
        "123:7FF,#00000004",
        "100:700,23:0FF,j,#FFFFFFFF",
    ]
    .map(|text| text.parse().unwrap())
    .into();
    sets.extend((0..4).map(|_| random_filters(&mut random)));
    let frames = of_few_identifiers(link, &mut random, 40);

    let open = |filters: &Filters| {
        let options =
            ReceiveOptions { filters: filters.clone(), queue_frames: Some(200), ..Default::default() };
        link.receiver(method, &options)
    };
    let mut receivers: Vec<_> = sets.iter().map(open).collect();
    link.send(&frames);
    for (filters, receiver) in sets.iter().zip(&mut receivers) {
        let expected: Vec<_> = frames.iter().filter(|frame| filters.matches(frame)).copied().collect();
        let came = frames_of(&receive_all(link, receiver.as_mut(), expected.len()));
        assert!(came == expected, "{filters}: {came:?} came, should be {expected:?}");
    }
    for receiver in &mut receivers {
        assert_nothing_comes(link, receiver.as_mut());
    }
}

fn random_filters(random: &mut Random) -> Filters {
    let filter = |random: &mut Random| Filter {
        id: random.pick(&[0x123, 0x124, 0x100, 0x7ff, 0x1234_5678])
            | random.pick(&[0, EFF_FLAG, RTR_FLAG])
            | random.pick(&[0, 0, INVERSE]),
        mask: random.pick(&[0x7ff, 0x700, 0x0ff, EFF_MASK, 1])
            | random.pick(&[0, EFF_FLAG, EFF_FLAG | RTR_FLAG]),
    };
    let count = random.below(5);
    Filters {
        list: (0..count).map(|_| filter(random)).collect(),
        error_mask: random.pick(&[0, 0, 0x4, EFF_MASK]),
        join: random.below(3) == 0,
    }
}

fn error_frames_come_only_when_asked_for(method: ReceiveMethod, link: &Link) {
    if !link.carries_error_frames() {
        return;
    }
    let mut plain = link.receiver(method, &ReceiveOptions::default());
    let filters = Filters { error_mask: EFF_MASK, ..Filters::default() };
    let mut asking = link.receiver(method, &ReceiveOptions { filters, ..ReceiveOptions::default() });
    let error = without_data(ERR_FLAG | 0x4);
    let frames = [error, numbered(1)];
    link.send(&frames);
    assert_frames(&frames_of(&receive_all(link, plain.as_mut(), 1)), &frames[1..]);
    assert_frames(&frames_of(&receive_all(link, asking.as_mut(), 2)), &frames);
}

fn stamps_are_of_the_right_clock_and_never_run_back(method: ReceiveMethod, link: &Link) {
    let mut receiver = link.receiver(method, &with_stamps());
    let before = clock::realtime_ns();
    link.send(&sequence(link, 20));
    let came = receive_all(link, receiver.as_mut(), 20);
    let within = if link.with_kernel() { before..=clock::realtime_ns() } else { 1..=u64::MAX };
    let expected = if link.with_kernel() { Clock::Software } else { Clock::Simulated };
    let mut earlier = 0;
    for (_, meta) in &came {
        assert_eq!(meta.clock, expected);
        assert!(within.contains(&meta.stamp_ns), "{} is not within {within:?}", meta.stamp_ns);
        assert!(meta.stamp_ns >= earlier, "{} comes after {earlier}", meta.stamp_ns);
        earlier = meta.stamp_ns;
    }
}

fn every_frame_names_its_interface(method: ReceiveMethod, link: &Link) {
    for options in [ReceiveOptions::default(), with_stamps()] {
        let mut receiver = link.receiver(method, &options);
        link.send(&sequence(link, 3));
        for (_, meta) in receive_all(link, receiver.as_mut(), 3) {
            assert_eq!(meta.interface, link.far().index);
        }
    }
}

fn a_frame_of_the_bus_is_told_from_one_of_this_machine(method: ReceiveMethod, link: &Link) {
    let tells = method.row.capabilities.origin;
    let mut receiver = link.receiver(method, &with_stamps());
    link.send(&[numbered(1)]);
    let [(_, from_near)] = receive_all(link, receiver.as_mut(), 1)[..] else { panic!("one frame") };
    let one_interface = link.with_kernel() && link.near().index == link.far().index;
    let expected = if one_interface { Origin::Local } else { Origin::Bus };
    assert_eq!(from_near.origin, if tells { expected } else { Origin::Unknown });
    if !link.with_kernel() {
        return;
    }

    // The far end's own echo; a vxcan's and a driver's differ in how they come about.
    let mut here = open_transmitter(link.plain_transmitters()[0], &link.far(), Echo::On);
    assert_eq!(here.transmit(&[numbered(2)]).unwrap(), 1);
    let [(frame, from_here)] = receive_all(link, receiver.as_mut(), 1)[..] else { panic!("one frame") };
    assert_eq!(frame, numbered(2));
    assert_eq!(from_here.origin, if tells { Origin::Local } else { Origin::Unknown });

    let mut plain = link.receiver(method, &ReceiveOptions::default());
    link.send(&[numbered(3)]);
    let [(_, meta)] = receive_all(link, plain.as_mut(), 1)[..] else { panic!("one frame") };
    assert_eq!(meta.origin, Origin::Unknown);
}

fn what_a_receivers_own_socket_sends_comes_only_when_asked_for(method: ReceiveMethod, link: &Link) {
    if !method.row.capabilities.origin || method.row.name == "canchar-ring" {
        return; // nobody can write to a mapped file, and what the socket of a ring sends takes the way of all frames of this machine
    }
    for own_frames in [false, true] {
        let mut receiver = link.receiver(method, &ReceiveOptions { own_frames, ..with_stamps() });
        send_by(link, receiver.descriptor().unwrap(), &numbered(1));
        link.settle();
        link.send(&[numbered(2)]);
        let came = receive_all(link, receiver.as_mut(), 1 + usize::from(own_frames));
        let own = came.iter().filter(|(_, meta)| meta.origin == Origin::Own);
        assert_eq!(own.count(), usize::from(own_frames));
        let expected = [numbered(1), numbered(2)];
        assert_frames(&frames_of(&came), &expected[usize::from(!own_frames)..]);
    }
}

fn a_full_queue_loses_frames_and_counts_them_at_once(method: ReceiveMethod, link: &Link) {
    const QUEUE: u32 = 32;
    let options = ReceiveOptions { queue_frames: Some(QUEUE), ..ReceiveOptions::default() };
    for options in [ReceiveOptions { stamps: true, ..options.clone() }, options] {
        let mut receiver = link.receiver(method, &options);
        assert_eq!(receiver.drops().unwrap(), 0);
        let mut lost = 0;
        for sent in [50, 70] {
            let frames = sequence(link, sent);
            link.send(&frames);
            let now_lost = receiver.drops().unwrap();
            let came = frames.len() - (now_lost - lost) as usize;
            assert!(came >= QUEUE as usize, "a queue for {QUEUE} frames holds {came}");
            assert!(now_lost > lost, "a queue for {QUEUE} frames holds {sent}");
            lost = now_lost;
            assert_frames(&frames_of(&receive_all(link, receiver.as_mut(), came)), &frames[..came]);
            assert_nothing_comes(link, receiver.as_mut());
            assert_eq!(receiver.drops().unwrap(), lost);
        }
    }
}

fn its_descriptor_is_readable_when_a_frame_waits(method: ReceiveMethod, link: &Link) {
    let mut receiver = link.receiver(method, &ReceiveOptions::default());
    let ready = |receiver: &dyn Receive, timeout: Duration| {
        poll::readable(&[receiver.descriptor().unwrap()], Some(timeout.as_nanos() as u64)).unwrap()
    };
    assert_eq!(ready(receiver.as_ref(), Duration::ZERO), 0);
    link.send(&[numbered(1)]);
    assert_eq!(ready(receiver.as_ref(), SOON), 1);
    receive_all(link, receiver.as_mut(), 1);
    assert_eq!(ready(receiver.as_ref(), Duration::ZERO), 0);
}

/// A worker that receives until it is told to stop or an error comes; it sends every frame into the channel.
fn receiving(mut receiver: Box<dyn Receive>) -> (Worker<Option<io::Error>>, mpsc::Receiver<Frame>) {
    let (sender, arrivals) = mpsc::channel();
    let worker = Worker::start("receiver", move |stop| {
        let _ = thread::pin(1);
        let mut batch = Batch::new(16);
        while !stop.load(Ordering::Acquire) {
            batch.clear();
            match receiver.receive(&mut batch) {
                Ok(_) => batch.frames().iter().for_each(|frame| sender.send(*frame).unwrap()),
                Err(error) => return Some(error),
            }
        }
        None
    })
    .unwrap();
    std::thread::sleep(ASLEEP); // so that most of them sleep in the call by then; one that does not must work too
    (worker, arrivals)
}

fn a_frame_ends_the_wait(method: ReceiveMethod, link: &Link) {
    let (worker, arrivals) = receiving(link.receiver(method, &ReceiveOptions::default()));
    for frame in sequence(link, 3) {
        assert_eq!(arrivals.try_recv().ok(), None);
        link.send(&[frame]);
        assert_eq!(arrivals.recv_timeout(SOON).unwrap(), frame);
        std::thread::sleep(ASLEEP); // as above
    }
    assert!(worker.stop().is_none());
}

fn a_worker_that_waits_stops_when_told(method: ReceiveMethod, link: &Link) {
    for options in [ReceiveOptions::default(), with_stamps()] {
        let (worker, _arrivals) = receiving(link.receiver(method, &options));
        let asked = Instant::now();
        let error = worker.stop();
        assert!(error.is_none(), "a signal is no error: {error:?}");
        assert!(asked.elapsed() < SOON, "stopped {:?} after it was told to", asked.elapsed());
    }
}

/// The error that ends a receiving worker soon.
fn its_end(worker: Worker<Option<io::Error>>, arrivals: &mpsc::Receiver<Frame>) -> Option<i32> {
    let ended = arrivals.recv_timeout(SOON);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it still waits");
    worker.stop().unwrap().raw_os_error()
}

fn an_interface_that_goes_down_ends_the_wait_with_an_error(method: ReceiveMethod, link: &Link) {
    for options in [ReceiveOptions::default(), with_stamps()] {
        let (worker, arrivals) = receiving(link.receiver(method, &options));
        link.far().down().unwrap();
        assert_eq!(its_end(worker, &arrivals), Some(libc::ENETDOWN));
        link.make_ready();
    }
}

fn frames_that_came_before_the_interface_went_down_come_before_the_error(method: ReceiveMethod, link: &Link) {
    for (options, room) in [(ReceiveOptions::default(), 2), (with_stamps(), 16)] {
        let mut receiver = link.receiver(method, &options);
        let frames = sequence(link, 4);
        link.send(&frames);
        link.far().down().unwrap();
        let (mut came, mut batch) = (Vec::new(), Batch::new(room));
        let (deadline, mut end) = (Instant::now() + SOON, None);
        while end.is_none() && Instant::now() < deadline {
            batch.clear();
            end = receiver.receive(&mut batch).err();
            came.extend_from_slice(batch.frames());
        }
        assert_eq!(end.and_then(|error| error.raw_os_error()), Some(libc::ENETDOWN));
        assert_frames(&came, &frames);
        link.make_ready();
    }
}

fn frames_come_again_when_the_interface_is_up_again(method: ReceiveMethod, link: &Link) {
    let mut receiver = link.receiver(method, &ReceiveOptions::default());
    link.far().down().unwrap();
    let (deadline, mut batch) = (Instant::now() + SOON, Batch::new(4));
    while receiver.receive(&mut batch).is_ok() {
        assert!(Instant::now() < deadline, "no error");
    }
    link.make_ready();
    link.send(&[numbered(1)]);
    assert_frames(&frames_of(&receive_all(link, receiver.as_mut(), 1)), &[numbered(1)]);
}

fn an_interface_that_disappears_ends_the_wait_with_an_error(method: ReceiveMethod, link: &Link) {
    let link = link.another();
    let (worker, arrivals) = receiving(link.receiver(method, &ReceiveOptions::default()));
    link.far().delete().unwrap();
    let end = its_end(worker, &arrivals);
    assert!(matches!(end, Some(libc::ENETDOWN | libc::ENODEV)), "{end:?}");
}

fn opening_on_an_interface_that_has_gone_is_an_error(method: ReceiveMethod, link: &Link) {
    let link = link.another();
    let far = link.far();
    far.clone().delete().unwrap();
    let Err(error) = method.open(&far, &ReceiveOptions::default()) else { panic!("it opened") };
    assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{error}");
}

fn open_transmitter(name: &str, interface: &Interface, echo: Echo) -> Box<dyn Transmit> {
    let method: TransmitMethod = name.parse().unwrap();
    method.open(interface, &TransmitOptions { echo, ..TransmitOptions::default() }).unwrap()
}

fn a_ring_hears_what_a_ring_sends_on_its_interface_only_when_asked_to(method: ReceiveMethod, link: &Link) {
    if method.row.name != "ring" {
        return;
    }
    for echoes in [false, true] {
        let mut receiver = link.receiver(method, &ReceiveOptions { echoes, ..ReceiveOptions::default() });
        let mut sender = open_transmitter("ring", &link.far(), Echo::Auto);
        assert_eq!(sender.transmit(&[numbered(1)]).unwrap(), 1);
        sender.flush().unwrap();
        link.settle();
        link.send(&[numbered(2)]);
        let came = receive_all(link, receiver.as_mut(), 1 + usize::from(echoes));
        let expected = [numbered(1), numbered(2)];
        assert_frames(&frames_of(&came), &expected[usize::from(!echoes)..]);
    }
}

fn nobody_here_hears_what_is_sent_without_echo(method: ReceiveMethod, link: &Link) {
    for name in link.plain_transmitters() {
        let mut receiver = link.receiver(method, &ReceiveOptions::default());
        let mut sender = open_transmitter(name, &link.far(), Echo::Off);
        assert_eq!(sender.transmit(&[numbered(1)]).unwrap(), 1);
        link.settle();
        link.send(&[numbered(2)]);
        assert_frames(&frames_of(&receive_all(link, receiver.as_mut(), 1)), &[numbered(2)]);
        assert_nothing_comes(link, receiver.as_mut());
    }
}
