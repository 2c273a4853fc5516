//@ machine: --fd-cards 1
//! Interfaces and can-gw jobs against a kernel, with iproute2 and cangw as the second opinion.
//!
//! Each test makes interfaces of its own names, so that they may run in any order; can-gw's list is one for all, so
//! run them with `--test-threads=1`.

use crate::skip::skip;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use canter_io::Filter;
use canter_io::interface::{BitTiming, Interface, Kind, Modes, State};
use canter_io::netlink::can_gw::{
    self, CanGateway, Crc8, Job, JobCounters, Modification, Profile, Span, Xor,
};

/// What a command prints.
fn output(command: &str) -> String {
    let mut words = command.split_whitespace();
    let done = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A value of `ip`'s JSON, as it stands there: good enough for numbers and words.
fn ip_says(name: &str, key: &str) -> String {
    let json = output(&format!("ip -j -d -s link show {name}"));
    let after = json.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {json}")).1;
    let end = after.find([',', '}', ']']).unwrap();
    after[..end].trim_start_matches('[').trim_matches('"').to_owned()
}

/// `IFF_RUNNING` comes from a work queue, up to a second after up.
fn wait_until_running(interface: &mut Interface) {
    for _ in 0..300 {
        if interface.running {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
        interface.refresh().unwrap();
    }
    panic!("{} does not run after 3 s", interface.name);
}

/// A vcan that is up, deleted at the end of the test.
struct Vcan(Interface);

impl Vcan {
    fn new(name: &str) -> Self {
        let mut interface = Interface::create_vcan(name).unwrap();
        interface.up().unwrap();
        Self(interface)
    }
}

impl Drop for Vcan {
    fn drop(&mut self) {
        let _ = self.0.clone().delete();
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_vcan_is_created_brought_up_counted_and_deleted() {
    let mut vcan = Interface::create_vcan("nl0").unwrap();
    assert_eq!((vcan.kind.clone(), vcan.up, vcan.running, vcan.echo), (Kind::Vcan, false, false, false));
    assert_eq!((vcan.driver.clone(), vcan.peer, vcan.controller.clone()), (None, None, None));
    assert_eq!(vcan.mtu.to_string(), ip_says("nl0", "mtu"));
    vcan.set_mtu(72).unwrap();
    assert!(vcan.supports_fd());
    vcan.up().unwrap();
    wait_until_running(&mut vcan);
    assert!(vcan.up);
    assert_eq!(vcan.index.to_string(), ip_says("nl0", "ifindex"));
    assert_eq!(vcan.qdisc, ip_says("nl0", "qdisc"));

    let before = vcan.counters().unwrap();
    output("cansend nl0 123#1122");
    output("cansend nl0 124##1112233445566778899AABBCC");
    let sent = vcan.counters().unwrap().since(&before);
    assert_eq!((sent.tx_frames, sent.tx_bytes, sent.tx_dropped, sent.tx_errors), (2, 14, 0, 0));
    assert_eq!((sent.rx_frames, sent.rx_bytes), (2, 14));

    let busy = vcan.set_mtu(16).unwrap_err();
    assert_eq!(
        busy.to_string(),
        "nl0: set mtu: device or resource busy (bring it down first: ip link set nl0 down)"
    );
    vcan.down().unwrap();
    assert!(!vcan.up);
    vcan.set_mtu(16).unwrap();
    assert!(!vcan.supports_fd());
    vcan.delete().unwrap();
    assert_eq!(Interface::find("nl0").unwrap_err().source.raw_os_error(), Some(libc::ENODEV));
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn the_two_ends_of_a_vxcan_know_each_other_and_go_together() {
    let mut near = Interface::create_vxcan("nlx0", "nlx1").unwrap();
    let mut far = Interface::find("nlx1").unwrap();
    assert_eq!((near.kind.clone(), near.peer, far.peer), (Kind::Vxcan, Some(far.index), Some(near.index)));
    near.up().unwrap();
    far.up().unwrap();
    let before = far.counters().unwrap();
    output("cansend nlx0 123#112233");
    let came = far.counters().unwrap().since(&before);
    assert_eq!((came.rx_frames, came.rx_bytes, came.tx_frames), (1, 3, 0));
    near.delete().unwrap();
    assert!(Interface::find("nlx1").is_err());
    assert_eq!(far.refresh().unwrap_err().source.raw_os_error(), Some(libc::ENODEV));
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn errors_name_the_way_out() {
    let vcan = Vcan::new("nl1");
    let error = Interface::find("can99").unwrap_err().to_string();
    assert!(
        error.starts_with("can99: find: no such device (CAN interfaces: can0, can1, can2, can3, can4"),
        "{error}"
    );
    let error = Interface::create_vcan("nl1").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(error.to_string().starts_with("nl1: create: file exists ("), "{error}");
    let error = Interface::find("can0").unwrap().delete().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    let error = vcan.0.clone().set_bit_timing(&BitTiming::classic(500_000)).unwrap_err();
    assert_eq!(error.to_string(), "nl1: set bit rate: a vcan has no bit rate");
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn every_can_interface_is_listed_with_what_it_is() {
    let _vcan = Vcan::new("nl2");
    let interfaces = Interface::list().unwrap();
    let named = |name: &str| interfaces.iter().find(|interface| interface.name == name).unwrap();
    assert_eq!(named("nl2").kind, Kind::Vcan);
    let can0 = named("can0");
    assert_eq!(Interface::by_index(can0.index).unwrap().name, "can0");
    assert_eq!(Interface::by_index(1).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!((can0.kind.clone(), can0.driver.as_deref(), can0.echo), (Kind::Can, Some("kvaser_pci"), true));
    let controller = can0.controller.as_ref().unwrap();
    assert_eq!(controller.chip, "sja1000");
    assert_eq!(controller.clock_hz.to_string(), ip_says("can0", "clock"));
    assert!(interfaces.iter().all(|interface| interface.name != "lo"));
    assert_eq!(Interface::find("lo").unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_controllers_bit_rate_and_modes_are_set_and_read_as_ip_reads_them() {
    let mut can0 = Interface::find("can0").unwrap();
    can0.down().unwrap();
    let state = |interface: &Interface| interface.controller.as_ref().unwrap().state;
    assert_eq!(state(&can0), Some(State::Stopped));
    can0.set_bit_timing(&BitTiming {
        sample_point: Some(750),
        restart_ms: 100,
        listen_only: true,
        ..BitTiming::classic(250_000)
    })
    .unwrap();
    let controller = can0.controller.clone().unwrap();
    assert_eq!(
        (controller.timing.bitrate, controller.timing.sample_point, controller.restart_ms),
        (250_000, 750, 100)
    );
    assert_eq!(controller.modes, Modes::LISTEN_ONLY);
    assert_eq!(ip_says("can0", "bitrate"), "250000");
    assert_eq!(ip_says("can0", "sample_point"), "0.750");
    assert_eq!(ip_says("can0", "restart_ms"), "100");
    assert_eq!(ip_says("can0", "ctrlmode"), "LISTEN-ONLY");
    assert_eq!(ip_says("can0", "tq"), controller.timing.time_quantum_ns.to_string());

    can0.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
    assert_eq!((can0.bitrate(), can0.data_bitrate()), (Some(1_000_000), None));
    assert_eq!(can0.controller.as_ref().unwrap().modes, Modes::default());
    can0.set_tx_queue_len(100).unwrap();
    assert_eq!((can0.tx_queue_len, ip_says("can0", "txqlen").as_str()), (100, "100"));
    can0.up().unwrap();
    wait_until_running(&mut can0);
    assert_eq!((state(&can0), can0.up), (Some(State::ErrorActive), true));
    assert_eq!(state(&can0).unwrap().to_string(), ip_says("can0", "state"));
    assert_eq!(can0.qdisc, ip_says("can0", "qdisc"));

    let busy = can0.set_bit_timing(&BitTiming::classic(500_000)).unwrap_err();
    assert_eq!(busy.source.raw_os_error(), Some(libc::EBUSY));
    assert!(busy.to_string().contains("ip link set can0 down"), "{busy}");
    can0.down().unwrap();
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn what_a_controller_cannot_do_is_refused_with_a_reason() {
    let mut can2 = Interface::find("can2").unwrap();
    can2.down().unwrap();
    let unset = can2.bitrate().is_none();
    if unset {
        let error = can2.up().unwrap_err().to_string();
        println!("{error}");
        assert!(error.contains("set a bit rate first"), "{error}");
    }
    let error = can2.set_bit_timing(&BitTiming::classic(7)).unwrap_err();
    println!("{error}");
    assert!(error.to_string().contains("its clock of 8000000 Hz cannot produce 7 bit/s"), "{error}");
    let error = can2.set_bit_timing(&BitTiming::fd(500_000, 2_000_000)).unwrap_err();
    println!("{error}");
    assert_eq!(error.source.raw_os_error(), Some(libc::EOPNOTSUPP));
    assert!(error.to_string().contains("the controller does not have FD"), "{error}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_frame_on_the_bus_is_counted_at_both_controllers() {
    let mut ends = ["can0", "can1"].map(|name| Interface::find(name).unwrap());
    for end in &mut ends {
        end.down().unwrap();
        end.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
        end.up().unwrap();
    }
    let before = ends.each_ref().map(|end| end.counters().unwrap());
    for _ in 0..5 {
        output("cansend can0 123#1122334455667788");
    }
    let counted = || std::array::from_fn(|at| ends[at].counters().unwrap().since(&before[at]));
    let [mut sender, mut receiver] = counted();
    let deadline = Instant::now() + Duration::from_secs(30);
    while (sender.tx_frames, receiver.rx_frames) != (5, 5) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        [sender, receiver] = counted();
    }
    assert_eq!((sender.tx_frames, sender.tx_bytes, receiver.rx_frames, receiver.rx_bytes), (5, 40, 5, 40));
    assert_eq!((receiver.rx_errors, receiver.rx_over_errors, receiver.bus_off), (0, 0, 0));
    for end in &mut ends {
        end.down().unwrap();
    }
}

/// Two vcan, with no can-gw job anywhere before and after.
struct Route {
    from: Vcan,
    to: Vcan,
}

impl Route {
    fn new() -> Self {
        can_gw::available().unwrap();
        can_gw::flush().unwrap();
        Self { from: Vcan::new("gwa"), to: Vcan::new("gwb") }
    }

    /// The plain job between them; echoing, so that candump sees what it forwards.
    fn job(&self) -> Job {
        Job { echo: true, ..Job::between(self.from.0.index, self.to.0.index) }
    }

    /// What candump sees on the far side after cansend on the near side; empty when nothing came. A frame that comes is
    /// there before the second of two frames sent on the far side itself, the first of which candump has seen.
    fn forwards(&self, frame: &str) -> String {
        const LAST: &str = "1FFFFFFF#";
        let mut dump = Command::new("candump");
        dump.args(["-L", "gwb"]).stdout(Stdio::piped());
        let mut dump = dump.spawn().unwrap();
        let listens = || {
            let lists = std::fs::read_to_string("/proc/net/can/rcvlist_all").unwrap();
            lists.lines().any(|line| line.split_whitespace().next() == Some("gwb"))
        };
        while !listens() {
            assert!(dump.try_wait().unwrap().is_none(), "candump has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        output(&format!("cansend gwa {frame}"));
        let mut lines = BufReader::new(dump.stdout.take().unwrap()).lines();
        let mut came = String::new();
        for _ in 0..2 {
            output(&format!("cansend gwb {LAST}"));
            loop {
                let line = lines.next().expect("candump sees what is sent on its interface").unwrap();
                match line.split_whitespace().nth(2).unwrap() {
                    LAST => break,
                    frame => came += frame,
                }
            }
        }
        dump.kill().unwrap();
        dump.wait().unwrap();
        came
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        let _ = can_gw::flush();
    }
}

fn installed() -> Vec<Job> {
    can_gw::list().unwrap().into_iter().map(|installed| installed.job).collect()
}

/// What `cangw -L` prints; its exit code means nothing.
fn cangw_list() -> String {
    String::from_utf8(Command::new("cangw").arg("-L").output().unwrap().stdout).unwrap()
}

/// The job as cangw puts it, the part behind `cangw -A` without its counters, and as we do.
fn same_jobs(route: &Route) -> Vec<(String, Job)> {
    let plain = Job { echo: false, ..route.job() };
    let data = |byte: u8, bytes: usize| Modification::from_data(&vec![byte; bytes]);
    let table: [u8; 256] = std::array::from_fn(|at| (at * 7) as u8);
    let text: String = table.iter().map(|byte| format!("{byte:02X}")).collect();
    let crc8 = Crc8 { init: 0x12, final_xor: 0x34, table, ..Crc8::with_polynomial(0, Span::new(0, 6, 7)) };
    let ab = "AB".repeat(64);
    [
        (String::new(), plain.clone()),
        (
            "-e -t -f 123:C00007FF".into(),
            Job {
                echo: true,
                keep_stamp: true,
                filter: Some(Filter { id: 0x123, mask: 0xc000_07ff }),
                ..plain.clone()
            },
        ),
        (
            "-f 123~7FF".into(),
            Job {
                filter: Some(Filter { id: 0x123 | canter_io::filter::INVERSE, mask: 0x7ff }),
                ..plain.clone()
            },
        ),
        ("-l 1".into(), Job { hops_max: Some(1), ..plain.clone() }),
        (
            "-m AND:I:7F0.0.0000000000000000 -m OR:L:000.4.0000000000000000 -m XOR:D:000.0.ABABABABABABABAB"
                .into(),
            Job {
                and: Modification::from_id(0x7f0),
                or: Modification { len: Some(4), ..Default::default() },
                xor: data(0xab, 8),
                ..plain.clone()
            },
        ),
        (
            "-u 1F -m SET:ILD:333.4.ABABABABABABABAB -x 0:3:-1:A5".into(),
            Job {
                user_id: Some(0x1f),
                set: Modification { id: Some(0x333), len: Some(4), ..data(0xab, 8) },
                xor_checksum: Some(Xor { span: Span::new(0, 3, -1), init: 0xa5 }),
                ..plain.clone()
            },
        ),
        (
            format!("-m SET:I:333.0.0000000000000000 -c 0:6:7:12:34:{text} -p 1:5A"),
            Job {
                set: Modification::from_id(0x333),
                crc8: Some(Crc8 { profile: Profile::Value(0x5a), ..crc8 }),
                ..plain.clone()
            },
        ),
        (
            format!("-X -M OR:FD:000.1.0.{ab} -x 0:62:63:A5"),
            Job {
                fd: true,
                or: Modification { flags: Some(1), ..data(0xab, 64) },
                xor_checksum: Some(Xor { span: Span::new(0, 62, 63), init: 0xa5 }),
                ..plain.clone()
            },
        ),
        (
            format!("-X -M SET:IL:12345678.0.30.{}", "00".repeat(64)),
            Job {
                fd: true,
                set: Modification { len: Some(0x30), ..Modification::from_id(0x1234_5678) },
                ..plain.clone()
            },
        ),
    ]
    .into()
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn cangw_reads_our_jobs_as_its_own_and_we_read_and_delete_its() {
    let route = Route::new();
    for (arguments, job) in same_jobs(&route) {
        let command = format!("-s gwa -d gwb {arguments}");
        output(&format!("cangw -A {command}"));
        assert_eq!(installed(), std::slice::from_ref(&job), "cangw -A {command}");
        let theirs = cangw_list();
        can_gw::delete(&job).unwrap();
        assert_eq!((installed(), cangw_list()), (vec![], String::new()));

        can_gw::add(&job).unwrap();
        assert_eq!(cangw_list(), theirs, "{job:?}");
        assert_eq!(installed(), [job]);
        output(&format!("cangw -D {command}"));
        assert_eq!(installed(), []);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn jobs_are_listed_newest_first_and_flushed_together() {
    let route = Route::new();
    let jobs: Vec<Job> = same_jobs(&route).into_iter().map(|(_, job)| job).collect();
    jobs.iter().for_each(|job| can_gw::add(job).unwrap());
    let newest_first: Vec<Job> = jobs.iter().rev().cloned().collect();
    assert_eq!(installed(), newest_first);
    assert_eq!(cangw_list().lines().count(), jobs.len());
    // More than fits into one datagram of the dump.
    (0..200).for_each(|_| can_gw::add(&jobs[6]).unwrap());
    assert_eq!(installed().len(), jobs.len() + 200);
    can_gw::flush().unwrap();
    assert_eq!((installed(), cangw_list()), (vec![], String::new()));
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn frames_are_forwarded_modified_checksummed_and_counted() {
    let route = Route::new();
    let gateway = CanGateway::open(Job {
        filter: Some(Filter { id: 0x100, mask: 0x700 }),
        set: Modification::from_id(0x555),
        xor_checksum: Some(Xor { span: Span::new(0, -2, -1), init: 0xf0 }),
        ..route.job()
    })
    .unwrap();
    assert_eq!(route.forwards("123#0102030400"), "555#01020304F4");
    assert_eq!(route.forwards("234#01"), "");
    assert_eq!(route.forwards("123##0112233"), "", "a classic job does not forward FD frames");
    assert_eq!(gateway.counters().unwrap(), JobCounters { handled: 1, dropped: 0, deleted: 0 });
    let twice = CanGateway::open(gateway.job().clone()).unwrap_err();
    assert_eq!(twice.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(gateway.close().unwrap().handled, 1);
    assert_eq!(installed(), []);
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn an_fd_job_forwards_fd_frames_and_writes_a_crc() {
    let mut route = Route::new();
    for end in [&mut route.from.0, &mut route.to.0] {
        end.down().unwrap();
        end.set_mtu(72).unwrap();
        end.up().unwrap();
    }
    let crc8 = Crc8 { init: 0xff, final_xor: 0xff, ..Crc8::with_polynomial(0x1d, Span::new(0, 8, 9)) };
    let set = Modification { flags: Some(0x01), ..Default::default() };
    let gateway = CanGateway::open(Job { fd: true, set, crc8: Some(crc8), ..route.job() }).unwrap();
    // SAE J1850 of "123456789" is 0x4B.
    let forwarded = route.forwards("123##0313233343536373839000000");
    // Later kernels set CANFD_FDF (4) besides.
    assert_eq!(forwarded.replacen("##5", "##1", 1), "123##13132333435363738394B0000");
    assert_eq!(route.forwards("123#31"), "", "an FD job does not forward classic frames");
    drop(gateway);
    assert_eq!(installed(), []);
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_relative_crc8_is_right_on_a_kernel_that_has_the_fix_and_refused_elsewhere() {
    let route = Route::new();
    let crc8 = Crc8 { init: 0xff, final_xor: 0xff, ..Crc8::with_polynomial(0x1d, Span::new(0, -2, -1)) };
    let job = Job { or: Modification::from_id(0), crc8: Some(crc8), ..route.job() };
    match can_gw::add(&job) {
        // The CRC of 31 32 33 34 with that polynomial, by hand of the table.
        Ok(()) => {
            let crc = b"1234".iter().fold(0xff, |crc: u8, byte| crc8.table[usize::from(crc ^ byte)]) ^ 0xff;
            assert_eq!(route.forwards("123#3132333400"), format!("123#31323334{crc:02X}"));
        }
        Err(error) => assert!(error.to_string().contains("CVE-2026-31570"), "{error}"),
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn frames_made_too_long_are_deleted_and_those_not_taken_are_dropped() {
    let mut route = Route::new();
    let gateway =
        CanGateway::open(Job { xor: Modification { len: Some(0x10), ..Default::default() }, ..route.job() })
            .unwrap();
    output("cansend gwa 123#1122");
    assert_eq!(gateway.close().unwrap(), JobCounters { deleted: 1, ..JobCounters::default() });

    let gateway =
        CanGateway::open(Job { xor: Modification { len: Some(8), ..Default::default() }, ..route.job() })
            .unwrap();
    assert!(route.forwards("123#1122").starts_with("123#1122"), "DLC 10 is a frame of 8 bytes");
    route.to.0.down().unwrap();
    output("cansend gwa 123#1122");
    assert_eq!(gateway.close().unwrap(), JobCounters { handled: 1, dropped: 1, deleted: 0 });
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_user_id_replaces_the_modifications_of_its_job() {
    let route = Route::new();
    let job = Job { user_id: Some(7), set: Modification::from_id(0x111), ..route.job() };
    can_gw::add(&job).unwrap();
    assert_eq!(route.forwards("123#"), "111#");
    let changed = Job { set: Modification::from_id(0x222), ..job.clone() };
    can_gw::add(&changed).unwrap();
    assert_eq!((installed(), route.forwards("123#")), (vec![changed.clone()], "222#".to_owned()));
    let other = Job { source: job.destination, destination: job.source, ..job.clone() };
    let error = can_gw::add(&other).unwrap_err();
    assert!(
        error.to_string().starts_with("gwb → gwa: add can-gw job: invalid argument (another route"),
        "{error}"
    );
    assert_eq!(CanGateway::open(job).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    can_gw::delete(&changed).unwrap();
    assert_eq!(can_gw::delete(&changed).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn a_job_goes_with_its_interface_and_needs_two() {
    let route = Route::new();
    let short = Interface::create_vcan("gwc").unwrap();
    let gateway = CanGateway::open(Job::between(route.from.0.index, short.index)).unwrap();
    let hops = Job { hops_max: Some(200), ..route.job() };
    let error = can_gw::add(&hops).unwrap_err().to_string();
    assert!(error.contains("max_hops"), "{error}");
    short.delete().unwrap();
    assert_eq!(gateway.counters().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let error = can_gw::add(gateway.job()).unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV));
    let loopback = can_gw::add(&Job::between(1, route.to.0.index)).unwrap_err();
    assert_eq!(loopback.source.raw_os_error(), Some(libc::ENODEV));
}

/// Set in the process that has lost its capabilities.
const WITHOUT_CAPABILITY: &str = "CANTER_TEST_WITHOUT_CAPABILITY";

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn without_the_capability_everything_can_be_read_and_changes_name_it() {
    if std::env::var_os(WITHOUT_CAPABILITY).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "without_the_capability_everything_can_be_read_and_changes_name_it";
        let mut child = Command::new("setpriv");
        child.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(this);
        child.args(["--ignored", "--exact", name]).env(WITHOUT_CAPABILITY, "1");
        let done = child.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    let mut can0 = Interface::find("can0").unwrap();
    can0.counters().unwrap();
    assert_eq!(installed(), []);
    let refused = [
        Interface::create_vcan("nl9").map(drop),
        can0.up(),
        can0.set_tx_queue_len(100),
        can_gw::flush(),
        can_gw::add(&Job::between(can0.index, can0.index + 1)),
    ];
    for error in refused.map(|refused| refused.unwrap_err()) {
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(
            error.to_string().contains("operation not permitted (needs CAP_NET_ADMIN: run as root"),
            "{error}"
        );
    }
}

/// Unloads a module that can be loaded again; says so when it cannot.
fn unload(module: &str) -> bool {
    let done =
        |command: &str, arguments: &[&str]| Command::new(command).args(arguments).status().unwrap().success();
    let unloaded = done("modprobe", &["--dry-run", module]) && done("rmmod", &[module]);
    if !unloaded {
        skip(&format!("{module} cannot be unloaded and loaded again here"));
    }
    unloaded
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn without_can_gw_there_are_no_jobs_and_the_module_is_named() {
    if !unload("can-gw") {
        return;
    }
    let answers = (can_gw::list(), can_gw::available(), can_gw::flush(), can_gw::add(&Job::between(1, 2)));
    output("modprobe can-gw");
    assert_eq!(answers.0.unwrap(), []);
    for error in [answers.1, answers.2, answers.3].map(|answer| answer.unwrap_err().to_string()) {
        assert!(error.ends_with("(modprobe can-gw, or run in canter lab)"), "{error}");
    }
    can_gw::available().unwrap();
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn without_vcan_the_module_is_named() {
    if !unload("vcan") {
        return;
    }
    let answer = Interface::create_vcan("nl8");
    output("modprobe vcan");
    match answer {
        // The kernel has loaded the module again for this request.
        Ok(vcan) => {
            assert_eq!(vcan.kind, Kind::Vcan);
            assert!(std::path::Path::new("/sys/module/vcan").exists());
            vcan.delete().unwrap();
        }
        Err(error) => assert_eq!(
            error.to_string(),
            "nl8: create: operation not supported (the kernel reports: Unknown device type; modprobe vcan, or run in canter lab)"
        ),
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=netlink"]
fn an_fd_controller_has_two_bit_rates() {
    let has_fd = |interface: &Interface| {
        let supported = interface.controller.as_ref().and_then(|controller| controller.supported);
        supported.is_some_and(|modes| modes.contains(Modes::FD))
    };
    let Some(mut can) = Interface::list().unwrap().into_iter().find(has_fd) else {
        return skip("no controller here has FD");
    };
    can.down().unwrap();
    can.set_bit_timing(&BitTiming { data_sample_point: Some(800), ..BitTiming::fd(500_000, 2_000_000) })
        .unwrap();
    assert_eq!((can.bitrate(), can.data_bitrate(), can.mtu), (Some(500_000), Some(2_000_000), 72));
    let json = output(&format!("ip -j -d link show {}", can.name));
    assert!(json.contains("\"bitrate\":500000") && json.contains("\"bitrate\":2000000"), "{json}");
    assert_eq!(can.controller.as_ref().unwrap().data_timing.unwrap().sample_point, 800);
    can.up().unwrap();
    let counters = can.controller.as_ref().unwrap().error_counters;
    assert_eq!(counters.map(|counters| (counters.tx, counters.rx)), Some((0, 0)));
    can.down().unwrap();
    can.set_bit_timing(&BitTiming::classic(500_000)).unwrap();
    assert_eq!((can.data_bitrate(), can.mtu, can.supports_fd()), (None, 16, false));
}
