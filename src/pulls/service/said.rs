//! Commit statuses of pull requests and of the deployed branch: the complete set goes to the outbox. Also restores statuses that
//! an earlier process posted.

use std::collections::BTreeMap;

use super::{CONTEXTS, Connection, GATE, MOST_ENDED, Service, Trouble, VALIDATE, is_for_later};
use crate::forge::{CommitStatus, Error, Pull, PullFilter, PullState, State, shortened};
use crate::model::{Instance, Revision};
use crate::promotion::summary;
use crate::pulls::ours::is_ours;
use crate::pulls::words::{self, Said};
use crate::report::outbox::Order;

/// Commits of a branch, and closed pull requests, that are searched for pending statuses of an earlier process.
const MOST_COMMITS: usize = 5;
const MOST_CLOSED: usize = 20;

impl Service {
    /// Sends all current statuses to the outbox.
    pub(super) fn tell(&mut self, prefix: &str, page: Option<&str>) {
        let (Some(connection), Some(base)) = (&self.connection, &self.base) else { return };
        let mut statuses = BTreeMap::new();
        let mut say = |revision: &Revision, name: &str, (state, text): &Said, url: Option<&str>| {
            let context = format!("{prefix}/{name}");
            let status = CommitStatus {
                context: context.clone(),
                state: *state,
                description: shortened(text).into_owned(),
                target_url: url.map(ToOwned::to_owned),
            };
            statuses.insert((revision.clone(), context), status);
        };
        for (revision, name, said) in &self.ended {
            say(revision, name, said, None);
        }
        let is_known = |revision: &Revision| !self.to_recall.contains_key(revision);
        if let Some((revision, said)) = self.of_base.as_ref().filter(|(revision, _)| is_known(revision)) {
            say(revision, VALIDATE, said, page);
        }
        for (number, (head, _)) in self.said.iter().filter(|(_, (head, _))| is_known(head)) {
            let url = self.open.get(number).map(|open| open.pull.url.as_str());
            for (name, said) in self.all_said(*number) {
                say(head, &name, &said, url);
            }
        }
        // Commits that are not read back yet count as ours too.
        let told = statuses.keys().map(|(revision, _)| revision.clone());
        let mut told: Vec<Revision> = told.chain(self.to_recall.keys().cloned()).collect();
        told.sort();
        told.dedup();
        connection.outbox.send(Order::Desired { head: base.revision.clone(), told, statuses });
    }

    fn all_said(&self, number: u64) -> BTreeMap<String, Said> {
        let Some((head, said)) = self.said.get(&number) else { return BTreeMap::new() };
        let mut all = said.clone();
        if let Some((_, gates)) = self.ours.gates.get(&number).filter(|(of, _)| of == head) {
            all.retain(|name, _| !is_gate(name));
            all.insert(GATE.to_owned(), words::gate(&summary(gates)));
            all.extend(gates.iter().map(|gate| (format!("{GATE}/{}", gate.name), words::gate(gate))));
        }
        all
    }

    /// Sets the results of a head; its gate stays, or starts as unknown.
    pub(super) fn say(&mut self, pull: &Pull, [validate, plan]: [Said; 2], is_ours: bool) {
        let head = &pull.head.revision;
        // The commit may have been a head before.
        self.ended.retain(|(of, ..)| of != head);
        let (_, said) = self.said.entry(pull.number).or_insert_with(|| (head.clone(), BTreeMap::new()));
        said.entry(GATE.to_owned()).or_insert_with(|| gate_of(is_ours));
        let [of_validate, of_plan, _] = CONTEXTS;
        said.extend([(of_validate.to_owned(), validate), (of_plan.to_owned(), plan)]);
    }

    /// Drops a head that is not one any more.
    pub(super) fn forget(&mut self, number: u64, why: &Said) {
        let all = self.all_said(number);
        if let Some((head, _)) = self.said.remove(&number) {
            self.end(&head, all, why);
            if self.ours.gates.get(&number).is_some_and(|(of, _)| *of == head) {
                self.ours.gates.remove(&number);
            }
        }
    }

    /// Ends pending statuses of a commit that gets no result.
    pub(super) fn end(
        &mut self,
        revision: &Revision,
        said: impl IntoIterator<Item = (String, Said)>,
        why: &Said,
    ) {
        let pending = said.into_iter().filter(|(_, (state, _))| *state == State::Pending);
        self.ended.extend(pending.map(|(name, _)| (revision.clone(), name, why.clone())));
        while self.ended.len() > MOST_ENDED {
            self.ended.pop_front();
        }
    }

    /// Reads a commit's statuses from the forge. With `why`, pending ones are ended.
    pub(super) async fn recall(
        &mut self,
        revision: &Revision,
        why: Option<Said>,
        instance: &Instance,
        connection: &Connection,
    ) -> Result<(), Error> {
        let mut statuses = match connection.access.client.statuses(revision).await {
            Ok(statuses) => statuses,
            Err(error) if is_for_later(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, revision = revision.short(), "nothing known of this commit");
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
        let before: BTreeMap<String, Said> = statuses.iter().filter_map(said).collect();
        self.to_recall.remove(revision);
        connection.outbox.send(Order::Known { revision: revision.clone(), statuses });
        match why {
            Some(why) => self.end(revision, before, &why),
            None => self.take_up(revision, &before, connection, &instance.status_prefix),
        }
        self.tell(&instance.status_prefix, instance.page_url.as_deref());
        Ok(())
    }

    /// Restores results, so that they are not replaced by pending.
    fn take_up(
        &mut self,
        revision: &Revision,
        before: &BTreeMap<String, Said>,
        connection: &Connection,
        prefix: &str,
    ) {
        let is_result = |said: &&Said| !matches!(said.0, State::Pending | State::Skipped);
        let knows = |(of, (state, _)): &(Revision, Said)| of == revision && *state != State::Pending;
        if self.base.as_ref().is_some_and(|base| base.revision == *revision)
            && let Some(said) = before.get(VALIDATE).filter(is_result)
            && !self.of_base.as_ref().is_some_and(knows)
        {
            self.of_base = Some((revision.clone(), said.clone()));
        }
        if !CONTEXTS.iter().any(|name| before.contains_key(*name)) {
            return;
        }
        let of_head = self.open.values().filter(|open| open.pull.head.revision == *revision);
        for pull in of_head.map(|open| &open.pull) {
            if self.said.contains_key(&pull.number) {
                continue;
            }
            let comparing = words::comparing(&connection.access.branch);
            let first = [comparing.clone(), comparing, gate_of(is_ours(pull, &connection.access.me, prefix))];
            let mut said: BTreeMap<String, Said> =
                CONTEXTS.iter().map(|name| (*name).to_owned()).zip(first).collect();
            let stays = before.iter().filter(|(_, said)| said.0 != State::Skipped);
            said.extend(stays.map(|(name, said)| (name.clone(), said.clone())));
            self.said.insert(pull.number, (revision.clone(), said));
        }
    }

    /// Finds commits that an earlier process may have left pending.
    pub(super) async fn look_back(&mut self, connection: &Connection) -> Result<(), Trouble> {
        let Some(base) = self.base.as_ref().map(|base| base.revision.clone()) else { return Ok(()) };
        let repository = self.settings.repository.clone();
        let mut left: Vec<(Revision, Said)> = Vec::new();
        for commit in repository.recent(&base, MOST_COMMITS).await?.into_iter().skip(1) {
            left.push((commit.revision, words::superseded(&base)));
        }
        let filter = PullFilter {
            with_closed: true,
            base: Some(connection.access.branch.clone()),
            most: MOST_CLOSED,
            ..PullFilter::default()
        };
        let pulls = connection.access.client.pulls(&filter).await?;
        let closed: Vec<Pull> = pulls.into_iter().filter(|pull| pull.state != PullState::Open).collect();
        left.extend(closed.iter().map(|pull| (pull.head.revision.clone(), words::closed())));
        for pull in self.open.values().map(|open| &open.pull).chain(&closed) {
            let head = &pull.head.revision;
            // A commit that is not in the clone was never compared by this disk.
            if !repository.contains(head).await? {
                continue;
            }
            let merged = match &pull.merge_commit {
                Some(merged) if repository.contains(merged).await? => repository.recent(merged, 2).await?,
                _ => Vec::new(),
            };
            let onto = merged.get(1).map_or(&base, |before| &before.revision);
            for commit in repository.recent(head, MOST_COMMITS).await?.into_iter().skip(1) {
                if commit.revision == *onto || repository.goes_on(onto, &commit.revision).await? {
                    break;
                }
                left.push((commit.revision, words::superseded(head)));
            }
        }
        let is_said = |revision: &Revision| self.said.values().any(|(head, _)| head == revision);
        left.retain(|(revision, _)| *revision != base && !is_said(revision));
        for (revision, why) in left {
            self.to_recall.entry(revision).or_insert(Some(why));
        }
        Ok(())
    }
}

/// `gate`, or one of its parts.
fn is_gate(name: &str) -> bool {
    name.strip_prefix(GATE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn gate_of(is_ours: bool) -> Said {
    if is_ours { words::gates_unknown() } else { words::no_promotion() }
}
