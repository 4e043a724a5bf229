//! An object as bytes.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::Object;

/// The JSON text of one object at one revision, compressed when that pays. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stored(Arc<[u8]>);

const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Compressing less than this saves nothing.
const SMALLEST: usize = 128;

impl Stored {
    pub(super) fn pack(value: &Value) -> Self {
        let mut plain = vec![PLAIN];
        // a map with string keys can always be written
        let written = serde_json::to_writer(&mut plain, value);
        debug_assert!(written.is_ok());
        let text = plain.get(1..).unwrap_or_default();
        if text.len() >= SMALLEST {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
            let mut packed = vec![0; 5 + lz4_flex::block::get_maximum_output_size(text.len())];
            let (head, room) = packed.split_at_mut(5);
            head.copy_from_slice(&[COMPRESSED, length[0], length[1], length[2], length[3]]);
            if let Ok(size) = lz4_flex::block::compress_into(text, room)
                && size + 5 < plain.len()
            {
                packed.truncate(5 + size);
                return Self(packed.into());
            }
        }
        Self(plain.into())
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> Cow<'_, [u8]> {
        match &*self.0 {
            [COMPRESSED, a, b, c, d, packed @ ..] => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                Cow::Owned(lz4_flex::block::decompress(packed, length).unwrap_or_default())
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
        let stored = Stored::pack(value);
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
        let stored = Stored::pack(&json!({"data": {"a": "x".repeat(10_000)}}));
        assert!(stored.0.len() < 200, "{}", stored.0.len());
    }
}
