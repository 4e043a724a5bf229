//! An object as bytes.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::Object;

/// The JSON text of one object at one revision, compressed when that pays. Clones share it.
#[derive(Clone)]
pub(crate) struct Stored {
    bytes: Arc<[u8]>,
    /// What the bytes refer to; none for plain text.
    dictionary: Dictionary,
}

/// A text that others of its resource look like. Objects of a kind differ in little, so against each
/// other they compress several times better than each for itself. Empty where there is none.
#[derive(Debug, Clone, Default)]
pub(super) struct Dictionary(Option<Arc<Vec<u8>>>);

impl Dictionary {
    /// Large texts are seldom alike, and a dictionary is read at every compression.
    const LARGEST: usize = 8 * 1024;

    fn text(&self) -> &[u8] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// A text that is clearly larger tells more: it is the dictionary of those to come. What is
    /// packed keeps its own.
    fn learn(&mut self, text: &[u8]) {
        if text.len() <= Self::LARGEST && text.len() > self.text().len() * 5 / 4 {
            self.0 = Some(Arc::new(text.to_vec()));
        }
    }
}

const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Compressing less than this saves nothing.
const SMALLEST: usize = 128;

impl Stored {
    /// Packs an object; `dictionary` is that of its table, if the table is large enough for one.
    pub(super) fn pack(value: &Value, dictionary: Option<&mut Dictionary>) -> Self {
        let mut plain = Vec::with_capacity(4096);
        plain.push(PLAIN);
        // a map with string keys can always be written
        let written = serde_json::to_writer(&mut plain, value);
        debug_assert!(written.is_ok());
        let text = plain.get(1..).unwrap_or_default();
        let own = Dictionary::default();
        if text.len() >= SMALLEST {
            let known = dictionary.as_deref().unwrap_or(&own).clone();
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
            let mut packed = vec![0; 5 + lz4_flex::block::get_maximum_output_size(text.len())];
            let (head, room) = packed.split_at_mut(5);
            head.copy_from_slice(&[COMPRESSED, length[0], length[1], length[2], length[3]]);
            let compressed = match known.text() {
                [] => lz4_flex::block::compress_into(text, room),
                known => lz4_flex::block::compress_into_with_dict(text, room, known),
            };
            if let Some(dictionary) = dictionary {
                dictionary.learn(text);
            }
            if let Ok(size) = compressed
                && size + 5 < plain.len()
            {
                packed.truncate(5 + size);
                return Self { bytes: packed.into(), dictionary: known };
            }
        }
        Self { bytes: plain.into(), dictionary: own }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> Cow<'_, [u8]> {
        match &*self.bytes {
            [COMPRESSED, a, b, c, d, packed @ ..] => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                let text = match self.dictionary.text() {
                    [] => lz4_flex::block::decompress(packed, length),
                    known => lz4_flex::block::decompress_with_dict(packed, length, known),
                };
                Cow::Owned(text.unwrap_or_default())
            }
            [_, plain @ ..] => Cow::Borrowed(plain),
            [] => Cow::Borrowed(&[]),
        }
    }

    pub(crate) fn parse(&self) -> Object {
        #[cfg(test)]
        super::counters::count_parse();
        Arc::new(serde_json::from_slice(&self.text()).unwrap_or_default())
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value) {
        check_with(value, None);
        let mut dictionary = Dictionary::default();
        // the second is packed with what the first left
        check_with(value, Some(&mut dictionary));
        check_with(value, Some(&mut dictionary));
    }

    fn check_with(value: &Value, dictionary: Option<&mut Dictionary>) {
        let stored = Stored::pack(value, dictionary);
        assert_eq!(stored.text().as_ref(), serde_json::to_vec(value).unwrap());
        assert_eq!(*stored.parse(), *value);
    }

    #[test]
    fn what_is_packed_comes_back() {
        check(&json!({}));
        check(&json!({"kind": "ConfigMap", "data": {"a": "é\u{0}"}}));
        check(&json!({"data": {"a": "x".repeat(100_000)}}));
        check(&json!({"list": (0..1_000).collect::<Vec<_>>()}));
    }

    #[test]
    fn repetition_is_compressed() {
        let stored = Stored::pack(&json!({"data": {"a": "x".repeat(10_000)}}), None);
        assert!(stored.size() < 200, "{}", stored.size());
    }

    #[test]
    fn what_looks_like_another_is_small() {
        let object = |number: usize| {
            let fields = (0..50).map(|field| (format!("f:{field}"), json!({}))).collect();
            json!({"name": number, "fields": Value::Object(fields)})
        };
        let mut dictionary = Dictionary::default();
        let sizes = [1, 2].map(|number| Stored::pack(&object(number), Some(&mut dictionary)).size());
        assert!(sizes[1] * 5 < sizes[0], "{sizes:?}");
    }
}
