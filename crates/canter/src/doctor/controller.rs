//! Controllers: their state, their settings, and the frames that they have lost.

use super::{
    finding::{Check, Cost, Symptom},
    machine::{Machine, Patient},
};
use canter_io::{
    carrier::Access,
    interface::{Controller, Modes, State, remedy},
};

/// Usual sample points, in tenths of a percent. Others cause bit errors on long cables or with slow transceivers.
/// CiA recommends 875; the kernel uses 750 at 1 Mbit/s.
const SAMPLE_POINT: std::ops::RangeInclusive<u32> = 700..=900;

/// Controllers that overrun on a busy bus before the driver reads them: driver, receive buffers in frames, explanation.
const SHALLOW: &[(&str, u32, &str)] = &[
    ("mcp251x", 2, "two receive buffers behind SPI, read by a thread; an MCP2518FD (mcp251xfd) holds dozens"),
    (
        "mpc5xxx_can",
        5,
        "five receive buffers: a burst of six frames overruns them when the interrupt handler is late",
    ),
];

pub const CHECKS: &[Check] = &[
    Check {
        name: "bus-state",
        about: "error-passive and bus-off controllers",
        cost: Cost::Frames,
        look: state,
    },
    Check { name: "restart", about: "controllers that stay bus-off", cost: Cost::Frames, look: restart },
    Check {
        name: "overrun",
        about: "frames lost by controllers and drivers",
        cost: Cost::Frames,
        look: overrun,
    },
    Check {
        name: "controller-depth",
        about: "controllers with few receive buffers",
        cost: Cost::Frames,
        look: depth,
    },
    Check {
        name: "sample-point",
        about: "sample points outside 70…90 %",
        cost: Cost::Frames,
        look: sample_point,
    },
    Check { name: "modes", about: "one-shot or loopback mode left on", cost: Cost::Frames, look: modes },
];

/// Runs `look` for each controller. It returns a symptom's evidence, reason and remedy.
fn symptoms(
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
    symptoms(machine, |patient, controller| {
        let name = &patient.interface.name;
        let state = controller.state?;
        let errors = controller.error_counters;
        let counts = errors
            .map_or(String::new(), |errors| format!(", error counters tx {} rx {}", errors.tx, errors.rx));
        let evidence = format!("{state}{counts}");
        match state {
            State::BusOff => Some((
                evidence,
                "the controller neither sends nor receives until it is restarted".into(),
                format!("{}, after removing the cause", remedy::restart(name)),
            )),
            State::ErrorPassive | State::ErrorWarning => Some((
                evidence,
                "frames are repeated or rejected: a wrong bit rate, a broken cable, a missing terminator, or no other \
                 node on the bus"
                    .into(),
                format!("{} shows the errors; compare the bit rates of all nodes", error_monitor(patient)),
            )),
            _ => None,
        }
    })
}

/// The command that shows error frames and nothing else.
fn error_monitor(patient: &Patient) -> String {
    let name = &patient.interface.name;
    match patient.interface.carrier.access {
        Access::File => format!("canter capture {name},0~0,#FFFFFFFF -o errors.log"),
        _ => format!("candump -e {name},0~0,#FFFFFFFF"),
    }
}

fn restart(machine: &Machine) -> Vec<Symptom> {
    symptoms(machine, |patient, controller| {
        let (times, name) = (patient.counters.bus_off, &patient.interface.name);
        (times > 0 && controller.restart_ms == 0).then(|| {
            (
                format!("bus-off {times} × so far, and restart-ms is 0"),
                "after each bus-off the controller stays silent until a user restarts it".into(),
                remedy::restart_by_itself(name),
            )
        })
    })
}

fn overrun(machine: &Machine) -> Vec<Symptom> {
    symptoms(machine, |patient, _| {
        let counted = &patient.counters;
        let overruns = counted.rx_over_errors + counted.rx_fifo_errors + counted.rx_missed;
        (overruns > 0 || counted.rx_dropped > 0).then(|| {
            let driver = patient.interface.driver.as_deref().unwrap_or("its driver");
            (
                format!("{overruns} overruns of the controller and {} frames dropped by {driver} so far", counted.rx_dropped),
                "frames arrived faster than the interrupt handler read them; an overrun counts an event, and the \
                 number of frames that it lost is unknown"
                    .into(),
                "move other interrupts to another processor, on PREEMPT_RT raise the priority of its interrupt thread, \
                 or use a controller with more receive buffers"
                    .into(),
            )
        })
    })
}

fn depth(machine: &Machine) -> Vec<Symptom> {
    symptoms(machine, |patient, _| {
        let driver = patient.interface.driver.as_deref()?;
        let &(_, frames, explanation) = SHALLOW.iter().find(|&&(name, ..)| name == driver)?;
        let bitrate = patient.interface.bitrate()?;
        let us = u64::from(frames) * 47 * 1_000_000 / u64::from(bitrate);
        Some((
            format!("{driver} holds {frames} frames: {us} µs of the shortest frames at {bitrate} bit/s"),
            explanation.into(),
            "lower the bit rate, set filters in the controller, or use another controller".into(),
        ))
    })
}

fn sample_point(machine: &Machine) -> Vec<Symptom> {
    symptoms(machine, |patient, controller| {
        let timing = controller.timing;
        let name = &patient.interface.name;
        (timing.bitrate > 0 && timing.sample_point > 0 && !SAMPLE_POINT.contains(&timing.sample_point)).then(|| {
            (
                format!("sample point {}.{} % at {} bit/s", timing.sample_point / 10, timing.sample_point % 10, timing.bitrate),
                "far from the usual 87.5 % (CiA): on a long bus, edges arrive late and bits are read wrong".into(),
                format!("ip link set {name} down; ip link set {name} up type can bitrate {} sample-point 0.875", timing.bitrate),
            )
        })
    })
}

fn modes(machine: &Machine) -> Vec<Symptom> {
    const HARMFUL: [(Modes, &str, &str); 2] = [
        (
            Modes::ONE_SHOT,
            "one-shot",
            "the controller does not repeat a frame that loses arbitration or meets an error",
        ),
        (Modes::LOOPBACK, "loopback", "sent frames come back inside the controller and never reach the bus"),
    ];
    symptoms(machine, |patient, controller| {
        let &(_, mode, reason) = HARMFUL.iter().find(|&&(mode, ..)| controller.modes.contains(mode))?;
        let name = &patient.interface.name;
        let remedy = format!("ip link set {name} down; ip link set {name} up type can {mode} off");
        Some((format!("{mode} is on"), reason.into(), remedy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{machine_with, with_controller};
    use canter_io::interface::Timing;

    #[test]
    fn the_kernel_s_own_sample_points_are_healthy() {
        for (point, healthy) in [(875, true), (750, true), (800, true), (500, false), (950, false)] {
            let timing = Timing { bitrate: 1_000_000, sample_point: point, ..Timing::default() };
            let found = sample_point(&machine_with(with_controller(|controller| controller.timing = timing)));
            assert_eq!(found.is_empty(), healthy, "{found:?}");
        }
    }

    #[test]
    fn modes_and_states_that_lose_frames_are_found() {
        let one_shot = with_controller(|controller| controller.modes = Modes::ONE_SHOT);
        assert_eq!(modes(&machine_with(one_shot))[0].evidence, "one-shot is on");
        let off = with_controller(|controller| controller.state = Some(State::BusOff));
        assert_eq!(state(&machine_with(off))[0].evidence, "BUS-OFF");
        let fine = with_controller(|controller| controller.state = Some(State::ErrorActive));
        assert_eq!(state(&machine_with(fine)), []);
    }

    #[test]
    fn a_controller_with_two_buffers_and_one_with_overruns_are_found() {
        let mut one = with_controller(|_| ());
        one.interface.driver = Some("mcp251x".into());
        one.counters.rx_over_errors = 3;
        one.counters.bus_off = 1;
        let sick = machine_with(one);
        assert_eq!(
            depth(&sick)[0].evidence,
            "mcp251x holds 2 frames: 94 µs of the shortest frames at 1000000 bit/s"
        );
        assert!(overrun(&sick)[0].evidence.starts_with("3 overruns"));
        assert!(restart(&sick)[0].evidence.starts_with("bus-off 1 ×"));
    }
}
