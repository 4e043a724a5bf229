//! The engine: what a fleet at rest costs, what a change costs, and how much memory and time a large one takes.
//! `cargo bench --bench engine -- scale` takes one part alone; each runs in a process of its own, so that its memory is its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "engine/counted.rs"]
mod counted;
#[path = "shared/goals.rs"]
mod goals;
#[path = "engine/growth.rs"]
mod growth;
#[path = "engine/hanging.rs"]
mod hanging;
#[path = "engine/manifests.rs"]
mod manifests;
#[path = "engine/scale.rs"]
mod scale;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "engine/waves.rs"]
mod waves;

const PARTS: [(&str, fn()); 5] = [
    ("counted", counted::counted),
    ("growth", growth::growth),
    ("scale", scale::scale),
    ("hanging", hanging::hanging),
    ("waves", waves::waves),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [name] = wanted.as_slice() {
        let (_, part) =
            PARTS.iter().find(|(part, _)| part == name).expect("counted, growth, scale, hanging or waves");
        part();
        return goals::check();
    }
    let program = std::env::current_exe().expect("this program");
    let mut failed = Vec::new();
    for (name, _) in PARTS {
        let status = std::process::Command::new(&program).arg(name).status().expect("it starts");
        if !status.success() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}

/// The value that this part of all is not above.
fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * part).ceil() as usize;
    *values.get(rank.saturating_sub(1)).expect("at least one value")
}
