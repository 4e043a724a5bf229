//! Keeps render results within a memory limit; the oldest go first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use super::MIB;
use crate::model::{ChartFailure, ChartObject, ChartOutput, Digest, size_in_memory};

/// Approximate bytes of all results in memory.
const MOST_BYTES: usize = 128 * MIB;
/// Bytes of one result besides its objects.
const OVERHEAD: usize = 4096;

pub type ChartRenderResult = Result<Arc<ChartOutput>, ChartFailure>;
pub type SharedChartRender = Arc<OnceLock<ChartRenderResult>>;

#[derive(Debug, Default)]
pub struct ChartRenderResults {
    renderings: BTreeMap<Digest, SharedChartRender>,
    /// Kept results with their bytes, oldest first.
    done: VecDeque<(Digest, usize)>,
    bytes: usize,
}

impl ChartRenderResults {
    pub fn rendering(&mut self, key: Digest) -> SharedChartRender {
        Arc::clone(self.renderings.entry(key).or_default())
    }

    pub fn remove(&mut self, key: &Digest) {
        self.renderings.remove(key);
    }

    /// Keeps a result and evicts the oldest.
    pub fn insert(&mut self, key: Digest, result: &ChartRenderResult) {
        let objects = result.as_ref().map_or(0, |output| bytes_of(&output.objects) + output.notes.len());
        // A result above the whole limit is not kept.
        if OVERHEAD + objects > MOST_BYTES {
            self.renderings.remove(&key);
            return;
        }
        self.done.push_back((key, OVERHEAD + objects));
        self.bytes += OVERHEAD + objects;
        while self.bytes > MOST_BYTES
            && let Some((oldest, bytes)) = self.done.pop_front()
        {
            self.bytes -= bytes;
            self.renderings.remove(&oldest);
        }
    }
}

/// Approximate bytes in memory.
pub fn bytes_of(objects: &[ChartObject]) -> usize {
    objects.iter().map(|object| object.file.len() + size_in_memory(&object.object)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn oldest_results_are_evicted_first() {
        let mut results = ChartRenderResults::default();
        let object = ChartObject {
            file: String::new(),
            object: Value::from("a".repeat(MIB)),
            definition: false,
            hook: None,
        };
        let output = Arc::new(ChartOutput { objects: vec![object], notes: String::new() });
        let keys: Vec<Digest> = (0..200_u8).map(|number| Digest::of(&[number])).collect();
        let is_there =
            |results: &mut ChartRenderResults, key: &Digest| results.rendering(*key).get().is_some();
        for key in &keys {
            let result = results.rendering(*key).get_or_init(|| Ok(Arc::clone(&output))).clone();
            results.insert(*key, &result);
        }
        assert!(results.bytes <= MOST_BYTES && Arc::strong_count(&output) <= 128);
        let kept: Vec<bool> = keys.iter().map(|key| is_there(&mut results, key)).collect();
        assert!(!kept[0] && !kept[71] && kept[75] && kept[199], "{kept:?}");
        // A result above the limit is returned, and others stay.
        let large = Arc::new(ChartOutput { objects: Vec::new(), notes: "a".repeat(MOST_BYTES) });
        let result = results.rendering(keys[0]).get_or_init(|| Ok(large)).clone();
        results.insert(keys[0], &result);
        assert!(!is_there(&mut results, &keys[0]) && is_there(&mut results, &keys[199]));
    }
}
