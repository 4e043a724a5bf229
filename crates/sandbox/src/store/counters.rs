//! What tests count: how often this thread parsed a stored object.

use std::cell::Cell;

thread_local! {
    static PARSES: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn count_parse() {
    PARSES.with(|count| count.set(count.get() + 1));
}

/// How many stored objects `work` parsed.
pub(crate) fn parses_of(work: impl FnOnce()) -> usize {
    let before = PARSES.with(Cell::get);
    work();
    PARSES.with(Cell::get) - before
}
