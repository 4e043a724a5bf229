//! What the controller keeps of one app on one cluster.
//!
//! What was applied again after somebody changed it, and is changed again, is delayed object by object (`TargetEntry::leaves_until`).
//! Nothing beside it waits.

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
/// A refusal is final until somebody changes something; it is only looked at again now and then.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// While the lease of the leader is not renewed, which is nobody's fault here: it does not grow.
const LEASE_PAUSE: Duration = Duration::from_secs(5);
/// What is put back so often in a row is told in the log.
const TOLD_AT: u32 = 3;
/// Whether an object that somebody else wrote is still what it was is asked at most this often.
const DOUBT_EVERY: Duration = Duration::from_secs(60);

/// Why the last reconciliation did not go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub text: String,
    /// The same request will be refused again.
    pub lasting: bool,
    /// Nothing was sent: the lease of the leader was not renewed in time.
    pub awaits_lease: bool,
    /// Objects that were refused for good, as they were then: another state of one is another request.
    pub refused: Vec<(ObjectId, Option<Seen>)>,
}

impl Failure {
    pub fn lasting(text: String) -> Self {
        Self { text, lasting: true, awaits_lease: false, refused: Vec::new() }
    }
}

/// What tells one state of an object from another, but for its status.
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
    /// The commit that it is told on.
    pub revision: Revision,
    /// What the head makes of it.
    pub head: Result<Arc<Rendered>, Vec<Diagnostic>>,
    /// What it shall be now: of an app in waves, units may have another render than the head's.
    pub render: Result<Arc<Rendered>, Vec<Diagnostic>>,
    /// Of an app in waves: it is not known yet what some unit shall have, so nothing is written.
    pub is_undecided: bool,
    pub versions: Versions,
    /// Of what is rendered, once it was asked for.
    claim_uses: OnceLock<ClaimUses>,
    /// Something changed: look at it again.
    pub due: bool,
    /// Its cluster is not what it was rendered for: it is rendered again, and not applied before.
    pub stale: bool,
    /// Failures in a row.
    pub attempts: u32,
    pub retry_at: Option<Instant>,
    /// What would be written was put back a moment ago, and is left as it is until then.
    pub left_until: Option<Instant>,
    /// Something is in the way that no watch tells of: looked at again then.
    pub look_at: Option<Instant>,
    /// How often that was found in a row.
    pub looks: u32,
    /// When somebody's change of what was refused last woke us, and how often in a row.
    woken: Option<(Instant, u32)>,
    pub plan: Option<Arc<Plan>>,
    pub failure: Option<Failure>,
    /// Why its pods are not ready.
    pub causes: Causes,
    /// What was written before the crashes of this revision.
    pub last_lines: LastLines,
    /// Objects that somebody else wrote, and when an apply last asked whether they are still what they were.
    asked: BTreeMap<ObjectId, Instant>,
    /// What a plan, by its digest, would make of the objects.
    pub foreseen: Option<(Digest, Arc<Vec<Difference>>)>,
    /// What was applied last without an error.
    applied: Option<Applied>,
}

#[derive(Debug)]
struct Applied {
    rendered: Digest,
    at: Instant,
    /// A release with hooks is written in several steps.
    written: BTreeSet<ObjectId>,
    /// What was written that had been already.
    put_back: BTreeMap<ObjectId, PutBack>,
}

/// An object that somebody changes, or something: a webhook, another instance of the same name.
#[derive(Clone, Copy, Debug)]
struct PutBack {
    /// How often in a row.
    times: u32,
    at: Instant,
}

impl PutBack {
    /// It is left as it is until then.
    fn until(self) -> Instant {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.times.saturating_sub(1).min(9));
        self.at + pause.min(LONGEST_PAUSE)
    }
}

impl Applied {
    /// With what was put back for the third time now. Where nothing was written that could be undone (an apply that only decided a
    /// doubt), what was before is as long ago as it was.
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

    /// What it waits for before it can be rendered; nothing where it is rendered, or has a mistake.
    pub fn awaited(&self) -> Option<&Diagnostic> {
        self.head.as_ref().err().filter(|_| is_awaited(&self.head))?.first()
    }

    /// It still is what somebody asked about.
    pub fn renders(&self, rendered: Digest) -> bool {
        self.render.as_ref().is_ok_and(|it| it.digest() == rendered)
    }

    /// A new revision. What renders to the same objects goes on undisturbed; whether it does not.
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

    /// A new revision of an app in waves. What the target shall be stays as it is until that is decided; whether the head makes
    /// something else of it.
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

    /// What a target of an app in waves shall be from now on; whether that is something else than before.
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

    /// Nothing that was known of the render before holds.
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

    /// Which of its workloads use its volume claims.
    pub fn claim_uses(&self) -> &ClaimUses {
        self.claim_uses.get_or_init(|| match &self.render {
            Ok(rendered) => ClaimUses::of(&rendered.objects),
            Err(_) => ClaimUses::default(),
        })
    }

    /// Tries again after 1 s, 2 s, 4 s … 5 min, with jitter; refusals begin at 30 s.
    pub fn failed(&mut self, failure: Failure, now: Instant) {
        if failure.awaits_lease {
            self.retry_at = Some(now + self.nth_pause(LEASE_PAUSE, 0));
        } else {
            self.pause(if failure.lasting { REFUSED_PAUSE } else { FIRST_PAUSE }, now);
        }
        self.failure = Some(failure);
    }

    /// An apply has decided the doubts about these objects.
    pub fn note_asked(&mut self, decided: Vec<ObjectId>, now: Instant) {
        self.asked.retain(|_, at| *at + DOUBT_EVERY > now);
        self.asked.extend(decided.into_iter().map(|id| (id, now)));
    }

    pub fn asked_lately(&self, now: Instant) -> BTreeSet<ObjectId> {
        let lately = self.asked.iter().filter(|(_, at)| **at + DOUBT_EVERY > now);
        lately.map(|(id, _)| id.clone()).collect()
    }

    /// A doubt was put off: looks again when it may be decided, or before.
    pub fn wait_to_ask(&mut self, now: Instant) {
        let asks_at = self.asked.values().map(|at| *at + DOUBT_EVERY).filter(|at| *at > now);
        self.look_at = asks_at.chain(self.look_at).min();
    }

    /// Something is in the way that no watch tells of: looks again after 30 s, 60 s … 5 min; `soon`
    /// after 1 s, 2 s, 4 s …. An event that shows it gone comes first.
    pub fn look_again(&mut self, soon: bool, now: Instant) {
        if self.look_at.is_none() {
            let first = if soon { FIRST_PAUSE } else { REFUSED_PAUSE };
            self.look_at = Some(now + self.nth_pause(first, self.looks));
            self.looks = self.looks.saturating_add(1);
        }
    }

    /// What could not be changed and is not replaced either: whether it can be changed by now the cluster alone knows, as of a claim
    /// that was not bound. What was said of it holds until it has answered.
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

    /// What is in the way now is another thing than before.
    pub fn look_anew(&mut self) {
        (self.looks, self.look_at) = (0, None);
    }

    /// Somebody changed what was refused: what was said of it no longer holds. Whoever changes it all the time wakes us ever more
    /// seldom.
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

    /// It was applied. When the same is wanted again soon, something undoes it: the next time waits 1 s, 2 s, 4 s … 5 min. What
    /// was put back for the third time now.
    pub fn applied(&mut self, rendered: Digest, objects: BTreeSet<ObjectId>, now: Instant) -> Vec<ObjectId> {
        let (applied, stubborn) = Applied::after(self.applied.take(), rendered, objects, now);
        self.applied = applied;
        self.went_through();
        stubborn
    }

    /// How often this object was put back in a row, to be changed again.
    pub fn times_put_back(&self, object: &ObjectId) -> Option<u32> {
        let put_back = self.applied.as_ref()?.put_back.get(object)?;
        (put_back.at.elapsed() < LONGEST_PAUSE * 2).then_some(put_back.times)
    }

    /// It would write only what was put back a moment ago: until when it does not. What else is to be written takes that along. That
    /// nothing was to be done meanwhile ends no pause, or whoever undoes it a second later would be answered each time.
    /// `unknown`: what is to be looked up, which may have been deleted, or lost our label.
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

    /// The next try comes at once, and the pauses after it from the first on.
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

/// Fields in another order are the same fields, and have the same hash.
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
    fn repairs_that_lie_far_apart_are_no_row_whatever_is_decided_in_between() {
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
