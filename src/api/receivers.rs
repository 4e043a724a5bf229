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
use super::delivery_log::{DeliveryLog, DeliveryRecord};
use super::delivery_queue::{DeliveryQueue, QueueError, QueuedDelivery};
use super::known_deliveries::KnownDeliveries;
use super::problem::Problem;
use super::sender_budgets::SenderBudgets;
use crate::controller::ConfigHead;
use crate::forge::WebhookHint;
use crate::leader::{LeaderRole, LeadershipState};
use crate::metrics::{DeliveryResult, Metrics};
use crate::model::WebhookReceiverKind;
use crate::trigger;

/// Signed deliveries per second and receiver, and the burst. A forge with hundreds of repositories behind one hook
/// stays far below. Polling finds what a refused delivery announced.
const DELIVERIES_PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
const DELIVERY_BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// Large bodies that may arrive at once: bounds the memory for unauthenticated bodies to 80 MiB.
const MAX_LARGE_BODIES: usize = 16;

/// A receiver, `/hooks/v1/{name}`. Two secrets during rotation; disabled without any.
#[derive(Clone, Debug)]
pub struct HookReceiver {
    pub name: String,
    pub kind: WebhookReceiverKind,
    pub secrets: Vec<SecretString>,
}

/// Clones share it.
#[derive(Clone, Debug)]
pub struct HooksState {
    inner: Arc<HooksInner>,
    /// `None` without leader election.
    standing: Option<LeadershipState>,
    triggers: Option<TriggerDeliveries>,
}

/// Matches deliveries to triggers, and queues them.
#[derive(Clone, Debug)]
struct TriggerDeliveries {
    heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    queue: DeliveryQueue,
}

impl TriggerDeliveries {
    /// Before the repository is read, or while the instance has a mistake, every delivery may be needed.
    fn is_wanted(&self, receiver: &str, payload: &Value) -> bool {
        let head = self.heads.borrow().clone();
        head.is_none_or(|head| {
            !head.fleet.is_usable() || trigger::has_matching_trigger(receiver, payload, &head.fleet)
        })
    }
}

#[derive(Debug)]
pub(super) enum OfferResult {
    Accepted,
    /// The channel is full, and the hint carries more than "read Git again".
    Full,
    Closed,
    /// Another process leads, and payloads are not forwarded to it.
    StandsBy,
    NotQueued(QueueError),
}

impl OfferResult {
    pub(super) fn problem(self) -> Problem {
        match self {
            Self::Accepted | Self::Full => body::too_many_requests("too many deliveries wait"),
            Self::Closed => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
            Self::StandsBy => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "this process stands by; only the leader accepts deliveries for triggers",
            )
            .with_header(RETRY_AFTER, "1"),
            Self::NotQueued(why) => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()).with_header(RETRY_AFTER, "60")
            }
        }
    }
}

#[derive(Debug)]
struct HooksInner {
    receivers: RwLock<Arc<BTreeMap<String, Arc<ActiveReceiver>>>>,
    known_deliveries: Mutex<KnownDeliveries>,
    log: Mutex<DeliveryLog>,
    sender_budgets: Mutex<SenderBudgets>,
    large_body_slots: Semaphore,
    hints: mpsc::Sender<WebhookHint>,
    metrics: Metrics,
}

#[derive(Debug)]
pub(super) struct ActiveReceiver {
    pub kind: WebhookReceiverKind,
    pub secrets: Vec<SecretString>,
    rate_limiter: Arc<DefaultDirectRateLimiter>,
}

impl ActiveReceiver {
    pub(super) fn admits_delivery(&self) -> bool {
        self.rate_limiter.check().is_ok()
    }
}

impl HooksState {
    pub fn new(hints: mpsc::Sender<WebhookHint>, metrics: Metrics) -> Self {
        let slots = Semaphore::new(MAX_LARGE_BODIES);
        let inner = HooksInner {
            receivers: RwLock::default(),
            known_deliveries: Mutex::default(),
            log: Mutex::default(),
            sender_budgets: Mutex::default(),
            large_body_slots: slots,
            hints,
            metrics,
        };
        Self { inner: Arc::new(inner), standing: None, triggers: None }
    }

    /// Deliveries for triggers go to the queue. Other deliveries with a payload are dropped.
    #[must_use]
    pub fn triggers(self, heads: watch::Receiver<Option<Arc<ConfigHead>>>, queue: DeliveryQueue) -> Self {
        Self { triggers: Some(TriggerDeliveries { heads, queue }), ..self }
    }

    /// A standby accepts only deliveries that can be forwarded to the leader.
    #[must_use]
    pub fn standing(self, standing: Option<LeadershipState>) -> Self {
        Self { standing, ..self }
    }

    /// Replaces the receivers. A receiver that stays keeps its rate limiter.
    pub fn set_receivers(&self, receivers: impl IntoIterator<Item = HookReceiver>) {
        let known = Arc::clone(&self.inner.receivers.read());
        let doors = receivers.into_iter().map(|receiver| {
            let rate = known
                .get(&receiver.name)
                .map_or_else(new_rate_limiter, |door| Arc::clone(&door.rate_limiter));
            let mut secrets = receiver.secrets;
            // Anybody can sign with an empty secret.
            secrets.retain(|secret| !secret.expose_secret().is_empty());
            (receiver.name, Arc::new(ActiveReceiver { kind: receiver.kind, secrets, rate_limiter: rate }))
        });
        *self.inner.receivers.write() = Arc::new(doors.collect());
    }

    pub(super) fn receiver(&self, name: &str) -> Option<Arc<ActiveReceiver>> {
        self.inner.receivers.read().get(name).cloned()
    }

    /// Names, and whether each has a secret.
    pub(super) fn receiver_states(&self) -> Vec<(String, bool)> {
        let doors = Arc::clone(&self.inner.receivers.read());
        doors.iter().map(|(name, door)| (name.clone(), !door.secrets.is_empty())).collect()
    }

    pub(super) fn count_delivery(&self, receiver: &str, verdict: DeliveryResult) {
        let is_known = self.inner.receivers.read().contains_key(receiver);
        self.inner.metrics.record_delivery(is_known.then_some(receiver), verdict);
    }

    pub(super) fn large_body_slots(&self) -> &Semaphore {
        &self.inner.large_body_slots
    }

    pub(super) fn allows_large_body(&self, source: IpAddr) -> bool {
        self.inner.sender_budgets.lock().is_within_budget(source, Instant::now())
    }

    pub(super) fn charge_unsigned_bytes(&self, source: IpAddr, bytes: usize) {
        self.inner.sender_budgets.lock().charge(source, bytes, Instant::now());
    }

    pub(super) fn mark_known(&self, receiver: &str, delivery: &str) -> bool {
        self.inner.known_deliveries.lock().insert(receiver, delivery)
    }

    pub(super) fn unmark_known(&self, receiver: &str, delivery: &str) {
        self.inner.known_deliveries.lock().remove(receiver, delivery);
    }

    /// Waits only for the disk, and only for deliveries of triggers. A full channel loses nothing for a hint about a
    /// branch: its reader asks Git for the newest state anyway.
    pub(super) async fn forward_hint(&self, hint: WebhookHint) -> OfferResult {
        let leads = |standing: &LeadershipState| *standing.role.borrow() == LeaderRole::Leads;
        if hint.payload.is_some() && !self.standing.as_ref().is_none_or(leads) {
            return OfferResult::StandsBy;
        }
        if let (Some(payload), Some(triggers)) = (&hint.payload, &self.triggers) {
            if !triggers.is_wanted(&hint.receiver, payload) {
                return OfferResult::Accepted;
            }
            let (receiver, payload) = (hint.receiver.clone(), Value::clone(payload));
            let delivery = QueuedDelivery { receiver, time: Timestamp::now(), payload };
            return match triggers.queue.push(delivery).await {
                Ok(()) => OfferResult::Accepted,
                Err(why) => {
                    tracing::error!(receiver = hint.receiver, error = %why, "a delivery for triggers is refused");
                    OfferResult::NotQueued(why)
                }
            };
        }
        match self.inner.hints.try_send(hint) {
            Ok(()) => OfferResult::Accepted,
            Err(mpsc::error::TrySendError::Full(hint)) if hint.kind.is_of_branch() => OfferResult::Accepted,
            Err(mpsc::error::TrySendError::Full(_)) => OfferResult::Full,
            Err(mpsc::error::TrySendError::Closed(_)) => OfferResult::Closed,
        }
    }

    pub(super) fn delivery_log(&self) -> MutexGuard<'_, DeliveryLog> {
        self.inner.log.lock()
    }

    /// Logs a delivery; returns its number.
    pub(super) fn log_delivery(&self, record: DeliveryRecord, verdict: DeliveryResult) -> u64 {
        self.delivery_log().push(record, verdict)
    }
}

fn new_rate_limiter() -> Arc<DefaultDirectRateLimiter> {
    Arc::new(RateLimiter::direct(Quota::per_second(DELIVERIES_PER_SECOND).allow_burst(DELIVERY_BURST)))
}
