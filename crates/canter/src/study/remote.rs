//! The gateway on another machine: `canter study role gateway` there executes the orders of `canter study run --gateway
//! HOST` here, over one TCP connection, a line of JSON each way. There is no password: use it in a private network
//! only.

use super::{
    ethernet::Ethernet,
    load::{self, Part, Running},
    side::{Begun, Local, Order, Place, Side},
};
use crate::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    rules::counts::Counts,
};
use canter_io::Interface;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The default port of a role.
pub const PORT: u16 = 10029;
/// Timeout of an answer: a gateway with 2048 rules starts slowly on a slow machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a role checks for its end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The limit of a line's length.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The protocol's version, which must be the same at both ends.
const PROTOCOL: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    Hello { protocol: u32 },
    Begin(Order),
    End,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// The kernel of the role's machine.
    Hello {
        protocol: u32,
        kernel: String,
    },
    Running,
    Unable(String),
    Ended(Counts),
    Failed(String),
}

/// A gateway on another machine.
pub struct Remote {
    host: String,
    stream: BufReader<TcpStream>,
    /// The other machine's kernel.
    pub kernel: String,
    load: Option<Running>,
}

impl Remote {
    /// Connects to a role; `host` is a name or an address, with `:PORT` unless it is the default.
    pub fn connect(host: &str) -> failure::Result<Self> {
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:{PORT}") };
        let failed = |error: std::io::Error| {
            let way_out = "canter study role gateway --interfaces IN,OUT --listen 0.0.0.0 there";
            Failure::failed(format!("{address}: connect: {error} ({way_out})"))
        };
        let stream = TcpStream::connect(&address).map_err(failed)?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(failed)?;
        let host = address.rsplit_once(':').map_or(address.clone(), |(host, _)| host.to_owned());
        let mut remote = Self { host, stream: BufReader::new(stream), kernel: String::new(), load: None };
        match remote.ask(&Request::Hello { protocol: PROTOCOL })? {
            Answer::Hello { protocol: PROTOCOL, kernel } => remote.kernel = kernel,
            _ => {
                return Err(Failure::failed(format!(
                    "{address}: connect: the role is another version of canter (use the same version on both machines)"
                )));
            }
        }
        Ok(remote)
    }

    fn ask(&mut self, request: &Request) -> failure::Result<Answer> {
        let sent = send(self.stream.get_mut(), request).and_then(|()| {
            let never = AtomicBool::new(true); // never set: the timeout ends the wait
            receive(&mut self.stream, &never)
        });
        match sent {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                Err(Failure::failed(format!("{}: the gateway's machine closed the connection", self.host)))
            }
            Err(error) => Err(Failure::failed(format!("{}: the gateway's machine: {error}", self.host))),
        }
    }
}

impl Side for Remote {
    fn begin(&mut self, order: &Order) -> failure::Result<Begun> {
        match self.ask(&Request::Begin(order.clone()))? {
            Answer::Running => {}
            Answer::Unable(why) => return Ok(Begun::Unable(why)),
            Answer::Failed(why) => return Err(Failure::failed(format!("{}: {why}", self.host))),
            _ => return Err(Failure::failed(format!("{}: unexpected answer of the role", self.host))),
        }
        let ethernet = Ethernet::between(&self.host);
        match load::start(order.load, None, Some(&ethernet), Part::Other)? {
            Ok(load) => self.load = Some(load),
            Err(why) => {
                self.end()?;
                return Ok(Begun::Unable(why));
            }
        }
        Ok(Begun::Running)
    }

    fn end(&mut self) -> failure::Result<Counts> {
        self.load = None;
        match self.ask(&Request::End)? {
            Answer::Ended(counts) => Ok(counts),
            Answer::Failed(why) => Err(Failure::failed(format!("{}: {why}", self.host))),
            _ => Err(Failure::failed(format!("{}: unexpected answer of the role", self.host))),
        }
    }

    fn interfaces(&self) -> failure::Result<Vec<Interface>> {
        Ok(Vec::new()) // none of this machine
    }
}

fn send(stream: &mut TcpStream, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(std::io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Receives a message. `None`: the other end closed the connection, or `stop` is set.
fn receive<T: DeserializeOwned>(
    stream: &mut BufReader<TcpStream>,
    stop: &AtomicBool,
) -> std::io::Result<Option<T>> {
    let mut line = Vec::new();
    loop {
        let left = LINE_BYTES_MAX.saturating_sub(line.len() as u64);
        match std::io::Read::take(&mut *stream, left).read_until(b'\n', &mut line) {
            Ok(_) if line.last() == Some(&b'\n') => break,
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(_) => return Err(ErrorKind::UnexpectedEof.into()),
            // The bytes received so far are in `line`.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if stop.load(Ordering::Acquire) {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error),
        }
    }
    serde_json::from_slice(&line).map(Some).map_err(std::io::Error::other)
}

/// Serves orders until it is ended by a signal.
pub fn serve(place: &Place, listen: &str, common: &Common) -> failure::Result {
    let address = if listen.contains(':') { listen.to_owned() } else { format!("{listen}:{PORT}") };
    let failed = |error: std::io::Error| Failure::failed(format!("{address}: listen: {error}"));
    let listener = TcpListener::bind(&address).map_err(failed)?;
    for name in [&place.input, &place.output] {
        super::preparation::set_up(name, super::preparation::Rate::Classic)?;
    }
    if !common.quiet {
        eprintln!(
            "study: gateway {} → {} waits for orders at {address}; Ctrl-C ends it",
            place.input, place.output
        );
    }
    let stop = interrupt_flag()?;
    listener.set_nonblocking(true).map_err(failed)?;
    while !stop.load(Ordering::Acquire) {
        let served = match listener.accept() {
            Ok((stream, _)) => serve_one(stream, place, &stop),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(STOP_CHECK_INTERVAL);
                Ok(())
            }
            Err(error) => Err(failed(error)),
        };
        if let Err(failure) = served {
            eprintln!("canter: {failure}"); // the role waits for the next connection
        }
    }
    Ok(Exit::Done)
}

fn serve_one(stream: TcpStream, place: &Place, stop: &AtomicBool) -> failure::Result<()> {
    let failed = |error: std::io::Error| Failure::failed(format!("study: orders: {error}"));
    let modes =
        stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(STOP_CHECK_INTERVAL)));
    modes.and_then(|()| stream.set_nodelay(true)).map_err(failed)?;
    let peer = stream.peer_addr().map_err(failed)?.ip().to_string();
    let place = Place { peer: Some(peer), part: Part::Gateway, ..place.clone() };
    let mut local = Local::new(place.clone());
    let mut stream = BufReader::new(stream);
    while let Some(request) = receive(&mut stream, stop).map_err(failed)? {
        let answer = answer(&mut local, &place, request);
        send(stream.get_mut(), &answer).map_err(failed)?;
    }
    Ok(()) // dropping `local` ends a running gateway
}

fn answer(local: &mut Local, place: &Place, request: Request) -> Answer {
    let failed = |failure: Failure| Answer::Failed(failure.message);
    match request {
        Request::Hello { .. } => {
            let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            Answer::Hello { protocol: PROTOCOL, kernel: kernel.trim().to_owned() }
        }
        Request::Begin(order) => {
            let rate = super::preparation::Rate::of(order.fd);
            let up = [&place.input, &place.output].map(|name| super::preparation::set_up(name, rate));
            match up.into_iter().collect::<Result<Vec<_>, _>>().and_then(|_| local.begin(&order)) {
                Ok(Begun::Running) => Answer::Running,
                Ok(Begun::Unable(why)) => Answer::Unable(why),
                Err(failure) => failed(failure),
            }
        }
        Request::End => local.end().map_or_else(failed, Answer::Ended),
    }
}
