//! What this process counts and measures of itself, as `GET /metrics` shows it: docs/reference/metrics.md lists all of it.
//!
//! What it does: a [`Metrics`] is handed to whoever counts (writes, renders, requests to the forge, deliveries, commits);
//! gauges of the fleet are a pure function of the overview ([`FleetState`]), evaluated when one is published, so that a scrape costs as
//! much as there are series; the process itself is read from `/proc` at each scrape.
//!
//! What it never does: hold a series for an app or an object, or more than a thousand of one name, whatever the repository says.

mod commits;
mod fleet_state;
mod forge;
mod process;
mod receivers;
#[cfg(test)]
mod tests;
mod write_result;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::cluster::WritePermit;
use crate::model::Revision;
use crate::report::Overview;
use commits::Commits;
pub use fleet_state::FleetState;
use forge::ForgeRequest;
use process::Process;
pub use receivers::Verdict;
use receivers::{Delivery, Receivers};
pub use write_result::WriteResult;

/// What [`Metrics::encode`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// In seconds: a commit that changes one app, up to a cold fleet with charts.
const RENDER_BUCKETS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];
/// In seconds: one Deployment, up to a rollout in waves that soak and wait for people.
const CONVERGED_BUCKETS: [f64; 14] =
    [1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0];

/// Counts what happens; clones count the same.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    renders: Histogram,
    converged: Histogram,
    writes: Family<Write, Counter>,
    deliveries: Family<Delivery, Counter>,
    receivers: Mutex<Receivers>,
    forge_requests: Family<ForgeRequest, Counter>,
    notifications: Family<Sent, Counter>,
    commits: Mutex<Commits>,
    /// What became of the newest commit status.
    last_post: Mutex<Option<Result<(), String>>>,
    now: Arc<Now>,
}

/// What is read or computed at a scrape.
struct Now {
    /// When the repository was last read; when this process began, before that.
    source_read: Mutex<Instant>,
    queue: Mutex<Option<Box<dyn Fn() -> usize + Send + Sync>>>,
    permit: Mutex<WritePermit>,
    fleet: RwLock<FleetState>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    result: WriteResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sent {
    service: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let now = Arc::new(Now {
            source_read: Mutex::new(Instant::now()),
            queue: Mutex::default(),
            permit: Mutex::default(),
            fleet: RwLock::default(),
        });
        let writes = Family::<Write, Counter>::default();
        for result in WriteResult::ALL {
            // Shown from the start: a series that comes with its first event has no rate of it.
            writes.get_or_create_owned(&Write { result });
        }
        let (deliveries, forge_requests, notifications) =
            (Family::default(), Family::default(), Family::<Sent, Counter>::default());
        let (renders, converged) = (Histogram::new(RENDER_BUCKETS), Histogram::new(CONVERGED_BUCKETS));
        let build = Family::<Build, Gauge>::default();
        build.get_or_create_owned(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);

        let mut registry = Registry::default();
        registry.register("tutti_build_info", "The version of this process; always 1", build);
        registry.register("tutti_apply", "Writes to clusters by what became of them", writes.clone());
        registry.register(
            "tutti_webhook_deliveries",
            "Webhook deliveries by receiver and what became of them",
            deliveries.clone(),
        );
        registry.register(
            "tutti_forge_requests",
            "Requests to the forge by operation and status code",
            forge_requests.clone(),
        );
        registry.register(
            "tutti_notifications",
            "Messages to people by service and what became of them",
            notifications.clone(),
        );
        registry.register_with_unit(
            "tutti_render",
            "Time to render a revision, or what a cluster changed of it",
            Unit::Seconds,
            renders.clone(),
        );
        registry.register_with_unit(
            "tutti_commit_to_converged",
            "Time from the moment in which this process saw a commit until all its targets are well",
            Unit::Seconds,
            converged.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&now)));
        registry.register_collector(Box::new(Process));
        let inner = Inner {
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
    /// Everything as OpenMetrics text, with the end mark.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.inner.registry)?;
        Ok(text)
    }

    /// The repository answered.
    pub fn source_read(&self, at: Instant) {
        *self.inner.now.source_read.lock() = at;
    }

    /// A commit that came while this process ran.
    pub fn commit_seen(&self, commit: &Revision, at: Instant) {
        self.inner.commits.lock().see(commit, at);
    }

    pub fn rendered(&self, took: Duration) {
        self.inner.renders.observe(took.as_secs_f64());
    }

    /// A write to a cluster came back.
    pub fn wrote(&self, result: WriteResult) {
        self.inner.writes.get_or_create_owned(&Write { result }).inc();
    }

    /// A delivery was answered; `None`: for a receiver that there is not.
    pub fn delivered(&self, receiver: Option<&str>, verdict: Verdict) {
        let receiver = self.inner.receivers.lock().shown(receiver);
        self.inner.deliveries.get_or_create_owned(&Delivery { receiver, verdict }).inc();
    }

    /// A message to people was sent, waits to be sent again, or was refused.
    pub fn notified(&self, service: &'static str, result: &'static str) {
        self.inner.notifications.get_or_create_owned(&Sent { service, result }).inc();
    }

    /// Who knows how many events wait for the controller.
    pub fn watch_queue(&self, depth: impl Fn() -> usize + Send + Sync + 'static) {
        *self.inner.now.queue.lock() = Some(Box::new(depth));
    }

    /// What lets this process write.
    pub fn watch_permit(&self, permit: WritePermit) {
        *self.inner.now.permit.lock() = permit;
    }

    /// What the newest commit status came to; `None` before the first.
    pub fn last_post(&self) -> Option<Result<(), String>> {
        self.inner.last_post.lock().clone()
    }

    /// A new overview: the gauges of the fleet, and the commits that converged.
    pub fn publish(&self, overview: &Overview) {
        *self.inner.now.fleet.write() = FleetState::of(overview);
        for took in self.inner.commits.lock().converged(overview, Instant::now()) {
            self.inner.converged.observe(took.as_secs_f64());
        }
    }
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time since the config repository was last read successfully.";
        let lag = self.source_read.lock().elapsed().as_secs_f64();
        gauge(&mut encoder, "tutti_source_lag", help, Some(&Unit::Seconds))?.encode_gauge(&lag)?;
        let leads = i64::from(self.permit.lock().holds());
        let help = "Whether this process may write: it leads, or runs alone.";
        gauge(&mut encoder, "tutti_leader", help, None)?.encode_gauge(&leads)?;
        let depth = self.queue.lock().as_ref().map_or(0, |depth| depth());
        let help = "Events that wait for the controller.";
        gauge(&mut encoder, "tutti_queue_depth", help, None)?.encode_gauge(&number(depth))?;
        self.fleet.read().encode(&mut encoder)
    }
}

/// Describes a gauge; its series follow.
fn gauge<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    name: &'e str,
    help: &str,
    unit: Option<&'e Unit>,
) -> Result<MetricEncoder<'e>, fmt::Error> {
    encoder.encode_descriptor(name, help, unit, MetricType::Gauge)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
