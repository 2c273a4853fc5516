//! `canter latency`: measures the latency of a gateway by the papers' method. Each frame is stamped on the sender's bus
//! and on the routed bus; the latency is the difference, minus the frame's duration on the routed bus.

use super::{
    instrument::{InstrumentName, Setup},
    sweep::{self, Campaign, Sweep},
    through::Through,
};
use crate::report;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    units,
};
use canter_measure::{environment, result::Series};
use clap::Args;

/// The examples of its help.
pub const EXAMPLES: &str = "  canter latency --send can0 --direct can1 --routed can2       1000 frames, one at a time
  canter latency --send can0 --routed can2 --traffic load=50%  the sender's echo gives the first stamp
  canter latency --send can0 --routed can2 --traffic period=120us --len 8 --count 10000
  canter latency --send can0 --direct can1 --routed can3 --null  the meter's floor, on one bus
  canter latency --instrument wire --send A --routed B         from the end on bus A to the start on bus B
  canter latency --send can0 --routed can2 --traffic period --sweep 160us..120us
  canter latency --instrument wire --send A --routed B --through wcan3,wcan4 --method all --first-loss
  canter latency --instrument probe --send can0 --routed can2  stamps by the interrupt handlers of two cards
  canter latency --instrument analyzer --send can0 --routed can2 --through can3,can4 --stages   in canter lab --analyzer
";

/// Measure how late a gateway is
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    setup: Setup,
    /// Name of the gateway's method, for the result file
    #[arg(long, default_value = "gateway", value_name = "NAME", conflicts_with = "through")]
    name: String,
    #[command(flatten)]
    through: Through,
    /// Measure once at each of these periods: FROM..TO (in eight steps) or FROM..TO/STEP
    #[arg(long, value_name = "PERIODS", conflicts_with = "first_loss")]
    sweep: Option<Sweep>,
    /// Search for the longest period at which frames are lost, starting at the bus's limit
    #[arg(long)]
    first_loss: bool,
    /// Print what the instructions of a frame's way are executed for (--instrument analyzer)
    #[arg(long)]
    stages: bool,
}

/// Runs `canter latency`.
pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let Arguments { setup, name, through, sweep, first_loss, stages } = &arguments;
    if *stages && setup.instrument != InstrumentName::Analyzer {
        return Err(Failure::new(Exit::Usage, "--stages: needs --instrument analyzer"));
    }
    let varies = sweep.is_some() || *first_loss;
    sweep::refuse_traffic(setup, varies)?;
    if through.rules.is_some() && through.through.is_none() {
        let message = "--rules: needs --through, the gateway that applies them, or a recording";
        return Err(Failure::new(Exit::Usage, message));
    }
    common.apply()?; // a gateway that canter starts inherits priority and processor
    let campaign = Campaign { setup, through, name, common };
    let found = match sweep {
        Some(sweep) => campaign.sweep(sweep)?,
        None if *first_loss => campaign.first_loss()?,
        None => campaign.once()?,
    };
    let result = environment::result("", &title(&arguments), &found.interfaces, found.series);
    common.write_result(&result.to_json())?;
    if common.shows_table() {
        let text = if varies { sweep::table(&result.series) } else { report::summary(&result) };
        print!("{text}");
        if *stages {
            print!("{}", report::stages(&result));
        }
        let wires = result.series.iter().filter_map(|series| series.wire.as_ref());
        wires.filter(|wire| !varies || !wire.kept_time()).for_each(|wire| println!("{wire}"));
        result
            .series
            .iter()
            .filter_map(|series| series.lateness(Series::LATE_ONE_IN))
            .for_each(|late| println!("{late}"));
        if let [only] = &result.series[..]
            && let (None, Some(floor_ns)) = (&only.wire, only.floor_ns)
            && !setup.null
            && floor_ns > 0
        {
            println!("floor: the instrument adds {:.1} µs to each latency", units::us(floor_ns));
        }
    }
    let ledgers = || result.series.iter().map(|series| series.ledger);
    let lost_by_meter: u64 = ledgers().map(|ledger| ledger.lost.meter).sum();
    if lost_by_meter > 0 {
        return Err(Failure::unable(format!(
            "the meter itself lost {lost_by_meter} frames, so nothing follows for the gateway (give the meter a processor of its own: \
             --cpu; or fewer frames per second)"
        )));
    }
    let lost = ledgers().any(|ledger| ledger.lost.total() > 0);
    Ok(match (found.interrupted, lost && !first_loss) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Done,
        (false, true) => Exit::Lost,
    })
}

fn title(arguments: &Arguments) -> String {
    let Arguments { setup, name, through, first_loss, .. } = arguments;
    let Setup { send, routed, .. } = setup;
    let name = match (&through.through, &through.method[..]) {
        (None, _) => name.clone(),
        (Some(ends), []) => ends.usual_pair(),
        (Some(_), [method]) if method != "all" => method.clone(),
        _ => "every gateway".to_owned(),
    };
    let what = if *first_loss { "Where losses begin" } else { "Latency" };
    format!("{what} of {name} from {send} to {routed}")
}
