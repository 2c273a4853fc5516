//! `canter manual`: man pages and shell completions, generated from the definitions of the options.

use canter_cli::{
    failure::{self, Exit},
    program::Program,
    trouble,
};
use clap::Args;
use clap_complete::Shell;
use std::{fs, path::PathBuf};

/// Write the man pages, or print a shell's completions
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter manual --completions bash > /etc/bash_completion.d/canter
  canter manual --completions zsh > /usr/share/zsh/vendor-completions/_canter
  canter manual --completions fish > ~/.config/fish/completions/canter.fish
  canter manual --pages /usr/local/share/man/man1     canter.1, canter-capture.1, …; then: man canter-capture")]
#[group(required = true, multiple = false)]
pub struct Arguments {
    /// Print the completion script of this shell
    #[arg(long, value_enum, value_name = "SHELL")]
    completions: Option<Shell>,
    /// Write a man page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    pages: Option<PathBuf>,
}

pub fn run(arguments: Arguments, program: &Program<'_>) -> failure::Result {
    let mut command = program.definition();
    if let Some(shell) = arguments.completions {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "canter", &mut script);
        print!("{}", String::from_utf8_lossy(&script));
    }
    if let Some(folder) = arguments.pages {
        fs::create_dir_all(&folder).map_err(|error| trouble::file_failure(&folder, "create", error))?;
        clap_mangen::generate_to(command, &folder)
            .map_err(|error| trouble::file_failure(&folder, "write", error))?;
    }
    Ok(Exit::Done)
}
