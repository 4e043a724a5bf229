//! Leader election of `tutti run`: starts it, reports role changes, and forwards hints of standbys to the leader.

use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::output::tell;
use crate::cluster::{HomeCluster, WritePermit, host_name};
use crate::forge::{WebhookHint, WebhookHintKind, is_commit};
use crate::leader::{LeaderCandidate, LeaderRole, Leadership, LeadershipState};

/// The default Lease of a continuous run with a home cluster.
pub const LEASE: &str = "tutti";
/// Hints from standbys that wait; all say the same.
const MAX_PENDING_HINTS: usize = 4;
/// Timeout of `run --once`: an unrenewed lease expires earlier.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// This process in the election.
#[derive(Debug)]
pub struct LeaderElection {
    lease: String,
    leadership: Leadership,
    /// Cancelled at the election.
    pub elected: CancellationToken,
}

impl LeaderElection {
    /// Joins the election; hints in the lease wake the controller. Cancels `stop` when the lease is lost.
    pub async fn start(
        home: &HomeCluster,
        lease: &str,
        repository: &str,
        hints: mpsc::Sender<WebhookHint>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let (told, mut heard) = mpsc::channel(MAX_PENDING_HINTS);
        let candidate = LeaderCandidate {
            home: home.clone(),
            lease: lease.to_owned(),
            holder: format!("{}_{:08x}", host_name(), rand::random::<u32>()),
            repository: repository.to_owned(),
        };
        let leadership = Leadership::start(candidate, told).await.context(
            "failed to stand for election; `tutti cluster rbac --home` prints the required rights",
        )?;
        tokio::spawn(async move {
            while let Some(text) = heard.recv().await {
                for hint in parse_hints(&text) {
                    if hints.send(hint).await.is_err() {
                        return;
                    }
                }
            }
        });
        let elected = CancellationToken::new();
        tokio::spawn(report_role_changes(leadership.role.clone(), lease.to_owned(), elected.clone(), stop));
        Ok(Self { lease: lease.to_owned(), leadership, elected })
    }

    pub fn permit(&self) -> WritePermit {
        self.leadership.permit.clone()
    }

    pub fn role(&self) -> watch::Receiver<LeaderRole> {
        self.leadership.role.clone()
    }

    pub fn leadership_state(&self) -> LeadershipState {
        LeadershipState { role: self.role(), permit: self.permit() }
    }

    /// Forwards hints to the leader while this process is a standby.
    pub fn hint_forwarder(&self) -> impl Fn(&WebhookHint) + Send + use<> {
        let (role, hints) = (self.role(), self.leadership.hints());
        move |hint| {
            if matches!(*role.borrow(), LeaderRole::StandsBy { .. }) {
                // A waiting hint says the same.
                let _ = hints.try_send(hint_text(hint, Timestamp::now()));
            }
        }
    }

    /// Waits for the leadership; fails when another process keeps it.
    pub async fn wait_until_leader(&self) -> anyhow::Result<()> {
        let lease = &self.lease;
        let mut role = self.role();
        let leads =
            tokio::time::timeout(ELECTION_TIMEOUT, role.wait_for(|role| *role == LeaderRole::Leads)).await;
        if matches!(leads, Ok(Ok(_))) {
            return Ok(());
        }
        match &*self.role().borrow() {
            LeaderRole::StandsBy { leader: Some(leader) } => bail!(
                "another process runs already: {leader} holds the Lease {lease} of the home cluster; a run for other clusters may take \
                 another one, with --lease NAME"
            ),
            _ => bail!(
                "failed to get the Lease {lease} of the home cluster within {} s; the log has the reason",
                ELECTION_TIMEOUT.as_secs()
            ),
        }
    }

    /// Releases the lease after the last write, so that a standby leads at once. Fails if it was lost.
    pub async fn release(self) -> anyhow::Result<()> {
        let role = self.role().borrow().clone();
        self.leadership.withdraw().await;
        match role {
            LeaderRole::Lost { leader } => Err(LeaseLost { leader }.into()),
            LeaderRole::Leads | LeaderRole::StandsBy { .. } => Ok(()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the lease of the leader was lost{}: another process may have written since, so this process ends; \
         start it again: a new process reads the current state", by(.leader))]
pub struct LeaseLost {
    leader: Option<String>,
}

fn by(leader: &Option<String>) -> String {
    leader.as_ref().map(|leader| format!(" to {leader}")).unwrap_or_default()
}

async fn report_role_changes(
    mut role: watch::Receiver<LeaderRole>,
    lease: String,
    elected: CancellationToken,
    stop: CancellationToken,
) {
    loop {
        let now = role.borrow_and_update().clone();
        match now {
            LeaderRole::Leads => {
                tell!("leads: holds the Lease {lease}");
                elected.cancel();
            }
            LeaderRole::StandsBy { leader: Some(leader) } => {
                tell!("stands by: {leader} holds the Lease {lease}");
            }
            LeaderRole::StandsBy { leader: None } => {}
            LeaderRole::Lost { .. } => return stop.cancel(),
        }
        if role.changed().await.is_err() {
            return;
        }
    }
}

/// A hint in the lease: time, commit of a branch, number of a pull request. Its reader trusts it no more than a webhook.
fn hint_text(hint: &WebhookHint, now: Timestamp) -> String {
    let commit = hint.after.as_deref().filter(|_| hint.kind.is_of_branch()).unwrap_or_default();
    match hint.pull {
        Some(number) => format!("{now} {commit} {number}"),
        None => format!("{now} {commit}"),
    }
}

/// An earlier hint may be overwritten, so each also means that a branch may have moved.
fn parse_hints(text: &str) -> impl Iterator<Item = WebhookHint> + use<> {
    let mut words = text.split(' ').skip(1);
    let commit = words.next().filter(|commit| is_commit(commit));
    let number = words.next().and_then(|number| number.parse().ok());
    let branch = WebhookHint {
        receiver: "lease".to_owned(),
        after: commit.map(ToOwned::to_owned),
        ..WebhookHint::default()
    };
    let pull = number.map(|number| WebhookHint {
        receiver: "lease".to_owned(),
        pull: Some(number),
        kind: WebhookHintKind::Pull,
        ..WebhookHint::default()
    });
    std::iter::once(branch).chain(pull)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_in_the_lease_names_commit_or_pull() {
        let commit = "1d50357".repeat(6)[..40].to_owned();
        let check = |hint: &WebhookHint, after: Option<&str>, pull: Option<u64>| {
            let read: Vec<WebhookHint> = parse_hints(&hint_text(hint, Timestamp::UNIX_EPOCH)).collect();
            assert_eq!(read[0].after.as_deref(), after, "{hint:?}");
            assert_eq!(read[0].kind, WebhookHintKind::Push);
            let expected = pull.map(|number| (WebhookHintKind::Pull, Some(number)));
            assert_eq!(read.get(1).map(|hint| (hint.kind, hint.pull)), expected, "{hint:?}");
        };
        let push = |after: Option<&str>| WebhookHint {
            after: after.map(ToOwned::to_owned),
            ..WebhookHint::default()
        };
        check(&push(Some(&commit)), Some(&commit), None);
        check(&push(None), None, None);
        check(&push(Some("HEAD; rm -rf /")), None, None);
        // A pull request's head is no commit of the branch.
        let review = WebhookHint { kind: WebhookHintKind::Review, pull: Some(7), ..push(Some(&commit)) };
        check(&review, None, Some(7));
    }
}
