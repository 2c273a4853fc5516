//! Times some work on frames beside a memcpy of the same frames, and states the ratio.
//!
//! Absolute times of a machine that others use are noise. Therefore a time is processor time of this process, each sample has
//! both, and the quickest of each counts: whatever else runs can only add to a time. The quickest memcpy is that of all benches
//! with the same frames. Nothing fails because of a time.

use crate::traffic::Traffic;
use criterion::Criterion;
use rustix::time::{ClockId, clock_gettime};
use std::{collections::BTreeMap, fmt::Write as _, fs, hint::black_box, io, path::Path, time::Duration};

/// Copies of the frames before each sample: the first ones bring the frames back into the cache.
const COPIES: usize = 8;
const SAMPLES: usize = 20;
const WARM_UP: Duration = Duration::from_millis(200);
const SAMPLING: Duration = Duration::from_millis(800);

/// The folder of the results, from this package's.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");
const TSV: &str = "user-space.tsv";

/// What some work costs.
struct Comparison {
    what: String,
    work: Duration,
    frames: usize,
    /// The bytes of the frames.
    bytes: usize,
}

/// Runs benches, and keeps what they cost.
pub struct Comparisons {
    criterion: Criterion,
    done: Vec<Comparison>,
    /// The quickest memcpy of this number of bytes.
    copies: BTreeMap<usize, Duration>,
}

impl Comparisons {
    /// Benches with the arguments of `cargo bench`: a part of a name selects, `--save-baseline` and so on are Criterion's.
    #[allow(clippy::new_without_default, reason = "it reads the command line")]
    pub fn new() -> Self {
        let criterion = Criterion::default()
            .output_directory(&Path::new(FOLDER).join("criterion"))
            .sample_size(SAMPLES)
            .warm_up_time(WARM_UP)
            .measurement_time(SAMPLING)
            .configure_from_args();
        Self { criterion, done: Vec::new(), copies: BTreeMap::new() }
    }

    /// Measures work on all frames of `traffic`. `what` begins with the idea that the work belongs to: `rules: set`.
    pub fn measure<T>(&mut self, what: &str, traffic: &Traffic, mut work: impl FnMut() -> T) {
        let bytes = traffic.bytes.len();
        let mut copy = vec![0; bytes];
        let quickest_copy = self.copies.entry(bytes).or_insert(Duration::MAX);
        let mut quickest = Duration::MAX;
        self.criterion.bench_function(what, |bencher| {
            bencher.iter_custom(|iterations| {
                for _ in 0..COPIES {
                    let took = time(|| black_box(&mut copy[..]).copy_from_slice(black_box(&traffic.bytes)));
                    *quickest_copy = took.min(*quickest_copy);
                }
                let times = (0..iterations).map(|_| time(&mut work));
                times.inspect(|&took| quickest = took.min(quickest)).sum()
            });
        });
        // Criterion leaves out what the command line does not select.
        if quickest < Duration::MAX {
            let (what, frames) = (what.to_owned(), traffic.records.len());
            self.done.push(Comparison { what, work: quickest, frames, bytes });
        }
    }

    /// Prints the table, and writes it as `target/bench/user-space.tsv`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let mut table = format!("{:<36} {:>10} {:>10} {:>8}\n", "what", "ns a frame", "memcpy, ns", "ratio");
        let mut tsv = "what\tns a frame\tmemcpy of the same bytes\tratio\n".to_owned();
        for Comparison { what, work, frames, bytes } in &self.done {
            let [work_ns, memcpy_ns] =
                [*work, self.copies[bytes]].map(|all| all.as_nanos() as f64 / *frames as f64);
            let ratio = work_ns / memcpy_ns;
            _ = writeln!(table, "{what:<36} {work_ns:>10.1} {memcpy_ns:>10.2} {ratio:>8.1}");
            _ = writeln!(tsv, "{what}\t{work_ns:.1}\t{memcpy_ns:.2}\t{ratio:.1}");
        }
        println!("\n{table}");
        fs::create_dir_all(FOLDER)?;
        fs::write(Path::new(FOLDER).join(TSV), tsv)
    }
}

/// The processor time that some work takes, all threads together.
fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = processor_time();
    black_box(work());
    processor_time() - start
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
