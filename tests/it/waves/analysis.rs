//! Analyses after a wave: a test Prometheus decides whether the next wave opens, stops, or waits for a person.
//! The clock is real, as answers come over sockets.

use std::time::Duration;

use tutti::report::Overview;
use tutti::rollout::{MeasurementGate, MeasurementOutcome};

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component, component_with, hold_reason, retry, ring_waves,
    rollout_report,
};
use crate::support::metrics_server::{MetricsAnswer, MetricsServer};

const ANALYSIS: &str = "policies/errors.yaml";
const APPROVAL: &str = "approvals/again.yaml";

/// Measured each second.
fn analysis(spec: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Analysis
metadata: {{name: errors}}
spec: {{{spec}, interval: 1s, timeout: 2s}}
"
    )
}

fn query(probed: &MetricsServer) -> String {
    let query = "errors{app=\"{{ app.namespace }}/{{ app.name }}\", version=\"{{ app.version }}\", cluster=~\"{{ clusters }}\", ring=\"{{ ring }}\"}";
    analysis(&format!(
        "prometheus: {{url: '{}', query: '{query}', success: 'result[0] < 0.05', failure: 'result[0] > 0.5'}}",
        probed.url()
    ))
}

/// Ring test (c1), which is measured, then prod (c2, c3); v1 everywhere.
async fn analyzed_fixture(analysis: &str) -> RolloutFixture {
    analyzed_fixture_with(analysis, &component("v1")).await
}

async fn analyzed_fixture_with(analysis: &str, pay: &str) -> RolloutFixture {
    let rings = TEST_PROD.replace("confirm: true", "analysis: [errors]");
    let mut waves = ring_waves("default/pay");
    waves.gates[0].confirm = false;
    let files = [(RINGS, &*rings), (PAY, pay), (ANALYSIS, analysis)];
    RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await
}

async fn until_held(scene: &RolloutFixture, words: &str) {
    let is_held = |now: &Overview| hold_reason(now, "c2", "").starts_with(words);
    scene.until(&format!("c2 waits: {words}"), is_held).await;
}

/// Long enough for several measurements.
async fn several_measurements() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}

const FAILED_MESSAGE: &str = "wave test is done, analysis errors has failed: result [0.9]";
const INCONCLUSIVE_MESSAGE: &str = "wave test is done, analysis errors is inconclusive: ";

#[tokio::test]
async fn success_opens_the_next_wave() {
    let probed = MetricsServer::start(MetricsAnswer::Value("0.01")).await;
    let scene = analyzed_fixture(&query(&probed)).await;
    assert!(probed.requests().is_empty(), "nobody waits for it: {:?}", probed.requests());
    let second = scene.push_pay("v2", &component("v2")).await;
    scene.until_converged(&second).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    let asked = probed.requests();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let target = asked[0].lines().next().unwrap_or_default();
    assert!(target.starts_with("/api/v1/query?query=errors%7B"), "{target}");
    for part in ["default%2Fpay", "version%3D%22v2", "cluster%3D%7E%22c1%22", "ring%3D%22test"] {
        assert!(target.contains(part), "{part}: {target}");
    }
    several_measurements().await;
    assert_eq!(probed.requests().len(), 1, "it is over");
    assert!(rollout_report(&scene.overview()).is_none_or(|it| it.measures.is_empty()));
    scene.assert_ends_at_head();
}

#[tokio::test]
async fn a_bad_value_stops_but_allows_reverts() {
    let probed = MetricsServer::start(MetricsAnswer::Value("0.9")).await;
    let scene = analyzed_fixture(&query(&probed)).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, FAILED_MESSAGE).await;
    let asked = probed.requests().len();
    // A failure stays a failure, whatever is measured later; a confirmation does not open it.
    probed.answer(MetricsAnswer::Value("0.01"));
    scene.approve(&scene.digest(), "prod").await;
    several_measurements().await;
    assert_eq!(
        (scene.versions().await, probed.requests().len()),
        (vec!["v2".to_owned(), "v1".to_owned(), "v1".to_owned()], asked)
    );
    // A person requests another measurement.
    scene.push("Again", &[(APPROVAL, Some(&retry(&scene.digest())))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    probed.answer(MetricsAnswer::Value("0.9"));
    scene.push_pay("v3", &component("v3")).await;
    until_held(&scene, FAILED_MESSAGE).await;
    let back = scene.push_pay("Revert", &component("v2")).await;
    scene.until_converged(&back).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test]
async fn bad_value_takes_the_version_back() {
    let probed = MetricsServer::start(MetricsAnswer::Value("0.9")).await;
    let pay = |version: &str| component_with(version, "updateStrategy: {onFailure: revert}");
    let scene = analyzed_fixture_with(&query(&probed), &pay("v1")).await;
    scene.push_pay("v2", &pay("v2")).await;
    until_held(&scene, "version ").await;
    let is_back =
        |now: &Overview| super::fixture::unit_report(now, "c1", "").is_some_and(|it| !it.is_at_head);
    scene.until("c1 goes back", is_back).await;
    several_measurements().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let (asked, digest) = (probed.requests().len(), scene.digest());
    assert_eq!(asked, 1);
    probed.answer(MetricsAnswer::Value("0"));
    scene.push("Again", &[(APPROVAL, Some(&retry(&digest)))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
}

/// No data, no number, no answer: a person or a later measurement decides.
#[tokio::test]
async fn what_is_inconclusive_waits_for_a_person() {
    let probed = MetricsServer::start(MetricsAnswer::Nothing).await;
    let scene = analyzed_fixture(&query(&probed)).await;
    scene.push_pay("v2", &component("v2")).await;
    for (says, words) in [
        (MetricsAnswer::Nothing, "the query returned no data"),
        (MetricsAnswer::Value("NaN"), "the query result is not a number: result [NaN]"),
        (MetricsAnswer::Value("0.3"), "neither success nor failure: result [0.3]"),
        (MetricsAnswer::Status("503 Service Unavailable"), "the server answers 503"),
        (MetricsAnswer::Redirect, "the answer is a redirect (302 Found), which is not followed"),
        (MetricsAnswer::Endless, "the answer is larger than 1024 KiB"),
        (MetricsAnswer::NoAnswer, "no answer after 2 s"),
    ] {
        probed.answer(says);
        until_held(&scene, &format!("{INCONCLUSIVE_MESSAGE}{words}")).await;
    }
    scene.until_confirmation_requested("prod").await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    // Without a person the next conclusive measurement decides.
    probed.answer(MetricsAnswer::Nothing);
    scene.push_pay("v3", &component("v3")).await;
    until_held(&scene, INCONCLUSIVE_MESSAGE).await;
    probed.answer(MetricsAnswer::Value("0"));
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v3", "v3", "v3"]);
    scene.assert_ends_at_head();
}

/// A process that starts between the measurement and the next wave measures again.
#[tokio::test]
async fn another_process_measures_again() {
    let probed = MetricsServer::start(MetricsAnswer::Value("0.01")).await;
    let twice = query(&probed).replace(", interval: 1s", ", interval: 1s, count: 100");
    let mut scene = analyzed_fixture(&twice).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "wave test is done, analysis errors is under way: 2/100 good").await;
    scene.kill().await;
    scene.start().await;
    until_held(&scene, "wave test is done, analysis errors is under way: 1/100 good").await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.push("Once", &[(ANALYSIS, Some(&query(&probed)))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

/// An invalid analysis opens nothing, and stops nothing.
#[tokio::test]
async fn analysis_that_is_missing_or_wrong_is_inconclusive() {
    let scene = analyzed_fixture("").await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, &format!("{INCONCLUSIVE_MESSAGE}no Analysis of this name is below policies/")).await;
    scene.push("Wrong", &[(ANALYSIS, Some(&analysis("health: [true]")))]).await;
    until_held(&scene, &format!("{INCONCLUSIVE_MESSAGE}its manifest has an error")).await;
    scene.push("Wrong", &[(ANALYSIS, Some(&analysis("health: 'unit.all(a, true)'")))]).await;
    until_held(&scene, &format!("{INCONCLUSIVE_MESSAGE}an expression cannot be used")).await;
    let elsewhere = "prometheus: {url: 'http://prometheus.example.com', query: up, success: 'true'}";
    scene.push("Elsewhere", &[(ANALYSIS, Some(&analysis(elsewhere)))]).await;
    until_held(
        &scene,
        &format!("{INCONCLUSIVE_MESSAGE}http:// only on this machine, or with --allow-http prometheus"),
    )
    .await;
    let secret = "http: {url: 'https://127.0.0.1:1', token: {env: HOME}}";
    scene.push("Secret", &[(ANALYSIS, Some(&analysis(secret)))]).await;
    until_held(
        &scene,
        &format!("{INCONCLUSIVE_MESSAGE}failed to read the secret in the environment variable HOME"),
    )
    .await;
    let health = "health: 'units.all(unit, unit.version == \"v2\" && unit.ring == \"test\" && unit.desired > 0 && unit.available == unit.desired)'";
    scene.push("Right", &[(ANALYSIS, Some(&analysis(health)))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test]
async fn probe_over_http_is_measured_and_shown() {
    let probed = MetricsServer::start(MetricsAnswer::Status("503 Service Unavailable")).await;
    let http = format!(
        "http: {{url: '{}/{{{{ app.name }}}}', headers: {{x-probe: tutti}}}}, failureLimit: 1000",
        probed.url()
    );
    let scene = analyzed_fixture(&analysis(&http)).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "wave test is done, analysis errors is under way: 1 bad (1000 allowed), status 503")
        .await;
    let now = scene.overview();
    let measures = &rollout_report(&now).expect("a rollout").measures;
    assert_eq!(measures.len(), 1);
    assert_eq!(
        (&*measures[0].measure.wave, &measures[0].measure.gate),
        ("test", &MeasurementGate::Analysis("errors".to_owned()))
    );
    assert!(matches!(measures[0].outcome, MeasurementOutcome::Pending(_)), "{measures:?}");
    let asked = probed.requests();
    assert!(asked[0].starts_with("/pay\n") && asked[0].contains("x-probe: tutti"), "{asked:?}");
    probed.answer(MetricsAnswer::Status("200 OK"));
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
}
