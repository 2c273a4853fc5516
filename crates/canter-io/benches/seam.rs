//! What the seam costs: the same system calls through the tables of methods and in a hand-written loop, on a vcan.
//!
//! Counts are instructions when this runs in the lab's virtual clock, as `make bench` does. The standard output is a
//! table; its ceilings stand in crates/canter-lab/src/study/ceilings.toml.
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

fn main() -> std::process::ExitCode {
    // `cargo test` runs benches too, where there is no CAN.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("seam: skipped: `make bench` runs it in the lab");
        return std::process::ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seam: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut vcan = Interface::create_vcan("seam")?;
    vcan.set_mtu(CAN_MTU as u32)?;
    vcan.up()?;
    println!("# What the seam costs\ncall\tseam\thand");
    print("read", receive_by_seam(&vcan)?, receive_by_hand(&vcan)?);
    print("write", send_by_seam(&vcan)?, send_by_hand(&vcan)?);
    vcan.delete()
}

/// Prints what a frame takes by the seam and in the hand-written loop, in ns.
fn print(name: &str, seam_ns: u64, hand_ns: u64) {
    let [seam, hand] = [seam_ns, hand_ns].map(|ns| ns as f64 / FRAMES as f64);
    println!("{name}\t{seam:.1}\t{hand:.1}");
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
