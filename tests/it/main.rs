//! The integration tests: one binary, one file per behaviour, named after it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking; the exemption for tests does not reach their helpers"
)]

mod layers;
mod live;
mod tidy;
//! One integration binary; a file for each behaviour.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod example_repo;
