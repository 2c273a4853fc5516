//! The command's part for recordings: reads them, prints the profile, writes the result file.

use super::{
    profile,
    reading::{Gateway, Recorded},
    runs::Tally,
};
use crate::recordings::Outcome;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    units,
};
use canter_measure::{
    environment,
    result::{Condition, Ledger, Lost, Series},
};

/// Analyses recordings.
pub fn run(recorded: &Recorded, gateway: &Gateway, common: &Common) -> failure::Result {
    let reading = recorded.reading(gateway, common)?;
    let forwarded = reading.forwarded(gateway.policy.is_some());
    let sum = Tally::sum(forwarded.iter().map(|(_, tally)| tally));
    let chosen = reading.delays.choose(recorded.stamps, &gateway.direct, &gateway.routed)?;
    let doubtful = reading.ending.outcomes.iter().any(Outcome::is_doubtful);
    if common.shows_table() {
        print!("{}", profile::text(gateway, &reading, &forwarded, &chosen, recorded.bitrate.is_some()));
    }
    if !common.quiet {
        reading.ending.remarks.iter().for_each(|remark| eprintln!("latency: {remark}"));
        chosen.remark.iter().for_each(|remark| eprintln!("latency: {remark}"));
        if reading.error_frames > 0 {
            eprintln!("latency: {} error frames are left out", reading.error_frames);
        }
    }
    let series = Series {
        method: "recorded".to_owned(),
        condition: Condition {
            traffic: "recorded".to_owned(),
            frames: sum.direct,
            load: "none".to_owned(),
            variant: chosen.stamps.variant().to_owned(),
            interfaces: vec![gateway.direct.clone(), gateway.routed.clone()],
            ..Condition::default()
        },
        latency_ns: Some(chosen.latency),
        ledger: Ledger {
            sent: sum.direct,
            received: sum.matched + sum.unclear,
            lost: Lost { unaccounted: sum.lost, ..Lost::default() },
            ..Ledger::default()
        },
        ..Series::default()
    };
    let title = format!("Delay from {} to {}, recorded", gateway.direct, gateway.routed);
    common.write_result(&environment::result("", &title, &[], vec![series]).to_json())?;
    if sum.matched + sum.unclear == 0 {
        let message = format!(
            "no frame of {} came out on {} (a gateway that changes frames needs --rules; --max-delay is {})",
            gateway.direct,
            gateway.routed,
            units::span(reading.delay_max_ns)
        );
        return Err(Failure::failed(message));
    }
    Ok(if sum.lost > 0 || doubtful { Exit::Lost } else { Exit::Done })
}
