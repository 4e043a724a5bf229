//! The right of a process to write, to clusters and to the forge.
//!
//! A process has one permit, created with its settings. It is checked right before each apply, delete and post. A
//! write that was sent cannot be cancelled and is awaited.
//!
//! Clusters have a narrower permit. It is revoked when the process is told to stop, while statuses are still posted.
//! Revoking the process's permit stops both for good.
//!
//! With leader election a permit also has a term. Each renewal of the lease extends the term, which ends before
//! another process may take the lease. Every write checks the clock itself, so a suspended process cannot write late.
//! A write without an answer at the end of the term is abandoned.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Valid until it is revoked. All clones are one permit.
#[derive(Clone, Debug, Default)]
pub struct WritePermit {
    over: CancellationToken,
    /// `None` without leader election.
    term: Option<Arc<LeaderTerm>>,
}

/// Until when a leader may write. Before its election: never.
#[derive(Debug)]
pub struct LeaderTerm {
    start: Instant,
    /// In milliseconds since the start.
    until: AtomicU64,
    /// Writes without an answer.
    under_way: AtomicUsize,
    /// The last abandoned write, in milliseconds since the start. It may still arrive.
    given_up: AtomicU64,
}

impl Default for LeaderTerm {
    fn default() -> Self {
        let (until, under_way, given_up) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        Self { start: Instant::now(), until, under_way, given_up }
    }
}

impl LeaderTerm {
    /// Moves the end of the term.
    pub fn extend(&self, until: Instant) {
        self.until.store(self.millis(until), Ordering::Release);
    }

    /// No write is in flight, and none was abandoned within `time`: all writes have arrived.
    pub fn is_quiet(&self, time: Duration) -> bool {
        let given_up = self.given_up.load(Ordering::Acquire);
        let is_long_ago =
            given_up == 0 || Instant::now() >= self.start + Duration::from_millis(given_up) + time;
        is_long_ago && self.under_way.load(Ordering::Acquire) == 0
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    pub fn is_active(&self) -> bool {
        Instant::now() < self.until()
    }

    fn until(&self) -> Instant {
        self.start + Duration::from_millis(self.until.load(Ordering::Acquire))
    }
}

struct PendingWrite<'a> {
    term: &'a LeaderTerm,
    is_answered: bool,
}

impl<'a> PendingWrite<'a> {
    fn new(term: &'a LeaderTerm) -> Self {
        term.under_way.fetch_add(1, Ordering::AcqRel);
        Self { term, is_answered: false }
    }
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.term.given_up.store(self.term.millis(Instant::now()).max(1), Ordering::Release);
        }
        self.term.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl WritePermit {
    /// The permit of a process with leader election: no write before its term.
    pub fn of(term: Arc<LeaderTerm>) -> Self {
        Self { term: Some(term), ..Self::default() }
    }

    /// A permit that ends with this one or earlier.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { over: self.over.child_token(), term: self.term.clone() }
    }

    /// For one task that writes: cancelled with the permit, or alone.
    pub fn task_token(&self) -> CancellationToken {
        self.over.child_token()
    }

    /// Prevents all further writes.
    pub fn revoke(&self) {
        self.over.cancel();
    }

    pub fn is_revoked(&self) -> bool {
        self.over.is_cancelled()
    }

    /// The permit for write connections, with leader election.
    pub(super) fn of_election(&self) -> Option<Self> {
        self.term.is_some().then(|| self.clone())
    }

    /// Like [`WritePermit::holds`], but still true for writes that were sent before a stop.
    pub(super) fn is_in_term(&self) -> bool {
        self.term.as_ref().is_none_or(|term| term.is_active())
    }

    /// Whether a write may be sent now.
    pub fn is_valid(&self) -> bool {
        !self.is_revoked() && self.is_in_term()
    }

    /// Runs a write within the term: `None` if the term ends before the answer.
    pub async fn write<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let Some(term) = self.term.as_ref().filter(|term| term.is_active()) else {
            return self.run_in_term(request).await;
        };
        let mut sent = PendingWrite::new(term);
        let answer = self.run_in_term(request).await;
        sent.is_answered = answer.is_some();
        answer
    }

    /// Runs a request within the term, if nobody must wait for it afterwards: `None` if the term ends first.
    pub async fn run_in_term<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let Some(term) = &self.term else { return Some(request.await) };
        if !term.is_active() {
            return None;
        }
        let mut request = pin!(request);
        let mut end = pin!(tokio::time::sleep_until(term.until()));
        poll_fn(|context| {
            // A renewal has extended the term.
            while term.is_active() && end.as_mut().poll(context).is_ready() {
                end.as_mut().reset(term.until());
            }
            if !term.is_active() {
                return Poll::Ready(None);
            }
            request.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn narrowed_permit_ends_alone_or_with_its_source() {
        let process = WritePermit::default();
        let clusters = process.child();
        let task = clusters.task_token();
        task.cancel();
        assert!(!clusters.is_revoked() && !clusters.task_token().is_cancelled());
        let another = clusters.task_token();
        clusters.revoke();
        assert!(another.is_cancelled() && clusters.task_token().is_cancelled());
        assert!(!process.is_revoked() && process.is_valid());
        let clusters = process.child();
        process.revoke();
        assert!(process.is_revoked() && clusters.is_revoked() && clusters.task_token().is_cancelled());
        assert!(!process.is_valid());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_before_or_after_the_term() {
        let term = Arc::new(LeaderTerm::default());
        let permit = WritePermit::of(Arc::clone(&term));
        let write = async |permit: &WritePermit| permit.write(std::future::ready(1)).await;
        assert_eq!((permit.is_valid(), write(&permit).await), (false, None));
        term.extend(Instant::now() + Duration::from_secs(7));
        assert_eq!((permit.is_valid(), write(&permit).await), (true, Some(1)));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!((permit.is_valid(), write(&permit).await), (false, None));
        // A late renewal; nobody else was elected.
        term.extend(Instant::now() + Duration::from_secs(7));
        assert_eq!((permit.child().is_valid(), write(&permit.child()).await), (true, Some(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_write_is_abandoned_with_the_term() {
        let term = Arc::new(LeaderTerm::default());
        let permit = WritePermit::of(Arc::clone(&term));
        let start = Instant::now();
        term.extend(start + Duration::from_secs(7));
        let mut write = Box::pin(permit.write(std::future::pending::<()>()));
        assert!((&mut write).now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(5)).await;
        // Renewed meanwhile.
        term.extend(start + Duration::from_secs(12));
        assert!(!term.is_quiet(Duration::ZERO));
        assert_eq!(write.await, None);
        assert_eq!(start.elapsed(), Duration::from_secs(12));
        // It may still arrive.
        assert!(!term.is_quiet(Duration::from_secs(3)));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(term.is_quiet(Duration::from_secs(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn resumed_process_sends_nothing_after_its_term() {
        let term = Arc::new(LeaderTerm::default());
        let permit = WritePermit::of(Arc::clone(&term));
        term.extend(Instant::now() + Duration::from_secs(7));
        let (go_on, stopped) = tokio::sync::oneshot::channel();
        let mut is_sent = false;
        let request = async {
            // Everything before a request: a connection, room for its response.
            stopped.await.expect("somebody goes on");
            is_sent = true;
        };
        let mut write = Box::pin(permit.write(request));
        assert!((&mut write).now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(60)).await;
        go_on.send(()).expect("it is awaited");
        assert_eq!(write.await, None);
        assert!(!is_sent);
    }
}
