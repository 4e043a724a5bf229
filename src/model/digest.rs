//! sha256 digests, and the one canonical JSON form that they are taken over.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A sha256; shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a JSON value with sorted keys and no spaces, so that two equal values have one digest.
    pub fn of_json(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        write_canonical(value, &mut hasher);
        Self(hasher.finalize().into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The first twelve digits: enough to name one by hand.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

fn write_canonical(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    hasher.update(b",");
                }
                write_canonical(item, hasher);
            }
            hasher.update(b"]");
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            hasher.update(b"{");
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    hasher.update(b",");
                }
                hasher.update(Value::String(key.clone()).to_string());
                hasher.update(b":");
                write_canonical(&map[key], hasher);
            }
            hasher.update(b"}");
        }
        scalar => hasher.update(scalar.to_string()),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_does_not_matter_and_values_do() {
        let one = Digest::of_json(&json!({"a": [1, {"x": 1, "y": 2}], "b": "text"}));
        let same = Digest::of_json(&json!({"b": "text", "a": [1, {"y": 2, "x": 1}]}));
        let other = Digest::of_json(&json!({"b": "text", "a": [{"y": 2, "x": 1}, 1]}));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(Digest::parse(&one.to_string()), Some(one));
    }
}
