//! The lines that are no Rust tests: scripts, Python, and what only `make test-all` runs.

use crate::keys::Inputs;

#[derive(Debug)]
pub struct Script {
    pub name: &'static str,
    /// For the shell, in the repository's folder; $CANTER is the program, $ROOT that folder.
    pub command: &'static str,
    /// $CANTER is needed for its command `lab` only.
    pub lab_only: bool,
    pub needs: &'static [&'static str],
    pub inputs: Inputs,
    pub limit_s: u64,
    /// Only `make test-all` runs it.
    pub all_only: bool,
    /// Uses all processors, or files of other lines: nothing runs beside it.
    pub alone: bool,
}

const GATE: Script = Script {
    name: "",
    command: "",
    lab_only: false,
    needs: &[],
    inputs: Inputs::Everything,
    limit_s: 900,
    all_only: false,
    alone: false,
};
const FUNCTIONS: Script = Script {
    name: "kernel::functions (1 of 2)",
    command: "exec kernel/tests/run.sh 6.12 virtual functions.py 1/2",
    lab_only: true,
    inputs: Inputs::Below(&["kernel/"]),
    ..GATE
};
const ALL: Script = Script { all_only: true, limit_s: 3700, ..GATE };
const BACK_END: Script = Script {
    lab_only: true,
    needs: &["target/python-plugin/native", "target/python-can"],
    inputs: Inputs::Below(&[
        "python/",
        "kernel/",
        "crates/canter-io/",
        "crates/canter-frame/",
        "crates/canter-formats/",
        "crates/canter-signals/",
        "crates/sja1000/",
        "tests/requirements",
    ]),
    ..GATE
};
const BACK_END_ALL: Script = Script { all_only: true, ..BACK_END };
const ALONE: Script = Script { alone: true, limit_s: 4 * 3600, ..ALL };

/// canwire on one kernel in both clocks, with 100 000 contended frames; `make test-kernel-all` has all of them.
macro_rules! long {
    ($kernel:literal) => {
        Script {
            name: concat!("kernel::long ", $kernel),
            command: concat!("exec kernel/tests/suite.sh long ", $kernel),
            all_only: true,
            limit_s: 3700,
            ..FUNCTIONS
        }
    };
}

/// A target of the Makefile.
macro_rules! made {
    ($target:literal, $inputs:expr) => {
        Script {
            name: concat!("make::", $target),
            command: concat!("exec make --no-print-directory ", $target),
            inputs: $inputs,
            ..ALONE
        }
    };
}

/// Lines beside the Rust tests.
pub const SCRIPTS: &[Script] = &[
    Script {
        name: "scripts::peers",
        command: "exec target/python/bin/python -m pytest -q -rs -p no:cacheprovider tests",
        needs: &["target/python", "target/python-can", "target/vblf"],
        ..GATE
    },
    // Bit lengths by gcc, and the scripts that judge guests; without a guest.
    Script {
        name: "kernel::bits",
        command: "exec make --no-print-directory test-bits",
        inputs: Inputs::Below(&["kernel/", "Makefile"]),
        ..GATE
    },
    FUNCTIONS,
    Script {
        name: "kernel::functions (2 of 2)",
        command: "exec kernel/tests/run.sh 6.12 virtual functions.py 2/2",
        ..FUNCTIONS
    },
    // What needs two processors; several of them have no virtual clock.
    Script {
        name: "kernel::functions (two processors)",
        command: "LAB='--cpus 2' exec kernel/tests/run.sh 6.12 real functions.py restarts_beside_bus_off quiet_kernel",
        ..FUNCTIONS
    },
    // What judges times is python::times', in the virtual clock.
    Script {
        name: "python::back_end",
        command: r#"cd python && exec "$CANTER" lab --quiet --canchar virtual,3 -- tests/lab.sh "$ROOT/target/python-can" \
            "$ROOT/python/tests/test_bus.py" "$ROOT/python/tests/test_readme.py" -k 'not duration and not timestamp'"#,
        ..BACK_END
    },
    Script {
        name: "python::devices",
        command: r#"cd python && exec "$CANTER" lab --quiet --canchar virtual,3 -- tests/lab.sh "$ROOT/target/python-can" \
            "$ROOT/python/tests/test_devices.py" "$ROOT/python/tests/test_lifetime.py" -k 'not duration and not timestamp'"#,
        ..BACK_END
    },
    Script {
        name: "python::times",
        command: r#"cd python && exec "$CANTER" lab --quiet --clock virtual --canchar virtual,3 -- tests/lab.sh \
            "$ROOT/target/python-can" "$ROOT/python/tests" -k 'duration or timestamp'"#,
        ..BACK_END_ALL
    },
    // Recordings as pyarrow tables, beside python-can and cantools, and what an import says: without a guest.
    Script {
        name: "python::host",
        command: "exec python/tests/host.sh",
        lab_only: false,
        needs: &["target/python-plugin/native", "target/python"],
        ..BACK_END
    },
    // python-can's own tests on the back-end.
    Script {
        name: "python::suite",
        command: r#"cd python && exec "$CANTER" lab --quiet -- tests/lab.sh "$ROOT/target/python-can" -p as_socketcan test/back2back_test.py \
            test/test_socketcan_loopback.py -k 'SocketCan and not duration and not timestamp'"#,
        ..BACK_END_ALL
    },
    Script {
        name: "python::suite_times",
        command: r#"cd python && exec "$CANTER" lab --quiet --clock virtual -- tests/lab.sh "$ROOT/target/python-can" -p as_socketcan \
            test/test_cyclic_socketcan.py test/back2back_test.py -k 'Cyclic or SocketCan and (duration or timestamp)'"#,
        ..BACK_END_ALL
    },
    // A minute of lost interfaces under threads that receive, send and ask; a few seconds of it are in python::devices.
    Script {
        name: "python::stress",
        command: r#"cd python && exec "$CANTER" lab --quiet --timeout 1h -- env CANTER_STRESS_ROUNDS=60 tests/lab.sh "$ROOT/target/python-can" \
            "$ROOT/python/tests" -k notifier_senders"#,
        limit_s: 3700,
        ..BACK_END_ALL
    },
    long!("6.12"),
    long!("6.12-rt"),
    long!("6.1"),
    long!("6.1-rt"),
    long!("7.2"),
    long!("7.3"),
    long!("7.3-rt"),
    // With figures, and on the oldest and the newest kernel.
    Script {
        name: "kernel::suite",
        command: "exec kernel/tests/suite.sh short 6.12 6.1 7.3",
        inputs: Inputs::Sources,
        ..ALONE
    },
    Script {
        name: "kernel::fuzz_minute",
        command: "exec kernel/tests/fuzz/run.sh 6.12 seconds=60",
        inputs: Inputs::Sources,
        ..ALONE
    },
    Script { name: "make::lint", command: "exec make --no-print-directory lint-if-possible", ..ALONE },
    made!("test-debug-kernel", Inputs::Sources),
    made!("test-checkpatch", Inputs::Sources),
    made!("test-ynl", Inputs::Sources),
    made!("test-selftests", Inputs::Sources),
    made!("test-arm", Inputs::Sources),
    made!("test-arm-lab", Inputs::Sources),
    made!("test-arm-host", Inputs::Sources),
    made!("test-deb", Inputs::Everything),
    made!("test-dist", Inputs::Everything),
    made!("test-dkms", Inputs::Sources),
    made!("test-wheel", Inputs::Everything),
    made!("test-fleet", Inputs::Everything),
    made!("test-package", Inputs::Everything),
    made!("test-hosts", Inputs::Sources),
    made!("test-bisect", Inputs::Everything),
    made!("test-bisect-kernel", Inputs::Everything),
    made!("miri", Inputs::Sources),
    made!("fuzz", Inputs::Sources),
    made!("bench", Inputs::Everything),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_line_of_make_is_in_the_makefile() {
        let makefile = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Makefile")).unwrap();
        for (number, script) in SCRIPTS.iter().enumerate() {
            assert!(SCRIPTS[..number].iter().all(|other| other.name != script.name), "{}", script.name);
            let (_, made) = script.command.split_once("make --no-print-directory ").unwrap_or_default();
            let targets = script.needs.iter().copied().chain((!made.is_empty()).then_some(made));
            for target in targets {
                assert!(
                    makefile.lines().any(|line| line.starts_with(&format!("{target}:"))),
                    "make {target}"
                );
            }
        }
    }

    #[test]
    fn the_kernels_of_the_makefile_have_a_line_each() {
        let makefile = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Makefile")).unwrap();
        let (_, rest) = makefile.split_once("suite.sh long ").unwrap();
        let kernels = rest.lines().next().unwrap().split(' ').collect::<Vec<_>>();
        let lines = SCRIPTS.iter().filter_map(|script| script.name.strip_prefix("kernel::long "));
        assert_eq!(lines.collect::<Vec<_>>(), kernels);
    }
}
