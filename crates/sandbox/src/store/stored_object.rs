//! One object as compressed JSON text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;

/// A parsed object: immutable, and shared while it is in use.
pub(crate) type ParsedObject = Arc<Value>;

/// The JSON text of one object at one revision, compressed when that pays. Clones share it.
#[derive(Clone)]
pub(crate) struct StoredObject {
    bytes: Arc<[u8]>,
    /// The dictionary of the bytes; none for plain text.
    dictionary: CompressionDictionary,
}

/// A text that others of its resource look like. Objects of a kind differ in little, so against each
/// other they compress several times better than each for itself. Empty where there is none.
#[derive(Debug, Clone, Default)]
pub(super) struct CompressionDictionary(Option<Arc<Vec<u8>>>);

/// The dictionary of a table, which follows its objects as they grow.
#[derive(Debug, Default)]
pub(super) struct TableDictionary {
    dictionary: CompressionDictionary,
    /// How often it was replaced, and how many bytes were packed since.
    replacements: u32,
    packed_bytes: usize,
}

impl TableDictionary {
    /// Makes a text the dictionary of later objects when it is clearly larger, or larger at all after enough packed
    /// bytes. The threshold grows with each replacement. Packed objects keep their own dictionary.
    fn consider(&mut self, text: &[u8], packed: usize) {
        let known = self.dictionary.text().len();
        self.packed_bytes += packed;
        let is_larger = text.len() > known * 5 / 4;
        let is_due = text.len() > known && self.packed_bytes > text.len() << self.replacements.min(16);
        if text.len() <= CompressionDictionary::LARGEST && (is_larger || is_due) {
            self.dictionary.0 = Some(Arc::new(text.to_vec()));
            self.replacements += 1;
            self.packed_bytes = 0;
        }
    }
}

impl CompressionDictionary {
    /// Large texts are seldom alike, and a dictionary is read at every compression.
    const LARGEST: usize = 8 * 1024;

    fn text(&self) -> &[u8] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

thread_local! {
    /// Where objects are written and packed: large pieces of memory that come and go cost more than the work.
    static ROOM: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Compressing less than this saves nothing.
const SMALLEST: usize = 128;

impl StoredObject {
    /// Packs an object; `learned` is from its table, if the table is large enough for a dictionary.
    pub(super) fn pack(value: &Value, learned: Option<&mut TableDictionary>) -> Self {
        ROOM.with_borrow_mut(|(plain, packed)| Self::pack_in(value, learned, plain, packed))
    }

    fn pack_in(
        value: &Value,
        learned: Option<&mut TableDictionary>,
        plain: &mut Vec<u8>,
        packed: &mut Vec<u8>,
    ) -> Self {
        plain.clear();
        plain.push(PLAIN);
        // a map with string keys can always be written
        let written = serde_json::to_writer(&mut *plain, value);
        debug_assert!(written.is_ok());
        let text = plain.get(1..).unwrap_or_default();
        if text.len() >= SMALLEST {
            let known = learned
                .as_ref()
                .map_or_else(CompressionDictionary::default, |learned| learned.dictionary.clone());
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
            let most = 5 + lz4_flex::block::get_maximum_output_size(text.len());
            packed.resize(most.max(packed.len()), 0);
            let (head, room) = packed.split_at_mut(5);
            head.copy_from_slice(&[COMPRESSED, length[0], length[1], length[2], length[3]]);
            let compressed = match known.text() {
                [] => lz4_flex::block::compress_into(text, room),
                known => lz4_flex::block::compress_into_with_dict(text, room, known),
            };
            if let Some(learned) = learned {
                learned.consider(text, *compressed.as_ref().unwrap_or(&text.len()));
            }
            if let Ok(size) = compressed
                && size + 5 < plain.len()
                && let Some(packed) = packed.get(..5 + size)
            {
                return Self { bytes: packed.into(), dictionary: known };
            }
        }
        Self { bytes: plain.as_slice().into(), dictionary: CompressionDictionary::default() }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> Cow<'_, [u8]> {
        #[cfg(test)]
        super::counters::count_read();
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

    pub(crate) fn parse(&self) -> ParsedObject {
        #[cfg(test)]
        super::counters::count_parse();
        Arc::new(serde_json::from_slice(&self.text()).unwrap_or_default())
    }
}

impl std::fmt::Debug for StoredObject {
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
        let mut learned = TableDictionary::default();
        // the second is packed with what the first left
        check_with(value, Some(&mut learned));
        check_with(value, Some(&mut learned));
    }

    fn check_with(value: &Value, learned: Option<&mut TableDictionary>) {
        let stored = StoredObject::pack(value, learned);
        assert_eq!(stored.text().as_ref(), serde_json::to_vec(value).unwrap());
        assert_eq!(*stored.parse(), *value);
    }

    #[test]
    fn packed_objects_round_trip() {
        check(&json!({}));
        check(&json!({"kind": "ConfigMap", "data": {"a": "é\u{0}"}}));
        check(&json!({"data": {"a": "x".repeat(100_000)}}));
        check(&json!({"list": (0..1_000).collect::<Vec<_>>()}));
    }

    #[test]
    fn repetition_is_compressed() {
        let stored = StoredObject::pack(&json!({"data": {"a": "x".repeat(10_000)}}), None);
        assert!(stored.size() < 200, "{}", stored.size());
    }

    #[test]
    fn similar_objects_compress_well() {
        let object = |number: usize| {
            let fields = (0..50).map(|field| (format!("f:{field}"), json!({}))).collect();
            json!({"name": number, "fields": Value::Object(fields)})
        };
        let mut learned = TableDictionary::default();
        let sizes = [1, 2].map(|number| StoredObject::pack(&object(number), Some(&mut learned)).size());
        assert!(sizes[1] * 5 < sizes[0], "{sizes:?}");
    }
}
