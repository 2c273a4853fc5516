//! Refuses routes that have the same direction, or that form an endless loop.

use super::RouteRules;
use canter_cli::document::Place;
use std::collections::HashMap;

/// Two routes of the same direction, or a loop: the position of the later route, and the error.
pub fn conflict(routes: &[RouteRules]) -> Option<(Place, String)> {
    shared_direction(routes).or_else(|| endless_loop(routes))
}

fn shared_direction(routes: &[RouteRules]) -> Option<(Place, String)> {
    let mut lines = HashMap::new();
    routes.iter().find_map(|route| {
        let earlier = lines.insert((&route.from, &route.to), route.place.line)?;
        let message = format!(
            "{}: line {earlier} already has a route of this direction (put the rules of both into one)",
            route.label()
        );
        Some((route.place, message))
    })
}

/// A loop of routes without hop limits. If each route receives the frames of the one before, frames never leave the loop.
fn endless_loop(routes: &[RouteRules]) -> Option<(Place, String)> {
    let is_endless =
        |route: &&RouteRules| route.policy.rules.iter().any(|rule| !rule.drop && rule.hops.is_none());
    let ring = ring(&routes.iter().filter(is_endless).collect::<Vec<_>>())?;
    let (first, last) = (ring.first()?, ring.last()?);
    let names: Vec<_> = ring.iter().map(|route| route.from.as_str()).chain([first.from.as_str()]).collect();
    let message = format!(
        "{}: a loop that frames never leave (set hops = 1 in its routes, or both = true for two directions)",
        names.join(" → ")
    );
    Some((last.place, message))
}

/// The first ring that a walk along the routes meets. It takes each route once, and remembers its path in memory: a file may
/// have any number of routes.
fn ring<'a>(routes: &[&'a RouteRules]) -> Option<Vec<&'a RouteRules>> {
    // Those that were not taken yet, the next one last.
    let mut leaving: HashMap<&str, Vec<&RouteRules>> = HashMap::new();
    for &route in routes.iter().rev() {
        leaving.entry(&route.from).or_default().push(route);
    }
    let mut path: Vec<&RouteRules> = Vec::new();
    // Where in the path its interfaces are left.
    let mut places = HashMap::new();
    for first in routes {
        let mut at = first.from.as_str();
        loop {
            if let Some(route) = leaving.get_mut(at).and_then(Vec::pop) {
                places.insert(at, path.len());
                path.push(route);
                at = &route.to;
                if let Some(&begin) = places.get(at) {
                    return Some(path.split_off(begin));
                }
            } else {
                // No route from here leads into a ring.
                places.remove(at);
                let Some(route) = path.pop() else { break };
                at = &route.from;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, Rule};
    use super::*;
    use proptest::prelude::*;

    fn routes(list: &[(&str, &str, Option<u8>)]) -> Vec<RouteRules> {
        let route = |(from, to, hops): &(&str, &str, Option<u8>)| RouteRules {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            policy: Policy { rules: vec![Rule { hops: *hops, ..Rule::default() }], ..Policy::default() },
            place: Place::default(),
        };
        list.iter().map(route).collect()
    }

    fn message(list: &[(&str, &str, Option<u8>)]) -> String {
        conflict(&routes(list)).map_or(String::new(), |(_, message)| message)
    }

    #[test]
    fn rings_without_a_hop_limit_and_doubled_directions_are_found() {
        assert_eq!(message(&[("a", "b", None), ("b", "c", None), ("a", "c", None)]), "");
        assert!(message(&[("a", "b", None), ("b", "a", None)]).starts_with("a → b → a: a loop"));
        assert!(
            message(&[("x", "a", None), ("a", "b", None), ("b", "c", None), ("c", "a", None)])
                .starts_with("a → b → c → a")
        );
        assert_eq!(message(&[("a", "b", Some(1)), ("b", "a", None)]), "");
        let behind_a_dead_end = [("c", "d", None), ("d", "a", None), ("d", "e", None), ("e", "c", None)];
        assert!(message(&behind_a_dead_end).starts_with("c → d → e → c: a loop"));
        assert!(message(&[("a", "a", None)]).starts_with("a → a: a loop"));
        assert!(message(&[("a", "b", None), ("a", "b", None)]).contains("already"));
    }

    #[test]
    fn sixty_thousand_routes_need_no_stack() {
        const COUNT: usize = 60_000;
        let route = |at: usize, to: usize| RouteRules {
            from: format!("can{at}"),
            to: format!("can{to}"),
            policy: Policy { rules: vec![Rule::default()], ..Policy::default() },
            place: Place::default(),
        };
        let found = move || {
            let mut routes: Vec<_> = (0..COUNT).map(|at| route(at, at + 1)).collect();
            let none = conflict(&routes);
            routes.push(route(COUNT, 0));
            (none, conflict(&routes))
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(found).unwrap();
        let (none, (_, message)) = thread.join().map(|(none, ring)| (none, ring.unwrap())).unwrap();
        assert_eq!(none, None, "a chain");
        assert!(message.starts_with("can0 → can1 → ") && message.matches('→').count() == COUNT + 1);
    }

    /// Which nodes can be reached from which.
    fn reached(hops: &[(usize, usize)]) -> [[bool; 5]; 5] {
        let mut reached = [[false; 5]; 5];
        hops.iter().for_each(|&(from, to)| reached[from][to] = true);
        for via in 0..5 {
            for from in 0..5 {
                for to in 0..5 {
                    reached[from][to] |= reached[from][via] && reached[via][to];
                }
            }
        }
        reached
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_loop_is_found_exactly_if_a_frame_can_return_forever(
            list in prop::collection::btree_map((0usize..5, 0usize..5), any::<bool>(), 0..9), turn in 0usize..9,
        ) {
            const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
            let mut list: Vec<_> = list.into_iter().collect();
            let turn = turn % list.len().max(1);
            list.rotate_left(turn); // any order of the file
            let named: Vec<_> =
                list.iter().map(|&((from, to), limited)| (NAMES[from], NAMES[to], limited.then_some(1))).collect();
            let endless: Vec<_> = list.iter().filter(|(_, limited)| !limited).map(|(ends, _)| *ends).collect();
            let reached = reached(&endless);
            let message = message(&named);
            prop_assert_eq!(!message.is_empty(), (0..5).any(|at| reached[at][at]), "{:?}", named);
            if let Some((path, _)) = message.split_once(": a loop") {
                let path: Vec<_> = path.split(" → ").map(|name| NAMES.iter().position(|one| *one == name).unwrap()).collect();
                prop_assert_eq!(path.first(), path.last());
                prop_assert!(path.windows(2).all(|hop| endless.contains(&(hop[0], hop[1]))), "{}", message);
            }
        }
    }
}
