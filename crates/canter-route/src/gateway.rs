//! The gateway: forwards frames from one interface to another by rules, with any pair of methods or in the kernel.

pub mod account;
mod backlog;
mod bare_metal;
mod can_gw;
pub mod child;
mod control;
mod detached;
pub mod kind;
mod pairs;
mod plan;
mod refusal;
pub mod route;
pub mod table;
#[doc(hidden)]
pub mod toy;
mod watch;

use crate::rules::{counts::Counts, engine::RuleCounts};
use account::{Account, RuleAccount};
use backlog::WhenFull;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    trouble::refuse_down,
};
use canter_io::Interface;
use clap::Args;
use kind::{Kind, Method, Outcome, Request, Settings};
use plan::Ends;
use table::GATEWAYS;

/// Route frames from one interface to another, until stopped
#[derive(Args)]
#[command(after_help = help(GATEWAYS))]
pub struct Arguments {
    #[command(flatten)]
    ends: Ends,
    #[arg(long, short, value_name = "PAIR", help = method_help(GATEWAYS))]
    method: Option<Method>,
    #[command(flatten)]
    settings: Settings,
}

impl Arguments {
    /// The method of each direction of a command line.
    pub fn methods(&self) -> failure::Result<Vec<Method>> {
        let method = self.method.unwrap_or_else(table::usual);
        let directions = plan::directions(&self.ends, method.kind.takes_hops)?;
        directions.iter().map(|direction| method.between(direction)).collect()
    }
}

/// The kinds that are not pairs of methods.
fn named(table: &[Kind]) -> impl Iterator<Item = &Kind> {
    table.iter().filter(|kind| !kind.pairs)
}

fn method_help(table: &[Kind]) -> String {
    let names: Vec<_> = named(table).map(|kind| kind.name).collect();
    let names = match &names[..] {
        [all @ .., last] => format!("{}, or {last}", all.join(", ")),
        [] => String::new(),
    };
    format!("RECEIVER+TRANSMITTER, {names}; unless given read+write, or the interfaces' own pair")
}

fn help(table: &[Kind]) -> String {
    let line =
        |kind: &Kind| format!("  canter gateway can3 can4 --method {:<16} {}\n", kind.name, kind.example);
    let kinds: String = named(table).map(line).collect();
    format!("\
Examples:
  canter gateway can3 can4                           a read and a write for each frame
  canter gateway can3 can4 --method ring/spin+write  lowest latency, one processor busy
{kinds}  canter gateway can0 /dev/canchar2 --both           between an interface and a character device
  canter gateway can0 can1 --filter 123:7FF,400:700  only these identifiers
  canter gateway can0 can1 --both                    both directions, without echoes
  canter gateway can0 can1 --rules rules.toml        by the file's rules (docs/rules.md)
  canter gateway --rules routes.toml --stats 1s      all routes of the file; print counts every second
  canter gateway can0 can1 --when-full drop-old --priority --backlog 64
`canter methods` lists the methods. The 2014 paper's names (mmapbusy-write, …) work too.
SIGHUP reads the rule file again. On SIGINT and SIGTERM the gateway sends the frames that it has received, then ends.
Exit code 0; 3 when frames were lost.")
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let Arguments { ends, method, settings } = arguments;
    if settings.priority && settings.when_full == WhenFull::Wait {
        return Err(Failure::new(
            Exit::Usage,
            "--priority: needs a backlog (--when-full drop-new or drop-old)",
        ));
    }
    let method = method.unwrap_or_else(table::usual);
    if settings.one_thread && (!method.kind.pairs || settings.when_full != WhenFull::Wait) {
        let why = "--one-thread: is for pairs of methods with --when-full wait (leave it out)";
        return Err(Failure::new(Exit::Usage, why));
    }
    let directions = plan::directions(&ends, method.kind.takes_hops)?;
    if !(settings.wait_for_interface && method.kind.waits_for_interfaces) {
        for name in directions.iter().flat_map(|direction| [&direction.from, &direction.to]) {
            refuse_down(&Interface::find(name)?)?;
        }
    }
    common.apply()?;
    let request = Request { method, ends: &ends, directions: &directions, settings: &settings, common };
    method.kind.refuse(&request)?;
    let outcome = (method.kind.run)(&request)?;
    finish(&request, outcome)
}

/// Writes and prints the account, and decides on the exit code.
fn finish(request: &Request<'_>, outcome: Outcome) -> failure::Result {
    let Request { directions, common, .. } = request;
    let Outcome { routes, ended } = outcome;
    let failure = ended.err().unwrap_or_default();
    let counts = routes.iter().fold(Counts::default(), |sum, route| sum.and(&route.counts));
    let account = Account {
        from: directions[0].from.clone(),
        to: directions[0].to.clone(),
        method: request.method_name(),
        counts,
        failure: failure.clone(),
        routes,
    };
    common.write_json(&account)?;
    if !common.quiet {
        print(&account);
    }
    if !failure.is_empty() {
        return Err(Failure::failed(failure));
    }
    Ok(if counts.drops.sum() - counts.drops.over_limit + counts.overrun > 0 {
        Exit::Lost
    } else {
        Exit::Done
    })
}

fn print(account: &Account) {
    let several = account.routes.len() > 1;
    for route in &account.routes {
        if several {
            eprintln!("gateway: {} → {}: {}", route.from, route.to, route.counts);
        }
        let width = route.rules.iter().map(|rule| rule.name.chars().count()).max().unwrap_or(0);
        for RuleAccount { name, counts } in &route.rules {
            let RuleCounts { matched, forwarded, changed } = counts;
            eprintln!(
                "gateway:   {name:width$}  {matched} matched, {forwarded} forwarded, {changed} changed"
            );
        }
    }
    eprintln!("gateway: {}", account.counts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        ends: Ends,
        #[command(flatten)]
        settings: Settings,
    }

    fn run_toy(name: &str, words: &[&str]) -> (failure::Result, String) {
        let Line { ends, settings } = Line::parse_from([&["gateway", "sim:a", "sim:b"], words].concat());
        let method = Some(table::find(name, toy::table()).unwrap());
        let json = tempfile::NamedTempFile::new().unwrap();
        let common = Common { quiet: true, json: Some(json.path().to_owned()), ..Common::default() };
        let exit = run(Arguments { ends, method, settings }, &common);
        (exit, std::fs::read_to_string(json.path()).unwrap())
    }

    #[test]
    fn a_gateway_is_a_row() {
        for name in ["toy", "toy-of-2014"] {
            let (exit, account) = run_toy(name, &[]);
            let account: Account = serde_json::from_str(&account).unwrap();
            assert_eq!(exit.unwrap(), Exit::Done);
            assert_eq!((account.method.as_str(), account.counts.transmitted), ("toy", 3));
        }
        let (refused, _) = run_toy("toy", &["--both"]);
        let refused = refused.unwrap_err();
        assert_eq!((refused.exit, refused.message.as_str()), (Exit::Unable, "toy: it has one direction"));
        assert!(help(toy::table()).contains("--method toy              in a test\n"));
        assert!(method_help(toy::table()).contains("bare-metal, or toy;"));
        assert!(table::find("toy", GATEWAYS).is_err());
    }

    #[test]
    fn every_gateway_is_found_by_its_own_names_only() {
        for kind in named(GATEWAYS) {
            for name in [kind.name, kind.paper_name].into_iter().filter(|name| !name.is_empty()) {
                assert_eq!(name.parse::<Method>().unwrap().to_string(), kind.name);
            }
            assert_eq!(table::paper_name(kind.name), kind.paper_name);
        }
        assert_eq!(table::paper_name("ring/spin+write"), "mmapbusy-write");
        assert_eq!("mmapbusy-write".parse::<Method>().unwrap().to_string(), "ring/spin+write");
        for name in ["", "RECEIVER+TRANSMITTER", "can-gv"] {
            assert!(name.parse::<Method>().is_err(), "{name:?}");
            assert_eq!(table::paper_name(name), "");
        }
    }

    #[test]
    fn features_of_user_space_pairs_are_refused_by_all_other_gateways() {
        let requests: [&[&str]; 4] = [
            &["--when-full", "drop-old"],
            &["--stats", "1s"],
            &["--wait-for-interface"],
            &["--filter", "#1FFFFFFF"],
        ];
        for kind in GATEWAYS {
            for words in requests {
                let Line { ends, settings } =
                    Line::parse_from([&["gateway", "sim:a", "sim:b"], words].concat());
                let directions = plan::directions(&ends, kind.takes_hops).unwrap();
                let method = Method { kind, pair: None };
                let common = &Common::default();
                let request =
                    Request { method, ends: &ends, directions: &directions, settings: &settings, common };
                assert_eq!(kind.refuse(&request).is_ok(), kind.pairs, "{}: {words:?}", kind.name);
            }
        }
    }
}
