//! Which directions a gateway has: from the command line, a rule file, or both.

use crate::rules::{Policy, RouteRules, Rule, RuleSet, graph, read};
use canter_cli::{
    document::Place,
    failure::{self, Exit, Failure},
};
use canter_io::method::{Echo, Pair};
use clap::Args;
use std::{collections::HashSet, path::PathBuf};

/// One direction.
#[derive(Clone, Debug)]
pub struct Direction {
    pub from: String,
    pub to: String,
    /// `None`: every frame is forwarded unchanged.
    pub policy: Option<Policy>,
    /// Ignores frames that this gateway sends on `from` and marks.
    pub deaf: bool,
    /// Marks the frames that it sends on `to`, so that another direction ignores them.
    pub marked: bool,
}

impl Direction {
    /// `can3 → can4`.
    pub fn label(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }

    /// The default pair of methods of its interfaces.
    pub fn usual_pair(&self) -> failure::Result<Pair> {
        Ok(Pair::usual(&self.from, &self.to)?)
    }

    /// Whether local sockets on the output receive its frames.
    pub fn echo(&self) -> Echo {
        let choices = self.policy.iter().flat_map(|policy| &policy.rules).filter_map(|rule| rule.echo);
        choices.max().map_or(Echo::Auto, |on| if on { Echo::On } else { Echo::Off })
    }

    /// Whether a rule limits a rate.
    pub fn has_limits(&self) -> bool {
        self.policy.iter().flat_map(|policy| &policy.rules).any(|rule| rule.limit.is_some())
    }

    /// What its rules say of both its sockets, which stay open when the rules are read again.
    pub fn ways(&self) -> (bool, bool, Echo) {
        (self.deaf, self.marked, self.echo())
    }

    /// What a user-space pair can do for all frames of a route only, and its rules want for some.
    fn differs_by_rule(&self) -> Option<&'static str> {
        let rules = self.policy.as_ref().map_or(&[][..], |policy| &policy.rules);
        let forwarding = || rules.iter().filter(|rule| !rule.drop);
        let differ = |key: fn(&Rule) -> Option<u8>| {
            let mut keys = forwarding().map(key);
            keys.next().is_some_and(|first| keys.any(|other| other != first))
        };
        if differ(|rule| rule.hops.filter(|hops| *hops == 1)) {
            return Some("hops");
        }
        differ(|rule| rule.echo.map(u8::from)).then_some("echo")
    }

    /// This route as a route of rules, for can-gw.
    pub fn rules(&self) -> RouteRules {
        let hops = self.deaf.then_some(1);
        let everything = || Policy { rules: vec![Rule { hops, ..Rule::default() }], ..Policy::default() };
        let policy = self.policy.clone().unwrap_or_else(everything);
        RouteRules { from: self.from.clone(), to: self.to.clone(), policy, place: Place::default() }
    }
}

/// Input, output and rules of the command line.
#[derive(Args, Clone, Debug)]
pub struct Ends {
    /// Input: the interface that receives
    #[arg(value_name = "IN", required_unless_present = "rules", requires = "to")]
    pub from: Option<String>,
    /// Output: the interface that sends
    #[arg(value_name = "OUT")]
    pub to: Option<String>,
    /// Rule file: routes, and rules that select and change frames
    #[arg(long, short, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Route the opposite direction too
    #[arg(long, requires = "from")]
    pub both: bool,
}

/// All directions of this command line, for a gateway that `takes_hops` or for one that counts one hop only.
pub fn directions(arguments: &Ends, takes_hops: bool) -> failure::Result<Vec<Direction>> {
    let ends = arguments.from.as_deref().zip(arguments.to.as_deref());
    let mut routes = match (&arguments.rules, ends) {
        (None, None) => return Err(usage("IN and OUT are missing (give them, or --rules with routes)")),
        (None, Some((from, to))) => named(from, to, None, arguments.both),
        (Some(path), ends) => {
            from_file(read::file(path)?, ends, arguments.both, &path.display().to_string())?
        }
    };
    let copies: Vec<RouteRules> = routes.iter().map(Direction::rules).collect();
    if arguments.rules.is_some()
        && let Some((_, reason)) = graph::conflict(&copies)
    {
        return Err(usage(reason));
    }
    let deaf: HashSet<_> =
        routes.iter().filter(|route| one_hop(route)).map(|route| route.to.clone()).collect();
    for route in &mut routes {
        route.deaf |= deaf.contains(&route.from);
    }
    let deaf_inputs: HashSet<_> =
        routes.iter().filter(|route| route.deaf).map(|route| route.from.clone()).collect();
    for route in &mut routes {
        route.marked = deaf_inputs.contains(&route.to) && (one_hop(route) || arguments.both);
    }
    if !takes_hops && let Some(label) = counts_hops(&routes) {
        let way_out = "hops = 1, or --method can-gw";
        return Err(usage(format!("{label}: a user-space pair cannot count more than one hop ({way_out})")));
    }
    if !takes_hops && let Some((label, key)) = mixed(&routes) {
        let way_out = format!("give all rules of the route the same `{key}`, or use --method can-gw");
        return Err(usage(format!(
            "{label}: `{key}` differs between rules: a user-space pair has one for all ({way_out})"
        )));
    }
    Ok(routes)
}

/// The first route whose rules differ in what a user-space pair has once.
fn mixed(routes: &[Direction]) -> Option<(String, &'static str)> {
    routes.iter().find_map(|route| Some((route.label(), route.differs_by_rule()?)))
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// One direction, or both, which ignore each other's frames.
fn named(from: &str, to: &str, policy: Option<Policy>, both: bool) -> Vec<Direction> {
    let one = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        Direction { from, to, policy: policy.clone(), deaf: both, marked: both }
    };
    if both { vec![one(from, to), one(to, from)] } else { vec![one(from, to)] }
}

fn from_file(
    set: RuleSet,
    ends: Option<(&str, &str)>,
    both: bool,
    file: &str,
) -> failure::Result<Vec<Direction>> {
    match (set.loose, ends) {
        (Some(mut policy), Some((from, to))) => {
            if both {
                policy.rules.iter_mut().for_each(|rule| rule.hops = rule.hops.or(Some(1)));
            }
            Ok(named(from, to, Some(policy), both))
        }
        (Some(_), None) => Err(usage(format!("{file}: has rules without a route (give IN and OUT)"))),
        (None, ends) => {
            let wanted = |route: &RouteRules| {
                ends.is_none_or(|(from, to)| {
                    route.from == from && route.to == to || both && route.from == to && route.to == from
                })
            };
            let routes: Vec<_> = set.routes.into_iter().filter(wanted).collect();
            if let ([], Some((from, to))) = (&routes[..], ends) {
                return Err(usage(format!("{file}: has no route {from} → {to}")));
            }
            let direction = |RouteRules { from, to, policy, .. }| Direction {
                from,
                to,
                policy: Some(policy),
                deaf: false,
                marked: false,
            };
            Ok(routes.into_iter().map(direction).collect())
        }
    }
}

/// Whether its frames must not be forwarded again.
fn one_hop(route: &Direction) -> bool {
    route.policy.iter().flat_map(|policy| &policy.rules).any(|rule| rule.hops == Some(1))
}

/// A route that allows several hops and whose output is the input of another route.
fn counts_hops(routes: &[Direction]) -> Option<String> {
    let several = |route: &&Direction| {
        let mut rules = route.policy.iter().flat_map(|policy| &policy.rules);
        rules.any(|rule| rule.hops.is_some_and(|hops| hops > 1))
    };
    let continues = |route: &&Direction| routes.iter().any(|other| other.from == route.to);
    routes.iter().filter(several).find(continues).map(Direction::label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(rules: &str, takes_hops: bool) -> failure::Result<Vec<Direction>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let (from, to) = (Some("vcan0".to_owned()), Some("vcan1".to_owned()));
        directions(&Ends { from, to, rules: Some(file.path().to_owned()), both: false }, takes_hops)
    }

    #[test]
    fn what_a_pair_has_once_for_a_route_must_not_differ_between_its_rules() {
        for (key, other) in
            [("hops = 1", ""), ("hops = 1", "hops = 2"), ("echo = true", "echo = false"), ("echo = true", "")]
        {
            let rules =
                format!("[[rule]]\nfilter = [\"100\"]\n{key}\n[[rule]]\nfilter = [\"101\"]\n{other}\n");
            let refused = planned(&rules, false).unwrap_err();
            let name = key.split(' ').next().unwrap();
            assert_eq!(refused.exit, Exit::Usage);
            assert!(
                refused.message.starts_with(&format!("vcan0 → vcan1: `{name}` differs between rules")),
                "{refused}"
            );
            assert!(planned(&rules, true).is_ok(), "can-gw has them for each job");
            let same = format!("[[rule]]\nfilter = [\"100\"]\n{key}\n[[rule]]\nfilter = [\"101\"]\n{key}\n");
            assert!(planned(&same, false).is_ok(), "{same}");
            let dropped =
                format!("[[rule]]\nfilter = [\"100\"]\n{key}\n[[rule]]\nfilter = [\"101\"]\ndrop = true\n");
            assert!(planned(&dropped, false).is_ok(), "{dropped}");
        }
    }
}
