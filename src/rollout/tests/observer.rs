//! The observation of units by the simulated process.

use std::collections::BTreeMap;

use super::simulator::{Health, Run, SimUnit, Simulator, digest, revision};
use crate::model::UnitRolloutAnnotations;
use crate::rollout::{CurrentUnitContent, UnitCondition, UnitFacts, UnitId, UnitParticipation};

impl Simulator {
    pub fn reach_of(&self, id: &UnitId) -> UnitParticipation {
        self.reach.get(id.cluster.as_str()).cloned().unwrap_or(UnitParticipation::Ready)
    }

    /// The observed content of a unit, without memory of earlier observations.
    fn find(&self, id: &UnitId, unit: &SimUnit) -> (Run, CurrentUnitContent) {
        let head = self.head_content(id);
        let Some(head) = head else { return (Run::Head, CurrentUnitContent::Head) };
        match &unit.run {
            Run::Head => return (Run::Head, CurrentUnitContent::Head),
            // The head has the unit's content again.
            Run::Held(..) if unit.is_whole(head) => return (Run::Head, CurrentUnitContent::Head),
            Run::Held(commit, content) => {
                return (Run::Held(*commit, content.clone()), CurrentUnitContent::Other(digest(content)));
            }
            // As another process would find it: from its objects.
            Run::Half | Run::Unknown => {}
        }
        let Some(newest) = unit.present().map(|object| object.commit).max() else {
            return (Run::Unknown, CurrentUnitContent::Empty);
        };
        if unit.is_whole(head) {
            return (Run::Head, CurrentUnitContent::Head);
        }
        if self.commits[newest].is_lost {
            return (Run::Unknown, CurrentUnitContent::Unknown("its commit is gone".into()));
        }
        if !self.loaded.contains(&newest) {
            return (Run::Unknown, CurrentUnitContent::Loading);
        }
        match self.commits[newest].units.get(id) {
            None => (Run::Unknown, CurrentUnitContent::Unknown("its commit lacks it".into())),
            Some(content) if content == head => (Run::Head, CurrentUnitContent::Head),
            Some(content) if unit.present().all(|object| object.content == *content) => {
                (Run::Held(newest, content.clone()), CurrentUnitContent::Other(digest(content)))
            }
            Some(_) => (Run::Half, CurrentUnitContent::PartlyApplied),
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
            (UnitParticipation::Ready, _) => self.find(id, unit),
            (UnitParticipation::Unread, _) => (unit.run.clone(), CurrentUnitContent::Loading),
            // The memory of the previous process is lost.
            (UnitParticipation::LeftOut(_), Run::Unknown) => (Run::Unknown, CurrentUnitContent::Empty),
            (UnitParticipation::LeftOut(_), _) => self.find(id, unit),
        };
        let is_seen = reach == UnitParticipation::Ready || unit.run != Run::Unknown;
        let live = if is_seen { unit.live_mark() } else { UnitRolloutAnnotations::default() };
        let mark =
            if live.since.is_some() && live.since >= unit.mark.since { live } else { unit.mark.clone() };
        let is_behind = head.as_ref().is_some_and(|head| !is_seen || !unit.is_whole(head));
        let condition = match unit.health {
            _ if head.is_none() => UnitCondition::Done,
            Health::Well => UnitCondition::Done,
            Health::Progressing => UnitCondition::Progressing("1/2 pods ready".into()),
            Health::Failed => UnitCondition::Failed("ImagePullBackOff".into()),
        };
        let commit = match &run {
            Run::Held(commit, _) => Some(*commit),
            _ => unit.present().map(|object| object.commit).max(),
        };
        let pin = self.commits[self.head()].pins.get(id.cluster.as_str()).map(|pin| pin.as_str().into());
        let counts = reach == UnitParticipation::Ready && !self.policy.paused;
        let now = self.now;
        let unit = self.units.get_mut(id).expect("a unit");
        let mut facts = UnitFacts {
            wave: unit.wave,
            head: head.as_deref().map_or_else(|| digest(""), digest),
            participation: reach,
            is_behind,
            current_content: basis,
            condition,
            revision: commit.filter(|_| is_seen).map(revision),
            mark: mark.clone(),
            timers: unit.timers,
            predecessor_hold: unit.after.clone(),
            pin,
            render_error: unit.mistake.clone(),
        };
        unit.timers.observe(facts.is_well(), counts, now);
        facts.timers = unit.timers;
        (unit.run, unit.mark) = (run, mark);
        facts
    }
}
