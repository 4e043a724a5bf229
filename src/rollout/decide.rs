//! The decision about the units of one app.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Basis, Commit, Condition, Hold, Input, Reach, Refusal, UnitFacts, UnitId, WaveReport, WaveState,
};
use crate::model::{Digest, OnFailure, Revision};

/// Which render a unit has from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Head,
    /// The one that it has.
    Stay,
    /// That of an earlier commit.
    At(Revision),
    /// None: what is there is left as it is.
    Frozen,
    /// None: nothing is there, and nothing comes yet.
    Nothing,
    /// Something has to be known first: nothing of the target is written.
    Undecided,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub choice: Choice,
    /// Why it is not the head's.
    pub hold: Option<Hold>,
    /// It has the head's content and fails, while that counts: why.
    pub failure: Option<Arc<str>>,
}

/// What a person is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// The wave that is done.
    pub after: String,
    /// The last wave that opens with it.
    pub through: String,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub units: BTreeMap<UnitId, Verdict>,
    /// The rollout goes on: what takes something away waits.
    pub is_open: bool,
    pub waves: Vec<WaveReport>,
    pub confirmation: Option<Confirmation>,
    /// The digest is taken back from now on.
    pub refusal: Option<Refusal>,
    /// Commits that have to be known for a better answer.
    pub wants: BTreeSet<Revision>,
    /// When to decide again, if nothing happens before.
    pub deadline: Option<Timestamp>,
}

/// Decides about every unit of an app.
pub fn decide(input: &Input<'_>) -> Decision {
    Judge::of(input).decide()
}

struct Judge<'a> {
    input: &'a Input<'a>,
    /// The units of each wave, in order.
    waves: Vec<Vec<(&'a UnitId, &'a UnitFacts)>>,
    /// The first wave that has units.
    first: usize,
    is_open: bool,
    /// Some version of the app runs somewhere already.
    is_any_there: bool,
    /// Units that fail while it counts, in the order of the waves.
    failed: Vec<(&'a UnitId, &'a UnitFacts, Arc<str>)>,
    refusal: Option<Refusal>,
    wants: RefCell<BTreeSet<Revision>>,
    deadlines: RefCell<BTreeSet<Timestamp>>,
}

impl<'a> Judge<'a> {
    fn of(input: &'a Input<'a>) -> Self {
        let mut waves = vec![Vec::new(); input.waves.len()];
        for (id, unit) in input.units {
            if let Some(wave) = waves.get_mut(unit.wave) {
                wave.push((id, unit));
            }
        }
        let first = waves.iter().position(|wave| !wave.is_empty()).unwrap_or_default();
        let mut judge = Self {
            input,
            waves,
            first,
            is_open: false,
            is_any_there: input
                .units
                .values()
                .any(|unit| matches!(unit.basis, Basis::Other(_) | Basis::Half)),
            failed: Vec::new(),
            refusal: None,
            wants: RefCell::default(),
            deadlines: RefCell::default(),
        };
        judge.is_open = judge.is_open();
        judge.failed = judge.failed();
        judge.refusal = judge.refusal();
        judge
    }

    /// While a unit is behind, and then until all are done, but not for ever.
    fn is_open(&self) -> bool {
        let mut is_open = false;
        for unit in self.input.units.values().filter(|unit| !unit.is_left_out()) {
            if unit.reach == Reach::Unread || unit.is_behind {
                is_open = true;
            } else if !unit.is_done()
                && let Some(until) = unit.counts_until(self.input.policy.deadline)
                && self.input.now < until
            {
                self.deadlines.borrow_mut().insert(until);
                is_open = true;
            }
        }
        is_open
    }

    fn failed(&self) -> Vec<(&'a UnitId, &'a UnitFacts, Arc<str>)> {
        if !self.is_open || self.input.policy.paused {
            return Vec::new();
        }
        let units = self.waves.iter().flatten().filter(|(_, unit)| unit.is_ready() && unit.has_begun());
        units.filter_map(|(id, unit)| Some((*id, *unit, self.failure(unit)?))).collect()
    }

    fn failure(&self, unit: &UnitFacts) -> Option<Arc<str>> {
        let because = match &unit.condition {
            Condition::Done => return None,
            Condition::Failed(because) => return Some(Arc::clone(because)),
            Condition::Progressing(because) => because,
        };
        let deadline = self.input.policy.deadline;
        let over = unit.timers.undone_since?.checked_add(deadline).ok()?;
        if self.input.now < over {
            self.deadlines.borrow_mut().insert(over);
            return None;
        }
        Some(format!("not done for {} s: {because}", deadline.as_secs()).into())
    }

    /// Whether the head makes something else of a unit than a commit did.
    fn took_part(&self, id: &UnitId, since: &Revision) -> bool {
        match self.commit(since) {
            Commit::Known(commit) => commit.units.get(id) != self.input.head.units.get(id),
            Commit::Loading | Commit::Unknown => true,
        }
    }

    fn commit(&self, revision: &Revision) -> Commit {
        let commit = (self.input.commit)(revision);
        if commit == Commit::Loading {
            self.wants.borrow_mut().insert(revision.clone());
        }
        commit
    }

    /// Whether a person lets a refused version start again.
    fn is_retried(&self, head: &Revision) -> bool {
        let refused_at = (self.input.position)(head);
        self.input.approvals.iter().any(|approved| {
            let is_newer = approved.at.is_some_and(|at| refused_at.is_none_or(|refused_at| at < refused_at));
            approved.through.is_none() && approved.digest == self.input.digest && is_newer
        })
    }

    /// What is taken back: by this process before, by an earlier one, or from now on.
    fn refusal(&self) -> Option<Refusal> {
        let digest = self.input.digest;
        let known =
            self.input.refusal.filter(|refusal| refusal.digest == digest && !self.is_retried(&refusal.head));
        if let Some(known) = known {
            return Some(known.clone());
        }
        let marked = self.input.units.values().filter_map(|unit| {
            let refused = unit.mark.refused.as_ref().filter(|refused| refused.digest == digest)?;
            Some(Refusal { digest, head: refused.head.clone(), ran: unit.revision.clone()? })
        });
        if let Some(marked) = { marked }.find(|refusal| !self.is_retried(&refusal.head)) {
            return Some(marked);
        }
        if self.input.policy.on_failure != OnFailure::Revert {
            return None;
        }
        let head = self.input.head_revision.clone();
        let failed = self
            .failed
            .iter()
            .filter(|(_, unit, _)| self.exceeds(unit.wave, &self.failed_of(unit.wave, None)));
        let mut ran =
            failed.filter_map(|(_, unit, _)| unit.mark.previous.as_ref().map(|it| it.revision.clone()));
        ran.next().map(|ran| Refusal { digest, head, ran })
    }

    /// Units of a wave that fail; of those that changed since a commit, where one is given.
    fn failed_of(&self, wave: usize, since: Option<&Revision>) -> Vec<&UnitId> {
        let of_wave = self.failed.iter().filter(|(_, unit, _)| unit.wave == wave);
        of_wave.map(|(id, ..)| *id).filter(|id| since.is_none_or(|since| self.took_part(id, since))).collect()
    }

    /// More of a wave fail than may.
    fn exceeds(&self, wave: usize, failed: &[&UnitId]) -> bool {
        let most = self.input.waves.get(wave).map_or(0, |it| it.limits.max_failures as usize);
        failed.len() > if wave == self.first { 0 } else { most }
    }

    fn decide(self) -> Decision {
        let mut verdicts: BTreeMap<UnitId, Verdict> = BTreeMap::new();
        for wave in 0..self.waves.len() {
            let limit = self.input.waves[wave].limits.max_concurrency;
            let limit = limit.map_or(usize::MAX, |share| share.of(self.waves[wave].len()));
            let mut changing = self.waves[wave]
                .iter()
                .filter(|(_, unit)| unit.has_begun() && unit.is_ready() && !unit.is_done())
                .count();
            for (id, unit) in &self.waves[wave] {
                let mut verdict = self.verdict(id, unit);
                // A first installation comes at once, where it need not wait.
                let is_limited = unit.basis != Basis::Empty || self.is_any_there;
                if verdict.choice == Choice::Head && !unit.has_begun() && unit.is_behind && is_limited {
                    if changing >= limit {
                        let hold = Hold::Concurrency { wave: self.name(wave), limit };
                        verdict = Self::stay(unit, Some(hold));
                    } else {
                        changing += 1;
                    }
                }
                verdicts.insert((*id).clone(), verdict);
            }
        }
        let waves = self.reports(&verdicts);
        let confirmation = self.confirmation(&verdicts);
        let until = verdicts.values().filter_map(|verdict| verdict.hold.as_ref()?.until());
        self.deadlines.borrow_mut().extend(until);
        let now = self.input.now;
        Decision {
            units: verdicts,
            is_open: self.is_open,
            waves,
            confirmation,
            refusal: self.refusal,
            wants: self.wants.into_inner(),
            deadline: self.deadlines.into_inner().into_iter().find(|at| *at > now),
        }
    }

    fn name(&self, wave: usize) -> String {
        self.input.waves.get(wave).map(|wave| wave.name.clone()).unwrap_or_default()
    }

    fn verdict(&self, id: &UnitId, unit: &UnitFacts) -> Verdict {
        let of = |choice, hold| Verdict { choice, hold, failure: None };
        match &unit.reach {
            Reach::Unread => return of(Choice::Undecided, Some(Hold::Unread)),
            Reach::LeftOut(because) => {
                let hold = unit.is_behind.then(|| Hold::LeftOut { because: Arc::clone(because) });
                return match unit.basis {
                    Basis::Head => of(Choice::Head, hold),
                    Basis::Loading => of(Choice::Undecided, hold),
                    Basis::Empty => of(Choice::Nothing, hold),
                    Basis::Other(_) | Basis::Half | Basis::Unknown(_) => Self::stay(unit, hold),
                };
            }
            Reach::Ready => {}
        }
        if let Some(refusal) = self.refusal.as_ref().filter(|refusal| self.is_taken_back(id, unit, refusal)) {
            return self.refused(unit, refusal);
        }
        if unit.has_begun() {
            let failure =
                self.failed.iter().find(|(failed, ..)| *failed == id).map(|(.., why)| Arc::clone(why));
            return Verdict { choice: Choice::Head, hold: None, failure };
        }
        if unit.basis == Basis::Loading {
            return of(Choice::Undecided, Some(Hold::Unread));
        }
        if self.input.policy.paused {
            return Self::stay(unit, Some(Hold::Paused));
        }
        if !unit.is_behind || unit.goes_back() {
            return of(Choice::Head, None);
        }
        match (self.hold(unit), &unit.basis) {
            (None, _) => of(Choice::Head, None),
            (Some(hold), Basis::Empty) => self.empty(unit, hold),
            (Some(hold), _) => Self::stay(unit, Some(hold)),
        }
    }

    /// What a held unit has.
    fn stay(unit: &UnitFacts, hold: Option<Hold>) -> Verdict {
        let (choice, hold) = match (&unit.basis, &unit.mark.previous) {
            (Basis::Half, Some(previous)) => (Choice::At(previous.revision.clone()), hold),
            (Basis::Half, None) => {
                let because = "an earlier rollout left it half written".into();
                (Choice::Frozen, Some(Hold::Frozen { because }))
            }
            (Basis::Unknown(because), _) => {
                (Choice::Frozen, Some(Hold::Frozen { because: Arc::clone(because) }))
            }
            (Basis::Empty, _) => (Choice::Nothing, hold),
            (Basis::Loading, _) => (Choice::Undecided, hold),
            (Basis::Head | Basis::Other(_), _) => (Choice::Stay, hold),
        };
        Verdict { choice, hold, failure: None }
    }

    /// The version that is taken back made something else of this unit.
    fn is_taken_back(&self, id: &UnitId, unit: &UnitFacts, refusal: &Refusal) -> bool {
        match self.commit(&refusal.ran) {
            Commit::Known(commit) => commit.units.get(id) != self.input.head.units.get(id),
            // Then what ran that commit before goes back, and no other unit advances.
            Commit::Loading | Commit::Unknown => {
                !unit.has_begun() && unit.is_behind
                    || unit.mark.previous.as_ref().is_some_and(|previous| previous.revision == refusal.ran)
            }
        }
    }

    /// Of a version that is taken back.
    fn refused(&self, unit: &UnitFacts, refusal: &Refusal) -> Verdict {
        let digest = refusal.digest;
        let failed = |because: Arc<str>| Some(Hold::RevertFailed { because });
        let hold = || Some(Hold::Refused { digest });
        if !unit.has_begun() {
            let since =
                unit.timers.undone_since.and_then(|it| it.checked_add(self.input.policy.deadline).ok());
            let is_back = unit.mark.refused.as_ref().is_some_and(|refused| refused.digest == digest);
            let is_late = is_back && since.is_some_and(|until| until <= self.input.now);
            self.deadlines.borrow_mut().extend(since.filter(|_| is_back));
            let hold = match &unit.condition {
                Condition::Progressing(because) | Condition::Failed(because) if is_late => {
                    failed(Arc::clone(because))
                }
                _ => hold(),
            };
            return Self::stay(unit, hold);
        }
        let back = match &unit.mark.previous {
            Some(previous) if previous.content != unit.head => Some(previous),
            _ => None,
        };
        match back {
            Some(previous) => {
                Verdict { choice: Choice::At(previous.revision.clone()), hold: hold(), failure: None }
            }
            None => {
                let because = "nothing says what ran here before".into();
                Verdict { choice: Choice::Head, hold: failed(because), failure: None }
            }
        }
    }

    /// Why a unit that is behind does not advance.
    fn hold(&self, unit: &UnitFacts) -> Option<Hold> {
        if let Some(after) = &unit.after {
            return Some(after.clone());
        }
        let runs = match unit.basis {
            Basis::Other(_) => unit.revision.as_ref(),
            _ => None,
        };
        let commit = runs.map_or(Commit::Unknown, |revision| self.commit(revision));
        if let Some(stopped) = self.stopped(runs) {
            return Some(stopped);
        }
        let is_asked = |wave: &usize| match &commit {
            Commit::Known(commit) => commit.waves.get(*wave) != self.input.head.waves.get(*wave),
            Commit::Loading | Commit::Unknown => true,
        };
        let asked: Vec<usize> =
            (0..unit.wave).filter(|wave| !self.waves[*wave].is_empty()).filter(is_asked).collect();
        let of_waves = asked.iter().find_map(|wave| self.before(*wave, runs));
        of_waves.or_else(|| self.gates(&asked, unit, runs)).or_else(|| match &commit {
            Commit::Known(commit) if asked.is_empty() => self.pin(unit, runs, commit),
            _ => None,
        })
    }

    /// A unit that changed since a commit has failed, and so many may not.
    fn stopped(&self, since: Option<&Revision>) -> Option<Hold> {
        for (id, unit, because) in &self.failed {
            if self.exceeds(unit.wave, &self.failed_of(unit.wave, since))
                && since.is_none_or(|since| self.took_part(id, since))
            {
                return Some(Hold::Stopped { unit: (*id).clone(), because: Arc::clone(because) });
            }
        }
        None
    }

    /// What an earlier wave lacks.
    fn before(&self, wave: usize, since: Option<&Revision>) -> Option<Hold> {
        let units = &self.waves[wave];
        let name = || self.name(wave);
        let taking_part: Vec<_> = units.iter().filter(|(_, unit)| !unit.is_left_out()).collect();
        if taking_part.is_empty() {
            let (_, first) = units.first()?;
            let Reach::LeftOut(because) = &first.reach else { return None };
            let hold = Hold::WaveLeftOut { wave: name(), because: Arc::clone(because) };
            return (!self.has_begun_after(wave, since)).then_some(hold);
        }
        let failed = self.failed_of(wave, since);
        let may_fail = !self.exceeds(wave, &failed);
        let is_done = |(id, unit): &&&(&UnitId, &UnitFacts)| {
            unit.is_ready() && (unit.is_done() || may_fail && failed.contains(id))
        };
        let done = taking_part.iter().filter(is_done).count();
        let (id, unit) = taking_part.iter().find(|it| !is_done(it))?;
        let because = match (&unit.reach, &unit.condition) {
            (Reach::Unread, _) => "not known yet what runs there".into(),
            (_, Condition::Progressing(because) | Condition::Failed(because)) => Arc::clone(because),
            (_, Condition::Done) => "not at this version yet".into(),
        };
        Some(Hold::Wave { wave: name(), done, of: taking_part.len(), unit: (*id).clone(), because })
    }

    /// A unit of a later wave changed already in this rollout, so the wave had its time.
    fn has_begun_after(&self, wave: usize, since: Option<&Revision>) -> bool {
        let Some(Commit::Known(commit)) = since.map(|since| self.commit(since)) else { return false };
        let mut later = self.waves.iter().skip(wave + 1).flatten();
        later.any(|(id, unit)| {
            let is_new = commit.units.get(*id) != self.input.head.units.get(*id);
            is_new && unit.has_begun() && !unit.is_left_out()
        })
    }

    /// What stands between waves that are done and this unit.
    fn gates(&self, asked: &[usize], unit: &UnitFacts, since: Option<&Revision>) -> Option<Hold> {
        for wave in asked {
            let limits = &self.input.waves[*wave].limits;
            if let Some(soak) = limits.soak.filter(|_| !self.has_begun_after(*wave, since)) {
                let of_wave = self.waves[*wave].iter().filter(|(_, unit)| !unit.is_left_out());
                let since =
                    of_wave.filter_map(|(_, unit)| unit.timers.done_since).max().unwrap_or(self.input.now);
                let until =
                    jiff::SignedDuration::try_from(soak).ok().and_then(|soak| since.checked_add(soak).ok());
                if let Some(until) = until.filter(|until| self.input.now < *until) {
                    return Some(Hold::Soak { wave: self.name(*wave), until });
                }
            }
        }
        let confirms = |wave: &&usize| self.input.waves[**wave].limits.confirm;
        let after = asked.iter().rev().find(confirms)?;
        if self.is_confirmed(unit.wave, self.input.digest, asked) {
            return None;
        }
        let through = self.name(self.opens_through(unit.wave));
        Some(Hold::Confirmation { after: self.name(*after), through, digest: self.input.digest })
    }

    /// A person said so, after the waves that it passes had this version.
    fn is_confirmed(&self, wave: usize, digest: Digest, passed: &[usize]) -> bool {
        let units = passed.iter().flat_map(|wave| &self.waves[*wave]).filter(|(_, unit)| !unit.is_left_out());
        let revisions = units.filter_map(|(_, unit)| unit.revision.as_ref());
        let newest = revisions.filter_map(|revision| (self.input.position)(revision)).min();
        self.input.approvals.iter().any(|approved| {
            let is_newer = approved.at.is_some_and(|at| newest.is_none_or(|newest| at <= newest));
            approved.through.is_some_and(|through| through >= wave) && approved.digest == digest && is_newer
        })
    }

    /// The last wave that opens with this one before the next one that asks for confirmation.
    fn opens_through(&self, wave: usize) -> usize {
        let holds_units =
            |wave: &usize| self.waves[*wave].iter().any(|(_, unit)| unit.is_behind && !unit.has_begun());
        let last = (wave..self.waves.len())
            .find(|it| self.input.waves[*it].limits.confirm && !self.waves[*it].is_empty());
        let last = last.unwrap_or(self.waves.len().saturating_sub(1));
        (wave..=last).rev().find(holds_units).unwrap_or(wave)
    }

    /// A commit that changes only the pin of a ring: the ring before runs this version, or had finished it.
    fn pin(&self, unit: &UnitFacts, runs: Option<&Revision>, commit: &super::CommitFacts) -> Option<Hold> {
        let version = unit.pin.as_ref()?;
        let of_wave = self.waves[unit.wave].iter();
        let is_moved =
            of_wave.clone().any(|(id, _)| commit.pins.get(&id.cluster).is_some_and(|pin| pin != version));
        let before = (0..unit.wave).rev().find(|wave| !self.waves[*wave].is_empty())?;
        runs.filter(|_| is_moved)?;
        let has_it = |(id, before): &&(&UnitId, &UnitFacts)| {
            let runs_it = before.pin.as_ref() == Some(version) && before.is_done();
            let finished_it = || {
                let previous = before.mark.previous.as_ref()?;
                match self.commit(&previous.revision) {
                    Commit::Known(commit) => Some(commit.pins.get(&id.cluster) == Some(version)),
                    Commit::Loading | Commit::Unknown => None,
                }
            };
            runs_it || finished_it() == Some(true)
        };
        let digest = *self.input.head.waves.get(unit.wave)?;
        let mut taking_part = self.waves[before].iter().filter(|(_, unit)| !unit.is_left_out()).peekable();
        let has_finished = taking_part.peek().is_some() && taking_part.all(|it| has_it(&it));
        if has_finished || self.is_confirmed(unit.wave, digest, &[]) {
            return None;
        }
        let (ring, through) = (self.name(before), self.name(unit.wave));
        Some(Hold::Pin { ring, version: version.to_string(), through, digest })
    }

    /// A unit of which nothing is there, while its wave is shut.
    fn empty(&self, unit: &UnitFacts, hold: Hold) -> Verdict {
        let of = |choice, hold| Verdict { choice, hold, failure: None };
        let from_here = self.waves.iter().skip(unit.wave).flatten();
        let runs_other = |unit: &UnitFacts| matches!(unit.basis, Basis::Other(_));
        let held =
            from_here.clone().filter(|(_, unit)| runs_other(unit)).filter_map(|(_, it)| it.revision.as_ref());
        let newest = |revisions: &mut dyn Iterator<Item = &'a Revision>| {
            revisions.min_by_key(|revision| (self.input.position)(revision).unwrap_or(usize::MAX)).cloned()
        };
        if let Some(commit) = newest(&mut held.into_iter()) {
            return of(Choice::At(commit), Some(hold));
        }
        // Its wave, or a later one, has this version wherever anything is: it was let through.
        if from_here.into_iter().any(|(_, unit)| unit.has_begun() && unit.is_ready()) {
            return of(Choice::Head, None);
        }
        let previous = self.input.units.values().filter_map(|unit| unit.mark.previous.as_ref());
        if let Some(commit) = newest(&mut previous.map(|previous| &previous.revision)) {
            return of(Choice::At(commit), Some(hold));
        }
        // A first installation: no other version is anywhere.
        let unread = self.input.units.iter().find(|(_, unit)| !unit.is_ready());
        match unread {
            _ if self.input.policy.gate_first => of(Choice::Nothing, Some(hold)),
            Some((cluster, other)) if other.reach == Reach::Unread => {
                of(Choice::Nothing, Some(Hold::ClusterUnread { cluster: cluster.clone() }))
            }
            Some(_) => of(Choice::Nothing, Some(hold)),
            None if unit.after.is_some() => of(Choice::Nothing, Some(hold)),
            None => of(Choice::Head, None),
        }
    }

    fn confirmation(&self, verdicts: &BTreeMap<UnitId, Verdict>) -> Option<Confirmation> {
        let of_waves = self.waves.iter().flatten().filter_map(|(id, _)| verdicts.get(*id)?.hold.as_ref());
        of_waves.into_iter().find_map(|hold| match hold {
            Hold::Confirmation { after, through, digest } => {
                Some(Confirmation { after: after.clone(), through: through.clone(), digest: *digest })
            }
            Hold::Pin { ring, through, digest, .. } => {
                Some(Confirmation { after: ring.clone(), through: through.clone(), digest: *digest })
            }
            _ => None,
        })
    }

    fn reports(&self, verdicts: &BTreeMap<UnitId, Verdict>) -> Vec<WaveReport> {
        let waves = self.waves.iter().enumerate().filter(|(_, units)| !units.is_empty());
        let report = |(number, units): (usize, &Vec<(&'a UnitId, &'a UnitFacts)>)| {
            let count = |is: &dyn Fn(&UnitFacts) -> bool| units.iter().filter(|(_, unit)| is(unit)).count();
            let (done, begun) = (count(&UnitFacts::is_done), count(&UnitFacts::has_begun));
            let failed = self.failed_of(number, None).len();
            let takes = |id: &UnitId| verdicts.get(id).is_some_and(|verdict| verdict.choice == Choice::Head);
            let left_out = units.iter().filter(|(_, unit)| unit.is_left_out()).map(|(id, _)| (*id).clone());
            let waits = units.iter().find_map(|(id, _)| verdicts.get(*id)?.hold.clone());
            let state = if done == units.len() {
                WaveState::Done
            } else if failed > 0 {
                WaveState::Failed
            } else if units.iter().any(|(id, _)| takes(id)) {
                WaveState::Open
            } else {
                WaveState::Shut
            };
            WaveReport {
                name: self.name(number),
                state,
                units: units.len(),
                done,
                begun,
                failed,
                left_out: left_out.collect(),
                waits,
            }
        };
        waves.map(report).collect()
    }
}
