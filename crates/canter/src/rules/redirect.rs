//! Rules for the method bpf: its program selects frames by identifier and kind, and forwards each once and unchanged.

use super::{Matching, Policy, Rule, jobs::Inexpressible};
use canter_io::{Filters, redirect};

/// The program's rules.
///
/// # Errors
/// Every rule that it cannot express.
pub fn of_policy(policy: &Policy) -> Result<Vec<redirect::Rule>, Vec<Inexpressible>> {
    let faults = inexpressible(policy);
    if faults.is_empty() { Ok(policy.rules.iter().map(of_rule).collect()) } else { Err(faults) }
}

fn of_rule(rule: &Rule) -> redirect::Rule {
    redirect::Rule {
        filters: Filters { list: rule.filters.clone(), ..Filters::default() },
        classic: rule.kinds.classic,
        fd: rule.kinds.fd,
        pass: !rule.drop,
    }
}

fn inexpressible(policy: &Policy) -> Vec<Inexpressible> {
    let mut faults = Vec::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        let copies = policy.matching == Matching::All && at > 0;
        let cannot = [
            (!rule.change.is_empty(), "bpf cannot change frames"),
            (rule.limit.is_some(), "bpf cannot limit rates"),
            (rule.convert.is_some(), "bpf cannot convert frames"),
            (rule.echo == Some(true), "local sockets on the output do not receive bpf's frames"),
            (rule.keep_stamp || rule.same_interface, "only can-gw supports keep-stamp and same-interface"),
            (copies, "bpf forwards a frame only once (match = \"first\")"),
        ];
        let reasons = cannot.iter().filter(|(applies, _)| *applies).map(|(_, reason)| *reason);
        faults.extend(reasons.map(|reason| Inexpressible {
            rule: at,
            place: rule.place,
            reason: format!("{reason}; use can-gw or a user-space pair"),
        }));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::{Kinds, engine::Engine, read, select};
    use super::*;
    use canter_io::{Batch, Frame, Meta};
    use proptest::prelude::*;

    fn policy(text: &str) -> Policy {
        read::parse("rules.toml", &format!("[[route]]\nfrom = \"a\"\nto = \"b\"\n{text}"))
            .unwrap()
            .routes
            .remove(0)
            .policy
    }

    #[test]
    fn rules_that_choose_frames_are_the_programs() {
        let policy = policy(
            "[[route.rule]]\nfilter = [\"123\"]\ndrop = true\n[[route.rule]]\nframes = \"fd\"\nhops = 2\n",
        );
        let [first, second] = &of_policy(&policy).unwrap()[..] else { panic!("two rules") };
        assert_eq!((first.filters.to_string().as_str(), first.pass), ("123:C00007FF", false));
        assert_eq!((second.classic, second.fd, second.pass), (false, true, true));
    }

    #[test]
    fn rules_that_do_more_are_refused_with_the_reason() {
        for (text, expected) in [
            ("set = { id = \"456\" }", "bpf cannot change frames; use can-gw or a user-space pair"),
            ("limit = \"1/s\"", "bpf cannot limit rates"),
            ("convert = \"fd\"", "bpf cannot convert frames"),
            ("echo = true", "local sockets on the output do not receive"),
            ("keep-stamp = true", "only can-gw supports"),
            (
                "match = \"all\"\n[[route.rule]]\nname = \"a\"\n[[route.rule]]\nname = \"b\"",
                "bpf forwards a frame only once",
            ),
        ] {
            let faults = of_policy(&policy(text)).unwrap_err();
            assert_eq!(faults.len(), 1, "{text}");
            assert!(faults[0].reason.contains(expected), "{:?}", faults[0]);
        }
    }

    fn choosing() -> impl Strategy<Value = Rule> {
        const FILTERS: &[&str] = &["100", "100-103", "~101", "00000100", "100#R", "100:700"];
        let filters = prop::collection::vec(prop::sample::select(FILTERS), 0..3);
        let kinds = prop::sample::select(&[(true, true), (true, false), (false, true)][..]);
        (filters, kinds, any::<bool>()).prop_map(|(filters, (classic, fd), drop)| Rule {
            filters: filters.iter().flat_map(|filter| select::parse(filter).unwrap()).collect(),
            kinds: Kinds { classic, fd },
            drop,
            ..Rule::default()
        })
    }

    proptest! {
        #[test]
        fn the_program_is_given_the_rules_that_the_engine_has(rules in prop::collection::vec(choosing(), 0..4), id in 0x0ffu32..0x105) {
            let policy = Policy { matching: Matching::First, rules };
            let program = of_policy(&policy).unwrap();
            let mut engine = Engine::new(&policy, 1);
            for text in [format!("{id:03X}#"), format!("{id:08X}#"), format!("{id:03X}#R"), format!("{id:03X}##0")] {
                let frame: Frame = text.parse().unwrap();
                let mut batch = Batch::new(1);
                batch.push(&frame, Meta::default());
                engine.apply(&mut batch, |_| 0);
                let of_kind = |rule: &&redirect::Rule| if frame.is_fd() { rule.fd } else { rule.classic };
                let first = program.iter().filter(of_kind).find(|rule| rule.filters.matches(&frame));
                prop_assert_eq!(first.is_some_and(|rule| rule.pass), engine.ready() == 1, "{}", text);
            }
        }
    }
}
