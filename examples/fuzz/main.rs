//! Random YAML, manifests of every version and templates, for a while:
//! `cargo run --release --example fuzz -- templates --seconds 600 --seed 1`. `yaml`, `hub` and `templates` are three
//! targets; every input has a seed of its own, and `--seed N --inputs 1` makes it again. A finding is a panic, a fault
//! that tutti says is its own, or an input that takes longer than a minute.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a command for developers"
)]

mod corpus;
mod mutate;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// An input that takes longer hangs.
const INPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// When the input under way began, in milliseconds since the start, and its seed.
static INPUT_STARTED: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);

fn number(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|one| one != name).skip(1);
    arguments.next().map_or(default, |text| text.parse().expect("a number"))
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, target)) = targets::TARGETS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = targets::TARGETS.iter().map(|(known, _)| *known).collect();
        println!("usage: fuzz {} [--seconds N] [--seed N] [--inputs N]", known.join("|"));
        std::process::exit(2);
    };
    let (first, inputs, seconds) =
        (number("--seed", 1), number("--inputs", u64::MAX), number("--seconds", 60));
    let corpus = corpus::of(&name);
    let start = Instant::now();
    std::thread::spawn(move || watch(start));
    let (mut done, mut findings, mut slowest) = (0, 0, Duration::ZERO);
    while done < inputs && start.elapsed() < Duration::from_secs(seconds) {
        let seed = first.wrapping_add(done);
        SEED.store(seed, Ordering::Relaxed);
        INPUT_STARTED
            .store(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let begin = Instant::now();
        let mut random = StdRng::seed_from_u64(seed);
        let input = mutate::of(&corpus, &mut random);
        if inputs == 1 {
            println!("{input}");
        }
        match catch_unwind(AssertUnwindSafe(|| target(&input, &mut random))) {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                findings += 1;
                println!("seed {seed}: {fault}");
            }
            Err(_) => {
                findings += 1;
                println!("seed {seed}: a panic");
            }
        }
        slowest = slowest.max(begin.elapsed());
        done += 1;
    }
    println!("{name}: {done} inputs from seed {first}, {findings} findings, the slowest took {slowest:.1?}");
    std::process::exit(i32::from(findings > 0));
}

/// Ends the process when an input hangs: there is no other way out of it.
fn watch(start: Instant) {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let began = Duration::from_millis(INPUT_STARTED.load(Ordering::Relaxed));
        if start.elapsed().saturating_sub(began) > INPUT_TIMEOUT {
            println!("seed {}: longer than {INPUT_TIMEOUT:?}", SEED.load(Ordering::Relaxed));
            std::process::exit(1);
        }
    }
}
