//! The observation of units by the simulated process.

use std::collections::BTreeMap;

use super::simulator::{Health, Run, SimUnit, Simulator, digest, revision};
use crate::model::UnitMark;
use crate::rollout::{Basis, Condition, Reach, UnitFacts, UnitId};

impl Simulator {
    pub fn reach_of(&self, id: &UnitId) -> Reach {
        self.reach.get(id.cluster.as_str()).cloned().unwrap_or(Reach::Ready)
    }

    /// The observed content of a unit, without memory of earlier observations.
    fn find(&self, id: &UnitId, unit: &SimUnit) -> (Run, Basis) {
        let head = self.head_content(id);
        let Some(head) = head else { return (Run::Head, Basis::Head) };
        match &unit.run {
            Run::Head => return (Run::Head, Basis::Head),
            // The head has the unit's content again.
            Run::Held(..) if unit.is_whole(head) => return (Run::Head, Basis::Head),
            Run::Held(commit, content) => {
                return (Run::Held(*commit, content.clone()), Basis::Other(digest(content)));
            }
            // As another process would find it: from its objects.
            Run::Half | Run::Unknown => {}
        }
        let Some(newest) = unit.present().map(|object| object.commit).max() else {
            return (Run::Unknown, Basis::Empty);
        };
        if unit.is_whole(head) {
            return (Run::Head, Basis::Head);
        }
        if self.commits[newest].is_lost {
            return (Run::Unknown, Basis::Unknown("its commit is gone".into()));
        }
        if !self.loaded.contains(&newest) {
            return (Run::Unknown, Basis::Loading);
        }
        match self.commits[newest].units.get(id) {
            None => (Run::Unknown, Basis::Unknown("its commit lacks it".into())),
            Some(content) if content == head => (Run::Head, Basis::Head),
            Some(content) if unit.present().all(|object| object.content == *content) => {
                (Run::Held(newest, content.clone()), Basis::Other(digest(content)))
            }
            Some(_) => (Run::Half, Basis::Half),
        }
    }

    pub fn observe(&mut self) -> BTreeMap<UnitId, UnitFacts> {
        let ids: Vec<UnitId> = self.units.keys().cloned().collect();
        ids.into_iter().map(|id| (id.clone(), self.observe_unit(&id))).collect()
    }

    fn observe_unit(&mut self, id: &UnitId) -> UnitFacts {
        let reach = self.reach_of(id);
        let head = self.head_content(id).cloned();
        let unit = &self.units[id];
        let (run, basis) = match (&reach, &unit.run) {
            (Reach::Ready, _) => self.find(id, unit),
            (Reach::Unread, _) => (unit.run.clone(), Basis::Loading),
            // The memory of the previous process is lost.
            (Reach::LeftOut(_), Run::Unknown) => (Run::Unknown, Basis::Empty),
            (Reach::LeftOut(_), _) => self.find(id, unit),
        };
        let is_seen = reach == Reach::Ready || unit.run != Run::Unknown;
        let live = if is_seen { unit.live_mark() } else { UnitMark::default() };
        let mark =
            if live.since.is_some() && live.since >= unit.mark.since { live } else { unit.mark.clone() };
        let is_behind = head.as_ref().is_some_and(|head| !is_seen || !unit.is_whole(head));
        let condition = match unit.health {
            _ if head.is_none() => Condition::Done,
            Health::Well => Condition::Done,
            Health::Progressing => Condition::Progressing("1/2 pods ready".into()),
            Health::Failed => Condition::Failed("ImagePullBackOff".into()),
        };
        let commit = match &run {
            Run::Held(commit, _) => Some(*commit),
            _ => unit.present().map(|object| object.commit).max(),
        };
        let pin = self.commits[self.head()].pins.get(id.cluster.as_str()).map(|pin| pin.as_str().into());
        let counts = reach == Reach::Ready && !self.policy.paused;
        let now = self.now;
        let unit = self.units.get_mut(id).expect("a unit");
        let mut facts = UnitFacts {
            wave: unit.wave,
            head: head.as_deref().map_or_else(|| digest(""), digest),
            reach,
            is_behind,
            basis,
            condition,
            revision: commit.filter(|_| is_seen).map(revision),
            mark: mark.clone(),
            timers: unit.timers,
            after: unit.after.clone(),
            pin,
            mistake: unit.mistake.clone(),
        };
        unit.timers.observe(facts.is_well(), counts, now);
        facts.timers = unit.timers;
        (unit.run, unit.mark) = (run, mark);
        facts
    }
}
