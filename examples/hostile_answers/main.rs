//! A peer of tutti whose answers are valid but for some random changes, for a while:
//! `cargo run --release --example hostile_answers -- --peer apiserver --minutes 10 --seed 1`. An input is one connection and all that is
//! asked over it; each has a seed of its own, and `--seed N --inputs 1` makes it again and shows what was answered. A finding is a panic,
//! an input that takes longer than two minutes, or a process that takes more than 300 MiB.
//!
//! The peer `receivers` is the other way round: what is made is sent to the receivers of webhooks, signed or not. There a finding is also an
//! answer that is neither 2xx nor 4xx.
//!
//! Another peer is one more file with a table of valid answers and a function that asks for them; add it to `PEERS`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a command for developers"
)]

mod api_server;
mod forge;
mod git;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/it/support/http1.rs"]
mod http1;
mod mutate;
#[path = "../../tests/it/support/package.rs"]
mod package;
mod receivers;
mod registry;
#[allow(dead_code, reason = "the benchmark uses more of it")]
#[path = "../../tests/it/support/senders.rs"]
mod senders;
mod server;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;

use self::server::{HostileServer, PeerAnswer, PeerRequest};

/// An input that takes longer hangs: nothing here waits for an answer longer than a minute.
const INPUT_TIMEOUT: Duration = Duration::from_secs(120);
/// Inputs that are tried at once: each waits now and then.
const PARALLEL_INPUTS: usize = 6;
/// The memory limit of the process in KiB, which includes the peer and its answers.
const MEMORY_LIMIT_KIB: u64 = 300 * 1024;

/// A simulated peer of tutti.
#[derive(Debug)]
pub struct HostilePeer {
    name: &'static str,
    /// A valid answer.
    answer: fn(&PeerRequest) -> PeerAnswer,
    /// Asks this address for everything. The folder is for files that it takes to do that.
    ask: fn(String, PathBuf) -> BoxFuture<'static, ()>,
}

const PEERS: &[HostilePeer] = &[api_server::PEER, forge::PEER, registry::PEER, git::PEER, receivers::PEER];

static PANICS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|one| one != name).nth(1)
}

fn number(name: &str, default: u64) -> u64 {
    argument(name).map_or(default, |text| text.parse().expect("a number"))
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let name = argument("--peer").unwrap_or_default();
    let Some(peer) = PEERS.iter().find(|peer| peer.name == name) else {
        let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        println!("usage: hostile_answers --peer {} [--minutes N] [--seed N] [--inputs N]", known.join("|"));
        std::process::exit(2);
    };
    let (first, inputs) = (number("--seed", 1), number("--inputs", u64::MAX));
    let long = Duration::from_secs(60 * number("--minutes", 1));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        hook(panic);
    }));
    let start = Instant::now();
    let seeds = (0..inputs).map(|input| first.wrapping_add(input));
    let seeds = seeds.take_while(|_| start.elapsed() < long);
    let mut inputs = futures::stream::iter(seeds.map(|seed| {
        let begin = Instant::now();
        async move { (seed, input(peer, seed, inputs == 1).await, begin.elapsed()) }
    }))
    .buffer_unordered(PARALLEL_INPUTS);
    let (mut done, mut findings, mut most, mut slowest) = (0, 0, 0, Duration::ZERO);
    while let Some((seed, finding, took)) = inputs.next().await {
        let memory = peak();
        let grown = (memory > MEMORY_LIMIT_KIB.max(most))
            .then(|| format!("{} MiB, by this or one beside", memory / 1024));
        for words in [finding, grown].into_iter().flatten() {
            findings += 1;
            println!("seed {seed}: {words}");
        }
        (done, most, slowest) = (done + 1, most.max(memory), slowest.max(took));
    }
    println!(
        "{name}: {done} inputs from seed {first}, {} answers, {findings} findings, at most {} MiB, the slowest took {slowest:.1?}",
        server::ANSWERS.load(Ordering::Relaxed),
        most / 1024,
    );
    // Those of tasks, too.
    let panics = PANICS.load(Ordering::Relaxed);
    std::process::exit(i32::from(findings > 0 || panics > 0));
}

/// The finding of an input, if any.
async fn input(peer: &HostilePeer, seed: u64, is_shown: bool) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let server = HostileServer::start(peer.answer, seed, is_shown).await;
    let ask = tokio::spawn((peer.ask)(server.address.clone(), folder.path().to_owned()));
    match tokio::time::timeout(INPUT_TIMEOUT, ask).await {
        Err(_) => Some(format!("longer than {INPUT_TIMEOUT:?}")),
        Ok(Err(panic)) => Some(format!("a panic: {panic}")),
        Ok(Ok(())) => None,
    }
}

/// The most that this process has taken, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
