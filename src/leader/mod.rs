//! Leader election: of several processes only the holder of the Lease in the home cluster writes.
//!
//! Standbys read, render and watch. The leader renews every two seconds; each renewal extends its write permit to a time three
//! seconds before another process may take the lease. So two processes never may write at once, whatever their clocks say and
//! even when one was stopped in between. The exception is a machine whose monotonic clock stands still during suspend.
//!
//! A leader that sees another holder never leads again, because its state may be outdated: it exits, and its supervisor starts a
//! new process as a standby. While the home cluster is unreachable the leader writes nothing; it continues if it renews first.
//! `cli::leadership` starts it.

mod election;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{HomeCluster, HomeError, LeaderTerm, Lease, WritePermit};
use election::{Election, ElectionStep};

/// How long a lease is held without renewal.
const LEASE_DURATION: Duration = Duration::from_secs(10);
/// How long a leader may write after it began to renew.
const WRITE_TERM: Duration = Duration::from_secs(7);
const INTERVAL: Duration = Duration::from_secs(2);
/// Shortest interval, for any reason.
const MIN_INTERVAL: Duration = Duration::from_millis(500);

/// Attempts when other processes write the lease meanwhile.
const ATTEMPTS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderRole {
    StandsBy {
        leader: Option<String>,
    },
    Leads,
    /// It led, and lost the lease.
    Lost {
        leader: Option<String>,
    },
}

#[derive(Debug)]
pub struct LeaderCandidate {
    pub home: HomeCluster,
    /// The name of the lease, or `namespace/name`.
    pub lease: String,
    /// Unique for each process.
    pub holder: String,
    /// Shown to people in the lease.
    pub repository: String,
}

#[derive(Clone, Debug)]
pub struct LeadershipState {
    pub role: watch::Receiver<LeaderRole>,
    pub permit: WritePermit,
}

/// A running election.
#[derive(Debug)]
pub struct Leadership {
    pub role: watch::Receiver<LeaderRole>,
    pub permit: WritePermit,
    hints: mpsc::Sender<String>,
    withdrawn: CancellationToken,
    task: JoinHandle<()>,
}

impl Leadership {
    /// Reads the lease once, then starts the election. Hints from standbys go to `hints`. A permanent error, as of a missing
    /// right, fails the start.
    pub async fn start(candidate: LeaderCandidate, hints: mpsc::Sender<String>) -> Result<Self, HomeError> {
        let term = Arc::new(LeaderTerm::default());
        let permit = WritePermit::of(Arc::clone(&term));
        let (sender, role) = watch::channel(LeaderRole::StandsBy { leader: None });
        let (own_hints, hints_to_forward) = mpsc::channel(1);
        let withdrawn = CancellationToken::new();
        let election = Election::new(candidate.holder.clone());
        let mut process = ElectionProcess {
            candidate,
            election,
            term,
            hints,
            pending_hint: None,
            last_error: None,
            warned_of_repository: false,
        };
        match process.take_turn().await {
            Ok(first) => {
                sender.send_replace(first);
            }
            Err(error) if error.is_transient() => process.warn_once(&error),
            Err(error) => return Err(error),
        }
        let task = tokio::spawn(process.run(sender, hints_to_forward, permit.clone(), withdrawn.clone()));
        Ok(Self { role, permit, hints: own_hints, withdrawn, task })
    }

    /// Hints for the leader while this process is a standby; a newer one replaces one that waits.
    pub fn hints(&self) -> mpsc::Sender<String> {
        self.hints.clone()
    }

    /// Gives the lease back, if it is ours: a standby then leads at once.
    pub async fn withdraw(mut self) {
        self.withdrawn.cancel();
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "failed to release the lease");
        }
    }
}

/// As after a crash: the lease stays held until it expires.
impl Drop for Leadership {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct ElectionProcess {
    candidate: LeaderCandidate,
    election: Election,
    term: Arc<LeaderTerm>,
    /// Hints that standbys sent, while this process leads.
    hints: mpsc::Sender<String>,
    /// The hint to forward while this process is a standby.
    pending_hint: Option<String>,
    last_error: Option<String>,
    warned_of_repository: bool,
}

impl ElectionProcess {
    async fn run(
        mut self,
        role: watch::Sender<LeaderRole>,
        mut hints_to_forward: mpsc::Receiver<String>,
        permit: WritePermit,
        withdrawn: CancellationToken,
    ) {
        let mut last = Instant::now();
        loop {
            let pause = if self.pending_hint.is_some() { MIN_INTERVAL } else { INTERVAL };
            tokio::select! {
                () = withdrawn.cancelled() => return self.release().await,
                Some(hint) = hints_to_forward.recv() => {
                    self.pending_hint = Some(hint).filter(|_| !self.election.leads());
                    continue;
                }
                () = tokio::time::sleep_until(last + pause) => {}
            }
            last = Instant::now();
            match self.take_turn().await {
                Ok(now) => {
                    self.last_error = None;
                    let is_over = matches!(now, LeaderRole::Lost { .. });
                    if is_over {
                        permit.revoke();
                        self.term.extend(Instant::now());
                    }
                    role.send_if_modified(|known| {
                        let is_other = *known != now;
                        *known = now;
                        is_other
                    });
                    if is_over {
                        return;
                    }
                }
                Err(error) => self.warn_once(&error),
            }
        }
    }

    /// Reads the lease, and writes it when due.
    async fn take_turn(&mut self) -> Result<LeaderRole, HomeError> {
        // A leader knows its last write; it reads again after a conflict.
        let mut is_lease_known = self.election.leads();
        for _ in 0..ATTEMPTS {
            if !is_lease_known {
                self.read_lease().await?;
            }
            let asked = Instant::now();
            let leader = || Some(self.election.lease()?.holder().to_owned()).filter(|it| !it.is_empty());
            match self.election.step(asked) {
                ElectionStep::Lost => return Ok(LeaderRole::Lost { leader: leader() }),
                ElectionStep::Wait => {
                    let role = LeaderRole::StandsBy { leader: leader() };
                    self.warn_of_another_repository();
                    self.forward_hint().await?;
                    return Ok(role);
                }
                ElectionStep::Acquire | ElectionStep::Renew => {
                    let LeaderCandidate { home, lease: name, holder, repository } = &self.candidate;
                    let known = self.election.lease().cloned().unwrap_or_default();
                    let lease = known.with_holder(holder, LEASE_DURATION, repository, Timestamp::now());
                    if let Some(written) = home.write_lease(name, &lease).await? {
                        self.election.record_write(written, Instant::now());
                        self.term.extend(asked + WRITE_TERM);
                        self.pending_hint = None;
                        return Ok(LeaderRole::Leads);
                    }
                    is_lease_known = false;
                }
            }
        }
        Err(HomeError::Failed {
            action: "write",
            what: format!("the Lease {}", self.candidate.lease),
            detail: "other processes write it too often".to_owned(),
            is_transient: true,
        })
    }

    async fn read_lease(&mut self) -> Result<(), HomeError> {
        let lease = self.candidate.home.lease(&self.candidate.lease).await?;
        let hint = |lease: Option<&Lease>| lease.and_then(Lease::hint).map(ToOwned::to_owned);
        let (before, now) = (hint(self.election.lease()), hint(lease.as_ref()));
        if self.election.leads()
            && now != before
            && let Some(hint) = now
        {
            // A full channel loses nothing: every hint says the same.
            let _ = self.hints.try_send(hint);
        }
        self.election.observe(lease, Instant::now());
        Ok(())
    }

    /// A failed hint is written after the next read.
    async fn forward_hint(&mut self) -> Result<(), HomeError> {
        let (Some(hint), Some(lease)) = (&self.pending_hint, self.election.lease()) else { return Ok(()) };
        let lease = lease.with_hint(hint);
        if self.candidate.home.write_lease(&self.candidate.lease, &lease).await?.is_some() {
            self.pending_hint = None;
        }
        Ok(())
    }

    async fn release(mut self) {
        // An unanswered write may still be running: then the lease must expire by itself.
        if !self.election.leads() || !self.term.is_quiet(LEASE_DURATION) {
            return;
        }
        // A standby may have written a hint since.
        for _ in 0..ATTEMPTS {
            let Some(lease) = self.election.lease().filter(|lease| lease.holder() == self.election.holder())
            else {
                return;
            };
            self.term.extend(Instant::now());
            let lease = lease.without_holder(Timestamp::now());
            match self.candidate.home.write_lease(&self.candidate.lease, &lease).await {
                Ok(Some(_)) => return,
                Ok(None) => {}
                Err(error) => return self.warn_once(&error),
            }
            if let Err(error) = self.read_lease().await {
                return self.warn_once(&error);
            }
        }
    }

    /// With two instances on one lease the second never leads.
    fn warn_of_another_repository(&mut self) {
        let theirs = self.election.lease().and_then(Lease::repository);
        let Some(theirs) = theirs.filter(|theirs| **theirs != self.candidate.repository) else { return };
        if !self.warned_of_repository {
            tracing::warn!(
                "the Lease {} is held for {theirs}, and this process runs {}: where that is another repository, name another Lease \
                 with --lease NAME",
                self.candidate.lease,
                self.candidate.repository
            );
            self.warned_of_repository = true;
        }
    }

    fn warn_once(&mut self, error: &HomeError) {
        let last_error = error.to_string();
        if self.last_error.as_ref() != Some(&last_error) {
            match self.election.leads() {
                true => tracing::warn!(
                    error = last_error,
                    "the lease is not renewed: nothing is written when its term is over"
                ),
                false => {
                    tracing::warn!(error = last_error, "failed to read or take the lease of the leader")
                }
            }
            self.last_error = Some(last_error);
        }
    }
}
