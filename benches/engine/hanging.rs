//! One cluster in a hundred never answers: the effect on the others.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use parking_lot::Mutex;
use sandbox::{PodMode, Sandbox, SandboxOptions, SandboxService};
use tower::Service;
use tutti::cluster::ClusterLink;
use tutti::controller::ManifestOrigin;
use tutti::report::Overview;

use crate::goals::{at_most, figure};
use crate::percentile;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::TestFleet;
use crate::support::manifests::{config_map, objects_app};

const CLUSTERS: usize = 1000;
const HANGING: usize = 10;
const PAIRS: usize = 11;
/// Between two pushes in a row.
const PAUSE: Duration = Duration::from_secs(2);
/// Longer than any timeout.
const FOR_EVER: Duration = Duration::from_secs(3600);

pub fn hanging() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let names: Vec<String> = (0..CLUSTERS).map(|number| format!("cluster-{number:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files =
            [("apps/web/app.yaml", objects_app("default", "web")), ("apps/web/objects/all.yaml", map(0))];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let fleet = TestFleet::with_options(&names, &files, |name| SandboxOptions {
            pods: PodMode::Virtual,
            ..SandboxOptions::instant(name)
        });
        let clock = ApplyClock::default();
        let (clusters, noted) = (fleet.clusters.clone(), clock.clone());
        let hanging: BTreeSet<String> = names.iter().take(HANGING).map(|name| (*name).to_owned()).collect();
        let origin = ManifestOrigin::Repository(fleet.repository.open().await);
        let running = fleet.start_from_origin(origin, &ProcessConnections::unlimited(), |settings| {
            settings.link_resolver = Arc::new(move |cluster| {
                let name = cluster.name.as_str();
                let sandbox: &Sandbox = &clusters[name];
                let clock = (!hanging.contains(name)).then(|| noted.clone());
                ClusterLink::in_process(TimedService {
                    cluster: name.to_owned(),
                    service: sandbox.service(),
                    clock,
                })
            });
        });
        running.until_converged(&fleet.first_commit).await;

        let latency = |latency| {
            names.iter().take(HANGING).for_each(|name| fleet.cluster(name).set_latency(latency));
        };
        // From a push to the last apply of the others: the hanging ones do not count, whether they answer or not.
        let pushes = Cell::new(0);
        let push = async || {
            clock.applied.lock().clear();
            let start = Instant::now();
            pushes.set(pushes.get() + 1);
            let text = map(pushes.get());
            let revision =
                fleet.push(&running, "Change", &[("apps/web/objects/all.yaml", Some(&text))]).await;
            while clock.applied.lock().len() < CLUSTERS - HANGING {
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(start.elapsed() < Duration::from_secs(120), "the others do not get there");
            }
            let applied = clock.applied.lock().clone();
            let times = applied.values().map(|at| at.duration_since(start).as_secs_f64() * 1e3);
            (revision, percentile(&mut times.collect::<Vec<_>>(), 0.99))
        };

        // Turn by turn, so that what else the machine does falls on both; each begins at rest.
        let mut percentiles = [Vec::new(), Vec::new()];
        for turn in 0..2 * PAIRS {
            let hangs = turn % 2 == 1;
            latency(if hangs { FOR_EVER } else { Duration::ZERO });
            let (revision, time) = push().await;
            percentiles[usize::from(hangs)].push(time);
            latency(Duration::ZERO);
            running.until_converged(&revision).await;
        }
        // One after the other: all answer; the ten have hung for so long that they count as away, and are connected to again and
        // again; all answer once more. So what the machine does more or less of as time passes falls on both.
        let mut percentiles_away = [Vec::new(), Vec::new()];
        for part in 0..3 {
            let hangs = part == 1;
            latency(if hangs { FOR_EVER } else { Duration::ZERO });
            let expected = if hangs { HANGING } else { 0 };
            let are_away =
                |now: &Overview| now.clusters.iter().filter(|it| it.state == "Offline").count() == expected;
            running.until("those that hang are away, or are back", are_away).await;
            for _ in 0..PAIRS {
                percentiles_away[usize::from(hangs)].push(push().await.1);
                tokio::time::sleep(PAUSE).await;
            }
        }
        let [well, hang] = percentiles.map(|mut of_pushes| percentile(&mut of_pushes, 0.5));
        figure("p99_all_answer_ms", well, "ms");
        figure("p99_one_in_a_hundred_hangs_ms", hang, "ms");
        at_most("p99_ratio_percent", hang / well * 100.0, "%", 110.0);
        let [well, away] = percentiles_away.map(|mut of_pushes| percentile(&mut of_pushes, 0.5));
        at_most("p99_ratio_away_percent", away / well * 100.0, "%", 110.0);
    });
}

fn map(number: usize) -> String {
    config_map("default", "settings", &number.to_string())
}

/// When each cluster had its last apply.
#[derive(Clone, Default)]
struct ApplyClock {
    applied: Arc<Mutex<BTreeMap<String, Instant>>>,
}

#[derive(Clone)]
struct TimedService {
    cluster: String,
    service: SandboxService,
    /// `None` of the ones that hang.
    clock: Option<ApplyClock>,
}

impl<B> Service<Request<B>> for TimedService
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<sandbox::ResponseBody>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_apply = *request.method() == Method::PATCH;
        let (mut service, clock, cluster) = (self.service.clone(), self.clock.clone(), self.cluster.clone());
        Box::pin(async move {
            let answer = service.call(request).await;
            if let Some(clock) = clock.filter(|_| is_apply) {
                clock.applied.lock().insert(cluster, Instant::now());
            }
            answer
        })
    }
}
