//! Loads of a network card: `ping` of iputils to the gateway, datagrams from it, and a TCP stream of this program.

use super::super::ethernet::Ethernet;
use super::row::{CANTER, LoadCommand, LoadRow};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

/// The load by `ping -f -s 60000` to the gateway's network card.
pub const RECEIVE: LoadRow = LoadRow {
    name: "ethernet-receive",
    ethernet: true,
    check: || Ok(()),
    lines: |ethernet| {
        let pings_to_gateway =
            |at: &Ethernet| at.on_the_other_side(&["ping", "-f", "-q", "-s", "60000", &at.gateway_address]);
        ethernet.map(pings_to_gateway).map(LoadCommand::elsewhere).into_iter().collect()
    },
    work: &[],
};

/// The load by `ping -f` with its 56 bytes to the gateway's network card.
pub const SMALL: LoadRow = LoadRow {
    name: "ethernet-receive-small",
    ethernet: true,
    check: || Ok(()),
    lines: |ethernet| {
        let pings_to_gateway =
            |at: &Ethernet| at.on_the_other_side(&["ping", "-f", "-q", &at.gateway_address]);
        ethernet.map(pings_to_gateway).map(LoadCommand::elsewhere).into_iter().collect()
    },
    work: &[],
};

/// The load by datagrams of 60 000 bytes from the gateway's network card, which nobody echoes.
pub const SEND: LoadRow = LoadRow {
    name: "ethernet-send",
    ethernet: true,
    check: || Ok(()),
    lines: |ethernet| {
        let source = |at: &Ethernet| {
            let words = [CANTER, "study", "load", "udp-source", "--to", &at.silent_address];
            LoadCommand::beside_gateway(&words)
        };
        ethernet.map(source).into_iter().collect()
    },
    work: &[("udp-source", |to| udp_source(address(to)?))],
};

/// The load by a TCP stream to the gateway at full speed.
pub const TCP: LoadRow = LoadRow {
    name: "ethernet-tcp",
    ethernet: true,
    check: || Ok(()),
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

/// The bytes of a datagram, as many as the papers' pings had.
const DATAGRAM_BYTES: usize = 60_000;

/// Sends without end; an answer that the port is closed is no reason to stop.
fn udp_source(to: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let bytes = vec![0x55; DATAGRAM_BYTES];
    loop {
        match socket.send_to(&bytes, (to, PORT)) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => return Err(error),
            _ => {}
        }
    }
}

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
