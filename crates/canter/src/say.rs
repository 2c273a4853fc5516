//! `print!`, `eprint!` and their lines for this crate, in place of std's, which panic when nobody reads any more:
//! `canter study list | head -1` is no mistake, and a recording goes on when its terminal has gone.

use std::{fmt, io, io::Write};

macro_rules! print {
    ($($words:tt)*) => { crate::say::out(format_args!($($words)*)) };
}

macro_rules! println {
    ($($words:tt)*) => { crate::say::out(format_args!("{}\n", format_args!($($words)*))) };
}

macro_rules! eprint {
    ($($words:tt)*) => { crate::say::aside(format_args!($($words)*)) };
}

macro_rules! eprintln {
    ($($words:tt)*) => { crate::say::aside(format_args!("{}\n", format_args!($($words)*))) };
}

/// A file that takes no more, as on a full disk, ends the program: half a table is none.
pub fn out(words: fmt::Arguments) {
    if let Err(error) = io::stdout().write_fmt(words)
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        aside(format_args!("canter: standard output: {error}\n"));
        std::process::exit(crate::failure::Exit::Failed as i32);
    }
}

/// Nobody is left to tell what went wrong with telling it.
pub fn aside(words: fmt::Arguments) {
    let _ = io::stderr().write_fmt(words);
}
