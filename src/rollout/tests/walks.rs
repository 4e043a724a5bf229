//! Random walks: in any order of events no gate is skipped, and no unit is stuck without a reason.
//!
//! `TUTTI_WALKS` sets the number of walks, `TUTTI_WALK` the seed of a single one, which is shown. Both are read at compile time.

use std::collections::BTreeMap;

use super::fleet::{groups, rings};
use super::rules::Rules;
use super::simulator::{Content, Health, Run, SimUnit, Simulator};
use super::windows::shut;
use crate::model::{Digest, OnFailure, UnitShare};
use crate::rollout::{
    AppWindows, ApprovalEffect, CurrentUnitContent, RenderChoice, UnitId, UnitParticipation,
};

/// Splitmix64: the same walk for the same seed.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_of(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn pick<T: Clone>(&mut self, items: impl IntoIterator<Item = T>) -> T {
        let items: Vec<T> = items.into_iter().collect();
        items[self.below(items.len())].clone()
    }
}

const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];
const VERSIONS: [&str; 5] = ["v1", "v2", "v3", "v4", "v5"];

struct Walk {
    fleet: Simulator,
    random: Random,
    rules: Rules,
    events: Vec<String>,
    /// A commit cannot be read any more: another process has less information.
    has_lost: bool,
    /// Each step of a single walk is shown.
    is_shown: bool,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut fleet = if random.one_of(2) { rings() } else { groups() };
        fleet.writes_whole = random.one_of(3);
        fleet.policy.gate_first = random.one_of(8);
        for wave in &mut fleet.waves {
            wave.limits.confirm &= !random.one_of(4);
            wave.limits.soak = random.one_of(4).then_some(std::time::Duration::from_secs(20));
            wave.limits.max_concurrency = random.one_of(3).then_some(UnitShare::Count(1));
        }
        if random.one_of(2) {
            fleet.policy.on_failure = OnFailure::Revert;
        }
        fleet.push(&[("*", "v1")]);
        Self {
            fleet,
            random,
            rules: Rules::default(),
            events: Vec::new(),
            has_lost: false,
            is_shown: number(option_env!("TUTTI_WALK")).is_some(),
        }
    }

    fn run(&mut self) {
        if !self.random.one_of(4) {
            (0..8).for_each(|_| self.step());
        }
        for _ in 0..24 {
            let event = self.happen();
            if self.is_shown {
                println!("{event}");
            }
            self.events.push(event);
            for _ in 0..self.random.below(4) {
                self.step();
            }
            if self.random.one_of(8) {
                self.compare_with_restart();
            }
        }
        self.finish();
    }

    fn step(&mut self) {
        let facts = self.fleet.observe();
        let decision = self.fleet.decide(&facts);
        self.rules.check(&self.fleet, &facts, &decision);
        self.fleet.carry_out(&facts, &decision);
        self.fleet.pass(1);
        if self.is_shown {
            println!("{}", self.fleet.explain());
        }
    }

    fn happen(&mut self) -> String {
        let (fleet, random) = (&mut self.fleet, &mut self.random);
        let unit = random.pick(fleet.units.keys().cloned().collect::<Vec<_>>());
        let cluster = random.pick(CLUSTERS);
        let version = random.pick(VERSIONS);
        match random.below(24) {
            0..=2 => {
                fleet.push(&[("*", version)]);
                format!("all get {version}")
            }
            3 => {
                let pattern = if unit.pod_set.is_empty() { unit.cluster.as_str() } else { &*unit.pod_set };
                fleet.push(&[(pattern, version)]);
                format!("{pattern} gets {version}")
            }
            4 => {
                let commit = 1 + random.below(fleet.head());
                fleet.restore(commit);
                format!("back to {commit}")
            }
            5..=7 => {
                let through = random.below(fleet.waves.len());
                fleet.approve_digest(fleet.digest(), ApprovalEffect::Through(through));
                format!("approved through {through}")
            }
            8 => {
                let commit = 1 + random.below(fleet.head());
                let digest = fleet.digest_at(commit);
                fleet.approve_digest(digest, ApprovalEffect::Through(fleet.waves.len() - 1));
                format!("approved {commit}")
            }
            9 => {
                fleet.retry();
                "retry".to_owned()
            }
            10 => {
                let health = random.pick([Health::Failed, Health::Progressing, Health::Well]);
                fleet.units.get_mut(&unit).expect("a unit").health = health;
                format!("{unit} {health:?}")
            }
            11 => {
                let health = random.pick([Health::Failed, Health::Progressing]);
                fleet.bad = BTreeMap::from([(Content::from(version), health)]);
                format!("{version} {health:?}")
            }
            12 => {
                fleet.bad.clear();
                fleet.units.values_mut().for_each(|unit| unit.health = Health::Well);
                "all well".to_owned()
            }
            13 => {
                fleet.lose(cluster);
                format!("{cluster} lost")
            }
            14 => {
                fleet.unread(cluster);
                format!("{cluster} unread")
            }
            15 => {
                fleet.reach.clear();
                "all back".to_owned()
            }
            16 => {
                fleet.rebuild(cluster);
                self.rules.lose_marks(|id| id.cluster.as_str() == cluster);
                format!("{cluster} rebuilt")
            }
            17 => {
                let number = random.below(3);
                let objects = &mut fleet.units.get_mut(&unit).expect("a unit").objects;
                match number {
                    2 => *objects = [None, None],
                    number => objects[number] = None,
                }
                self.rules.lose_marks(|id| *id == unit);
                format!("{unit} loses {number}")
            }
            18 => {
                fleet.kill();
                "kill".to_owned()
            }
            19 => {
                let seconds = random.pick([-30, 15, 300, 900]);
                fleet.pass(seconds);
                format!("{seconds} s pass")
            }
            20 => {
                fleet.policy.paused = !fleet.policy.paused && random.one_of(2);
                format!("paused {}", fleet.policy.paused)
            }
            21 | 22 => {
                let clusters = random.pick([CLUSTERS.to_vec(), vec![cluster], Vec::new(), Vec::new()]);
                fleet.windows = shut("freeze", &clusters, None);
                format!("{clusters:?} are frozen")
            }
            _ => match random.below(4) {
                0 if !self.has_lost => {
                    let commit = random.below(fleet.head());
                    fleet.commits[commit].is_lost = true;
                    self.has_lost = true;
                    format!("{commit} cannot be read")
                }
                1 => {
                    let revert = random.one_of(2);
                    fleet.policy.on_failure = if revert { OnFailure::Revert } else { OnFailure::Stop };
                    format!("{:?}", fleet.policy.on_failure)
                }
                _ => {
                    let wave = random.below(fleet.waves.len());
                    let limit = random.pick([None, Some(UnitShare::Count(1)), Some(UnitShare::Percent(50))]);
                    fleet.waves[wave].limits.max_concurrency = limit;
                    format!("limit {limit:?} of {wave}")
                }
            },
        }
    }

    /// A restarted process decides the same contents.
    fn compare_with_restart(&mut self) {
        let facts = self.fleet.clone().observe();
        let is_left_out =
            facts.values().any(|facts| matches!(facts.participation, UnitParticipation::LeftOut(_)));
        // The objects were deleted by hand and not created again yet; only this process has their previous content.
        let is_deleted = self.fleet.units.values().any(|unit| unit.content().is_empty());
        if self.has_lost
            || is_deleted
                && (is_left_out || facts.values().any(|it| it.current_content != CurrentUnitContent::Empty))
        {
            return;
        }
        if is_left_out && facts.values().any(|facts| facts.is_left_out() && facts.mark.refused.is_some()) {
            return;
        }
        // Whether a unit becomes healthy before it takes other content decides its revert. The age of its content decides whether
        // it counts as failed or as changing. A restart takes time. A repaired object is not healthy yet.
        let lacks_one = |unit: &SimUnit| unit.present().count() == 1;
        let is_unwell = self.fleet.units.values().any(|unit| unit.health != Health::Well || lacks_one(unit));
        let is_limited = self.fleet.waves.iter().any(|wave| wave.limits.max_concurrency.is_some());
        if is_unwell && (is_limited || self.fleet.policy.on_failure == OnFailure::Revert) {
            return;
        }
        // A revert in progress whose version may be tried again meanwhile: another process continues from there.
        let goes_back = self.fleet.last.as_ref().is_some_and(|decision| {
            decision.units.values().any(|verdict| matches!(verdict.choice, RenderChoice::At(_)))
        });
        let is_half = |unit: &SimUnit| matches!(&unit.run, Run::Held(_, content) if !unit.is_whole(content));
        if goes_back || self.fleet.units.values().any(is_half) {
            return;
        }
        let (mut same, mut other) = (self.fleet.clone(), self.fleet.clone());
        // The time at which a commit is read decides which of two independent units comes first.
        same.loaded.extend(0..=same.head());
        other.kill();
        let ready: Vec<&str> = CLUSTERS.into_iter().filter(|it| !other.reach.contains_key(*it)).collect();
        ready.iter().for_each(|cluster| _ = other.unread(cluster));
        for round in 0..30 {
            for fleet in [&mut same, &mut other] {
                fleet.step();
                // Longer than all soaks, also after the clock was set back.
                fleet.pass(8);
                // Only this process has the time since when a unit was not done.
                let mut failures = fleet.decision().units.values().filter_map(|it| it.failure.as_deref());
                if failures.any(|failure| failure.starts_with("not done for")) {
                    return;
                }
            }
            if let Some(cluster) = ready.get(round) {
                other.back(cluster);
            }
        }
        // A failure meanwhile stops units that would have started a moment before.
        let failing = |fleet: &Simulator| -> Vec<bool> {
            fleet.units.values().map(|unit| unit.health == Health::Failed).collect()
        };
        if failing(&same) != failing(&self.fleet) || failing(&other) != failing(&self.fleet) {
            return;
        }
        let (without, with) = (same.explain(), other.explain());
        assert_eq!(same.contents(), other.contents(), "without and with a restart:\n{without}\n{with}");
    }

    /// When all units are healthy and a person approves, every unit gets the head's content.
    fn finish(&mut self) {
        self.fleet.reach.clear();
        self.fleet.bad.clear();
        self.fleet.policy.paused = false;
        self.fleet.windows = AppWindows::default();
        self.fleet.units.values_mut().for_each(|unit| unit.health = Health::Well);
        for _ in 0..4 {
            self.fleet.retry();
            self.fleet
                .approve_digest(self.fleet.digest(), ApprovalEffect::Through(self.fleet.waves.len() - 1));
            for _ in 0..40 {
                self.step();
                self.fleet.pass(2);
            }
        }
        for (id, unit) in &self.fleet.units {
            let head = self.fleet.head_content(id);
            assert_eq!(
                Some(unit.content().as_str()),
                head.map(|it| &**it),
                "{id} {}",
                self.fleet.words_of(id)
            );
        }
    }
}

fn number(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

#[test]
fn random_walks_skip_no_gate() {
    let seeds = match number(option_env!("TUTTI_WALK")) {
        Some(seed) => seed..seed + 1,
        None => 0..number(option_env!("TUTTI_WALKS")).unwrap_or(300),
    };
    for seed in seeds {
        let mut walk = Walk::new(seed);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| walk.run()));
        assert!(ended.is_ok(), "walk {seed}: {:#?}\n{}", walk.events, walk.fleet.contents());
    }
}

/// The versions that units were reverted from: the commit that was the head.
pub type TakenBack = BTreeMap<(UnitId, Digest), usize>;
