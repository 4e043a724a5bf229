//! A fleet of which each unit has two objects, and a process that decides about them and writes.
//!
//! The objects and the commits outlive the process; what it was about to do, its timers and what it knows of commits do not.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::fleet::Wave;
use crate::model::{Digest, OnFailure, Previous, Refused, Revision, UnitMark};
use crate::rollout::{
    Approved, Basis, Choice, Commit, CommitFacts, Condition, Decision, Input, Policy, Reach, Refusal, Timers,
    UnitFacts, UnitId, decide,
};

pub type Content = Arc<str>;

#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub content: Content,
    /// Number of the commit that it took its content from.
    pub commit: usize,
    pub mark: UnitMark,
}

/// Which render the process gives a unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    Unknown,
    Head,
    Held(usize, Content),
    Half,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    Well,
    Progressing,
    Failed,
}

#[derive(Clone, Debug)]
pub struct SimUnit {
    pub wave: usize,
    pub objects: [Option<Object>; 2],
    /// Of what it has, whatever that is.
    pub health: Health,
    pub run: Run,
    pub mark: UnitMark,
    pub timers: Timers,
    pub after: Option<crate::rollout::Hold>,
}

/// What the app is at a commit.
#[derive(Clone, Debug, Default)]
pub struct SimCommit {
    pub units: BTreeMap<UnitId, Content>,
    pub pins: BTreeMap<String, String>,
    pub is_lost: bool,
}

#[derive(Clone, Debug)]
pub struct Simulator {
    pub waves: Vec<Wave>,
    pub policy: Policy,
    /// The oldest first.
    pub commits: Vec<SimCommit>,
    pub units: BTreeMap<UnitId, SimUnit>,
    /// Clusters that are not ready.
    pub reach: BTreeMap<String, Reach>,
    pub approvals: Vec<Approved>,
    /// Contents that never become well, and how.
    pub bad: BTreeMap<Content, Health>,
    pub now: Timestamp,
    pub refusal: Option<Refusal>,
    pub loaded: BTreeSet<usize>,
    /// Both objects of a unit are written at once.
    pub writes_whole: bool,
    pub last: Option<Decision>,
    /// How often the closures of an input were called.
    pub questions: Cell<usize>,
}

pub fn revision(commit: usize) -> Revision {
    Revision::from(format!("{commit:040}").as_str())
}

pub fn number(revision: &Revision) -> usize {
    revision.as_str().parse().expect("a commit of this simulator")
}

pub fn digest(content: &str) -> Digest {
    Digest::of(content.as_bytes())
}

fn digest_of<'c>(contents: impl Iterator<Item = &'c Content>) -> Digest {
    let contents: BTreeSet<&Content> = contents.collect();
    digest(&format!("{contents:?}"))
}

impl SimUnit {
    pub fn new(wave: usize) -> Self {
        Self {
            wave,
            objects: [None, None],
            health: Health::Well,
            run: Run::Unknown,
            mark: UnitMark::default(),
            timers: Timers::default(),
            after: None,
        }
    }

    fn present(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter().flatten()
    }

    fn is_whole(&self, content: &Content) -> bool {
        self.objects.iter().all(|object| object.as_ref().is_some_and(|object| object.content == *content))
    }

    /// What its objects have: one content, or `a+b`, or nothing.
    pub fn content(&self) -> String {
        let contents: BTreeSet<&str> = self.present().map(|object| &*object.content).collect();
        contents.into_iter().collect::<Vec<_>>().join("+")
    }

    /// What the annotations of its objects say: the newest.
    fn live_mark(&self) -> UnitMark {
        self.present().map(|object| &object.mark).max_by_key(|mark| mark.since).cloned().unwrap_or_default()
    }
}

impl Simulator {
    pub fn head(&self) -> usize {
        self.commits.len() - 1
    }

    pub fn head_content(&self, id: &UnitId) -> Option<&Content> {
        self.commits[self.head()].units.get(id)
    }

    /// Of the app at the head.
    pub fn digest(&self) -> Digest {
        digest_of(self.commits[self.head()].units.values())
    }

    /// What the app is at a commit, by the waves of the head.
    pub fn facts_at(&self, commit: usize) -> CommitFacts {
        let at = &self.commits[commit];
        let of_wave = |wave: usize| {
            let units =
                at.units.iter().filter(|(id, _)| self.units.get(*id).is_some_and(|it| it.wave == wave));
            digest_of(units.map(|(_, content)| content))
        };
        CommitFacts {
            waves: (0..self.waves.len()).map(of_wave).collect(),
            units: at.units.iter().map(|(id, content)| (id.clone(), digest(content))).collect(),
            pins: at
                .pins
                .iter()
                .map(|(cluster, pin)| (cluster.as_str().into(), pin.as_str().into()))
                .collect(),
        }
    }

    /// A commit after which units have other contents.
    pub fn commit(&mut self, commit: SimCommit) {
        let old: BTreeMap<UnitId, Option<Content>> =
            self.units.keys().map(|id| (id.clone(), self.head_content(id).cloned())).collect();
        let before = self.head();
        self.commits.push(commit);
        let head = &self.commits[before + 1];
        for (id, unit) in &mut self.units {
            let was = old[id].clone();
            if unit.run == Run::Head && was.as_ref() != head.units.get(id) {
                unit.run = match was {
                    Some(was) if unit.is_whole(&was) => {
                        Run::Held(unit.present().map(|it| it.commit).max().unwrap_or(before), was)
                    }
                    Some(_) => Run::Half,
                    None => Run::Unknown,
                };
            }
        }
    }

    /// The process ends, and another one begins.
    pub fn kill(&mut self) {
        for unit in self.units.values_mut() {
            (unit.run, unit.mark, unit.timers) = (Run::Unknown, UnitMark::default(), Timers::default());
        }
        (self.refusal, self.last) = (None, None);
        self.loaded.clear();
    }

    pub fn reach_of(&self, id: &UnitId) -> Reach {
        self.reach.get(id.cluster.as_str()).cloned().unwrap_or(Reach::Ready)
    }

    /// What the process finds of a unit; nothing is remembered yet.
    fn find(&self, id: &UnitId, unit: &SimUnit) -> (Run, Basis) {
        let head = self.head_content(id);
        let Some(head) = head else { return (Run::Head, Basis::Head) };
        match &unit.run {
            Run::Head => return (Run::Head, Basis::Head),
            Run::Held(commit, content) => {
                return (Run::Held(*commit, content.clone()), Basis::Other(digest(content)));
            }
            Run::Half => return (Run::Half, Basis::Half),
            Run::Unknown => {}
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
            // What was known of it a process ago is lost.
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
        };
        unit.timers.observe(facts.is_well(), counts, now);
        facts.timers = unit.timers;
        (unit.run, unit.mark) = (run, mark);
        facts
    }

    pub fn decide(&self, units: &BTreeMap<UnitId, UnitFacts>) -> Decision {
        let head = self.facts_at(self.head());
        let commit = |revision: &Revision| {
            self.questions.set(self.questions.get() + 1);
            let number = number(revision);
            match self.commits.get(number) {
                Some(commit) if commit.is_lost => Commit::Unknown,
                Some(_) if self.loaded.contains(&number) => Commit::Known(Arc::new(self.facts_at(number))),
                Some(_) => Commit::Loading,
                None => Commit::Unknown,
            }
        };
        let position = |revision: &Revision| {
            self.questions.set(self.questions.get() + 1);
            self.head().checked_sub(number(revision))
        };
        // In a test, an Approval names the number of its commit.
        let age =
            |approved: &Approved| Approved { at: approved.at.map(|at| self.head() - at), ..approved.clone() };
        let approvals: Vec<Approved> = self.approvals.iter().map(age).collect();
        decide(&Input {
            waves: &self.waves,
            policy: self.policy,
            digest: self.digest(),
            head: &head,
            head_revision: &revision(self.head()),
            units,
            approvals: &approvals,
            refusal: self.refusal.as_ref(),
            commit: &commit,
            position: &position,
            now: self.now,
        })
    }

    /// Looks, decides, writes.
    pub fn step(&mut self) -> Decision {
        let facts = self.observe();
        let decision = self.decide(&facts);
        self.carry_out(&facts, &decision);
        // What the annotations say is told apart by the second.
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).expect("a time");
        decision
    }

    pub fn carry_out(&mut self, facts: &BTreeMap<UnitId, UnitFacts>, decision: &Decision) {
        let loading = facts.values().filter(|facts| facts.basis == Basis::Loading);
        let wanted = decision.wants.iter().chain(loading.filter_map(|facts| facts.revision.as_ref()));
        self.loaded.extend(wanted.map(number));
        self.refusal.clone_from(&decision.refusal);
        for (id, verdict) in &decision.units {
            self.give(id, &facts[id], &verdict.choice);
        }
        for id in decision.units.keys() {
            if facts[id].is_ready() && decision.units[id].choice != Choice::Undecided && !self.policy.paused {
                self.write(id);
            }
        }
        self.last = Some(decision.clone());
    }

    fn give(&mut self, id: &UnitId, facts: &UnitFacts, choice: &Choice) {
        let now = self.now;
        match choice {
            Choice::Head => {
                let unit = self.units.get_mut(id).expect("a unit");
                if facts.is_behind && unit.run != Run::Head {
                    let previous = match &unit.run {
                        Run::Held(commit, content) if facts.condition == Condition::Done => {
                            Some(Previous { revision: revision(*commit), content: digest(content) })
                        }
                        _ => unit.mark.previous.take(),
                    };
                    unit.mark = UnitMark { since: Some(now), previous, refused: None };
                    unit.timers.reset();
                }
                unit.run = Run::Head;
            }
            Choice::At(at) => {
                let commit = number(at);
                if !self.loaded.contains(&commit) {
                    self.loaded.insert(commit);
                    return;
                }
                let content = self.commits[commit].units.get(id).cloned();
                let previous = facts.mark.previous.clone().filter(|previous| previous.revision == *at);
                let is_so = content.as_deref().map(digest) == previous.as_ref().map(|it| it.content);
                let Some(content) = content.filter(|_| facts.basis == Basis::Empty || is_so) else { return };
                let refusal = self.refusal.clone().filter(|_| facts.basis == Basis::Head);
                let refused = refusal.map(|it| Refused { digest: it.digest, head: it.head });
                let unit = self.units.get_mut(id).expect("a unit");
                unit.run = Run::Held(commit, content);
                unit.mark = UnitMark { since: Some(now), previous, refused };
                unit.timers.reset();
            }
            Choice::Stay | Choice::Frozen | Choice::Nothing | Choice::Undecided => {}
        }
    }

    /// Brings the objects of a unit to what it shall have.
    fn write(&mut self, id: &UnitId) {
        let head = self.head();
        let wanted = match &self.units[id].run {
            Run::Head => self.head_content(id).cloned().map(|content| (head, content)),
            Run::Held(commit, content) => Some((*commit, content.clone())),
            Run::Unknown | Run::Half => None,
        };
        let Some((commit, content)) = wanted else { return };
        let (whole, bad) = (self.writes_whole, self.bad.get(&content).copied());
        let unit = self.units.get_mut(id).expect("a unit");
        let mark = unit.mark.clone();
        let mut is_written = false;
        for object in &mut unit.objects {
            if object.as_ref().is_some_and(|object| object.content == content) || is_written && !whole {
                continue;
            }
            *object = Some(Object { content: content.clone(), commit, mark: mark.clone() });
            is_written = true;
        }
        if is_written {
            unit.health = bad.unwrap_or(Health::Progressing);
        } else if unit.health == Health::Progressing && bad.is_none() {
            unit.health = Health::Well;
        }
    }
}

impl Simulator {
    /// An app without commits, units and waves.
    pub fn new(waves: Vec<Wave>) -> Self {
        let policy = Policy {
            on_failure: OnFailure::Stop,
            deadline: SignedDuration::from_secs(600),
            gate_first: false,
            paused: false,
        };
        Self {
            waves,
            policy,
            commits: vec![SimCommit::default()],
            units: BTreeMap::new(),
            reach: BTreeMap::new(),
            approvals: Vec::new(),
            bad: BTreeMap::new(),
            now: "2026-11-26T08:00:00Z".parse().expect("a time"),
            refusal: None,
            loaded: BTreeSet::new(),
            writes_whole: true,
            last: None,
            questions: Cell::new(0),
        }
    }
}
