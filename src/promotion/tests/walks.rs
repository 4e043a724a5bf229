//! Random histories: the invariants hold after every step, for any order of events and any kill of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Case, Dice, at};
use crate::model::{AppId, ClusterName, Revision};
use crate::promotion::{
    DescriptionBlock, DesiredPullRequest, ProposedChange, PullRequest, PullRequestAction, PullRequestState,
    parse_body, pull_request_body, withdrawn_body,
};

const RINGS: [&str; 3] = ["test", "pre", "prod"];
const VERSIONS: [&str; 4] = ["v1", "v2", "v3", "v4"];
const SOAK: i64 = 600;

/// App, ring, version.
type Pins = Vec<(AppId, String, String)>;

/// The repository, the clusters and the forge. The process has no state here: it may be killed at any moment.
struct World {
    case: Case,
    /// The version that each ring should run, beside the pins: the manifest sets it for the first ring.
    manifests: BTreeMap<AppId, String>,
    /// The difference of a branch to its base: pins by app and ring.
    branches: BTreeMap<String, Pins>,
    /// Branches with pushes by other users.
    foreign: BTreeSet<String>,
    number: u64,
    merged: usize,
}

fn ring_of(branch: &str) -> String {
    branch.rsplit('/').next().unwrap_or_default().to_owned()
}

impl World {
    fn new(apps: usize, grouped: bool) -> Self {
        let names: Vec<String> = (0..apps).map(|number| format!("a{number:02}")).collect();
        let group = |number: usize| if grouped && number < 3 { "promotion: {group: shop}" } else { "" };
        let pins = &[("pre", "v1"), ("prod", "v1")][..];
        let apps: Vec<_> =
            names.iter().enumerate().map(|(number, name)| (name.as_str(), group(number), pins)).collect();
        let mut case = Case::new("test: soak: 10m; pre; prod", &apps);
        for name in &names {
            for ring in RINGS {
                case = case.runs(name, ring, "v1");
            }
        }
        let manifests = case.fleet.apps.keys().map(|app| (app.clone(), "v1".to_owned())).collect();
        let (branches, foreign) = (BTreeMap::new(), BTreeSet::new());
        Self { case, manifests, branches, foreign, number: 0, merged: 0 }
    }

    /// The version that a ring should run by Git.
    fn wanted(&self, app: &AppId, ring: &str) -> String {
        let pin = self.case.fleet.apps[app].pins.get(&ClusterName::from(ring));
        pin.map_or_else(|| self.manifests[app].clone(), |pin| pin.version.clone())
    }

    /// A commit: a ring should run another version, and is not done with it.
    fn set(&mut self, app: &AppId, ring: &str, version: &str) {
        if self.wanted(app, ring) == version {
            return;
        }
        match Arc::make_mut(self.case.fleet.apps.get_mut(app).expect("an app"))
            .pins
            .get_mut(&ClusterName::from(ring))
        {
            Some(pin) => pin.version = version.to_owned(),
            None => {
                self.manifests.insert(app.clone(), version.to_owned());
            }
        }
        self.state(app, ring).done = 0;
        self.state(app, ring).done_since = None;
    }

    fn state(&mut self, app: &AppId, ring: &str) -> &mut super::AppRingState {
        self.case.rings.get_mut(&(app.clone(), ring.to_owned())).expect("a state")
    }

    fn happens(&mut self, dice: &mut Dice) {
        let apps: Vec<AppId> = self.case.fleet.apps.keys().cloned().collect();
        let (app, ring) = (dice.pick(&apps), dice.pick(&RINGS));
        match dice.below(9) {
            0 | 1 => self.set(&app, "test", dice.pick(&VERSIONS)),
            2 => self.set(&app, ring, dice.pick(&VERSIONS)),
            3 | 4 => {
                for ring in RINGS {
                    let (version, now) = (self.wanted(&app, ring), self.case.now);
                    let state = self.state(&app, ring);
                    if state.done == 0 {
                        (state.done, state.done_since, state.version) = (2, Some(now), version);
                    }
                }
            }
            5 => {
                let state = self.state(&app, ring);
                (state.done, state.done_since) = (0, None);
            }
            6 => self.case.now = at(self.case.now.as_second() + SOAK / 2),
            _ => self.person(dice),
        }
    }

    /// A person merges, closes or reopens a pull request, or pushes to one of its branches.
    fn person(&mut self, dice: &mut Dice) {
        if self.case.requests.is_empty() {
            return;
        }
        let index = dice.below(self.case.requests.len());
        let branch = self.case.requests[index].branch.clone();
        let is_open = self.open().contains(&branch);
        let request = &mut self.case.requests[index];
        match (request.state, dice.below(4)) {
            (PullRequestState::Open, 0 | 1) => {
                request.state = PullRequestState::Merged;
                self.merged += 1;
                for (app, ring, version) in self.branches.remove(&branch).unwrap_or_default() {
                    self.set(&app, &ring, &version);
                }
                self.foreign.remove(&branch);
            }
            (PullRequestState::Open, 2) => {
                request.state = PullRequestState::Closed;
                // Most forges are configured to delete the branch.
                self.branches.remove(&branch);
                self.foreign.remove(&branch);
            }
            (PullRequestState::Open, _) => {
                request.has_foreign_commits = true;
                self.foreign.insert(branch);
            }
            (PullRequestState::Closed, 0) if !is_open && self.branches.contains_key(&branch) => {
                request.state = PullRequestState::Open;
            }
            _ => {}
        }
    }

    fn open(&self) -> Vec<String> {
        let open = self.case.requests.iter().filter(|it| it.state == PullRequestState::Open);
        open.map(|it| it.branch.clone()).collect()
    }

    /// Executes the desired actions, and is killed after so many requests. Returns whether it finished.
    fn act(&mut self, mut requests: usize) -> bool {
        let wanted = self.case.decide().pull_requests;
        let mut may_go_on = || {
            requests = requests.wrapping_sub(1);
            requests != usize::MAX
        };
        for DesiredPullRequest { branch, change, number, action } in wanted {
            match action {
                PullRequestAction::Keep | PullRequestAction::Held { .. } => continue,
                PullRequestAction::Close { why } => {
                    if !may_go_on() {
                        return false;
                    }
                    let request = self.case.requests.iter_mut().find(|it| Some(it.number) == number);
                    let request = request.expect("one to close");
                    request.state = PullRequestState::Closed;
                    request.body = withdrawn_body(&request.body, &why);
                    self.branches.remove(&branch);
                }
                PullRequestAction::Open | PullRequestAction::Update => {
                    let change = change.expect("a change");
                    self.is_allowed(&change);
                    if !may_go_on() {
                        return false;
                    }
                    assert!(!self.foreign.contains(&branch), "{branch} has a commit of somebody else");
                    let ProposedChange::Promote { pins, ring, .. } = &change else { panic!("a promotion") };
                    let content = pins.iter().map(|it| (it.app.clone(), ring.clone(), it.to.clone()));
                    self.branches.insert(branch.clone(), content.collect());
                    if !may_go_on() {
                        return false;
                    }
                    let text = pull_request_body(&change, &[]);
                    if let Some(number) = number {
                        let request = self.case.requests.iter_mut().find(|it| it.number == number);
                        request.expect("one to update").body = text;
                        continue;
                    }
                    self.number += 1;
                    self.case.requests.push(PullRequest {
                        number: self.number,
                        branch,
                        head: Revision::from("abc"),
                        body: text,
                        state: PullRequestState::Open,
                        has_foreign_commits: false,
                        has_conflicts: false,
                    });
                }
            }
        }
        true
    }

    /// A proposal has a version that the ring before is done with, that the ring does not have, and that was not closed.
    fn is_allowed(&self, change: &ProposedChange) {
        let ProposedChange::Promote { pins, ring, .. } = change else { panic!("a promotion") };
        let before = RINGS[RINGS.iter().position(|it| it == ring).expect("a ring") - 1];
        for pin in pins {
            let state = &self.case.rings[&(pin.app.clone(), before.to_owned())];
            assert_eq!((state.done, self.wanted(&pin.app, before)), (2, pin.to.clone()), "{pin:?}");
            assert_ne!(self.wanted(&pin.app, ring), pin.to, "nothing to do: {pin:?}");
            let since = state.done_since.expect("it is done").as_second();
            assert!(before != "test" || self.case.now.as_second() >= since + SOAK, "soak: {pin:?}");
        }
        let closed = self.case.requests.iter().filter(|it| it.state == PullRequestState::Closed);
        let closed =
            closed.filter(|it| it.branch == change.branch("tutti")).filter_map(|it| parse_body(&it.body));
        let block = change.block();
        let has_all = |held: &DescriptionBlock| {
            block.items.iter().all(|it| held.items.iter().any(|of| (&of.app, &of.to) == (&it.app, &it.to)))
        };
        assert!(!closed.filter(|it| !it.is_withdrawn).any(|held| has_all(&held)), "it was closed: {block:?}");
    }

    /// The open pull requests, with their descriptions and changes.
    fn proposals(&self) -> BTreeMap<String, (Option<DescriptionBlock>, Pins)> {
        let open = self.case.requests.iter().filter(|it| it.state == PullRequestState::Open);
        open.map(|it| {
            let content = self.branches.get(&it.branch).cloned().unwrap_or_default();
            (it.branch.clone(), (parse_body(&it.body), content))
        })
        .collect()
    }

    fn holds(&self) {
        let open = self.open();
        let distinct: BTreeSet<&String> = open.iter().collect();
        assert_eq!(distinct.len(), open.len(), "two pull requests of one branch");
        assert!(open.len() <= 10, "{} are open", open.len());
        for (branch, (block, content)) in self.proposals() {
            // A description contains no more than its branch.
            let said = block.into_iter().flat_map(|block| block.items);
            let said: Vec<_> = said.map(|it| (it.app, ring_of(&branch), it.to)).collect();
            assert!(self.foreign.contains(&branch) || said == content || !self.is_settled(), "{branch}");
        }
    }

    /// No action remains.
    fn is_settled(&self) -> bool {
        let wanted = self.case.decide().pull_requests;
        wanted.iter().all(|it| matches!(it.action, PullRequestAction::Keep | PullRequestAction::Held { .. }))
    }

    fn fork(&self) -> Self {
        let case = Case {
            fleet: self.case.fleet.clone(),
            rings: self.case.rings.clone(),
            rollouts: Vec::new(),
            undo: BTreeMap::new(),
            requests: self.case.requests.clone(),
            ..self.case
        };
        Self {
            case,
            manifests: self.manifests.clone(),
            branches: self.branches.clone(),
            foreign: self.foreign.clone(),
            ..*self
        }
    }
}

#[test]
fn invariants_hold_in_any_history() {
    let mut dice = Dice(2031);
    let (mut merged, mut killed, mut most_open) = (0, 0, 0);
    for walk in 0..40 {
        let mut world = World::new(if walk % 3 == 0 { 9 } else { 3 }, walk % 2 == 0);
        for _ in 0..30 {
            for _ in 0..=dice.below(if walk % 3 == 0 { 40 } else { 8 }) {
                world.happens(&mut dice);
            }
            // Killed at some point, and restarted from Git and the forge: the result is the same as without the kill.
            let mut other = world.fork();
            let got_to_the_end = other.act(dice.below(4));
            other.holds();
            killed += usize::from(!got_to_the_end);
            assert!((0..4).any(|_| other.act(usize::MAX - 1) && other.is_settled()), "it never ends");
            assert!((0..4).any(|_| world.act(usize::MAX - 1) && world.is_settled()), "it never ends");
            world.holds();
            other.holds();
            assert_eq!(world.proposals(), other.proposals());
            // The order in which the forge lists them does not matter.
            let decided = world.case.decide();
            world.case.requests.reverse();
            assert_eq!(world.case.decide(), decided);
            world.case.requests.reverse();
            most_open = most_open.max(world.open().len());
        }
        merged += world.merged;
    }
    assert!(
        merged > 150 && killed > 80 && most_open == 10,
        "{merged} merged, {killed} killed, {most_open} open"
    );
}
