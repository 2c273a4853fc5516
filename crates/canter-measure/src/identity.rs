//! The identity of the program that measures, in results and journals. The program announces it once when it starts.

use std::sync::OnceLock;

/// An identified build.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The commit, with `+` when sources differ from it; empty outside of a repository.
    pub commit: &'static str,
    /// A number of all sources, of the compiler and of its options.
    pub sources: &'static str,
}

static BUILD: OnceLock<Build> = OnceLock::new();

impl Build {
    /// Makes this the identity of the running program.
    pub fn announce(self) {
        let _ = BUILD.set(self); // a program is built once
    }

    /// The identity of the running program; both parts are empty in a program that announced none.
    pub fn current() -> Self {
        BUILD.get().copied().unwrap_or(Self { commit: "", sources: "" })
    }
}
