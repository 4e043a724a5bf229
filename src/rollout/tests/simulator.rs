//! A simulated fleet whose units have two objects each, with a process that decides and writes.
//!
//! Objects and commits outlive the process. Its pending writes, its timers and its known commits do not.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::approvals::Agreements;
use crate::fleet::Wave;
use crate::model::{
    AppId, Digest, FileVersion, OnFailure, PreviousContent, RefusedVersion, Revision, UnitRolloutAnnotations,
};
use crate::rollout::{
    AppWindows, CommitFacts, CommitState, CurrentUnitContent, GivenApproval, MeasurementOutcomes,
    RenderChoice, RolloutDecision, RolloutInput, RolloutPolicy, UnitCondition, UnitDecision, UnitFacts,
    UnitId, UnitParticipation, UnitTimers, VersionRefusal, decide,
};

pub type Content = Arc<str>;

#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub content: Content,
    /// Number of the commit that brought its content.
    pub commit: usize,
    pub mark: UnitRolloutAnnotations,
}

/// The render that the process assigns to a unit.
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
    /// The health of its content.
    pub health: Health,
    pub run: Run,
    pub mark: UnitRolloutAnnotations,
    pub timers: UnitTimers,
    pub after: Option<crate::rollout::RolloutHold>,
    /// The head cannot be rendered for it.
    pub mistake: Option<Arc<str>>,
}

/// The app at a commit.
#[derive(Clone, Debug, Default)]
pub struct SimCommit {
    pub units: BTreeMap<UnitId, Content>,
    pub pins: BTreeMap<String, String>,
    pub is_lost: bool,
}

#[derive(Clone, Debug)]
pub struct Simulator {
    pub waves: Vec<Wave>,
    pub policy: RolloutPolicy,
    /// The oldest first.
    pub commits: Vec<SimCommit>,
    pub units: BTreeMap<UnitId, SimUnit>,
    /// Clusters that are not ready.
    pub reach: BTreeMap<String, UnitParticipation>,
    pub approvals: Vec<GivenApproval>,
    pub windows: AppWindows,
    pub measured: MeasurementOutcomes,
    pub agreements: Agreements,
    /// Contents that never become healthy, with their condition.
    pub bad: BTreeMap<Content, Health>,
    pub now: Timestamp,
    /// How far the machine's clock is ahead of the clock that never jumps.
    pub ahead: SignedDuration,
    pub refusals: Vec<VersionRefusal>,
    pub loaded: BTreeSet<usize>,
    /// Both objects of a unit are written in one step.
    pub writes_whole: bool,
    pub may_lack_clusters: bool,
    pub last: Option<RolloutDecision>,
    /// Calls of the closures of an input.
    pub questions: Cell<usize>,
    /// Facts of commits, once computed.
    pub facts: RefCell<BTreeMap<usize, Arc<CommitFacts>>>,
}

pub fn revision(commit: usize) -> Revision {
    Revision::from(format!("{commit:040}").as_str())
}

/// An Approval that came with a commit.
pub fn approval_file(commit: usize) -> Arc<FileVersion> {
    let path = "approvals/pay.yaml".to_owned();
    Arc::new(FileVersion { commit: revision(commit), path, content: digest("an Approval") })
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
            mark: UnitRolloutAnnotations::default(),
            timers: UnitTimers::default(),
            after: None,
            mistake: None,
        }
    }

    pub fn present(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter().flatten()
    }

    pub fn is_whole(&self, content: &Content) -> bool {
        self.objects.iter().all(|object| object.as_ref().is_some_and(|object| object.content == *content))
    }

    /// The content of its objects: one content, or `a+b`, or none.
    pub fn content(&self) -> String {
        let contents: BTreeSet<&str> = self.present().map(|object| &*object.content).collect();
        contents.into_iter().collect::<Vec<_>>().join("+")
    }

    /// The newest mark in the annotations of its objects.
    pub fn live_mark(&self) -> UnitRolloutAnnotations {
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
        self.digest_at(self.head())
    }

    pub fn digest_at(&self, commit: usize) -> Digest {
        digest_of(self.commits[commit].units.values())
    }

    /// The app at a commit, by the waves of the head.
    pub fn facts_at(&self, commit: usize) -> Arc<CommitFacts> {
        let compute = || Arc::new(self.compute_facts(commit));
        Arc::clone(self.facts.borrow_mut().entry(commit).or_insert_with(compute))
    }

    fn compute_facts(&self, commit: usize) -> CommitFacts {
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

    /// A commit that changes the contents of units.
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

    /// The process ends, and another one starts.
    pub fn kill(&mut self) {
        for unit in self.units.values_mut() {
            (unit.run, unit.mark, unit.timers) =
                (Run::Unknown, UnitRolloutAnnotations::default(), UnitTimers::default());
        }
        self.last = None;
        self.refusals.clear();
        self.measured.clear();
        self.loaded.clear();
    }

    pub fn decide(&self, units: &BTreeMap<UnitId, UnitFacts>) -> RolloutDecision {
        let head = self.facts_at(self.head());
        let commit = |revision: &Revision| {
            self.questions.set(self.questions.get() + 1);
            let number = number(revision);
            match self.commits.get(number) {
                Some(commit) if commit.is_lost => CommitState::Unknown,
                Some(_) if self.loaded.contains(&number) => CommitState::Known(self.facts_at(number)),
                Some(_) => CommitState::Loading,
                None => CommitState::Unknown,
            }
        };
        let position = |revision: &Revision| {
            self.questions.set(self.questions.get() + 1);
            self.head().checked_sub(number(revision))
        };
        let parent = |of: &Revision| number(of).checked_sub(1).map(revision);
        // In tests an Approval names the number of its commit.
        let age = |approved: &GivenApproval| GivenApproval {
            position: approved.position.map(|at| self.head() - at),
            ..approved.clone()
        };
        let approvals: Vec<GivenApproval> = self.approvals.iter().map(age).collect();
        decide(&RolloutInput {
            may_lack_clusters: self.may_lack_clusters,
            waves: &self.waves,
            policy: self.policy,
            digest: self.digest(),
            head: &head,
            head_revision: &revision(self.head()),
            units,
            approvals: &approvals,
            windows: &self.windows,
            measurements: &self.measured,
            rules: &self.agreements.rules,
            roles: &self.agreements.roles,
            answers: &|asked| self.agreements.answer(asked),
            changed_objects: &|_| self.agreements.changes.clone(),
            app: &AppId::new("shop", "pay"),
            refusals: &self.refusals,
            commit: &commit,
            position: &position,
            parent: &parent,
            now: self.now,
            wall_time: self.now.checked_add(self.ahead).expect("a time"),
        })
    }

    /// Observes, decides, writes.
    pub fn step(&mut self) -> RolloutDecision {
        let facts = self.observe();
        let decision = self.decide(&facts);
        self.carry_out(&facts, &decision);
        // Annotations have a resolution of seconds.
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).expect("a time");
        decision
    }

    pub fn carry_out(&mut self, facts: &BTreeMap<UnitId, UnitFacts>, decision: &RolloutDecision) {
        let loading = facts.values().filter(|facts| facts.current_content == CurrentUnitContent::Loading);
        let wanted =
            decision.needed_commits.iter().chain(loading.filter_map(|facts| facts.revision.as_ref()));
        self.loaded.extend(wanted.map(number));
        self.refusals.clone_from(&decision.refusals);
        // Commits that no unit needs are dropped.
        self.measured.retain(|measure, _| decision.measurements.contains_key(measure));
        for (id, verdict) in &decision.units {
            self.give(id, &facts[id], verdict);
        }
        for id in decision.units.keys() {
            if facts[id].is_ready()
                && decision.units[id].choice != RenderChoice::Undecided
                && !self.policy.paused
            {
                self.write(id);
            }
        }
        self.last = Some(decision.clone());
    }

    fn give(&mut self, id: &UnitId, facts: &UnitFacts, verdict: &UnitDecision) {
        // The newest counts, whatever the clock shows.
        let after = facts.mark.since.and_then(|since| since.checked_add(SignedDuration::from_secs(1)).ok());
        let now = after.map_or(self.now, |after| after.max(self.now));
        match &verdict.choice {
            RenderChoice::Head => {
                let unit = self.units.get_mut(id).expect("a unit");
                if facts.is_behind && unit.run != Run::Head {
                    let previous = match &unit.run {
                        Run::Held(commit, content) if facts.condition == UnitCondition::Done => {
                            Some(PreviousContent { revision: revision(*commit), content: digest(content) })
                        }
                        _ => unit.mark.previous.take(),
                    };
                    unit.mark = UnitRolloutAnnotations { since: Some(now), previous, refused: None };
                    unit.timers.reset();
                }
                unit.run = Run::Head;
            }
            RenderChoice::At(at) => {
                let commit = number(at);
                if !self.loaded.contains(&commit) {
                    self.loaded.insert(commit);
                    return;
                }
                let content = self.commits[commit].units.get(id).cloned();
                let previous = facts.mark.previous.clone().filter(|previous| previous.revision == *at);
                let is_so = content.as_deref().map(digest) == previous.as_ref().map(|it| it.content);
                let Some(content) =
                    content.filter(|_| facts.current_content == CurrentUnitContent::Empty || is_so)
                else {
                    return;
                };
                let hold =
                    verdict.hold.as_ref().filter(|_| facts.current_content == CurrentUnitContent::Head);
                let refusal = self.refusals.iter().find(|it| it.is_reason_of(hold, facts.wave));
                let refused = refusal.map(|it| RefusedVersion { digest: it.digest, head: it.head.clone() });
                let unit = self.units.get_mut(id).expect("a unit");
                unit.run = Run::Held(commit, content);
                unit.mark = UnitRolloutAnnotations { since: Some(now), previous, refused };
                unit.timers.reset();
            }
            RenderChoice::Stay | RenderChoice::Frozen | RenderChoice::Nothing | RenderChoice::Undecided => {}
        }
    }

    /// Writes the assigned content to the objects of a unit.
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
        let policy = RolloutPolicy {
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
            windows: AppWindows::default(),
            measured: MeasurementOutcomes::new(),
            agreements: Agreements::default(),
            ahead: SignedDuration::ZERO,
            bad: BTreeMap::new(),
            now: "2026-11-26T08:00:00Z".parse().expect("a time"),
            refusals: Vec::new(),
            loaded: BTreeSet::new(),
            writes_whole: true,
            may_lack_clusters: false,
            last: None,
            questions: Cell::new(0),
            facts: RefCell::default(),
        }
    }
}
