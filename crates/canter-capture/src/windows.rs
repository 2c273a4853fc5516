//! Windows around events: frames wait in memory until an event writes them to a file, or until they are too old.
//!
//! All decisions follow the frames' stamps, in the order in which the frames are handed out, so that a slow disk or a late
//! thread changes no window. When the real-time clock is set, time goes on: a window has its length in real seconds.

use crate::{
    account::{Event, Triggered, Window},
    chunk::Chunk,
    live::Live,
    merge::Piece,
    output::Output,
    trigger::Triggers,
    waiting::Waiting,
    watch::{Met, Watch},
};
use canter_frame::{BusId, RawRecord};
use std::ops::Range;

/// How many windows, and how many causes of each, the account lists.
const LISTED_MAX: usize = 1000;
const CAUSES_MAX: usize = 100;
/// How long after a window late frames of it may come, in ns, and frames before an event are kept longer than needed.
const LATE_NS: u64 = 1_000_000_000;
/// So long after the clock was set, in ns, frames may have stamps of the clock before.
const UNSETTLED_NS: u64 = 2_000_000_000;

/// Frames around events are kept, all others are not.
pub struct Windows<'a> {
    live: &'a Live,
    before: u64,
    after: u64,
    watch: Watch,
    waiting: Waiting,
    clock: Clock,
    /// The first and the latest time of a frame.
    first: u64,
    newest: u64,
    /// The open window, or one that is impossible.
    from: u64,
    until: u64,
    /// When something changes without an event: the window ends, or its file does.
    change: u64,
    open: Option<Open>,
    /// The last window, for frames that come later than its file is open.
    closed: (u64, u64),
    account: Triggered,
    buffer_bytes: usize,
}

/// A window whose file is open.
struct Open {
    about: Window,
    /// Whether its time is over. Its file stays open as long as the next window could overlap.
    is_over: bool,
}

/// The time of stamps: that of the first clock, as if it had never been set.
struct Clock {
    /// What a stamp is ahead of the time, in ns.
    offset_ns: i64,
    /// The offset before the clock was set last, and when that was.
    before: Option<(i64, u64)>,
}

impl Clock {
    /// The time of a stamp, and what the stamp is ahead of it.
    #[inline]
    fn time(&mut self, stamp_ns: u64) -> (u64, i64) {
        let time = stamp_ns.wrapping_add_signed(self.offset_ns.wrapping_neg());
        match self.before {
            None => (time, self.offset_ns),
            Some(before) => self.unsettled_time(stamp_ns, time, before),
        }
    }

    /// Soon after the clock was set, a stamp may be of either clock: the one that puts it closer to that moment.
    #[cold]
    fn unsettled_time(&mut self, stamp_ns: u64, time: u64, (offset_ns, set): (i64, u64)) -> (u64, i64) {
        let earlier = stamp_ns.wrapping_add_signed(offset_ns.wrapping_neg());
        if earlier.abs_diff(set) < time.abs_diff(set) {
            return (earlier, offset_ns);
        }
        if time > set.saturating_add(UNSETTLED_NS) {
            self.before = None;
        }
        (time, self.offset_ns)
    }

    fn stamp_ns(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.offset_ns)
    }

    /// The clock was set by `step_ns`, and is at `now_ns` now.
    fn was_set(&mut self, step_ns: i64, now_ns: u64) {
        let before = self.offset_ns;
        self.offset_ns = before.wrapping_add(step_ns);
        let (now, _) = Self { offset_ns: self.offset_ns, before: None }.time(now_ns);
        self.before = Some((before, now));
    }
}

impl<'a> Windows<'a> {
    /// Windows of these triggers, with `buffer_bytes` of memory for frames that wait.
    pub fn new(triggers: Triggers, buffer_bytes: usize, live: &'a Live) -> Self {
        let Triggers { conditions, before, after, .. } = triggers;
        let texts = conditions.iter().map(|condition| condition.text.clone()).collect();
        let [before, after] = [before, after].map(|length| length.as_nanos() as u64);
        Self {
            live,
            before,
            after,
            watch: Watch::new(conditions),
            waiting: Waiting::new(buffer_bytes),
            clock: Clock { offset_ns: 0, before: None },
            first: 0,
            newest: 0,
            from: u64::MAX,
            until: 0,
            change: u64::MAX,
            open: None,
            closed: (u64::MAX, 0),
            account: Triggered {
                conditions: texts,
                before_ns: before,
                after_ns: after,
                ..Triggered::default()
            },
            buffer_bytes,
        }
    }

    /// The next bus.
    pub fn add_bus(&mut self, name: &str) {
        self.watch.add_bus(name);
    }

    /// Takes frames in their order: together, as far as they are of the open window and concern no condition.
    pub fn frames(&mut self, Piece { chunk, places, late }: Piece<'_>, output: &mut Output<'_>) {
        let mut at = places.start;
        while at < places.end {
            let is_inside = self.newest > 0 && self.open.as_ref().is_some_and(|open| !open.is_over);
            if !is_inside {
                return chunk.each(at..places.end, |record| self.frame(record, late, output));
            }
            let until = self.calm_until(chunk, at..places.end);
            if until > at {
                let (last, _) = self.clock.time(chunk.stamp_ns(until - 1));
                self.newest = self.newest.max(last);
                output.frames(Piece { chunk, places: at..until, late });
            }
            // The one that ends them.
            at = places.end.min(until + 1);
            chunk.each(until..at, |record| self.frame(record, late, output));
        }
    }

    /// Up to which place the frames at these places are of the open window and concern no condition.
    fn calm_until(&self, chunk: &Chunk, places: Range<usize>) -> usize {
        let is_before = chunk.stamp_ns(places.start) < self.clock.stamp_ns(self.from);
        if is_before || self.clock.before.is_some() {
            return places.start;
        }
        let last_ns = self.clock.stamp_ns(self.until.min(self.watch.deadline()));
        let until = chunk.until(last_ns).clamp(places.start, places.end);
        chunk.find(places.start..until, |record| self.watch.concerns(record))
    }

    #[inline]
    fn frame(&mut self, record: &RawRecord<'_>, late: bool, output: &mut Output<'_>) {
        let (time, offset_ns) = self.clock.time(record.stamp_ns);
        if self.newest == 0 {
            self.first = time;
        }
        if self.watch.concerns(record) || time > self.watch.deadline() {
            self.look(record, time, output);
        }
        self.newest = self.newest.max(time);
        if (self.from..=self.until).contains(&time) {
            output.frame_within_limit(record, late);
            return;
        }
        self.wait(record, late, time, offset_ns, output);
        if time > self.change {
            self.change(time, output);
        }
    }

    /// Keeps a frame outside of all windows as long as an event may need it.
    fn wait(
        &mut self,
        record: &RawRecord<'_>,
        late: bool,
        time: u64,
        offset_ns: i64,
        output: &mut Output<'_>,
    ) {
        if late && (self.closed.0..=self.closed.1).contains(&time) {
            output.lose_to_window(record.bus, 1, "they came when its file was closed");
            return;
        }
        output.leave_out(record.bus);
        let oldest = self.newest.saturating_sub(self.before).saturating_sub(LATE_NS);
        self.waiting.push(record, late, time, offset_ns, oldest);
    }

    #[cold]
    fn look(&mut self, record: &RawRecord<'_>, time: u64, output: &mut Output<'_>) {
        let mut met = Vec::new();
        self.watch.look(record, time, |one| met.push(one));
        met.into_iter().for_each(|met| self.event(met, output));
    }

    /// All frames with stamps before `stamp_ns` were taken.
    pub fn pass(&mut self, stamp_ns: u64, output: &mut Output<'_>) {
        let (time, _) = self.clock.time(stamp_ns);
        let mut met = Vec::new();
        self.watch.pass(time, &mut |one| met.push(one));
        met.into_iter().for_each(|met| self.event(met, output));
        if time > self.change {
            self.change(time, output);
        }
    }

    /// The program asks for an event, at this time of the real-time clock.
    pub fn request(&mut self, stamp_ns: u64, what: String) {
        let (at, _) = self.clock.time(stamp_ns);
        self.watch.ask(Met { at, what });
    }

    /// The clock was set by `step_ns`, and is at `now_ns` now.
    pub fn clock_was_set(&mut self, step_ns: i64, now_ns: u64) {
        self.clock.was_set(step_ns, now_ns);
    }

    /// Begins a window, or extends the open one.
    fn event(&mut self, Met { at, what }: Met, output: &mut Output<'_>) {
        let at = at.max(self.newest); // a late frame begins no window in the past
        let from = at.saturating_sub(self.before);
        self.account.events += 1;
        output.report.triggered_events = self.account.events;
        let is_joined = self.open.is_some() && from <= self.until.saturating_add(1);
        if !is_joined {
            self.close(output);
            self.begin(from, output);
        }
        let number = self.account.events;
        let Some(open) = &mut self.open else { return };
        let file = output.path().display();
        self.live.log(match is_joined {
            true => format!("event {number}: {what}; it joins {file}"),
            false => format!("event {number}: {what} → {file}"),
        });
        let remark = format!("event {number}: {what}");
        if open.about.causes.len() < CAUSES_MAX {
            open.about.causes.push(Event { at_ns: self.clock.stamp_ns(at), what });
        } else {
            open.about.causes_left_out += 1;
        }
        open.is_over = false;
        if !is_joined {
            output.remark(&format!("window of {remark}"));
        }
        self.until = self.until.max(at.saturating_add(self.after));
        self.change = self.until;
        self.take_waiting(output);
        output.remark(&remark);
    }

    fn begin(&mut self, from: u64, output: &mut Output<'_>) {
        output.begin_event();
        (self.from, self.until) = (from, from);
        let from_ns = self.clock.stamp_ns(from.max(self.first));
        self.open = Some(Open { about: Window { from_ns, ..Window::default() }, is_over: false });
        for (bus, frames) in (0..).zip(self.waiting.take_gone(from)) {
            if frames > 0 {
                output.lose_waiting(BusId(bus), frames);
            }
        }
    }

    /// Writes the waiting frames that belong to the window; the others are too old for any later one.
    fn take_waiting(&mut self, output: &mut Output<'_>) {
        let window = self.from..=self.until;
        self.waiting.drain(|entry| {
            if window.contains(&entry.time) {
                output.take_in(&entry.record, entry.late);
            }
        });
    }

    /// The time of the window is over, or that in which another one could overlap it.
    #[cold]
    fn change(&mut self, time: u64, output: &mut Output<'_>) {
        let Some(open) = &mut self.open else {
            self.change = u64::MAX;
            return;
        };
        if !open.is_over {
            open.is_over = true;
            self.change = self.until.saturating_add(self.before.max(LATE_NS));
            output.flush();
            self.live.log(format!("{}: the window is over", output.path().display()));
        }
        if time > self.change {
            self.close(output);
        }
    }

    /// Ends the file of the window.
    fn close(&mut self, output: &mut Output<'_>) {
        let Some(open) = self.open.take() else { return };
        let window = self.end_window(open, output);
        output.end_event(&causes(&window));
        self.list(window, output);
    }

    /// A window that ends here: its time, its file and its frames.
    fn end_window(&mut self, open: Open, output: &Output<'_>) -> Window {
        let until_ns = self.clock.stamp_ns(self.until.min(self.newest.max(self.from)));
        self.closed = (self.from, self.until);
        (self.from, self.until, self.change) = (u64::MAX, 0, u64::MAX);
        Window { until_ns, is_cut: !open.is_over, files: output.event_files(), ..open.about }
    }

    fn list(&mut self, mut window: Window, output: &Output<'_>) {
        window.frames = output.event_frames();
        if self.account.windows.len() < LISTED_MAX {
            self.account.windows.push(window);
        } else {
            self.account.windows_left_out += 1;
        }
    }

    /// The recording ends: what belongs into its last file, if that is open.
    pub fn last_words(&mut self, output: &mut Output<'_>) -> Option<String> {
        self.pass_requests(output);
        let open = self.open.take()?;
        let window = self.end_window(open, output);
        let words = causes(&window);
        output.flush();
        self.list(window, output);
        Some(words)
    }

    /// Requests that came after the last frame.
    fn pass_requests(&mut self, output: &mut Output<'_>) {
        self.watch.take_asked().into_iter().for_each(|met| self.event(met, output));
    }

    /// What happened, for the account.
    pub fn finish(mut self) -> Triggered {
        self.account.buffer_bytes = self.buffer_bytes as u64;
        self.account.buffer_high_water_bytes = self.waiting.high_water() as u64;
        self.account
    }
}

/// The causes of a window, for its file.
fn causes(window: &Window) -> String {
    let texts: Vec<&str> = window.causes.iter().map(|cause| cause.what.as_str()).collect();
    let more = match window.causes_left_out {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("event: {}{more}", texts.join("; "))
}

#[cfg(test)]
#[path = "windows/tests.rs"]
mod tests;
