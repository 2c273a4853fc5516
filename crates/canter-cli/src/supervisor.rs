//! Notifies systemd that a service is ready, alive or stopping, and of its status: one datagram of `NAME=VALUE` lines to
//! the socket in `$NOTIFY_SOCKET` (sd_notify(3)). Outside of a service the variable is not set and nothing is sent.

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

/// Period of status messages without a watchdog.
const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// The service manager that started this process, if any.
#[derive(Debug)]
pub struct Supervisor {
    connection: Option<(UnixDatagram, SocketAddr)>,
    period: Duration,
    last_message: Instant,
}

impl Supervisor {
    /// Reads `$NOTIFY_SOCKET`, `$WATCHDOG_USEC` and `$WATCHDOG_PID`.
    pub fn find() -> Self {
        let connection = env::var_os("NOTIFY_SOCKET").and_then(address).and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?; // a supervisor that does not read must not delay frames
            Some((socket, address))
        });
        let is_for_other_process =
            env::var("WATCHDOG_PID").is_ok_and(|pid| pid != std::process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| !is_for_other_process);
        let watchdog = watchdog.and_then(|us| us.parse().ok()).map(Duration::from_micros);
        // sd_watchdog_enabled(3) recommends half of the time; a third leaves room for a busy machine.
        let period = watchdog.map_or(STATUS_PERIOD, |limit| STATUS_PERIOD.min(limit / 3));
        Self { connection, period, last_message: Instant::now() }
    }

    /// Whether a service manager started this process.
    pub fn is_present(&self) -> bool {
        self.connection.is_some()
    }

    /// Period at which to call [`Self::notify_alive`].
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Reports that the service has started, and resets the watchdog.
    pub fn notify_ready(&self, status: &str) {
        self.send(&format!("READY=1\nWATCHDOG=1\n{}", status_line(status)));
    }

    /// Resets the watchdog.
    pub fn notify_alive(&mut self, status: &str) {
        self.send(&format!("WATCHDOG=1\n{}", status_line(status)));
        self.last_message = Instant::now();
    }

    /// Whether the period has passed since the last [`Self::notify_alive`].
    pub fn is_due(&self) -> bool {
        self.is_present() && self.last_message.elapsed() >= self.period
    }

    /// Reports that the service ends.
    pub fn notify_stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\n{}", status_line(status)));
    }

    /// Asks for more time to stop, from now on: EXTEND_TIMEOUT_USEC of sd_notify(3).
    pub fn extend_timeout(&self, time: Duration) {
        self.send(&format!("EXTEND_TIMEOUT_USEC={}", time.as_micros()));
    }

    /// Sends a datagram. Errors are ignored: a supervisor that has ended or does not read is no reason to stop.
    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.connection {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

/// The address of a socket: a path, or after `@` a name in the abstract namespace (unix(7)).
fn address(name: OsString) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest).ok(),
        _ => SocketAddr::from_pathname(name).ok(),
    }
}

/// The status for systemd, in one line.
fn status_line(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor(address: SocketAddr) -> Supervisor {
        let connection = Some((UnixDatagram::unbound().unwrap(), address));
        Supervisor { connection, period: Duration::ZERO, last_message: Instant::now() }
    }

    #[test]
    fn both_kinds_of_socket_receive_each_status_as_one_line() {
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
            supervisor.notify_ready("can0 →\ncan1");
            supervisor.notify_alive("3 frames");
            supervisor.notify_stopping("the end");
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
    fn a_supervisor_that_has_ended_causes_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let mut supervisor = supervisor(SocketAddr::from_pathname(&path).unwrap());
        supervisor.notify_ready("");
        supervisor.notify_alive("");
    }
}
