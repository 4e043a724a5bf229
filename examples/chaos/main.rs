//! Random schedules of commits, edits, faults and crashes, each held to what must hold of every one.
//!
//! `cargo run --release --example chaos -- --schedules 100000 --seed 1` carries out that many, from that seed on, and says what
//! they did; `--log` prints one schedule step by step.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a command for developers prints, and fails by panicking"
)]

#[path = "../../tests/it/chaos/mod.rs"]
mod chaos;

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/it/support"]
mod support {
    pub mod connections;
    pub mod fleet;
    pub mod manifests;
    pub mod oracle;
    pub mod repository;
}

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// After how many schedules a line says how far a long run is
const PROGRESS: u64 = 2500;

#[derive(Parser)]
struct ChaosArguments {
    /// How many schedules
    #[arg(long, default_value_t = 1000)]
    schedules: u64,
    /// The seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many side by side; all cores without it
    #[arg(long)]
    threads: Option<usize>,
    /// Schedules of an app in waves
    #[arg(long)]
    waves: bool,
    /// Schedules of two processes, of which one leads
    #[arg(long, conflicts_with = "waves")]
    replicas: bool,
    /// Print what happened in each schedule, not only in those with violations
    #[arg(long)]
    log: bool,
}

fn main() -> ExitCode {
    let ChaosArguments { schedules, seed, threads, waves, replicas, log } = ChaosArguments::parse();
    let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    if waves || replicas {
        return run_special_schedules(seed, schedules, threads, log, waves);
    }
    let start = Instant::now();
    let a_minute = |done: u64| done as f64 * 60.0 / start.elapsed().as_secs_f64();
    let (done, violated) = (AtomicU64::new(0), AtomicU64::new(0));
    let report = chaos::run_schedules(seed, schedules, threads, &|seed, outcome| {
        if log {
            println!("schedule {seed}\n{}", outcome.log.join("\n"));
        }
        if !outcome.violations.is_empty() {
            violated.fetch_add(1, Ordering::Relaxed);
            chaos::report_violation(seed, outcome, &|text| println!("{text}"));
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done % PROGRESS == 0 && done < schedules {
            let violated = violated.load(Ordering::Relaxed);
            eprintln!("{done} of {schedules}, {violated} with violations, {:.0} a minute", a_minute(done));
        }
    });
    println!("{report}");
    println!(
        "seeds {seed}..{}, {:.0} schedules a minute on {threads} threads",
        seed + schedules,
        a_minute(schedules)
    );
    for (seed, violations) in &report.violations {
        println!("seed {seed}: {}", violations[0].lines().next().unwrap_or_default());
    }
    if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Schedules of an app in waves, or of two processes.
fn run_special_schedules(seed: u64, schedules: u64, threads: usize, log: bool, waves: bool) -> ExitCode {
    let start = Instant::now();
    let done = AtomicU64::new(0);
    let told = |seed: u64, outcome: &chaos::SeedOutcome| {
        if log || !outcome.violations.is_empty() {
            let violations: Vec<String> =
                outcome.violations.iter().map(|words| format!("seed {seed}: {words}")).collect();
            println!("{}\n{}", outcome.log.join("\n"), violations.join("\n"));
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS) {
            eprintln!("{done} of {schedules}");
        }
    };
    let (what, one): (_, fn(u64) -> chaos::SeedOutcome) = match waves {
        true => ("waves", chaos::waves::run_seed),
        false => ("two processes", chaos::replicas::run_seed),
    };
    let (violated, writes) = chaos::run_seeds(seed, schedules, threads, &one, &told);
    println!(
        "{schedules} schedules of {what} from seed {seed} on in {} s, {writes} writes, {violated} with violations",
        start.elapsed().as_secs()
    );
    if violated == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
