//! Properties of every delete decision, over many generated cases.

use std::collections::BTreeSet;

use super::prune::{Case, candidate};
use super::{app, cluster};
use crate::model::{ClusterState, Digest, InstanceMode, PruneMode};
use crate::plan::prune::ContainedObject;
use crate::plan::prune_decision::delete_cap;
use crate::plan::{AppReadiness, StepReason};

/// A linear congruential generator: the same cases in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

fn made_up(dice: &mut Dice) -> Case {
    let mut case = Case::of(dice.below(15) as usize);
    if dice.once_in(4) {
        case = case.with("v1/Namespace//shop").with("v1/PersistentVolumeClaim/shop/data");
        case.candidates.push(candidate("apps/v1/Deployment/shop/pay"));
    }
    for candidate in &mut case.candidates {
        if &*candidate.object.kind == "Namespace" && dice.once_in(2) {
            candidate.contents.push(ContainedObject { object: candidate.object.clone(), is_wanted: false });
        }
        candidate.keep = dice.once_in(10);
        candidate.app = app(["pay", "web"][dice.below(2) as usize]);
        candidate.cluster = cluster(["bj5", "gz1"][dice.below(2) as usize]);
    }
    case.managed_total = dice.below(100);
    case.already_deleted = dice.below(4);
    case.mode = if dice.once_in(8) { InstanceMode::Observe } else { InstanceMode::Enforce };
    case.fleet_valid = !dice.once_in(8);
    case.cluster.is_complete = !dice.once_in(8);
    case.cluster.is_offline = dice.once_in(8);
    case.cluster.state = [ClusterState::Maintaining, ClusterState::Removed, ClusterState::Ready]
        [dice.below(8).min(2) as usize];
    case.app.paused = dice.once_in(8);
    case.app.unmanaged = dice.once_in(8);
    use AppReadiness::{Healthy, OfflineUpToDate, Unhealthy};
    case.app.placements.clear();
    for name in ["bj5", "gz1"] {
        let standing = [Unhealthy, OfflineUpToDate, Healthy, Healthy, Healthy][dice.below(5) as usize];
        if !dice.once_in(5) {
            case.app.placements.insert(cluster(name), standing);
        }
    }
    case.app.prune = [PruneMode::Never, PruneMode::WhenHealthy, PruneMode::WhenHealthy, PruneMode::Always]
        [dice.below(4) as usize];
    if dice.once_in(6) {
        case.empty.insert((app("pay"), cluster("bj5")));
    }
    if dice.once_in(2) {
        // The requested approval, in part or for another render or other objects.
        let mut approvals = case.decide().approvals_wanted;
        for approval in &mut approvals {
            approval.objects.retain(|_| !dice.once_in(5));
            if dice.once_in(5) {
                approval.rendered = Digest::of(b"another");
            }
            if dice.once_in(5) {
                approval.objects.iter_mut().for_each(|object| object.uid.push('x'));
            }
        }
        case.approvals = approvals;
    }
    case
}

#[test]
fn of_every_decision() {
    let mut dice = Dice(7);
    let (mut deleted, mut by_approval, mut waited) = (0, 0, 0);
    for _ in 0..2_000 {
        let case = made_up(&mut dice);
        let decision = case.decide();

        // Every candidate has one decision.
        let answered: BTreeSet<&str> = decision.all().map(|decided| decided.candidate.uid.as_str()).collect();
        assert_eq!(answered.len(), case.candidates.len());
        assert_eq!(decision.all().count(), case.candidates.len());

        // No delete from doubt or under a hold.
        let may_delete = case.fleet_valid
            && case.mode == InstanceMode::Enforce
            && case.cluster.is_complete
            && !case.cluster.is_offline
            && case.cluster.state != ClusterState::Maintaining
            && !case.app.paused
            && !case.app.unmanaged
            && case.app.prune != PruneMode::Never;
        assert!(may_delete || decision.deletes.is_empty());
        if case.app.prune == PruneMode::WhenHealthy {
            for delete in &decision.deletes {
                let stays_here = case.app.placements.contains_key(&delete.candidate.cluster);
                assert!(case.app.placements.values().all(|standing| match standing {
                    AppReadiness::Healthy => true,
                    AppReadiness::OfflineUpToDate => stays_here,
                    AppReadiness::Unhealthy => false,
                }));
            }
        }
        // An app that is placed nowhere is a doubt.
        assert!(
            !case.app.placements.is_empty()
                || decision.deletes.iter().all(|it| it.reason != StepReason::NoLongerRendered)
        );
        assert!(decision.deletes.iter().all(|delete| delete.candidate.contents.is_empty()));
        assert!(decision.deletes.iter().all(|delete| !delete.candidate.keep));

        // Without an approval never more than the cap, and no containers of other objects.
        let free: Vec<_> =
            decision.deletes.iter().filter(|delete| delete.reason == StepReason::NoLongerRendered).collect();
        if !free.is_empty() {
            assert!(
                free.len() as u64 + case.already_deleted
                    <= delete_cap(crate::model::DeleteCaps::default(), case.managed_total)
            );
            assert!(free.iter().all(|delete| !matches!(
                &*delete.candidate.kind.kind,
                "Namespace" | "PersistentVolumeClaim"
            )));
        }
        // With one, only the listed objects with those uids.
        for delete in decision.deletes.iter().filter(|delete| delete.reason != StepReason::NoLongerRendered) {
            let object = delete.candidate.approved_object();
            assert!(case.approvals.iter().any(|approval| {
                approval.app == delete.candidate.app
                    && approval.rendered == case.app.rendered
                    && approval.objects.contains(&object)
            }));
        }
        // A delete that needs an approval is in the requested one, under the shown digest.
        for waiting in &decision.waiting {
            let Some(digest) = waiting.reason.approval_digest() else { continue };
            let wanted = decision.approvals_wanted.iter().find(|approval| approval.digest() == digest);
            let object = waiting.candidate.approved_object();
            assert!(wanted.is_some_and(|approval| approval.objects.contains(&object)));
        }
        deleted += free.len();
        by_approval += decision.deletes.len() - free.len();
        waited += decision.waiting.len();
    }
    // All cases have occurred.
    assert!(deleted > 100 && by_approval > 100 && waited > 100, "{deleted} {by_approval} {waited}");
}
