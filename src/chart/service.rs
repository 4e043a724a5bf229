//! Charts for a revision: what was fetched, and what was rendered before.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::fetch::Fetcher;
use super::site::Sites;
use super::{Limits, Renderer, archive, program};
use crate::model::{
    Chart, ChartFailure, ChartFault, ChartOutput, ChartRequest, ChartSource, Charts, Digest, TemplateWorkers,
    Wait,
};

/// Results that are kept; beyond that, all are forgotten.
const MOST_RESULTS: usize = 20_000;
/// How long a chart that went over a limit is not tried again.
const REST: Duration = Duration::from_secs(600);
/// A chart that went over a limit this often is at rest, whatever its values.
const PATIENCE: usize = 2;

/// Downloads side by side from one host: one that does not answer holds up no other.
const FETCHES: usize = 4;
const ATTEMPTS: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Of one chart, with all attempts.
const LONGEST: Duration = Duration::from_secs(45);

type Rendering = Arc<OnceLock<Result<Arc<ChartOutput>, ChartFailure>>>;

/// Renders each request once, side by side with others.
#[derive(Debug)]
pub struct Service {
    renderer: Renderer,
    results: Mutex<BTreeMap<Digest, Rendering>>,
    raw: Mutex<BTreeMap<Digest, Result<Arc<Chart>, ChartFailure>>>,
    /// What was fetched, or is on its way.
    fetched: Mutex<BTreeMap<ChartSource, Result<Arc<Chart>, ChartFailure>>>,
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    cache: Cache,
    fetcher: Fetcher,
    /// Charts that went over a limit: when, and the last failure.
    offenders: Mutex<BTreeMap<Digest, (Vec<Instant>, ChartFailure)>>,
    template_workers: Option<Arc<dyn TemplateWorkers>>,
}

impl Service {
    /// Keeps what it fetches in a folder, if there is one.
    pub fn new(renderer: Renderer, cache: Option<PathBuf>) -> Self {
        Self::asking(Sites::default(), renderer, cache)
    }

    /// The same, of whom the operator says.
    pub fn asking(sites: Sites, renderer: Renderer, cache: Option<PathBuf>) -> Self {
        Self {
            renderer,
            results: Mutex::default(),
            raw: Mutex::default(),
            fetched: Mutex::default(),
            hosts: Mutex::default(),
            cache: Cache::new(cache),
            fetcher: Fetcher::new(sites),
            offenders: Mutex::default(),
            template_workers: None,
        }
    }

    /// With the program that is found, and the user's cache folder.
    pub fn found(sites: Sites) -> Self {
        Self::asking(sites, Renderer::new(program::find(), Limits::default()), cache_folder())
    }

    /// Templates of the repository are rendered by these.
    pub fn with_template_workers(self, workers: Arc<dyn TemplateWorkers>) -> Self {
        Self { template_workers: Some(workers), ..self }
    }

    /// Fetches what is not there yet, and comes back when all of it has come or failed. What could not be fetched is tried again
    /// the next time.
    pub async fn prefetch(&self, sources: &BTreeSet<ChartSource>) {
        let fetch = |source: ChartSource| async move {
            let chart = self.fetch(&source).await;
            self.fetched.lock().insert(source, chart);
        };
        futures::future::join_all(self.not_fetched(sources).into_iter().map(fetch)).await;
    }

    /// The same without waiting: until it has come, [`Charts::chart`] says [`ChartFault::Awaited`]. `arrived` hears of each.
    pub fn start_fetching<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        sources: &BTreeSet<ChartSource>,
        arrived: impl Fn() -> F,
    ) {
        for source in self.not_fetched(sources) {
            let awaited = ChartFailure::new(ChartFault::Awaited, format!("{source} is being fetched"));
            let before = self.fetched.lock().insert(source.clone(), Err(awaited));
            let is_under_way = |known: ChartFailure| known.fault == ChartFault::Awaited;
            if before.and_then(Result::err).is_some_and(is_under_way) {
                continue;
            }
            let (service, arrived) = (Arc::clone(self), arrived());
            tokio::spawn(async move {
                let chart = service.fetch(&source).await;
                service.fetched.lock().insert(source, chart);
                arrived.await;
            });
        }
    }

    fn not_fetched(&self, sources: &BTreeSet<ChartSource>) -> Vec<ChartSource> {
        let fetched = self.fetched.lock();
        let is_missing =
            |source: &&ChartSource| source.is_remote() && !matches!(fetched.get(*source), Some(Ok(_)));
        sources.iter().filter(is_missing).cloned().collect()
    }

    fn turns_of_host(&self, source: &ChartSource) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock();
        let turns = hosts.entry(host(source).to_owned()).or_insert_with(|| Arc::new(Semaphore::new(FETCHES)));
        Arc::clone(turns)
    }

    async fn fetch(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        let origin = origin(source);
        if let Some(bytes) = self.cache.get(source) {
            return archive::read(&bytes, &origin).map(Arc::new);
        }
        // Nobody closes it.
        let _turn = self.turns_of_host(source).acquire_owned().await;
        let late = |_| {
            let message = format!("failed to fetch {source}: it did not come within {} s", LONGEST.as_secs());
            ChartFailure::new(ChartFault::Limit, message)
        };
        let bytes = tokio::time::timeout(LONGEST, self.fetch_again(source)).await.map_err(late)??;
        let chart = archive::read(&bytes, &origin)?;
        self.cache.put(source, &bytes);
        Ok(Arc::new(chart))
    }

    async fn fetch_again(&self, source: &ChartSource) -> Result<Vec<u8>, ChartFailure> {
        let mut pause = FIRST_PAUSE;
        let mut attempts = 1;
        loop {
            match self.fetcher.fetch(source).await {
                Ok(bytes) => return Ok(bytes),
                Err(failure) if attempts == ATTEMPTS || failure.fault == ChartFault::Limit => {
                    return Err(failure);
                }
                Err(_) => tokio::time::sleep(pause).await,
            }
            attempts += 1;
            pause *= 4;
        }
    }

    pub fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    fn rendering(&self, key: Digest) -> Rendering {
        let mut results = self.results.lock();
        if results.len() >= MOST_RESULTS {
            results.clear();
        }
        Arc::clone(results.entry(key).or_default())
    }

    /// And whether it was not another thread that rendered it.
    fn render_once(
        &self,
        key: Digest,
        request: &ChartRequest,
        wait: Wait<'_>,
    ) -> (Result<Arc<ChartOutput>, ChartFailure>, bool) {
        let rendering = self.rendering(key);
        let mut is_mine = false;
        let render = || {
            is_mine = true;
            if let Some(failure) = self.at_rest(request) {
                return Err(failure);
            }
            let result = self.renderer.render_within(request, wait).map(Arc::new);
            if let Err(failure) = &result
                && failure.fault == ChartFault::Limit
            {
                self.note(request, failure);
            }
            result
        };
        let result = rendering.get_or_init(render).clone();
        (result, is_mine)
    }

    fn at_rest(&self, request: &ChartRequest) -> Option<ChartFailure> {
        let mut offenders = self.offenders.lock();
        let (times, failure) = offenders.get_mut(&request.chart.digest)?;
        times.retain(|time| time.elapsed() < REST);
        (times.len() >= PATIENCE).then(|| ChartFailure {
            message: format!("{}; the chart did so before and is not tried again yet", failure.message),
            ..failure.clone()
        })
    }

    fn note(&self, request: &ChartRequest, failure: &ChartFailure) {
        let mut offenders = self.offenders.lock();
        let entry = offenders.entry(request.chart.digest).or_insert_with(|| (Vec::new(), failure.clone()));
        entry.0.push(Instant::now());
        entry.1 = failure.clone();
    }
}

impl Default for Service {
    /// As [`Service::found`], of whom the environment says.
    fn default() -> Self {
        Self::found(Sites::of_environment())
    }
}

/// `$TUTTI_CHART_CACHE`, else `tutti/charts` in the user's cache folder.
fn cache_folder() -> Option<PathBuf> {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("TUTTI_CHART_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("tutti/charts")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/tutti/charts")))
}

/// Where a chart is fetched from.
fn host(source: &ChartSource) -> &str {
    let (ChartSource::Repository { url, .. } | ChartSource::Registry { url, .. }) = source else { return "" };
    let place = url.split_once("://").map_or(url.as_str(), |(_, place)| place);
    place.split('/').next().unwrap_or(place)
}

/// What stands before the files of a fetched chart.
fn origin(source: &ChartSource) -> String {
    match source {
        ChartSource::Repository { chart, version, .. } => format!("{chart}-{version}/"),
        ChartSource::Registry { url, version } => {
            format!("{}-{version}/", url.rsplit('/').next().unwrap_or(url))
        }
        ChartSource::Folder { name, .. } => format!("charts/{name}/"),
        ChartSource::Raw { digest, .. } => format!("rawChart-{}/", digest.short()),
    }
}

impl Charts for Service {
    fn template_workers(&self) -> Option<&dyn TemplateWorkers> {
        self.template_workers.as_deref()
    }

    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        match source {
            ChartSource::Raw { digest, archive } => {
                let read = || archive::read(archive, &origin(source)).map(Arc::new);
                self.raw.lock().entry(*digest).or_insert_with(read).clone()
            }
            ChartSource::Folder { .. } | ChartSource::Repository { .. } | ChartSource::Registry { .. } => {
                let fetched = self.fetched.lock().get(source).cloned();
                let missing = || ChartFailure::new(ChartFault::Missing, format!("{source} was not fetched"));
                fetched.unwrap_or_else(|| Err(missing()))
            }
        }
    }

    fn render(&self, request: &ChartRequest, wait: Wait<'_>) -> Result<Arc<ChartOutput>, ChartFailure> {
        let key = request.key();
        loop {
            let (result, is_mine) = self.render_once(key, request, wait);
            let Err(failure) = &result else { return result };
            match failure.fault {
                // Whoever rendered it did not wait for it as long as this one does.
                ChartFault::Awaited if !is_mine && (wait.goes_on)() => {
                    self.results.lock().remove(&key);
                }
                // Not of the inputs alone: asked again, it may be otherwise.
                ChartFault::Renderer | ChartFault::NoRenderer | ChartFault::Limit | ChartFault::Awaited => {
                    self.results.lock().remove(&key);
                    return result;
                }
                _ => return result,
            }
        }
    }
}
