//! Charts for a revision: what was fetched, and what was rendered before.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Renderer, archive};
use crate::model::{Chart, ChartFailure, ChartFault, ChartOutput, ChartRequest, ChartSource, Charts, Digest};

/// Results that are kept; beyond that, all are forgotten.
const MOST_RESULTS: usize = 20_000;
/// How long a chart that went over a limit is not tried again.
const REST: Duration = Duration::from_secs(600);
/// A chart that went over a limit this often is at rest, whatever its values.
const PATIENCE: usize = 2;

type Rendering = Arc<OnceLock<Result<Arc<ChartOutput>, ChartFailure>>>;

/// Renders each request once, side by side with others.
#[derive(Debug)]
pub struct Service {
    renderer: Renderer,
    results: Mutex<BTreeMap<Digest, Rendering>>,
    raw: Mutex<BTreeMap<Digest, Result<Arc<Chart>, ChartFailure>>>,
    /// Charts that went over a limit: when, and the last failure.
    offenders: Mutex<BTreeMap<Digest, (Vec<Instant>, ChartFailure)>>,
}

impl Service {
    pub fn new(renderer: Renderer) -> Self {
        Self { renderer, results: Mutex::default(), raw: Mutex::default(), offenders: Mutex::default() }
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

impl Charts for Service {
    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        match source {
            ChartSource::Raw { digest, archive } => {
                let read = || archive::read(archive, &format!("rawChart-{}/", digest.short())).map(Arc::new);
                self.raw.lock().entry(*digest).or_insert_with(read).clone()
            }
            ChartSource::Folder { .. } | ChartSource::Repository { .. } | ChartSource::Registry { .. } => {
                Err(ChartFailure::new(ChartFault::Missing, format!("{source} was not fetched")))
            }
        }
    }

    fn render(&self, request: &ChartRequest) -> Result<Arc<ChartOutput>, ChartFailure> {
        let key = request.key();
        let rendering = self.rendering(key);
        let render = || {
            if let Some(failure) = self.at_rest(request) {
                return Err(failure);
            }
            let result = self.renderer.render(request).map(Arc::new);
            if let Err(failure) = &result
                && failure.fault == ChartFault::Limit
            {
                self.note(request, failure);
            }
            result
        };
        let result = rendering.get_or_init(render).clone();
        if let Err(failure) = &result
            && matches!(failure.fault, ChartFault::Renderer | ChartFault::NoRenderer | ChartFault::Limit)
        {
            // Not of the inputs alone: asked again, it may be otherwise.
            self.results.lock().remove(&key);
        }
        result
    }
}
