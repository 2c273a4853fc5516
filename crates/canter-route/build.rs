//! Builds the gateway without an operating system (baremetal/), for x86-64 alone, by rustc itself: two libraries and two
//! programs that need no crate from a registry. Their sources are below carried/, as links into the repository that Cargo
//! follows when it packages. The path of the program that the crate carries is in BARE_METAL_BESIDE, that of the one that
//! boots without Linux, for the tests, in BARE_METAL_IMAGE; other machines have neither.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// What rustc builds them for, whichever C library the program has that carries them.
const PC: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_bare_metal)");
    let is_static = variable("TARGET") == "x86_64-unknown-linux-musl" && variable("HOST") == PC;
    if variable("TARGET") != PC && !is_static {
        println!("cargo::rerun-if-changed=build.rs");
        return;
    }
    let carried = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("carried");
    let built = PathBuf::from(variable("OUT_DIR"));
    let (chip, gateway) = (carried.join("sja1000"), carried.join("baremetal"));
    for source in [&chip, &gateway] {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    library("sja1000", &chip.join("src/lib.rs"), &built, &[]);
    library("canter_bare", &gateway.join("src/lib.rs"), &built, &["sja1000"]);
    for name in ["beside", "image"] {
        let program = program(name, &gateway, &built);
        println!("cargo::rustc-env=BARE_METAL_{}={}", name.to_uppercase(), program.display());
    }
    println!("cargo::rustc-cfg=has_bare_metal");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// rustc with what all parts have in common. No machine moves these programs to another address.
fn rustc(name: &str, source: &Path, built: &Path, uses: &[&str]) -> Command {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--target", PC, "--crate-name", name]);
    for option in ["opt-level=3", "codegen-units=1", "panic=abort", "relocation-model=static"] {
        rustc.args(["-C", option]);
    }
    for used in uses {
        rustc.arg("--extern").arg(format!("{used}={}", built.join(format!("lib{used}.rlib")).display()));
    }
    rustc.arg("-L").arg(built).arg(source);
    rustc
}

fn library(name: &str, source: &Path, built: &Path, uses: &[&str]) {
    let mut rustc = rustc(name, source, built, uses);
    run(name, rustc.args(["--crate-type", "rlib", "--out-dir"]).arg(built));
}

/// A program laid out by a script of its own, that begins without the C library.
fn program(name: &str, gateway: &Path, built: &Path) -> PathBuf {
    let program = built.join(name);
    let source = gateway.join("src/bin").join(name).with_extension("rs");
    let mut rustc = rustc(name, &source, built, &["sja1000", "canter_bare"]);
    rustc.args(["--crate-type", "bin", "-C", "lto=fat", "-o"]).arg(&program);
    // Another C library's linker is not for them.
    if let (true, Ok(linker)) = (variable("TARGET") == PC, env::var("RUSTC_LINKER")) {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let layout = gateway.join(name).with_extension("ld");
    rustc.arg("-C").arg(format!("link-arg=-T{}", layout.display()));
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    if name == "beside" {
        rustc.args(["-C", "link-arg=-Wl,--oformat=binary"]); // its bytes as they lie in memory, nothing about them
    }
    run(name, &mut rustc);
    program
}

fn run(name: &str, rustc: &mut Command) {
    let done = rustc.status().unwrap_or_else(|error| panic!("{name}: {}: {error}", variable("RUSTC")));
    assert!(done.success(), "{name}: rustc: {done}");
}
