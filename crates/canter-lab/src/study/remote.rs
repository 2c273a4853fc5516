//! The gateway on another machine: `canter study role gateway` there executes the orders of `canter study run --gateway
//! HOST` here, over one TCP connection, a line of JSON each way. Both have the same token, which nothing hides on its way:
//! use it in a private network only.

use super::{
    ethernet::Ethernet,
    load::{self, Part, Running},
    side::{Local, Order, Place, Side},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
};
use canter_io::Interface;
use canter_route::rules::counts::Counts;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// The default port of a role.
pub const PORT: u16 = 10029;
/// Timeout of an answer: a gateway with 2048 rules starts slowly on a slow machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a role checks for its end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a connection may take to show its token: the next one waits meanwhile.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may give no order: longer than any series takes.
const ORDER_TIMEOUT: Duration = Duration::from_secs(3600);
/// The limit of a line's length.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The protocol's version, which must be the same at both ends.
const PROTOCOL: u32 = 2;

/// Where the token of both machines comes from.
const TOKEN_HELP: &str = "--token-file FILE, or CANTER_STUDY_TOKEN";

/// The token: the file's first line, else the environment's; empty if there is neither.
pub fn token(file: Option<&Path>) -> failure::Result<String> {
    let Some(file) = file else { return Ok(std::env::var("CANTER_STUDY_TOKEN").unwrap_or_default()) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("{}: read: {error}", file.display())))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(Failure::failed(format!("{}: the token: its first line is empty", file.display()))),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    Hello {
        protocol: u32,
        #[serde(default)]
        token: String,
    },
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
    /// Connects to a role that has this token; `host` is a name or an address, with `:PORT` unless it is the default.
    pub fn connect(host: &str, token: &str) -> failure::Result<Self> {
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:{PORT}") };
        let failed = |error: std::io::Error| {
            let way_out =
                "canter study role gateway --interfaces IN,OUT --listen 0.0.0.0 --token-file FILE there";
            Failure::failed(format!("{address}: connect: {error} ({way_out})"))
        };
        let stream = TcpStream::connect(&address).map_err(failed)?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(failed)?;
        let host = address.rsplit_once(':').map_or(address.clone(), |(host, _)| host.to_owned());
        let mut remote = Self { host, stream: BufReader::new(stream), kernel: String::new(), load: None };
        match remote.ask(&Request::Hello { protocol: PROTOCOL, token: token.to_owned() })? {
            Answer::Hello { protocol: PROTOCOL, kernel } => remote.kernel = kernel,
            Answer::Failed(why) => return Err(Failure::failed(format!("{address}: connect: {why}"))),
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
            receive(&mut self.stream, &never, ANSWER_TIMEOUT)
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
    fn begin(&mut self, order: &Order) -> failure::Result<()> {
        match self.ask(&Request::Begin(order.clone()))? {
            Answer::Running => {}
            Answer::Unable(why) => return Err(Failure::unable(why)),
            Answer::Failed(why) => return Err(Failure::failed(format!("{}: {why}", self.host))),
            _ => return Err(Failure::failed(format!("{}: unexpected answer of the role", self.host))),
        }
        let own = self.stream.get_ref().local_addr().map(|address| address.ip().to_string());
        let own =
            own.map_err(|error| Failure::failed(format!("{}: the gateway's machine: {error}", self.host)))?;
        let ethernet = Ethernet::between(&self.host, &own);
        match load::start(order.load, None, Some(&ethernet), Part::Other) {
            Ok(load) => self.load = Some(load),
            Err(failure) => {
                self.end()?;
                return Err(failure);
            }
        }
        Ok(())
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

/// Receives a message. `None`: the other end closed the connection or was silent for `patience`, or `stop` is set.
fn receive<T: DeserializeOwned>(
    stream: &mut BufReader<TcpStream>,
    stop: &AtomicBool,
    patience: Duration,
) -> std::io::Result<Option<T>> {
    let mut line = Vec::new();
    let since = Instant::now();
    loop {
        if since.elapsed() > patience {
            return Ok(None);
        }
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

/// Serves orders until it is ended by a signal. Without a token only programs of this machine may give them.
pub fn serve(place: &Place, listen: &str, token: &str, common: &Common) -> failure::Result {
    let address = if listen.contains(':') { listen.to_owned() } else { format!("{listen}:{PORT}") };
    let failed = |error: std::io::Error| Failure::failed(format!("{address}: listen: {error}"));
    let listener = TcpListener::bind(&address).map_err(failed)?;
    if token.is_empty() && !listener.local_addr().map_err(failed)?.ip().is_loopback() {
        return Err(Failure::new(
            Exit::Usage,
            format!("{address}: listen: needs a token, the same on both machines ({TOKEN_HELP})"),
        ));
    }
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
            Ok((stream, _)) => serve_one(stream, place, token, &stop, HELLO_TIMEOUT),
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

fn serve_one(
    stream: TcpStream,
    place: &Place,
    token: &str,
    stop: &AtomicBool,
    hello_timeout: Duration,
) -> failure::Result<()> {
    let failed = |error: std::io::Error| Failure::failed(format!("study: orders: {error}"));
    let modes =
        stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(STOP_CHECK_INTERVAL)));
    modes.and_then(|()| stream.set_nodelay(true)).map_err(failed)?;
    let own = stream.local_addr().map_err(failed)?.ip().to_string();
    let peer = stream.peer_addr().map_err(failed)?.ip().to_string();
    let place = Place { addresses: Some([own, peer]), part: Part::Gateway, ..place.clone() };
    let mut local = Local::new(place.clone());
    let mut stream = BufReader::new(stream);
    match receive(&mut stream, stop, hello_timeout).map_err(failed)? {
        Some(Request::Hello { token: shown, .. }) if same(&shown, token) => {
            let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            let hello = Answer::Hello { protocol: PROTOCOL, kernel: kernel.trim().to_owned() };
            send(stream.get_mut(), &hello).map_err(failed)?;
        }
        Some(_) => {
            let why = format!("the role has another token ({TOKEN_HELP})");
            return send(stream.get_mut(), &Answer::Failed(why)).map_err(failed);
        }
        None => return Ok(()),
    }
    while let Some(request) = receive(&mut stream, stop, ORDER_TIMEOUT).map_err(failed)? {
        let answer = answer(&mut local, &place, request);
        send(stream.get_mut(), &answer).map_err(failed)?;
    }
    Ok(()) // dropping `local` ends a running gateway
}

/// Whether two tokens are the same; takes as long wherever they differ.
fn same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}

fn answer(local: &mut Local, place: &Place, request: Request) -> Answer {
    let failed = |failure: Failure| Answer::Failed(failure.message);
    match request {
        Request::Hello { .. } => Answer::Failed("a second greeting".to_owned()),
        Request::Begin(order) => {
            let rate = super::preparation::Rate::of(order.fd);
            let up = [&place.input, &place.output].map(|name| super::preparation::set_up(name, rate));
            match up.into_iter().collect::<Result<Vec<_>, _>>().and_then(|_| local.begin(&order)) {
                Ok(()) => Answer::Running,
                Err(Failure { exit: Exit::Unable, message }) => Answer::Unable(message),
                Err(failure) => failed(failure),
            }
        }
        Request::End => local.end().map_or_else(failed, Answer::Ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A role that serves one connection on a free port, and what comes of it.
    fn role(
        token: &'static str,
        hello_timeout: Duration,
    ) -> (String, thread::JoinHandle<failure::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serve = move || {
            let (stream, _) = listener.accept().unwrap();
            serve_one(stream, &Place::default(), token, &AtomicBool::new(false), hello_timeout)
        };
        (address, thread::spawn(serve))
    }

    #[test]
    fn a_role_takes_orders_from_its_own_token_only() {
        let (address, served) = role("secret", HELLO_TIMEOUT);
        let remote =
            Remote::connect(&address, "secret").unwrap_or_else(|failure| panic!("{}", failure.message));
        assert!(!remote.kernel.is_empty());
        drop(remote);
        assert!(served.join().unwrap().is_ok());
        for wrong in ["", "secre", "secret2", "Secret"] {
            let (address, served) = role("secret", HELLO_TIMEOUT);
            let failure = Remote::connect(&address, wrong).err().expect("it is another token");
            assert!(failure.message.contains("another token"), "{}", failure.message);
            assert!(served.join().unwrap().is_ok());
        }
    }

    #[test]
    fn an_order_without_a_greeting_is_refused() {
        let (address, served) = role("", HELLO_TIMEOUT);
        let mut stream = TcpStream::connect(address).unwrap();
        send(&mut stream, &Request::End).unwrap();
        let answer = receive(&mut BufReader::new(stream), &AtomicBool::new(false), ANSWER_TIMEOUT);
        assert!(matches!(answer, Ok(Some(Answer::Failed(_)))));
        assert!(served.join().unwrap().is_ok());
    }

    #[test]
    fn a_connection_that_says_nothing_does_not_keep_the_role_from_the_next() {
        let (address, served) = role("secret", Duration::from_millis(1));
        let silent = TcpStream::connect(address).unwrap();
        assert!(served.join().unwrap().is_ok(), "it ends while the other end is open");
        drop(silent);
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(token(Some(file.path())).is_err());
        std::fs::write(file.path(), "secret \nmore\n").unwrap();
        assert_eq!(token(Some(file.path())).ok().as_deref(), Some("secret"));
    }
}
