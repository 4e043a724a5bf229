//! Random requests against one cluster: whatever is asked, the server answers, and properly.
//!
//! A session has a seed; its requests, the cluster and the virtual time between come from it, so the
//! seed and the number of a request replay it. `cargo run -p sandbox --release --example fuzz` runs
//! sessions for as long as one likes.

#[path = "../draw.rs"]
mod draw;
mod grammar;
mod json;
mod judge;
mod manifests;
mod schemas;
mod session;

pub use session::{Finding, session};

#[test]
fn random_requests_are_answered_properly() {
    for seed in 1..=4 {
        let findings = session(seed, 150, None);
        assert!(findings.is_empty(), "{}", findings.iter().map(Finding::text).collect::<Vec<_>>().join("\n"));
    }
}
