//! Checks the memory limit that the other tests rely on.

use std::process::Command;

use super::fixture::HostileFixture;

#[tokio::test(flavor = "multi_thread")]
async fn healthy_process_converges_under_the_memory_limit() {
    let mut arena = HostileFixture::start(&[]).await;
    arena.check_healthy_app().await;
}

/// The limit must work, or the tests would prove nothing.
#[test]
fn memory_limit_ends_what_goes_over_it() {
    let script = "ulimit -d 1048576 && exec head -c 2000000000 /dev/zero | tail";
    let ended = Command::new("sh").args(["-c", script]).output().expect("sh starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("exhausted"), "{said}");
}
