//! What is measured after a wave: what opens the next one, what stops it, and what waits for a person.

use std::time::Duration;

use super::fleet::{rings, wave};
use super::simulator::Simulator;
use crate::model::{OnFailure, Share};
use crate::rollout::{Allows, Gate, Hold, Measure, Outcome, Standing};

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

fn gate(name: &str) -> Gate {
    if name.contains('/') { Gate::Status(name.to_owned()) } else { Gate::Analysis(name.to_owned()) }
}

impl Simulator {
    fn measure(&self, name: &str, is_retry: bool) -> Measure {
        let digest = self.facts_at(self.head()).waves[0];
        Measure { wave: "test".to_owned(), gate: gate(name), digest, is_retry }
    }

    /// What came of it after test, of the version at the head.
    fn measured(&mut self, name: &str, outcome: Outcome) -> &mut Self {
        let measure = self.measure(name, false);
        self.measured.insert(measure, outcome);
        self
    }

    /// What is asked for.
    fn asks(&self) -> Vec<&Measure> {
        self.decision().measures.keys().collect()
    }
}

fn pending() -> Outcome {
    Outcome::Pending("1/3 good".into())
}

fn good() -> Outcome {
    Outcome::Success("result [0.01]".into())
}

fn bad() -> Outcome {
    Outcome::Failure("result [0.9]".into())
}

fn unclear() -> Outcome {
    Outcome::Inconclusive("the query has no data".into())
}

#[test]
fn outcomes_open_hold_or_ask() {
    let confirmed = |fleet: &mut Simulator| _ = fleet.approve("prod");
    let nobody = |_: &mut Simulator| {};
    type Person = fn(&mut Simulator);
    let cases: [(Outcome, Person, bool, &str, bool); 7] = [
        (pending(), nobody, false, "wave test is done, analysis errors is under way: 1/3 good", false),
        (good(), nobody, true, "", false),
        (bad(), nobody, false, "wave test is done, analysis errors has failed: result [0.9]", false),
        (
            unclear(),
            nobody,
            false,
            "wave test is done, analysis errors is inconclusive: the query has no data",
            true,
        ),
        // A person opens what is inconclusive, and nothing else.
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
        assert_eq!(fleet.asks(), [&fleet.measure(NAME, false)]);
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
        let is_failure = fleet.hold("c2").is_some_and(Hold::is_failure);
        assert_eq!(is_failure, matches!(outcome, Outcome::Failure(_)));
        // The way back is open whatever was measured.
        fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
    }
}

#[test]
fn what_is_inconclusive_is_measured_on() {
    for (later, runs) in [(good(), "c1=v2 c2=v2 c3=v2"), (bad(), "c1=v2 c2=v1 c3=v1")] {
        let mut fleet = installed();
        fleet.push(&[("*", "v2")]).settle();
        fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
        assert_eq!(fleet.asks(), [&fleet.measure(NAME, false)]);
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
    fleet.waves[1].limits.max_concurrency = Some(Share::Count(1));
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").measured(NAME, good()).has("c1=v2 c2=v2 c3=v1");
    fleet.kill();
    fleet.bad.clear();
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn failure_takes_units_back_where_the_app_says_so() {
    let mut fleet = installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
    fleet.measured(NAME, bad()).has("c1=v1 c2=v1 c3=v1").waits("c2", "version ");
    let digest = fleet.digest();
    assert!(matches!(fleet.hold("c1"), Some(Hold::Reverted { .. })), "{:?}", fleet.hold("c1"));
    assert!(fleet.asks().is_empty(), "nobody waits for it");
    // Nor does it begin in another process; a person starts it again, and it is measured again.
    fleet.kill();
    fleet.has("c1=v1 c2=v1 c3=v1");
    fleet.approve_digest(digest, Allows::Retry).has("c1=v2 c2=v1 c3=v1");
    assert_eq!(fleet.asks(), [&fleet.measure(NAME, true)]);
    let again = fleet.measure(NAME, true);
    fleet.measured.insert(again, good());
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn failure_that_stops_is_measured_again_by_a_retry() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet
        .measured(NAME, bad())
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c3", "wave test is done, analysis errors has failed");
    let digest = fleet.digest();
    fleet.approve_digest(digest, Allows::Retry).has("c1=v2 c2=v1 c3=v1");
    fleet
        .waits("c3", "wave test is done, analysis errors is under way: this process has not measured it yet");
    let again = fleet.measure(NAME, true);
    fleet.measured.insert(again, good());
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn measuring_begins_after_the_soak_and_before_the_confirmation() {
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
    assert_eq!(fleet.asks(), [&fleet.measure(NAME, false)], "it is kept while a person is awaited");
    fleet.approve("prod").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn wave_that_is_not_done_is_not_measured() {
    let mut fleet = installed();
    fleet
        .slow("v2")
        .push(&[("*", "v2")])
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "waits for wave test, 0/1 done");
    assert!(fleet.asks().is_empty());
}

/// The worst is told: what has failed, then what is under way, then what a person may decide.
#[test]
fn several_gates_all_have_to_pass() {
    let mut fleet = installed();
    fleet.waves[0].limits.statuses = vec![CONTEXT.to_owned()];
    fleet.push(&[("*", "v2")]).settle();
    assert_eq!(fleet.asks().len(), 2);
    let standing = |fleet: &Simulator| fleet.hold("c2").and_then(Hold::standing);
    for (analysis, status, expected) in [
        (good(), pending(), Some(Standing::Pending)),
        (unclear(), pending(), Some(Standing::Pending)),
        (unclear(), good(), Some(Standing::Inconclusive)),
        (good(), unclear(), Some(Standing::Inconclusive)),
        (bad(), unclear(), Some(Standing::Failed)),
    ] {
        fleet.measured(NAME, analysis).measured(CONTEXT, status).has("c1=v2 c2=v1 c3=v1");
        assert_eq!(standing(&fleet), expected);
    }
    fleet.measured(NAME, good()).measured(CONTEXT, unclear()).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, commit status ci/smoke: the query has no data");
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
    assert_eq!(fleet.asks(), [&fleet.measure(NAME, false)]);
    // What a person merges before that waits in the rollout.
    fleet.measured(NAME, pending()).pin(&["c2", "c3"], "v2").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, analysis errors is under way: 1/3 good");
    fleet.measured(NAME, unclear()).has("c1=v2 c2=v1 c3=v1");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    assert_eq!(asked.digest, fleet.facts_at(fleet.head()).waves[1], "of that ring alone");
    fleet.measured(NAME, good()).has("c1=v2 c2=v2 c3=v2");
}
