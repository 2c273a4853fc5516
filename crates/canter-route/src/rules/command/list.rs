//! `list`: can-gw's jobs as a rule file.

use crate::rules::{jobs, write};
use canter_cli::{
    failure::{self, Exit},
    options::Common,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Installed, JobCounters},
};
use serde::Serialize;

/// A job in the document of `--json`.
#[derive(Serialize)]
struct Line {
    from: String,
    to: String,
    fd: bool,
    handled: u32,
    dropped: u32,
    deleted: u32,
}

pub fn run(common: &Common) -> failure::Result {
    can_gw::available()?;
    // The kernel lists the newest job first, a file the oldest.
    let mut installed = can_gw::list()?;
    installed.reverse();
    common.write_json(&installed.iter().map(line).collect::<Vec<_>>())?;
    if common.shows_table() {
        print!("{}", file(&installed));
    }
    Ok(Exit::Done)
}

fn name(index: u32) -> String {
    Interface::by_index(index).map_or_else(|_| format!("interface{index}"), |interface| interface.name)
}

fn line(installed: &Installed) -> Line {
    let JobCounters { handled, dropped, deleted } = installed.counters;
    let (from, to) = (name(installed.job.source), name(installed.job.destination));
    Line { from, to, fd: installed.job.fd, handled, dropped, deleted }
}

fn file(installed: &[Installed]) -> String {
    let list: Vec<_> = installed.iter().map(|installed| installed.job.clone()).collect();
    let (set, numbers) = jobs::to_rules(&list, name);
    let head = format!("# {} jobs of can-gw; canter rules apply accepts this file.\n", installed.len());
    head + &write::file(&set, |route, rule| {
        let counters = numbers[route][rule].iter().map(|&job| &installed[job]);
        counters.map(|installed| note(installed, numbers[route][rule].len() > 1)).collect()
    })
}

fn note(installed: &Installed, several: bool) -> String {
    let JobCounters { handled, dropped, deleted } = installed.counters;
    let kind = match (several, installed.job.fd) {
        (false, _) => "",
        (true, false) => "classic: ",
        (true, true) => "fd: ",
    };
    format!("{kind}{handled} handled, {dropped} dropped, {deleted} deleted")
}
