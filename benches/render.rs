//! Rendering: objects a second, a large fleet cold, and what one commit costs. `cargo bench --bench render -- commits`
//! takes one part alone; each runs in a process of its own, so that its memory is its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "render/fleet.rs"]
mod fleet;
#[path = "render/repository.rs"]
mod repository;

const PARTS: [(&str, fn()); 3] =
    [("throughput", fleet::throughput), ("commits", fleet::commits), ("unshared", fleet::unshared)];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [name] = wanted.as_slice() {
        let (_, part) = PARTS.iter().find(|(part, _)| part == name).expect("throughput, commits or unshared");
        return part();
    }
    let program = std::env::current_exe().expect("this program");
    for (name, _) in PARTS {
        let status = std::process::Command::new(&program).arg(name).status().expect("it starts");
        assert!(status.success(), "{name} failed");
    }
}

fn figure(name: &str, value: f64, unit: &str) {
    println!("figure {name} {value:.1} {unit}");
}
