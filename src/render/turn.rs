//! How long a target is rendered before others have their turn.
//!
//! A target that is late is cut off and awaited (E3998). Targets that were never tried come before its next turn, which is four times as
//! long.

use std::cell::Cell;
use std::time::Duration;

use crate::model::Wait;

/// Whether renders go on, and how time passes: what who asks for them knows.
#[derive(Clone, Copy)]
pub struct Pacing<'a> {
    /// No other render is begun, and those under way end, when it says no.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
    /// How much time has passed since some moment.
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

/// Of a first turn: most templates take some milliseconds, a chart takes some hundred.
const FIRST: Duration = Duration::from_millis(250);
const FIRST_OF_CHARTS: Duration = Duration::from_secs(2);
/// Each turn is so many times as long as the one before, up to the last, which is longer than any render may take.
const GROWS: u32 = 4;
const LAST: u32 = 5;

/// One turn of one target. What is not done by its end is awaited, and has a longer turn later.
#[derive(Clone)]
pub struct Turn<'a> {
    left: Cell<Duration>,
    pacing: Pacing<'a>,
    was_cut_off: Cell<bool>,
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<'a> Turn<'a> {
    pub fn endless() -> Self {
        Self { left: Cell::new(Duration::MAX), pacing: Pacing::ENDLESS, was_cut_off: Cell::default() }
    }

    /// `before`: how often it was cut off.
    pub fn after(before: u32, is_chart: bool, pacing: Pacing<'a>) -> Self {
        let first = if is_chart { FIRST_OF_CHARTS } else { FIRST };
        let left = Cell::new(first.saturating_mul(GROWS.pow(before.min(LAST))));
        Self { left, pacing, was_cut_off: Cell::default() }
    }

    /// Runs a part of the render, which waits no longer than the turn is.
    pub fn part<T>(&self, run: impl FnOnce(Wait<'_>) -> T) -> T {
        let begun = (self.pacing.clock)();
        let result = run(Wait { time: self.left.get(), goes_on: self.pacing.goes_on });
        let took = (self.pacing.clock)().saturating_sub(begun);
        self.left.set(self.left.get().saturating_sub(took));
        result
    }

    /// A part was not done in time.
    pub fn note_cut_off(&self) {
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
        let time = |before, is_chart| Turn::after(before, is_chart, Pacing::ENDLESS).part(|wait| wait.time);
        assert_eq!((time(0, false), time(1, false), time(0, true)), (FIRST, 4 * FIRST, FIRST_OF_CHARTS));
        assert!(time(LAST, false) > Duration::from_secs(60) && time(LAST, true) > Duration::from_secs(60));
        assert_eq!(time(u32::MAX, true), time(LAST, true));
    }

    #[test]
    fn parts_share_time_of_turn() {
        let now = AtomicU64::new(0);
        let pass = |millis| now.fetch_add(millis, Ordering::Relaxed);
        let clock = || Duration::from_millis(now.load(Ordering::Relaxed));
        let turn = Turn::after(0, false, Pacing { clock: &clock, ..Pacing::ENDLESS });
        turn.part(|_| pass(2));
        assert_eq!(turn.part(|wait| wait.time), FIRST - Duration::from_millis(2));
        turn.part(|_| pass(1000));
        assert_eq!(turn.part(|wait| wait.time), Duration::ZERO);
        assert!(Turn::endless().part(|wait| wait.time) > Duration::from_secs(1 << 30));
    }
}
