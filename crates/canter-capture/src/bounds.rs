//! The bound of the error of aligned stamps, for each second of a recording: formats without a place for it, as candump's log,
//! have it in the account.

use serde::Serialize;

const SECOND_NS: u64 = 1_000_000_000;
/// How many spans a bus has at most; the last one then has the greatest bound of all later seconds.
const SPANS_MAX: usize = 1000;

/// Seconds whose stamps have one bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoundSpan {
    /// The beginning of its first second, in ns of the real-time clock; it ends where the next one begins.
    pub from_ns: u64,
    /// How far a stamp of these seconds may be from the time at which the controller took its own, in ns.
    pub bound_ns: u32,
}

/// The bounds of the stamps of a bus.
#[derive(Debug, Default)]
pub struct Bounds {
    spans: Vec<BoundSpan>,
    /// The second of the last frame, and the greatest bound in it; `None`: there was no frame.
    second: Option<BoundSpan>,
}

impl Bounds {
    /// Adds a frame.
    #[inline]
    pub fn add(&mut self, stamp_ns: u64, bound_ns: u32) {
        match &mut self.second {
            Some(second) if stamp_ns.wrapping_sub(second.from_ns) < SECOND_NS => {
                second.bound_ns = second.bound_ns.max(bound_ns);
            }
            _ => self.begin_second(stamp_ns, bound_ns),
        }
    }

    fn begin_second(&mut self, stamp_ns: u64, bound_ns: u32) {
        Self::close(&mut self.spans, self.second);
        self.second = Some(BoundSpan { from_ns: stamp_ns - stamp_ns % SECOND_NS, bound_ns });
    }

    /// The spans up to now.
    pub fn spans(&self) -> Vec<BoundSpan> {
        let mut spans = self.spans.clone();
        Self::close(&mut spans, self.second);
        spans
    }

    /// Adds a second, which joins the span before it when its bound is not greater, and more than half as great.
    fn close(spans: &mut Vec<BoundSpan>, second: Option<BoundSpan>) {
        let is_full = spans.len() == SPANS_MAX;
        match (second, spans.last_mut()) {
            (None, _) => {}
            (Some(second), Some(last)) if is_full => last.bound_ns = last.bound_ns.max(second.bound_ns),
            (Some(second), Some(last))
                if second.bound_ns <= last.bound_ns && second.bound_ns > last.bound_ns / 2 => {}
            (Some(second), _) => spans.push(BoundSpan { bound_ns: rounded_up(second.bound_ns), ..second }),
        }
    }
}

/// The bound with three significant bits, so that a bound that grows slowly does not begin a span each second.
fn rounded_up(bound_ns: u32) -> u32 {
    let step = 1 << (u32::BITS - bound_ns.leading_zeros()).saturating_sub(3);
    bound_ns.checked_next_multiple_of(step).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "bounds/tests.rs"]
mod tests;
