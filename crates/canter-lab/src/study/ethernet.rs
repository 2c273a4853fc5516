//! The lab's two network cards, one per side. The gateway's card is in this network namespace and the other card in a
//! separate one: otherwise the kernel would not send frames over the wire between them.

use canter_cli::failure::{self, Failure};
use std::{path::Path, process::Command};

const NAMESPACE: &str = "canter-pc";
const OTHER: &str = "eth0";
const GATEWAY: &str = "eth1";

/// The papers' cards send 100 Mbit/s. QEMU's send as fast as a program computes: all of a large datagram's 42 frames at once, to
/// one soft interrupt, instead of one every 0.12 ms.
const BIT_RATE: &[&str] = &["root", "tbf", "rate", "100mbit", "burst", "1540", "limit", "1000000"];

/// The network of an Ethernet load: two cards that are up and have addresses.
pub struct Ethernet {
    pub gateway_address: String,
    /// An address from which nothing comes back: in the lab no card has it, elsewhere the other machine's.
    pub silent_address: String,
    /// The namespace of the other side, if that is on this machine.
    namespace: Option<&'static str>,
}

impl Ethernet {
    /// The lab's network; `None` without such cards.
    pub fn of_lab() -> failure::Result<Option<Self>> {
        let there = |name: &str| Path::new("/sys/class/net").join(name).exists();
        let made = Path::new("/run/netns").join(NAMESPACE).exists();
        let ethernet = Self {
            gateway_address: "10.77.0.2".to_owned(),
            silent_address: "10.77.0.9".to_owned(),
            namespace: Some(NAMESPACE),
        };
        if made {
            return Ok(Some(ethernet));
        }
        if !there(OTHER) || !there(GATEWAY) {
            return Ok(None);
        }
        let inside = ["ip", "netns", "exec", NAMESPACE];
        for line in [
            &["ip", "netns", "add", NAMESPACE][..],
            &["ip", "link", "set", OTHER, "netns", NAMESPACE],
            &["ip", "addr", "add", "10.77.0.2/24", "dev", GATEWAY],
            &["ip", "link", "set", GATEWAY, "up"],
            // Frames to this address leave by the card, and no card takes them.
            &["ip", "neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", GATEWAY],
            &[&inside[..], &["ip", "addr", "add", "10.77.0.1/24", "dev", OTHER]].concat(),
            &[&inside[..], &["ip", "link", "set", OTHER, "up"]].concat(),
            &[&["tc", "qdisc", "add", "dev", GATEWAY][..], BIT_RATE].concat(),
            &[&inside[..], &["tc", "qdisc", "add", "dev", OTHER], BIT_RATE].concat(),
        ] {
            run(line)?;
        }
        Ok(Some(ethernet))
    }

    /// A network between two machines.
    pub fn between(gateway: &str, other: &str) -> Self {
        Self { gateway_address: gateway.to_owned(), silent_address: other.to_owned(), namespace: None }
    }

    /// The words that run a command on the other side.
    pub fn on_the_other_side(&self, words: &[&str]) -> Vec<String> {
        let prefix = self.namespace.map(|name| ["ip", "netns", "exec", name]);
        let mut all: Vec<String> = prefix.into_iter().flatten().map(str::to_owned).collect();
        all.extend(words.iter().map(|&word| word.to_owned()));
        all
    }

    /// The names of the gateway's card, for its interrupts, and of the other one.
    pub const CARDS: [&str; 2] = [GATEWAY, OTHER];
}

/// Runs a command to its end.
pub fn run(words: &[&str]) -> failure::Result<()> {
    let line = words.join(" ");
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .map_err(|error| Failure::unable(format!("{line}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Failure::unable(format!("{line}: {}", why.trim())))
}

/// Fails unless `ping` is that of iputils, which has `-f`.
pub fn ping_is_there() -> failure::Result<()> {
    let found = Command::new("ping").arg("-V").output();
    let iputils = found.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("iputils"));
    if iputils {
        Ok(())
    } else {
        Err(Failure::unable("Ethernet load: needs ping (apt-get install iputils-ping)"))
    }
}
