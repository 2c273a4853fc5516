//! Controllers: their state, their settings, and what they have lost.

use super::{
    finding::{Check, Cost, Symptom},
    machine::{Machine, Patient},
};
use canter_io::{
    carrier::Access,
    interface::{Controller, Modes, State, remedy},
};

/// Sample points outside of this, in tenths of a percent, make bit errors on long cables or with slow transceivers.
/// CiA recommends 875; the kernel takes 750 at 1 Mbit/s.
const SAMPLE_POINT: std::ops::RangeInclusive<u32> = 700..=900;

/// Controllers that hold fewer frames than a busy bus sends before a driver can come: driver, frames, what is known.
const SHALLOW: &[(&str, u32, &str)] = &[
    ("mcp251x", 2, "two receive buffers behind SPI, read by a thread; an MCP2518FD (mcp251xfd) holds dozens"),
    ("mpc5xxx_can", 5, "five frames: a burst of six is lost when they are taken out too late"),
];

pub const CHECKS: &[Check] = &[
    Check {
        name: "bus-state",
        about: "error-passive and bus-off controllers",
        cost: Cost::Frames,
        look: state,
    },
    Check { name: "restart", about: "controllers that stay off the bus", cost: Cost::Frames, look: restart },
    Check {
        name: "overrun",
        about: "what controllers and drivers have lost",
        cost: Cost::Frames,
        look: overrun,
    },
    Check {
        name: "controller-depth",
        about: "controllers that hold too few frames",
        cost: Cost::Frames,
        look: depth,
    },
    Check { name: "sample-point", about: "where a bit is sampled", cost: Cost::Frames, look: sample_point },
    Check { name: "modes", about: "one-shot and loopback left on", cost: Cost::Frames, look: modes },
];

/// The symptoms of all controllers, as `look` sees them.
fn each(
    machine: &Machine,
    look: impl Fn(&Patient, &Controller) -> Option<(String, String, String)>,
) -> Vec<Symptom> {
    let symptom = |patient: &Patient| {
        let (evidence, reason, remedy) = look(patient, patient.interface.controller.as_ref()?)?;
        Some(Symptom { thing: patient.interface.name.clone(), evidence, reason, remedy })
    };
    machine.controllers().filter_map(symptom).collect()
}

fn state(machine: &Machine) -> Vec<Symptom> {
    each(machine, |patient, controller| {
        let name = &patient.interface.name;
        let state = controller.state?;
        let errors = controller.error_counters;
        let counts = errors
            .map_or(String::new(), |errors| format!(", error counters tx {} rx {}", errors.tx, errors.rx));
        let evidence = format!("{state}{counts}");
        match state {
            State::BusOff => Some((
                evidence,
                "the controller takes no part in the bus until it is restarted".into(),
                format!("{}, once the cause is gone", remedy::restart(name)),
            )),
            State::ErrorPassive | State::ErrorWarning => Some((
                evidence,
                "frames are repeated or refused: a wrong bit rate, a cable, a missing terminator, or nobody else on \
                 the bus"
                    .into(),
                format!("{} shows which error; compare the bit rates of all nodes", errors_of(patient)),
            )),
            _ => None,
        }
    })
}

/// What shows error frames and nothing else.
fn errors_of(patient: &Patient) -> String {
    let name = &patient.interface.name;
    match patient.interface.carrier.access {
        Access::File => format!("canter capture {name},0~0,#FFFFFFFF -o errors.log"),
        _ => format!("candump -e {name},0~0,#FFFFFFFF"),
    }
}

fn restart(machine: &Machine) -> Vec<Symptom> {
    each(machine, |patient, controller| {
        let (times, name) = (patient.counters.bus_off, &patient.interface.name);
        (times > 0 && controller.restart_ms == 0).then(|| {
            (
                format!("off the bus {times} × so far, and restart-ms is 0"),
                "after each bus-off the controller stays silent until a user restarts it".into(),
                remedy::restart_by_itself(name),
            )
        })
    })
}

fn overrun(machine: &Machine) -> Vec<Symptom> {
    each(machine, |patient, _| {
        let counted = &patient.counters;
        let overruns = counted.rx_over_errors + counted.rx_fifo_errors + counted.rx_missed;
        (overruns > 0 || counted.rx_dropped > 0).then(|| {
            let driver = patient.interface.driver.as_deref().unwrap_or("its driver");
            (
                format!("{overruns} overruns of the controller and {} frames dropped by {driver} so far", counted.rx_dropped),
                "frames came faster than the interrupt handler took them out; an overrun is an event, the number of \
                 frames is not known"
                    .into(),
                "less work in interrupts: on PREEMPT_RT raise its interrupt thread, keep other interrupts off its \
                 processor; or a controller that holds more"
                    .into(),
            )
        })
    })
}

fn depth(machine: &Machine) -> Vec<Symptom> {
    each(machine, |patient, _| {
        let driver = patient.interface.driver.as_deref()?;
        let &(_, frames, known) = SHALLOW.iter().find(|&&(name, ..)| name == driver)?;
        let bitrate = patient.interface.bitrate()?;
        let us = u64::from(frames) * 47 * 1_000_000 / u64::from(bitrate);
        Some((
            format!("{driver}: {frames} frames, {us} µs of the shortest at {bitrate} bit/s"),
            known.into(),
            "a lower bit rate, filters in the controller, or another controller".into(),
        ))
    })
}

fn sample_point(machine: &Machine) -> Vec<Symptom> {
    each(machine, |patient, controller| {
        let timing = controller.timing;
        let name = &patient.interface.name;
        (timing.bitrate > 0 && timing.sample_point > 0 && !SAMPLE_POINT.contains(&timing.sample_point)).then(|| {
            (
                format!("sample point {}.{} % at {} bit/s", timing.sample_point / 10, timing.sample_point % 10, timing.bitrate),
                "far from what other nodes use (CiA: 87.5 %): late edges of a long bus are read as wrong bits".into(),
                format!("ip link set {name} down; ip link set {name} up type can bitrate {} sample-point 0.875", timing.bitrate),
            )
        })
    })
}

fn modes(machine: &Machine) -> Vec<Symptom> {
    const HARMFUL: [(Modes, &str, &str); 2] = [
        (Modes::ONE_SHOT, "one-shot", "a frame that loses arbitration or meets an error is given up"),
        (
            Modes::LOOPBACK,
            "loopback",
            "what is sent comes back inside of the controller and never reaches the bus",
        ),
    ];
    each(machine, |patient, controller| {
        let &(_, mode, reason) = HARMFUL.iter().find(|&&(mode, ..)| controller.modes.contains(mode))?;
        let name = &patient.interface.name;
        let remedy = format!("ip link set {name} down; ip link set {name} up type can {mode} off");
        Some((format!("{mode} is on"), reason.into(), remedy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{machine_of, with_controller};
    use canter_io::interface::Timing;

    #[test]
    fn the_kernel_s_own_sample_points_are_healthy() {
        for (point, healthy) in [(875, true), (750, true), (800, true), (500, false), (950, false)] {
            let timing = Timing { bitrate: 1_000_000, sample_point: point, ..Timing::default() };
            let found = sample_point(&machine_of(with_controller(|controller| controller.timing = timing)));
            assert_eq!(found.is_empty(), healthy, "{found:?}");
        }
    }

    #[test]
    fn modes_and_states_that_lose_frames_are_found() {
        let one_shot = with_controller(|controller| controller.modes = Modes::ONE_SHOT);
        assert_eq!(modes(&machine_of(one_shot))[0].evidence, "one-shot is on");
        let off = with_controller(|controller| controller.state = Some(State::BusOff));
        assert_eq!(state(&machine_of(off))[0].evidence, "BUS-OFF");
        let fine = with_controller(|controller| controller.state = Some(State::ErrorActive));
        assert_eq!(state(&machine_of(fine)), []);
    }

    #[test]
    fn a_controller_of_two_buffers_is_too_shallow_and_one_that_overran_has_lost() {
        let mut one = with_controller(|_| ());
        one.interface.driver = Some("mcp251x".into());
        one.counters.rx_over_errors = 3;
        one.counters.bus_off = 1;
        let sick = machine_of(one);
        assert_eq!(depth(&sick)[0].evidence, "mcp251x: 2 frames, 94 µs of the shortest at 1000000 bit/s");
        assert!(overrun(&sick)[0].evidence.starts_with("3 overruns"));
        assert!(restart(&sick)[0].evidence.starts_with("off the bus 1 ×"));
    }
}
