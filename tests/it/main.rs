//! One integration binary; a file for each behaviour.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod example_repo;
