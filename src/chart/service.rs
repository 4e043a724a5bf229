//! Fetches charts and renders them, and reuses results.
//!
//! Implements `model::ChartProvider`: the result of one request (chart by digest, values, release, namespace, capabilities) never
//! changes. Charts are fetched in the background. Until one arrives its app is awaited (E3998), and the head is rendered
//! again afterwards; read-only commands wait. Apps with charts are rendered last. A chart that exceeded a limit twice is
//! suspended for ten minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::{OnceCell, Semaphore};

use super::cache::Cache;
use super::chart_hosts::ChartHosts;
use super::chart_memory::{ChartMemory, FetchedChart};
use super::download_limits::{DownloadLimits, DownloadedBody};
use super::fetch::Fetcher;
use super::render_results::{ChartRenderResult, ChartRenderResults};
use super::{ChartRenderLimits, ChartRenderer, KEEP_IN_REPOSITORY, archive, program, values_schema};
use crate::model::{
    Chart, ChartFailure, ChartFailureKind, ChartOutput, ChartProvider, ChartRequest, ChartSource, Digest,
    RenderWait, TemplateWorkers, short_line,
};

/// How long a chart over a limit is suspended.
const SUSPENSION_TIME: Duration = Duration::from_secs(600);
/// Limit failures of a chart, with any values, before it is suspended.
const FAILURES_TO_SUSPEND: usize = 2;

/// Parallel downloads from one host, so that a silent host blocks no other.
const FETCHES_PER_HOST: usize = 4;
const FETCH_ATTEMPTS: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The time for one chart, all attempts included.
const FETCH_DEADLINE: Duration = Duration::from_secs(45);
/// Characters of a failure message, which may contain a server's text.
const LONGEST_MESSAGE: usize = 2048;

/// Renders each request once; different requests run in parallel.
#[derive(Debug)]
pub struct ChartService {
    renderer: ChartRenderer,
    results: Mutex<ChartRenderResults>,
    memory: Mutex<ChartMemory>,
    /// Held while a rawChart is unpacked.
    unpacking: Mutex<()>,
    /// Running fetches, shared by callers of the same source.
    fetches: Mutex<BTreeMap<ChartSource, Arc<OnceCell<FetchedChart>>>>,
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    download_limits: DownloadLimits,
    cache: Cache,
    fetcher: Fetcher,
    /// Times of limit failures by chart, with the last failure.
    offenders: Mutex<BTreeMap<Digest, (Vec<Instant>, ChartFailure)>>,
}

impl ChartService {
    /// With an optional cache folder.
    pub fn new(renderer: ChartRenderer, cache: Option<PathBuf>) -> Self {
        Self::with_hosts(ChartHosts::default(), renderer, cache)
    }

    /// With the hosts that the operator allows.
    pub fn with_hosts(sites: ChartHosts, renderer: ChartRenderer, cache: Option<PathBuf>) -> Self {
        let room = DownloadLimits::default();
        Self {
            renderer,
            results: Mutex::default(),
            memory: Mutex::default(),
            unpacking: Mutex::default(),
            fetches: Mutex::default(),
            hosts: Mutex::default(),
            cache: Cache::new(cache),
            fetcher: Fetcher::new(sites, room.clone()),
            download_limits: room,
            offenders: Mutex::default(),
        }
    }

    /// With the installed renderer and the user's cache folder.
    pub fn from_environment(sites: ChartHosts) -> Self {
        Self::with_hosts(
            sites,
            ChartRenderer::new(program::find(), ChartRenderLimits::default()),
            cache_folder(),
        )
    }

    /// With workers for repository templates and value checks.
    pub fn with_template_workers(self, workers: Arc<dyn TemplateWorkers>) -> Self {
        Self { renderer: self.renderer.with_workers(workers), ..self }
    }

    /// Fetches missing charts and waits for all of them. A failed fetch is repeated on the next call. Charts stay in memory
    /// while the caller holds them.
    pub async fn prefetch(&self, sources: &BTreeSet<ChartSource>) -> Vec<Arc<Chart>> {
        let fetch = |source| async move {
            let known = self.memory.lock().get(source);
            match known {
                Some(Ok(chart)) => Ok(chart),
                _ => self.fetch(source).await,
            }
        };
        let remote = sources.iter().filter(|source| source.is_remote());
        let fetched = futures::future::join_all(remote.map(fetch)).await;
        fetched.into_iter().flatten().collect()
    }

    /// The same for all charts of the head, which stay in memory until the next call.
    pub async fn fetch_all(&self, sources: &BTreeSet<ChartSource>) {
        self.memory.lock().set_named(sources);
        self.prefetch(sources).await;
    }

    /// The same without waiting: until a chart arrives, [`ChartProvider::chart`] returns [`ChartFailureKind::Awaited`]. `arrived` runs
    /// after each.
    pub fn start_fetching<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        sources: &BTreeSet<ChartSource>,
        arrived: impl Fn() -> F,
    ) {
        self.memory.lock().set_named(sources);
        for source in sources.iter().filter(|source| source.is_remote()) {
            let is_known = |known: &FetchedChart| match known {
                Ok(_) => true,
                Err(failure) => failure.fault == ChartFailureKind::Awaited,
            };
            let mut shelf = self.memory.lock();
            if shelf.get(source).as_ref().is_some_and(is_known) {
                continue;
            }
            let awaited = ChartFailure::new(ChartFailureKind::Awaited, format!("{source} is being fetched"));
            shelf.put(source, Err(awaited));
            drop(shelf);
            let (service, arrived, source) = (Arc::clone(self), arrived(), source.clone());
            tokio::spawn(async move {
                // The shelf already holds the result.
                drop(service.fetch(&source).await);
                arrived.await;
            });
        }
    }

    fn host_permits(&self, source: &ChartSource) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock();
        hosts.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(hosts.entry(host(source)).or_insert_with(|| Arc::new(Semaphore::new(FETCHES_PER_HOST))))
    }

    /// Shares a running fetch of the same source.
    async fn fetch(&self, source: &ChartSource) -> FetchedChart {
        let under_way = Arc::clone(self.fetches.lock().entry(source.clone()).or_default());
        let fetch = || async {
            let chart = self.load_or_fetch(source).await.map_err(presentable_failure);
            self.memory.lock().put(source, chart.clone());
            chart
        };
        let chart = under_way.get_or_init(fetch).await.clone();
        let mut all = self.fetches.lock();
        if all.get(source).is_some_and(|it| Arc::ptr_eq(it, &under_way)) {
            all.remove(source);
        }
        chart
    }

    async fn load_or_fetch(&self, source: &ChartSource) -> FetchedChart {
        let kept = self.run_blocking(source, |source, cache| {
            let archive = cache.get(source)?;
            Some(archive::read(&archive, &origin_prefix(source)))
        });
        if let Some(chart) = kept.await? {
            return chart.map(Arc::new);
        }
        // The semaphore is never closed.
        let _turn_of_host = self.host_permits(source).acquire_owned().await;
        let _turn = self.download_limits.fetch_permit().await;
        let late = |_| {
            let message =
                format!("failed to fetch {source}: no answer within {} s", FETCH_DEADLINE.as_secs());
            ChartFailure::new(ChartFailureKind::Limit, message).help(KEEP_IN_REPOSITORY)
        };
        let archive =
            tokio::time::timeout(FETCH_DEADLINE, self.fetch_with_retries(source)).await.map_err(late)??;
        let chart = self.run_blocking(source, move |source, cache| {
            let chart = archive::read(&archive.bytes, &origin_prefix(source))?;
            cache.put(source, &archive.bytes);
            Ok(Arc::new(chart))
        });
        chart.await?
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        source: &ChartSource,
        read: impl FnOnce(&ChartSource, &Cache) -> T + Send + 'static,
    ) -> Result<T, ChartFailure> {
        let (source, cache) = (source.clone(), self.cache.clone());
        self.download_limits.run_blocking(move || read(&source, &cache)).await
    }

    async fn fetch_with_retries(&self, source: &ChartSource) -> Result<DownloadedBody, ChartFailure> {
        let mut pause = FIRST_PAUSE;
        let mut attempts = 1;
        loop {
            match self.fetcher.fetch(source).await {
                Ok(archive) => return Ok(archive),
                Err(failure) if attempts == FETCH_ATTEMPTS || failure.fault == ChartFailureKind::Limit => {
                    return Err(failure);
                }
                Err(_) => tokio::time::sleep(pause).await,
            }
            attempts += 1;
            pause *= 4;
        }
    }

    pub fn renderer(&self) -> &ChartRenderer {
        &self.renderer
    }

    /// The flag says whether this thread rendered it.
    fn render_once(
        &self,
        key: Digest,
        request: &ChartRequest,
        wait: RenderWait<'_>,
    ) -> (ChartRenderResult, bool) {
        let rendering = self.results.lock().rendering(key);
        let mut is_mine = false;
        let render = || {
            is_mine = true;
            if let Some(failure) = self.suspension_failure(request) {
                return Err(failure);
            }
            let result = self.renderer.render_within(request, wait).map(Arc::new);
            if let Err(failure) = &result
                && failure.fault == ChartFailureKind::Limit
                && !values_schema::is_from_check(failure)
            {
                self.record_limit_failure(request, failure);
            }
            result
        };
        let result = rendering.get_or_init(render).clone();
        (result, is_mine)
    }

    fn suspension_failure(&self, request: &ChartRequest) -> Option<ChartFailure> {
        let mut offenders = self.offenders.lock();
        let (times, failure) = offenders.get_mut(&request.chart.digest)?;
        times.retain(|time| time.elapsed() < SUSPENSION_TIME);
        (times.len() >= FAILURES_TO_SUSPEND).then(|| ChartFailure {
            message: format!(
                "{}; the chart failed this way before, and tutti retries it later",
                failure.message
            ),
            ..failure.clone()
        })
    }

    fn record_limit_failure(&self, request: &ChartRequest, failure: &ChartFailure) {
        let mut offenders = self.offenders.lock();
        let entry = offenders.entry(request.chart.digest).or_insert_with(|| (Vec::new(), failure.clone()));
        entry.0.push(Instant::now());
        entry.1 = failure.clone();
    }
}

impl Default for ChartService {
    /// [`ChartService::from_environment`] with the hosts of the environment.
    fn default() -> Self {
        Self::from_environment(ChartHosts::from_environment())
    }
}

/// `$TUTTI_CHART_CACHE`, else `tutti/charts` in the user's cache folder.
fn cache_folder() -> Option<PathBuf> {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("TUTTI_CHART_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("tutti/charts")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/tutti/charts")))
}

/// Host and port of a source, in one spelling.
fn host(source: &ChartSource) -> String {
    let (ChartSource::Repository { url, .. } | ChartSource::Registry { url, .. }) = source else {
        return String::new();
    };
    let place = url.split_once("://").map_or(url.as_str(), |(_, place)| place);
    let Ok(url) = Url::parse(&format!("https://{place}")) else { return String::new() };
    let name = url.host_str().unwrap_or_default().trim_end_matches('.');
    format!("{name}:{}", url.port_or_known_default().unwrap_or_default())
}

/// A failure with bounded texts on one line.
fn presentable_failure(failure: ChartFailure) -> ChartFailure {
    let told = |text: String| short_line(&text, LONGEST_MESSAGE);
    ChartFailure { message: told(failure.message), help: failure.help.map(told), ..failure }
}

/// The path prefix of a fetched chart's files.
fn origin_prefix(source: &ChartSource) -> String {
    match source {
        ChartSource::Repository { chart, version, .. } => format!("{chart}-{version}/"),
        ChartSource::Registry { url, version } => {
            format!("{}-{version}/", url.rsplit('/').next().unwrap_or(url))
        }
        ChartSource::Folder { name, .. } => format!("charts/{name}/"),
        ChartSource::Raw { digest, .. } => format!("rawChart-{}/", digest.short()),
    }
}

impl ChartProvider for ChartService {
    fn template_workers(&self) -> Option<&dyn TemplateWorkers> {
        self.renderer.workers()
    }

    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        let known = || self.memory.lock().get(source);
        if let Some(chart) = known() {
            return chart;
        }
        match source {
            ChartSource::Raw { archive, .. } => {
                // Waits for a thread that unpacks it already.
                let _one = self.unpacking.lock();
                if let Some(chart) = known() {
                    return chart;
                }
                let chart =
                    archive::read(archive, &origin_prefix(source)).map(Arc::new).map_err(presentable_failure);
                self.memory.lock().put(source, chart.clone());
                chart
            }
            ChartSource::Folder { .. } | ChartSource::Repository { .. } | ChartSource::Registry { .. } => {
                Err(ChartFailure::new(ChartFailureKind::Missing, format!("{source} was not fetched")))
            }
        }
    }

    fn render(&self, request: &ChartRequest, wait: RenderWait<'_>) -> Result<Arc<ChartOutput>, ChartFailure> {
        let key = request.key();
        loop {
            let (result, is_mine) = self.render_once(key, request, wait);
            match result.as_ref().err().map(|failure| failure.fault) {
                // The other thread waited for a shorter time.
                Some(ChartFailureKind::Awaited) if !is_mine && (wait.is_wanted)() => {
                    self.results.lock().remove(&key);
                }
                // Such failures do not depend on the inputs alone, so another attempt may succeed.
                Some(
                    ChartFailureKind::Renderer
                    | ChartFailureKind::NoRenderer
                    | ChartFailureKind::Limit
                    | ChartFailureKind::Awaited,
                ) => {
                    self.results.lock().remove(&key);
                    return result;
                }
                _ if is_mine => {
                    self.results.lock().insert(key, &result);
                    return result;
                }
                _ => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::archive::tests::{entry, pack};
    use crate::chart::{MIB, RendererProgram};

    fn service(cache: Option<PathBuf>) -> ChartService {
        ChartService::new(
            ChartRenderer::new(RendererProgram::Missing(None), ChartRenderLimits::default()),
            cache,
        )
    }

    /// Unpacks to 4 MiB.
    fn large(number: usize) -> Vec<u8> {
        let name = format!("name: web{number}");
        pack(&[
            entry("web/Chart.yaml", b'0', name.as_bytes()),
            entry("web/values.yaml", b'0', &vec![0; 4 * MIB]),
        ])
    }

    fn registry(url: &str, version: usize) -> ChartSource {
        ChartSource::Registry { url: url.to_owned(), version: version.to_string() }
    }

    fn found(service: &ChartService, sources: &[ChartSource]) -> Vec<bool> {
        let mut shelf = service.memory.lock();
        sources.iter().map(|source| matches!(shelf.get(source), Some(Ok(_)))).collect()
    }

    #[test]
    fn raw_charts_in_memory_are_bounded() {
        let service = service(None);
        let raw = |number| {
            let archive = large(number);
            ChartSource::Raw { digest: Digest::of(&archive), archive: archive.into() }
        };
        let sources: Vec<ChartSource> = (0..40).map(raw).collect();
        for source in &sources {
            assert_eq!(service.chart(source).unwrap().files.len(), 2);
        }
        let kept = found(&service, &sources).into_iter().filter(|is_kept| *is_kept).count();
        assert_eq!(kept, 32);
        assert_eq!(service.chart(&sources[0]).unwrap().files.len(), 2);
    }

    #[tokio::test]
    async fn charts_of_earlier_commits_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let service = Arc::new(service(Some(folder.path().to_owned())));
        let sources: Vec<ChartSource> = (0..40).map(|version| registry("oci://x/web", version)).collect();
        let mut held = Vec::new();
        for (version, source) in sources.iter().enumerate() {
            service.cache.put(source, &large(version));
            let (sender, mut arrived) = tokio::sync::mpsc::channel(1);
            let arrive = || {
                let sender = sender.clone();
                async move { sender.send(()).await.unwrap() }
            };
            service.start_fetching(&BTreeSet::from([source.clone()]), arrive);
            assert!(arrived.recv().await.is_some());
            assert!(service.chart(source).is_ok());
            if version == 0 {
                held = service.prefetch(&BTreeSet::from([source.clone()])).await;
            }
        }
        let kept = found(&service, &sources);
        // A held chart, the head's, and others within the limit.
        assert!(kept[0] && !kept[1] && kept[39]);
        assert!(kept.iter().filter(|is_kept| **is_kept).count() <= 34);
        drop(held);
        assert_eq!(service.prefetch(&BTreeSet::from([sources[1].clone()])).await.len(), 1);
    }

    #[test]
    fn equivalent_host_spellings_are_equal() {
        for url in
            ["oci://x@EVIL.com/a", "https://evil.com:443/b", "oci://evil.com./a", "https://u:p@evil.com"]
        {
            assert_eq!(host(&registry(url, 1)), "evil.com:443", "{url}");
        }
        assert_eq!(host(&registry("oci://evil.com:5000/a", 1)), "evil.com:5000");
    }

    #[test]
    fn server_messages_become_one_line() {
        let message = format!("the index is not one:\n\u{1b}[31m{}", "a".repeat(10_000));
        let told = presentable_failure(
            ChartFailure::new(ChartFailureKind::Missing, message).help("the newest\nare \u{202e}1"),
        );
        assert!(
            told.message.starts_with("the index is not one: aaa")
                && told.message.chars().count() <= LONGEST_MESSAGE + 1
        );
        assert_eq!(told.help.as_deref(), Some("the newest are 1"));
    }
}
