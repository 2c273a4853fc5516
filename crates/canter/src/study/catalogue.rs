//! Every study, as its file has it: the build script finds them.

// `FILES: &[(&str, &str)]`: name and text, by name.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));
