//! What a service tells systemd: that it is ready, that it is alive, what it is doing. One datagram of `NAME=VALUE`
//! lines to the socket in `$NOTIFY_SOCKET` (sd_notify(3)); outside of a service there is none, and nothing is told.

use std::{
    env,
    ffi::OsString,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::{Duration, Instant},
};

/// How often the status is renewed where no watchdog asks for more.
const STATUS: Duration = Duration::from_secs(10);

/// The one who started this process and wants to know how it is, if there is one.
#[derive(Debug)]
pub struct Supervisor {
    to: Option<(UnixDatagram, SocketAddr)>,
    period: Duration,
    told: Instant,
}

impl Supervisor {
    /// As `$NOTIFY_SOCKET`, `$WATCHDOG_USEC` and `$WATCHDOG_PID` say.
    pub fn find() -> Self {
        let to = env::var_os("NOTIFY_SOCKET").and_then(address).and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?; // whoever does not listen does not hold frames up
            Some((socket, address))
        });
        let of_others = env::var("WATCHDOG_PID").is_ok_and(|pid| pid != std::process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| !of_others);
        let watchdog = watchdog.and_then(|us| us.parse().ok()).map(Duration::from_micros);
        // sd_watchdog_enabled(3) recommends half of the time; a third leaves room for a busy machine.
        let period = watchdog.map_or(STATUS, |limit| STATUS.min(limit / 3));
        Self { to, period, told: Instant::now() }
    }

    /// Whether anybody listens.
    pub fn is_there(&self) -> bool {
        self.to.is_some()
    }

    /// How often it wants to hear that all is well.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// It does its work from now on.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nWATCHDOG=1\n{}", line(status)));
    }

    /// All is well.
    pub fn alive(&mut self, status: &str) {
        self.tell(&format!("WATCHDOG=1\n{}", line(status)));
        self.told = Instant::now();
    }

    /// Whether it is time to say so again.
    pub fn is_due(&self) -> bool {
        self.is_there() && self.told.elapsed() >= self.period
    }

    /// It was told to end, and does.
    pub fn stopping(&self, status: &str) {
        self.tell(&format!("STOPPING=1\n{}", line(status)));
    }

    /// A supervisor that has gone, or does not keep up, is no reason to stop.
    fn tell(&self, state: &str) {
        if let Some((socket, address)) = &self.to {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

/// A path, or behind `@` a name in the abstract namespace (unix(7)).
fn address(name: OsString) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest).ok(),
        _ => SocketAddr::from_pathname(name).ok(),
    }
}

/// A status is one line.
fn line(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor(address: SocketAddr) -> Supervisor {
        let to = Some((UnixDatagram::unbound().unwrap(), address));
        Supervisor { to, period: Duration::ZERO, told: Instant::now() }
    }

    #[test]
    fn both_kinds_of_socket_hear_what_is_told_in_one_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let abstract_name = format!("@canter-test-{}", std::process::id());
        let listeners = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (
                abstract_name.clone().into(),
                UnixDatagram::bind_addr(&address(abstract_name.into()).unwrap()).unwrap(),
            ),
        ];
        for (name, listener) in listeners {
            let mut supervisor = supervisor(address(name).unwrap());
            assert!(supervisor.is_due());
            supervisor.ready("can0 →\ncan1");
            supervisor.alive("3 frames");
            supervisor.stopping("the end");
            let mut buffer = [0; 200];
            for expected in [
                "READY=1\nWATCHDOG=1\nSTATUS=can0 → can1",
                "WATCHDOG=1\nSTATUS=3 frames",
                "STOPPING=1\nSTATUS=the end",
            ] {
                let bytes = listener.recv(&mut buffer).unwrap();
                assert_eq!(std::str::from_utf8(&buffer[..bytes]), Ok(expected));
            }
        }
    }

    #[test]
    fn a_supervisor_that_has_gone_harms_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let mut supervisor = supervisor(SocketAddr::from_pathname(&path).unwrap());
        supervisor.ready("");
        supervisor.alive("");
    }
}
