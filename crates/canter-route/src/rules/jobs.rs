//! Converts rules into can-gw's jobs and back. A job has one filter and one kind of frame, and the kernel runs every job
//! that a frame matches. A rule becomes one job for each of its filters and kinds; it is refused if the jobs would not have
//! the same effect.

use super::{Change, Kinds, Matching, Policy, RouteRules, Rule, RuleSet, select};
use canter_cli::document::Place;
use canter_io::{
    Filter, Interface,
    interface::Kind,
    netlink::can_gw::{Job, Modification},
};

/// A rule that can-gw cannot apply, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inexpressible {
    /// The rule's number in the route, from 0.
    pub rule: usize,
    pub place: Place,
    pub reason: String,
}

/// The jobs of a route between these interfaces, with the number of the rule that each is for.
///
/// # Errors
/// Every rule that can-gw cannot express.
pub fn route_jobs(
    route: &RouteRules,
    from: &Interface,
    to: &Interface,
) -> Result<Vec<(usize, Job)>, Vec<Inexpressible>> {
    let mut faults = inexpressible(&route.policy);
    let mut jobs = Vec::new();
    for (at, rule) in route.policy.rules.iter().enumerate().filter(|(_, rule)| !rule.drop) {
        for job in rule_jobs(rule, from, to) {
            if let Some(fault) = job.fault() {
                faults.push(Inexpressible { rule: at, place: rule.place, reason: fault.to_owned() });
                break;
            }
            jobs.push((at, job));
        }
    }
    if faults.is_empty() { Ok(jobs) } else { Err(faults) }
}

fn rule_jobs(rule: &Rule, from: &Interface, to: &Interface) -> Vec<Job> {
    let filters = filters_of(rule);
    // No FD frame can pass if one of the interfaces is classic.
    let both_fd = from.supports_fd() && to.supports_fd();
    let kinds = [(rule.kinds.classic, false), (rule.kinds.fd && both_fd, true)];
    let kinds = kinds.into_iter().filter(|(wanted, _)| *wanted);
    let job = |fd: bool, filter: &Filter| {
        let operand = |operand: &Modification| for_kind(operand, fd);
        let change = &rule.change;
        let mut job = Job {
            // The kernel does not store a filter of zeros, which passes every frame.
            filter: Some(*filter).filter(|filter| filter.id | filter.mask != 0),
            fd,
            echo: rule.echo.unwrap_or(to.kind == Kind::Vcan),
            keep_stamp: rule.keep_stamp,
            same_interface: rule.same_interface,
            and: operand(&change.and),
            or: operand(&change.or),
            xor: operand(&change.xor),
            set: operand(&change.set),
            crc8: change.crc8,
            xor_checksum: change.xor_checksum,
            hops_max: rule.hops,
            ..Job::between(from.index, to.index)
        };
        if !job.modifies() && (job.crc8.is_some() || job.xor_checksum.is_some()) {
            job.or.id = Some(0); // changes nothing, but the kernel writes checksums into modified frames only
        }
        job
    };
    kinds.flat_map(|(_, fd)| filters.iter().map(move |filter| job(fd, filter))).collect()
}

/// A classic job has no flags and only the first 8 bytes.
fn for_kind(operand: &Modification, fd: bool) -> Modification {
    let mut operand = *operand;
    if !fd {
        operand.flags = None;
        if let Some(data) = &mut operand.data {
            data[8..].fill(0);
        }
    }
    operand
}

/// The rules that can-gw cannot apply between any interfaces.
pub fn inexpressible(policy: &Policy) -> Vec<Inexpressible> {
    let mut faults = Vec::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        let mut fault = |reason: String| faults.push(Inexpressible { rule: at, place: rule.place, reason });
        if rule.limit.is_some() {
            fault("can-gw cannot limit rates".into());
        }
        if rule.convert.is_some() {
            fault("can-gw cannot convert frames".into());
        }
        if let Some((a, b)) = overlap(rule, rule) {
            fault(format!("filters {a} and {b} have frames in common, which can-gw would forward twice"));
        }
        if policy.matching == Matching::First {
            let earlier = policy.rules[..at].iter().enumerate();
            let clash = earlier
                .filter(|(_, other)| !(rule.drop && other.drop))
                .find_map(|(number, other)| overlap(other, rule).map(|(a, b)| (other.label(number), a, b)));
            if let Some((other, a, b)) = clash {
                fault(format!(
                    "filter {b} has frames in common with {a} of {other}, and can-gw applies every matching rule \
                     (set match = \"all\", or use filters without common frames)"
                ));
            }
        } else if rule.drop {
            fault("a rule that drops has no effect in can-gw with match = \"all\"".into());
        }
    }
    faults
}

/// A rule without filters has one that passes everything.
fn filters_of(rule: &Rule) -> &[Filter] {
    const EVERYTHING: &[Filter] = &[Filter { id: 0, mask: 0 }];
    if rule.filters.is_empty() { EVERYTHING } else { &rule.filters }
}

/// Two filters, one of each rule, that the same frame may match. For a rule and itself, two different filters.
fn overlap(a: &Rule, b: &Rule) -> Option<(String, String)> {
    let kinds_meet = a.kinds.classic && b.kinds.classic || a.kinds.fd && b.kinds.fd;
    if !kinds_meet {
        return None;
    }
    let same = std::ptr::eq(a, b);
    let (of_a, of_b) = (filters_of(a), filters_of(b));
    of_a.iter().enumerate().find_map(|(at, first)| {
        let others = of_b.iter().enumerate().filter(|(other, _)| !same || *other > at);
        let clash = others.map(|(_, second)| second).find(|second| !select::disjoint(first, second))?;
        Some((select::show(first), select::show(clash)))
    })
}

/// Jobs of the kernel as routes, and for each rule of each route the numbers of its jobs. A classic and an FD job that
/// are otherwise the same become one rule. `name` returns the name of an interface.
pub fn to_rules(jobs: &[Job], name: impl Fn(u32) -> String) -> (RuleSet, Vec<Vec<Vec<usize>>>) {
    let mut set = RuleSet::default();
    let mut numbers: Vec<Vec<Vec<usize>>> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let (from, to) = (name(job.source), name(job.destination));
        let known = set.routes.iter().position(|route| route.from == from && route.to == to);
        let route = known.unwrap_or_else(|| {
            let policy = Policy { matching: Matching::All, rules: Vec::new() };
            set.routes.push(RouteRules { from, to, policy, place: Place::default() });
            numbers.push(Vec::new());
            set.routes.len() - 1
        });
        let rules = &mut set.routes[route].policy.rules;
        let rule = to_rule(job);
        // An FD job and a classic job without properties that only one kind can have.
        let twin = rules.iter_mut().zip(&mut numbers[route]).find(|(other, _)| {
            let kinds = Kinds { classic: true, fd: true };
            let apart = other.kinds != kinds && other.kinds != rule.kinds;
            let plain = other.change.is_empty() && rule.change.is_empty();
            apart && plain && Rule { kinds, ..(*other).clone() } == Rule { kinds, ..rule.clone() }
        });
        match twin {
            Some((other, jobs)) => {
                other.kinds = Kinds::default();
                jobs.push(at);
            }
            None => {
                rules.push(rule);
                numbers[route].push(vec![at]);
            }
        }
    }
    (set, numbers)
}

fn to_rule(job: &Job) -> Rule {
    let mut and = job.and;
    if let (Some(data), false) = (&mut and.data, job.fd) {
        data[8..].fill(0xff);
    }
    let (or, xor, set) = (job.or, job.xor, job.set);
    let change = Change { and, or, xor, set, crc8: job.crc8, xor_checksum: job.xor_checksum };
    Rule {
        kinds: Kinds { classic: !job.fd, fd: job.fd },
        filters: job.filter.into_iter().collect(),
        change,
        hops: job.hops_max,
        echo: Some(job.echo),
        keep_stamp: job.keep_stamp,
        same_interface: job.same_interface,
        ..Rule::default()
    }
}
