//! Writes in flight: a stop waits for them, and their limits apply, also when their cluster or app changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use sandbox::{Fault, RequestMatch};
use tutti::controller::RunEnding;
use tutti::model::Revision;

use crate::support::connections::{ProcessConnections, RequestObserver};
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::manifests::{self, INSTANCE, config_map, objects_app};

const BJ1_FILE: &str = "clusters/bj1.yaml";
/// Duration of a write: shorter than the timeouts of the client and of a stop.
const WRITE_DURATION: Duration = Duration::from_secs(20);
/// Long enough to reconnect, shorter than a slow write.
const RECONNECT_DURATION: Duration = Duration::from_secs(10);
const TASK_LIMIT: usize = 8;

/// Counts writes that were sent and not answered.
#[derive(Default)]
struct InFlightWrites(Mutex<InFlightCounts>);

#[derive(Default)]
struct InFlightCounts {
    /// Running writes of each object, by path.
    by_path: BTreeMap<String, usize>,
    max_total: usize,
    max_per_object: usize,
}

impl InFlightCounts {
    fn total(&self) -> usize {
        self.by_path.values().sum()
    }
}

impl InFlightWrites {
    fn in_flight(&self) -> usize {
        self.0.lock().total()
    }

    /// The largest total so far, and the largest for one object.
    fn maxima(&self) -> (usize, usize) {
        let counts = self.0.lock();
        (counts.max_total, counts.max_per_object)
    }
}

fn is_write(request: &Request<Bytes>) -> bool {
    let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
    !is_dry && !matches!(*request.method(), Method::GET | Method::HEAD)
}

impl RequestObserver for InFlightWrites {
    fn sent(&self, _: &str, request: &Request<Bytes>) {
        if is_write(request) {
            let mut counts = self.0.lock();
            let of_object = counts.by_path.entry(request.uri().path().to_owned()).or_default();
            *of_object += 1;
            let of_object = *of_object;
            counts.max_per_object = counts.max_per_object.max(of_object);
            counts.max_total = counts.max_total.max(counts.total());
        }
    }

    fn answered(&self, _: &str, request: &Request<Bytes>, _: Result<StatusCode, String>) {
        if is_write(request) {
            *self.0.lock().by_path.get_mut(request.uri().path()).expect("it was sent") -= 1;
        }
    }

    fn late_arrival(&self, _: &str, _: &Request<Bytes>) {}
}

/// Apps with one ConfigMap each, as (path, text).
fn apps(count: usize) -> Vec<(String, String)> {
    let one = |number| {
        let name = format!("app-{number:02}");
        let manifest = (format!("apps/{name}/app.yaml"), objects_app("default", &name));
        let map = (format!("apps/{name}/objects/map.yaml"), config_map("default", &name, "first"));
        [manifest, map]
    };
    (0..count).flat_map(one).collect()
}

fn fleet(apps: &[(String, String)]) -> TestFleet {
    let instance = INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    let files = apps.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = files.chain([("tutti.yaml", instance.as_str())]).collect();
    TestFleet::new(&["bj1"], &files)
}

/// Starts with slow writes of ConfigMaps.
async fn start_with_slow_writes(fleet: &TestFleet) -> (RunningController, Arc<InFlightWrites>) {
    fleet.cluster("bj1").fail_next(
        RequestMatch::writes().resource("configmaps"),
        1_000,
        Fault::Delay(WRITE_DURATION),
    );
    let writes = Arc::new(InFlightWrites::default());
    let running = fleet.start_with(&ProcessConnections::observed_by(writes.clone()), |_| {}).await;
    (running, writes)
}

async fn wait_until_in_flight(writes: &InFlightWrites, count: usize) {
    while writes.in_flight() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The Cluster file changes to another connection.
async fn reconnect(fleet: &TestFleet, running: &RunningController, number: usize) -> Revision {
    let manifest = manifests::cluster("bj1").replace("bj1.kubeconfig", &format!("bj1-{number}.kubeconfig"));
    fleet.push(running, "Another connection", &[(BJ1_FILE, Some(&manifest))]).await
}

async fn check_stop_waits_for_write(running: RunningController, writes: &InFlightWrites) {
    assert_eq!(writes.in_flight(), 1, "the write came to its end before the stop");
    let (ending, _) = running.stop().await;
    assert!(matches!(ending, RunEnding::Stopped), "{ending:?}");
    assert_eq!(writes.in_flight(), 0, "the process ended before its write was answered");
}

#[tokio::test(start_paused = true)]
async fn stop_waits_for_write_of_replaced_connection() {
    let fleet = fleet(&apps(1));
    let (running, writes) = start_with_slow_writes(&fleet).await;
    wait_until_in_flight(&writes, 1).await;
    reconnect(&fleet, &running, 2).await;
    tokio::time::sleep(RECONNECT_DURATION).await;
    check_stop_waits_for_write(running, &writes).await;
}

#[tokio::test(start_paused = true)]
async fn stop_waits_for_write_of_unregistered_cluster() {
    let fleet = fleet(&apps(1));
    let (running, writes) = start_with_slow_writes(&fleet).await;
    wait_until_in_flight(&writes, 1).await;
    fleet.push(&running, "No cluster", &[(BJ1_FILE, None)]).await;
    tokio::time::sleep(RECONNECT_DURATION).await;
    check_stop_waits_for_write(running, &writes).await;
}

#[tokio::test(start_paused = true)]
async fn stop_waits_for_delete_of_replaced_connection() {
    let apps = apps(2);
    let fleet = fleet(&apps);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let (running, writes) = start_with_slow_writes(&fleet).await;
    let gone: Vec<_> = apps[..2].iter().map(|(path, _)| (path.as_str(), None)).collect();
    fleet.push(&running, "One app less", &gone).await;
    wait_until_in_flight(&writes, 1).await;
    reconnect(&fleet, &running, 2).await;
    tokio::time::sleep(RECONNECT_DURATION).await;
    check_stop_waits_for_write(running, &writes).await;
}

#[tokio::test(start_paused = true)]
async fn replaced_connections_share_the_limit_of_tasks() {
    let fleet = fleet(&apps(4 * TASK_LIMIT));
    let (running, writes) = start_with_slow_writes(&fleet).await;
    wait_until_in_flight(&writes, TASK_LIMIT).await;
    let mut revision = fleet.first_commit.clone();
    for number in 2..6 {
        revision = reconnect(&fleet, &running, number).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    running.until_converged(&revision).await;
    assert_eq!(writes.maxima(), (TASK_LIMIT, 1), "writes at once, and of one object");
    // Writes that started on the first connection are not repeated.
    let all = RequestMatch::writes().resource("configmaps");
    assert_eq!(fleet.cluster("bj1").count_requests(&all), 4 * TASK_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn re_added_apps_wait_for_their_task() {
    let apps = apps(2 * TASK_LIMIT);
    let fleet = fleet(&apps);
    let (running, writes) = start_with_slow_writes(&fleet).await;
    wait_until_in_flight(&writes, TASK_LIMIT).await;
    let some = &apps[..TASK_LIMIT];
    let without: Vec<_> = some.iter().map(|(path, _)| (path.as_str(), None)).collect();
    let with: Vec<_> = some.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    fleet.push(&running, "Less", &without).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    reconnect(&fleet, &running, 2).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let revision = fleet.push(&running, "As before", &with).await;
    running.until_converged(&revision).await;
    assert_eq!(writes.maxima(), (TASK_LIMIT, 1), "writes at once, and of one object");
}
