use super::*;
use proptest::prelude::*;

/// A controller with a crystal, and a machine whose interrupts are late.
struct Simulation {
    /// xorshift64*, so that a case can be repeated.
    random: u64,
    /// True time, in ns.
    now: f64,
    /// The controller's clock at `now`, and what its clock gains.
    hardware: f64,
    drift: f64,
    /// How the drift changes per second.
    wander: f64,
    delays: Delays,
    /// The mean time between frames, in ns.
    gap: f64,
    /// Until when somebody has the processor, and when somebody takes it the next time.
    taken: [f64; 2],
}

#[derive(Clone, Copy, Debug)]
enum Delays {
    /// Up to 5 ms, all equally often.
    Uniform,
    /// Mostly some µs, and sometimes ms.
    Interrupts,
    /// Nearly always the same, seldom less, and somebody takes the processor for up to 5 ms, with up to 40 ms between.
    Bursts,
}

/// The beginning of the true time: now, in ns since 1970.
const EPOCH: u64 = 1_790_000_000_000_000_000;

impl Simulation {
    fn random(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next frame: its true time, and its stamps by the controller and by the kernel.
    fn next(&mut self) -> (u64, u64, u64) {
        let gap = self.gap * (0.2 + 1.6 * self.random());
        self.now += gap;
        self.drift += self.wander * gap / 1e9;
        self.hardware += gap * (1.0 + self.drift);
        let (random, seldom) = (self.random(), self.random() < 0.01);
        let delay = match self.delays {
            Delays::Uniform => 5e6 * random,
            Delays::Interrupts if seldom => 5e6 * random,
            Delays::Interrupts => -20_000.0 * (1.0 - random).ln(),
            Delays::Bursts => {
                let way =
                    if self.random() < 0.0005 { 3_000.0 + 4_500.0 * random } else { 7_500.0 + 20.0 * random };
                way + self.until_nobody_has_the_processor()
            }
        };
        let truth = EPOCH + self.now as u64;
        (truth, 1_000_000_000 + self.hardware as u64, truth + delay.min(5e6) as u64)
    }

    fn until_nobody_has_the_processor(&mut self) -> f64 {
        while self.now > self.taken[1] {
            let until = self.taken[1] + 5e6 * self.random();
            self.taken = [until, until + 40e6 * self.random()];
        }
        (self.taken[0] - self.now).max(0.0)
    }
}

/// Aligns frames. The share of stamps within 10 µs, and how many were farther from the truth than their bound, or out of order.
fn share_within_10_us(mut simulation: Simulation, frames: u32) -> (f64, u32) {
    let (mut aligner, mut close, mut wrong, mut last) = (Aligner::default(), 0, 0, 0);
    for _ in 0..frames {
        let (truth, hardware, software) = simulation.next();
        let Aligned { stamp_ns, bound_ns } = aligner.align(hardware, software);
        let error = stamp_ns.abs_diff(truth);
        close += u32::from(error <= 10_000);
        wrong += u32::from(error > u64::from(bound_ns) || stamp_ns < last);
        last = stamp_ns;
    }
    assert_eq!(aligner.restarts(), 0);
    (f64::from(close) / f64::from(frames), wrong)
}

fn simulation(seed: u64, drift_ppm: f64, wander: f64, delays: Delays, gap_us: f64) -> Simulation {
    Simulation {
        random: seed | 1,
        now: 0.0,
        hardware: 0.0,
        drift: drift_ppm * 1e-6,
        wander,
        delays,
        gap: gap_us * 1000.0,
        taken: [0.0; 2],
    }
}

#[test]
fn in_a_million_frames_99_percent_are_within_10_us_and_no_bound_is_wrong() {
    for (at, drift_ppm) in (1..).zip([-100.0, -3.0, 50.0, 100.0]) {
        for delays in [Delays::Uniform, Delays::Interrupts] {
            let (close, wrong) =
                share_within_10_us(simulation(at * 77_777, drift_ppm, 0.0, delays, 1000.0), 1_000_000);
            assert!(close >= 0.99 && wrong == 0, "{drift_ppm} ppm, {delays:?}: {close} close, {wrong} wrong");
        }
    }
}

/// The processor is taken while the line is drawn anew, so that no frame shows that the new one is too high.
#[test]
fn no_bound_is_wrong_while_somebody_has_the_processor() {
    for seed in 1..=400 {
        let (close, wrong) =
            share_within_10_us(simulation(seed * 77_777, 100.0, 0.0, Delays::Bursts, 500.0), 10_000);
        assert!(close >= 0.99 && wrong == 0, "{seed}: {close} close, {wrong} wrong");
    }
}

#[test]
fn a_drift_that_changes_with_temperature_is_followed() {
    for wander in [-0.01e-6, 0.01e-6] {
        let (close, wrong) =
            share_within_10_us(simulation(5, 20.0, wander, Delays::Interrupts, 1000.0), 200_000);
        assert!(close >= 0.99 && wrong == 0, "{wander}: {close} close, {wrong} wrong");
    }
}

#[test]
fn a_controller_that_starts_anew_and_a_clock_that_is_set_begin_no_error() {
    let mut simulation = simulation(9, 40.0, 0.0, Delays::Interrupts, 1000.0);
    let mut aligner = Aligner::default();
    let (mut step, mut reset) = (0i64, 0);
    for number in 0..60_000 {
        let (truth, hardware, software) = simulation.next();
        if number == 20_000 {
            step = -3_600_000_000_000;
            aligner.clock_was_set(step);
        }
        if number == 40_000 {
            reset = hardware - 5;
        }
        let aligned = aligner.align(hardware - reset, software.wrapping_add_signed(step));
        let error = aligned.stamp_ns.abs_diff(truth.wrapping_add_signed(step));
        assert!(error <= u64::from(aligned.bound_ns), "{number}: {error} > {}", aligned.bound_ns);
    }
    assert_eq!((aligner.restarts(), aligner.frames()), (1, 60_000));
    assert!(aligner.drift_ppb().is_some_and(|ppb| (ppb + 40_000).abs() < 1_000), "{:?}", aligner.drift_ppb());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_bound_is_wrong_at_any_drift_rate_and_delay(
        seed in any::<u64>(), drift in -100.0..100.0f64, gap_us in 100.0..20_000.0f64, uniform: bool,
    ) {
        let delays = if uniform { Delays::Uniform } else { Delays::Interrupts };
        let (_, wrong) = share_within_10_us(simulation(seed, drift, 0.0, delays, gap_us), 20_000);
        prop_assert_eq!(wrong, 0);
    }

    #[test]
    fn no_stamps_make_it_panic(stamps in prop::collection::vec((any::<u64>(), any::<u64>()), 0..200)) {
        let mut aligner = Aligner::default();
        for (hardware, software) in stamps {
            let aligned = aligner.align(hardware, software);
            // A stamp far behind the one before means that a clock was set.
            prop_assert!(aligned.stamp_ns.saturating_sub(software) <= UNKNOWN_NS as u64);
        }
    }
}

#[test]
fn a_forwarded_frame_never_comes_before_its_original() {
    const FRAMES: u32 = 200_000;
    /// The shortest frame at 1 Mbit/s, in ns: a frame is stamped at its end.
    const FRAME_NS: u64 = 47_000;
    for (seed, drifts_ppm, delays) in [
        (1, [100.0, -100.0], Delays::Interrupts),
        (2, [-100.0, 100.0], Delays::Interrupts),
        (3, [100.0, -100.0], Delays::Uniform),
        (4, [-100.0, 100.0], Delays::Uniform),
    ] {
        let mut original = simulation(seed, drifts_ppm[0], 0.0, delays, 1000.0);
        let mut delay = simulation(seed + 100, 0.0, 0.0, delays, 1000.0);
        let (mut near, mut far) = (Aligner::default(), Aligner::default());
        for number in 0..FRAMES {
            let (_, hardware, software) = original.next();
            let first = near.align(hardware, software);
            // The gateway forwards the frame as soon as the interrupt has handed it over.
            let end = software + FRAME_NS;
            let hardware = 5_000_000_000 + ((end - EPOCH) as f64 * (1.0 + drifts_ppm[1] * 1e-6)) as u64;
            let (truth, _, late) = delay.next();
            let second = far.align(hardware, end + (late - truth));
            assert!(
                second.stamp_ns > first.stamp_ns,
                "{delays:?}, frame {number}: {} ns too early",
                first.stamp_ns - second.stamp_ns
            );
        }
    }
}
