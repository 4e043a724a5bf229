//! Random requests for a while: `cargo run -p sandbox --release --example fuzz_api -- --seconds 600 --seed 1`.
//! Every session has its own cluster and the next seed; `--seed S --sessions 1` replays one.

#![allow(clippy::print_stdout, clippy::unwrap_used, dead_code, reason = "the module is one of the tests")]

#[path = "../tests/it/draw.rs"]
mod draw;
#[path = "../tests/it/fuzz/mod.rs"]
mod fuzz;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const REQUESTS: u64 = 1_000;
static PANICS: AtomicU64 = AtomicU64::new(0);

fn argument(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|one| one != name).skip(1);
    arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        default(panic);
    }));
    let (mut seed, seconds) = (argument("--seed", 1), argument("--seconds", 60));
    let sessions = argument("--sessions", u64::MAX);
    let requests = argument("--requests", REQUESTS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut executions, mut found, mut done) = (0, 0, 0);
    while Instant::now() < until && done < sessions {
        let findings = fuzz::session(seed, requests, Some(Duration::from_secs(1)));
        for finding in &findings {
            println!("{}\n", finding.text());
        }
        if PANICS.swap(0, Ordering::Relaxed) > 0 && findings.is_empty() {
            println!("seed {seed}: a panic outside of requests\n");
            found += 1;
        }
        found += findings.len();
        executions += requests;
        seed += 1;
        done += 1;
    }
    println!("{executions} requests in {done} sessions, {found} findings");
    std::process::exit(i32::from(found > 0));
}
