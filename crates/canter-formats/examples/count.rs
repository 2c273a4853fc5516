//! Counts the frames of recordings, and does nothing else with them: `cargo run --release --example count -- drive.trc`

fn main() -> canter_formats::Result<()> {
    for path in std::env::args_os().skip(1) {
        let mut reader = canter_formats::open(&path)?;
        let mut frames = 0u64;
        while reader.next_record()?.is_some() {
            frames += 1;
        }
        println!("{} {frames} frames", path.display());
    }
    Ok(())
}
