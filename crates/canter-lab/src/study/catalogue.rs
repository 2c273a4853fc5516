//! The texts of all study files, which the build script finds.

// `FILES: &[(&str, &str)]`: name and text, by name.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));
