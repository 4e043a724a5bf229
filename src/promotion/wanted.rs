//! Decides which pull requests there should be, and the action for each.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::block::parse_body;
use super::next::{Next, Step, pin_of, steps};
use super::{
    Block, Change, Input, PullRequest, RequestState, RolloutState, Undo, approval, is_own_branch,
    promotion_branch,
};
use crate::model::{AppId, Revision, RolloutAction};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Push the branch, then open it.
    Open,
    /// Push the branch if its tree differs, then set title and description.
    Update,
    Keep,
    /// By one request, with [`super::withdrawn_body`].
    Close { why: String },
    /// There is none, or it is not changed.
    Held { why: String },
}

/// One desired or existing pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub branch: String,
    /// Its desired content. `None` for one that is closed or not ready.
    pub change: Option<Change>,
    /// The number of the open one.
    pub number: Option<u64>,
    pub action: Action,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Reverts, then approvals, then promotions by ring.
    pub wanted: Vec<Wanted>,
    /// The time of the next decision if no event comes first: the end of a soak.
    pub until: Option<Timestamp>,
}

/// One branch of this instance, and the purpose of its pull request.
struct Desired {
    branch: String,
    state: Desire,
}

enum Desire {
    Ready(Change),
    Waits(String),
    /// Done already, or not needed any more.
    Nothing(String),
}

pub fn decide(input: &Input<'_>) -> Decision {
    let mut desired = reverts(input);
    desired.extend(approvals(input));
    let mut until: Option<Timestamp> = None;
    for step in steps(input) {
        let branch = promotion_branch(input.prefix(), &step.group, &step.ring.name);
        let state = match step.next(input) {
            Next::Nothing { why } => Desire::Nothing(why),
            Next::Waits { why, until: end } => {
                until = until.into_iter().chain(end).min();
                Desire::Waits(why)
            }
            Next::Ready { .. } if step.is_manual() => {
                Desire::Waits(format!("ring {} is promoted by hand: tutti promote", step.ring.name))
            }
            Next::Ready { pins } => Desire::Ready(promotion(&step, pins)),
        };
        desired.push(Desired { branch, state });
    }
    let requests = Requests::of(input);
    desired.extend(left_over(input, &desired, &requests));
    let mut wanted: Vec<Wanted> =
        desired.into_iter().filter_map(|it| requests.reconcile(input, it)).collect();
    wanted.extend(requests.second());
    hold_above_limit(&mut wanted, input, &requests);
    Decision { wanted, until }
}

fn promotion(step: &Step<'_>, pins: Vec<super::PinChange>) -> Change {
    Change::Promote {
        group: step.group.clone(),
        ring: step.ring.name.clone(),
        before: step.before().to_owned(),
        pins,
        is_requested: false,
    }
}

/// One for each commit whose version was refused.
fn reverts(input: &Input<'_>) -> Vec<Desired> {
    let refused = input.rollouts.iter().filter(|rollout| rollout.is_refused);
    let mut commits: BTreeMap<&Revision, Vec<AppId>> = BTreeMap::new();
    for (commit, app) in refused.filter_map(|rollout| Some((rollout.commit.as_ref()?, &rollout.app))) {
        commits.entry(commit).or_default().push(app.clone());
    }
    let of_commit = |(commit, apps): (&Revision, Vec<AppId>)| {
        let change = |pins| Change::Revert { commit: commit.clone(), apps: apps.clone(), pins };
        let state = match input.undo.get(commit) {
            Some(Undo::Pins(pins)) => Desire::Ready(change(pins.clone())),
            Some(Undo::Whole) => Desire::Ready(change(Vec::new())),
            Some(Undo::Conflicts(files)) => Desire::Waits(format!(
                "{} cannot be reverted cleanly: {files}; revert it by hand",
                commit.short()
            )),
            None => Desire::Waits(format!("{} is being read", commit.short())),
        };
        Desired { branch: change(Vec::new()).branch(input.prefix()), state }
    };
    commits.into_iter().map(of_commit).collect()
}

/// One for each commit and wave that waits for a person, when the rollouts of all apps of the commit have settled.
fn approvals(input: &Input<'_>) -> Vec<Desired> {
    let mut waves: BTreeMap<(&Revision, &String), Vec<&RolloutState>> = BTreeMap::new();
    for rollout in input.rollouts {
        if let (Some(commit), Some((wave, _))) = (&rollout.commit, &rollout.asks) {
            waves.entry((commit, wave)).or_default().push(rollout);
        }
    }
    let of_wave = |((commit, wave), apps): ((&Revision, &String), Vec<&RolloutState>)| {
        let open = |app: &&RolloutState| {
            let (_, digest) = app.asks.as_ref()?;
            Some(approval(&app.app, *digest, RolloutAction::Open { through: wave.clone() }))
        };
        let change = Change::Approve {
            commit: commit.clone(),
            wave: wave.clone(),
            approvals: apps.iter().filter_map(open).collect(),
        };
        let moving = input.rollouts.iter().find(|it| it.commit.as_ref() == Some(commit) && !it.is_settled);
        let branch = change.branch(input.prefix());
        let state = match moving {
            Some(moving) => Desire::Waits(format!("{} of {} still changes", moving.app, commit.short())),
            None => Desire::Ready(change),
        };
        Desired { branch, state }
    };
    waves.into_iter().map(of_wave).collect()
}

/// Open pull requests without a purpose above.
fn left_over(input: &Input<'_>, desired: &[Desired], requests: &Requests<'_>) -> Vec<Desired> {
    let known: BTreeSet<&str> = desired.iter().map(|it| it.branch.as_str()).collect();
    let branches =
        requests.branches.iter().filter(|(branch, all)| !known.contains(*branch) && open(all).is_some());
    // After another commit changed the app, the commit that brought the refused version is unknown.
    let is_still_refused =
        |app: &AppId| input.rollouts.iter().any(|it| it.is_refused && it.commit.is_none() && it.app == *app);
    let is_reading = |app: &AppId| input.rollouts.iter().any(|it| it.is_reading && it.app == *app);
    let of_branch = |(branch, all): (&&str, &Vec<(&PullRequest, Option<Block>)>)| {
        let is_for = |kind: &str, is_so: &dyn Fn(&AppId) -> bool| {
            let block = open(all).and_then(|(_, block)| block.as_ref()).filter(|block| block.kind == kind);
            block.is_some_and(|block| block.items.iter().any(|it| is_so(&it.app)))
        };
        let state = match (input.fleet.is_valid(), input.unread) {
            // An unreadable file may be the one that it is for.
            (false, _) => Desire::Waits("the repository has mistakes".to_owned()),
            (true, _) if is_for("revert", &is_still_refused) => {
                Desire::Waits("its version is still taken back".to_owned())
            }
            (true, _) if is_for("approval", &is_reading) => {
                Desire::Waits("what its apps wait for is being read".to_owned())
            }
            (true, Some(unread)) => Desire::Waits(unread.to_owned()),
            (true, None) => Desire::Nothing("what it is for is no longer there".to_owned()),
        };
        Desired { branch: (*branch).to_owned(), state }
    };
    branches.map(of_branch).collect()
}

type OfBranch<'a> = Vec<(&'a PullRequest, Option<Block>)>;

/// The pull requests of each branch, oldest first.
struct Requests<'a> {
    branches: BTreeMap<&'a str, OfBranch<'a>>,
}

fn open<'r, 'a>(all: &'r [(&'a PullRequest, Option<Block>)]) -> Option<&'r (&'a PullRequest, Option<Block>)> {
    all.iter().find(|(request, _)| request.state == RequestState::Open)
}

impl<'a> Requests<'a> {
    fn of(input: &Input<'a>) -> Self {
        let mut branches: BTreeMap<&str, OfBranch<'a>> = BTreeMap::new();
        let is_ours = |request: &&PullRequest| is_own_branch(input.prefix(), &request.branch);
        for request in input.requests.iter().filter(is_ours) {
            branches.entry(&request.branch).or_default().push((request, parse_body(&request.body)));
        }
        branches.values_mut().for_each(|all| all.sort_by_key(|(request, _)| request.number));
        Self { branches }
    }

    fn reconcile(&self, input: &Input<'_>, desired: Desired) -> Option<Wanted> {
        let Desired { branch, state } = desired;
        let all = self.branches.get(branch.as_str()).map(Vec::as_slice).unwrap_or_default();
        let wanted = |change, number, action| Some(Wanted { branch: branch.clone(), change, number, action });
        let Some((request, block)) = open(all) else {
            return match state {
                Desire::Nothing(_) => None,
                Desire::Waits(why) => wanted(None, None, Action::Held { why }),
                Desire::Ready(change) => match held(all, &change.block()) {
                    Some(why) => wanted(Some(change), None, Action::Held { why }),
                    None => wanted(Some(change), None, Action::Open),
                },
            };
        };
        let number = Some(request.number);
        if request.has_foreign_commits {
            let why = "somebody else pushed to this branch: merge it or close it by hand".to_owned();
            return wanted(None, number, Action::Held { why });
        }
        let is_requested = block.as_ref().is_some_and(|block| block.is_requested && !block.is_withdrawn);
        let is_there = block.as_ref().is_some_and(|block| is_there(input, block));
        match state {
            _ if is_there => {
                wanted(None, number, Action::Close { why: "the pins say these versions already".to_owned() })
            }
            _ if is_requested => wanted(None, number, Action::Keep),
            Desire::Nothing(why) => wanted(None, number, Action::Close { why }),
            Desire::Waits(_) => wanted(None, number, Action::Keep),
            Desire::Ready(change) => {
                let proposed = change.block();
                if block.as_ref() == Some(&proposed) && !request.has_conflicts {
                    return wanted(Some(change), number, Action::Keep);
                }
                match held(all, &proposed) {
                    Some(why) => wanted(None, number, Action::Close { why }),
                    None => wanted(Some(change), number, Action::Update),
                }
            }
        }
    }

    /// A second one of a branch repeats the first.
    fn second(&self) -> Vec<Wanted> {
        let mut found = Vec::new();
        for (branch, all) in &self.branches {
            let open = all.iter().filter(|(request, _)| request.state == RequestState::Open);
            let mut open = open.map(|(request, _)| request);
            let Some(first) = open.next() else { continue };
            found.extend(open.map(|request| Wanted {
                branch: (*branch).to_owned(),
                change: None,
                number: Some(request.number),
                action: Action::Close { why: format!("#{} is of the same branch", first.number) },
            }));
        }
        found
    }
}

/// Why a change is not proposed again.
fn held(all: &[(&PullRequest, Option<Block>)], proposed: &Block) -> Option<String> {
    let over = all.iter().rev().filter(|(request, _)| request.state != RequestState::Open);
    let mut over =
        over.filter_map(|(request, block)| Some((request, block.as_ref().filter(|it| !it.is_withdrawn)?)));
    let closed =
        over.clone().find(|(request, block)| request.state == RequestState::Closed && block.covers(proposed));
    if let Some((request, _)) = closed {
        return Some(format!("#{} was closed without a merge; reopen it to go on", request.number));
    }
    let (request, block) = over.find(|(request, _)| request.state == RequestState::Merged)?;
    // Only the newest one counts: a promotion after it is a new proposal.
    block.covers(proposed).then(|| match block.kind.as_str() {
        "promotion" => format!(
            "#{} brought it already and it was taken back; `tutti promote` brings it again",
            request.number
        ),
        _ => format!("#{} was merged; its commit is still to be read", request.number),
    })
}

/// All pins of a promotion have its versions.
fn is_there(input: &Input<'_>, block: &Block) -> bool {
    let Some(ring) = block.ring.as_ref().filter(|_| block.kind == "promotion") else { return false };
    let has = |app: &AppId, to: &str| {
        let app = input.fleet.apps.get(app);
        app.and_then(|app| pin_of(input, app, ring)).is_some_and(|(version, _)| version == to)
    };
    !block.items.is_empty() && block.items.iter().all(|item| has(&item.app, &item.to))
}

/// Limits the open pull requests; the others wait until one is merged or closed.
fn hold_above_limit(wanted: &mut [Wanted], input: &Input<'_>, requests: &Requests<'_>) {
    let open = requests.branches.values().flatten().filter(|(it, _)| it.state == RequestState::Open).count();
    // One that is closed now frees its slot only the next time: requests are sent one after another, and any of them may be the
    // last.
    let mut room = input.limit.saturating_sub(open);
    for new in wanted.iter_mut().filter(|it| it.action == Action::Open) {
        if room > 0 {
            room -= 1;
            continue;
        }
        let why = format!("{} pull requests of tutti are open: merge or close one", input.limit);
        new.action = Action::Held { why };
    }
}
