//! The metrics of this process for `GET /metrics`; docs/reference/metrics.md lists them.
//!
//! Every part that counts (writes, renders, requests to the forge, deliveries, commits) gets a [`Metrics`]. Gauges of the
//! fleet are a pure function of the overview ([`FleetState`]), computed when an overview is published, so a scrape costs no
//! more than its series. Values of the process are read from `/proc` at each scrape.
//!
//! There are no series for single apps or objects, and never more than a thousand of one name, whatever the repository
//! contains.

mod commits;
mod fleet_state;
mod forge;
mod gauge;
mod process;
mod receivers;
#[cfg(test)]
mod tests;
mod write_result;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::{Mutex, RwLock};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::cluster::WritePermit;
use crate::forge::{Error, ForgeObserver, ForgeOperation};
use crate::model::Revision;
use crate::report::Overview;
use commits::CommitTimers;
pub use fleet_state::FleetState;
use forge::ForgeRequestLabels;
use gauge::{gauge, number};
use process::ProcessCollector;
pub use receivers::DeliveryResult;
use receivers::{DeliveryLabels, ReceiverNames};
pub use write_result::WriteResult;

/// The content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// In seconds: from a commit to one app to a cold fleet with charts.
const RENDER_BUCKETS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];
/// In seconds: from one Deployment to a rollout with soaks and confirmations.
const CONVERGED_BUCKETS: [f64; 14] =
    [1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0];

/// Clones share the counters.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<MetricsInner>,
}

struct MetricsInner {
    registry: Registry,
    renders: Histogram,
    converged: Histogram,
    writes: Family<WriteLabels, Counter>,
    deliveries: Family<DeliveryLabels, Counter>,
    receivers: Mutex<ReceiverNames>,
    forge_requests: Family<ForgeRequestLabels, Counter>,
    notifications: Family<NotificationLabels, Counter>,
    commits: Mutex<CommitTimers>,
    /// The result of the newest commit status.
    last_post: Mutex<Option<Result<(), String>>>,
    now: Arc<ScrapeState>,
}

/// Values that are read or computed at a scrape.
struct ScrapeState {
    /// When the repository was last read, or when the process started.
    source_read: Mutex<Instant>,
    queue: Mutex<Option<Box<dyn Fn() -> usize + Send + Sync>>>,
    permit: Mutex<WritePermit>,
    fleet: RwLock<FleetState>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    result: WriteResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NotificationLabels {
    service: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl fmt::Debug for ScrapeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScrapeState")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let now = Arc::new(ScrapeState {
            source_read: Mutex::new(Instant::now()),
            queue: Mutex::default(),
            permit: Mutex::default(),
            fleet: RwLock::default(),
        });
        let writes = Family::<WriteLabels, Counter>::default();
        for result in WriteResult::ALL {
            // Exposed from the start: without a zero, `rate` misses the first event.
            writes.get_or_create_owned(&WriteLabels { result });
        }
        let (deliveries, forge_requests, notifications) =
            (Family::default(), Family::default(), Family::<NotificationLabels, Counter>::default());
        let (renders, converged) = (Histogram::new(RENDER_BUCKETS), Histogram::new(CONVERGED_BUCKETS));
        let build = Family::<BuildLabels, Gauge>::default();
        build.get_or_create_owned(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);

        let mut registry = Registry::default();
        registry.register("tutti_build_info", "The version of this process; always 1", build);
        registry.register("tutti_apply", "Writes to clusters by result", writes.clone());
        registry.register(
            "tutti_webhook_deliveries",
            "Webhook deliveries by receiver and result",
            deliveries.clone(),
        );
        registry.register(
            "tutti_forge_requests",
            "Requests to the forge by operation and status code",
            forge_requests.clone(),
        );
        registry.register(
            "tutti_notifications",
            "Messages to people by service and result",
            notifications.clone(),
        );
        registry.register_with_unit(
            "tutti_render",
            "Time to render a revision, or the part of it that a cluster changed",
            Unit::Seconds,
            renders.clone(),
        );
        registry.register_with_unit(
            "tutti_commit_to_converged",
            "Time from the moment in which this process saw a commit until all its targets are healthy",
            Unit::Seconds,
            converged.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&now)));
        registry.register_collector(Box::new(ProcessCollector));
        let inner = MetricsInner {
            registry,
            renders,
            converged,
            writes,
            deliveries,
            receivers: Mutex::default(),
            forge_requests,
            notifications,
            commits: Mutex::default(),
            last_post: Mutex::default(),
            now,
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Metrics {
    /// All metrics as OpenMetrics text, with the end mark.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.inner.registry)?;
        Ok(text)
    }

    /// The repository was read.
    pub fn record_source_read(&self, at: Instant) {
        *self.inner.now.source_read.lock() = at;
    }

    /// A commit was pushed while this process ran.
    pub fn record_commit(&self, commit: &Revision, at: Instant) {
        self.inner.commits.lock().start(commit, at);
    }

    pub fn record_render(&self, took: Duration) {
        self.inner.renders.observe(took.as_secs_f64());
    }

    /// A write to a cluster ended.
    pub fn record_write(&self, result: WriteResult) {
        self.inner.writes.get_or_create_owned(&WriteLabels { result }).inc();
    }

    /// A delivery was answered; `None`: for an unknown receiver.
    pub fn record_delivery(&self, receiver: Option<&str>, verdict: DeliveryResult) {
        let receiver = self.inner.receivers.lock().label(receiver);
        self.inner.deliveries.get_or_create_owned(&DeliveryLabels { receiver, verdict }).inc();
    }

    /// A notification was sent, waits for a retry, or was refused.
    pub fn record_notification(&self, service: &'static str, result: &'static str) {
        self.inner.notifications.get_or_create_owned(&NotificationLabels { service, result }).inc();
    }

    /// Returns the number of queued events of the controller.
    pub fn watch_queue(&self, depth: impl Fn() -> usize + Send + Sync + 'static) {
        *self.inner.now.queue.lock() = Some(Box::new(depth));
    }

    /// The permit that lets this process write.
    pub fn watch_permit(&self, permit: WritePermit) {
        *self.inner.now.permit.lock() = permit;
    }

    /// The result of the newest commit status; `None` before the first.
    pub fn last_status_result(&self) -> Option<Result<(), String>> {
        self.inner.last_post.lock().clone()
    }

    /// Updates the gauges of the fleet and the converged commits.
    pub fn publish(&self, overview: &Overview) {
        *self.inner.now.fleet.write() = FleetState::of(overview);
        for took in self.inner.commits.lock().take_converged(overview, Instant::now()) {
            self.inner.converged.observe(took.as_secs_f64());
        }
    }
}

impl ForgeObserver for Metrics {
    fn request_finished(&self, operation: ForgeOperation, code: Option<StatusCode>) {
        self.inner.forge_requests.get_or_create_owned(&ForgeRequestLabels::of(operation, code)).inc();
    }

    fn status_posted(&self, result: Result<(), &Error>) {
        *self.inner.last_post.lock() = Some(result.map_err(ToString::to_string));
    }
}

impl Collector for ScrapeState {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time since the config repository was last read successfully.";
        let lag = self.source_read.lock().elapsed().as_secs_f64();
        gauge(&mut encoder, "tutti_source_lag", help, Some(&Unit::Seconds))?.encode_gauge(&lag)?;
        let leads = i64::from(self.permit.lock().is_valid());
        let help = "Whether this process may write: it leads, or runs alone.";
        gauge(&mut encoder, "tutti_leader", help, None)?.encode_gauge(&leads)?;
        let depth = self.queue.lock().as_ref().map_or(0, |depth| depth());
        let help = "Events that wait for the controller.";
        gauge(&mut encoder, "tutti_queue_depth", help, None)?.encode_gauge(&number(depth))?;
        self.fleet.read().encode(&mut encoder)
    }
}
