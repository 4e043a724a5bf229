//! Computes the input of `promotion` from an overview: the state of apps in their rings, and of rollouts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport, version};
use crate::fleet::Fleet;
use crate::model::{AppId, ClusterName};
use crate::promotion::{AppRingState, AppRolloutState};
use crate::rollout::RolloutHold;

/// The first cluster that was not read whole, and why; `None` if everything was read.
pub fn unobserved_reason(overview: &Overview) -> Option<String> {
    overview.clusters.iter().find(|cluster| !cluster.observed).map(unobserved_text)
}

fn unobserved_text(cluster: &ClusterReport) -> String {
    let why = if cluster.detail.is_empty() { "its objects are being listed" } else { &cluster.detail };
    format!("{} is not read: {why}", cluster.name)
}

fn unobserved_clusters(overview: &Overview) -> BTreeMap<&ClusterName, String> {
    let unread = overview.clusters.iter().filter(|cluster| !cluster.observed);
    unread.map(|cluster| (&cluster.name, unobserved_text(cluster))).collect()
}

/// The state of each app with pins, by ring. A target on a cluster that was not read is not done.
pub fn ring_states(overview: &Overview, fleet: &Fleet) -> BTreeMap<(AppId, String), AppRingState> {
    let is_away = |cluster: &&ClusterReport| matches!(cluster.state, "Offline" | "Maintaining");
    let away: BTreeSet<&ClusterName> =
        overview.clusters.iter().filter(is_away).map(|cluster| &cluster.name).collect();
    let has_pins = |app: &AppId| fleet.apps.get(app).is_some_and(|app| !app.pins.is_empty());
    let unread = unobserved_clusters(overview);
    let mut rings: BTreeMap<(AppId, String), Vec<&TargetReport>> = BTreeMap::new();
    for target in overview.targets.iter().filter(|target| has_pins(&target.app)) {
        let Some(ring) = &target.ring else { continue };
        let of_ring = rings.entry((target.app.clone(), ring.clone())).or_default();
        if target.phase != TargetPhase::KeptOut && !away.contains(&target.cluster) {
            of_ring.push(target);
        }
    }
    let state = |((app, ring), targets): ((AppId, String), Vec<&TargetReport>)| {
        let why = targets.iter().find_map(|target| unread.get(&target.cluster));
        let mut state = match (why, overview.rollout_of(&app)) {
            (Some(why), _) => {
                AppRingState { units: targets.len(), wait_reason: why.clone(), ..AppRingState::default() }
            }
            (None, Some(rollout)) => {
                let of_ring = rollout.measures.iter().filter(|it| it.measure.wave == ring);
                AppRingState {
                    measures: Some(of_ring.cloned().collect()),
                    ..state_of_units(rollout, &targets)
                }
            }
            (None, None) => state_of_targets(&targets),
        };
        state.version = version::merge_versions(targets.iter().map(|target| target.version.as_str()));
        ((app, ring), state)
    };
    rings.into_iter().map(state).collect()
}

fn state_of_units(rollout: &RolloutReport, targets: &[&TargetReport]) -> AppRingState {
    let units = targets.iter().flat_map(|target| rollout.units_on(&target.cluster));
    let takes_part = |hold: Option<&RolloutHold>| {
        !hold.is_some_and(|hold| matches!(hold.gate(), RolloutHold::LeftOut { .. }))
    };
    let units: Vec<_> = units.filter(|unit| takes_part(unit.hold.as_ref())).collect();
    let is_done = |unit: &&&super::UnitReport| unit.is_at_head && unit.is_done;
    let waits =
        units.iter().find(|unit| !is_done(unit)).map(|unit| format!("{}: {}", unit.unit, unit.status_text()));
    let since: Option<Vec<Timestamp>> = units.iter().map(|unit| unit.done_since).collect();
    AppRingState {
        units: units.len(),
        done: units.iter().filter(is_done).count(),
        done_since: since.and_then(|since| since.into_iter().max()),
        wait_reason: waits.unwrap_or_default(),
        ..AppRingState::default()
    }
}

/// For an app without waves. A commit reaches all its rings at once, so their limits do not apply.
fn state_of_targets(targets: &[&TargetReport]) -> AppRingState {
    let is_done = |target: &&&TargetReport| target.phase == TargetPhase::Running;
    let waits = targets.iter().find(|target| !is_done(target));
    let waits = waits.map(|target| match target.detail.as_str() {
        "" => format!("{}: {}", target.cluster, target.phase.as_str()),
        detail => format!("{}: {detail}", target.cluster),
    });
    AppRingState {
        units: targets.len(),
        done: targets.iter().filter(is_done).count(),
        done_since: Some(Timestamp::UNIX_EPOCH),
        wait_reason: waits.unwrap_or_default(),
        ..AppRingState::default()
    }
}

/// The rollouts that may need a pull request. A rollout with an unread cluster may still change.
pub fn rollout_states(overview: &Overview) -> Vec<AppRolloutState> {
    let unread = unobserved_clusters(overview);
    let on_unread = overview.targets.iter().filter(|target| unread.contains_key(&target.cluster));
    let unknown: BTreeSet<&AppId> = on_unread.map(|target| &target.app).collect();
    let state = |rollout: &RolloutReport| match unknown.contains(&rollout.app) {
        true => AppRolloutState {
            app: rollout.app.clone(),
            commit: rollout.commit.clone(),
            is_settled: false,
            pending_confirmation: None,
            missing_approvals: Vec::new(),
            opened_clusters: BTreeSet::new(),
            is_reading: true,
            is_refused: false,
        },
        false => rollout_state(rollout),
    };
    overview.rollouts.iter().map(state).collect()
}

fn rollout_state(rollout: &RolloutReport) -> AppRolloutState {
    let ends_it = |hold: &RolloutHold| {
        hold.waits_for_a_person()
            || hold.is_failure()
            || matches!(hold.gate(), RolloutHold::Stopped { .. } | RolloutHold::Window { .. })
    };
    let has_failed = rollout.units.iter().any(|unit| unit.failure.is_some());
    // Skipping a ring is a decision of a person, so no pull request proposes it.
    let asks = rollout.confirmation.as_ref().filter(|asked| rollout.skipped_ring(&asked.through).is_none());
    AppRolloutState {
        app: rollout.app.clone(),
        commit: rollout.commit.clone(),
        is_settled: !rollout.is_open
            || rollout.confirmation.is_some()
            || has_failed
            || rollout.holds().any(ends_it),
        missing_approvals: asks.map(|asked| rollout.required_approvals(&asked.through)).unwrap_or_default(),
        opened_clusters: asks.map(|asked| rollout.waiting_clusters(&asked.through)).unwrap_or_default(),
        pending_confirmation: asks.map(|asked| (asked.through.clone(), asked.digest)),
        is_reading: rollout.holds().any(RolloutHold::is_reading),
        is_refused: rollout.is_reverted(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Digest;
    use crate::report::UnitReport;
    use crate::rollout::{UnitId, WaveReport, WaveState};

    const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\n\
        spec: {rings: [{name: test, clusters: {names: [c1, c2]}}, {name: prod, clusters: {names: [c3]}}]}\n";

    fn fleet() -> Fleet {
        let cluster = |name: &str| {
            format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{connection: {{sandbox: {{}}}}}}\n"
            )
        };
        let app = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: pay}\n\
            spec: {workloadType: Deployment, developLanguage: go, runType: worker, image: 'pay:1'}\n";
        let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: tutti}\nspec: {}\n";
        let (c1, c2, c3) = (cluster("c1"), cluster("c2"), cluster("c3"));
        let files = [
            ("tutti.yaml", instance),
            ("rings.yaml", RINGS),
            ("clusters/c1.yaml", &c1),
            ("clusters/c2.yaml", &c2),
            ("clusters/c3.yaml", &c3),
            ("apps/pay/app.yaml", app),
            ("apps/pay/pins/prod.yaml", "version: '1'\n"),
        ];
        let snapshot = crate::model::Snapshot::of_texts(files);
        let fleet = crate::fleet::assemble(crate::manifest::read(&snapshot), &snapshot);
        assert_eq!(fleet.diagnostics, []);
        fleet
    }

    fn target(cluster: &str, ring: &str, phase: TargetPhase) -> TargetReport {
        TargetReport {
            ring: Some(ring.to_owned()),
            version: "1".to_owned(),
            ..TargetReport::of_test(AppId::new("default", "pay"), cluster, phase)
        }
    }

    fn unit(cluster: &str, is_done: bool, since: i64, hold: Option<RolloutHold>) -> UnitReport {
        UnitReport {
            is_at_head: is_done,
            is_done,
            done_since: is_done.then(|| Timestamp::from_second(since).expect("a time")),
            hold,
            ..UnitReport::of_test(UnitId::new(cluster, ""), "test")
        }
    }

    fn state(overview: &Overview, ring: &str) -> AppRingState {
        let states = ring_states(overview, &fleet());
        states.get(&(AppId::new("default", "pay"), ring.to_owned())).cloned().expect("a state")
    }

    #[test]
    fn ring_state_follows_its_units() {
        let app = AppId::new("default", "pay");
        let of = |units: Vec<UnitReport>| Overview {
            targets: vec![
                target("c1", "test", TargetPhase::Running),
                target("c2", "test", TargetPhase::Running),
                target("c3", "prod", TargetPhase::Running),
            ],
            rollouts: vec![RolloutReport::of_test(
                app.clone(),
                vec![WaveReport::of_test("test", WaveState::Open, 1, 2)],
                units,
            )],
            ..Overview::default()
        };
        let left_out = RolloutHold::LeftOut { cluster: "c2".into(), because: "no route".into() };
        let done = state(&of(vec![unit("c1", true, 5, None), unit("c2", true, 9, None)]), "test");
        assert_eq!((done.units, done.done, done.version.as_str()), (2, 2, "1"));
        assert_eq!(done.done_since, Timestamp::from_second(9).ok());
        let half = state(&of(vec![unit("c1", true, 5, None), unit("c2", false, 0, None)]), "test");
        assert_eq!((half.units, half.done, half.done_since), (2, 1, None));
        assert_eq!(half.wait_reason, "c2: still at the old version");
        let alone = state(&of(vec![unit("c1", true, 5, None), unit("c2", false, 0, Some(left_out))]), "test");
        assert_eq!((alone.units, alone.done), (1, 1));
        let none = state(&of(Vec::new()), "prod");
        assert_eq!((none.units, none.done), (0, 0));
    }

    #[test]
    fn app_without_waves_follows_its_targets() {
        let targets = vec![
            target("c1", "test", TargetPhase::Running),
            target("c2", "test", TargetPhase::Degraded),
            target("c3", "prod", TargetPhase::KeptOut),
        ];
        let overview = Overview { targets, ..Overview::default() };
        let test = state(&overview, "test");
        assert_eq!((test.units, test.done, test.wait_reason.as_str()), (2, 1, "c2: Degraded"));
        assert_eq!(state(&overview, "prod").units, 0);
    }

    #[test]
    fn unread_cluster_holds_only_its_own_apps() {
        let cluster = |name: &str, observed: bool, detail: &str| ClusterReport {
            detail: detail.to_owned(),
            observed,
            objects: 0,
            ..ClusterReport::of_test(name, None)
        };
        let app = |name: &str| AppId::new("default", name);
        let rollout = |name: &str, cluster: &str| {
            let units =
                vec![unit(cluster, false, 0, Some(RolloutHold::Reverted { digest: Digest::of(b"v2") }))];
            RolloutReport::of_test(app(name), Vec::new(), units)
        };
        let of = |name: &str, cluster: &str| TargetReport {
            app: app(name),
            ..target(cluster, "test", TargetPhase::Running)
        };
        let mut overview = Overview {
            clusters: vec![
                cluster("c1", true, ""),
                cluster("c2", false, "Secrets cannot be watched: forbidden"),
            ],
            targets: vec![of("pay", "c1"), of("pay", "c2"), of("web", "c1")],
            rollouts: vec![rollout("pay", "c1"), rollout("web", "c1")],
            ..Overview::default()
        };
        let why = "c2 is not read: Secrets cannot be watched: forbidden";
        assert_eq!(unobserved_reason(&overview).as_deref(), Some(why));
        let test = state(&overview, "test");
        assert_eq!((test.units, test.done, test.wait_reason.as_str(), test.done_since), (2, 0, why, None));
        let refused = |overview: &Overview| -> Vec<(bool, bool)> {
            rollout_states(overview).into_iter().map(|it| (it.is_settled, it.is_refused)).collect()
        };
        assert_eq!(refused(&overview), [(false, false), (true, true)]);
        overview.clusters[1].observed = true;
        assert_eq!((unobserved_reason(&overview), refused(&overview)), (None, vec![(true, true); 2]));
    }

    #[test]
    fn no_pull_request_skips_a_ring() {
        let digest = Digest::of(b"v2");
        let check = |hold: RolloutHold, asks: bool, is_settled: bool, is_refused: bool| {
            let confirmation = hold.confirmation();
            let rollout = RolloutReport {
                confirmation,
                ..RolloutReport::of_test(
                    AppId::new("shop", "pay"),
                    Vec::new(),
                    vec![unit("c1", false, 0, Some(hold))],
                )
            };
            let state = rollout_state(&rollout);
            assert_eq!(
                (state.pending_confirmation.is_some(), state.is_settled, state.is_refused),
                (asks, is_settled, is_refused)
            );
        };
        let (test, prod) = ("test".to_owned(), "prod".to_owned());
        check(
            RolloutHold::Confirmation { after: test.clone(), through: prod.clone(), digest },
            true,
            true,
            false,
        );
        check(
            RolloutHold::Pin { ring: test.clone(), version: "2".to_owned(), through: prod, digest },
            false,
            true,
            false,
        );
        check(RolloutHold::Reverted { digest }, false, true, true);
        check(RolloutHold::Concurrency { wave: test, limit: 1 }, false, false, false);
    }
}
