//! `canter lab --profile`: the guest runs `canter lab --profiled`, which asks the analyzer and leaves a profile; the host prints
//! it.

use super::{Machine, shell};
use crate::{
    analyzer::{
        profile::{self, Profile},
        session::FOLDER,
    },
    report,
};
use canter_cli::{
    failure::{Failure, Result},
    options::Common,
};
use std::{os::unix::process::ExitStatusExt, path::Path, process::Command};

/// Runs the command in a machine with the analyzer, then prints its profile to the standard error.
pub fn run_in(machine: Machine, command: &[String], common: &Common) -> Result {
    let failed =
        |error| Failure::failed(format!("lab: folder for the profile: {error} (TMPDIR names another)"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join(profile::FILE);
    let inside = ["canter", "lab", "--profiled", "--"].map(str::to_owned);
    let words = [&inside[..], command].concat();
    let ended = Machine { profile: Some(file.clone()), ..machine }.run(&words)?;
    if file.exists() {
        let profile = Profile::read(&file)?.name_programs();
        common.write_json(&profile)?;
        if !common.quiet {
            eprint!("{}", report::profile(&profile));
        }
    }
    std::process::exit(ended.code().into());
}

/// Runs the command in this machine, and leaves its profile for the host. The exit code is the command's.
pub fn run(command: &[String]) -> Result {
    let line = shell::command_line(command);
    let start = || {
        let failed = |error| Failure::failed(format!("lab: profile: start: {error}"));
        Command::new("sh").args(["-c", &line]).spawn().map_err(failed)
    };
    let (profile, status) = profile::profile(command, start)?;
    let file = Path::new(FOLDER).join(profile::FILE);
    let text =
        serde_json::to_string(&profile).map_err(|error| Failure::failed(format!("lab: profile: {error}")))?;
    std::fs::write(&file, text)
        .map_err(|error| Failure::failed(format!("lab: {}: {error}", file.display())))?;
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
}
