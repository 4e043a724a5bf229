//! One cluster in a hundred answers nothing: what the others notice of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use parking_lot::Mutex;
use sandbox::{Pods, Sandbox, SandboxOptions, SandboxService};
use tower::Service;
use tutti::cluster::Link;
use tutti::controller::Origin;

use crate::support::fleet::Fleet;
use crate::support::manifests::{config_map, objects};
use crate::support::wires::Wires;
use crate::{figure, percentile};

const CLUSTERS: usize = 1000;
const HANGING: usize = 10;
const PAIRS: usize = 7;
/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(3600);

pub fn hanging() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let names: Vec<String> = (0..CLUSTERS).map(|number| format!("cluster-{number:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files = [("apps/web/app.yaml", objects("default", "web")), ("apps/web/objects/all.yaml", map(0))];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let fleet = Fleet::with(&names, &files, |name| SandboxOptions {
            pods: Pods::Virtual,
            ..SandboxOptions::instant(name)
        });
        let clock = Clock::default();
        let (clusters, noted) = (fleet.clusters.clone(), clock.clone());
        let origin = Origin::Repository(fleet.repository.open().await);
        let running = fleet.start_from(origin, &Wires::lasting(), |settings| {
            settings.links = Arc::new(move |cluster| {
                let name = cluster.name.as_str();
                let sandbox: &Sandbox = &clusters[name];
                Link::in_process(Timed {
                    cluster: name.to_owned(),
                    service: sandbox.service(),
                    clock: noted.clone(),
                })
            });
        });
        running.converged(&fleet.begin).await;

        // Turn by turn, so that what else the machine does falls on both; each begins at rest.
        let mut percentiles = [Vec::new(), Vec::new()];
        for push in 0..2 * PAIRS {
            let hangs = push % 2 == 1;
            let latency = |latency| {
                names.iter().take(HANGING).for_each(|name| fleet.cluster(name).set_latency(latency));
            };
            latency(if hangs { FOR_EVER } else { Duration::ZERO });
            clock.applied.lock().clear();
            let start = Instant::now();
            let text = map(push + 1);
            let revision =
                fleet.push(&running, "Change", &[("apps/web/objects/all.yaml", Some(&text))]).await;
            let others = &names[HANGING..];
            while clock.applied.lock().len() < others.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(start.elapsed() < Duration::from_secs(120), "the others do not get there");
            }
            // The hanging ones do not count, whether they answer or not.
            let applied = clock.applied.lock().clone();
            let of_others = applied.iter().filter(|(name, _)| others.contains(&name.as_str()));
            let mut times: Vec<f64> =
                of_others.map(|(_, at)| at.duration_since(start).as_secs_f64() * 1e3).collect();
            percentiles[usize::from(hangs)].push(percentile(&mut times, 0.99));
            latency(Duration::ZERO);
            running.converged(&revision).await;
        }
        let [well, hang] = percentiles.map(|mut of_pushes| percentile(&mut of_pushes, 0.5));
        figure("p99_all_answer_ms", well, "ms");
        figure("p99_one_in_a_hundred_hangs_ms", hang, "ms");
        figure("p99_ratio_percent", hang / well * 100.0, "%");
    });
}

fn map(number: usize) -> String {
    config_map("default", "settings", &number.to_string())
}

/// When each cluster had its last apply.
#[derive(Clone, Default)]
struct Clock {
    applied: Arc<Mutex<BTreeMap<String, Instant>>>,
}

#[derive(Clone)]
struct Timed {
    cluster: String,
    service: SandboxService,
    clock: Clock,
}

impl<B> Service<Request<B>> for Timed
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
            if is_apply {
                clock.applied.lock().insert(cluster, Instant::now());
            }
            answer
        })
    }
}
