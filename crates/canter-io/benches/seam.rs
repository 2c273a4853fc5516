//! What the seam costs: the same system calls through the tables of methods and in a hand-written loop, on a vcan.
//!
//! Counts are instructions when this runs in the lab's virtual clock, as `make bench` does. The ceiling: 3 % over the
//! hand-written loop.
#![allow(unsafe_code)]

use canter_io::{
    Batch, Filter, Frame, Identifier, Interface, Result,
    clock::monotonic_ns,
    frame::CAN_MTU,
    method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions},
    socket::Socket,
};
use std::os::fd::AsRawFd;

const FRAMES: usize = 20_000;
/// Frames that wait at a time.
const QUEUE: usize = 64;
const PERCENT_MAX: f64 = 3.0;

fn main() -> std::process::ExitCode {
    // `cargo test` runs benches too, where there is no CAN.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("seam: skipped: `make bench` runs it in the lab");
        return std::process::ExitCode::SUCCESS;
    }
    match run() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("seam: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let mut vcan = Interface::create_vcan("seam")?;
    vcan.set_mtu(CAN_MTU as u32)?;
    vcan.up()?;
    let read = compare("read", receive_by_hand(&vcan)?, receive_by_seam(&vcan)?);
    let write = compare("write", send_by_hand(&vcan)?, send_by_seam(&vcan)?);
    vcan.delete()?;
    Ok(read && write)
}

/// Prints both, in ns a frame; whether the seam keeps its ceiling.
fn compare(name: &str, by_hand_ns: u64, by_seam_ns: u64) -> bool {
    let percent = (by_seam_ns as f64 / by_hand_ns as f64 - 1.0) * 100.0;
    let kept = percent <= PERCENT_MAX;
    let [by_hand, by_seam] = [by_hand_ns, by_seam_ns].map(|ns| ns / FRAMES as u64);
    let verdict = if kept { "kept" } else { "EXCEEDED" };
    println!(
        "seam: {name:<6} by hand {by_hand:>5} ns, by the seam {by_seam:>5} ns: {percent:+.1} %, ceiling {PERCENT_MAX} %  {verdict}"
    );
    kept
}

fn frame() -> Frame {
    Frame::classic(Identifier::Sff(0x123), &[0x55; 2]).expect("two bytes fit")
}

fn sender(vcan: &Interface) -> Result<Box<dyn Transmit>> {
    "write".parse::<TransmitMethod>()?.open(vcan, &TransmitOptions::default())
}

fn fill(sender: &mut dyn Transmit) {
    assert_eq!(sender.transmit(&[frame(); QUEUE]).expect("a vcan takes all"), QUEUE);
}

fn receive_by_seam(vcan: &Interface) -> Result<u64> {
    let mut sender = sender(vcan)?;
    let mut receiver: Box<dyn Receive> =
        "read".parse::<ReceiveMethod>()?.open(vcan, &ReceiveOptions::default())?;
    let mut batch = Batch::new(QUEUE);
    let mut spent_ns = 0;
    for _ in 0..FRAMES / QUEUE {
        fill(&mut *sender);
        let start_ns = monotonic_ns();
        batch.clear();
        while batch.room() > 0 {
            receiver.receive(&mut batch).expect("frames are there");
        }
        spent_ns += monotonic_ns() - start_ns;
    }
    Ok(spent_ns)
}

fn receive_by_hand(vcan: &Interface) -> Result<u64> {
    let mut sender = sender(vcan)?;
    let socket = socket(vcan);
    let mut frames = [frame(); QUEUE];
    let mut spent_ns = 0;
    for _ in 0..FRAMES / QUEUE {
        fill(&mut *sender);
        let start_ns = monotonic_ns();
        for frame in &mut frames {
            // SAFETY: a Frame has CAN_MTU bytes and more, and outlives the call. recv(2).
            let bytes =
                unsafe { libc::recv(socket.as_raw_fd(), std::ptr::from_mut(frame).cast(), CAN_MTU, 0) };
            assert_eq!(bytes, CAN_MTU as isize);
        }
        spent_ns += monotonic_ns() - start_ns;
    }
    Ok(spent_ns)
}

fn send_by_seam(vcan: &Interface) -> Result<u64> {
    let mut sender = sender(vcan)?;
    let frames = [frame(); QUEUE];
    let start_ns = monotonic_ns();
    for _ in 0..FRAMES / QUEUE {
        assert_eq!(sender.transmit(&frames).expect("a vcan takes all"), QUEUE);
    }
    Ok(monotonic_ns() - start_ns)
}

fn send_by_hand(vcan: &Interface) -> Result<u64> {
    let socket = socket(vcan);
    let no_filter: [Filter; 0] = [];
    socket.set_slice(libc::SOL_CAN_RAW, libc::CAN_RAW_FILTER, &no_filter).expect("it receives nothing");
    let frames = [frame(); QUEUE];
    let start_ns = monotonic_ns();
    for _ in 0..FRAMES / QUEUE {
        for frame in &frames {
            // SAFETY: a Frame has CAN_MTU bytes and more, and outlives the call. send(2).
            let bytes =
                unsafe { libc::send(socket.as_raw_fd(), std::ptr::from_ref(frame).cast(), CAN_MTU, 0) };
            assert_eq!(bytes, CAN_MTU as isize);
        }
    }
    Ok(monotonic_ns() - start_ns)
}

fn socket(vcan: &Interface) -> Socket {
    let socket = Socket::can_raw().expect("this kernel has CAN");
    socket.bind_can(vcan.index).expect("the interface is there");
    socket
}
