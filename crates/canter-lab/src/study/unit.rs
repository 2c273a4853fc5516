//! Units: a study on a kernel is a unit and makes a result file. Units with the same machine share a boot.

use super::definition::{Bus, ClockName, Kind, Lab, Set, Study};
use crate::lab::{self, Clock, Machine};
use canter_cli::failure::{self, Exit, Failure};
use canter_route::gateway::kind::{Method, Place};
use std::{path::Path, time::Duration};

/// A study on a kernel.
#[derive(Clone)]
pub struct Unit {
    pub study: Study,
    /// The kernel of the lab; `None`: the kernel of this machine.
    pub kernel: Option<String>,
    /// The kernel in the name of the result file; empty where the study has only one.
    label: String,
    /// The number of the unit's boot, counted from 1.
    pub boot: u32,
}

/// The time limit of one boot.
const TIMEOUT: Duration = Duration::from_secs(12 * 3600);
/// The duration of a boot, in units of [`Case::weight`](super::plan::Case::weight).
pub const BOOT_WEIGHT: u64 = 20;
/// The duration of all system calls.
pub const SYSCALLS_WEIGHT: u64 = 30;
/// The duration of a series of round-trip times.
pub const PING_WEIGHT: u64 = 4;
/// The duration of recording many buses once.
pub const RECORDING_WEIGHT: u64 = 40;

impl Unit {
    /// The name of the unit's result file without the extension.
    pub fn name(&self) -> String {
        let kernel = if self.label.is_empty() { "" } else { &format!(".{}", self.label) };
        let boot = if self.study.lab.boots > 1 { format!(".boot{}", self.boot) } else { String::new() };
        let board = self.study.lab.cost.map_or(String::new(), |board| format!(".{}", board.name()));
        format!("{}{board}{kernel}{boot}", self.study.name)
    }

    /// The unit's duration, in units of [`Case::weight`](super::plan::Case::weight).
    pub fn weight(&self) -> u64 {
        self.weights().iter().sum()
    }

    /// The duration of the cases with these numbers.
    pub fn weight_of(&self, cases: &[usize]) -> u64 {
        let weights = self.weights();
        cases.iter().filter_map(|&number| weights.get(number)).sum()
    }

    /// The duration of each case.
    fn weights(&self) -> Vec<u64> {
        match &self.study.kind {
            Kind::Latency(plan) => {
                let frames = plan.count.div_ceil(500);
                plan.cases().iter().map(|case| case.weight() * frames).collect()
            }
            Kind::Ping(plan) => vec![PING_WEIGHT; plan.cases()],
            Kind::Recording(plan) => vec![RECORDING_WEIGHT; plan.cases()],
            Kind::Writes(plan) => vec![PING_WEIGHT; plan.cases()],
            Kind::Throughput(plan) => vec![RECORDING_WEIGHT; plan.cases()],
            Kind::Syscalls(_) => vec![SYSCALLS_WEIGHT],
            Kind::Missing(_) => Vec::new(),
        }
    }
}

/// A study's units: on its kernels, on the given kernels, or on this machine. A study that cannot be measured has none.
pub fn planned(study: &Study, on: &[String], here: bool, boots: Option<u32>) -> Vec<Unit> {
    if let Kind::Missing(_) = study.kind {
        return Vec::new();
    }
    let mut study = study.clone();
    if !on.is_empty() {
        study.lab.kernels = on.to_vec();
    }
    study.lab.boots = if here { 1 } else { boots.unwrap_or(study.lab.boots) };
    let kernels: Vec<Option<String>> = match here {
        true => vec![None],
        false => study.lab.kernels.iter().cloned().map(Some).collect(),
    };
    let is_labelled = kernels.len() > 1 || !on.is_empty();
    let boots = 1..=study.lab.boots;
    let units = boots.flat_map(|boot| kernels.iter().map(move |kernel| (boot, kernel.clone())));
    let unit = |(boot, kernel): (u32, Option<String>)| {
        let label = kernel.as_deref().filter(|_| is_labelled).map_or(String::new(), label);
        Unit { study: study.clone(), kernel, label, boot }
    };
    units.map(unit).collect()
}

/// A kernel of the lab in the name of a file: its version, or the last folder of its tree's path.
fn label(kernel: &str) -> String {
    let path = Path::new(kernel);
    let named = path.file_name().map(ToOwned::to_owned);
    let named = named.or_else(|| Some(path.canonicalize().ok()?.file_name()?.to_owned()));
    named.map_or("kernel".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Refuses kernels whose results would have the same names.
pub fn check_kernels(kernels: &[String]) -> failure::Result<()> {
    for (number, kernel) in kernels.iter().enumerate() {
        if let Some(other) = kernels[..number].iter().find(|other| label(other) == label(kernel)) {
            let label = label(kernel);
            let why = format!(
                "--kernel {other} and {kernel}: results of both would be named {label} (rename a folder)"
            );
            return Err(Failure::new(Exit::Usage, why));
        }
    }
    Ok(())
}

/// The studies of `--all` and `--matrix`.
pub fn names_of(set: Set) -> failure::Result<Vec<String>> {
    let studies = Study::all()?;
    let wanted = studies.iter().filter(|study| study.set == set && !matches!(study.kind, Kind::Missing(_)));
    Ok(wanted.map(|study| study.name.clone()).collect())
}

/// Units that are measured in one boot.
pub struct Boot {
    /// The number of the boot, counted from 1.
    pub number: u32,
    pub machine: Machine,
    pub units: Vec<Unit>,
}

/// Groups units into one boot per machine. A unit's machine is what its study needs and no more, so that its figures do not
/// depend on the studies that are run with it: a further processor or module costs some hundred instructions a frame.
pub fn boots(units: Vec<Unit>) -> failure::Result<Vec<Boot>> {
    let mut boots: Vec<(Needs, Boot)> = Vec::new();
    for unit in units {
        let needs = Needs::of_unit(&unit);
        match boots.iter_mut().find(|(other, _)| *other == needs) {
            Some((_, boot)) => boot.units.push(unit),
            None => {
                let machine = needs.machine(&unit.study.name)?;
                boots.push((needs, Boot { number: unit.boot, machine, units: vec![unit] }));
            }
        }
    }
    Ok(boots.into_iter().map(|(_, boot)| boot).collect())
}

/// What makes a machine another one.
#[derive(PartialEq)]
struct Needs {
    /// With one kernel.
    lab: Lab,
    ethernet: bool,
    bare_metal: bool,
    /// Each boot of a plan is another one: it is restored from a machine of its own boot.
    boot: u32,
}

impl Needs {
    fn of_unit(unit: &Unit) -> Self {
        let kernels = vec![unit.kernel.clone().unwrap_or_default()];
        let Study { lab, kind, .. } = &unit.study;
        Self {
            lab: Lab { kernels, boots: 1, ..lab.clone() },
            ethernet: needs_ethernet(kind),
            bare_metal: needs_bare_metal(kind),
            boot: unit.boot,
        }
    }

    fn machine(&self, study: &str) -> failure::Result<Machine> {
        let mut machine = machine(&self.lab)?;
        machine.saved = Some(self.boot.saturating_sub(1));
        machine.net = self.ethernet;
        for module in self.lab.bus.module().into_iter().chain(self.bare_metal.then_some("canbare")) {
            machine.load(own_module(module, "")?);
        }
        if machine.modules.iter().any(|chosen| chosen.lacks_one_of(&machine.modules)) {
            let text = format!("study: {study}: canchar: nodes of wires are there with bus = \"wire\"");
            return Err(Failure::new(Exit::Usage, text));
        }
        Ok(machine)
    }
}

/// The cards that have the interfaces can5…can8.
const FD_CARDS: u8 = 2;

pub fn needs_ethernet(kind: &Kind) -> bool {
    match kind {
        Kind::Latency(plan) => plan.needs_ethernet(),
        Kind::Ping(plan) => plan.loads.iter().any(|load| load.starts_with("ethernet")),
        Kind::Syscalls(_) | Kind::Recording(_) | Kind::Writes(_) | Kind::Throughput(_) | Kind::Missing(_) => {
            false
        }
    }
}

/// Whether the machine needs an additional processor that Linux does not use.
fn needs_bare_metal(kind: &Kind) -> bool {
    let bare =
        |name: &String| name.parse::<Method>().is_ok_and(|method| method.kind.place == Place::BareMetal);
    matches!(kind, Kind::Latency(plan) if plan.methods.iter().any(bare))
}

/// The machine of a `[lab]` with one kernel.
fn machine(lab: &Lab) -> failure::Result<Machine> {
    let canchar = lab.canchar.as_deref().map(|devices| own_module("canchar", devices)).transpose()?;
    Ok(Machine {
        kernel: lab.kernels.concat(),
        clock: if lab.clock == ClockName::Virtual { Clock::Virtual } else { Clock::Real },
        arch: lab.arch,
        shift: lab.shift,
        cpus: lab.cpus,
        modules: canchar.into_iter().collect(),
        append: lab.append.clone(),
        fd_cards: if lab.bus == Bus::Fd { FD_CARDS } else { 0 },
        analyzer: lab.analyzer,
        cost: lab.cost,
        usb_stick: lab.usb_stick,
        timeout: TIMEOUT,
        ..Machine::default()
    })
}

fn own_module(name: &str, value: &str) -> failure::Result<lab::Chosen> {
    lab::module(name, value).map_err(|error| Failure::new(Exit::Usage, format!("study: {name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzer::board::Board;

    fn units(names: &[&str]) -> Vec<Unit> {
        let studies = names.iter().map(|name| Study::find(name).expect("it is there"));
        studies.flat_map(|study| planned(&study, &[], false, Some(1))).collect()
    }

    #[test]
    fn every_figure_takes_a_boot_per_machine_and_every_unit_its_own_file() {
        let names = names_of(Set::Figure).expect("the studies read");
        let units = units(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut files: Vec<String> = units.iter().map(Unit::name).collect();
        let count = files.len();
        let boots = boots(units).expect("the machines can be made");
        assert_eq!(boots.iter().map(|boot| boot.units.len()).sum::<usize>(), count);
        let mut machines: Vec<String> =
            boots.iter().map(|boot| format!("{} {:?}", boot.number, boot.machine)).collect();
        machines.sort();
        let before = machines.len();
        machines.dedup();
        assert_eq!(machines.len(), before, "no machine is booted twice");
        files.sort();
        files.dedup();
        assert_eq!(files.len(), count);
    }

    #[test]
    fn a_machine_does_not_depend_on_the_studies_that_are_run_with_it() {
        let names = Study::all().expect("the studies read").into_iter().map(|study| study.name);
        let names: Vec<String> = names.collect();
        let together = boots(units(&names.iter().map(String::as_str).collect::<Vec<_>>())).expect("machines");
        for boot in &together {
            for unit in &boot.units {
                let alone = boots(units(&[&unit.study.name])).expect("machines");
                let same = alone.iter().find(|boot| boot.units.iter().any(|one| one.name() == unit.name()));
                let machine = &same.expect("its boot").machine;
                assert_eq!(format!("{machine:?}"), format!("{:?}", boot.machine), "{}", unit.name());
            }
        }
    }

    #[test]
    fn each_boot_of_a_study_has_its_file_and_its_seed() {
        let study = Study::find("2011-fig13").expect("it is there");
        let units = planned(&study, &[], false, Some(3));
        let names: Vec<_> = units.iter().map(Unit::name).collect();
        assert_eq!(names, ["2011-fig13.boot1", "2011-fig13.boot2", "2011-fig13.boot3"]);
        let boots = boots(units).expect("the machines can be made");
        assert_eq!(boots.iter().map(|boot| boot.number).collect::<Vec<_>>(), [1, 2, 3]);
        let seed = |number| match study.clone().in_boot(number).kind {
            Kind::Latency(plan) => plan.seed,
            _ => 0,
        };
        assert_eq!(seed(3), seed(1) + 2);
    }

    #[test]
    fn a_kernel_that_is_asked_for_is_in_the_name_of_the_result() {
        let study = Study::find("2011-fig13").expect("it is there");
        let names = |kernels: &[&str]| -> Vec<String> {
            let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
            planned(&study, &kernels, false, Some(1)).iter().map(Unit::name).collect()
        };
        assert_eq!(names(&[]), ["2011-fig13"]);
        assert_eq!(names(&["7.3"]), ["2011-fig13.7.3"]);
        assert_eq!(
            names(&["6.12-rt", "../src/linux-next/"]),
            ["2011-fig13.6.12-rt", "2011-fig13.linux-next"]
        );
    }

    #[test]
    fn a_board_is_in_the_name_of_the_result_and_needs_the_analyzer() {
        let study = |name: &str| Study::find(name).expect("it is there");
        let board = Some(Board::CortexA72);
        let units = planned(&study("2014-fig4.2").on_board(board).expect("it has"), &[], false, None);
        assert_eq!(units[0].name(), "2014-fig4.2.cortex-a72");
        assert_eq!(boots(units).expect("a machine")[0].machine.cost, board);
        let Err(failure) = study("2011-fig13").on_board(board) else { panic!("it has no analyzer") };
        assert_eq!((failure.exit, study("2011-fig13").on_board(None).is_ok()), (Exit::Usage, true));
    }

    #[test]
    fn kernels_whose_results_would_have_one_name_are_refused() {
        let check = |kernels: [&str; 2]| check_kernels(&kernels.map(ToOwned::to_owned));
        assert!(check(["6.12", "6.12-rt"]).is_ok());
        let failure = check(["a/linux", "b/linux"]).expect_err("both are linux");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("a/linux and b/linux: results of both would be named linux"));
    }

    #[test]
    fn words_for_the_kernel_make_another_machine() {
        let text = |append: &str| {
            format!(
                "name = \"s\"\ntitle = \"\"\nsource = \"\"\n[lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\n\
                 cpus = 1\n{append}\n[ping]\ncount = 1\nlen = 8\nrealtime = 60\npairs = []\n"
            )
        };
        let study = |append: &str| Study::read("s", &text(append)).expect("it reads");
        let both = [study(""), study("append = [\"nohz=off\", \"threadirqs\"]")];
        let boots = boots(both.iter().flat_map(|study| planned(study, &[], false, None)).collect());
        let boots = boots.expect("the machines can be made");
        let words: Vec<_> = boots.iter().map(|boot| boot.machine.append.join(" ")).collect();
        assert_eq!(words, ["", "nohz=off threadirqs"]);
    }

    #[test]
    fn a_study_with_a_usb_stick_has_a_machine_with_one() {
        let boots = boots(units(&["wccd-table1-stick", "probe-realtime"])).expect("the machines can be made");
        for boot in &boots {
            let names: Vec<_> = boot.units.iter().map(|unit| unit.study.name.as_str()).collect();
            let expected = if boot.machine.usb_stick { "wccd-table1-stick" } else { "probe-realtime" };
            assert!(names.iter().all(|name| *name == expected), "{names:?}");
        }
        assert!(boots.iter().any(|boot| boot.machine.usb_stick));
    }

    #[test]
    fn the_matrix_is_at_least_as_large_as_the_paper_s() {
        let units = units(&["2011-matrix"]);
        let cases = units.iter().map(|unit| match &unit.study.kind {
            Kind::Latency(plan) => plan.cases().len(),
            _ => 0,
        });
        assert!(cases.sum::<usize>() >= 640);
    }
}
