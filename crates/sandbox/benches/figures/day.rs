//! One virtual day of 50 watchers while requests fail and watches break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client};
use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};

use crate::client::apply_app;
use crate::figure;

const WATCHERS: usize = 50;
const QUARTERS: u64 = 24 * 4;
const APPS: u64 = 10;

pub fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let (seconds, events) = runtime.expect("a runtime").block_on(day());
    figure("virtual_24h_seconds", seconds, "s");
    figure("virtual_24h_events", events as f64, "events");
}

/// Every quarter of an hour an app is rolled out, and all watches are cut; every hour the history is
/// compacted; one watch request in seven fails.
async fn day() -> (f64, usize) {
    let start = Instant::now();
    let sandbox = Sandbox::new(SandboxOptions::default());
    let events = Arc::new(AtomicUsize::new(0));
    let watching: Vec<_> =
        (0..WATCHERS).map(|_| tokio::spawn(watch(sandbox.clone(), events.clone()))).collect();
    let mut requests = 0;
    for quarter in 0..QUARTERS {
        let image = format!("app:{quarter}");
        apply_app(&sandbox.service(), &format!("app-{}", quarter % APPS), &image).await;
        if quarter % 4 == 0 {
            sandbox.compact();
        }
        for number in 0..3 * WATCHERS / 7 {
            sandbox.fail_nth(RequestMatch::any().verb("watch"), 7 * number, Fault::internal_error());
        }
        sandbox.cut_watches();
        tokio::time::sleep(Duration::from_secs(15 * 60)).await;
        requests += sandbox.count_requests(&RequestMatch::any().verb("watch"));
        sandbox.reset_requests();
    }
    figure("virtual_24h_watch_requests", requests as f64, "requests");
    let seconds = start.elapsed().as_secs_f64();
    watching.iter().for_each(tokio::task::JoinHandle::abort);
    (seconds, events.load(Ordering::Relaxed))
}

async fn watch(sandbox: Sandbox, count: Arc<AtomicUsize>) {
    let api: Api<Deployment> = Api::all(Client::new(sandbox.service(), "default"));
    let mut events = std::pin::pin!(watcher(api, Config::default()));
    while events.next().await.is_some() {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
