//! Measurements after a wave: which results open the next wave, stop the rollout, or wait for a person.

use std::time::Duration;

use super::fleet::{rings, wave};
use super::simulator::{Health, Simulator};
use crate::model::{OnFailure, UnitShare};
use crate::rollout::{
    ApprovalEffect, GateProgress, Measurement, MeasurementGate, MeasurementOutcome, RolloutHold,
};

const NAME: &str = "errors";
const CONTEXT: &str = "ci/smoke";

/// Test (c1), then prod (c2, c3), v1 everywhere; errors are measured after test.
fn installed() -> Simulator {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    let mut fleet = fleet.installed();
    fleet.waves[0].limits.analysis = vec![NAME.to_owned()];
    fleet
}

fn gate(name: &str) -> MeasurementGate {
    if name.contains('/') {
        MeasurementGate::Status(name.to_owned())
    } else {
        MeasurementGate::Analysis(name.to_owned())
    }
}

impl Simulator {
    fn measure(&self, name: &str) -> Measurement {
        let digest = self.facts_at(self.head()).waves[0];
        let retries = self.approvals.iter().rev().filter(|it| it.allows == ApprovalEffect::Retry);
        let retry = { retries }
            .find(|it| it.digest == self.digest())
            .and_then(|it| Some(it.file.as_ref()?.commit.clone()));
        Measurement { wave: "test".to_owned(), gate: gate(name), digest, retry }
    }

    /// The result of a measurement after test, for the version at the head.
    fn measured(&mut self, name: &str, outcome: MeasurementOutcome) -> &mut Self {
        let measure = self.measure(name);
        self.measured.insert(measure, outcome);
        self
    }

    /// The required measurements.
    fn asks(&self) -> Vec<&Measurement> {
        self.decision().measurements.keys().collect()
    }
}

fn pending() -> MeasurementOutcome {
    MeasurementOutcome::Pending("1/3 good".into())
}

fn good() -> MeasurementOutcome {
    MeasurementOutcome::Success("result [0.01]".into())
}

fn bad() -> MeasurementOutcome {
    MeasurementOutcome::Failure("result [0.9]".into())
}

fn unclear() -> MeasurementOutcome {
    MeasurementOutcome::Inconclusive("the query returned no data".into())
}

#[test]
fn outcomes_open_hold_or_ask() {
    let confirmed = |fleet: &mut Simulator| _ = fleet.approve("prod");
    let nobody = |_: &mut Simulator| {};
    type Person = fn(&mut Simulator);
    let cases: [(MeasurementOutcome, Person, bool, &str, bool); 7] = [
        (pending(), nobody, false, "wave test is done, analysis errors is under way: 1/3 good", false),
        (good(), nobody, true, "", false),
        (bad(), nobody, false, "wave test is done, analysis errors has failed: result [0.9]", false),
        (
            unclear(),
            nobody,
            false,
            "wave test is done, analysis errors is inconclusive: the query returned no data",
            true,
        ),
        // A person opens an inconclusive result, and nothing else.
        (unclear(), confirmed, true, "", false),
        (pending(), confirmed, false, "wave test is done, analysis errors is under way", false),
        (bad(), confirmed, false, "wave test is done, analysis errors has failed", false),
    ];
    for (outcome, person, opens, words, asks) in cases {
        let mut fleet = installed();
        fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
        fleet.waits(
            "c2",
            "wave test is done, analysis errors is under way: this process has not measured it yet",
        );
        assert_eq!(fleet.asks(), [&fleet.measure(NAME)]);
        fleet.measured(NAME, outcome.clone());
        person(&mut fleet);
        if opens {
            fleet.has("c1=v2 c2=v2 c3=v2");
            assert!(fleet.asks().is_empty() && !fleet.decision().is_open, "{outcome:?}");
            continue;
        }
        fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", words);
        let asked = fleet.decision().confirmation.as_ref().map(|asked| asked.through.as_str());
        assert_eq!(asked, asks.then_some("prod"), "{outcome:?}");
        let is_failure = fleet.hold("c2").is_some_and(RolloutHold::is_failure);
        assert_eq!(is_failure, matches!(outcome, MeasurementOutcome::Failure(_)));
        // A revert is possible whatever the results.
        fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
    }
}

#[test]
fn inconclusive_result_is_measured_again() {
    for (later, runs) in [(good(), "c1=v2 c2=v2 c3=v2"), (bad(), "c1=v2 c2=v1 c3=v1")] {
        let mut fleet = installed();
        fleet.push(&[("*", "v2")]).settle();
        fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
        assert_eq!(fleet.asks(), [&fleet.measure(NAME)]);
        fleet.measured(NAME, later).has(runs);
    }
}

#[test]
fn another_version_or_process_is_measured_again() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.measured(NAME, bad()).has("c1=v2 c2=v1 c3=v1");
    fleet
        .push(&[("*", "v3")])
        .has("c1=v3 c2=v1 c3=v1")
        .waits("c2", "wave test is done, analysis errors is under way");
    fleet.measured(NAME, unclear()).has("c1=v3 c2=v1 c3=v1");
    fleet.kill();
    fleet
        .has("c1=v3 c2=v1 c3=v1")
        .waits("c2", "wave test is done, analysis errors is under way: this process has not measured it yet");
    fleet.measured(NAME, good()).has("c1=v3 c2=v3 c3=v3");
}

#[test]
fn success_counts_once_the_next_wave_has_begun() {
    let mut fleet = installed();
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").measured(NAME, good()).has("c1=v2 c2=v2 c3=v1");
    fleet.kill();
    fleet.bad.clear();
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn failed_analysis_reverts_units_with_on_failure_revert() {
    let mut fleet = installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
    fleet.measured(NAME, bad()).has("c1=v1 c2=v1 c3=v1").waits("c2", "version ");
    let digest = fleet.digest();
    assert!(matches!(fleet.hold("c1"), Some(RolloutHold::Reverted { .. })), "{:?}", fleet.hold("c1"));
    assert_eq!(fleet.asks(), [&fleet.measure(NAME)], "a failure is kept");
    // Another process does not start it either. After a retry by a person it is measured again.
    fleet.kill();
    fleet.has("c1=v1 c2=v1 c3=v1");
    fleet.approve_digest(digest, ApprovalEffect::Retry).has("c1=v2 c2=v1 c3=v1");
    assert_eq!(fleet.asks(), [&fleet.measure(NAME)]);
    fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn retry_measures_a_stopping_failure_again() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet
        .measured(NAME, bad())
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c3", "wave test is done, analysis errors has failed");
    let digest = fleet.digest();
    fleet.approve_digest(digest, ApprovalEffect::Retry).has("c1=v2 c2=v1 c3=v1");
    fleet
        .waits("c3", "wave test is done, analysis errors is under way: this process has not measured it yet");
    fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn failure_stays_while_units_are_unhealthy() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.measured(NAME, bad()).has("c1=v2 c2=v1 c3=v1");
    fleet.health("c1", Health::Progressing).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c3", "wave test is done, analysis errors has failed");
}

#[test]
fn failure_stays_when_revert_is_impossible() {
    let mut fleet = installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).settle();
    fleet.commits[1].is_lost = true;
    fleet.measured(NAME, bad()).has("c1=v2 c2=v1 c3=v1").pass(100_000).has("c1=v2 c2=v1 c3=v1");
    assert!(matches!(fleet.hold("c1"), Some(RolloutHold::RevertFailed { .. })), "{:?}", fleet.hold("c1"));
    assert!(fleet.hold("c2").is_some_and(RolloutHold::is_failure), "{:?}", fleet.hold("c2"));
}

#[test]
fn each_retry_measures_again() {
    for on_failure in [OnFailure::Stop, OnFailure::Revert] {
        let mut fleet = installed();
        fleet.policy.on_failure = on_failure;
        fleet.push(&[("*", "v2")]).settle();
        for _ in 0..2 {
            fleet.measured(NAME, bad()).settle();
            fleet
                .retry()
                .has("c1=v2 c2=v1 c3=v1")
                .waits("c3", "wave test is done, analysis errors is under way");
        }
        fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
    }
}

/// Not even an Approval that gives a ring a version which the ring before lacks, older or newer.
#[test]
fn approval_of_a_pinned_ring_passes_no_failure() {
    let confirm = |fleet: &mut Simulator, wave: usize| {
        let digest = fleet.facts_at(fleet.head()).waves[wave];
        _ = fleet.approve_digest(digest, ApprovalEffect::Through(wave));
    };
    for is_before in [true, false] {
        let mut fleet = rings();
        fleet.add("c4", 2);
        fleet.waves[0].limits.confirm = false;
        fleet.waves[0].limits.analysis = vec![NAME.to_owned()];
        fleet.pin(&["c1", "c2", "c3", "c4"], "v1").settle();
        fleet.pin(&["c1"], "v2").has("c1=v2 c2=v1 c3=v1 c4=v1");
        if is_before {
            fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
            fleet.slow("v2").pin(&["c2", "c3"], "v2");
            confirm(&mut fleet, 1);
            fleet.has("c1=v2 c2=v2 c3=v1 c4=v1");
            fleet.bad.clear();
            fleet.measured(NAME, bad());
        } else {
            fleet.measured(NAME, bad()).pin(&["c2", "c3"], "v2");
            confirm(&mut fleet, 1);
        }
        fleet.settle();
        let second = if is_before { "c2=v2" } else { "c2=v1" };
        fleet.has(&format!("c1=v2 {second} c3=v1 c4=v1"));
        fleet.waits("c3", "wave test is done, analysis errors has failed");
        // A cluster is not filled with it either.
        fleet.rebuild("c3").has(&format!("c1=v2 {second} c3=v1 c4=v1"));
        // A later ring does not get it either.
        fleet.pin(&["c4"], "v2");
        confirm(&mut fleet, 2);
        fleet
            .has(&format!("c1=v2 {second} c3=v1 c4=v1"))
            .waits("c4", "wave test is done, analysis errors has failed");
        // Another version is independent.
        fleet.pin(&["c2", "c3", "c4"], "v3");
        confirm(&mut fleet, 1);
        confirm(&mut fleet, 2);
        fleet.has("c1=v2 c2=v3 c3=v3 c4=v3");
    }
}

/// The measurements of a ring's earlier version are unknown.
#[test]
fn earlier_version_of_measured_ring_waits_for_approval() {
    for outcome in [bad(), good()] {
        let mut fleet = rings();
        fleet.waves[0].limits.confirm = false;
        fleet.waves[0].limits.analysis = vec![NAME.to_owned()];
        fleet.pin(&["c1", "c2", "c3"], "v1").settle();
        fleet.pin(&["c1"], "v2").has("c1=v2 c2=v1 c3=v1").measured(NAME, outcome).settle();
        fleet.pin(&["c1"], "v3").has("c1=v3 c2=v1 c3=v1").measured(NAME, good()).settle();
        fleet.pin(&["c2", "c3"], "v2").has("c1=v3 c2=v1 c3=v1").waits("c2", "ring test has not finished v2");
        let digest = fleet.facts_at(fleet.head()).waves[1];
        fleet.approve_digest(digest, ApprovalEffect::Through(1)).has("c1=v3 c2=v2 c3=v2");
    }
}

#[test]
fn failure_outlives_its_retry() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.measured(NAME, bad()).settle();
    fleet.retry().settle();
    fleet.measured(NAME, bad()).has("c1=v2 c2=v1 c3=v1");
    fleet.approvals.clear();
    fleet.push(&[]).has("c1=v2 c2=v1 c3=v1").waits("c3", "wave test is done, analysis errors has failed");
    fleet.retry().has("c1=v2 c2=v1 c3=v1").waits("c3", "wave test is done, analysis errors is under way");
    fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn measurement_starts_after_soak_and_before_confirmation() {
    let mut fleet = installed();
    fleet.waves[0].limits.soak = Some(Duration::from_secs(1_000));
    fleet.waves[0].limits.confirm = true;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1").waits("c2", "wave test is done, the next opens at ");
    assert!(fleet.asks().is_empty());
    fleet.pass(1_000).has("c1=v2 c2=v1 c3=v1").waits("c2", "wave test is done, analysis errors is under way");
    fleet
        .measured(NAME, good())
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "wave test is done, wave prod waits for conf");
    assert_eq!(fleet.asks(), [&fleet.measure(NAME)], "it is kept while a person is awaited");
    fleet.approve("prod").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn unfinished_wave_is_not_measured() {
    let mut fleet = installed();
    fleet
        .slow("v2")
        .push(&[("*", "v2")])
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "waits for wave test, 0/1 done");
    assert!(fleet.asks().is_empty());
}

/// The worst result is shown: a failure, then a pending one, then an inconclusive one.
#[test]
fn all_gates_must_pass() {
    let mut fleet = installed();
    fleet.waves[0].limits.statuses = vec![CONTEXT.to_owned()];
    fleet.push(&[("*", "v2")]).settle();
    assert_eq!(fleet.asks().len(), 2);
    let standing = |fleet: &Simulator| fleet.hold("c2").and_then(RolloutHold::standing);
    for (analysis, status, expected) in [
        (good(), pending(), Some(GateProgress::Pending)),
        (unclear(), pending(), Some(GateProgress::Pending)),
        (unclear(), good(), Some(GateProgress::Inconclusive)),
        (good(), unclear(), Some(GateProgress::Inconclusive)),
        (bad(), unclear(), Some(GateProgress::Failed)),
    ] {
        fleet.measured(NAME, analysis).measured(CONTEXT, status).has("c1=v2 c2=v1 c3=v1");
        assert_eq!(standing(&fleet), expected);
    }
    fleet.measured(NAME, good()).measured(CONTEXT, unclear()).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, commit status ci/smoke: the query returned no data");
    fleet.measured(CONTEXT, good()).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn ring_is_measured_before_its_version_is_promoted() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.waves[0].limits.analysis = vec![NAME.to_owned()];
    fleet.waves[0].limits.soak = Some(Duration::from_secs(1_000));
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pass(2_000).settle();
    assert!(fleet.asks().is_empty(), "prod has what test has");
    fleet.pin(&["c1"], "v2").has("c1=v2 c2=v1 c3=v1");
    assert!(fleet.asks().is_empty() && fleet.decision().deadline.is_some(), "the soak goes on");
    fleet.pass(1_000).has("c1=v2 c2=v1 c3=v1");
    assert_eq!(fleet.asks(), [&fleet.measure(NAME)]);
    // A merge before that waits in the rollout.
    fleet.measured(NAME, pending()).pin(&["c2", "c3"], "v2").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, analysis errors is under way: 1/3 good");
    fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    assert_eq!(asked.digest, fleet.facts_at(fleet.head()).waves[1], "of that ring alone");
    fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
}
