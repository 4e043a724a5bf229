//! The state of one app on one cluster.
//!
//! An object that was repaired and changed again is delayed by itself (`TargetEntry::leaves_until`). Other objects do not wait
//! for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::causes::Causes;
use super::claims::ClaimUses;
use super::jitter::jittered;
use super::last_lines::LastLines;
use super::versions::Versions;
use crate::model::{
    App, Diagnostic, Digest, ObjectId, Observation, Ownership, Rendered, RenderedObject, Revision,
};
use crate::plan::{Action, ApplySettings, Difference, Plan, Reason, Step};
use crate::render::{Render, is_awaited};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A refusal stays until something changes; it is retried only now and then.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// While the leader's Lease is not renewed. That is not the fault of the target, so the delay does not grow.
const LEASE_PAUSE: Duration = Duration::from_secs(5);
/// Repairs in a row after which the log mentions it.
const TOLD_AT: u32 = 3;
/// A doubt about an object that another manager wrote is decided at most this often.
const DOUBT_EVERY: Duration = Duration::from_secs(60);

/// Why the last reconciliation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub text: String,
    /// The same request would be refused again.
    pub lasting: bool,
    /// Nothing was sent: the leader's Lease was not renewed in time.
    pub awaits_lease: bool,
    /// Objects that were refused for good, with their state at that time: another state is another request.
    pub refused: Vec<(ObjectId, Option<Seen>)>,
}

impl Failure {
    pub fn lasting(text: String) -> Self {
        Self { text, lasting: true, awaits_lease: false, refused: Vec::new() }
    }
}

/// Distinguishes two states of an object, apart from its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    uid: Arc<str>,
    generation: i64,
    ownership: Ownership,
}

impl Seen {
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
    pub head: Result<Arc<Rendered>, Vec<Diagnostic>>,
    /// The effective render: in an app with waves, units may have another render than that of the head.
    pub render: Result<Arc<Rendered>, Vec<Diagnostic>>,
    /// In an app with waves: the render of some unit is not decided yet, so nothing is written.
    pub is_undecided: bool,
    pub versions: Versions,
    /// Of the effective render, computed at the first use.
    claim_uses: OnceLock<ClaimUses>,
    /// The target must be processed.
    pub due: bool,
    /// Rendered for other capabilities of its cluster: it must be rendered again before an apply.
    pub stale: bool,
    /// Failures in a row.
    pub attempts: u32,
    pub retry_at: Option<Instant>,
    /// The objects to write were repaired a moment ago. They are not repaired again before this time.
    pub left_until: Option<Instant>,
    /// Next check of an obstacle that no watch event reports.
    pub look_at: Option<Instant>,
    /// Such checks in a row.
    pub looks: u32,
    /// When a change of a refused object last ended the delay, and how often in a row.
    woken: Option<(Instant, u32)>,
    pub plan: Option<Arc<Plan>>,
    pub failure: Option<Failure>,
    /// Why its pods are not ready.
    pub causes: Causes,
    /// The log lines before the crashes of this revision.
    pub last_lines: LastLines,
    /// Objects that another manager wrote, and when an apply last checked whether their values are the same.
    asked: BTreeMap<ObjectId, Instant>,
    /// What a plan, by its digest, would change in the objects.
    pub foreseen: Option<(Digest, Arc<Vec<Difference>>)>,
    /// The last apply without an error.
    applied: Option<Applied>,
}

#[derive(Debug)]
struct Applied {
    rendered: Digest,
    at: Instant,
    /// A release with hooks is written in several steps.
    written: BTreeSet<ObjectId>,
    /// Repaired objects: written again without a change of the render.
    put_back: BTreeMap<ObjectId, PutBack>,
}

/// A repaired object that a person or a program keeps changing, for example a webhook or another instance of the same name.
#[derive(Clone, Copy, Debug)]
struct PutBack {
    /// Repairs in a row.
    times: u32,
    at: Instant,
}

impl PutBack {
    /// The next repair waits until then.
    fn until(self) -> Instant {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.times.saturating_sub(1).min(9));
        self.at + pause.min(LONGEST_PAUSE)
    }
}

impl Applied {
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
            put_back = before.put_back;
            put_back.retain(|_, it: &mut PutBack| now - it.at < LONGEST_PAUSE * 2);
            for id in written.intersection(&before.written) {
                let times = put_back.get(id).map_or(0, |it| it.times).saturating_add(1);
                put_back.insert(id.clone(), PutBack { times, at: now });
                if times == TOLD_AT {
                    stubborn.push(id.clone());
                }
            }
            written.extend(before.written);
        }
        (Some(Self { rendered, at: now, written, put_back }), stubborn)
    }
}

impl TargetEntry {
    pub fn new(app: Arc<App>, settings: Arc<ApplySettings>, (revision, render): Render) -> Self {
        Self {
            versions: Versions::of(&render, &app),
            claim_uses: OnceLock::new(),
            app,
            settings,
            revision,
            head: render.clone(),
            render,
            is_undecided: false,
            due: true,
            stale: false,
            attempts: 0,
            retry_at: None,
            left_until: None,
            look_at: None,
            looks: 0,
            woken: None,
            plan: None,
            failure: None,
            causes: Causes::default(),
            last_lines: LastLines::default(),
            asked: BTreeMap::new(),
            foreseen: None,
            applied: None,
        }
    }

    /// Why it cannot be rendered yet; `None` if it is rendered or has an error.
    pub fn awaited(&self) -> Option<&Diagnostic> {
        self.head.as_ref().err().filter(|_| is_awaited(&self.head))?.first()
    }

    /// Whether this is still the effective render.
    pub fn renders(&self, rendered: Digest) -> bool {
        self.render.as_ref().is_ok_and(|it| it.digest() == rendered)
    }

    /// Sets the render of a new revision. Equal objects go on undisturbed. Returns whether the objects changed.
    pub fn take_over(
        &mut self,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        (revision, render): Render,
    ) -> bool {
        let is_other = !is_same(&self.render, &render) || self.settings != settings || self.is_undecided;
        self.app = app;
        self.settings = settings;
        self.revision = revision;
        self.head = render.clone();
        self.render = render;
        self.is_undecided = false;
        if is_other {
            self.begin_render();
        }
        is_other
    }

    /// Sets the head of an app in waves. The effective render stays until the decision. Returns whether the head render changed.
    pub fn take_head(
        &mut self,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        (revision, head): Render,
    ) -> bool {
        let is_other = !is_same(&self.head, &head) || self.settings != settings;
        let is_first = self.render.is_err();
        if self.settings != settings || is_first {
            self.begin_render();
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
    pub fn choose(&mut self, rendered: Arc<Rendered>, is_undecided: bool) -> bool {
        let render = Ok(rendered);
        let is_other = !is_same(&self.render, &render) || self.is_undecided != is_undecided;
        self.render = render;
        self.is_undecided = is_undecided;
        if is_other {
            self.begin_render();
        }
        is_other
    }

    /// Drops the state of the previous render.
    fn begin_render(&mut self) {
        self.versions = Versions::of(&self.render, &self.app);
        self.claim_uses = OnceLock::new();
        self.due = true;
        self.causes.clear();
        self.last_lines.clear();
        self.failure = None;
        self.attempts = 0;
        self.retry_at = None;
        self.look_at = None;
        self.looks = 0;
        self.plan = None;
        self.applied = None;
    }

    /// The workloads that use its volume claims.
    pub fn claim_uses(&self) -> &ClaimUses {
        self.claim_uses.get_or_init(|| match &self.render {
            Ok(rendered) => ClaimUses::of(&rendered.objects),
            Err(_) => ClaimUses::default(),
        })
    }

    /// Retries after 1 s, 2 s, 4 s … 5 min, with jitter; refusals begin at 30 s.
    pub fn failed(&mut self, failure: Failure, now: Instant) {
        if failure.awaits_lease {
            self.retry_at = Some(now + self.nth_pause(LEASE_PAUSE, 0));
        } else {
            self.pause(if failure.lasting { REFUSED_PAUSE } else { FIRST_PAUSE }, now);
        }
        self.failure = Some(failure);
    }

    /// Records objects whose doubts an apply has decided.
    pub fn note_asked(&mut self, decided: Vec<ObjectId>, now: Instant) {
        self.asked.retain(|_, at| *at + DOUBT_EVERY > now);
        self.asked.extend(decided.into_iter().map(|id| (id, now)));
    }

    pub fn asked_lately(&self, now: Instant) -> BTreeSet<ObjectId> {
        let lately = self.asked.iter().filter(|(_, at)| **at + DOUBT_EVERY > now);
        lately.map(|(id, _)| id.clone()).collect()
    }

    /// A doubt was delayed: sets the next check.
    pub fn wait_to_ask(&mut self, now: Instant) {
        let asks_at = self.asked.values().map(|at| *at + DOUBT_EVERY).filter(|at| *at > now);
        self.look_at = asks_at.chain(self.look_at).min();
    }

    /// An obstacle exists that no watch event reports: checks again after 30 s, 60 s … 5 min, or with `soon` after 1 s, 2 s, 4 s
    /// …. An event that removes the obstacle comes first.
    pub fn look_again(&mut self, soon: bool, now: Instant) {
        if self.look_at.is_none() {
            let first = if soon { FIRST_PAUSE } else { REFUSED_PAUSE };
            self.look_at = Some(now + self.nth_pause(first, self.looks));
            self.looks = self.looks.saturating_add(1);
        }
    }

    /// Objects with immutable changes that are not replaced. Only the cluster knows whether the change is possible now, for
    /// example for a claim that was not bound. The last answer stays until the next one.
    pub fn try_what_is_not_replaced(&mut self) -> Vec<ObjectId> {
        let Some(plan) = self.plan.as_deref() else { return Vec::new() };
        let is_one = |step: &&Step| matches!(step.reason, Reason::CannotReplace { .. });
        let objects: Vec<ObjectId> =
            plan.steps.iter().filter(is_one).map(|step| step.object.clone()).collect();
        let told =
            plan.steps.iter().find(|step| step.action == Action::Refuse).filter(|_| !objects.is_empty());
        if let Some(step) = told {
            let text = format!("{}: {}", step.object, step.reason);
            self.failure = Some(Failure::lasting(text));
        }
        objects
    }

    /// The obstacle has changed.
    pub fn look_anew(&mut self) {
        (self.looks, self.look_at) = (0, None);
    }

    /// Ends the delay when a refused object changed. Frequent changes end it ever more seldom.
    pub fn wake_if_changed(&mut self, observation: &Observation, now: Instant) {
        let refused = self.failure.iter().flat_map(|failure| &failure.refused);
        if self.retry_at.is_some() && refused.into_iter().any(|(id, seen)| Seen::of(observation, id) != *seen)
        {
            let before = self.woken.filter(|(at, _)| now - *at < LONGEST_PAUSE * 2);
            let soon = before.map_or(now, |(at, times)| now.max(at + self.nth_pause(FIRST_PAUSE, times)));
            if soon <= now {
                self.woken = Some((now, before.map_or(0, |(_, times)| times + 1)));
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
        let (applied, stubborn) = Applied::after(self.applied.take(), rendered, objects, now);
        self.applied = applied;
        self.went_through();
        stubborn
    }

    /// Repairs in a row of this object, if it changed again.
    pub fn times_put_back(&self, object: &ObjectId) -> Option<u32> {
        let put_back = self.applied.as_ref()?.put_back.get(object)?;
        (put_back.at.elapsed() < LONGEST_PAUSE * 2).then_some(put_back.times)
    }

    /// The end of the delay if the plan only repairs objects that were repaired a moment ago. Other changes are written together
    /// with the repairs. A pause without changes does not reset the delay, or a program that reverts a second later would get an
    /// answer each time. `unknown`: objects to look up, which may have been deleted or have lost our label.
    pub fn leaves_until<'a>(
        &self,
        plan: &'a Plan,
        unknown: impl Iterator<Item = &'a ObjectId>,
        now: Instant,
    ) -> Option<Instant> {
        let applied = self.applied.as_ref().filter(|it| it.rendered == plan.rendered)?;
        let written = plan.writes().filter(|step| !step.decides_a_doubt()).map(|step| &step.object);
        let until = |id: &ObjectId| applied.put_back.get(id).map_or(now, |it| it.until());
        written.chain(unknown).map(until).min().filter(|at| *at > now)
    }

    /// Resets the delays: the next try comes at once.
    pub fn begin_anew(&mut self) {
        self.attempts = 0;
        self.retry_at = None;
    }

    pub fn went_through(&mut self) {
        self.attempts = 0;
        self.look_at = None;
        self.retry_at = None;
        self.failure = None;
    }
}

type Rendering = Result<Arc<Rendered>, Vec<Diagnostic>>;

fn is_same(old: &Rendering, new: &Rendering) -> bool {
    match (old, new) {
        (Ok(old), Ok(new)) => Arc::ptr_eq(&old.objects, &new.objects) || are_same(&old.objects, &new.objects),
        _ => false,
    }
}

/// Fields in another order are equal, and have the same hash.
fn are_same(old: &[RenderedObject], new: &[RenderedObject]) -> bool {
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
            Applied::after(before, rendered, what, now)
        };
        let times = |known: &Option<Applied>| known.as_ref()?.put_back.get(&web).map(|it| it.times);
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
