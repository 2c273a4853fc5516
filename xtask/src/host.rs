//! What this host can do, of which the plan depends.

use std::process::{Command, Stdio};

/// How to become root in new namespaces: as root of the machine, or as a user with the right to make user namespaces.
const WAYS: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];

/// Whether tests can have TUN devices in namespaces of their own; each tries the same before it runs
/// (`crates/canter/tests/it/namespaces.rs`).
pub fn has_tun() -> bool {
    WAYS.iter().any(|way| {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare"]).args(*way);
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["ip", "tuntap", "add", "dev", "tun0", "mode", "tun"]);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}
