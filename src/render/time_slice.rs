//! Bounds how long one target renders before others follow.
//!
//! A target over its time is cut off and awaited (E3998). New targets come before its next turn, which is four times as long.

use std::cell::Cell;
use std::time::Duration;

use crate::model::RenderWait;

/// The clock of a render pass, from its caller.
#[derive(Clone, Copy)]
pub struct Pacing<'a> {
    /// If it returns false, no render starts and running ones end.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
    /// The time since a fixed moment.
    pub clock: &'a (dyn Fn() -> Duration + Sync),
}

impl std::fmt::Debug for Pacing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pacing").finish_non_exhaustive()
    }
}

impl Pacing<'_> {
    const ENDLESS: Self = Self { goes_on: &|| true, clock: &|| Duration::ZERO };
}

/// The first turn. Most templates take some milliseconds, a chart some hundred.
const FIRST_SLICE: Duration = Duration::from_millis(250);
const FIRST_CHART_SLICE: Duration = Duration::from_secs(2);
/// The growth of each turn. The last one is longer than any render may take, also on a busy machine.
const GROWTH_FACTOR: u32 = 4;
const MOST_GROWTHS: u32 = 5;

/// The time of one target in one pass. An unfinished target gets a longer turn later.
#[derive(Clone)]
pub struct RenderTimeSlice<'a> {
    remaining: Cell<Duration>,
    pacing: Pacing<'a>,
    was_cut_off: Cell<bool>,
}

impl std::fmt::Debug for RenderTimeSlice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderTimeSlice").field("left", &self.remaining).finish_non_exhaustive()
    }
}

impl<'a> RenderTimeSlice<'a> {
    pub fn endless() -> Self {
        Self { remaining: Cell::new(Duration::MAX), pacing: Pacing::ENDLESS, was_cut_off: Cell::default() }
    }

    /// `before`: the number of earlier cut-offs.
    pub fn after_cut_offs(before: u32, is_chart: bool, pacing: Pacing<'a>) -> Self {
        let first = if is_chart { FIRST_CHART_SLICE } else { FIRST_SLICE };
        let left = Cell::new(first.saturating_mul(GROWTH_FACTOR.pow(before.min(MOST_GROWTHS))));
        Self { remaining: left, pacing, was_cut_off: Cell::default() }
    }

    /// Runs a part of the render within the remaining time.
    pub fn run_part<T>(&self, run: impl FnOnce(RenderWait<'_>) -> T) -> T {
        let begun = (self.pacing.clock)();
        let result = run(RenderWait { time: self.remaining.get(), is_wanted: self.pacing.goes_on });
        let took = (self.pacing.clock)().saturating_sub(begun);
        self.remaining.set(self.remaining.get().saturating_sub(took));
        result
    }

    pub fn record_cut_off(&self) {
        self.was_cut_off.set(true);
    }

    pub fn was_cut_off(&self) -> bool {
        self.was_cut_off.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn turns_grow_after_cut_off() {
        let time = |before, is_chart| {
            RenderTimeSlice::after_cut_offs(before, is_chart, Pacing::ENDLESS).run_part(|wait| wait.time)
        };
        assert_eq!(
            (time(0, false), time(1, false), time(0, true)),
            (FIRST_SLICE, 4 * FIRST_SLICE, FIRST_CHART_SLICE)
        );
        assert!(
            time(MOST_GROWTHS, false) > Duration::from_secs(60)
                && time(MOST_GROWTHS, true) > Duration::from_secs(60)
        );
        assert_eq!(time(u32::MAX, true), time(MOST_GROWTHS, true));
    }

    #[test]
    fn parts_share_time_of_turn() {
        let now = AtomicU64::new(0);
        let pass = |millis| now.fetch_add(millis, Ordering::Relaxed);
        let clock = || Duration::from_millis(now.load(Ordering::Relaxed));
        let turn = RenderTimeSlice::after_cut_offs(0, false, Pacing { clock: &clock, ..Pacing::ENDLESS });
        turn.run_part(|_| pass(2));
        assert_eq!(turn.run_part(|wait| wait.time), FIRST_SLICE - Duration::from_millis(2));
        turn.run_part(|_| pass(1000));
        assert_eq!(turn.run_part(|wait| wait.time), Duration::ZERO);
        assert!(RenderTimeSlice::endless().run_part(|wait| wait.time) > Duration::from_secs(1 << 30));
    }
}
