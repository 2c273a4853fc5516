//! Runs a gateway as a subprocess, for measurements: it takes the place of the second machine in the papers.

use super::account::Account;
use canter_cli::failure::{Exit, Failure, Result};
use canter_io::process;
use std::{
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
};

/// The command line of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Input and output; `None`: those of the rules.
    pub ends: Option<[&'a str; 2]>,
    /// A pair, or can-gw.
    pub method: &'a str,
    pub rules: Option<&'a Path>,
    /// The processor that it runs on.
    pub cpu: Option<usize>,
    /// The process's priority under SCHED_FIFO; 0: none.
    pub realtime: u8,
    /// Whether its routes share a thread.
    pub one_thread: bool,
}

/// A running gateway.
pub struct Gateway {
    process: Child,
    /// Reads its stderr: lines for 2048 rules fill the pipe, and the gateway would block.
    log: Option<JoinHandle<io::Result<String>>>,
    method: String,
}

impl Gateway {
    /// Starts it; returns when it routes.
    ///
    /// # Errors
    /// The reason why it does not route, with [`Exit::Unable`] when this machine cannot run it.
    pub fn start(order: &Order<'_>) -> Result<Self> {
        let Order { ends, method, rules, cpu, realtime, one_thread } = *order;
        let failed = |error: io::Error| Failure::failed(format!("gateway {method}: start: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("gateway").args(ends.iter().flatten()).args(["--method", method, "--json", "-"]);
        if let Some(path) = rules {
            command.arg("--rules").arg(path);
        }
        if let Some(processor) = cpu {
            command.args(["--cpu", &processor.to_string()]);
        }
        if realtime > 0 {
            command.args(["--realtime", &realtime.to_string()]);
        }
        if one_thread {
            command.arg("--one-thread");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let Some(log) = process.stderr.take() else {
            return Err(Failure::failed(format!("gateway {method}: start: no log")));
        };
        let mut log = BufReader::new(log);
        let mut line = String::new();
        log.read_line(&mut line).map_err(failed)?; // its announcement or its error
        if line.starts_with("gateway: ") {
            let log = Some(thread::spawn(move || io::read_to_string(log)));
            return Ok(Self { process, log, method: method.to_owned() });
        }
        let code = process.wait().map_err(failed)?.code();
        let reason = line.trim().trim_start_matches("canter: ").to_owned();
        match code {
            Some(code) if code == Exit::Unable as i32 => Err(Failure::unable(reason)),
            _ => Err(Failure::failed(format!("gateway {method}: {reason}"))),
        }
    }

    /// The number of its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it and reads its account. Returns an error if the gateway failed.
    pub fn stop(mut self) -> Result<Account> {
        let method = self.method.clone();
        let failed = |error: io::Error| Failure::failed(format!("gateway {method}: end: {error}"));
        process::terminate(&self.process).map_err(failed)?;
        let mut text = String::new();
        if let Some(output) = &mut self.process.stdout {
            output.read_to_string(&mut text).map_err(failed)?;
        }
        self.process.wait().map_err(failed)?;
        let account: Account = serde_json::from_str(&text).map_err(|error| {
            let log = self.log.take().and_then(|log| log.join().ok()?.ok()).unwrap_or_default();
            Failure::failed(format!("gateway {method}: read its account: {error}: {}", log.trim()))
        })?;
        if !account.failure.is_empty() {
            return Err(Failure::failed(format!("gateway {method}: {}", account.failure)));
        }
        Ok(account)
    }
}

impl Drop for Gateway {
    /// Ends it: a gateway in the kernel would continue after this process.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = process::terminate(&self.process);
            let _ = self.process.wait();
        }
    }
}
