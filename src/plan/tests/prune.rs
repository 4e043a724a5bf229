use std::sync::Arc;

use std::collections::{BTreeMap, BTreeSet};

use super::{app, cluster, empty, parse, plan_with, rendered, with_live};
use crate::model::{
    AppId, Approval, ApprovedObject, ClusterName, ClusterState, DeleteCaps, Digest, InstanceMode, ObjectId,
    Observation, PruneMode, Revision, SyncWave,
};
use crate::plan::prune::ContainedObject;
use crate::plan::{
    AppReadiness, Plan, PlanAction, PruneAppFacts, PruneCandidate, PruneClusterFacts, PruneDecision,
    PruneInput, UnusedReason, candidates, decide_prunes, rendered_digest,
};

/// The fields that tests change; the defaults permit every delete.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) mode: InstanceMode,
    pub(super) fleet_valid: bool,
    pub(super) managed_total: u64,
    pub(super) already_deleted: u64,
    pub(super) over: BTreeSet<ApprovedObject>,
    pub(super) candidates: Vec<PruneCandidate>,
    pub(super) approvals: Vec<Approval>,
    pub(super) empty: BTreeSet<(AppId, ClusterName)>,
    pub(super) app: PruneAppFacts,
    pub(super) cluster: PruneClusterFacts,
}

impl Case {
    /// `count` ConfigMaps of app `pay` that are no longer rendered, of very many managed objects.
    pub(super) fn of(count: usize) -> Self {
        let candidates = (0..count).map(|n| candidate(&format!("v1/ConfigMap/shop/c{n:02}"))).collect();
        Self {
            mode: InstanceMode::Enforce,
            fleet_valid: true,
            managed_total: 10_000,
            already_deleted: 0,
            over: BTreeSet::new(),
            candidates,
            approvals: Vec::new(),
            empty: BTreeSet::new(),
            app: PruneAppFacts { paused: false, ..facts() },
            cluster: PruneClusterFacts { state: ClusterState::Ready, is_complete: true, is_offline: false },
        }
    }

    pub(super) fn with(mut self, text: &str) -> Self {
        self.candidates.push(candidate(text));
        self
    }

    pub(super) fn decide(&self) -> PruneDecision {
        decide_prunes(&PruneInput {
            missing_approval: &|_, _| None,
            mode: self.mode,
            fleet_valid: self.fleet_valid,
            caps: DeleteCaps::default(),
            managed_total: self.managed_total,
            already_deleted: self.already_deleted,
            over_cap_before: &self.over,
            candidates: &self.candidates,
            approvals: &self.approvals,
            empty_renders: &self.empty,
            denial: &|_| None,
            app: &|_| self.app.clone(),
            cluster: &|_| self.cluster,
        })
    }

    /// Deleted, waiting, orphaned.
    #[track_caller]
    fn check(&self, expected: [usize; 3]) -> PruneDecision {
        let decision = self.decide();
        let counts = [decision.deletes.len(), decision.waiting.len(), decision.orphans.len()];
        assert_eq!(counts, expected, "{:#?}", reasons(&decision));
        assert_eq!(counts.iter().sum::<usize>(), self.candidates.len());
        decision
    }

    #[track_caller]
    fn check_reason(&self, expected: &str) {
        let decision = self.decide();
        assert!(reasons(&decision).iter().all(|reason| reason == expected), "{:#?}", reasons(&decision));
    }
}

fn reasons(decision: &PruneDecision) -> Vec<String> {
    decision.all().map(|decided| decided.reason.to_string()).collect()
}

pub(super) fn places(standings: &[(&str, AppReadiness)]) -> BTreeMap<ClusterName, AppReadiness> {
    standings.iter().map(|(name, standing)| (cluster(name), *standing)).collect()
}

fn facts() -> PruneAppFacts {
    PruneAppFacts {
        rendered: Digest::of(b"one render"),
        is_removed: false,
        placements: places(&[("bj5", AppReadiness::Healthy), ("gz1", AppReadiness::Healthy)]),
        unhealthy_reasons: BTreeMap::new(),
        prune: PruneMode::WhenHealthy,
        paused: false,
        unmanaged: false,
        has_open_rollout: false,
    }
}

pub(super) fn candidate(text: &str) -> PruneCandidate {
    let (kind, object) = parse(text);
    PruneCandidate {
        app: app("pay"),
        cluster: cluster("bj5"),
        object,
        kind,
        uid: format!("uid-{text}"),
        resource_version: "7".into(),
        keep: false,
        wave: SyncWave::default(),
        is_ended_run: false,
        claims_go_along: false,
        contents: Vec::new(),
    }
}

#[test]
fn deletes_with_data_need_approval() {
    let set = PruneCandidate { claims_go_along: true, ..candidate("apps/v1/StatefulSet/shop/db") };
    let cases = [
        (candidate("v1/PersistentVolume//disk"), "every PersistentVolume waits for approval"),
        (candidate("v1/PersistentVolumeClaim/shop/data"), "every PersistentVolumeClaim waits for approval"),
        (set, "its volume claims would be deleted with it"),
    ];
    for (one, words) in cases {
        let decision = Case { candidates: vec![one], ..Case::of(0) }.check([0, 1, 0]);
        assert!(reasons(&decision)[0].starts_with(words), "{:?}", reasons(&decision));
        assert_eq!(decision.approvals_wanted[0].objects.len(), 1);
    }
    let kept = PruneCandidate { claims_go_along: false, ..candidate("apps/v1/StatefulSet/shop/db") };
    Case { candidates: vec![kept], ..Case::of(0) }.check([1, 0, 0]);
}

#[test]
fn candidates_are_managed_and_no_longer_rendered() {
    let mut observation = empty();
    for text in ["v1/ConfigMap/shop/gone", "v1/ConfigMap/shop/stays", "v1/ConfigMap/shop/going"] {
        observation = with_live(observation, "pay", text, "a");
    }
    observation = with_live(observation, "pay", "extensions/v1beta1/Ingress/shop/pay", "a");
    observation = with_live(observation, "pay", "extensions/v1beta1/Ingress/shop/old", "a");
    observation = with_live(observation, "pay", "v1/ConfigMap/shop/nobody", "a");
    let nobody = Arc::make_mut(
        observation.objects.get_mut(&parse("v1/ConfigMap/shop/nobody").1).expect("it is there"),
    );
    nobody.app = "not an app".into();
    let going =
        Arc::make_mut(observation.objects.get_mut(&parse("v1/ConfigMap/shop/going").1).expect("it is there"));
    going.deleting = true;
    let rendered = BTreeSet::from([
        parse("v1/ConfigMap/shop/stays").1,
        parse("networking.k8s.io/v1/Ingress/shop/pay").1,
    ]);
    let names = |observation: &Observation| -> Vec<String> {
        let all = observation.objects.keys();
        let found = candidates(&cluster("bj5"), observation, all, &rendered, &|_| None);
        found.iter().map(|candidate| candidate.object.to_string()).collect()
    };
    assert_eq!(names(&observation), ["ConfigMap shop/gone", "Ingress shop/old"]);
    observation.complete = false;
    assert!(names(&observation).is_empty(), "nothing is derived from a partial view");
}

/// A process that is over the cap requests an approval first, whatever else is waited for: `approve` computes the
/// same.
#[test]
fn deletes_waiting_for_health_may_be_approved() {
    let mut waits = Case::of(5);
    waits.app = PruneAppFacts { placements: places(&[("bj5", AppReadiness::Unhealthy)]), ..facts() };
    let decision = waits.check([0, 5, 0]);
    assert_eq!((decision.approvals_wanted.len(), decision.approvals_not_yet_needed.len()), (0, 1));
    assert_eq!(decision.approvals_not_yet_needed[0].objects.len(), 5);
    waits.approvals = decision.approvals_not_yet_needed;
    assert_eq!(waits.check([0, 5, 0]).approvals_not_yet_needed, [], "it was");
}

#[test]
fn deletes_over_the_cap_stay_recorded() {
    let over = |case: Case| case.decide().over_cap.len();
    assert_eq!([over(Case::of(10)), over(Case::of(11))], [0, 11]);
    // Deletes on an offline cluster count, and approved ones too: the approval may be revoked.
    let away = PruneClusterFacts { is_complete: false, is_offline: true, ..Case::of(0).cluster };
    assert_eq!(over(Case { cluster: away, ..Case::of(11) }), 11);
    let approvals = Case::of(11).decide().approvals_wanted;
    assert_eq!(over(Case { approvals: approvals.clone(), ..Case::of(11) }), 11);
    // Approved and completed deletes do not count.
    let mut others = Case { approvals, ..Case::of(0) };
    others.candidates = (20..23).map(|n| candidate(&format!("v1/ConfigMap/shop/c{n:02}"))).collect();
    others.check([0, 3, 0]);
    assert_eq!(over(others), 0);
}

#[test]
fn the_cap_holds_over_the_instance() {
    Case::of(10).check([10, 0, 0]);
    Case::of(11).check([0, 11, 0]);
    Case::of(12).check_reason(&over_cap(12, 10, &Case::of(12)));
    // 20 % of 40 is 8; of 44 as well.
    let of_managed = |count, managed_total| Case { managed_total, ..Case::of(count) };
    of_managed(8, 40).check([8, 0, 0]);
    of_managed(9, 40).check([0, 9, 0]);
    of_managed(9, 44).check([0, 9, 0]);
    of_managed(9, 45).check([9, 0, 0]);
    // Never below 3.
    of_managed(3, 4).check([3, 0, 0]);
    of_managed(4, 4).check([0, 4, 0]);
    of_managed(3, 0).check([3, 0, 0]);
    // Deletes of this revision keep counting.
    Case { already_deleted: 5, ..Case::of(5) }.check([5, 0, 0]);
    Case { already_deleted: 6, ..Case::of(5) }.check([0, 5, 0]);
    // Objects that were over the cap keep waiting, even if few are left.
    let mut left = Case::of(5);
    left.over = left.candidates.iter().take(3).map(PruneCandidate::approved_object).collect();
    let decision = left.check([2, 3, 0]);
    // A process without history requests the same.
    assert_eq!(decision.approvals_wanted[0].objects.len(), 5);
    let early =
        |case: &Case| Case { over: BTreeSet::new(), ..case.clone() }.decide().approvals_not_yet_needed;
    assert_eq!(decision.approvals_wanted, early(&left));
    assert!(
        decision.waiting[0].reason.to_string().starts_with("was over the cap before, waits for approval")
    );
    left.approvals = decision.approvals_wanted;
    left.check([5, 0, 0]);
    left.approvals.clear();
    left.app.placements = places(&[("bj5", AppReadiness::Unhealthy)]);
    assert_eq!(left.check([0, 5, 0]).approvals_wanted, early(&left));
    // Ended runs are deleted and do not count.
    let mut runs = Case::of(14);
    runs.candidates.iter_mut().take(4).for_each(|candidate| candidate.is_ended_run = true);
    runs.check([14, 0, 0]);
    runs.candidates[0].is_ended_run = false;
    runs.check([3, 11, 0]);
    // Apps and clusters are counted together.
    let mut spread = Case::of(11);
    for (index, candidate) in spread.candidates.iter_mut().enumerate() {
        candidate.cluster = cluster(["bj5", "gz1"][index % 2]);
        candidate.app = app(["pay", "web"][index % 2]);
    }
    let decision = spread.check([0, 11, 0]);
    assert_eq!(decision.approvals_wanted.len(), 2, "one for each app");
}

fn over_cap(pending: u32, cap: u32, case: &Case) -> String {
    let digest = case.decide().approvals_wanted[0].digest();
    format!("{pending} deletes are more than the cap of {cap}, waits for approval {}", digest.short())
}

#[test]
fn doubts_and_holds_prevent_deletes() {
    type Change = fn(&mut Case);
    let changes: [(&str, Change); 11] = [
        ("nothing is deleted while the config repository has errors", |case| case.fleet_valid = false),
        ("the cluster is not fully read yet", |case| case.cluster.is_complete = false),
        ("bj5 does not answer, deleted when it answers again", |case| case.cluster.is_offline = true),
        ("observe mode, would delete: no longer rendered", |case| case.mode = InstanceMode::Observe),
        ("the app is paused, would delete: no longer rendered", |case| case.app.paused = true),
        ("the cluster is in maintenance, would delete: no longer rendered", |case| {
            case.cluster.state = ClusterState::Maintaining;
        }),
        ("the app is unmanaged", |case| case.app.unmanaged = true),
        ("no longer rendered, deleted when its app is healthy", |case| {
            case.app.placements.insert(cluster("bj5"), AppReadiness::Unhealthy);
        }),
        ("no longer rendered, deleted when its app is healthy on gz1", |case| {
            case.app.placements.insert(cluster("gz1"), AppReadiness::Unhealthy);
        }),
        ("no longer rendered, deleted when the rollout of its app is over", |case| {
            case.app.has_open_rollout = true;
        }),
        ("no longer rendered, the app never prunes", |case| case.app.prune = PruneMode::Never),
    ];
    for (expected, change) in changes {
        for count in [1, 5] {
            let mut case = Case::of(count);
            change(&mut case);
            case.check_reason(expected);
            assert!(case.decide().deletes.is_empty());
        }
        // Nor above the cap, nor with an approval for everything.
        let mut case = approved(Case::of(20));
        change(&mut case);
        assert!(case.decide().deletes.is_empty(), "{expected}");
    }
    let mut always = Case::of(2);
    let unhealthy = places(&[("bj5", AppReadiness::Unhealthy)]);
    always.app = PruneAppFacts { placements: unhealthy, prune: PruneMode::Always, ..facts() };
    always.check([2, 0, 0]);
    Case { app: PruneAppFacts::of_removed_app(PruneMode::WhenHealthy), ..Case::of(2) }.check([2, 0, 0]);
}

#[test]
fn moved_app_is_healthy_before_old_objects_go() {
    use AppReadiness::{Healthy, OfflineUpToDate, Unhealthy};
    let check = |standings: &[(&str, AppReadiness)], expected: [usize; 3]| {
        Case { app: PruneAppFacts { placements: places(standings), ..facts() }, ..Case::of(2) }
            .check(expected)
    };
    // The candidates are on bj5. The app stays there and loses objects.
    check(&[("bj5", Healthy)], [2, 0, 0]);
    check(&[("bj5", Healthy), ("gz1", OfflineUpToDate)], [2, 0, 0]);
    // An offline cluster without all objects may be where they move to.
    check(&[("bj5", Healthy), ("gz1", Unhealthy)], [0, 2, 0]);
    check(&[("bj5", Unhealthy), ("gz1", Healthy)], [0, 2, 0]);
    // The app leaves the cluster: it must be healthy on the remaining ones.
    check(&[("gz1", Healthy)], [2, 0, 0]);
    let decision = check(&[("gz1", OfflineUpToDate), ("gz2", Healthy)], [0, 2, 0]);
    assert_eq!(
        decision.waiting[0].reason.to_string(),
        "no longer rendered, deleted when its app is healthy on gz1"
    );
    check(&[("gz1", Healthy), ("gz2", Unhealthy)], [0, 2, 0]);
}

#[test]
fn an_app_that_is_placed_nowhere_deletes_nothing() {
    let case = Case { app: PruneAppFacts { placements: places(&[]), ..facts() }, ..Case::of(2) };
    let decision = case.check([0, 2, 0]);
    let digest = decision.approvals_wanted[0].digest().short();
    case.check_reason(&format!("its app is placed on no cluster, waits for approval {digest}"));
    approved(case).check([2, 0, 0]);
}

#[test]
fn removed_cluster_still_gets_deletes() {
    let mut case = Case::of(2);
    case.cluster.state = ClusterState::Removed;
    case.app.placements.remove(&cluster("bj5"));
    case.check([2, 0, 0]);
    case.app.paused = true;
    case.check_reason("the app is paused, would delete: no longer rendered");
}

#[test]
fn containers_are_deleted_after_their_contents() {
    let namespace = candidate("v1/Namespace//shop");
    let definition = candidate("apiextensions.k8s.io/v1/CustomResourceDefinition//menus.example.com");
    let mut observation = with_live(empty(), "pay", "v1/Namespace//shop", "a");
    observation = with_live(
        observation,
        "pay",
        "apiextensions.k8s.io/v1/CustomResourceDefinition//menus.example.com",
        "a",
    );
    // Of another app, rendered or not; of another namespace; another kind of the group.
    observation = with_live(observation, "web", "v1/ConfigMap/shop/in", "a");
    observation = with_live(observation, "web", "v1/ConfigMap/shop/out", "a");
    observation = with_live(observation, "web", "example.com/v1/Menu/other/in", "a");
    observation = with_live(observation, "web", "example.com/v1/Guest/other/out", "a");
    let rendered = BTreeSet::from([
        // It does not exist yet.
        parse("v1/Secret/shop/next").1,
        parse("example.com/v1/Menu/other/in").1,
        parse("example.com/v1/Guest/other/out").1,
    ]);
    let plural = |id: &ObjectId| Some(format!("{}s", id.kind.to_lowercase()));
    let strays = observation.objects.keys().filter(|id| &*id.kind != "ConfigMap");
    let found = candidates(&cluster("bj5"), &observation, strays, &rendered, &plural);
    let contents: Vec<(String, String)> = found
        .iter()
        .map(|it| {
            let words = |content: &ContainedObject| match content.is_wanted {
                true => format!("{} is wanted. ", content.object),
                false => format!("{} is there. ", content.object),
            };
            (it.object.to_string(), it.contents.iter().map(words).collect())
        })
        .collect();
    assert_eq!(
        contents,
        [
            (
                namespace.object.to_string(),
                "Secret shop/next is wanted. ConfigMap shop/in is there. ConfigMap shop/out is there. "
                    .to_owned()
            ),
            (definition.object.to_string(), "Menu other/in is wanted. ".to_owned()),
        ]
    );
    let check = |left: usize, expected: [&str; 2]| {
        let mut candidates = found.clone();
        for candidate in &mut candidates {
            let more = candidate.contents.len().saturating_sub(left);
            candidate.contents.drain(..more);
        }
        let decision = approved(Case { candidates, ..Case::of(0) }).check([0, 2, 0]);
        let words: Vec<String> = decision.waiting.iter().map(|it| it.reason.to_string()).collect();
        assert_eq!(words, expected.map(|words| format!("no longer rendered, {words}")));
    };
    let menu = "kept while Menu other/in in it is rendered";
    check(3, [menu, "kept while Secret shop/next in it is rendered; 2 more are rendered or still there"]);
    check(2, [menu, "deleted after ConfigMap shop/in and 1 more, which it contains"]);
    check(1, [menu, "deleted after ConfigMap shop/out, which it contains"]);
}

#[test]
fn kept_objects_are_orphaned_and_do_not_count() {
    let mut case = Case::of(13);
    case.candidates.iter_mut().take(3).for_each(|candidate| candidate.keep = true);
    case.check([10, 0, 3]);
}

/// With an approval for everything that waits.
fn approved(mut case: Case) -> Case {
    let approvals = case.decide().approvals_wanted;
    case.approvals.extend(approvals);
    case
}

#[test]
fn approvals_lift_the_cap() {
    let case = approved(Case::of(12));
    let decision = case.check([12, 0, 0]);
    assert_eq!(decision.deletes[0].reason.to_string(), "no longer rendered, approved by delete-shop-pay");
    assert!(decision.approvals_wanted.is_empty() && decision.approvals_unused.is_empty());

    // Half of it is deleted or on an offline cluster: the rest is still deleted.
    let half = Case { candidates: case.candidates[6..].to_vec(), ..case.clone() };
    half.check([6, 0, 0]);

    // Another render, or another object of the same name.
    let mut other = case.clone();
    other.app.rendered = Digest::of(b"another render");
    let decision = other.check([0, 12, 0]);
    assert_eq!(decision.approvals_unused[0].because, UnusedReason::RenderChanged);
    let mut recreated = case.clone();
    recreated.candidates[0].uid = "another".into();
    recreated.check([11, 1, 0]);

    // Done: the approval is reported as unused.
    let done = Case { candidates: Vec::new(), ..case }.check([0, 0, 0]);
    assert_eq!(done.approvals_unused[0].because, UnusedReason::NothingPending);
}

#[test]
fn partial_approval_does_not_free_the_rest() {
    let mut case = approved(Case::of(12));
    case.approvals[0].objects.truncate(6);
    case.check([6, 6, 0]);
    // The next revision: six are deleted, and the other six alone would be below the cap.
    case.candidates.drain(..6);
    let decision = case.check([0, 6, 0]);
    assert_eq!(decision.approvals_wanted[0].objects.len(), 6);
    // They count for every other app too, as long as the approval exists.
    case.candidates.iter_mut().for_each(|candidate| candidate.app = app("web"));
    case.check([0, 6, 0]);
    case.approvals.clear();
    case.check([6, 0, 0]);
}

#[test]
fn approval_of_one_app_frees_no_other() {
    let mut case = Case::of(12);
    for (place, candidate) in case.candidates.iter_mut().enumerate() {
        candidate.app = app(["pay", "cart", "mail", "page"][place / 3]);
    }
    let mut case = approved(case);
    case.approvals.retain(|approval| approval.app == app("pay"));
    case.check([3, 9, 0]);
    // The next revision: three are deleted, and the nine alone would be below the cap.
    case.candidates.retain(|candidate| candidate.app != app("pay"));
    case.check([0, 9, 0]);
    case.approvals.clear();
    case.check([9, 0, 0]);
}

#[test]
fn some_kinds_always_need_an_approval() {
    for text in [
        "v1/Namespace//shop",
        "v1/PersistentVolumeClaim/shop/data",
        "apiextensions.k8s.io/v1/CustomResourceDefinition//menus.example.com",
    ] {
        let case = Case::of(2).with(text);
        let decision = case.check([2, 1, 0]);
        let digest = decision.approvals_wanted[0].digest();
        let kind = decision.waiting[0].candidate.kind.kind.clone();
        assert_eq!(
            decision.waiting[0].reason.to_string(),
            format!("every {kind} waits for approval {}", digest.short())
        );
        assert_eq!(decision.waiting[0].reason.approval_digest(), Some(digest));
        approved(case).check([3, 0, 0]);
    }
}

#[test]
fn an_app_that_renders_to_nothing_deletes_nothing() {
    let mut case = Case::of(2);
    case.empty.insert((app("pay"), cluster("bj5")));
    case.check([0, 2, 0]);
    approved(case).check([2, 0, 0]);
}

#[test]
fn deletes_come_last_and_in_reverse() {
    let texts =
        ["v1/ConfigMap/shop/b", "v1/ConfigMap/shop/a", "apps/v1/Deployment/shop/pay", "v1/Service/shop/pay"];
    let case = texts.iter().fold(Case::of(0), |case, text| case.with(text)).with("v1/Namespace//shop");
    let decision = case.decide();
    let order: Vec<String> = decision.deletes.iter().map(|d| d.candidate.object.to_string()).collect();
    assert_eq!(order, ["Deployment shop/pay", "Service shop/pay", "ConfigMap shop/b", "ConfigMap shop/a"]);

    let kept = rendered("pay", &["v1/Service/shop/new"]);
    let observation = super::with_absent(empty(), &["v1/Service/shop/new"]);
    let plan = plan_with(&kept, &observation, |_| {}).with_prunes(&decision);
    let actions: Vec<PlanAction> = plan.steps.iter().map(|step| step.action).collect();
    use PlanAction::{Create, Delete, Wait};
    assert_eq!(actions, [Create, Delete, Delete, Delete, Delete, Wait]);
    let delete = &plan.steps[1];
    assert_eq!(delete.uid.as_deref(), Some("uid-apps/v1/Deployment/shop/pay"));
    assert_eq!(delete.resource_version.as_deref(), Some("7"));

    // Only objects of that app and cluster.
    let elsewhere = Plan::empty(app("pay"), cluster("gz1"), Revision::from("c0ffee"));
    assert!(elsewhere.with_prunes(&decision).steps.is_empty());
    let gone = Plan::empty(app("pay"), cluster("bj5"), Revision::from("c0ffee")).with_prunes(&decision);
    assert_eq!(gone.writes().count(), 4);
    // A delete of another object version is another plan.
    let digest = gone.digest();
    let mut newer = case;
    newer.candidates[0].resource_version = "8".into();
    let newer =
        Plan::empty(app("pay"), cluster("bj5"), Revision::from("c0ffee")).with_prunes(&newer.decide());
    assert_ne!(newer.digest(), digest);
}

#[test]
fn the_order_of_candidates_does_not_matter() {
    let mut case = Case::of(12).with("v1/Namespace//shop").with("apps/v1/Deployment/shop/pay");
    let decision = case.decide();
    case.candidates.reverse();
    assert_eq!(case.decide(), decision);
}

#[test]
fn approval_is_bound_to_renders_on_all_clusters() {
    let one = rendered("pay", &["v1/ConfigMap/shop/a"]);
    let other = crate::model::RenderedTarget { cluster: cluster("gz1"), ..one.clone() };
    assert_eq!(rendered_digest([&one, &other]), rendered_digest([&other, &one]));
    assert_ne!(rendered_digest([&one, &other]), rendered_digest([&one]));
    assert_eq!(rendered_digest([]), PruneAppFacts::of_removed_app(PruneMode::Always).rendered);
}
