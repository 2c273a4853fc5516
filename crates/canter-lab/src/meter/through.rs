//! Gateways that the meter starts, one after the other. Only then does the meter know the place of each loss: a
//! gateway's drops and the losses of its receive queue are only in the gateway's account.

use super::{
    instrument::Setup,
    measurement::{self, Measured},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble::refuse_down,
};
use canter_io::{
    Interface,
    method::{Pair, ReceiveMethod, TransmitMethod},
};
use canter_measure::result::Series;
use canter_route::gateway::{
    child::{Gateway, Order},
    kind::{Kind, Method},
    table::{GATEWAYS, paper_name},
};
use clap::Args;
use std::{path::PathBuf, str::FromStr};

/// The gateway that is measured
#[derive(Args, Clone, Debug)]
pub struct Through {
    /// Start the gateway from IN to OUT on this machine too, so that its own losses can be counted
    #[arg(long, value_name = "IN,OUT")]
    pub through: Option<Ends>,
    #[arg(long, short, value_name = "PAIRS", value_delimiter = ',', requires = "through", help = method_help())]
    pub method: Vec<String>,
    /// Rule file of the gateway: of --through, or of one that a recording has
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// With --through: processor of the gateway; the meter's unless given
    #[arg(long, value_name = "N", requires = "through")]
    pub gateway_cpu: Option<usize>,
}

fn method_help() -> String {
    let names: Vec<_> = measurable().map(|kind| kind.name).collect();
    let all = format!("by every pair that works here, {}", names.join(" and "));
    let usual = "Unless given, read+write, or the default of the interfaces";
    format!("With --through: by these methods, one after the other; all: {all}. {usual}")
}

/// Gateways other than pairs whose interfaces exist while they run, so that the meter finds them.
fn measurable() -> impl Iterator<Item = &'static Kind> {
    GATEWAYS.iter().filter(|kind| !kind.pairs && kind.keeps_interfaces())
}

/// The two interfaces of the gateway.
#[derive(Clone, Debug)]
pub struct Ends {
    pub from: String,
    pub to: String,
}

impl Ends {
    /// The default pair of its interfaces.
    pub fn usual_pair(&self) -> String {
        Pair::usual(&self.from, &self.to).map_or_else(|error| error.to_string(), |pair| pair.to_string())
    }
}

impl FromStr for Ends {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(',') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() && from != to && !to.contains(',') => {
                Ok(Self { from: from.to_owned(), to: to.to_owned() })
            }
            _ => Err("expected two interfaces: can3,can4".to_owned()),
        }
    }
}

impl Through {
    /// The methods to measure; `None` is a gateway that somebody else has started.
    pub fn methods(&self) -> failure::Result<Vec<Option<String>>> {
        let Some(ends) = &self.through else { return Ok(vec![None]) };
        let (from, to) = (Interface::find(&ends.from)?, Interface::find(&ends.to)?);
        refuse_down(&from)?;
        refuse_down(&to)?;
        if self.method.is_empty() {
            return Ok(vec![Some(ends.usual_pair())]);
        }
        let mut methods = Vec::new();
        for method in &self.method {
            if method == "all" {
                methods.extend(all(&from, &to));
                continue;
            }
            let known: Method = method.parse().map_err(|error: canter_io::Error| {
                Failure::new(Exit::Usage, format!("--method {method}: {error}"))
            })?;
            methods.push(known.to_string());
        }
        Ok(methods.into_iter().map(Some).collect())
    }

    /// Measures one of [`Through::methods`].
    pub fn measure(&self, method: Option<&str>, setup: &Setup, common: &Common) -> failure::Result<Measured> {
        let (Some(ends), Some(method)) = (&self.through, method) else {
            return measurement::measure(setup, common, &[], &*interrupt_flag()?)?.refuse_silence();
        };
        let (rules, cpu) = (self.rules.as_deref(), self.gateway_cpu);
        let names = [ends.from.as_str(), ends.to.as_str()];
        let order = Order { ends: Some(names), method, rules, cpu, realtime: 0, one_thread: false };
        measure(method, names, Gateway::start(&order)?, setup, common)
    }
}

/// Every gateway that works between two interfaces: first those in the kernel, then the pairs.
fn all(from: &Interface, to: &Interface) -> Vec<String> {
    let receivers: Vec<_> = ReceiveMethod::all().filter(|method| method.check(from).is_ok()).collect();
    let transmitters: Vec<_> = TransmitMethod::all().filter(|method| method.check(to).is_ok()).collect();
    let pairs = receivers
        .iter()
        .flat_map(|receive| transmitters.iter().map(move |transmit| format!("{receive}+{transmit}")));
    let others = measurable().filter(|kind| (kind.check_between)(from, to).is_ok());
    others.map(|kind| kind.name.to_owned()).chain(pairs).collect()
}

/// Measures a gateway, ends it, and closes the meter's account with the gateway's.
fn measure(
    method: &str,
    [from, to]: [&str; 2],
    gateway: Gateway,
    setup: &Setup,
    common: &Common,
) -> failure::Result<Measured> {
    let ends = match method.parse::<Method>() {
        Ok(method) if !method.kind.keeps_interfaces() => Vec::new(),
        _ => vec![Interface::find(from)?, Interface::find(to)?],
    };
    let stop = interrupt_flag()?;
    let setup = Setup { gateway: Some(gateway.process_id()), ..setup.clone() };
    let measured = measurement::measure(&setup, common, &ends.iter().collect::<Vec<_>>(), &stop);
    let account = gateway.stop()?;
    let mut measured = measured?;
    if let Some(why) = &measured.silent {
        eprintln!("canter: {method}: {why}");
    }
    measured.series = Series {
        method: method.to_owned(),
        paper_name: paper_name(method).to_owned(),
        ledger: measured.account.ledger(&account.counts),
        ..measured.series
    };
    measured.interfaces.extend(ends);
    Ok(measured)
}

/// The series of a method that cannot work here, with the reason.
pub fn unavailable(method: &str, setup: &Setup, reason: String) -> Series {
    let condition = canter_measure::result::Condition { traffic: setup.traffic.name(), ..Default::default() };
    Series { paper_name: paper_name(method).to_owned(), ..Series::unavailable(method, condition, reason) }
}
