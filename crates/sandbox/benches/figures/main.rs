//! The sandbox's size and speed: lines of `figure NAME VALUE UNIT`.
//!
//! Figures of memory are those of a process of their own: the benchmark runs itself once for each.
//! `cargo bench -p sandbox -- NAME` measures only the named ones.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

mod apply;
mod client;
mod day;
mod fleet;
mod lists;

use std::process::Command;

/// One measurement: its name, what runs it, and whether it needs a process of its own.
const MEASUREMENTS: &[(&str, fn())] =
    &[("apply", apply::measure), ("fleet", fleet::measure), ("day", day::measure), ("lists", lists::measure)];

/// Says which measurement the process is for.
const ONLY: &str = "SANDBOX_BENCH_ONLY";

fn main() {
    if let Ok(only) = std::env::var(ONLY) {
        let (_, measure) = MEASUREMENTS.iter().find(|(name, _)| *name == only).expect("a measurement");
        return measure();
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (name, _) in
        MEASUREMENTS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|one| one == name))
    {
        let program = std::env::current_exe().expect("the path of the benchmark");
        let status = Command::new(program).env(ONLY, name).status().expect("the benchmark runs itself");
        assert!(status.success(), "{name} failed");
    }
}

fn figure(name: &str, value: f64, unit: &str) {
    println!("figure {name} {value:.1} {unit}");
}

/// The time that this thread was on a processor: what a busy machine does not change.
fn thread_seconds() -> f64 {
    scheduled_seconds(0)
}

/// The time that this thread waited for a processor.
fn waited_seconds() -> f64 {
    scheduled_seconds(1)
}

fn scheduled_seconds(word: usize) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: f64 = stat.split(' ').nth(word).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    nanoseconds / 1e9
}

/// The memory of the process, now or at its peak.
fn memory_mib(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0");
    let kibibytes: f64 = line.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    kibibytes / 1024.0
}
