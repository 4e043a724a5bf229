//! The two fleets of the scenarios, and short helpers for their events.

use super::simulator::{Health, SimCommit, SimUnit, Simulator, approval_file};
use crate::fleet::Wave;
use crate::model::{Digest, WaveLimits};
use crate::rollout::{
    ApprovalEffect, GivenApproval, RenderChoice, RolloutDecision, RolloutHold, UnitId, UnitParticipation,
};

pub fn wave(name: &str, confirm: bool) -> Wave {
    Wave { name: name.to_owned(), limits: WaveLimits { confirm, ..WaveLimits::default() } }
}

/// `green@c2`, or `c2` for an app that is one unit on a cluster.
pub fn unit_id(name: &str) -> UnitId {
    match name.split_once('@') {
        Some((pod_set, cluster)) => UnitId::new(cluster, pod_set),
        None => UnitId::new(name, ""),
    }
}

fn name_of(id: &UnitId) -> String {
    match &*id.pod_set {
        "" => id.cluster.to_string(),
        pod_set => format!("{pod_set}@{}", id.cluster),
    }
}

/// `*`, a podSet, or a unit.
fn is_meant(pattern: &str, id: &UnitId) -> bool {
    pattern == "*" || pattern == &*id.pod_set || pattern == name_of(id)
}

/// A Component over rings: test (c1), then prod (c2, c3), confirmation after test. Nothing is installed.
pub fn rings() -> Simulator {
    let mut fleet = Simulator::new(vec![wave("test", true), wave("prod", false), wave("rest", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    fleet
}

/// An AppSet with canary, blue and green in c1 and c2, canary cluster c1, confirmation after each wave. Nothing is installed.
pub fn groups() -> Simulator {
    let names = [("first", true), ("canary", true), ("blue", true), ("green", true), ("rest", false)];
    let mut fleet = Simulator::new(names.into_iter().map(|(name, confirm)| wave(name, confirm)).collect());
    fleet.add("canary@c1", 0).add("canary@c2", 1);
    fleet.add("blue@c1", 2).add("blue@c2", 2).add("green@c1", 3).add("green@c2", 3);
    fleet
}

impl Simulator {
    pub fn add(&mut self, unit: &str, wave: usize) -> &mut Self {
        self.units.insert(unit_id(unit), SimUnit::new(wave));
        self.facts.borrow_mut().clear();
        self
    }

    /// Version v1 everywhere, well.
    pub fn installed(mut self) -> Self {
        self.push(&[("*", "v1")]).settle();
        assert!(self.decision().units.values().all(|verdict| verdict.hold.is_none()), "{:?}", self.last);
        self
    }

    /// A commit that changes contents. An empty one takes the unit out of the render.
    pub fn push(&mut self, changes: &[(&str, &str)]) -> &mut Self {
        let head = &self.commits[self.head()];
        let mut next = SimCommit { units: head.units.clone(), pins: head.pins.clone(), is_lost: false };
        for (pattern, content) in changes {
            for id in self.units.keys().filter(|id| is_meant(pattern, id)) {
                match *content {
                    "" => _ = next.units.remove(id),
                    content => _ = next.units.insert(id.clone(), content.into()),
                }
            }
        }
        self.commit(next);
        self
    }

    /// A commit with all that an earlier one had.
    pub fn restore(&mut self, commit: usize) -> &mut Self {
        let earlier = self.commits[commit].clone();
        self.commit(SimCommit { is_lost: false, ..earlier });
        self
    }

    /// A commit that moves the pin of clusters, and with it their content.
    pub fn pin(&mut self, clusters: &[&str], version: &str) -> &mut Self {
        let mut next = self.commits[self.head()].clone();
        for cluster in clusters {
            next.pins.insert((*cluster).to_owned(), version.to_owned());
            next.units.insert(unit_id(cluster), version.into());
        }
        self.commit(next);
        self
    }

    /// A commit with an Approval of the head's digest.
    pub fn approve(&mut self, through: &str) -> &mut Self {
        let through = self.waves.iter().position(|wave| wave.name == through);
        self.approve_digest(self.digest(), ApprovalEffect::Through(through.expect("a wave")))
    }

    pub fn retry(&mut self) -> &mut Self {
        self.approve_digest(self.digest(), ApprovalEffect::Retry)
    }

    pub fn approve_digest(&mut self, digest: Digest, allows: ApprovalEffect) -> &mut Self {
        self.push(&[]);
        let (at, file) = (Some(self.head()), Some(approval_file(self.head())));
        self.approvals.push(GivenApproval { digest, allows, position: at, file });
        self
    }

    pub fn settle(&mut self) -> &mut Self {
        let mut same = 0;
        for _ in 0..40 {
            let before = self.snapshot();
            self.step();
            same = if self.snapshot() == before { same + 1 } else { 0 };
            if same == 3 {
                return self;
            }
        }
        panic!("it never settles: {}", self.contents());
    }

    #[track_caller]
    pub fn step_until(&mut self, contents: &str) -> &mut Self {
        let is_there = (0..20).any(|_| {
            self.contents() == contents || {
                self.step();
                false
            }
        });
        assert!(is_there, "{} instead of {contents}", self.contents());
        self
    }

    fn snapshot(&self) -> String {
        let units = self.units.values().map(|unit| (unit.content(), unit.health));
        format!("{:?} {:?}", units.collect::<Vec<_>>(), self.loaded)
    }

    pub fn pass(&mut self, seconds: i64) -> &mut Self {
        self.now = self.now.checked_add(jiff::SignedDuration::from_secs(seconds)).expect("a time");
        self
    }

    /// The cluster does not answer, or is in maintenance.
    pub fn lose(&mut self, cluster: &str) -> &mut Self {
        self.reach.insert(cluster.to_owned(), UnitParticipation::LeftOut("offline".into()));
        self
    }

    pub fn unread(&mut self, cluster: &str) -> &mut Self {
        self.reach.insert(cluster.to_owned(), UnitParticipation::Unread);
        self
    }

    pub fn back(&mut self, cluster: &str) -> &mut Self {
        self.reach.remove(cluster);
        self
    }

    /// The objects of units are deleted by hand.
    pub fn delete(&mut self, pattern: &str) -> &mut Self {
        for (_, unit) in self.units.iter_mut().filter(|(id, _)| is_meant(pattern, id)) {
            unit.objects = [None, None];
        }
        self
    }

    /// A cluster is made anew: its objects are gone, and the process knows that it is another one.
    pub fn rebuild(&mut self, cluster: &str) -> &mut Self {
        for (_, unit) in self.units.iter_mut().filter(|(id, _)| id.cluster.as_str() == cluster) {
            *unit = SimUnit::new(unit.wave);
        }
        self
    }

    pub fn health(&mut self, pattern: &str, health: Health) -> &mut Self {
        for (_, unit) in self.units.iter_mut().filter(|(id, _)| is_meant(pattern, id)) {
            unit.health = health;
        }
        self
    }

    /// Pods with this content never become ready.
    pub fn crashing(&mut self, content: &str) -> &mut Self {
        self.bad.insert(content.into(), Health::Failed);
        self
    }

    /// Pods with this content neither become ready nor fail.
    pub fn slow(&mut self, content: &str) -> &mut Self {
        self.bad.insert(content.into(), Health::Progressing);
        self
    }

    pub fn decision(&self) -> &RolloutDecision {
        self.last.as_ref().expect("a decision")
    }

    /// What each unit has: `c1=v2 c2=v1`.
    pub fn contents(&self) -> String {
        let units = self.units.iter().map(|(id, unit)| format!("{}={}", name_of(id), unit.content()));
        units.collect::<Vec<_>>().join(" ")
    }

    pub fn hold(&self, unit: &str) -> Option<&RolloutHold> {
        self.decision().units[&unit_id(unit)].hold.as_ref()
    }

    /// What holds a unit, in words; `-` where nothing does.
    pub fn words(&self, unit: &str) -> String {
        self.hold(unit).map_or_else(|| "-".to_owned(), ToString::to_string)
    }

    pub fn words_of(&self, id: &UnitId) -> String {
        self.words(&name_of(id))
    }

    /// All units, and what was decided about them.
    pub fn explain(&self) -> String {
        let line = |(id, unit): (&UnitId, &SimUnit)| {
            let verdict = &self.decision().units[id];
            let (name, content) = (name_of(id), unit.content());
            format!("  {name}={content} {:?} {:?}: {}", unit.health, verdict.choice, self.words(&name))
        };
        self.units.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub fn choice(&self, unit: &str) -> &RenderChoice {
        &self.decision().units[&unit_id(unit)].choice
    }

    pub fn failure(&self, unit: &str) -> &str {
        self.decision().units[&unit_id(unit)].failure.as_deref().unwrap_or("-")
    }

    /// Settles, and compares what units have.
    #[track_caller]
    pub fn has(&mut self, contents: &str) -> &mut Self {
        self.settle();
        assert_eq!(self.contents(), contents, "{:#?}", self.decision().units);
        self
    }

    /// Compares the words that say why a unit waits, up to a digest.
    #[track_caller]
    pub fn waits(&mut self, unit: &str, words: &str) -> &mut Self {
        let found = self.words(unit);
        assert!(found.starts_with(words), "{unit}: {found}");
        assert!(found.chars().count() <= 140, "{found}");
        self
    }
}
