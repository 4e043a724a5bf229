//! Decides which pull requests there should be, and the action for each.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::description_block::parse_body;
use super::next::{NextVersion, PromotionStep, pin_of, promotion_steps};
use super::{
    AppRolloutState, CommitUndo, DescriptionBlock, PromotionInput, ProposedChange, PullRequest,
    PullRequestState, is_own_branch, promotion_branch, rollout_approval,
};
use crate::model::{AppId, Revision, RolloutAction};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestAction {
    /// Push the branch, then open it.
    Open,
    /// Push the branch if its tree differs, then set title and description.
    Update,
    Keep,
    /// By one request, with [`super::withdrawn_body`].
    Close {
        why: String,
    },
    /// There is none, or it is not changed.
    Held {
        why: String,
    },
}

/// One desired or existing pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredPullRequest {
    pub branch: String,
    /// Its desired content. `None` for one that is closed or not ready.
    pub change: Option<ProposedChange>,
    /// The number of the open one.
    pub number: Option<u64>,
    pub action: PullRequestAction,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromotionDecision {
    /// Reverts, then approvals, then promotions by ring.
    pub pull_requests: Vec<DesiredPullRequest>,
    /// The time of the next decision if no event comes first: the end of a soak.
    pub recheck_at: Option<Timestamp>,
}

/// One branch of this instance, and the purpose of its pull request.
struct BranchProposal {
    branch: String,
    state: ProposalState,
}

enum ProposalState {
    Ready(ProposedChange),
    Waits(String),
    /// Done already, or not needed any more.
    Nothing(String),
}

pub fn decide(input: &PromotionInput<'_>) -> PromotionDecision {
    let mut desired = reverts(input);
    desired.extend(approvals(input));
    let mut until: Option<Timestamp> = None;
    for step in promotion_steps(input) {
        let branch = promotion_branch(input.prefix(), &step.group, &step.ring.name);
        let state = match step.next_version(input) {
            NextVersion::Nothing { why } => ProposalState::Nothing(why),
            NextVersion::Waits { why, until: end } => {
                until = until.into_iter().chain(end).min();
                ProposalState::Waits(why)
            }
            NextVersion::Ready { .. } if step.is_manual() => {
                ProposalState::Waits(format!("ring {} is promoted by hand: tutti promote", step.ring.name))
            }
            NextVersion::Ready { pins } => ProposalState::Ready(promotion_change(&step, pins)),
        };
        desired.push(BranchProposal { branch, state });
    }
    let requests = PullRequestsByBranch::of(input);
    desired.extend(unneeded_requests(input, &desired, &requests));
    let mut wanted: Vec<DesiredPullRequest> =
        desired.into_iter().filter_map(|it| requests.reconcile(input, it)).collect();
    wanted.extend(requests.duplicates());
    hold_above_limit(&mut wanted, input, &requests);
    PromotionDecision { pull_requests: wanted, recheck_at: until }
}

fn promotion_change(step: &PromotionStep<'_>, pins: Vec<super::PinChange>) -> ProposedChange {
    ProposedChange::Promote {
        group: step.group.clone(),
        ring: step.ring.name.clone(),
        before: step.previous_ring().to_owned(),
        pins,
        is_requested: false,
    }
}

/// One for each commit whose version was refused.
fn reverts(input: &PromotionInput<'_>) -> Vec<BranchProposal> {
    let refused = input.rollouts.iter().filter(|rollout| rollout.is_refused);
    let mut commits: BTreeMap<&Revision, Vec<AppId>> = BTreeMap::new();
    for (commit, app) in refused.filter_map(|rollout| Some((rollout.commit.as_ref()?, &rollout.app))) {
        commits.entry(commit).or_default().push(app.clone());
    }
    let of_commit = |(commit, apps): (&Revision, Vec<AppId>)| {
        let change = |pins| ProposedChange::Revert { commit: commit.clone(), apps: apps.clone(), pins };
        let state = match input.undo.get(commit) {
            Some(CommitUndo::Pins(pins)) => ProposalState::Ready(change(pins.clone())),
            Some(CommitUndo::Whole) => ProposalState::Ready(change(Vec::new())),
            Some(CommitUndo::Conflicts(files)) => ProposalState::Waits(format!(
                "{} cannot be reverted cleanly: {files}; revert it by hand",
                commit.short()
            )),
            None => ProposalState::Waits(format!("{} is being read", commit.short())),
        };
        BranchProposal { branch: change(Vec::new()).branch(input.prefix()), state }
    };
    commits.into_iter().map(of_commit).collect()
}

/// One for each commit and wave that waits for a person, when the rollouts of all apps of the commit have settled.
fn approvals(input: &PromotionInput<'_>) -> Vec<BranchProposal> {
    let mut waves: BTreeMap<(&Revision, &String), Vec<&AppRolloutState>> = BTreeMap::new();
    for rollout in input.rollouts {
        if let (Some(commit), Some((wave, _))) = (&rollout.commit, &rollout.pending_confirmation) {
            waves.entry((commit, wave)).or_default().push(rollout);
        }
    }
    let of_wave = |((commit, wave), apps): ((&Revision, &String), Vec<&AppRolloutState>)| {
        let open = |app: &&AppRolloutState| {
            let (_, digest) = app.pending_confirmation.as_ref()?;
            Some(rollout_approval(&app.app, *digest, RolloutAction::Open { through: wave.clone() }))
        };
        let change = ProposedChange::Approve {
            commit: commit.clone(),
            wave: wave.clone(),
            approvals: apps.iter().filter_map(open).collect(),
        };
        let moving = input.rollouts.iter().find(|it| it.commit.as_ref() == Some(commit) && !it.is_settled);
        let branch = change.branch(input.prefix());
        let state = match moving {
            Some(moving) => {
                ProposalState::Waits(format!("{} of {} still changes", moving.app, commit.short()))
            }
            None => ProposalState::Ready(change),
        };
        BranchProposal { branch, state }
    };
    waves.into_iter().map(of_wave).collect()
}

/// Open pull requests without a purpose above.
fn unneeded_requests(
    input: &PromotionInput<'_>,
    desired: &[BranchProposal],
    requests: &PullRequestsByBranch<'_>,
) -> Vec<BranchProposal> {
    let known: BTreeSet<&str> = desired.iter().map(|it| it.branch.as_str()).collect();
    let branches = requests
        .branches
        .iter()
        .filter(|(branch, all)| !known.contains(*branch) && oldest_open(all).is_some());
    // After another commit changed the app, the commit that brought the refused version is unknown.
    let is_still_refused =
        |app: &AppId| input.rollouts.iter().any(|it| it.is_refused && it.commit.is_none() && it.app == *app);
    let is_reading = |app: &AppId| input.rollouts.iter().any(|it| it.is_reading && it.app == *app);
    let of_branch = |(branch, all): (&&str, &Vec<(&PullRequest, Option<DescriptionBlock>)>)| {
        let is_for = |kind: &str, is_so: &dyn Fn(&AppId) -> bool| {
            let block =
                oldest_open(all).and_then(|(_, block)| block.as_ref()).filter(|block| block.kind == kind);
            block.is_some_and(|block| block.items.iter().any(|it| is_so(&it.app)))
        };
        let state = match (input.fleet.is_valid(), input.unread_reason) {
            // An unreadable file may be the one that it is for.
            (false, _) => ProposalState::Waits("the repository has errors".to_owned()),
            (true, _) if is_for("revert", &is_still_refused) => {
                ProposalState::Waits("its version is still being reverted".to_owned())
            }
            (true, _) if is_for("approval", &is_reading) => {
                ProposalState::Waits("the rollouts of its apps are being read".to_owned())
            }
            (true, Some(unread)) => ProposalState::Waits(unread.to_owned()),
            (true, None) => ProposalState::Nothing("its rollout or promotion is no longer there".to_owned()),
        };
        BranchProposal { branch: (*branch).to_owned(), state }
    };
    branches.map(of_branch).collect()
}

type BranchPullRequests<'a> = Vec<(&'a PullRequest, Option<DescriptionBlock>)>;

/// The pull requests of each branch, oldest first.
struct PullRequestsByBranch<'a> {
    branches: BTreeMap<&'a str, BranchPullRequests<'a>>,
}

fn oldest_open<'r, 'a>(
    all: &'r [(&'a PullRequest, Option<DescriptionBlock>)],
) -> Option<&'r (&'a PullRequest, Option<DescriptionBlock>)> {
    all.iter().find(|(request, _)| request.state == PullRequestState::Open)
}

impl<'a> PullRequestsByBranch<'a> {
    fn of(input: &PromotionInput<'a>) -> Self {
        let mut branches: BTreeMap<&str, BranchPullRequests<'a>> = BTreeMap::new();
        let is_ours = |request: &&PullRequest| is_own_branch(input.prefix(), &request.branch);
        for request in input.pull_requests.iter().filter(is_ours) {
            branches.entry(&request.branch).or_default().push((request, parse_body(&request.body)));
        }
        branches.values_mut().for_each(|all| all.sort_by_key(|(request, _)| request.number));
        Self { branches }
    }

    fn reconcile(&self, input: &PromotionInput<'_>, desired: BranchProposal) -> Option<DesiredPullRequest> {
        let BranchProposal { branch, state } = desired;
        let all = self.branches.get(branch.as_str()).map(Vec::as_slice).unwrap_or_default();
        let wanted = |change, number, action| {
            Some(DesiredPullRequest { branch: branch.clone(), change, number, action })
        };
        let Some((request, block)) = oldest_open(all) else {
            return match state {
                ProposalState::Nothing(_) => None,
                ProposalState::Waits(why) => wanted(None, None, PullRequestAction::Held { why }),
                ProposalState::Ready(change) => match held_reason(all, &change.block()) {
                    Some(why) => wanted(Some(change), None, PullRequestAction::Held { why }),
                    None => wanted(Some(change), None, PullRequestAction::Open),
                },
            };
        };
        let number = Some(request.number);
        if request.has_foreign_commits {
            let why =
                "this branch has a commit that tutti did not make: merge or close it by hand".to_owned();
            return wanted(None, number, PullRequestAction::Held { why });
        }
        let is_requested = block.as_ref().is_some_and(|block| block.is_requested && !block.is_withdrawn);
        let is_there = block.as_ref().is_some_and(|block| has_proposed_versions(input, block));
        match state {
            _ if is_there => wanted(
                None,
                number,
                PullRequestAction::Close { why: "the pins already have these versions".to_owned() },
            ),
            _ if is_requested => wanted(None, number, PullRequestAction::Keep),
            ProposalState::Nothing(why) => wanted(None, number, PullRequestAction::Close { why }),
            ProposalState::Waits(_) => wanted(None, number, PullRequestAction::Keep),
            ProposalState::Ready(change) => {
                let proposed = change.block();
                if block.as_ref() == Some(&proposed) && !request.has_conflicts {
                    return wanted(Some(change), number, PullRequestAction::Keep);
                }
                match held_reason(all, &proposed) {
                    Some(why) => wanted(None, number, PullRequestAction::Close { why }),
                    None => wanted(Some(change), number, PullRequestAction::Update),
                }
            }
        }
    }

    /// A second one of a branch repeats the first.
    fn duplicates(&self) -> Vec<DesiredPullRequest> {
        let mut found = Vec::new();
        for (branch, all) in &self.branches {
            let open = all.iter().filter(|(request, _)| request.state == PullRequestState::Open);
            let mut open = open.map(|(request, _)| request);
            let Some(first) = open.next() else { continue };
            found.extend(open.map(|request| DesiredPullRequest {
                branch: (*branch).to_owned(),
                change: None,
                number: Some(request.number),
                action: PullRequestAction::Close { why: format!("#{} is of the same branch", first.number) },
            }));
        }
        found
    }
}

/// Why a change is not proposed again.
fn held_reason(
    all: &[(&PullRequest, Option<DescriptionBlock>)],
    proposed: &DescriptionBlock,
) -> Option<String> {
    let over = all.iter().rev().filter(|(request, _)| request.state != PullRequestState::Open);
    let mut over =
        over.filter_map(|(request, block)| Some((request, block.as_ref().filter(|it| !it.is_withdrawn)?)));
    let closed = over
        .clone()
        .find(|(request, block)| request.state == PullRequestState::Closed && block.covers(proposed));
    if let Some((request, _)) = closed {
        return Some(format!("#{} was closed without a merge; reopen it to continue", request.number));
    }
    let (request, block) = over.find(|(request, _)| request.state == PullRequestState::Merged)?;
    // Only the newest one counts: a promotion after it is a new proposal.
    block.covers(proposed).then(|| match block.kind.as_str() {
        "promotion" => {
            format!("#{} set it before, and it was reverted; `tutti promote` sets it again", request.number)
        }
        _ => format!("#{} was merged; its commit is still to be read", request.number),
    })
}

/// All pins of a promotion have its versions.
fn has_proposed_versions(input: &PromotionInput<'_>, block: &DescriptionBlock) -> bool {
    let Some(ring) = block.ring.as_ref().filter(|_| block.kind == "promotion") else { return false };
    let has = |app: &AppId, to: &str| {
        let app = input.fleet.apps.get(app);
        app.and_then(|app| pin_of(input, app, ring)).is_some_and(|(version, _)| version == to)
    };
    !block.items.is_empty() && block.items.iter().all(|item| has(&item.app, &item.to))
}

/// Limits the open pull requests; the others wait until one is merged or closed.
fn hold_above_limit(
    wanted: &mut [DesiredPullRequest],
    input: &PromotionInput<'_>,
    requests: &PullRequestsByBranch<'_>,
) {
    let open =
        requests.branches.values().flatten().filter(|(it, _)| it.state == PullRequestState::Open).count();
    // One that is closed now frees its slot only the next time: requests are sent one after another, and any of them may be the
    // last.
    let mut room = input.limit.saturating_sub(open);
    for new in wanted.iter_mut().filter(|it| it.action == PullRequestAction::Open) {
        if room > 0 {
            room -= 1;
            continue;
        }
        let why = format!("{} pull requests of tutti are open: merge or close one", input.limit);
        new.action = PullRequestAction::Held { why };
    }
}
