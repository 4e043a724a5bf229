//! The state of one app on one cluster.
//!
//! An object that was repaired and changed again is delayed by itself (`TargetEntry::repair_delay`). Other objects do not wait
//! for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::causes::WorkloadCauses;
use super::claim_consumers::ClaimConsumers;
use super::crash_log_lines::CrashLogLines;
use super::jitter::jittered;
use super::versions::AppVersions;
use crate::model::{
    App, Diagnostic, Digest, FieldOwnership, ObjectId, Observation, RenderedObject, RenderedTarget, Revision,
};
use crate::plan::{ApplySettings, ObjectDiff, Plan, PlanAction, PlanStep, StepReason};
use crate::render::{TargetRender, is_awaited};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A refusal stays until something changes; it is retried only now and then.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// While the leader's Lease is not renewed. That is not the fault of the target, so the delay does not grow.
const LEASE_PAUSE: Duration = Duration::from_secs(5);
/// Repairs in a row after which the log mentions it.
const LOGGED_REPAIRS: u32 = 3;
/// A doubt about an object that another manager wrote is decided at most this often.
const DOUBT_INTERVAL: Duration = Duration::from_secs(60);

/// Why the last reconciliation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileFailure {
    pub text: String,
    /// The same request would be refused again.
    pub lasting: bool,
    /// Nothing was sent: the leader's Lease was not renewed in time.
    pub awaits_lease: bool,
    /// Objects that were refused for good, with their state at that time: another state is another request.
    pub refused: Vec<(ObjectId, Option<ObjectFingerprint>)>,
}

impl ReconcileFailure {
    pub fn lasting(text: String) -> Self {
        Self { text, lasting: true, awaits_lease: false, refused: Vec::new() }
    }
}

/// Distinguishes two states of an object, apart from its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFingerprint {
    uid: Arc<str>,
    generation: i64,
    ownership: FieldOwnership,
}

impl ObjectFingerprint {
    pub fn of(observation: &Observation, id: &ObjectId) -> Option<Self> {
        let live = observation.objects.get(id)?;
        let (uid, ownership) = (Arc::clone(&live.uid), live.ownership.clone());
        Some(Self { uid, generation: live.generation, ownership })
    }
}

#[derive(Debug)]
pub struct TargetEntry {
    pub app: Arc<App>,
    pub settings: Arc<ApplySettings>,
    /// The commit whose status reports it.
    pub revision: Revision,
    /// The render of the head.
    pub head: Result<Arc<RenderedTarget>, Vec<Diagnostic>>,
    /// The effective render: in an app with waves, units may have another render than that of the head.
    pub render: Result<Arc<RenderedTarget>, Vec<Diagnostic>>,
    /// In an app with waves: the render of some unit is not decided yet, so nothing is written.
    pub is_undecided: bool,
    pub versions: AppVersions,
    /// Of the effective render, computed at the first use.
    claim_uses: OnceLock<ClaimConsumers>,
    /// The target must be processed.
    pub is_due: bool,
    /// Rendered for other capabilities of its cluster: it must be rendered again before an apply.
    pub is_stale: bool,
    /// Failures in a row.
    pub attempts: u32,
    pub retry_at: Option<Instant>,
    /// The objects to write were repaired a moment ago. They are not repaired again before this time.
    pub repair_delayed_until: Option<Instant>,
    /// Next check of an obstacle that no watch event reports.
    pub recheck_at: Option<Instant>,
    /// Such checks in a row.
    pub rechecks: u32,
    /// When a change of a refused object last ended the delay, and how often in a row.
    last_wake: Option<(Instant, u32)>,
    pub plan: Option<Arc<Plan>>,
    pub failure: Option<ReconcileFailure>,
    /// Why its pods are not ready.
    pub causes: WorkloadCauses,
    /// The log lines before the crashes of this revision.
    pub crash_logs: CrashLogLines,
    /// Objects that another manager wrote, and when an apply last checked whether their values are the same.
    doubts_decided_at: BTreeMap<ObjectId, Instant>,
    /// What a plan, by its digest, would change in the objects.
    pub dry_run_result: Option<(Digest, Arc<Vec<ObjectDiff>>)>,
    /// The last apply without an error.
    applied: Option<LastApply>,
}

#[derive(Debug)]
struct LastApply {
    rendered: Digest,
    at: Instant,
    /// A release with hooks is written in several steps.
    written: BTreeSet<ObjectId>,
    /// Repaired objects: written again without a change of the render.
    repairs: BTreeMap<ObjectId, DriftRepair>,
}

/// A repaired object that a person or a program keeps changing, for example a webhook or another instance of the same name.
#[derive(Clone, Copy, Debug)]
struct DriftRepair {
    /// Repairs in a row.
    times: u32,
    at: Instant,
}

impl DriftRepair {
    /// The next repair waits until then.
    fn delay_until(self) -> Instant {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.times.saturating_sub(1).min(9));
        self.at + pause.min(LONGEST_PAUSE)
    }
}

impl LastApply {
    /// The next state, and the objects that were repaired for the third time now. If nothing was written that could be reverted
    /// (an apply that only decided a doubt), the earlier times stay.
    fn after(
        before: Option<Self>,
        rendered: Digest,
        mut written: BTreeSet<ObjectId>,
        now: Instant,
    ) -> (Option<Self>, Vec<ObjectId>) {
        if written.is_empty() {
            return (before, Vec::new());
        }
        let (mut put_back, mut stubborn) = (BTreeMap::new(), Vec::new());
        if let Some(before) = before.filter(|it| it.rendered == rendered && now - it.at < LONGEST_PAUSE * 2) {
            put_back = before.repairs;
            put_back.retain(|_, it: &mut DriftRepair| now - it.at < LONGEST_PAUSE * 2);
            for id in written.intersection(&before.written) {
                let times = put_back.get(id).map_or(0, |it| it.times).saturating_add(1);
                put_back.insert(id.clone(), DriftRepair { times, at: now });
                if times == LOGGED_REPAIRS {
                    stubborn.push(id.clone());
                }
            }
            written.extend(before.written);
        }
        (Some(Self { rendered, at: now, written, repairs: put_back }), stubborn)
    }
}

impl TargetEntry {
    pub fn new(app: Arc<App>, settings: Arc<ApplySettings>, (revision, render): TargetRender) -> Self {
        Self {
            versions: AppVersions::of(&render, &app),
            claim_uses: OnceLock::new(),
            app,
            settings,
            revision,
            head: render.clone(),
            render,
            is_undecided: false,
            is_due: true,
            is_stale: false,
            attempts: 0,
            retry_at: None,
            repair_delayed_until: None,
            recheck_at: None,
            rechecks: 0,
            last_wake: None,
            plan: None,
            failure: None,
            causes: WorkloadCauses::default(),
            crash_logs: CrashLogLines::default(),
            doubts_decided_at: BTreeMap::new(),
            dry_run_result: None,
            applied: None,
        }
    }

    /// Why it cannot be rendered yet; `None` if it is rendered or has an error.
    pub fn awaited(&self) -> Option<&Diagnostic> {
        self.head.as_ref().err().filter(|_| is_awaited(&self.head))?.first()
    }

    /// Whether this is still the effective render.
    pub fn has_render(&self, rendered: Digest) -> bool {
        self.render.as_ref().is_ok_and(|it| it.digest() == rendered)
    }

    /// Sets the render of a new revision. Equal objects go on undisturbed. Returns whether the objects changed.
    pub fn update(
        &mut self,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        (revision, render): TargetRender,
    ) -> bool {
        let is_other =
            !is_same_render(&self.render, &render) || self.settings != settings || self.is_undecided;
        self.app = app;
        self.settings = settings;
        self.revision = revision;
        self.head = render.clone();
        self.render = render;
        self.is_undecided = false;
        if is_other {
            self.reset_for_render();
        }
        is_other
    }

    /// Sets the head of an app in waves. The effective render stays until the decision. Returns whether the head render changed.
    pub fn update_head(
        &mut self,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        (revision, head): TargetRender,
    ) -> bool {
        let is_other = !is_same_render(&self.head, &head) || self.settings != settings;
        let is_first = self.render.is_err();
        if self.settings != settings || is_first {
            self.reset_for_render();
        }
        if is_first {
            self.render = head.clone();
            self.is_undecided = true;
        }
        self.app = app;
        self.settings = settings;
        self.revision = revision;
        self.head = head;
        is_other
    }

    /// Sets the effective render of an app in waves. Returns whether it changed.
    pub fn set_render(&mut self, rendered: Arc<RenderedTarget>, is_undecided: bool) -> bool {
        let render = Ok(rendered);
        let is_other = !is_same_render(&self.render, &render) || self.is_undecided != is_undecided;
        self.render = render;
        self.is_undecided = is_undecided;
        if is_other {
            self.reset_for_render();
        }
        is_other
    }

    /// Drops the state of the previous render.
    fn reset_for_render(&mut self) {
        self.versions = AppVersions::of(&self.render, &self.app);
        self.claim_uses = OnceLock::new();
        self.is_due = true;
        self.causes.clear();
        self.crash_logs.clear();
        self.failure = None;
        self.attempts = 0;
        self.retry_at = None;
        self.recheck_at = None;
        self.rechecks = 0;
        self.plan = None;
        self.applied = None;
    }

    /// The workloads that use its volume claims.
    pub fn claim_uses(&self) -> &ClaimConsumers {
        self.claim_uses.get_or_init(|| match &self.render {
            Ok(rendered) => ClaimConsumers::of(&rendered.objects),
            Err(_) => ClaimConsumers::default(),
        })
    }

    /// Retries after 1 s, 2 s, 4 s … 5 min, with jitter; refusals begin at 30 s.
    pub fn record_failure(&mut self, failure: ReconcileFailure, now: Instant) {
        if failure.awaits_lease {
            self.retry_at = Some(now + self.nth_pause(LEASE_PAUSE, 0));
        } else {
            self.pause(if failure.lasting { REFUSED_PAUSE } else { FIRST_PAUSE }, now);
        }
        self.failure = Some(failure);
    }

    /// Records objects whose doubts an apply has decided.
    pub fn record_decided_doubts(&mut self, decided: Vec<ObjectId>, now: Instant) {
        self.doubts_decided_at.retain(|_, at| *at + DOUBT_INTERVAL > now);
        self.doubts_decided_at.extend(decided.into_iter().map(|id| (id, now)));
    }

    pub fn recently_decided_doubts(&self, now: Instant) -> BTreeSet<ObjectId> {
        let lately = self.doubts_decided_at.iter().filter(|(_, at)| **at + DOUBT_INTERVAL > now);
        lately.map(|(id, _)| id.clone()).collect()
    }

    /// A doubt was delayed: sets the next check.
    pub fn schedule_doubt(&mut self, now: Instant) {
        let asks_at = self.doubts_decided_at.values().map(|at| *at + DOUBT_INTERVAL).filter(|at| *at > now);
        self.recheck_at = asks_at.chain(self.recheck_at).min();
    }

    /// An obstacle exists that no watch event reports: checks again after 30 s, 60 s … 5 min, or with `soon` after 1 s, 2 s, 4 s
    /// …. An event that removes the obstacle comes first.
    pub fn schedule_recheck(&mut self, soon: bool, now: Instant) {
        if self.recheck_at.is_none() {
            let first = if soon { FIRST_PAUSE } else { REFUSED_PAUSE };
            self.recheck_at = Some(now + self.nth_pause(first, self.rechecks));
            self.rechecks = self.rechecks.saturating_add(1);
        }
    }

    /// Objects with immutable changes that are not replaced. Only the cluster knows whether the change is possible now, for
    /// example for a claim that was not bound. The last answer stays until the next one.
    pub fn retry_irreplaceable(&mut self) -> Vec<ObjectId> {
        let Some(plan) = self.plan.as_deref() else { return Vec::new() };
        let is_one = |step: &&PlanStep| matches!(step.reason, StepReason::CannotReplace { .. });
        let objects: Vec<ObjectId> =
            plan.steps.iter().filter(is_one).map(|step| step.object.clone()).collect();
        let told =
            plan.steps.iter().find(|step| step.action == PlanAction::Refuse).filter(|_| !objects.is_empty());
        if let Some(step) = told {
            let text = format!("{}: {}", step.object, step.reason);
            self.failure = Some(ReconcileFailure::lasting(text));
        }
        objects
    }

    /// The obstacle has changed.
    pub fn reset_rechecks(&mut self) {
        (self.rechecks, self.recheck_at) = (0, None);
    }

    /// Ends the delay when a refused object changed. Frequent changes end it ever more seldom.
    pub fn wake_if_changed(&mut self, observation: &Observation, now: Instant) {
        let refused = self.failure.iter().flat_map(|failure| &failure.refused);
        if self.retry_at.is_some()
            && refused.into_iter().any(|(id, seen)| ObjectFingerprint::of(observation, id) != *seen)
        {
            let before = self.last_wake.filter(|(at, _)| now - *at < LONGEST_PAUSE * 2);
            let soon = before.map_or(now, |(at, times)| now.max(at + self.nth_pause(FIRST_PAUSE, times)));
            if soon <= now {
                self.last_wake = Some((now, before.map_or(0, |(_, times)| times + 1)));
            }
            self.retry_at = self.retry_at.map(|at| at.min(soon));
        }
    }

    fn pause(&mut self, first: Duration, now: Instant) {
        self.retry_at = Some(now + self.nth_pause(first, self.attempts));
        self.attempts = self.attempts.saturating_add(1);
    }

    fn nth_pause(&self, first: Duration, number: u32) -> Duration {
        let pause = first.saturating_mul(1 << number.min(9)).min(LONGEST_PAUSE);
        let cluster = self.render.as_ref().ok().map(|rendered| &rendered.cluster);
        jittered(pause, 10, &(&self.app.id, cluster), number)
    }

    /// Records an apply. If the same objects must be written again soon, something reverts them, and the next repair waits 1 s, 2
    /// s, 4 s … 5 min. Returns the objects that were repaired for the third time now.
    pub fn applied(&mut self, rendered: Digest, objects: BTreeSet<ObjectId>, now: Instant) -> Vec<ObjectId> {
        let (applied, stubborn) = LastApply::after(self.applied.take(), rendered, objects, now);
        self.applied = applied;
        self.record_success();
        stubborn
    }

    /// Repairs in a row of this object, if it changed again.
    pub fn repair_count(&self, object: &ObjectId) -> Option<u32> {
        let put_back = self.applied.as_ref()?.repairs.get(object)?;
        (put_back.at.elapsed() < LONGEST_PAUSE * 2).then_some(put_back.times)
    }

    /// The end of the delay if the plan only repairs objects that were repaired a moment ago. Other changes are written together
    /// with the repairs. A pause without changes does not reset the delay, or a program that reverts a second later would get an
    /// answer each time. `unknown`: objects to look up, which may have been deleted or have lost our label.
    pub fn repair_delay<'a>(
        &self,
        plan: &'a Plan,
        unknown: impl Iterator<Item = &'a ObjectId>,
        now: Instant,
    ) -> Option<Instant> {
        let applied = self.applied.as_ref().filter(|it| it.rendered == plan.rendered)?;
        let written = plan.writes().filter(|step| !step.is_drift_check()).map(|step| &step.object);
        let until = |id: &ObjectId| applied.repairs.get(id).map_or(now, |it| it.delay_until());
        written.chain(unknown).map(until).min().filter(|at| *at > now)
    }

    /// Resets the delays: the next try comes at once.
    pub fn reset_retries(&mut self) {
        self.attempts = 0;
        self.retry_at = None;
    }

    pub fn record_success(&mut self) {
        self.attempts = 0;
        self.recheck_at = None;
        self.retry_at = None;
        self.failure = None;
    }
}

type RenderResult = Result<Arc<RenderedTarget>, Vec<Diagnostic>>;

fn is_same_render(old: &RenderResult, new: &RenderResult) -> bool {
    match (old, new) {
        (Ok(old), Ok(new)) => {
            Arc::ptr_eq(&old.objects, &new.objects) || are_same_objects(&old.objects, &new.objects)
        }
        _ => false,
    }
}

/// Fields in another order are equal, and have the same hash.
fn are_same_objects(old: &[RenderedObject], new: &[RenderedObject]) -> bool {
    fn known(it: &RenderedObject) -> impl PartialEq {
        (&it.id, &it.kind, it.hash, &it.source, it.hook)
    }
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| known(old) == known(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_repairs_are_not_counted_in_a_row() {
        let (rendered, begin) = (Digest::of(b"all"), Instant::now());
        let web = ObjectId::new("", "ConfigMap", Some("shop"), "web");
        let after = |before, minute: u64, what: &[&ObjectId]| {
            let (what, now) =
                (what.iter().map(|id| (*id).clone()).collect(), begin + Duration::from_secs(60 * minute));
            LastApply::after(before, rendered, what, now)
        };
        let times = |known: &Option<LastApply>| known.as_ref()?.repairs.get(&web).map(|it| it.times);
        let (mut known, _) = after(None, 0, &[&web]);
        for (minute, expected) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
            let (next, told) = after(known, minute, &[&web]);
            assert_eq!((times(&next), told.len()), (Some(expected), usize::from(expected == 3)));
            known = next;
        }
        // One doubt a minute.
        for minute in 5..60 {
            known = after(known, minute, &[]).0;
        }
        let (known, told) = after(known, 60, &[&web]);
        assert_eq!((times(&known), told.len()), (None, 0));
    }
}
