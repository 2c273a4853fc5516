//! `bpf`: a gateway in the kernel by canter's BPF program, which works while this command runs (canter-io's redirect).

use super::{
    detached::{self, Detached},
    kind::{Ended, Kind, Place, Refusal, Request},
    plan::Direction,
    refusal,
};
use crate::{
    failure,
    rules::{self, counts::Counts},
};
use canter_io::{
    Interface,
    method::Capabilities,
    redirect::{self, Redirect, Rule},
};

pub const BPF: Kind = Kind {
    name: "bpf",
    paper_name: "",
    about: "a BPF program in the kernel: selects by identifier, changes nothing, input from controllers only",
    example: "in the kernel, by canter's BPF program",
    pairs: false,
    place: Place::Kernel,
    capabilities: Capabilities { fd: true, batch: false, origin: false },
    devices: false,
    rules_apply: false,
    waits_for_interfaces: false,
    takes_hops: true, // it refuses each rule with hops
    right: Some("CAP_BPF"),
    check: || Ok(redirect::available()?),
    check_between: |from, to| Ok(redirect::check(from, to)?),
    refuses: &[
        Refusal {
            when: refusal::error_frames,
            reason: "it forwards no error frames (use a user-space pair)",
        },
        Refusal {
            when: refusal::filter_beside_rules,
            reason: "--filter cannot be combined with --rules (add it to the file, or use a user-space pair)",
        },
        Refusal {
            when: refusal::backlog,
            reason: "it drops frames while the output is full (use a user-space pair)",
        },
        Refusal {
            when: refusal::stats_or_waiting,
            reason: "--stats and --wait-for-interface need a user-space pair",
        },
    ],
    run: |request| detached::run(request, Programs::open),
};

/// The program of each direction.
struct Programs {
    programs: Vec<Redirect>,
    /// Whether each direction has rules. Frames that --filter excludes are counted by no method.
    has_rules: Vec<bool>,
}

impl Programs {
    /// Opens the programs of all directions, or none.
    fn open(request: &Request<'_>) -> failure::Result<Self> {
        refuse_shared_inputs(request.directions)?;
        let mut wanted = Vec::new();
        for direction in request.directions {
            let (from, to) = (Interface::find(&direction.from)?, Interface::find(&direction.to)?);
            redirect::check(&from, &to)?;
            let rules = match &direction.policy {
                None => vec![Rule::passing(request.filters())],
                Some(policy) => rules::redirect::of_policy(policy)
                    .map_err(|faults| BPF.inexpressible(direction, policy, &faults))?,
            };
            wanted.push((from, to, rules));
        }
        let programs = wanted.iter().map(|(from, to, rules)| Redirect::open(from, to, rules));
        Ok(Self {
            programs: programs.collect::<Result<_, _>>()?,
            has_rules: request.directions.iter().map(|direction| direction.policy.is_some()).collect(),
        })
    }
}

fn refuse_shared_inputs(directions: &[Direction]) -> failure::Result<()> {
    let inputs: Vec<_> = directions.iter().map(|direction| &direction.from).collect();
    match inputs.iter().enumerate().find(|(at, from)| inputs[..*at].contains(from)) {
        Some((_, from)) => Err(BPF.unable(format!(
            "{from} has several routes, but a frame can take only one of them (use can-gw)"
        ))),
        None => Ok(()),
    }
}

impl Detached for Programs {
    type Progress = ();

    const ENDING: &'static str = "ending its programs";

    /// A program works as long as its interfaces exist.
    fn check(&self, (): &mut ()) -> Result<(), String> {
        Ok(())
    }

    fn status(&self, (): &()) -> String {
        let counts = self.programs.iter().filter_map(|program| program.counts().ok());
        let handed_on: u64 = counts.map(|counts| counts.handed_on).sum();
        format!("{handed_on} frames forwarded by bpf")
    }

    fn end(self, (): (), _: usize) -> failure::Result<(Vec<Counts>, Ended)> {
        let mut counts = Vec::new();
        for (program, has_rules) in self.programs.into_iter().zip(self.has_rules) {
            counts.push(account(program.close()?, has_rules));
        }
        Ok((counts, Ok(())))
    }
}

fn account(counted: redirect::Counts, has_rules: bool) -> Counts {
    let redirect::Counts { handed_on, filtered, refused, no_room } = counted;
    let mut counts = Counts { transmitted: handed_on - no_room, ..Counts::default() };
    counts.drop_as(no_room, |drops| &mut drops.no_room);
    counts.drop_as(refused, |drops| &mut drops.refused);
    if has_rules {
        counts.filtered = filtered;
    }
    counts.received = counts.transmitted + counts.filtered + counts.dropped;
    counts
}
