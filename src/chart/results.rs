//! Results of renders that are kept: as many as have room, the last ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::MIB;
use crate::model::{ChartFailure, ChartObject, ChartOutput, Digest};

/// Bytes of all of them, about as memory has them.
const MOST: usize = 128 * MIB;
/// Of one, besides its objects.
const OVERHEAD: usize = 4096;

pub type Rendered = Result<Arc<ChartOutput>, ChartFailure>;
pub type Rendering = Arc<OnceLock<Rendered>>;

#[derive(Debug, Default)]
pub struct Results {
    renderings: BTreeMap<Digest, Rendering>,
    /// Those that stay, with their bytes; oldest first.
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

    /// A result that stays for the next who asks. In its place the oldest go.
    pub fn keep(&mut self, key: Digest, result: &Rendered) {
        let objects = result.as_ref().map_or(0, |output| bytes_of(&output.objects) + output.notes.len());
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

/// About as many as objects take in memory.
pub fn bytes_of(objects: &[ChartObject]) -> usize {
    objects.iter().map(|object| object.file.len() + of_value(&object.object)).sum()
}

fn of_value(value: &Value) -> usize {
    const OF_A_VALUE: usize = 32;
    const OF_A_MAP: usize = 64;
    const OF_A_KEY: usize = 48;
    let inside = match value {
        Value::Array(items) => items.iter().map(of_value).sum(),
        Value::Object(map) => {
            OF_A_MAP + map.iter().map(|(key, value)| OF_A_KEY + key.len() + of_value(value)).sum::<usize>()
        }
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    OF_A_VALUE + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_results_go_when_all_are_too_large() {
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
        // One that is larger than all may be has room for nobody, and is given to who rendered it.
        let large = Arc::new(ChartOutput { objects: Vec::new(), notes: "a".repeat(MOST) });
        let result = results.rendering(keys[0]).get_or_init(|| Ok(large)).clone();
        results.keep(keys[0], &result);
        assert!(!is_there(&mut results, &keys[0]) && results.done.is_empty() && results.bytes == 0);
    }
}
