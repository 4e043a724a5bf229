//! Keeps render results within a memory limit; the oldest go first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use super::MIB;
use crate::model::{ChartFailure, ChartObject, ChartOutput, Digest, size_in_memory};

/// Approximate bytes of all results in memory.
const MOST: usize = 128 * MIB;
/// Bytes of one result besides its objects.
const OVERHEAD: usize = 4096;

pub type Rendered = Result<Arc<ChartOutput>, ChartFailure>;
pub type Rendering = Arc<OnceLock<Rendered>>;

#[derive(Debug, Default)]
pub struct Results {
    renderings: BTreeMap<Digest, Rendering>,
    /// Kept results with their bytes, oldest first.
    done: VecDeque<(Digest, usize)>,
    bytes: usize,
}

impl Results {
    pub fn rendering(&mut self, key: Digest) -> Rendering {
        Arc::clone(self.renderings.entry(key).or_default())
    }

    pub fn remove(&mut self, key: &Digest) {
        self.renderings.remove(key);
    }

    /// Keeps a result and evicts the oldest.
    pub fn keep(&mut self, key: Digest, result: &Rendered) {
        let objects = result.as_ref().map_or(0, |output| bytes_of(&output.objects) + output.notes.len());
        // A result above the whole limit is not kept.
        if OVERHEAD + objects > MOST {
            self.renderings.remove(&key);
            return;
        }
        self.done.push_back((key, OVERHEAD + objects));
        self.bytes += OVERHEAD + objects;
        while self.bytes > MOST
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
        let mut results = Results::default();
        let object = ChartObject {
            file: String::new(),
            object: Value::from("a".repeat(MIB)),
            definition: false,
            hook: None,
        };
        let output = Arc::new(ChartOutput { objects: vec![object], notes: String::new() });
        let keys: Vec<Digest> = (0..200_u8).map(|number| Digest::of(&[number])).collect();
        let is_there = |results: &mut Results, key: &Digest| results.rendering(*key).get().is_some();
        for key in &keys {
            let result = results.rendering(*key).get_or_init(|| Ok(Arc::clone(&output))).clone();
            results.keep(*key, &result);
        }
        assert!(results.bytes <= MOST && Arc::strong_count(&output) <= 128);
        let kept: Vec<bool> = keys.iter().map(|key| is_there(&mut results, key)).collect();
        assert!(!kept[0] && !kept[71] && kept[75] && kept[199], "{kept:?}");
        // A result above the limit is returned, and others stay.
        let large = Arc::new(ChartOutput { objects: Vec::new(), notes: "a".repeat(MOST) });
        let result = results.rendering(keys[0]).get_or_init(|| Ok(large)).clone();
        results.keep(keys[0], &result);
        assert!(!is_there(&mut results, &keys[0]) && is_there(&mut results, &keys[199]));
    }
}
