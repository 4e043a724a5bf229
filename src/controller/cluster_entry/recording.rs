//! Records what a watch, an apply or a delete reported of one object.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::Value;

use super::kind_watch::{KindWatch, version_number};
use super::{AffectedApps, ClusterEntry};
use crate::controller::interner::StringInterner;
use crate::health;
use crate::model::{GroupVersionKind, IgnoreRulesByApp, LiveObject, ObjectId, OwnershipEvidence};
use crate::plan::PruneCandidate;
use crate::reconcile;

impl ClusterEntry {
    /// Records a whole object that a watch reported.
    pub(super) fn record_object(
        &mut self,
        kind: &GroupVersionKind,
        id: ObjectId,
        object: Value,
        instance: &str,
        words: &mut StringInterner,
    ) -> AffectedApps {
        match reconcile::live_object(kind, &object, instance, &self.rules, &self.ignored_fields) {
            Some(live) => self.record_whole_object(id, live, object, instance, words),
            // It carries our label, but is a copy, or is not ours any more.
            None => self.remove_object(&id),
        }
    }

    fn record_whole_object(
        &mut self,
        mut id: ObjectId,
        mut live: LiveObject,
        object: Value,
        instance: &str,
        words: &mut StringInterner,
    ) -> AffectedApps {
        words.intern_id(&mut id);
        words.intern_live(&mut live);
        // A workload without desired pods has no pods that could show a cause.
        let wants_pods = live.pods.is_none_or(|pods| pods.desired > 0);
        let unwell = wants_pods && !live.health.is_settled_well() && health::own_pods(&object).is_some();
        let is_judged_by_us = self.rules.rule_digest(&live.kind).is_none();
        let touched = self.record_live(&id, live, &object, instance);
        if touched != AffectedApps::Nothing && is_judged_by_us {
            self.unbound_claims.note(&id, &object);
        }
        if !unwell {
            self.unhealthy_objects.remove(&id);
        } else if touched != AffectedApps::Nothing {
            self.unhealthy_objects.insert(id, object);
        }
        touched
    }

    /// Records an object. A state older than the known one is dropped.
    fn record_live(
        &mut self,
        id: &ObjectId,
        live: LiveObject,
        object: &Value,
        instance: &str,
    ) -> AffectedApps {
        if let Some(known) = self.observation.objects.get(id)
            && known.uid == live.uid
            && is_older(&live.resource_version, &known.resource_version)
        {
            return AffectedApps::Nothing;
        }
        self.observation.absent.remove(id);
        self.observation.unmanaged_objects.remove(id);
        self.observation.unlabeled_unknown.remove(id);
        self.observation.record_lost_annotations(id, &live);
        let live = keep_settled(self.observation.objects.get(id).map(Arc::as_ref), live);
        let app = Arc::clone(&live.app);
        let before = self.observation.objects.insert(id.clone(), Arc::new(live));
        self.compare_object(id, Some((object, instance)));
        match before {
            // The object changed its app: both apps must be processed.
            Some(before) if before.app != app => AffectedApps::Everything,
            _ => AffectedApps::App(app),
        }
    }

    /// Records the answer of a successful apply: it shows the desired state. If a watch already reported a newer state, that
    /// state is compared with the answer. `ignores`: the ignored fields at the time of the apply. `before`: the values that the
    /// apply was to repair. Returns whether the repair had no effect.
    pub fn record_apply(
        &mut self,
        kind: &GroupVersionKind,
        object: Value,
        instance: &str,
        ignores: &IgnoreRulesByApp,
        before: Option<NonZeroU64>,
        words: &mut StringInterner,
    ) -> bool {
        let Some(id) = ObjectId::of(&object) else { return false };
        let Some(answer) = reconcile::live_object(kind, &object, instance, &self.rules, &self.ignored_fields)
        else {
            self.remove_object(&id);
            return false;
        };
        // A field that was ignored then may be desired now.
        let is_all = self.ignored_fields.get(&answer.app) == ignores.get(&answer.app);
        if self.is_known_gone(&id, &answer) {
            return false;
        }
        let (uid, hash, ownership) = (Arc::clone(&answer.uid), answer.hash, answer.ownership.clone());
        self.record_whole_object(id.clone(), answer, object, instance, words);
        self.observation.immutable_changes.remove(&id);
        self.observation.verdicts.remove(&id);
        let live = self.observation.objects.get_mut(&id).filter(|_| is_all);
        let Some(live) = live.filter(|live| (&live.uid, live.hash) == (&uid, hash)) else { return false };
        let shown = reconcile::settled_ownership(ownership, hash, self.desired.get(&live.app, &id));
        Arc::make_mut(live).settle(&shown, before)
    }

    /// Records an object that changed during its delete, as it was read then. The watch may report it later.
    pub fn record_reread(&mut self, candidate: &PruneCandidate) {
        if let Some(live) = self.observation.objects.get_mut(&candidate.object)
            && *live.uid == *candidate.uid
            && !is_older(&candidate.resource_version, &live.resource_version)
        {
            let live = Arc::make_mut(live);
            live.resource_version = candidate.resource_version.as_str().into();
            live.keep = candidate.keep;
            // The field ownership is known only for the previous state.
            live.ignored = None;
        }
    }

    /// Records a delete by this process, or an object that was found missing. The watch may report it late, and an app that needs
    /// the object again must not count it as healthy. An object of this name with another uid is not affected.
    pub fn record_delete(&mut self, id: &ObjectId, uid: &str, is_gone: bool) -> AffectedApps {
        match self.observation.objects.get_mut(id).filter(|live| *live.uid == *uid) {
            Some(_) if is_gone => self.remove_object(id),
            Some(live) if !live.deleting => {
                Arc::make_mut(live).deleting = true;
                AffectedApps::App(Arc::clone(&live.app))
            }
            _ => AffectedApps::Nothing,
        }
    }

    /// The answer shows an object that the watch has reported as deleted, perhaps with a successor of the same name. The watch
    /// does not report that again.
    pub(super) fn is_known_gone(&self, id: &ObjectId, answer: &LiveObject) -> bool {
        let version = version_number(&answer.resource_version);
        let was_told = |watch: &KindWatch| version <= watch.seen_version;
        self.observation.objects.get(id).is_none_or(|known| known.uid != answer.uid)
            && version.is_some()
            && self.watches.iter().any(|(kind, watch)| id.has_kind(kind) && was_told(watch))
    }

    /// The object is gone, or not ours any more.
    pub fn remove_object(&mut self, id: &ObjectId) -> AffectedApps {
        self.observation.absent.remove(id);
        self.observation.immutable_changes.remove(id);
        self.observation.verdicts.remove(id);
        self.unhealthy_objects.remove(id);
        self.unbound_claims.remove(id);
        let is_wanted_by_another = self.undesired_objects.remove(id) && self.desired.ids().contains(id);
        match self.observation.remove(id, || self.desired.ids().contains(id)) {
            // Another app may wait until it is gone.
            Some(live) if live.deleting || is_wanted_by_another => AffectedApps::Everything,
            Some(live) => AffectedApps::App(Arc::clone(&live.app)),
            None => AffectedApps::Nothing,
        }
    }
}

/// Keeps derived facts of an unchanged object.
pub(super) fn keep_settled(known: Option<&LiveObject>, live: LiveObject) -> LiveObject {
    let live = reconcile::keep_replicas_owner(known, live);
    let is_comparable = |known: &&LiveObject| {
        let paths = |live: &LiveObject| live.ignored.as_ref().map(|ignored| ignored.paths.clone());
        known.uid == live.uid && known.hash == live.hash && paths(known) == paths(&live)
    };
    let Some(known) = known.filter(is_comparable) else { return live };
    // Changes by others were found by a comparison with the render of that time. While another commit waits, nothing would find
    // them again.
    let is_known = |it: &OwnershipEvidence| {
        matches!(it, OwnershipEvidence::Changes(_)) && known.ownership.fields == live.ownership.fields
    };
    let changes = known.evidence.clone().filter(is_known);
    if known.settled_ownership.is_none() {
        return LiveObject { evidence: changes.or(live.evidence), ..live };
    }
    let overruled = known.is_overruled && live.ownership.values == known.ownership.values;
    LiveObject {
        settled_ownership: known.settled_ownership.clone(),
        is_overruled: overruled,
        evidence: changes,
        ..live
    }
}

fn is_older(one: &str, other: &str) -> bool {
    version_number(one).zip(version_number(other)).is_some_and(|(one, other)| one < other)
}
