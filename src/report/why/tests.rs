use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::fleet::{Fleet, assemble};
use crate::manifest;
use crate::model::{
    AppId, ApprovalShortfall, ClusterName, Diagnostic, DiagnosticScope, Digest, Location, Revision, Snapshot,
    UnmetApprovalRule,
};
use crate::plan::PlanAction;
use crate::report::{
    ClusterReport, DeletionReport, Overview, RolloutReport, TargetPhase, TargetReport, UnitReport,
};
use crate::rollout::{self, RolloutHold, UnitId};

const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec:\n  rings:\n    - {name: prod, clusters: {}}\n";
const P1: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: p1}\nspec: {connection: {sandbox: {}}}\n";
const WEB: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: web, namespace: shop}\nspec:\n  workloadType: Deployment\n  developLanguage: go\n  runType: worker\n  image: registry.example.com/web:v1\n";
const FREEZE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {name: freeze}\nspec: {action: deny, from: 2020-01-01T00:00, to: 2099-01-01T00:00, timeZone: UTC}\n";

const RATE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Analysis\nmetadata: {name: rate}\nspec: {http: {url: 'https://example.com/'}}\n";
const TWO: &str = "apiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {name: two}\nspec: {actions: [rollout], count: 2}\n";

fn fleet_of(files: &[(&str, &str)]) -> Fleet {
    let snapshot = Snapshot::of_texts(files.iter().copied());
    assemble(manifest::read(&snapshot), &snapshot)
}

fn fleet() -> Fleet {
    let of_app = WEB.to_owned() + "  updateStrategy: {after: [api]}\n";
    let api = WEB.replace("name: web", "name: api");
    let files = [
        ("rings.yaml", RINGS),
        ("clusters/p1.yaml", P1),
        ("apps/web/app.yaml", &*of_app),
        ("apps/web/pins/prod.yaml", "version: v1\n"),
        ("apps/api/app.yaml", &*api),
        ("policies/freeze.yaml", FREEZE),
        ("policies/rate.yaml", RATE),
        ("policies/two.yaml", TWO),
    ];
    let fleet = fleet_of(&files);
    assert!(fleet.is_valid(), "{:#?}", fleet.diagnostics);
    fleet
}

fn web() -> AppId {
    AppId::new("shop", "web")
}

fn target(phase: TargetPhase, detail: &str) -> TargetReport {
    TargetReport { detail: detail.to_owned(), ..TargetReport::of_test(web(), "p1", phase) }
}

fn overview(target: TargetReport) -> Overview {
    Overview {
        clusters: vec![ClusterReport::of_test("p1", Some("prod"))],
        targets: vec![target],
        ..Overview::default()
    }
}

fn asked(fleet: &Fleet, overview: &Overview, on: Option<&str>) -> AppExplanation {
    let look = WhyContext { overview, fleet, verdicts: &[], now: Timestamp::UNIX_EPOCH };
    explain_app(&look, &web(), on.map(ClusterName::from).as_ref())
}

/// The first link that is not well: `link State: text, who → help`.
fn broken_of(found: &AppExplanation) -> String {
    let [chain] = &found.chains[..] else { panic!("{found:#?}") };
    assert_eq!(chain.findings.iter().map(|it| it.link).collect::<Vec<_>>(), ChainLink::ALL);
    let first = chain.first_broken();
    assert_eq!(chain.broken, first.map(|it| it.link));
    let Some(first) = first else { return "all is well".to_owned() };
    let mut after = chain.findings.iter().skip_while(|it| it.link != first.link).skip(1);
    assert!(after.all(|it| it.state == ChainLinkState::NotReached), "{chain:#?}");
    let place = first.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    let who = first.who.as_ref().map(|who| format!(", {who}")).unwrap_or_default();
    let help =
        if first.help.is_empty() { String::new() } else { format!(" → {}", first.help.join(" or ")) };
    format!("{} {:?}: {}{place}{who}{help}", first.link.as_str(), first.state, first.text)
}

fn broken(overview: &Overview) -> String {
    broken_of(&asked(&fleet(), overview, None))
}

#[test]
fn first_broken_link_follows_from_the_phase() {
    #[track_caller]
    fn check(phase: TargetPhase, detail: &str, expected: &str) {
        let found = broken(&overview(target(phase, detail)));
        let own = " at apps/web/app.yaml:3:18, who may write apps/web/";
        assert_eq!(found, expected.replace(" OWN", own));
    }
    check(TargetPhase::Running, "", "all is well");
    check(TargetPhase::Invalid, "no image", "render Broken: no image OWN");
    check(TargetPhase::Waiting, "waits for namespace shop", "apply Waits: waits for namespace shop");
    check(
        TargetPhase::Refused,
        "Deployment shop/web: denied",
        "apply Broken: Deployment shop/web: denied OWN",
    );
    check(
        TargetPhase::KeptOut,
        "",
        "apply Broken: a taint of the cluster excludes it at clusters/p1.yaml:3:18, who may write apps/web/ \
         or clusters/ → \
         add a toleration to the app, or remove the taint of the cluster",
    );
    check(
        TargetPhase::Unmanaged,
        "",
        "apply Broken: tutti does not change it on purpose OWN → remove `unmanaged: true`",
    );
    check(TargetPhase::Pending, "", "apply Waits: the next apply is due");
    check(TargetPhase::OutOfSync, "replicas differ", "apply Broken: replicas differ OWN");
    check(TargetPhase::Progressing, "0/2 available", "health Waits: 0/2 available");
    check(
        TargetPhase::Degraded,
        "CrashLoopBackOff",
        "health Broken: CrashLoopBackOff OWN → fix the app or git revert abc",
    );
}

#[test]
fn errors_come_before_their_consequences() {
    let app = || DiagnosticScope::App(web());
    let mut overview = overview(target(TargetPhase::Degraded, "CrashLoopBackOff"));
    overview.diagnostics = vec![
        Diagnostic::error("E3001", "no layer", app()).help("write one"),
        Diagnostic::warning("E2131", "fits nothing", app()),
        Diagnostic::error("E1201", "unknown field", DiagnosticScope::File("apps/other.yaml".to_owned())),
    ];
    assert_eq!(broken(&overview), "render Broken: no layer [E3001] → write one");
    overview.diagnostics.push(Diagnostic::error("E1204", "wrong type", app()));
    assert_eq!(broken(&overview), "source Broken: wrong type [E1204]");
    overview.source_error = Some("connection refused".to_owned());
    assert_eq!(
        broken(&overview),
        "source Broken: the repository cannot be read: connection refused → tutti doctor"
    );
}

#[test]
fn mistake_of_several_apps_is_found() {
    let place = Location::new("templates/base/a.yaml.j2", 4, 2);
    let other = DiagnosticScope::Target(AppId::new("shop", "api"), "p1".into());
    let error = Diagnostic::error("E3002", "nothing is undefined", other).at(place).help("valid: app");
    let mut overview = overview(target(TargetPhase::Invalid, &error.to_string()));
    overview.diagnostics = vec![Diagnostic::error("E3002", "another", DiagnosticScope::Instance), error];
    overview.diagnostics.remove(0);
    assert_eq!(
        broken(&overview),
        "render Broken: nothing is undefined [E3002] at templates/base/a.yaml.j2:4:2, who may write templates/ → valid: app"
    );
}

fn held(hold: &RolloutHold) -> Overview {
    let mut overview = overview(target(TargetPhase::Waiting, "waits"));
    let unit = UnitReport { hold: Some(hold.clone()), ..UnitReport::of_test(UnitId::new("p1", ""), "prod") };
    let rollout = RolloutReport::of_test(web(), Vec::new(), vec![unit]);
    let commit = Some(Revision::from("0123456789"));
    overview.rollouts = vec![RolloutReport { confirmation: hold.confirmation(), commit, ..rollout }];
    overview
}

/// One hold of each kind.
#[test]
fn hold_has_its_link_place_and_owner() {
    #[track_caller]
    fn check(hold: &RolloutHold, expected: &str) {
        let told = hold.to_string();
        assert_eq!(broken(&held(hold)).replace(&told, "HOLD"), expected);
    }
    let digest = Digest::of(b"v2");
    let because = || Arc::<str>::from("no image");
    let wave = || "prod".to_owned();
    let unit = || UnitId::new("t1", "");
    let own = "at apps/web/app.yaml:3:18, who may write apps/web/";
    let approval = "who may write approvals/ or apps/web/ → tutti approve rollout shop/web --through prod";
    check(&RolloutHold::Paused, &format!("rollout Broken: HOLD {own} → remove `paused: true`"));
    let away = RolloutHold::LeftOut { cluster: "p1".into(), because: because() };
    check(&away, "apply Broken: HOLD → tutti doctor p1");
    check(&RolloutHold::Unread, "rollout Waits: HOLD");
    check(&RolloutHold::NotRendered { because: because() }, &format!("render Broken: HOLD {own}"));
    check(&RolloutHold::ClusterUnread { cluster: unit() }, "rollout Waits: HOLD → tutti doctor t1");
    let behind = RolloutHold::Wave { wave: wave(), done: 0, of: 1, unit: unit(), because: because() };
    check(&behind, "rollout Waits: HOLD, who may write apps/web/ → tutti why shop/web --cluster t1");
    let rings = "at rings.yaml:1:1, who may write rings.yaml";
    check(
        &RolloutHold::WaveLeftOut { wave: wave(), because: because() },
        &format!("rollout Waits: HOLD {rings} → bring one of them back"),
    );
    check(
        &RolloutHold::Soak { wave: wave(), until: Timestamp::UNIX_EPOCH },
        &format!("rollout Waits: HOLD at the latest {rings} → wait, or shorten `soak`"),
    );
    check(
        &RolloutHold::Confirmation { after: wave(), through: wave(), digest },
        &format!("rollout Broken: HOLD at rings.yaml:1:1, {approval}"),
    );
    check(
        &RolloutHold::Concurrency { wave: wave(), limit: 1 },
        &format!("rollout Waits: HOLD {rings} → wait, or raise `maxConcurrency`"),
    );
    check(
        &RolloutHold::Stopped { unit: unit(), because: because() },
        "rollout Broken: HOLD, who may write apps/web/ → tutti why shop/web --cluster t1 or git revert 0123456",
    );
    let by = "rollout Broken: HOLD, who may write apps/web/ or approvals/ → git revert 0123456";
    check(&RolloutHold::Reverted { digest }, &format!("{by} or tutti approve rollout shop/web --retry"));
    check(&RolloutHold::RevertFailed { because: because() }, by);
    check(
        &RolloutHold::After { app: AppId::new("shop", "api"), because: because() },
        "rollout Waits: HOLD at apps/web/app.yaml:9:28, who may write apps/web/ → tutti why shop/api",
    );
    check(
        &RolloutHold::Pin { ring: "test".to_owned(), version: "v2".to_owned(), through: wave(), digest },
        &format!("rollout Broken: HOLD at apps/web/pins/prod.yaml:1:10, {approval}"),
    );
    let window = |until, names: &[&str]| RolloutHold::Window {
        window: "freeze".to_owned(),
        until,
        reason: None,
        may_override: names.iter().map(|name| (*name).to_owned()).collect(),
        digest,
    };
    let freeze = "HOLD at policies/freeze.yaml:3:18, who may write approvals/";
    let command = "tutti approve rollout shop/web --override freeze";
    check(
        &window(Some(Timestamp::UNIX_EPOCH), &["boss"]),
        &format!("rollout Waits: {freeze} (an override, by boss) or policies/ → wait or {command}"),
    );
    check(&window(None, &[]), &format!("rollout Broken: {freeze} or policies/ → {command}"));
    let analysis = |standing| RolloutHold::Analysis {
        wave: wave(),
        analysis: "rate".to_owned(),
        standing,
        because: because(),
        through: wave(),
        digest,
    };
    let rate = "HOLD at policies/rate.yaml:1:1, who may write policies/ or approvals/ or apps/web/";
    check(&analysis(rollout::GateProgress::Pending), &format!("rollout Waits: {rate}"));
    check(
        &analysis(rollout::GateProgress::Inconclusive),
        &format!("rollout Broken: {rate} → tutti approve rollout shop/web --through prod"),
    );
    check(
        &RolloutHold::Status {
            wave: wave(),
            context: "ci/e2e".to_owned(),
            standing: rollout::GateProgress::Inconclusive,
            because: because(),
            through: wave(),
            digest,
        },
        &format!("rollout Broken: HOLD at rings.yaml:1:1, {approval}"),
    );
    let asks = UnmetApprovalRule {
        rule: "two".to_owned(),
        count: Some(2),
        approvers: vec!["managers".to_owned()],
        reason: None,
        lack: ApprovalShortfall::None,
    };
    let approval = |lacks: &[ApprovalShortfall]| {
        let asks =
            lacks.iter().map(|lack| UnmetApprovalRule { lack: lack.clone(), ..asks.clone() }).collect();
        RolloutHold::Approval { asks, through: wave(), digest }
    };
    let place = "HOLD at policies/two.yaml:3:18, who may write approvals/ (approved by managers";
    let command = "→ tutti approve rollout shop/web --through prod";
    check(&approval(&[ApprovalShortfall::None]), &format!("rollout Broken: {place}) {command}"));
    check(
        &approval(&[ApprovalShortfall::None, ApprovalShortfall::BrokenRule]),
        &format!("rollout Broken: {place}) {command}"),
    );
    // An Approval exists, so no other one is proposed.
    check(&approval(&[ApprovalShortfall::NotReadYet(None)]), &format!("rollout Waits: {place})"));
    check(
        &approval(&[ApprovalShortfall::NotReadYet(Some("503".into()))]),
        &format!("rollout Waits: {place})"),
    );
    let frozen = |waits| RolloutHold::Frozen { because: because(), waits };
    check(
        &frozen(None),
        "rollout Broken: HOLD, who may write apps/web/ → commit the app again, or fetch its history",
    );
    check(&frozen(Some(Box::new(RolloutHold::Unread))), "rollout Waits: HOLD");
}

#[test]
fn unreachable_cluster_is_named() {
    let mut overview = overview(target(TargetPhase::Unreachable, ""));
    overview.clusters[0].state = "Offline";
    overview.clusters[0].detail = "connection refused".to_owned();
    assert_eq!(
        broken(&overview),
        "apply Broken: the cluster does not answer: connection refused at clusters/p1.yaml:3:18, the \
         operator of the cluster or of tutti, or who may write clusters/ → tutti doctor p1"
    );
}

fn delete(app: &str, approval: Option<&str>) -> DeletionReport {
    DeletionReport {
        cluster: "p1".into(),
        app: AppId::new("shop", app),
        object: "ConfigMap shop/old".to_owned(),
        revision: Revision::from("abc"),
        action: PlanAction::Wait,
        waits: true,
        approval: approval.map(ToOwned::to_owned),
        cause: None,
        reason: "over the cap".to_owned(),
    }
}

#[test]
fn deleted_app_waits_for_its_deletes() {
    let left = || Overview { deletions: vec![delete("web", Some("123"))], ..Overview::default() };
    let gone = fleet_of(&[("clusters/p1.yaml", P1)]);
    let expected = "apply Broken: the delete of ConfigMap shop/old waits: over the cap, who may write approvals/ → tutti approve 123";
    assert_eq!(broken_of(&asked(&gone, &left(), None)), expected);
    assert_eq!(broken_of(&asked(&gone, &left(), Some("p1"))), expected);
    assert!(asked(&gone, &left(), Some("p2")).chains.is_empty());
    // Deletes of another app are ignored.
    let other =
        Overview { deletions: vec![delete("api", None)], ..overview(target(TargetPhase::Running, "")) };
    assert_eq!(broken(&other), "all is well");
    assert!(asked(&fleet(), &other, None).rules.iter().all(|rule| rule.kind != RuleKind::Delete));
}

#[test]
fn app_without_placement_has_a_reason() {
    let nowhere = Overview::default();
    let taint = "  taints: [{key: gpu, effect: NoExecute}]\n";
    let cluster = |rest: &str| {
        P1.replace(
            "spec: {connection: {sandbox: {}}}",
            &format!("spec:\n  connection: {{sandbox: {{}}}}\n{rest}"),
        )
    };
    for (cluster, on, expected) in [
        (
            P1.to_owned(),
            "p1",
            "source Broken: its placement does not select the cluster at apps/web/app.yaml:9:14, who may write apps/web/",
        ),
        (
            cluster(taint),
            "p1",
            "source Broken: the cluster has the taint gpu:NoExecute, which the app does not tolerate at clusters/p1.yaml:3:18, \
             who may write apps/web/ or clusters/ → add a toleration to the app",
        ),
        (
            cluster("  state: Removed\n"),
            "p1",
            "source Broken: the cluster is being removed at clusters/p1.yaml:3:18, who may write clusters/",
        ),
    ] {
        let app = WEB.to_owned() + "  placement: {clusters: {matchLabels: {zone: a}}}\n";
        let fleet = fleet_of(&[("clusters/p1.yaml", &cluster), ("apps/web/app.yaml", &app)]);
        assert_eq!(broken_of(&asked(&fleet, &nowhere, Some(on))), expected, "{:#?}", fleet.diagnostics);
    }
}

#[test]
fn reasons_against_a_write_are_named() {
    let planned = overview(target(TargetPhase::OutOfSync, "2 writes planned"));
    let instance =
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {mode: observe}\n";
    let maintained = P1.to_owned() + "  # below\n";
    let maintained = maintained.replace("spec: {", "spec: {state: Maintaining, ");
    for (instance, cluster, expected) in [
        (
            instance,
            P1,
            "apply Broken: `mode: observe`: 2 writes planned, nothing is written at tutti.yaml:1:1, who may write tutti.yaml",
        ),
        (
            "",
            &*maintained,
            "apply Broken: the cluster is in maintenance: 2 writes planned at clusters/p1.yaml:3:18, who may write clusters/",
        ),
        ("", P1, "apply Broken: 2 writes planned at apps/web/app.yaml:3:18, who may write apps/web/"),
    ] {
        let files = [("tutti.yaml", instance), ("clusters/p1.yaml", cluster), ("apps/web/app.yaml", WEB)];
        let fleet = fleet_of(&files);
        assert_eq!(broken_of(&asked(&fleet, &planned, None)), expected, "{:#?}", fleet.diagnostics);
    }
}

#[test]
fn rules_windows_and_gates_are_listed() {
    let told = |overview: &Overview| -> Vec<String> {
        let rules = asked(&fleet(), overview, None).rules;
        let line =
            |it: &RuleReport| format!("{:?} {} {}: {}", it.standing, it.kind.as_str(), it.name, it.text);
        rules.iter().map(line).collect()
    };
    let window = "window freeze: open, shuts at 2020-01-01 00:00 UTC";
    let pin = "pin prod: pinned to v1; a person merges the next promotion";
    let mut well = overview(target(TargetPhase::Running, ""));
    well.rollouts = vec![RolloutReport::of_test(web(), Vec::new(), Vec::new())];
    assert_eq!(
        told(&well),
        [
            "WouldHold approval two: requires 2 approvals for rollout".to_owned(),
            "WouldHold after shop/api: must be done before it".to_owned(),
            format!("WouldHold {pin}"),
            format!("Passes {window}"),
        ]
    );
    let because = Arc::<str>::from("0/1 available");
    let waits = held(&RolloutHold::After { app: AppId::new("shop", "api"), because });
    assert_eq!(told(&waits)[0], "Holds after shop/api: waits for app shop/api: 0/1 available");
    let digest = Digest::of(b"v2");
    let (window, may_override) = ("freeze".to_owned(), Vec::new());
    let shut = held(&RolloutHold::Window { window, until: None, reason: None, may_override, digest });
    assert_eq!(told(&shut)[0], "Holds window freeze: open, shuts at 2020-01-01 00:00 UTC");
    let mut left = well;
    left.deletions = vec![delete("web", Some("123")), delete("web", Some("123")), delete("web", None)];
    left.clusters[0].state = "Offline";
    let told = told(&left);
    assert_eq!(
        told[..3],
        [
            "Holds cluster p1: does not answer",
            "Holds delete 1 object: ConfigMap shop/old on p1: over the cap",
            "Holds delete 2 objects: ConfigMap shop/old on p1 and 1 more: over the cap",
        ]
    );
    assert!(asked(&fleet(), &left, Some("p2")).rules.is_empty());
}

#[test]
fn equal_chains_of_clusters_are_merged() {
    let mut many = overview(target(TargetPhase::Running, ""));
    let on = |number: usize, phase, detail: &str| TargetReport {
        detail: detail.to_owned(),
        ..TargetReport::of_test(web(), &format!("c{number:04}"), phase)
    };
    many.targets = (0..2000).map(|number| on(number, TargetPhase::Running, "")).collect();
    many.targets[1000] = on(1000, TargetPhase::Progressing, "0/1 available");
    many.targets[1500] = on(1500, TargetPhase::Degraded, "CrashLoopBackOff");
    let found = asked(&fleet(), &many, None);
    let told: Vec<_> = found.chains.iter().map(|it| (it.clusters.len(), it.broken, it.state())).collect();
    let health = Some(ChainLink::Health);
    // The worst first.
    assert_eq!(
        told,
        [
            (1, health, ChainLinkState::Broken),
            (1, health, ChainLinkState::Waits),
            (1998, None, ChainLinkState::Well)
        ]
    );
    assert!(!found.is_well());
}
