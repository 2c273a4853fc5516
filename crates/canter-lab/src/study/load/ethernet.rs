//! Loads of a network card: `ping` of iputils in either direction, and a TCP stream of this program.

use super::super::ethernet::Ethernet;
use super::row::{CANTER, LoadCommand, LoadRow};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// The load by `ping -f -s 60000` to the gateway's network card.
pub const RECEIVE: LoadRow = LoadRow {
    name: "ethernet-receive",
    ethernet: true,
    lines: |ethernet| {
        let pings_to_gateway =
            |at: &Ethernet| at.on_the_other_side(&["ping", "-f", "-q", "-s", "60000", &at.gateway_address]);
        ethernet.map(pings_to_gateway).map(LoadCommand::elsewhere).into_iter().collect()
    },
    work: &[],
};

/// The load by `ping -f -s 60000` from the gateway's network card.
pub const SEND: LoadRow = LoadRow {
    name: "ethernet-send",
    ethernet: true,
    lines: |ethernet| {
        let pings_from_gateway = |at: &Ethernet| {
            LoadCommand::beside_gateway(&["ping", "-f", "-q", "-s", "60000", &at.other_address])
        };
        ethernet.map(pings_from_gateway).into_iter().collect()
    },
    work: &[],
};

/// The load by a TCP stream to the gateway at full speed.
pub const TCP: LoadRow = LoadRow {
    name: "ethernet-tcp",
    ethernet: true,
    lines: |ethernet| {
        let source = |at: &Ethernet| {
            let words = [CANTER, "study", "load", "tcp-source", "--to", &at.gateway_address];
            let sink = [CANTER, "study", "load", "tcp-sink", "--to", &at.gateway_address];
            vec![LoadCommand::beside_gateway(&sink), LoadCommand::elsewhere(at.on_the_other_side(&words))]
        };
        ethernet.map(source).unwrap_or_default()
    },
    work: &[("tcp-sink", |to| tcp_sink(address(to)?)), ("tcp-source", |to| tcp_source(address(to)?))],
};

/// The port of the discard service (9), plus 10000.
const PORT: u16 = 10009;

fn address(to: Option<&str>) -> io::Result<&str> {
    to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "needs --to ADDRESS"))
}

/// Reads a stream to this address of the gateway's machine, and to no other.
fn tcp_sink(address: &str) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    for stream in TcpListener::bind((address, PORT))?.incoming() {
        let mut stream = stream?;
        while stream.read(&mut bytes)? > 0 {}
    }
    Ok(())
}

fn tcp_source(to: &str) -> io::Result<()> {
    const TRIES: u32 = 100;
    let connect = |_| {
        let stream = TcpStream::connect((to, PORT));
        if stream.is_err() {
            thread::sleep(Duration::from_millis(1)); // the sink has just been started
        }
        stream.ok()
    };
    let mut stream = (0..TRIES).find_map(connect).ok_or(io::ErrorKind::ConnectionRefused)?;
    let bytes = vec![0x55; 1 << 16];
    loop {
        stream.write_all(&bytes)?;
    }
}
