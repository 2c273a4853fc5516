//@ machine: --bare-metal --bus probe --clock virtual
//@ in: all
//! The method bare-metal beside Linux, with Linux's own cards as the PC.

use crate::testbed::{
    Candump, DEADLINE, Gateway, Virtual, Watched, canter, cards, counts, eventually, exists, output, play,
};
use canter_io::Interface;
use std::{fs, path::Path};

/// The gateway's cards.
const ADDRESSES: [&str; 2] = ["0000:00:07.0", "0000:00:1a.0"];
/// The processor that Linux was booted without.
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

fn card(address: &str, file: &str, text: &str) {
    fs::write(Path::new("/sys/bus/pci/devices").join(address).join(file), text).unwrap();
}

fn probe_driver(address: &str) {
    fs::write("/sys/bus/pci/drivers_probe", address).unwrap();
}

#[test]
#[ignore = "needs the lab: make test ONLY=bare_metal"]
fn every_frame_is_routed_and_accounted_for_and_the_cards_come_back() {
    let _watched = Watched::alone();
    cards();
    let gateway = Gateway::start("can3", "can4", "bare-metal", &[]);
    assert!(!exists("can3") && !exists("can4"), "the cards are the gateway's");
    assert!(fs::write(ONLINE, "1").is_err(), "Linux must not take its processor");
    let frames: Vec<String> = (0..60)
        .map(|number| match number % 3 {
            0 => format!("{:03X}#{number:02X}11223344556677", number * 7),
            1 => format!("{:08X}#{number:02X}", 0x1234_5600 + number),
            _ => format!("{number:03X}#R"),
        })
        .collect();
    let routed = Candump::start("can2");
    // A controller holds nine of them: a bus between QEMU's cards has no time, and canplayer makes up for its own delays.
    for (at, some) in frames.chunks(6).enumerate() {
        play(some, "can0", 300);
        let sent = 6 * at + some.len();
        eventually("they are routed", || routed.so_far().lines().count() >= sent);
    }
    let came = routed.frames(frames.len());
    let ended = gateway.stop("TERM");
    let receiver = Interface::find("can2").unwrap().counters().unwrap();
    assert_eq!(came, frames, "{ended:?} {receiver:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(counts(&ended), [60, 60, 0, 0], "{ended:?}");
    assert_eq!(ended.json()["method"], "bare-metal");
    for name in ["can3", "can4"] {
        let back = Interface::find(name).unwrap();
        assert!(back.up && back.bitrate() == Some(1_000_000), "{back:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=bare_metal"]
fn what_it_needs_and_has_not_is_said_in_a_line() {
    let _watched = Watched::alone();
    cards();
    let _virtual = Virtual::vcan(&["vcan0", "vcan1"], 16);
    let refused = |words: &str, why: &str| {
        let words: Vec<_> = words.split(' ').collect();
        let ended = canter(&[&["gateway", "--method", "bare-metal"], &words[..]].concat()).ended(DEADLINE);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(
            ended.complaint().starts_with("bare-metal: ") && ended.complaint().contains(why),
            "{ended:?}"
        );
    };
    refused("can3 can4 --filter 123:7FF", "forwards every frame");
    refused("can3 can4 --both", "one direction");
    refused("can3 can4 --stats 1s", "user-space pair");
    refused("vcan0 vcan1", "vcan0: find: ");
    let held = fs::File::open("/dev/canbare").unwrap();
    refused("can3 can4", "another process uses it");
    drop(held);
    fs::write(ONLINE, "1").unwrap();
    refused("can3 can4", "Linux uses every processor");
    fs::write(ONLINE, "0").unwrap();
    // One that was taken offline does as well as one that Linux never had.
    let gateway = Gateway::start("can3", "can4", "bare-metal", &[]);
    assert_eq!(gateway.stop("INT").code, Some(0));
}

#[test]
#[ignore = "needs the lab: make test ONLY=bare_metal"]
fn nothing_goes_on_behind_one_that_is_killed_or_loses_a_card() {
    let _watched = Watched::alone();
    cards();
    let gateway = Gateway::start("can3", "can4", "bare-metal", &[]);
    card(ADDRESSES[1], "driver/unbind", ADDRESSES[1]);
    let ended = gateway.ended();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.complaint(), "bare-metal: a card was unbound from it");
    eventually("both cards are back", || exists("can3") && exists("can4"));
    cards();
    Gateway::start("can3", "can4", "bare-metal", &[]).stop("KILL");
    fs::write(ONLINE, "1").unwrap(); // its processor is Linux's again, if Linux wants it
    fs::write(ONLINE, "0").unwrap();
    for address in ADDRESSES {
        card(address, "driver_override", "\n");
        card(address, "driver/unbind", address);
        probe_driver(address);
    }
    assert!(exists("can3") && exists("can4"));
}

/// By the same instrument, in one run. While the instrument keeps a schedule by itself no other process takes part.
#[test]
#[ignore = "needs the lab: make test ONLY=bare_metal"]
fn it_is_as_fast_as_the_driver_in_user_space() {
    let _watched = Watched::alone();
    cards();
    let median_ns = |from: &str, to: &str, method: &str| {
        let gateway = Gateway::start(from, to, method, &[]);
        let line = "latency --instrument probe --send can0 --routed can2 --len 8 --count 60 --traffic period=200us --json -";
        let ended = canter(&line.split(' ').collect::<Vec<_>>()).ended(DEADLINE);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let series = &ended.json()["series"][0];
        assert_eq!(series["ledger"]["received"], 60, "{series}");
        assert_eq!(counts(&gateway.stop("INT")), [60, 60, 0, 0]);
        output("ip", &["link", "set", "can0", "type", "can", "bitrate", "1000000"]);
        series["latency_ns"]["p50"].as_u64().unwrap()
    };
    let bare_metal = median_ns("can3", "can4", "bare-metal");
    ADDRESSES.iter().for_each(|address| card(address, "driver/unbind", address));
    let [from, to] = ADDRESSES.map(|address| format!("port:{address}@1000000"));
    let port = median_ns(&from, &to, "port+port");
    ADDRESSES.iter().for_each(|address| probe_driver(address));
    println!("bare-metal {bare_metal} ns, port {port} ns");
    assert!(bare_metal * 10 <= port * 14, "bare-metal {bare_metal} ns, port {port} ns");
}
