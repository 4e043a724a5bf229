//! Random requests to one cluster: each must get a valid response.
//!
//! The requests of a session, its cluster and the virtual time come from a seed; the seed and the number of a request
//! repeat it. `cargo run -p sandbox --release --example fuzz_api` runs sessions for a given time.

mod json;
mod manifests;
mod requests;
mod response_check;
mod schemas;
mod session;

#[cfg(test)]
use session::FuzzFinding;
pub use session::session;

#[test]
fn random_requests_are_answered_properly() {
    for seed in 1..=4 {
        let findings = session(seed, 150, None);
        assert!(
            findings.is_empty(),
            "{}",
            findings.iter().map(FuzzFinding::text).collect::<Vec<_>>().join("\n")
        );
    }
}
