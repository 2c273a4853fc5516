//! `print!`, `println!`, `eprint!` and `eprintln!` for this crate. Those of std panic when the reader has closed the pipe,
//! but `canter study list | head -1` is not an error, and a recording continues after its terminal was closed.

use std::{fmt, io, io::Write};

#[macro_export]
/// Prints to the standard output.
macro_rules! print {
    ($($words:tt)*) => { $crate::printing::print_stdout(format_args!($($words)*)) };
}

#[macro_export]
/// Prints a line to the standard output.
macro_rules! println {
    ($($words:tt)*) => { $crate::printing::print_stdout(format_args!("{}\n", format_args!($($words)*))) };
}

#[macro_export]
/// Prints to the standard error.
macro_rules! eprint {
    ($($words:tt)*) => { $crate::printing::print_stderr(format_args!($($words)*)) };
}

#[macro_export]
/// Prints a line to the standard error.
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::printing::print_stderr(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints to the standard output. An error other than a closed pipe, such as a full disk, ends the program, so that half a
/// table never counts as success.
pub fn print_stdout(words: fmt::Arguments) {
    if let Err(error) = io::stdout().write_fmt(words)
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        print_stderr(format_args!("canter: standard output: write: {error}\n"));
        std::process::exit(crate::failure::Exit::Failed as i32);
    }
}

/// Prints to the standard error and ignores errors.
pub fn print_stderr(words: fmt::Arguments) {
    let _ = io::stderr().write_fmt(words); // an error of stderr cannot be reported anywhere
}
