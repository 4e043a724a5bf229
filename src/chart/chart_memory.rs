//! Keeps charts in memory: those of the head, and others within a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::MIB;
use crate::model::{Chart, ChartFailure, ChartFailureKind, ChartSource, Digest};

/// Bytes of the head's charts. Over it, the largest ones are refused.
const MOST_NAMED: usize = 512 * MIB;
/// Bytes of other charts: of earlier commits, and rawCharts.
const MOST_OTHERS: usize = 128 * MIB;
/// Bytes of a file besides its content.
const FILE_OVERHEAD: usize = 256;
/// Bytes of a failure.
const FAILURE_BYTES: usize = 4096;

pub type FetchedChart = Result<Arc<Chart>, ChartFailure>;

#[derive(Debug, Default)]
pub struct ChartMemory {
    charts: BTreeMap<ChartMemoryKey, CachedChart>,
    /// Charts that the head names.
    named: BTreeSet<ChartMemoryKey>,
    /// A counter of uses.
    uses: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChartMemoryKey {
    Raw(Digest),
    Source(ChartSource),
}

impl ChartMemoryKey {
    fn of(source: &ChartSource) -> Self {
        match source {
            ChartSource::Raw { digest, .. } => Self::Raw(*digest),
            source => Self::Source(source.clone()),
        }
    }
}

#[derive(Debug)]
struct CachedChart {
    chart: FetchedChart,
    bytes: usize,
    used: u64,
    named: bool,
}

impl CachedChart {
    /// Whether eviction frees memory: the head does not name it, and no caller holds it.
    fn is_evictable(&self) -> bool {
        !self.named && self.chart.as_ref().map_or(true, |chart| Arc::strong_count(chart) == 1)
    }
}

impl ChartMemory {
    /// Sets the charts of the head.
    pub fn set_named(&mut self, sources: &BTreeSet<ChartSource>) {
        self.named = sources.iter().map(ChartMemoryKey::of).collect();
        let named = &self.named;
        self.charts.retain(|key, kept| {
            kept.named = named.contains(key);
            kept.named || kept.chart.is_ok()
        });
        self.shrink();
    }

    pub fn get(&mut self, source: &ChartSource) -> Option<FetchedChart> {
        self.uses += 1;
        let kept = self.charts.get_mut(&ChartMemoryKey::of(source))?;
        kept.used = self.uses;
        Some(kept.chart.clone())
    }

    /// Returns the earlier value.
    pub fn put(&mut self, source: &ChartSource, chart: FetchedChart) -> Option<FetchedChart> {
        self.uses += 1;
        let (key, bytes) =
            (ChartMemoryKey::of(source), chart.as_ref().map_or(FAILURE_BYTES, |chart| bytes_of(chart)));
        let kept = CachedChart { chart, bytes, used: self.uses, named: self.named.contains(&key) };
        let before = self.charts.insert(key, kept);
        self.shrink();
        before.map(|kept| kept.chart)
    }

    fn shrink(&mut self) {
        while self.total_bytes(CachedChart::is_evictable) > MOST_OTHERS {
            let others = self.charts.iter().filter(|(_, kept)| kept.is_evictable());
            let Some(oldest) = others.min_by_key(|(_, kept)| kept.used) else { break };
            let oldest = oldest.0.clone();
            self.charts.remove(&oldest);
        }
        while self.total_bytes(|kept| kept.named) > MOST_NAMED {
            let named = self.charts.values_mut().filter(|kept| kept.named);
            let Some(largest) = named.max_by_key(|kept| kept.bytes).filter(|kept| kept.chart.is_ok()) else {
                break;
            };
            (largest.chart, largest.bytes) = (Err(too_large()), FAILURE_BYTES);
        }
    }

    fn total_bytes(&self, is_meant: impl Fn(&CachedChart) -> bool) -> usize {
        self.charts.values().filter(|kept| is_meant(kept)).map(|kept| kept.bytes).sum()
    }
}

fn bytes_of(chart: &Chart) -> usize {
    chart.files.iter().map(|(name, content)| name.len() + content.len() + FILE_OVERHEAD).sum()
}

fn too_large() -> ChartFailure {
    let message = format!(
        "the fetched charts of the repository unpack to more than {} MiB, and this one is the largest",
        MOST_NAMED / MIB
    );
    ChartFailure::new(ChartFailureKind::Limit, message).help("name fewer versions of large charts at a time")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(version: usize) -> ChartSource {
        ChartSource::Registry { url: "oci://x/web".to_owned(), version: format!("{version:03}") }
    }

    /// All share one content, so that the test needs little memory.
    fn charts() -> impl FnMut(usize) -> FetchedChart {
        let mut contents = BTreeMap::new();
        move |size| {
            let content = contents.entry(size).or_insert_with(|| vec![0; size].into());
            let files = vec![("Chart.yaml".to_owned(), Arc::clone(content))];
            Ok(Arc::new(Chart { origin: String::new(), digest: Digest::of(b""), folder: false, files }))
        }
    }

    fn kept(shelf: &mut ChartMemory, mut versions: std::ops::Range<usize>) -> Vec<usize> {
        versions.by_ref().filter(|version| matches!(shelf.get(&source(*version)), Some(Ok(_)))).collect()
    }

    #[test]
    fn charts_of_earlier_heads_are_bounded() {
        let (mut shelf, mut chart) = (ChartMemory::default(), charts());
        for version in 0..40 {
            shelf.set_named(&BTreeSet::from([source(0), source(version)]));
            shelf.put(&source(version), chart(8 * MIB));
        }
        assert_eq!(kept(&mut shelf, 0..40), [vec![0], (24..40).collect()].concat());
    }

    #[test]
    fn chart_in_use_stays() {
        let (mut shelf, mut chart) = (ChartMemory::default(), charts());
        shelf.put(&source(0), chart(8 * MIB));
        let held = shelf.get(&source(0));
        for version in 1..40 {
            shelf.put(&source(version), chart(8 * MIB));
        }
        assert_eq!(kept(&mut shelf, 0..2), [0]);
        drop(held);
        for version in 40..60 {
            shelf.put(&source(version), chart(8 * MIB));
        }
        assert_eq!(kept(&mut shelf, 0..2), [0_usize; 0]);
        assert!(shelf.total_bytes(|_| true) <= MOST_OTHERS);
    }

    #[test]
    fn largest_chart_over_limit_is_refused() {
        let (mut shelf, mut chart) = (ChartMemory::default(), charts());
        let is_large = |version: usize| version.is_multiple_of(10);
        shelf.set_named(&(0..100).map(source).collect());
        for version in 0..100 {
            shelf.put(&source(version), chart(if is_large(version) { 60 * MIB } else { MIB / 8 }));
        }
        let refused = |shelf: &mut ChartMemory, version| match shelf.get(&source(version)) {
            Some(Err(failure)) => failure.message.contains("more than 512 MiB"),
            _ => false,
        };
        let refused: Vec<usize> = (0..100).filter(|version| refused(&mut shelf, *version)).collect();
        assert!(refused.len() == 2 && refused.iter().all(|version| is_large(*version)), "{refused:?}");
    }

    #[test]
    fn failures_of_earlier_heads_are_dropped() {
        let mut shelf = ChartMemory::default();
        for version in 0..10 {
            shelf.set_named(&BTreeSet::from([source(version)]));
            shelf.put(&source(version), Err(ChartFailure::new(ChartFailureKind::Missing, "x")));
        }
        assert_eq!(shelf.charts.len(), 1);
    }
}
