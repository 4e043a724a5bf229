//! Random requests against one cluster: whatever is asked, the server answers, and properly.
//!
//! A session has a seed; its requests, the cluster and the virtual time between come from it, so the
//! seed and the number of a request replay it. `cargo run -p sandbox --release --example fuzz_api` runs
//! sessions for as long as one likes.

mod grammar;
mod json;
mod judge;
mod manifests;
mod schemas;
mod session;

#[cfg(test)]
use session::Finding;
pub use session::session;

#[test]
fn random_requests_are_answered_properly() {
    for seed in 1..=4 {
        let findings = session(seed, 150, None);
        assert!(findings.is_empty(), "{}", findings.iter().map(Finding::text).collect::<Vec<_>>().join("\n"));
    }
}
