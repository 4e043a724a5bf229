//! tutti's own pull requests: promotions, confirmations, reverts.
//!
//! [`promotion::decide`] computes the desired ones from Git, the clusters and the forge, so a process with a wiped disk decides
//! the same. This module reads the inputs and does one action at a time; `service` calls [`Ours::step`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::controller::{Clock, ConfigHead, START_LASTS};
use crate::forge::{self, ErrorKind, MergeHow, Pull, PullFilter, PullState, State};
use crate::model::{AppId, Happened, PromotionMode, Revision};
use crate::notification::Promotion;
use crate::promotion::{
    self, Action, Change, Decision, Gate, GateState, HeadFacts, Input, MOST_OPEN, Merge, PullRequest,
    RequestState, RingState, RolloutState, Wanted, gates, may_merge, parse_body, withdrawn_body,
};
use crate::report::{self, Overview, ring_states, rollout_states};

use super::publish::{NewFile, Proposal, Publisher, Unpublished};
use super::service::is_for_later;
use super::undo::{Undone, undo};
use crate::source;

/// The newest own pull requests are listed. Closed ones show what a person holds.
const MOST_READ: usize = 200;
/// Facts about a promotion's head are read again after this: no webhook reports a status.
const FACTS_LAST: Duration = Duration::from_secs(15);
/// The list is read again after this, without a webhook.
const LIST_LASTS: Duration = Duration::from_secs(60);
/// The forge may refuse a merge while it computes mergeability. After this many refusals the pull request shows the reason.
const REFUSED: u32 = 3;
/// Least time between two steps after a change of the overview.
const APART: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct Ours {
    pulls: Vec<Pull>,
    listed_at: Option<Instant>,
    /// Whether own pull requests are possible.
    is_needed: bool,
    /// Whether each branch holds a commit of another author, by head.
    foreign: BTreeMap<u64, (Revision, bool)>,
    undo: BTreeMap<(Revision, Revision), Undone>,
    facts: BTreeMap<u64, Facts>,
    pub gates: BTreeMap<u64, (Revision, Vec<Gate>)>,
    /// Actions that were refused, by branch, and when they may be tried again.
    not_before: BTreeMap<String, Instant>,
    looked_at: Option<Instant>,
    refused: BTreeMap<u64, RefusedMerge>,
    /// An input changed since the last step.
    is_due: bool,
    until: Option<Timestamp>,
    /// Since when a cluster was not read completely, and the reason that was logged.
    unread: Option<(Instant, String)>,
    told: BTreeMap<String, String>,
    clock: Clock,
    /// Every passed gate stands as a status at the forge.
    is_told: bool,
}

#[derive(Debug)]
struct Facts {
    head: Revision,
    said: HeadFacts,
    has_changes_requested: bool,
    read_at: Instant,
}

/// A merge that the forge refused, for this head.
#[derive(Debug)]
struct RefusedMerge {
    head: Revision,
    times: u32,
    why: String,
}

/// State of the clusters, as far as pull requests depend on it.
struct Running {
    rings: BTreeMap<(AppId, String), RingState>,
    rollouts: Vec<RolloutState>,
}

impl Ours {
    /// An own pull request may have changed at the forge.
    pub fn touch(&mut self, number: Option<u64>) {
        self.is_due = true;
        if let Some(number) = number {
            self.facts.remove(&number);
        }
        self.listed_at = None;
    }

    /// The clusters may have changed.
    pub fn look(&mut self) {
        self.is_due = true;
    }

    pub fn next(&self, now: Instant) -> Instant {
        let Some(looked_at) = self.looked_at else { return now };
        if self.is_due || !self.is_told {
            return (looked_at + APART).max(now);
        }
        let soak = self.until.map(|until| self.clock.instant_of(until).min(looked_at + LIST_LASTS));
        let open = (!self.gates.is_empty()).then_some(looked_at + FACTS_LAST);
        [soak, open, Some(looked_at + LIST_LASTS)].into_iter().flatten().min().unwrap_or(now).max(now)
    }

    /// Does the next action; returns whether more may follow. `has_open`: an own pull request is open. `conflicts`: pull requests
    /// that cannot be merged.
    pub async fn step(
        &mut self,
        publisher: &Publisher<'_>,
        overview: &Overview,
        has_open: bool,
        conflicts: &BTreeSet<u64>,
    ) -> Result<bool, Unpublished> {
        let (head, now) = (publisher.head, Instant::now());
        let (unread, had_time) = self.unread(overview, now);
        let is_of_head =
            overview.revision.as_ref() == Some(&head.snapshot.revision) && overview.is_rendered && had_time;
        (self.is_due, self.looked_at, self.is_told) = (!is_of_head, Some(now), true);
        let is_needed = has_open
            || !overview.rollouts.is_empty()
            || head.fleet.apps.values().any(|app| !app.pins.is_empty());
        self.is_needed = is_needed || !is_of_head;
        if !is_of_head || !is_needed {
            return Ok(false);
        }
        self.list(publisher, now).await?;
        let running =
            Running { rings: ring_states(overview, &head.fleet), rollouts: rollout_states(overview) };
        self.read_undo(publisher, &running).await?;
        let (requests, undo) = (self.requests(conflicts), self.known_undo(&head.snapshot.revision));
        let input = Input {
            fleet: &head.fleet,
            rings: &running.rings,
            rollouts: &running.rollouts,
            undo: &undo,
            requests: &requests,
            unread: unread.as_deref(),
            limit: MOST_OPEN,
            now: self.clock.time_of(now),
            wall: self.clock.wall(now),
        };
        let Decision { wanted, until } = promotion::decide(&input);
        self.until = until;
        for wanted in &wanted {
            if self.act(publisher, &input, wanted, now).await? {
                self.touch(wanted.number);
                return Ok(true);
            }
        }
        self.look_at_gates(publisher, &input, &wanted, now).await
    }

    /// The cluster that is not read completely, and whether the start phase is over. During the start an unread cluster means
    /// nothing; later only promotions of its apps wait.
    fn unread(&mut self, overview: &Overview, now: Instant) -> (Option<String>, bool) {
        let Some(why) = report::unread(overview) else {
            self.unread = None;
            return (None, true);
        };
        let (since, logged) = self.unread.get_or_insert_with(|| (now, String::new()));
        let had_time = *since + START_LASTS <= now;
        if had_time && *logged != why {
            tracing::warn!(why, "promotions of the apps on this cluster wait");
            logged.clone_from(&why);
        }
        (Some(why), had_time)
    }

    async fn list(&mut self, publisher: &Publisher<'_>, now: Instant) -> Result<(), Unpublished> {
        if self.listed_at.is_none_or(|at| at + LIST_LASTS <= now) {
            let access = publisher.access;
            let filter = PullFilter {
                with_closed: true,
                author: Some(access.me.clone()),
                base: Some(access.branch.clone()),
                most: MOST_READ,
            };
            let mut pulls = access.client.pulls(&filter).await?;
            pulls.retain(|pull| is_ours(pull, &access.me, publisher.prefix));
            self.pulls = pulls;
            self.listed_at = Some(now);
            let open: BTreeMap<u64, Revision> =
                self.open().map(|pull| (pull.number, pull.head.revision.clone())).collect();
            self.foreign.retain(|number, (head, _)| open.get(number) == Some(head));
            self.facts.retain(|number, facts| open.get(number) == Some(&facts.head));
            self.refused.retain(|number, refused| open.get(number) == Some(&refused.head));
        }
        let unknown: Vec<Pull> =
            self.open().filter(|pull| !self.foreign.contains_key(&pull.number)).cloned().collect();
        for pull in unknown {
            let is_foreign = publisher.is_foreign(&pull.head.reference).await?;
            self.foreign.insert(pull.number, (pull.head.revision, is_foreign));
        }
        Ok(())
    }

    fn open(&self) -> impl Iterator<Item = &Pull> {
        self.pulls.iter().filter(|pull| pull.state == PullState::Open)
    }

    /// The promotions, for notifications. `None`: not listed, or one changed since.
    pub fn promotions(&self) -> Option<Vec<Promotion>> {
        if !self.is_needed {
            return Some(Vec::new());
        }
        self.listed_at?;
        let one = |pull: &Pull| {
            let block =
                parse_body(&pull.body).filter(|block| block.kind == "promotion" && !block.is_withdrawn)?;
            Some(Promotion {
                number: pull.number,
                title: pull.title.clone(),
                url: pull.url.clone(),
                apps: block.items.into_iter().map(|item| item.app).collect(),
                ring: block.ring?,
                happened: match pull.state {
                    PullState::Open => Happened::Opened,
                    PullState::Closed => Happened::Held,
                    PullState::Merged => Happened::Merged,
                },
            })
        };
        Some(self.pulls.iter().filter_map(one).collect())
    }

    fn requests(&self, conflicts: &BTreeSet<u64>) -> Vec<PullRequest> {
        let one = |pull: &Pull| PullRequest {
            number: pull.number,
            branch: pull.head.reference.clone(),
            head: pull.head.revision.clone(),
            body: pull.body.clone(),
            state: match pull.state {
                PullState::Open => RequestState::Open,
                PullState::Merged => RequestState::Merged,
                PullState::Closed => RequestState::Closed,
            },
            has_foreign_commits: self.foreign.get(&pull.number).is_some_and(|(_, is_foreign)| *is_foreign),
            has_conflicts: conflicts.contains(&pull.number),
        };
        self.pulls.iter().map(one).collect()
    }

    /// How to revert commits whose rollout failed.
    async fn read_undo(&mut self, publisher: &Publisher<'_>, running: &Running) -> Result<(), Unpublished> {
        let head = publisher.head.snapshot.revision.clone();
        self.undo.retain(|(of, _), _| *of == head);
        let refused = running.rollouts.iter().filter(|rollout| rollout.is_refused);
        for commit in refused.filter_map(|rollout| rollout.commit.as_ref()) {
            if let Entry::Vacant(unread) = self.undo.entry((head.clone(), commit.clone())) {
                let undone = match undo(publisher.repository, publisher.head, commit).await {
                    // For example after a rewritten history. Others must not wait.
                    Err(error) if error.kind() == source::ErrorKind::Configuration => {
                        Undone { how: promotion::Undo::Conflicts(error.to_string()), files: Vec::new() }
                    }
                    read => read?,
                };
                unread.insert(undone);
            }
        }
        Ok(())
    }

    fn known_undo(&self, head: &Revision) -> BTreeMap<Revision, promotion::Undo> {
        let of_head = self.undo.iter().filter(|((of, _), _)| of == head);
        of_head.map(|((_, commit), undone)| (commit.clone(), undone.how.clone())).collect()
    }

    /// Returns whether an action was done.
    async fn act(
        &mut self,
        publisher: &Publisher<'_>,
        input: &Input<'_>,
        wanted: &Wanted,
        now: Instant,
    ) -> Result<bool, Unpublished> {
        let Wanted { branch, change, number, action } = wanted;
        if let Action::Held { why } = action {
            if self.told.insert(branch.clone(), why.clone()).as_ref() != Some(why) {
                tracing::info!(branch, why, "no pull request");
            }
            return Ok(false);
        }
        self.told.remove(branch);
        if self.not_before.get(branch).is_some_and(|at| *at > now) {
            return Ok(false);
        }
        let pull = number.and_then(|number| self.pulls.iter().find(|pull| pull.number == number));
        let in_conflict = input.requests.iter().any(|it| Some(it.number) == *number && it.has_conflicts);
        let done = match (action, change, pull) {
            // The branch starts at an outdated commit: a new pull request replaces it.
            (Action::Update, Some(_), Some(pull)) if in_conflict => {
                let why = format!("it is in conflict with {}", publisher.access.branch);
                publisher.close(pull, &withdrawn_body(&pull.body, &why)).await
            }
            // The branch holds files that are not desired any more.
            (Action::Update, Some(change), Some(pull)) if loses_any(pull, change) => {
                publisher.close(pull, &withdrawn_body(&pull.body, "its apps are others by now")).await
            }
            (Action::Open | Action::Update, Some(change), _) => {
                let gates = gates(input, change, &HeadFacts::default());
                match self.files(publisher.head, change) {
                    // A change that follows at once waits a little.
                    Ok(files) => {
                        self.not_before.insert(branch.clone(), now + FACTS_LAST);
                        publisher
                            .propose(&Proposal::of(change, &gates, files, publisher.prefix))
                            .await
                            .map(drop)
                    }
                    Err(why) => {
                        tracing::warn!(branch, why, "no pull request");
                        self.not_before.insert(branch.clone(), now + LIST_LASTS);
                        return Ok(false);
                    }
                }
            }
            (Action::Close { why }, _, Some(pull)) => {
                publisher.close(pull, &withdrawn_body(&pull.body, why)).await
            }
            _ => return Ok(false),
        };
        match done {
            Ok(()) => Ok(true),
            // The branch or the base changed meanwhile: it is read again.
            Err(error @ (Unpublished::Foreign(_) | Unpublished::Unchanged(_))) => {
                tracing::info!(branch, %error, "no pull request");
                self.not_before.insert(branch.clone(), now + LIST_LASTS);
                self.touch(*number);
                Ok(false)
            }
            Err(Unpublished::Forge(error)) if !is_for_later(&error) => {
                tracing::warn!(branch, %error, "no pull request");
                self.not_before.insert(branch.clone(), now + LIST_LASTS);
                self.touch(*number);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn files(&self, head: &ConfigHead, change: &Change) -> Result<Vec<NewFile>, String> {
        let read = |path: &str| head.snapshot.text(path).map(ToOwned::to_owned);
        let revision = &head.snapshot.revision;
        Ok(match change {
            Change::Revert { commit, pins, .. } if pins.is_empty() => {
                let undone = self.undo.get(&(revision.clone(), commit.clone()));
                undone.map(|undone| undone.files.clone()).unwrap_or_default()
            }
            change => {
                let files = change.files(revision, &read)?;
                files.into_iter().map(|(path, text)| (path, Some(text))).collect()
            }
        })
    }

    /// Whether the merge would change exactly the files of a change.
    async fn is_exactly(
        &self,
        publisher: &Publisher<'_>,
        pull: &Pull,
        change: &Change,
    ) -> Result<bool, Unpublished> {
        let Ok(files) = self.files(publisher.head, change) else { return Ok(false) };
        publisher.changes_just(&pull.head_reference(), Some(&pull.head.revision), &files).await
    }

    /// Updates the gates of open promotions, and merges one whose gates have all passed.
    async fn look_at_gates(
        &mut self,
        publisher: &Publisher<'_>,
        input: &Input<'_>,
        wanted: &[Wanted],
        now: Instant,
    ) -> Result<bool, Unpublished> {
        let client = &publisher.access.client;
        let open: Vec<Pull> = self.open().cloned().collect();
        for pull in open {
            let Some(request) = input.requests.iter().find(|it| it.number == pull.number) else { continue };
            let head = pull.head.revision.clone();
            let Some(change) = proposed(input, &pull, wanted) else {
                let asks = promotion::is_approval_branch(publisher.prefix, &pull.head.reference);
                let gates = asks.then(promotion::unknown_approvals).into_iter().collect();
                self.gates.insert(pull.number, (head, gates));
                continue;
            };
            if self.facts.get(&pull.number).is_none_or(|facts| facts.read_at + FACTS_LAST <= now) {
                let read = async { Ok((client.statuses(&head).await?, client.reviews(pull.number).await?)) };
                let (statuses, reviews) = match read.await {
                    Ok(read) => read,
                    // For example too large a list. Others must not wait.
                    Err::<_, forge::Error>(error) if !is_for_later(&error) => {
                        tracing::warn!(pull = pull.number, %error, "its gates are not known");
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let me = &publisher.access.me;
                let approvals = forge::approvals(&reviews, &head, me, me);
                let said = HeadFacts {
                    statuses: statuses.into_iter().map(|it| (it.context, state_of(it.state))).collect(),
                    approved_by: approvals.by.clone(),
                };
                let has_changes_requested = !approvals.refused_by.is_empty();
                let facts = Facts { head: head.clone(), said, has_changes_requested, read_at: now };
                self.facts.insert(pull.number, facts);
            }
            let Some(facts) = self.facts.get(&pull.number) else { continue };
            let gates = gates(input, &change, &facts.said);
            let action = wanted.iter().find(|it| it.number == Some(pull.number)).map(|it| &it.action);
            let merge = Merge {
                change: &change,
                action: action.unwrap_or(&Action::Keep),
                mode: mode_of(input, &change),
                gates: &gates,
                judged: &facts.head,
                head: &head,
                has_changes_requested: facts.has_changes_requested,
                has_foreign_commits: request.has_foreign_commits,
                is_mergeable: Some(!request.has_conflicts),
            };
            let may = may_merge(&merge);
            if !gates.is_empty() {
                let mut body = promotion::body(&change, &gates);
                let refused = self.refused.get(&pull.number).filter(|it| it.times >= REFUSED);
                if let Some(refused) = refused.filter(|_| may.is_ok()) {
                    body.push_str(&promotion::refused_merge(&refused.why));
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
                self.facts.get(&pull.number).and_then(|facts| facts.said.statuses.get(&context)).copied()
            };
            if may.is_ok()
                && (stands("gate"), stands("validate"))
                    != (Some(GateState::Success), Some(GateState::Success))
            {
                self.facts.remove(&pull.number);
                self.is_told = false;
                continue;
            }
            if may.is_err() || self.not_before.get(branch).is_some_and(|at| *at > now) {
                continue;
            }
            // Anybody with push access could have written to the branch.
            if !self.is_exactly(publisher, &pull, &change).await? {
                tracing::warn!(pull = pull.number, "not merged: it changes other files than it says");
                self.not_before.insert(branch.clone(), now + LIST_LASTS);
                continue;
            }
            match publisher.write(client.merge_pull(pull.number, MergeHow::Merge, &head)).await {
                Ok(()) => {
                    tracing::info!(pull = pull.number, head = head.short(), "merged");
                    self.touch(Some(pull.number));
                    return Ok(true);
                }
                // The forge says what is missing; the merge is tried again.
                Err(Unpublished::Forge(error)) => {
                    tracing::info!(pull = pull.number, %error, "not merged yet");
                    if !matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::RateLimited) {
                        let times = self.refused.get(&pull.number).map_or(0, |refused| refused.times) + 1;
                        let refused = RefusedMerge { head: head.clone(), times, why: error.to_string() };
                        self.refused.insert(pull.number, refused);
                    }
                    self.not_before.insert(branch.clone(), now + FACTS_LAST);
                    self.touch(Some(pull.number));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// It proposes an app that the change no longer has.
fn loses_any(pull: &Pull, change: &Change) -> bool {
    let wanted = change.block();
    let has = |app: &AppId| wanted.items.iter().any(|item| item.app == *app);
    parse_body(&pull.body).is_some_and(|block| !block.items.iter().all(|item| has(&item.app)))
}

/// Opened by our user from one of this instance's branches. Other instances have other prefixes.
pub fn is_ours(pull: &Pull, me: &str, prefix: &str) -> bool {
    !pull.head.is_fork
        && pull.author.eq_ignore_ascii_case(me)
        && promotion::is_own_branch(prefix, &pull.head.reference)
}

/// The change that an open pull request proposes: as computed, or from its description.
fn proposed(input: &Input<'_>, pull: &Pull, wanted: &[Wanted]) -> Option<Change> {
    let of_it = wanted.iter().find(|it| it.number == Some(pull.number));
    if let Some(change) = of_it.and_then(|it| it.change.clone()) {
        return Some(change);
    }
    promotion::proposed(input, &parse_body(&pull.body)?)
}

fn mode_of(input: &Input<'_>, change: &Change) -> PromotionMode {
    let Change::Promote { ring, .. } = change else { return PromotionMode::Propose };
    let ring = input.fleet.rings.iter().find(|it| it.name == *ring);
    ring.map_or(PromotionMode::Propose, |ring| ring.promotion.mode)
}

fn state_of(state: State) -> GateState {
    match state {
        State::Success => GateState::Success,
        State::Failure | State::Error => GateState::Failure,
        State::Pending | State::Skipped => GateState::Pending,
    }
}
