//! Counters for tests: parsed objects, unpacked texts and index steps of this thread.

use std::cell::Cell;

thread_local! {
    static PARSES: Cell<usize> = const { Cell::new(0) };
    static READS: Cell<usize> = const { Cell::new(0) };
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn count_parse() {
    PARSES.with(|count| count.set(count.get() + 1));
}

/// How many stored objects `work` parsed.
pub(crate) fn parses_of(work: impl FnOnce()) -> usize {
    let before = parses_so_far();
    work();
    parses_so_far() - before
}

pub(super) fn count_read() {
    READS.with(|count| count.set(count.get() + 1));
}

/// Of how many stored objects `work` unpacked the text.
pub(crate) fn reads_of(work: impl FnOnce()) -> usize {
    let before = reads_so_far();
    work();
    reads_so_far() - before
}

pub(super) fn count_index_step() {
    STEPS.with(|count| count.set(count.get() + 1));
}

/// How many steps `work` took through what is known of labels.
pub(super) fn index_steps_of(work: impl FnOnce()) -> usize {
    let before = STEPS.with(Cell::get);
    work();
    STEPS.with(Cell::get) - before
}

pub(crate) fn parses_so_far() -> usize {
    PARSES.with(Cell::get)
}

pub(crate) fn reads_so_far() -> usize {
    READS.with(Cell::get)
}
