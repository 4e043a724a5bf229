//! Compares one pull request, merged into its base, with the base: [`compare`] on both renders. `service` calls it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::compare::{self, ComparedRevision, Comparison, ComparisonCache};
use crate::controller::ConfigHead;
use crate::model::{DecryptionKeys, Revision, Snapshot};
use crate::render::{DiscoveredCapabilities, Pacing};
use crate::source::{self, ConfigRepository, ErrorKind};
use crate::{chart, fleet, manifest};

/// Rendering time of one pull request. A single template without end hits its own limit much earlier.
const RENDER_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub enum PullCheckResult {
    Compared(Box<Comparison>),
    /// Paths that both sides changed, the first of them, and the number of others.
    Conflicts(Vec<String>, usize),
    /// The author must change it.
    Invalid(String),
}

/// Compares pull requests with their base. Caches renders between checks.
#[derive(Debug)]
pub struct PullChecker {
    pub repository: ConfigRepository,
    pub charts: Arc<chart::ChartService>,
    caches: Arc<Mutex<(ComparisonCache, manifest::ManifestCache)>>,
}

impl PullChecker {
    pub fn new(repository: ConfigRepository, charts: Arc<chart::ChartService>) -> Self {
        Self { repository, charts, caches: Arc::default() }
    }

    /// An error concerns access to Git; the same check may succeed later.
    pub async fn check(
        &self,
        base: &Arc<ConfigHead>,
        reference: &str,
        head: &Revision,
    ) -> Result<PullCheckResult, source::Error> {
        match self.merge_head(base, reference, head).await {
            Ok(snapshot) => {
                Ok(PullCheckResult::Compared(Box::new(self.compare_renders(base, snapshot).await?)))
            }
            Err(source::Error::Conflict { paths, more, .. }) => Ok(PullCheckResult::Conflicts(paths, more)),
            Err(error) if error.kind() == ErrorKind::Configuration => {
                Ok(PullCheckResult::Invalid(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    async fn merge_head(
        &self,
        base: &Arc<ConfigHead>,
        reference: &str,
        head: &Revision,
    ) -> Result<Snapshot, source::Error> {
        self.repository.fetch_missing(reference, head).await?;
        let merged = self.repository.preview_merge(&base.snapshot.revision, head).await?;
        let registered = base.snapshot.registry.clone();
        Ok(Snapshot { registry: registered, keys: DecryptionKeys::default(), ..merged.snapshot })
    }

    /// Encrypted files stay closed on both sides: the author of a pull request may not be allowed to read them.
    async fn compare_renders(
        &self,
        base: &Arc<ConfigHead>,
        head: Snapshot,
    ) -> Result<Comparison, source::Error> {
        let before = Snapshot { keys: DecryptionKeys::default(), ..Snapshot::clone(&base.snapshot) };
        let (base, charts, kept) = (Arc::clone(base), Arc::clone(&self.charts), Arc::clone(&self.caches));
        let read = tokio::task::spawn_blocking(move || {
            let after = compare::fleet_after(&head, &mut kept.lock().1, Some(&base.fleet));
            (after, head, base, kept)
        });
        let (after, head, base, kept) = read.await.map_err(|_| self.stopped_error())?;
        // The base has its own charts already.
        let found = self.charts.prefetch(&fleet::charts::remote_sources(&after)).await;
        let work = tokio::task::spawn_blocking(move || {
            let side = |fleet, snapshot| ComparedRevision {
                fleet,
                snapshot,
                charts: &*charts,
                discovered: DiscoveredCapabilities::new(),
            };
            // Keeps the fetched charts in the cache.
            let _found = found;
            let begun = Instant::now();
            let clock = || begun.elapsed();
            let goes_on = || clock() < RENDER_TIMEOUT;
            let pacing = Pacing { goes_on: &goes_on, clock: &clock };
            let (before, after) = (side(&base.fleet, &before), side(&after, &head));
            let kept = &mut kept.lock().0;
            // Otherwise an app that uses a kind of another app needs a render of all apps.
            if let Some(defined) = &base.defined {
                kept.set_defined(&base.snapshot.revision, defined.clone());
            }
            compare::compare(&before, &after, kept, Some(pacing))
        });
        work.await.map_err(|_| self.stopped_error())
    }

    fn stopped_error(&self) -> source::Error {
        source::Error::Stopped { url: self.repository.url().to_owned() }
    }
}
