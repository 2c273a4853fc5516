//@ machine: --cpus 2
//@ also: gate --kernel 6.1 --cpus 2
//! `canter capture` in the lab, on cables, beside can-utils: what they record is what it records, and they read its logs.
//! What needs no CAN sockets is in `capture_host.rs`.

use crate::recorder::*;

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn a_log_is_byte_for_byte_that_of_candump() {
    let (disk, cables) = (Disk::new("bytes", "16M"), Cables::new("cb", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["cb0", "cb1", "-o", &file]);
    sh(&format!(
        "(cd {} && exec timeout 60 candump -n 408 -l cb0 cb1) > /dev/null &
         until [ $(grep -c ' cb[01] ' /proc/net/can/rcvlist_all) = 2 ]; do sleep 0.02; done
         for i in cbs0 cbs1; do cansend $i 123#; cansend $i 12345678#1122334455667788; cansend $i 7FF#R3;
         cansend $i 123##1AABBCCDD; cangen $i -g 1 -n 200 -I r -L r -D r -e; done; wait $!",
        disk.0.display()
    ));
    assert_eq!(capture.stop().code, Some(0));
    let theirs = sh(&format!("cat {}/candump-*.log | sort", disk.0.display()));
    let ours = sh(&format!("sort {file}"));
    assert_eq!(ours.lines().count(), 408);
    assert_eq!(ours, theirs);
    drop(cables);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn can_utils_read_a_log_also_of_a_recording_that_was_killed() {
    let (disk, cables) = (Disk::new("utils", "16M"), Cables::new("ca", 2));
    let (file, peer) = (disk.file("a.log"), disk.file("peer.log"));
    let capture = Capture::start(&["ca0", "ca1", "-o", &file]);
    send(&mut cables.senders(), 0, 500);
    wait_for_lines(&file, 1000);
    capture.signal("KILL");
    capture.wait();
    assert_all(&file, &cables.names(), 500);
    let played = sh(&format!("canplayer -t -I {file} stdout=ca0 stdout=ca1 | grep -c '#'"));
    assert_eq!(played.trim(), "1000", "canplayer");

    // canplayer sends it on, to a bus where candump listens (no more than its queue of 222 holds).
    sh("ip link add caplay type vcan && ip link set caplay mtu 72 up");
    sh(&format!(
        "grep ' ca0 ' {file} | head -200 > {file}.one; sed -i 's/  */ /g' {file}.one
         timeout 60 candump -n 200 -L caplay > {peer} &
         until grep -q ' caplay ' /proc/net/can/rcvlist_all; do sleep 0.02; done
         canplayer -t -I {file}.one caplay=ca0; wait $!
         diff <(cut -d' ' -f3 {file}.one) <(cut -d' ' -f3 {peer})"
    ));
    sh("ip link delete caplay");
    let asc = sh(&format!("log2asc -I {file} ca0 ca1 | grep -c ' Rx '"));
    assert_eq!(asc.trim(), "1000", "log2asc");
}
