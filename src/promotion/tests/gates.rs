use super::{Case, at, id, pin};
use crate::manifest;
use crate::model::{
    ApprovalRules, ApprovalShortfall, ApproverRoles, Digest, PromotionMode, Revision, Snapshot,
};
use crate::promotion::{
    AppRolloutState, DescriptionBlock, MergeInput, PromotionGate, PromotionGateState, ProposedChange,
    PullRequestAction, PullRequestApp, PullRequestHeadFacts, decide, gates, may_merge, proposed_change,
    summary_gate,
};
use crate::rollout::{self, Measurement, MeasurementOutcome, MeasurementResult};

const RINGS: &str = "test: soak: 1h, confirm: true; prod: promotion: {mode: auto, statuses: [drone/e2e]}";

fn change(apps: &[&str], to: &str) -> ProposedChange {
    ProposedChange::Promote {
        group: id(apps[0]),
        ring: "prod".to_owned(),
        before: "test".to_owned(),
        pins: apps.iter().map(|app| pin(app, "prod", "v1", to)).collect(),
        is_requested: false,
    }
}

fn head(status: Option<PromotionGateState>, approvals: usize) -> PullRequestHeadFacts {
    let statuses = status.map(|state| ("drone/e2e".to_owned(), state)).into_iter().collect();
    let approved_by = ["ann", "bob"].into_iter().take(approvals).map(str::to_owned).collect();
    PullRequestHeadFacts { statuses, approved_by }
}

#[track_caller]
fn check(found: &[PromotionGate], expected: &[&str]) {
    let mark = |state| match state {
        PromotionGateState::Success => '+',
        PromotionGateState::Pending => '.',
        PromotionGateState::Failure => '-',
    };
    let found: Vec<String> =
        found.iter().map(|gate| format!("{}{}: {}", mark(gate.state), gate.name, gate.text)).collect();
    assert_eq!(found, expected);
}

fn pay() -> Case {
    let pins: &[(&str, &str)] = &[("prod", "v1")];
    Case::new(RINGS, &[("pay", "", pins), ("web", "", pins)])
        .runs("pay", "test", "v2")
        .runs("web", "test", "v2")
}

#[test]
fn gates_say_what_is_missing() {
    let case = pay();
    let passed = [
        "+ring: 2/2 done on test with pay v2",
        "+soak: pay on test is over",
        "+confirm: 1/1 approving reviews, required after test",
        "+drone/e2e: 1/1 drone/e2e",
    ];
    let of = |case: &Case, head: PullRequestHeadFacts| gates(&case.input(), &change(&["pay"], "v2"), &head);
    check(&of(&case, head(Some(PromotionGateState::Success), 2)), &passed);
    let open = of(&case, head(None, 0));
    check(
        &open[2..],
        &[
            ".confirm: 0/1 approving reviews, required after test",
            ".drone/e2e: 0/1 no status drone/e2e on this commit",
        ],
    );
    check(
        &of(&case, head(Some(PromotionGateState::Failure), 1))[3..],
        &["-drone/e2e: 0/1 drone/e2e has failed"],
    );
    let mut case = case;
    case.state("pay", "test").done_since = Some(at(999_000));
    check(&of(&case, head(None, 0))[1..2], &[".soak: pay on test until 1970-01-12 14:30:00 UTC"]);
    case.state("pay", "test").done = 1;
    case.state("pay", "test").wait_reason = "bj5: CrashLoopBackOff".to_owned();
    check(
        &of(&case, head(None, 0))[..2],
        &[".ring: pay: 1/2 done on test: bj5: CrashLoopBackOff", ".soak: pay begins when test is done"],
    );
    let newer = pay().runs("pay", "test", "v3");
    check(&of(&newer, head(None, 0))[..1], &[".ring: test runs pay v3, not v2"]);
}

#[test]
fn group_gate_is_its_worst() {
    let mut case = pay();
    let of = |case: &Case| gates(&case.input(), &change(&["pay", "web"], "v2"), &head(None, 0));
    check(&of(&case)[..2], &["+ring: 2/2 apps", "+soak: 2/2 apps"]);
    case.state("web", "test").done = 0;
    check(&of(&case)[..1], &[".ring: 1/2 apps; web: 0/2 done on test"]);
}

/// The ring before is measured before its version is promoted.
#[test]
fn analysis_of_previous_ring_is_a_gate() {
    let rings = RINGS.replace("soak: 1h, confirm: true", "analysis: [errors], statuses: [ci/smoke]");
    let pins: &[(&str, &str)] = &[("prod", "v1")];
    let measured = |gate: rollout::MeasurementGate, outcome: MeasurementOutcome| MeasurementResult {
        measure: Measurement { wave: "test".to_owned(), gate, digest: Digest::of(b"v2"), retry: None },
        outcome,
    };
    let of = |analysis: Option<MeasurementOutcome>, status: MeasurementOutcome| {
        let mut case = Case::new(&rings, &[("pay", "", pins)]).runs("pay", "test", "v2");
        let analysis =
            analysis.map(|it| measured(rollout::MeasurementGate::Analysis("errors".to_owned()), it));
        let status = measured(rollout::MeasurementGate::Status("ci/smoke".to_owned()), status);
        case.state("pay", "test").measures = Some(analysis.into_iter().chain([status]).collect());
        let found = gates(&case.input(), &change(&["pay"], "v2"), &head(None, 0));
        let is_proposed =
            decide(&case.input()).pull_requests.iter().any(|it| it.action == PullRequestAction::Open);
        (found[1].clone(), is_proposed)
    };
    let good = || MeasurementOutcome::Success("result [0]".into());
    let check = |(gate, proposes): (PromotionGate, bool), expected: &str, is_proposed: bool| {
        check(&[gate], &[expected]);
        assert_eq!(proposes, is_proposed, "{expected}");
    };
    check(of(Some(good()), good()), "+analysis: pay on test, analysis errors: result [0]", true);
    let unclear = MeasurementOutcome::Inconclusive("no data".into());
    check(of(Some(unclear.clone()), good()), ".analysis: pay on test, analysis errors: no data", true);
    let failed = of(Some(MeasurementOutcome::Failure("result [1]".into())), unclear);
    check(failed, "-analysis: pay on test, analysis errors: result [1]", false);
    let none = ".analysis: pay on test, analysis errors: not measured yet";
    check(of(None, good()), none, false);
    let pending = of(Some(good()), MeasurementOutcome::Pending("no such commit status on abc yet".into()));
    check(pending, ".analysis: pay on test, commit status ci/smoke: no such commit status on abc yet", false);
    // An app that gets its version in all rings at once has no such gate.
    let case = Case::new(&rings, &[("pay", "", pins)]).runs("pay", "test", "v2");
    let found = gates(&case.input(), &change(&["pay"], "v2"), &head(None, 0));
    assert!(found.iter().all(|gate| gate.name != "analysis"), "{found:?}");
}

/// Ring prod is frozen until 1,500,000 s after the epoch; the tests are at 1,000,000.
#[test]
fn window_of_the_ring_is_a_gate() {
    let freeze = |rings: &str, from: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {{name: freeze}}\nspec: {{action: deny, select: {{rings: [{rings}]}}, from: '{from}', to: 1970-01-18T08:40, timeZone: UTC, override: [managers]}}\n"
        )
    };
    let of = |window: &str| {
        let mut case = pay();
        let snapshot = Snapshot::of_texts([("policies/freeze.yaml", window)]);
        case.fleet.windows = manifest::read(&snapshot).windows;
        let found =
            gates(&case.input(), &change(&["pay"], "v2"), &head(Some(PromotionGateState::Success), 1));
        let of_window: Vec<PromotionGate> =
            found.iter().filter(|gate| gate.name == "window").cloned().collect();
        (of_window, summary_gate(&found).state)
    };
    let (shut, all) = of(&freeze("prod", "1970-01-01T00:00"));
    check(&shut, &[".window: pay: window freeze is shut until 1970-01-18 08:40 UTC, managers may override"]);
    assert_eq!(all, PromotionGateState::Pending);
    let (open, all) = of(&freeze("prod", "1970-01-18T00:00"));
    check(&open, &["+window: open for pay on prod"]);
    assert_eq!(all, PromotionGateState::Success);
    // A window of another ring is no gate.
    assert_eq!(of(&freeze("test", "1970-01-01T00:00")).0, []);
    // An unreadable window is shut.
    let (broken, all) = of(&freeze("prod", "yesterday"));
    check(&broken, &[".window: pay: window freeze is shut (its manifest has an error)"]);
    assert_eq!(all, PromotionGateState::Pending);
}

const MANAGERS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Approvers\nmetadata: {name: managers}\nspec: {users: [Ann, bob]}\n";

fn rule(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    )
}

/// Its open pull request asks to open `prod`.
fn ruled(rules: &str) -> Case {
    let mut case = pay();
    let text = format!("{MANAGERS}{rules}");
    let read = manifest::read(&Snapshot::of_texts([("policies/rules.yaml", text.as_str())]));
    let roles = ApproverRoles::of(&read.approvers, read.may_lack_approvers);
    case.fleet.approval_rules = ApprovalRules { rules: read.approval_rules, roles }.into();
    case
}

fn asks_for_prod(case: &Case, by: usize) -> Vec<PromotionGate> {
    let block = DescriptionBlock {
        kind: "approval".to_owned(),
        ring: Some("prod".to_owned()),
        commit: Some("0123456789".to_owned()),
        items: vec![PullRequestApp { app: id("pay"), from: None, to: Digest::of(b"v2").to_string() }],
        ..DescriptionBlock::default()
    };
    let change = proposed_change(&case.input(), &block).expect("a change");
    assert_eq!(change.block(), block);
    gates(&case.input(), &change, &head(None, by))
}

#[test]
fn approval_rules_are_always_a_gate() {
    let two = rule("two", "actions: [rollout], select: {rings: [prod]}, count: 2, approvers: [managers]");
    let any = rule("any", "actions: [rollout]");
    let mut case = ruled(&two);
    let asks = |case: &Case| AppRolloutState {
        app: id("pay"),
        commit: Some(Revision::from("0123456789")),
        is_settled: true,
        pending_confirmation: Some(("prod".to_owned(), Digest::of(b"v2"))),
        missing_approvals: case
            .fleet
            .approval_rules
            .rules
            .iter()
            .map(|rule| rule.unmet(ApprovalShortfall::None))
            .collect(),
        opened_clusters: std::iter::once("prod".into()).collect(),
        is_reading: false,
        is_refused: false,
    };
    case.rollouts = vec![asks(&case)];
    check(&asks_for_prod(&case, 0), &[".approvals: 0 of 2 approvals of managers, rule two"]);
    check(&asks_for_prod(&case, 1), &[".approvals: 1 of 2 approvals of managers, rule two"]);
    check(&asks_for_prod(&case, 2), &["+approvals: 2 of 2 approvals of managers, rule two"]);
    // While the hold is unknown, no number of approvals is enough.
    let unread = ".approvals: 1/2 rules; the approvals of default/pay are not read yet";
    (case.rollouts[0].pending_confirmation, case.rollouts[0].is_reading) = (None, true);
    check(&asks_for_prod(&case, 2), &[unread]);
    case.rollouts.clear();
    check(&asks_for_prod(&case, 2), &[unread]);
    // Each of several rules counts.
    let mut case = ruled(&format!("{two}{any}"));
    case.rollouts = vec![asks(&case)];
    check(&asks_for_prod(&case, 0), &[".approvals: 0/2 rules; 0 of 2 approvals of managers, rule two"]);
    check(&asks_for_prod(&case, 1), &[".approvals: 1/2 rules; 1 of 2 approvals of managers, rule two"]);
    check(&asks_for_prod(&case, 2), &["+approvals: 2/2 rules"]);
    let mut case = ruled(&rule("broken", "actions: [rolout]"));
    case.rollouts = vec![asks(&case)];
    check(
        &asks_for_prod(&case, 2),
        &[".approvals: rule broken: its manifest has an error, no approval is enough"],
    );
    // A rule may select an unreadable app; without rules there is no gate.
    let mut case = ruled(&two);
    case.fleet.apps.remove(&id("pay"));
    check(&asks_for_prod(&case, 2), &[".approvals: the approvals of default/pay are not read yet"]);
    check(&asks_for_prod(&ruled(""), 0), &[]);
    let other = ruled(&rule("other", "actions: [rollout], select: {rings: [gone]}"));
    check(&asks_for_prod(&other, 0), &[]);
}

#[test]
fn texts_are_short_for_any_cluster_message() {
    let mut case = pay();
    case.state("pay", "test").done = 0;
    case.state("pay", "test").wait_reason = "发\n\u{1b}[31m".repeat(500);
    for gate in gates(&case.input(), &change(&["pay"], "v2"), &head(None, 0)) {
        assert!(gate.text.chars().count() <= 140 && !gate.text.contains(['\n', '\u{1b}']), "{gate:?}");
    }
}

#[test]
fn summary_status_covers_all_gates() {
    check(&[summary_gate(&[])], &["+gate: no promotion"]);
    let gate = |name: &str, state| PromotionGate { name: name.to_owned(), state, text: "1/2".to_owned() };
    check(&[summary_gate(&[gate("ring", PromotionGateState::Success)])], &["+gate: 1/1 gates"]);
    let two = [gate("ring", PromotionGateState::Success), gate("soak", PromotionGateState::Pending)];
    check(&[summary_gate(&two)], &[".gate: 1/2 gates; soak: 1/2"]);
    let failed = [gate("ring", PromotionGateState::Pending), gate("ci", PromotionGateState::Failure)];
    check(&[summary_gate(&failed)], &["-gate: 0/2 gates; ci: 1/2"]);
}

#[test]
fn merge_is_bound_to_judged_head() {
    let promotion = change(&["pay"], "v2");
    let passed =
        [PromotionGate { name: "ring".to_owned(), state: PromotionGateState::Success, text: String::new() }];
    let pending = [PromotionGate {
        name: "soak".to_owned(),
        state: PromotionGateState::Pending,
        text: "until 3".to_owned(),
    }];
    let (one, other) = (Revision::from("1111111111"), Revision::from("2222222222"));
    let fine = MergeInput {
        change: &promotion,
        action: &PullRequestAction::Keep,
        mode: PromotionMode::Auto,
        gates: &passed,
        judged_head: &one,
        head: &one,
        has_changes_requested: false,
        has_foreign_commits: false,
        is_mergeable: Some(true),
    };
    assert_eq!(may_merge(&fine), Ok(()));
    let refused =
        |merge: MergeInput<'_>, expected: &str| assert_eq!(may_merge(&merge), Err(expected.to_owned()));
    refused(
        MergeInput { mode: PromotionMode::Propose, ..fine },
        "a person merges it: the ring does not have mode: auto",
    );
    refused(MergeInput { action: &PullRequestAction::Update, ..fine }, "its content is not the current one");
    refused(
        MergeInput { has_foreign_commits: true, ..fine },
        "its branch has a commit that tutti did not make",
    );
    refused(MergeInput { head: &other, ..fine }, "its head is 2222222 now, the gates are those of 1111111");
    refused(MergeInput { gates: &pending, ..fine }, "0/1 gates; soak: until 3");
    refused(MergeInput { gates: &[], ..fine }, "no promotion");
    refused(MergeInput { has_changes_requested: true, ..fine }, "a review requests changes");
    refused(
        MergeInput { is_mergeable: None, ..fine },
        "the forge does not report yet whether it can be merged",
    );
    refused(MergeInput { is_mergeable: Some(false), ..fine }, "it conflicts with its base");
    let revert = ProposedChange::Revert { commit: one.clone(), apps: Vec::new(), pins: Vec::new() };
    refused(MergeInput { change: &revert, ..fine }, "a person merges it: the merge is the confirmation");
}
