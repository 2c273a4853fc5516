//! Both programs are laid out by scripts of their own and begin without the C library.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    for (program, layout) in [("image", "image.ld"), ("beside", "beside.ld")] {
        println!("cargo::rerun-if-changed={layout}");
        println!("cargo::rustc-link-arg-bin={program}=-T{folder}/{layout}");
        for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
            println!("cargo::rustc-link-arg-bin={program}={argument}");
        }
    }
    // Its bytes as they lie in memory, nothing about them.
    println!("cargo::rustc-link-arg-bin=beside=-Wl,--oformat=binary");
}
