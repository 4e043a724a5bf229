//! State shared by the webhook handlers: receivers with secrets and rates, known deliveries, the log, and where hints
//! go. [`HooksState`] is the axum state of the hooks router.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::body;
use super::deliveries::{DeliveryLog, Record};
use super::known::KnownDeliveries;
use super::problem::Problem;
use super::queue::{Delivery, DeliveryQueue, NotQueued};
use super::sources::Sources;
use crate::controller::ConfigHead;
use crate::forge::Hint;
use crate::leader::{Role, Standing};
use crate::metrics::{Metrics, Verdict};
use crate::model::ReceiverKind;
use crate::trigger;

/// Signed deliveries per second and receiver, and the burst. A forge with hundreds of repositories behind one hook
/// stays far below. Polling finds what a refused delivery announced.
const RATE: NonZeroU32 = NonZeroU32::new(50).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// Large bodies that may arrive at once: bounds the memory for unauthenticated bodies to 80 MiB.
const SLOTS: usize = 16;

/// A receiver, `/hooks/v1/{name}`. Two secrets during rotation; disabled without any.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub name: String,
    pub kind: ReceiverKind,
    pub secrets: Vec<SecretString>,
}

/// Clones share it.
#[derive(Clone, Debug)]
pub struct HooksState {
    inner: Arc<Inner>,
    /// `None` without leader election.
    standing: Option<Standing>,
    triggers: Option<Triggers>,
}

/// Matches deliveries to triggers, and queues them.
#[derive(Clone, Debug)]
struct Triggers {
    heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    queue: DeliveryQueue,
}

impl Triggers {
    /// Before the repository is read, or while the instance has a mistake, every delivery may be needed.
    fn is_wanted(&self, receiver: &str, payload: &Value) -> bool {
        let head = self.heads.borrow().clone();
        head.is_none_or(|head| !head.fleet.is_usable() || trigger::is_wanted(receiver, payload, &head.fleet))
    }
}

#[derive(Debug)]
pub(super) enum Offered {
    Taken,
    /// The channel is full, and the hint carries more than "read Git again".
    Full,
    Closed,
    /// Another process leads, and payloads are not forwarded to it.
    StandsBy,
    NotQueued(NotQueued),
}

impl Offered {
    pub(super) fn problem(self) -> Problem {
        match self {
            Self::Taken | Self::Full => body::busy("too many deliveries wait"),
            Self::Closed => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
            Self::StandsBy => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "this process stands by; only the leader takes deliveries for triggers",
            )
            .with(RETRY_AFTER, "1"),
            Self::NotQueued(why) => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()).with(RETRY_AFTER, "60")
            }
        }
    }
}

#[derive(Debug)]
struct Inner {
    doors: RwLock<Arc<BTreeMap<String, Arc<Door>>>>,
    known: Mutex<KnownDeliveries>,
    log: Mutex<DeliveryLog>,
    sources: Mutex<Sources>,
    slots: Semaphore,
    hints: mpsc::Sender<Hint>,
    metrics: Metrics,
}

#[derive(Debug)]
pub(super) struct Door {
    pub kind: ReceiverKind,
    pub secrets: Vec<SecretString>,
    rate: Arc<DefaultDirectRateLimiter>,
}

impl Door {
    pub(super) fn has_room(&self) -> bool {
        self.rate.check().is_ok()
    }
}

impl HooksState {
    pub fn new(hints: mpsc::Sender<Hint>, metrics: Metrics) -> Self {
        let slots = Semaphore::new(SLOTS);
        let inner = Inner {
            doors: RwLock::default(),
            known: Mutex::default(),
            log: Mutex::default(),
            sources: Mutex::default(),
            slots,
            hints,
            metrics,
        };
        Self { inner: Arc::new(inner), standing: None, triggers: None }
    }

    /// Deliveries for triggers go to the queue. Other deliveries with a payload are dropped.
    #[must_use]
    pub fn triggers(self, heads: watch::Receiver<Option<Arc<ConfigHead>>>, queue: DeliveryQueue) -> Self {
        Self { triggers: Some(Triggers { heads, queue }), ..self }
    }

    /// A standby accepts only deliveries that can be forwarded to the leader.
    #[must_use]
    pub fn standing(self, standing: Option<Standing>) -> Self {
        Self { standing, ..self }
    }

    /// Replaces the receivers. A receiver that stays keeps its rate limiter.
    pub fn set_receivers(&self, receivers: impl IntoIterator<Item = Receiver>) {
        let known = Arc::clone(&self.inner.doors.read());
        let doors = receivers.into_iter().map(|receiver| {
            let rate = known.get(&receiver.name).map_or_else(new_rate, |door| Arc::clone(&door.rate));
            let mut secrets = receiver.secrets;
            // Anybody can sign with an empty secret.
            secrets.retain(|secret| !secret.expose_secret().is_empty());
            (receiver.name, Arc::new(Door { kind: receiver.kind, secrets, rate }))
        });
        *self.inner.doors.write() = Arc::new(doors.collect());
    }

    pub(super) fn door(&self, name: &str) -> Option<Arc<Door>> {
        self.inner.doors.read().get(name).cloned()
    }

    /// Names, and whether each has a secret.
    pub(super) fn doors(&self) -> Vec<(String, bool)> {
        let doors = Arc::clone(&self.inner.doors.read());
        doors.iter().map(|(name, door)| (name.clone(), !door.secrets.is_empty())).collect()
    }

    pub(super) fn count(&self, receiver: &str, verdict: Verdict) {
        let is_known = self.inner.doors.read().contains_key(receiver);
        self.inner.metrics.delivered(is_known.then_some(receiver), verdict);
    }

    pub(super) fn slots(&self) -> &Semaphore {
        &self.inner.slots
    }

    pub(super) fn has_room(&self, source: IpAddr) -> bool {
        self.inner.sources.lock().has_room(source, Instant::now())
    }

    pub(super) fn charge(&self, source: IpAddr, bytes: usize) {
        self.inner.sources.lock().charge(source, bytes, Instant::now());
    }

    pub(super) fn remember(&self, receiver: &str, delivery: &str) -> bool {
        self.inner.known.lock().remember(receiver, delivery)
    }

    pub(super) fn forget(&self, receiver: &str, delivery: &str) {
        self.inner.known.lock().forget(receiver, delivery);
    }

    /// Waits only for the disk, and only for deliveries of triggers. A full channel loses nothing for a hint about a
    /// branch: its reader asks Git for the newest state anyway.
    pub(super) async fn offer(&self, hint: Hint) -> Offered {
        let leads = |standing: &Standing| *standing.role.borrow() == Role::Leads;
        if hint.payload.is_some() && !self.standing.as_ref().is_none_or(leads) {
            return Offered::StandsBy;
        }
        if let (Some(payload), Some(triggers)) = (&hint.payload, &self.triggers) {
            if !triggers.is_wanted(&hint.receiver, payload) {
                return Offered::Taken;
            }
            let (receiver, payload) = (hint.receiver.clone(), Value::clone(payload));
            let delivery = Delivery { receiver, time: Timestamp::now(), payload };
            return match triggers.queue.push(delivery).await {
                Ok(()) => Offered::Taken,
                Err(why) => {
                    tracing::error!(receiver = hint.receiver, error = %why, "a delivery for triggers is refused");
                    Offered::NotQueued(why)
                }
            };
        }
        match self.inner.hints.try_send(hint) {
            Ok(()) => Offered::Taken,
            Err(mpsc::error::TrySendError::Full(hint)) if hint.kind.is_of_branch() => Offered::Taken,
            Err(mpsc::error::TrySendError::Full(_)) => Offered::Full,
            Err(mpsc::error::TrySendError::Closed(_)) => Offered::Closed,
        }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, DeliveryLog> {
        self.inner.log.lock()
    }

    /// Logs a delivery; returns its number.
    pub(super) fn keep(&self, record: Record, verdict: Verdict) -> u64 {
        self.log().keep(record, verdict)
    }
}

fn new_rate() -> Arc<DefaultDirectRateLimiter> {
    Arc::new(RateLimiter::direct(Quota::per_second(RATE).allow_burst(BURST)))
}
