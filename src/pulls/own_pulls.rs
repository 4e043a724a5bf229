//! tutti's own pull requests: promotions, confirmations, reverts.
//!
//! [`promotion::decide`] computes the desired ones from Git, the clusters and the forge, so a process with a wiped disk decides
//! the same. This module reads the inputs and does one action at a time; `service` calls [`OwnPulls::step`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::controller::{ConfigHead, RuntimeClock, STARTUP_GRACE_PERIOD};
use crate::forge::{self, CommitStatusState, ForgeErrorKind, MergeMethod, Pull, PullFilter, PullState};
use crate::model::{AppId, NotificationPhase, PromotionMode, Revision};
use crate::notification::PromotionPull;
use crate::promotion::{
    self, AppRingState, AppRolloutState, DesiredPullRequest, MAX_OPEN, MergeInput, PromotionDecision,
    PromotionGate, PromotionGateState, PromotionInput, ProposedChange, PullRequest, PullRequestAction,
    PullRequestHeadFacts, PullRequestState, gates, may_merge, parse_body, withdrawn_body,
};
use crate::report::{self, Overview, ring_states, rollout_states};

use super::connection::is_retryable;
use super::publish::{FileUpdate, Proposal, PublishError, Publisher};
use super::revert::{RevertPlan, plan_revert};
use crate::source;

/// The newest own pull requests are listed. Closed ones show what a person holds.
const MAX_LISTED: usize = 200;
/// Facts about a promotion's head are read again after this: no webhook reports a status.
const FACTS_TTL: Duration = Duration::from_secs(15);
/// The list is read again after this, without a webhook.
const LIST_TTL: Duration = Duration::from_secs(60);
/// The forge may refuse a merge while it computes mergeability. After this many refusals the pull request shows the reason.
const REFUSALS_UNTIL_TOLD: u32 = 3;
/// Least time between two steps after a change of the overview.
const MIN_STEP_INTERVAL: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct OwnPulls {
    pulls: Vec<Pull>,
    listed_at: Option<Instant>,
    /// Whether own pull requests are possible.
    is_needed: bool,
    /// Whether each branch holds a commit of another author, by head.
    foreign_commits: BTreeMap<u64, (Revision, bool)>,
    reverts: BTreeMap<(Revision, Revision), RevertPlan>,
    facts: BTreeMap<u64, PullFacts>,
    pub gates: BTreeMap<u64, (Revision, Vec<PromotionGate>)>,
    /// Actions that were refused, by branch, and when they may be tried again.
    retry_at: BTreeMap<String, Instant>,
    stepped_at: Option<Instant>,
    refused_merges: BTreeMap<u64, RefusedMerge>,
    /// An input changed since the last step.
    is_due: bool,
    next_change_at: Option<Timestamp>,
    /// Since when a cluster was not read completely, and the reason that was logged.
    unread_cluster: Option<(Instant, String)>,
    logged_holds: BTreeMap<String, String>,
    clock: RuntimeClock,
    /// Every passed gate stands as a status at the forge.
    are_gates_posted: bool,
}

#[derive(Debug)]
struct PullFacts {
    head: Revision,
    head_facts: PullRequestHeadFacts,
    has_changes_requested: bool,
    read_at: Instant,
}

/// A merge that the forge refused, for this head.
#[derive(Debug)]
struct RefusedMerge {
    head: Revision,
    attempts: u32,
    reason: String,
}

/// State of the clusters, as far as pull requests depend on it.
struct RunningState {
    rings: BTreeMap<(AppId, String), AppRingState>,
    rollouts: Vec<AppRolloutState>,
}

impl OwnPulls {
    /// An own pull request may have changed at the forge.
    pub fn invalidate(&mut self, number: Option<u64>) {
        self.is_due = true;
        if let Some(number) = number {
            self.facts.remove(&number);
        }
        self.listed_at = None;
    }

    /// The clusters may have changed.
    pub fn mark_due(&mut self) {
        self.is_due = true;
    }

    pub fn next_step_at(&self, now: Instant) -> Instant {
        let Some(looked_at) = self.stepped_at else { return now };
        if self.is_due || !self.are_gates_posted {
            return (looked_at + MIN_STEP_INTERVAL).max(now);
        }
        let soak = self.next_change_at.map(|until| self.clock.instant_of(until).min(looked_at + LIST_TTL));
        let open = (!self.gates.is_empty()).then_some(looked_at + FACTS_TTL);
        [soak, open, Some(looked_at + LIST_TTL)].into_iter().flatten().min().unwrap_or(now).max(now)
    }

    /// Does the next action; returns whether more may follow. `has_open`: an own pull request is open. `conflicts`: pull requests
    /// that cannot be merged.
    pub async fn step(
        &mut self,
        publisher: &Publisher<'_>,
        overview: &Overview,
        has_open: bool,
        conflicts: &BTreeSet<u64>,
    ) -> Result<bool, PublishError> {
        let (head, now) = (publisher.head, Instant::now());
        let (unread, had_time) = self.unread_cluster(overview, now);
        let is_of_head =
            overview.revision.as_ref() == Some(&head.snapshot.revision) && overview.is_rendered && had_time;
        (self.is_due, self.stepped_at, self.are_gates_posted) = (!is_of_head, Some(now), true);
        let is_needed = has_open
            || !overview.rollouts.is_empty()
            || head.fleet.apps.values().any(|app| !app.pins.is_empty());
        self.is_needed = is_needed || !is_of_head;
        if !is_of_head || !is_needed {
            return Ok(false);
        }
        self.refresh_list(publisher, now).await?;
        let running =
            RunningState { rings: ring_states(overview, &head.fleet), rollouts: rollout_states(overview) };
        self.read_reverts(publisher, &running).await?;
        let (requests, undo) = (self.pull_requests(conflicts), self.known_reverts(&head.snapshot.revision));
        let input = PromotionInput {
            fleet: &head.fleet,
            rings: &running.rings,
            rollouts: &running.rollouts,
            undo: &undo,
            pull_requests: &requests,
            unread_reason: unread.as_deref(),
            limit: MAX_OPEN,
            now: self.clock.time_of(now),
            wall_time: self.clock.wall_time(now),
        };
        let PromotionDecision { pull_requests: wanted, recheck_at: until } = promotion::decide(&input);
        self.next_change_at = until;
        for wanted in &wanted {
            if self.apply_action(publisher, &input, wanted, now).await? {
                self.invalidate(wanted.number);
                return Ok(true);
            }
        }
        self.update_gates(publisher, &input, &wanted, now).await
    }

    /// The cluster that is not read completely, and whether the start phase is over. During the start an unread cluster means
    /// nothing; later only promotions of its apps wait.
    fn unread_cluster(&mut self, overview: &Overview, now: Instant) -> (Option<String>, bool) {
        let Some(why) = report::unobserved_reason(overview) else {
            self.unread_cluster = None;
            return (None, true);
        };
        let (since, logged) = self.unread_cluster.get_or_insert_with(|| (now, String::new()));
        let had_time = *since + STARTUP_GRACE_PERIOD <= now;
        if had_time && *logged != why {
            tracing::warn!(why, "promotions of the apps on this cluster wait");
            logged.clone_from(&why);
        }
        (Some(why), had_time)
    }

    async fn refresh_list(&mut self, publisher: &Publisher<'_>, now: Instant) -> Result<(), PublishError> {
        if self.listed_at.is_none_or(|at| at + LIST_TTL <= now) {
            let access = publisher.access;
            let filter = PullFilter {
                with_closed: true,
                author: Some(access.login.clone()),
                base: Some(access.branch.clone()),
                most: MAX_LISTED,
            };
            let mut pulls = access.client.pulls(&filter).await?;
            pulls.retain(|pull| is_own_pull(pull, &access.login, publisher.prefix));
            self.pulls = pulls;
            self.listed_at = Some(now);
            let open: BTreeMap<u64, Revision> =
                self.open_pulls().map(|pull| (pull.number, pull.head.revision.clone())).collect();
            self.foreign_commits.retain(|number, (head, _)| open.get(number) == Some(head));
            self.facts.retain(|number, facts| open.get(number) == Some(&facts.head));
            self.refused_merges.retain(|number, refused| open.get(number) == Some(&refused.head));
        }
        let unknown: Vec<Pull> = self
            .open_pulls()
            .filter(|pull| !self.foreign_commits.contains_key(&pull.number))
            .cloned()
            .collect();
        for pull in unknown {
            let is_foreign = publisher.has_foreign_commits(&pull.head.reference).await?;
            self.foreign_commits.insert(pull.number, (pull.head.revision, is_foreign));
        }
        Ok(())
    }

    fn open_pulls(&self) -> impl Iterator<Item = &Pull> {
        self.pulls.iter().filter(|pull| pull.state == PullState::Open)
    }

    /// The promotions, for notifications. `None`: not listed, or one changed since.
    pub fn promotions(&self) -> Option<Vec<PromotionPull>> {
        if !self.is_needed {
            return Some(Vec::new());
        }
        self.listed_at?;
        let one = |pull: &Pull| {
            let block =
                parse_body(&pull.body).filter(|block| block.kind == "promotion" && !block.is_withdrawn)?;
            Some(PromotionPull {
                number: pull.number,
                title: pull.title.clone(),
                url: pull.url.clone(),
                apps: block.items.into_iter().map(|item| item.app).collect(),
                ring: block.ring?,
                happened: match pull.state {
                    PullState::Open => NotificationPhase::Opened,
                    PullState::Closed => NotificationPhase::Held,
                    PullState::Merged => NotificationPhase::Merged,
                },
            })
        };
        Some(self.pulls.iter().filter_map(one).collect())
    }

    fn pull_requests(&self, conflicts: &BTreeSet<u64>) -> Vec<PullRequest> {
        let one = |pull: &Pull| PullRequest {
            number: pull.number,
            branch: pull.head.reference.clone(),
            head: pull.head.revision.clone(),
            body: pull.body.clone(),
            state: match pull.state {
                PullState::Open => PullRequestState::Open,
                PullState::Merged => PullRequestState::Merged,
                PullState::Closed => PullRequestState::Closed,
            },
            has_foreign_commits: self
                .foreign_commits
                .get(&pull.number)
                .is_some_and(|(_, is_foreign)| *is_foreign),
            has_conflicts: conflicts.contains(&pull.number),
        };
        self.pulls.iter().map(one).collect()
    }

    /// How to revert commits whose rollout failed.
    async fn read_reverts(
        &mut self,
        publisher: &Publisher<'_>,
        running: &RunningState,
    ) -> Result<(), PublishError> {
        let head = publisher.head.snapshot.revision.clone();
        self.reverts.retain(|(of, _), _| *of == head);
        let refused = running.rollouts.iter().filter(|rollout| rollout.is_refused);
        for commit in refused.filter_map(|rollout| rollout.commit.as_ref()) {
            if let Entry::Vacant(unread) = self.reverts.entry((head.clone(), commit.clone())) {
                let undone = match plan_revert(publisher.repository, publisher.head, commit).await {
                    // For example after a rewritten history. Others must not wait.
                    Err(error) if error.kind() == source::ErrorKind::Configuration => RevertPlan {
                        how: promotion::CommitUndo::Conflicts(error.to_string()),
                        files: Vec::new(),
                    },
                    read => read?,
                };
                unread.insert(undone);
            }
        }
        Ok(())
    }

    fn known_reverts(&self, head: &Revision) -> BTreeMap<Revision, promotion::CommitUndo> {
        let of_head = self.reverts.iter().filter(|((of, _), _)| of == head);
        of_head.map(|((_, commit), undone)| (commit.clone(), undone.how.clone())).collect()
    }

    /// Returns whether an action was done.
    async fn apply_action(
        &mut self,
        publisher: &Publisher<'_>,
        input: &PromotionInput<'_>,
        wanted: &DesiredPullRequest,
        now: Instant,
    ) -> Result<bool, PublishError> {
        let DesiredPullRequest { branch, change, number, action } = wanted;
        if let PullRequestAction::Held { why } = action {
            if self.logged_holds.insert(branch.clone(), why.clone()).as_ref() != Some(why) {
                tracing::info!(branch, why, "no pull request");
            }
            return Ok(false);
        }
        self.logged_holds.remove(branch);
        if self.retry_at.get(branch).is_some_and(|at| *at > now) {
            return Ok(false);
        }
        let pull = number.and_then(|number| self.pulls.iter().find(|pull| pull.number == number));
        let in_conflict = input.pull_requests.iter().any(|it| Some(it.number) == *number && it.has_conflicts);
        let done = match (action, change, pull) {
            // The branch starts at an outdated commit: a new pull request replaces it.
            (PullRequestAction::Update, Some(_), Some(pull)) if in_conflict => {
                let why = format!("it is in conflict with {}", publisher.access.branch);
                publisher.close(pull, &withdrawn_body(&pull.body, &why)).await
            }
            // The branch holds files that are not desired any more.
            (PullRequestAction::Update, Some(change), Some(pull)) if drops_an_app(pull, change) => {
                publisher.close(pull, &withdrawn_body(&pull.body, "its apps have changed")).await
            }
            (PullRequestAction::Open | PullRequestAction::Update, Some(change), _) => {
                let gates = gates(input, change, &PullRequestHeadFacts::default());
                match self.change_files(publisher.head, change) {
                    // A change that follows at once waits a little.
                    Ok(files) => {
                        self.retry_at.insert(branch.clone(), now + FACTS_TTL);
                        publisher
                            .propose(&Proposal::of(change, &gates, files, publisher.prefix))
                            .await
                            .map(drop)
                    }
                    Err(why) => {
                        tracing::warn!(branch, why, "no pull request");
                        self.retry_at.insert(branch.clone(), now + LIST_TTL);
                        return Ok(false);
                    }
                }
            }
            (PullRequestAction::Close { why }, _, Some(pull)) => {
                publisher.close(pull, &withdrawn_body(&pull.body, why)).await
            }
            _ => return Ok(false),
        };
        match done {
            Ok(()) => Ok(true),
            // The branch or the base changed meanwhile: it is read again.
            Err(error @ (PublishError::ForeignCommit(_) | PublishError::Unchanged(_))) => {
                tracing::info!(branch, %error, "no pull request");
                self.retry_at.insert(branch.clone(), now + LIST_TTL);
                self.invalidate(*number);
                Ok(false)
            }
            Err(PublishError::Forge(error)) if !is_retryable(&error) => {
                tracing::warn!(branch, %error, "no pull request");
                self.retry_at.insert(branch.clone(), now + LIST_TTL);
                self.invalidate(*number);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn change_files(&self, head: &ConfigHead, change: &ProposedChange) -> Result<Vec<FileUpdate>, String> {
        let read = |path: &str| head.snapshot.text(path).map(ToOwned::to_owned);
        let revision = &head.snapshot.revision;
        Ok(match change {
            ProposedChange::Revert { commit, pins, .. } if pins.is_empty() => {
                let undone = self.reverts.get(&(revision.clone(), commit.clone()));
                undone.map(|undone| undone.files.clone()).unwrap_or_default()
            }
            change => {
                let files = change.files(revision, &read)?;
                files.into_iter().map(|(path, text)| (path, Some(text))).collect()
            }
        })
    }

    /// Whether the merge would change exactly the files of a change.
    async fn has_exact_changes(
        &self,
        publisher: &Publisher<'_>,
        pull: &Pull,
        change: &ProposedChange,
    ) -> Result<bool, PublishError> {
        let Ok(files) = self.change_files(publisher.head, change) else { return Ok(false) };
        publisher.has_only_changes(&pull.head_reference(), Some(&pull.head.revision), &files).await
    }

    /// Updates the gates of open promotions, and merges one whose gates have all passed.
    async fn update_gates(
        &mut self,
        publisher: &Publisher<'_>,
        input: &PromotionInput<'_>,
        wanted: &[DesiredPullRequest],
        now: Instant,
    ) -> Result<bool, PublishError> {
        let client = &publisher.access.client;
        let open: Vec<Pull> = self.open_pulls().cloned().collect();
        for pull in open {
            let Some(request) = input.pull_requests.iter().find(|it| it.number == pull.number) else {
                continue;
            };
            let head = pull.head.revision.clone();
            let Some(change) = proposed_change(input, &pull, wanted) else {
                let asks = promotion::is_approval_branch(publisher.prefix, &pull.head.reference);
                let gates = asks.then(promotion::unknown_approvals).into_iter().collect();
                self.gates.insert(pull.number, (head, gates));
                continue;
            };
            if self.facts.get(&pull.number).is_none_or(|facts| facts.read_at + FACTS_TTL <= now) {
                let read = async { Ok((client.statuses(&head).await?, client.reviews(pull.number).await?)) };
                let (statuses, reviews) = match read.await {
                    Ok(read) => read,
                    // For example too large a list. Others must not wait.
                    Err::<_, forge::Error>(error) if !is_retryable(&error) => {
                        tracing::warn!(pull = pull.number, %error, "its gates are not known");
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let me = &publisher.access.login;
                let approvals = forge::approvals(&reviews, &head, me, me);
                let said = PullRequestHeadFacts {
                    statuses: statuses.into_iter().map(|it| (it.context, gate_state(it.state))).collect(),
                    approved_by: approvals.by.clone(),
                };
                let has_changes_requested = !approvals.refused_by.is_empty();
                let facts =
                    PullFacts { head: head.clone(), head_facts: said, has_changes_requested, read_at: now };
                self.facts.insert(pull.number, facts);
            }
            let Some(facts) = self.facts.get(&pull.number) else { continue };
            let gates = gates(input, &change, &facts.head_facts);
            let action = wanted.iter().find(|it| it.number == Some(pull.number)).map(|it| &it.action);
            let merge = MergeInput {
                change: &change,
                action: action.unwrap_or(&PullRequestAction::Keep),
                mode: promotion_mode(input, &change),
                gates: &gates,
                judged_head: &facts.head,
                head: &head,
                has_changes_requested: facts.has_changes_requested,
                has_foreign_commits: request.has_foreign_commits,
                is_mergeable: Some(!request.has_conflicts),
            };
            let may = may_merge(&merge);
            if !gates.is_empty() {
                let mut body = promotion::pull_request_body(&change, &gates);
                let refused =
                    self.refused_merges.get(&pull.number).filter(|it| it.attempts >= REFUSALS_UNTIL_TOLD);
                if let Some(refused) = refused.filter(|_| may.is_ok()) {
                    body.push_str(&promotion::refused_merge_note(&refused.reason));
                }
                if !request.has_foreign_commits {
                    publisher.describe(&pull, &change.title(), &body).await?;
                    if let Some(known) = self.pulls.iter_mut().find(|known| known.number == pull.number) {
                        (known.title, known.body) = (change.title(), body);
                    }
                }
            }
            self.gates.insert(pull.number, (head.clone(), gates));
            let branch = &pull.head.reference;
            // Branch protection needs these statuses first, and an invalid head is never merged.
            let stands = |name: &str| {
                let context = format!("{}/{name}", publisher.prefix);
                self.facts
                    .get(&pull.number)
                    .and_then(|facts| facts.head_facts.statuses.get(&context))
                    .copied()
            };
            if may.is_ok()
                && (stands("gate"), stands("validate"))
                    != (Some(PromotionGateState::Success), Some(PromotionGateState::Success))
            {
                self.facts.remove(&pull.number);
                self.are_gates_posted = false;
                continue;
            }
            if may.is_err() || self.retry_at.get(branch).is_some_and(|at| *at > now) {
                continue;
            }
            // Anybody with push access could have written to the branch.
            if !self.has_exact_changes(publisher, &pull, &change).await? {
                tracing::warn!(
                    pull = pull.number,
                    "not merged: it changes files that its description does not name"
                );
                self.retry_at.insert(branch.clone(), now + LIST_TTL);
                continue;
            }
            match publisher.write(client.merge_pull(pull.number, MergeMethod::Merge, &head)).await {
                Ok(()) => {
                    tracing::info!(pull = pull.number, head = head.short(), "merged");
                    self.invalidate(Some(pull.number));
                    return Ok(true);
                }
                // The forge says what is missing; the merge is tried again.
                Err(PublishError::Forge(error)) => {
                    tracing::info!(pull = pull.number, %error, "not merged yet");
                    if !matches!(error.kind(), ForgeErrorKind::Unreachable | ForgeErrorKind::RateLimited) {
                        let times =
                            self.refused_merges.get(&pull.number).map_or(0, |refused| refused.attempts) + 1;
                        let refused =
                            RefusedMerge { head: head.clone(), attempts: times, reason: error.to_string() };
                        self.refused_merges.insert(pull.number, refused);
                    }
                    self.retry_at.insert(branch.clone(), now + FACTS_TTL);
                    self.invalidate(Some(pull.number));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// It proposes an app that the change no longer has.
fn drops_an_app(pull: &Pull, change: &ProposedChange) -> bool {
    let wanted = change.block();
    let has = |app: &AppId| wanted.items.iter().any(|item| item.app == *app);
    parse_body(&pull.body).is_some_and(|block| !block.items.iter().all(|item| has(&item.app)))
}

/// Opened by our user from one of this instance's branches. Other instances have other prefixes.
pub fn is_own_pull(pull: &Pull, me: &str, prefix: &str) -> bool {
    !pull.head.is_fork
        && pull.author.eq_ignore_ascii_case(me)
        && promotion::is_own_branch(prefix, &pull.head.reference)
}

/// The change that an open pull request proposes: as computed, or from its description.
fn proposed_change(
    input: &PromotionInput<'_>,
    pull: &Pull,
    wanted: &[DesiredPullRequest],
) -> Option<ProposedChange> {
    let of_it = wanted.iter().find(|it| it.number == Some(pull.number));
    if let Some(change) = of_it.and_then(|it| it.change.clone()) {
        return Some(change);
    }
    promotion::proposed_change(input, &parse_body(&pull.body)?)
}

fn promotion_mode(input: &PromotionInput<'_>, change: &ProposedChange) -> PromotionMode {
    let ProposedChange::Promote { ring, .. } = change else { return PromotionMode::Propose };
    let ring = input.fleet.rings.iter().find(|it| it.name == *ring);
    ring.map_or(PromotionMode::Propose, |ring| ring.promotion.mode)
}

fn gate_state(state: CommitStatusState) -> PromotionGateState {
    match state {
        CommitStatusState::Success => PromotionGateState::Success,
        CommitStatusState::Failure | CommitStatusState::Error => PromotionGateState::Failure,
        CommitStatusState::Pending | CommitStatusState::Skipped => PromotionGateState::Pending,
    }
}
