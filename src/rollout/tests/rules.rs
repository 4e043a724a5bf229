//! The invariants of every decision, in a second and simpler implementation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::simulator::{Simulator, number};
use super::walks::TakenBack;
use crate::rollout::{
    ApprovalEffect, CommitFacts, CurrentUnitContent, RenderChoice, RolloutDecision, UnitCondition, UnitFacts,
    UnitId, UnitParticipation,
};

#[derive(Debug, Default)]
pub struct Rules {
    taken_back: TakenBack,
}

type Units = BTreeMap<UnitId, UnitFacts>;

/// It takes the head's content now.
fn begins(facts: &UnitFacts, decision: &RolloutDecision, id: &UnitId) -> bool {
    facts.is_ready()
        && facts.is_behind
        && !facts.has_begun()
        && decision.units[id].choice == RenderChoice::Head
}

impl Rules {
    pub fn lose_marks(&mut self, is_lost: impl Fn(&UnitId) -> bool) {
        self.taken_back.retain(|(id, _), _| !is_lost(id));
    }

    pub fn check(&mut self, fleet: &Simulator, units: &Units, decision: &RolloutDecision) {
        for (id, facts) in units {
            let verdict = &decision.units[id];
            let is_head = verdict.choice == RenderChoice::Head;
            assert!(
                !facts.is_behind || is_head && facts.is_ready() || verdict.hold.is_some(),
                "{id} waits and nobody says why: {verdict:?}"
            );
            let text = verdict.hold.as_ref().map(ToString::to_string).unwrap_or_default();
            assert!(text.chars().count() <= 140, "{text}");
            if begins(facts, decision, id) {
                self.check_start(fleet, units, id);
            }
            let is_reverted = facts.has_begun() && matches!(verdict.choice, RenderChoice::At(_));
            if is_reverted && facts.is_ready() {
                self.taken_back.insert((id.clone(), fleet.digest()), fleet.head());
            }
        }
        check_limits(fleet, units, decision);
    }

    fn check_start(&mut self, fleet: &Simulator, units: &Units, id: &UnitId) {
        let (facts, digest) = (&units[id], fleet.digest());
        assert!(!fleet.policy.paused, "{id} begins while the app is paused");
        if let Some(refused_at) = self.taken_back.get(&(id.clone(), digest)) {
            assert!(is_retried(fleet, *refused_at), "{id} begins again what was taken back");
        }
        self.taken_back.retain(|(known, of), _| known != id || *of == digest);
        if facts.is_revert() {
            return;
        }
        assert!(
            units.values().all(|it| it.participation != UnitParticipation::Unread
                && (it.is_left_out() || it.current_content != CurrentUnitContent::Loading)),
            "{id} begins before all is read"
        );
        let commit = match facts.current_content {
            CurrentUnitContent::Other(_) => facts.revision.as_ref().map(number),
            _ => None,
        };
        let base = commit.filter(|it| !fleet.commits[*it].is_lost).map(|commit| fleet.facts_at(commit));
        let since = Since { fleet, units, commit, base, head: fleet.facts_at(fleet.head()) };
        let failed = since.failed();
        if fleet.windows.selects(&id.cluster) {
            let may_fill = facts.current_content == CurrentUnitContent::Empty
                && since.is_let_through(facts)
                && failed.is_none();
            assert!(may_fill || since.goes_back(id, facts), "{id} begins in a freeze");
        }
        let gates = match &failed {
            Some(failed) => Err(format!("{failed} fails")),
            None => since.gates(facts),
        };
        if let Err(why) = gates {
            let may_fill =
                facts.current_content == CurrentUnitContent::Empty && since.may_fill(facts, failed.is_some());
            assert!(may_fill, "{id} begins although {why}");
        }
    }
}

fn is_retried(fleet: &Simulator, refused_at: usize) -> bool {
    let mut retries =
        fleet.approvals.iter().filter(|it| it.allows == ApprovalEffect::Retry && it.digest == fleet.digest());
    retries.any(|approved| approved.position.is_some_and(|at| at > refused_at))
}

fn check_limits(fleet: &Simulator, units: &Units, decision: &RolloutDecision) {
    let is_first = units.values().all(|it| {
        !matches!(it.current_content, CurrentUnitContent::Other(_) | CurrentUnitContent::PartlyApplied)
    });
    for (wave, said) in fleet.waves.iter().enumerate() {
        let of_wave: Vec<_> = units.iter().filter(|(_, facts)| facts.wave == wave).collect();
        let Some(limit) = said.limits.max_concurrency.map(|share| share.of(of_wave.len())) else { continue };
        let changes = |facts: &UnitFacts| facts.is_ready() && facts.has_begun() && !facts.is_done();
        let before = of_wave.iter().filter(|(_, facts)| changes(facts)).count();
        let begin = of_wave.iter().filter(|(id, facts)| begins(facts, decision, id)).count();
        let is_filled = is_first && !fleet.policy.gate_first;
        assert!(
            begin == 0 || is_filled || before + begin <= limit,
            "{before} + {begin} of {limit} in {wave}"
        );
    }
}

/// The fleet, compared with the commit of a unit.
struct Since<'a> {
    fleet: &'a Simulator,
    units: &'a Units,
    commit: Option<usize>,
    base: Option<Arc<CommitFacts>>,
    head: Arc<CommitFacts>,
}

impl Since<'_> {
    fn is_changed(&self, id: &UnitId) -> bool {
        self.base.as_ref().is_none_or(|base| base.units.get(id) != self.head.units.get(id))
    }

    /// The content from before that commit was not taken since.
    fn took_since(&self, id: &UnitId, facts: &UnitFacts) -> bool {
        let is_newer = || match (facts.revision.as_ref().map(number), self.commit) {
            (Some(taken), Some(since)) => taken > since,
            _ => true,
        };
        self.is_changed(id) && facts.has_begun() && (facts.is_behind || is_newer())
    }

    fn of_wave(&self, wave: usize) -> impl Iterator<Item = (&UnitId, &UnitFacts)> {
        self.units.iter().filter(move |(_, facts)| facts.wave == wave)
    }

    /// The failure that stops every unit, because the rollout is open while a unit is behind.
    fn failed(&self) -> Option<&UnitId> {
        let fails =
            |facts: &UnitFacts| matches!(facts.condition, UnitCondition::Failed(_)) && facts.has_begun();
        let mut failed = self.units.iter().filter(|(_, facts)| facts.is_ready() && fails(facts));
        // For an empty unit a failure counts while the rollout of the failed unit is open.
        let counts = |facts: &UnitFacts| {
            let until = facts.failure_counts_until(self.fleet.policy.deadline);
            self.base.is_some() || until.is_some_and(|until| self.fleet.now < until)
        };
        failed.find(|(id, facts)| self.took_since(id, facts) && counts(facts)).map(|(id, _)| id)
    }

    /// Each earlier wave that changes is done, and the gates after it have passed.
    fn gates(&self, facts: &UnitFacts) -> Result<(), String> {
        let asked: Vec<usize> = (0..facts.wave)
            .filter(|wave| self.of_wave(*wave).next().is_some())
            .filter(|wave| self.base.as_ref().is_none_or(|base| base.waves[*wave] != self.head.waves[*wave]))
            .collect();
        for wave in &asked {
            let mut taking_part = self.of_wave(*wave).filter(|(_, facts)| !facts.is_left_out()).peekable();
            if taking_part.peek().is_none() && !self.has_begun_after(*wave) {
                return Err(format!("all of wave {wave} is left out"));
            }
            if let Some((id, _)) = taking_part.find(|(_, facts)| !facts.is_ready() || !facts.is_done()) {
                return Err(format!("{id} of wave {wave} is not done"));
            }
            let soak = self.fleet.waves[*wave].limits.soak.filter(|_| !self.has_begun_after(*wave));
            let taking_part = self.of_wave(*wave).filter(|(_, facts)| !facts.is_left_out());
            let since = taking_part.filter_map(|(_, facts)| facts.timers.done_since).max();
            if let (Some(soak), Some(since)) = (soak, since)
                && self.fleet.now.duration_since(since)
                    < jiff::SignedDuration::try_from(soak).expect("a soak")
            {
                return Err(format!("wave {wave} soaks"));
            }
        }
        if !asked.iter().any(|wave| self.fleet.waves[*wave].limits.confirm) {
            return Ok(());
        }
        let passed = self.units.values().filter(|it| asked.contains(&it.wave) && !it.is_left_out());
        let newest = passed.filter_map(|it| it.revision.as_ref().map(number)).max();
        let is_meant = self.fleet.approvals.iter().any(|approved| {
            approved.digest == self.fleet.digest()
                && matches!(approved.allows, ApprovalEffect::Through(through) if through >= facts.wave)
                && approved.position.is_some_and(|at| newest.is_none_or(|newest| at >= newest))
        });
        if is_meant { Ok(()) } else { Err("nobody has confirmed it".to_owned()) }
    }

    fn has_begun_after(&self, wave: usize) -> bool {
        self.base.is_some()
            && self
                .units
                .iter()
                .any(|(id, facts)| facts.wave > wave && !facts.is_left_out() && self.took_since(id, facts))
    }

    /// A unit of its wave or of a later one has the head's content.
    fn is_let_through(&self, facts: &UnitFacts) -> bool {
        self.units.values().any(|it| it.wave >= facts.wave && it.is_ready() && it.has_begun())
    }

    /// The commit before its current one gave it the head's content.
    fn goes_back(&self, id: &UnitId, facts: &UnitFacts) -> bool {
        let before = self.commit.and_then(|commit| commit.checked_sub(1)).map(|it| self.fleet.facts_at(it));
        facts.mark.previous.is_none()
            && before.is_some_and(|before| before.units.get(id) == self.head.units.get(id))
    }

    /// No unit of an empty unit's wave or of a later one runs other content, and either the head runs there or no other version
    /// runs anywhere.
    fn may_fill(&self, facts: &UnitFacts, is_failed: bool) -> bool {
        let from_here = self.units.values().filter(|it| it.wave >= facts.wave);
        if { from_here }
            .any(|it| matches!(it.current_content, CurrentUnitContent::Other(_)) && it.revision.is_some())
        {
            return false;
        }
        let is_first = self.units.values().all(|it| {
            it.mark.previous.is_none()
                && !matches!(it.current_content, CurrentUnitContent::Other(_))
                && !it.is_left_out()
        });
        self.is_let_through(facts) && !is_failed || is_first && !self.fleet.policy.gate_first
    }
}
