//! Decisions about a simulated fleet.

use std::cell::Cell;

mod analysis;
mod approvals;
mod cost;
mod failures;
mod fleet;
mod observer;
mod pins;
mod rules;
mod scenarios;
mod simulator;
mod table;
mod walks;
mod windows;

thread_local! {
    /// Counts the visits of units by decisions.
    pub static VISITS: Cell<usize> = const { Cell::new(0) };
}

pub fn visit() {
    VISITS.set(VISITS.get() + 1);
}
