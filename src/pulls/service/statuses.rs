//! Commit statuses of pull requests and of the deployed branch: the complete set goes to the outbox. Also restores statuses that
//! an earlier process posted.

use std::collections::BTreeMap;

use super::{
    CONTEXTS, ForgeConnection, GATE, MAX_ENDED, PullService, PullServiceError, VALIDATE, is_retryable,
};
use crate::forge::{
    CommitStatus, CommitStatusState, Error, Pull, PullFilter, PullState, shorten_description,
};
use crate::model::{Instance, Revision};
use crate::promotion::summary_gate;
use crate::pulls::own_pulls::is_own_pull;
use crate::pulls::status_text::{self, StatusText};
use crate::report::outbox::OutboxCommand;

/// Commits of a branch, and closed pull requests, that are searched for pending statuses of an earlier process.
const MAX_COMMITS: usize = 5;
const MAX_CLOSED: usize = 20;

impl PullService {
    /// Sends all current statuses to the outbox.
    pub(super) fn post_statuses(&mut self, prefix: &str, page: Option<&str>) {
        let (Some(connection), Some(base)) = (&self.connection, &self.base) else { return };
        let mut statuses = BTreeMap::new();
        let mut say = |revision: &Revision, name: &str, (state, text): &StatusText, url: Option<&str>| {
            let context = format!("{prefix}/{name}");
            let status = CommitStatus {
                context: context.clone(),
                state: *state,
                description: shorten_description(text).into_owned(),
                target_url: url.map(ToOwned::to_owned),
            };
            statuses.insert((revision.clone(), context), status);
        };
        for (revision, name, said) in &self.ended_statuses {
            say(revision, name, said, None);
        }
        let is_known = |revision: &Revision| !self.to_read_back.contains_key(revision);
        if let Some((revision, said)) = self.base_status.as_ref().filter(|(revision, _)| is_known(revision)) {
            say(revision, VALIDATE, said, page);
        }
        for (number, (head, _)) in self.head_statuses.iter().filter(|(_, (head, _))| is_known(head)) {
            let url = self.open.get(number).map(|open| open.pull.url.as_str());
            for (name, said) in self.statuses_of_pull(*number) {
                say(head, &name, &said, url);
            }
        }
        // Commits that are not read back yet count as ours too.
        let told = statuses.keys().map(|(revision, _)| revision.clone());
        let mut told: Vec<Revision> = told.chain(self.to_read_back.keys().cloned()).collect();
        told.sort();
        told.dedup();
        connection.outbox.send(OutboxCommand::Desired { head: base.revision.clone(), told, statuses });
    }

    fn statuses_of_pull(&self, number: u64) -> BTreeMap<String, StatusText> {
        let Some((head, said)) = self.head_statuses.get(&number) else { return BTreeMap::new() };
        let mut all = said.clone();
        if let Some((_, gates)) = self.own_pulls.gates.get(&number).filter(|(of, _)| of == head) {
            all.retain(|name, _| !is_gate(name));
            all.insert(GATE.to_owned(), status_text::gate_status(&summary_gate(gates)));
            all.extend(
                gates.iter().map(|gate| (format!("{GATE}/{}", gate.name), status_text::gate_status(gate))),
            );
        }
        all
    }

    /// Sets the results of a head; its gate stays, or starts as unknown.
    pub(super) fn set_statuses(&mut self, pull: &Pull, [validate, plan]: [StatusText; 2], is_ours: bool) {
        let head = &pull.head.revision;
        // The commit may have been a head before.
        self.ended_statuses.retain(|(of, ..)| of != head);
        let (_, said) =
            self.head_statuses.entry(pull.number).or_insert_with(|| (head.clone(), BTreeMap::new()));
        said.entry(GATE.to_owned()).or_insert_with(|| initial_gate(is_ours));
        let [of_validate, of_plan, _] = CONTEXTS;
        said.extend([(of_validate.to_owned(), validate), (of_plan.to_owned(), plan)]);
    }

    /// Drops a head that is not one any more.
    pub(super) fn drop_pull(&mut self, number: u64, why: &StatusText) {
        let all = self.statuses_of_pull(number);
        if let Some((head, _)) = self.head_statuses.remove(&number) {
            self.end_pending(&head, all, why);
            if self.own_pulls.gates.get(&number).is_some_and(|(of, _)| *of == head) {
                self.own_pulls.gates.remove(&number);
            }
        }
    }

    /// Ends pending statuses of a commit that gets no result.
    pub(super) fn end_pending(
        &mut self,
        revision: &Revision,
        said: impl IntoIterator<Item = (String, StatusText)>,
        why: &StatusText,
    ) {
        let pending = said.into_iter().filter(|(_, (state, _))| *state == CommitStatusState::Pending);
        self.ended_statuses.extend(pending.map(|(name, _)| (revision.clone(), name, why.clone())));
        while self.ended_statuses.len() > MAX_ENDED {
            self.ended_statuses.pop_front();
        }
    }

    /// Reads a commit's statuses from the forge. With `why`, pending ones are ended.
    pub(super) async fn read_back(
        &mut self,
        revision: &Revision,
        why: Option<StatusText>,
        instance: &Instance,
        connection: &ForgeConnection,
    ) -> Result<(), Error> {
        let mut statuses = match connection.access.client.statuses(revision).await {
            Ok(statuses) => statuses,
            Err(error) if is_retryable(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, revision = revision.short(), "nothing is known about this commit");
                Vec::new()
            }
        };
        let prefix = format!("{}/", instance.status_prefix);
        let name = |status: &CommitStatus| {
            let name = status.context.strip_prefix(&prefix)?;
            (CONTEXTS.contains(&name) || is_gate(name)).then(|| name.to_owned())
        };
        statuses.retain(|status| name(status).is_some());
        let said = |status: &CommitStatus| Some((name(status)?, (status.state, status.description.clone())));
        let before: BTreeMap<String, StatusText> = statuses.iter().filter_map(said).collect();
        self.to_read_back.remove(revision);
        connection.outbox.send(OutboxCommand::Existing { revision: revision.clone(), statuses });
        match why {
            Some(why) => self.end_pending(revision, before, &why),
            None => self.restore_statuses(revision, &before, connection, &instance.status_prefix),
        }
        self.post_statuses(&instance.status_prefix, instance.page_url.as_deref());
        Ok(())
    }

    /// Restores results, so that they are not replaced by pending.
    fn restore_statuses(
        &mut self,
        revision: &Revision,
        before: &BTreeMap<String, StatusText>,
        connection: &ForgeConnection,
        prefix: &str,
    ) {
        let is_result =
            |said: &&StatusText| !matches!(said.0, CommitStatusState::Pending | CommitStatusState::Skipped);
        let knows = |(of, (state, _)): &(Revision, StatusText)| {
            of == revision && *state != CommitStatusState::Pending
        };
        if self.base.as_ref().is_some_and(|base| base.revision == *revision)
            && let Some(said) = before.get(VALIDATE).filter(is_result)
            && !self.base_status.as_ref().is_some_and(knows)
        {
            self.base_status = Some((revision.clone(), said.clone()));
        }
        if !CONTEXTS.iter().any(|name| before.contains_key(*name)) {
            return;
        }
        let of_head = self.open.values().filter(|open| open.pull.head.revision == *revision);
        for pull in of_head.map(|open| &open.pull) {
            if self.head_statuses.contains_key(&pull.number) {
                continue;
            }
            let comparing = status_text::comparing(&connection.access.branch);
            let first = [
                comparing.clone(),
                comparing,
                initial_gate(is_own_pull(pull, &connection.access.login, prefix)),
            ];
            let mut said: BTreeMap<String, StatusText> =
                CONTEXTS.iter().map(|name| (*name).to_owned()).zip(first).collect();
            let stays = before.iter().filter(|(_, said)| said.0 != CommitStatusState::Skipped);
            said.extend(stays.map(|(name, said)| (name.clone(), said.clone())));
            self.head_statuses.insert(pull.number, (revision.clone(), said));
        }
    }

    /// Finds commits that an earlier process may have left pending.
    pub(super) async fn find_unfinished(
        &mut self,
        connection: &ForgeConnection,
    ) -> Result<(), PullServiceError> {
        let Some(base) = self.base.as_ref().map(|base| base.revision.clone()) else { return Ok(()) };
        let repository = self.settings.repository.clone();
        let mut left: Vec<(Revision, StatusText)> = Vec::new();
        for commit in repository.recent_commits(&base, MAX_COMMITS).await?.into_iter().skip(1) {
            left.push((commit.revision, status_text::superseded(&base)));
        }
        let filter = PullFilter {
            with_closed: true,
            base: Some(connection.access.branch.clone()),
            most: MAX_CLOSED,
            ..PullFilter::default()
        };
        let pulls = connection.access.client.pulls(&filter).await?;
        let closed: Vec<Pull> = pulls.into_iter().filter(|pull| pull.state != PullState::Open).collect();
        left.extend(closed.iter().map(|pull| (pull.head.revision.clone(), status_text::closed())));
        for pull in self.open.values().map(|open| &open.pull).chain(&closed) {
            let head = &pull.head.revision;
            // A commit that is not in the clone was never compared by this disk.
            if !repository.contains(head).await? {
                continue;
            }
            let merged = match &pull.merge_commit {
                Some(merged) if repository.contains(merged).await? => {
                    repository.recent_commits(merged, 2).await?
                }
                _ => Vec::new(),
            };
            let onto = merged.get(1).map_or(&base, |before| &before.revision);
            for commit in repository.recent_commits(head, MAX_COMMITS).await?.into_iter().skip(1) {
                if commit.revision == *onto || repository.is_fast_forward(onto, &commit.revision).await? {
                    break;
                }
                left.push((commit.revision, status_text::superseded(head)));
            }
        }
        let is_said = |revision: &Revision| self.head_statuses.values().any(|(head, _)| head == revision);
        left.retain(|(revision, _)| *revision != base && !is_said(revision));
        for (revision, why) in left {
            self.to_read_back.entry(revision).or_insert(Some(why));
        }
        Ok(())
    }
}

/// `gate`, or one of its parts.
fn is_gate(name: &str) -> bool {
    name.strip_prefix(GATE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn initial_gate(is_ours: bool) -> StatusText {
    if is_ours { status_text::gates_unknown() } else { status_text::no_promotion() }
}
