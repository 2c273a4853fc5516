//@ machine: --bus wire --clock virtual
//@ commands: wire
//@ parts: 2
//@ also: all --kernel 7.3 --bus wire --clock virtual
//! `canter gateway` where every kind of link is at once: every method, many routes in one process, both ways (gateway_pairs.rs
//! has all pairs of methods); and what becomes of a gateway whose virtual wire goes.

use crate::testbed::{
    DEADLINE, Gateway, Nodes, Virtual, WAITS, alone, canter, cards, counts, eventually, output, program,
    start,
};
use canter_io::{
    Frame, Identifier, Interface,
    interface::BitTiming,
    method::{ReceiveMethod, TransmitMethod},
    netlink::wire,
    node::{Inbox, Node, NodeOptions, Received},
};
use std::{collections::BTreeSet, time::Duration};

/// The two interfaces of a gateway, and those of the two sides that it joins.
struct Link {
    gateway: [&'static str; 2],
    sides: [&'static str; 2],
}

/// SJA1000 cards, cables, virtual buses, virtual wires.
const LINKS: [Link; 4] = [
    Link { gateway: ["can3", "can4"], sides: ["can0", "can2"] },
    Link { gateway: ["vx1", "vx2"], sides: ["vx0", "vx3"] },
    Link { gateway: ["vcan7", "vcan8"], sides: ["vcan7", "vcan8"] },
    Link { gateway: ["t0", "t1"], sides: ["t3", "t2"] },
];

/// The number of frames each way.
const ROUNDS: u16 = 3;

/// A node that sends, and receives all frames but its own.
struct Side {
    node: Node,
    inbox: Inbox,
    heard: Vec<String>,
}

impl Side {
    /// Opens an interface, for FD frames too if it supports them.
    fn open(name: &str) -> Self {
        let interface = Interface::find(name).unwrap();
        let options = NodeOptions { fd: interface.supports_fd(), ..NodeOptions::default() };
        let node = Node::open(Some(&interface), &options).unwrap();
        Self { node, inbox: Inbox::default(), heard: Vec::new() }
    }

    fn listen(&mut self) -> usize {
        let mut came: Vec<Received> = Vec::new();
        while self.node.receive(&mut self.inbox, &mut came).unwrap() > 0 {}
        self.heard.extend(came.iter().map(|one| one.frame.to_string()));
        self.heard.len()
    }

    fn forget(&mut self) {
        self.listen();
        self.heard.clear();
    }
}

/// What a side of a link sends in a round.
fn frame(link: usize, side: usize, round: u16) -> Frame {
    let id = 0x100 * (1 + side as u16) + 0x10 * link as u16 + round;
    let id = if round.is_multiple_of(2) {
        Identifier::Sff(id)
    } else {
        Identifier::Eff(0x1234_0000 + u32::from(id))
    };
    Frame::classic(id, &[link as u8, side as u8, round as u8]).unwrap()
}

/// The links on which a pair works both ways.
fn links_of(receive: &ReceiveMethod, transmit: &TransmitMethod) -> Vec<usize> {
    let works = |name: &&str| {
        let interface = Interface::find(name).unwrap();
        receive.check(&interface).is_ok() && transmit.check(&interface).is_ok()
    };
    (0..LINKS.len()).filter(|&link| LINKS[link].gateway.iter().all(works)).collect()
}

/// A gateway's method, and the links on which it works both ways.
type Pair = (String, Vec<usize>);

/// Every pair with its links, and can-gw, which works on all.
fn pairs() -> Vec<Pair> {
    let mut pairs = vec![("can-gw".to_owned(), (0..LINKS.len()).collect())];
    for receive in ReceiveMethod::all() {
        pairs.extend(TransmitMethod::all().filter_map(|transmit| {
            let links = links_of(&receive, &transmit);
            (!links.is_empty()).then(|| (format!("{receive}+{transmit}"), links))
        }));
    }
    pairs
}

/// The receiver and the transmitter of a pair on each of its links.
fn ends((pair, links): &Pair) -> impl Iterator<Item = (usize, &str)> {
    let (receiver, _) = pair.split_once('+').unwrap_or((pair, ""));
    let transmitter = &pair[receiver.len()..]; // with its plus
    links.iter().flat_map(move |&link| [(link, receiver), (link, transmitter)])
}

/// A few of the pairs, with each receiver and each transmitter at least once on each link where it works.
fn covering(pairs: Vec<Pair>) -> Vec<Pair> {
    let mut missing: BTreeSet<_> = pairs.iter().flat_map(ends).collect();
    let mut few = Vec::new();
    while !missing.is_empty() {
        let gain = |pair: &&Pair| ends(pair).filter(|end| missing.contains(end)).count();
        let best = pairs.iter().max_by_key(gain).unwrap();
        for end in ends(best) {
            missing.remove(&end);
        }
        few.push(best.clone());
    }
    assert!(few.len() < pairs.len() / 2, "{few:?}");
    few
}

/// Puts those pairs that `choose` returns through all their links at once: both ways, without an echo.
pub fn hand_on_both_ways(choose: fn(Vec<Pair>) -> Vec<Pair>) {
    let _alone = alone();
    cards();
    let (_cables, _vcan) = (Virtual::cables(16), Virtual::vcan(&["vcan7", "vcan8"], 16));
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let mut sides: Vec<[Side; 2]> = LINKS.iter().map(|link| link.sides.map(Side::open)).collect();
    let pairs = pairs();
    // No card has NAPI, which busy polling needs; and what a ring sends reaches nobody on a vcan.
    let excused = |link: usize, method: &str| method == "read/busy-poll" || (method == "+ring" && link == 2);
    let works: BTreeSet<_> = pairs.iter().flat_map(ends).collect();
    for method in works.iter().map(|(_, method)| *method).collect::<BTreeSet<_>>() {
        let links = (0..LINKS.len()).filter(|&link| !excused(link, method));
        links.for_each(|link| {
            assert!(works.contains(&(link, method)), "{method} does not work on link {link}")
        });
    }
    for pair in WAITS {
        assert!(pairs.iter().any(|(name, _)| name == *pair), "{pair} works nowhere");
    }
    for (pair, links) in choose(pairs) {
        hands_on(&pair, &links, &mut sides);
    }
}

fn hands_on(pair: &str, links: &[usize], sides: &mut [[Side; 2]]) {
    let route = |&link: &usize| {
        let [from, to] = LINKS[link].gateway;
        format!("[[route]]\nfrom = \"{from}\"\nto = \"{to}\"\nboth = true\n")
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), links.iter().map(route).collect::<String>()).unwrap();
    let path = file.path().to_str().unwrap();
    let mut gateway = canter(&["gateway", "--rules", path, "--method", pair, "--json", "-"]);
    gateway.until_it_says("gateway: ");
    std::thread::sleep(Duration::from_millis(10)); // busy polling tries itself by a frame of its own
    sides.iter_mut().flatten().for_each(Side::forget);
    for round in 0..ROUNDS {
        for &link in links {
            for (side, one) in sides[link].iter().enumerate() {
                one.node.send(&frame(link, side, round), 0).unwrap();
            }
        }
        eventually(&format!("{pair}: round {round} has come"), || {
            let all_heard = |link: &usize| sides[*link].each_mut().map(Side::listen);
            links.iter().flat_map(all_heard).all(|heard| heard > usize::from(round))
        });
    }
    std::thread::sleep(Duration::from_millis(20)); // an echo would go round for ever
    for &link in links {
        for (side, one) in sides[link].iter_mut().enumerate() {
            let wanted = (0..ROUNDS).map(|round| frame(link, 1 - side, round).to_string());
            one.listen();
            assert_eq!(one.heard, wanted.collect::<Vec<_>>(), "{pair}: {}", LINKS[link].sides[side]);
        }
    }
    gateway.signal("TERM");
    let ended = gateway.ended(DEADLINE);
    let routes = ended.json()["routes"].clone();
    assert_eq!(routes.as_array().map(Vec::len), Some(2 * links.len()), "{pair}: {ended:?}");
    for route in routes.as_array().unwrap() {
        let count = |name: &str| route["counts"][name].as_u64().unwrap();
        assert_eq!(
            (count("transmitted"), count("dropped"), count("overrun")),
            (ROUNDS.into(), 0, 0),
            "{pair}: {route}"
        );
    }
    assert_eq!(ended.code, Some(0), "{pair}: {ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_wire"]
fn every_method_hands_on_both_ways_between_all_links_at_once_and_never_echoes() {
    hand_on_both_ways(covering);
}

/// t0 and t3 on one wire, t1 and t2 on another: a gateway goes from t0 to t1. The other wire is slower: a frame that nobody
/// acknowledges is sent again and again.
fn wires() -> [Nodes; 2] {
    let up = |bus, names: [&str; 2], bitrate| Nodes::up(&names, bus, &BitTiming::classic(bitrate));
    [up("T", ["t0", "t3"], 1_000_000), up("U", ["t1", "t2"], 100_000)]
}

/// Received, transmitted and dropped for want of room, as `--stats` printed them last.
fn last_counts(said: &str) -> Option<[u64; 3]> {
    let line = said.lines().rfind(|line| line.contains(" received = "))?;
    let before = |word: &str| {
        line.split_once(word).and_then(|(text, _)| text.rsplit([' ', '(']).next()?.parse().ok()).unwrap_or(0)
    };
    Some([before(" received"), before(" transmitted"), before(" no room")])
}

/// The number in a frame.
fn number(frame: &str) -> u32 {
    u32::from_str_radix(frame.split_once('#').unwrap().1, 16).unwrap()
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_wire"]
fn an_output_without_acknowledgement_drops_after_a_second_and_sends_nothing_old_when_it_is_back() {
    sends_nothing_old(&[
        ("recvmmsg+sendmmsg", "wait"),
        ("ring+write", "wait"),
        ("read+write", "drop-new"),
        ("ring+ring", "drop-old"),
    ]);
}

pub fn sends_nothing_old(gateways: &[(&str, &str)]) {
    let _alone = alone();
    for &(method, when_full) in gateways {
        let _wires = wires();
        let (near, mut far) = (Side::open("t3"), Side::open("t2"));
        let numbered = |number: u32| Frame::classic(Identifier::Sff(0x100), &number.to_be_bytes()).unwrap();
        let options = ["--method", method, "--when-full", when_full, "--stats", "100ms", "--json", "-"];
        let mut gateway = canter(&[&["gateway", "t0", "t1"], &options[..]].concat());
        gateway.until_it_says("gateway: ");
        near.node.send(&numbered(0), 0).unwrap();
        eventually("it routes", || far.listen() == 1);
        output(program(), &["wire", "fault", "disconnect", "t1"]);
        // For so long that it drops frames at once.
        let mut sent = 0;
        eventually("it drops", || {
            sent += 1;
            near.node.send(&numbered(sent), 0).unwrap();
            let counted = last_counts(&gateway.said());
            counted.is_some_and(|[received, _, no_room]| no_room > 500 && received + 20 > sent.into())
        });
        let queue = Interface::find("t1").unwrap().tx_queue_len;
        eventually("none waits that is not in the kernel", || {
            let counted = last_counts(&gateway.said());
            counted.is_some_and(|[received, _, no_room]| received - no_room <= u64::from(queue) + 3)
        });
        let old = sent;
        far.forget();
        output(program(), &["wire", "fault", "connect", "t1"]);
        eventually("it routes again", || {
            sent += 1;
            near.node.send(&numbered(sent), 0).unwrap();
            far.listen();
            far.heard.iter().any(|frame| number(frame) + 5 > sent)
        });
        gateway.signal("TERM");
        let ended = gateway.ended(DEADLINE);
        let overrun = ended.json()["counts"]["overrun"].as_u64().unwrap();
        assert_eq!(counts(&ended)[0] + overrun, u64::from(sent) + 1, "{ended:?}");
        // What the kernel has nobody can take back: the interface's queue, and a frame in the controller.
        let late = far.heard.iter().filter(|frame| number(frame) <= old).count();
        assert!(
            late <= queue as usize + 1,
            "{method}, {when_full}: {late} old frames went out: {:?}",
            far.heard
        );
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_wire"]
fn a_gateway_whose_node_is_deleted_ends_and_names_it() {
    let _alone = alone();
    for method in WAITS.iter().chain(&["read/busy-poll+write", "io-uring+io-uring", "io-uring/spin+ring"]) {
        for gone in ["t0", "t1"] {
            let _wires = wires();
            let sender = Side::open("t3");
            let gateway = Gateway::start("t0", "t1", method, &[]);
            if *method == "can-gw" {
                std::thread::sleep(Duration::from_millis(1500)); // its counters go with it, so it looks every second
            }
            wire::delete(gone).unwrap();
            if *method != "can-gw" && gone == "t1" {
                sender.node.send(&frame(3, 0, 0), 0).unwrap(); // an output is missed with the next frame
            }
            let ended = gateway.ended();
            assert_eq!(ended.code, Some(1), "{ended:?}");
            let complaint = ended.complaint();
            assert!(
                complaint.starts_with(&format!("{gone}: ")) && complaint.contains("(it has disappeared)"),
                "{ended:?}"
            );
            counts(&ended); // which balance
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_wire"]
fn a_node_that_comes_back_is_routed_again_and_the_counts_go_on() {
    let _alone = alone();
    for method in ["read+write", "recvmmsg+sendmmsg", "ring/spin+write", "ring+ring", "io-uring+io-uring"] {
        let options = ["--method", method, "--wait-for-interface", "--json", "-"];
        let mut gateway = canter(&[&["gateway", "t0", "t1"], &options[..]].concat());
        gateway.until_it_says("t0: find: no such device");
        for round in 1..=2 {
            let wires = wires();
            eventually("it routes", || gateway.said().matches("t0 → t1: routing").count() == round);
            let (near, mut far) = (Side::open("t3"), Side::open("t2"));
            for number in 0..ROUNDS {
                near.node.send(&frame(3, 0, number), 0).unwrap();
                eventually("it has come", || far.listen() > usize::from(number));
            }
            drop(wires);
            eventually("it says so", || gateway.said().matches("waiting for it").count() == round);
        }
        gateway.signal("TERM");
        let ended = gateway.ended(DEADLINE);
        let forwarded = 2 * u64::from(ROUNDS);
        assert_eq!(
            (counts(&ended), ended.code),
            ([forwarded, forwarded, 0, 0], Some(0)),
            "{method}: {ended:?}"
        );
    }
}

/// Tests run in the order of their names: this one is the last, for there is no module any more.
#[test]
#[ignore = "needs the lab: make test ONLY=gateway_wire"]
fn the_module_may_go_while_gateways_run() {
    let _alone = alone();
    let methods = ["read+write", "recvmmsg/poll+sendmmsg", "ring/spin+write", "io-uring+io-uring", "can-gw"];
    let name = |bus: char, at: usize| format!("{bus}{at}");
    let megabit = BitTiming::classic(1_000_000);
    let mut nodes = Vec::new();
    let mut running = Vec::new();
    for (at, method) in methods.iter().enumerate() {
        let (from, to) = (name('t', at), name('u', at));
        nodes.push([Nodes::up(&[&from], "T", &megabit), Nodes::up(&[&to], "U", &megabit)]);
        running.push(Gateway::start(&from, &to, method, &[]));
    }
    let mut waiting = canter(&["gateway", "t0", "u0", "--wait-for-interface"]);
    waiting.until_it_says("t0 → u0: routing");
    std::thread::sleep(Duration::from_millis(1500)); // as above
    output("rmmod", &["canwire"]);
    for (at, gateway) in running.into_iter().enumerate() {
        let ended = gateway.ended();
        let named =
            [name('t', at), name('u', at)].map(|node| ended.complaint().starts_with(&format!("{node}: ")));
        assert!(ended.code == Some(1) && named.contains(&true), "{ended:?}");
        assert!(ended.complaint().contains("(it has disappeared)"), "{ended:?}");
    }
    waiting.until_it_says("(it has disappeared); waiting for it");
    waiting.signal("TERM");
    let ended = waiting.ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(start("ip", &["link", "show", "t0"]).ended(DEADLINE).code != Some(0), "the nodes are gone");
}
