//! Pins of rings: a version that the ring before has not finished is held.

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component, hold_reason, ring_waves, rollout_report, sleep_a_while,
};

const PIN: &str = "apps/pay/pins/prod.yaml";

async fn pinned_fixture() -> RolloutFixture {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), (PIN, "version: v1\n")];
    RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await
}

// Row 20.
#[tokio::test(start_paused = true)]
async fn a_pin_of_an_untested_version_needs_approval() {
    let scene = pinned_fixture().await;
    scene.push("Hotfix", &[(PIN, Some("version: v9\n"))]).await;
    scene.until("prod waits", |now| !hold_reason(now, "c2", "").is_empty()).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let words = hold_reason(&scene.overview(), "c2", "");
    assert!(words.contains("test has not finished v9"), "{words}");
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v1", "v9", "v9"]);
    scene.assert_ends_at_head();
}

// A version that test runs needs no approval, whatever its health.
#[tokio::test(start_paused = true)]
async fn a_pin_of_a_tested_version_starts_immediately() {
    let files = [
        (RINGS, &*TEST_PROD.replace(", confirm: true", "")),
        (PAY, &*component("v1")),
        (PIN, "version: v1\n"),
    ];
    let mut waves = ring_waves("default/pay");
    waves.gates[0].confirm = false;
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    let tested = scene.push_pay("v2", &component("v2")).await;
    scene.until_converged(&tested).await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    let promoted = scene.push("Promote", &[(PIN, Some("version: v2\n"))]).await;
    scene.until_converged(&promoted).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert!(rollout_report(&scene.overview()).is_none_or(|it| it.confirmation.is_none()));
    scene.assert_ends_at_head();
}

// If the ring before is unhealthy with that version, it has not finished it.
#[tokio::test(start_paused = true)]
async fn pin_waits_while_test_is_unwell() {
    let scene = pinned_fixture().await;
    scene.break_image("c1", "registry.example.com/pay:v2");
    scene.push_pay("v2", &component("v2")).await;
    scene.push("Promote", &[(PIN, Some("version: v2\n"))]).await;
    scene.until("prod waits", |now| !hold_reason(now, "c2", "").is_empty()).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.break_image("c1", "");
    // Test got v2 by the commit before, which prod does not have: its gate holds.
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}
