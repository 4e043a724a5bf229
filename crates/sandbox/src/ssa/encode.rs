//! Field sets as `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use super::path::PathElement;

impl FieldSet {
    pub(crate) fn encode(&self) -> Value {
        let mut elements: Vec<&PathElement> = self.members.iter().chain(self.children.keys()).collect();
        elements.sort();
        elements.dedup();
        let mut out = Map::new();
        for element in elements {
            let below = match self.below(element) {
                Some(set) if self.has(element) => {
                    let mut with_self = Map::new();
                    with_self.insert(".".to_owned(), json!({}));
                    if let Value::Object(below) = set.encode() {
                        with_self.extend(below);
                    }
                    Value::Object(with_self)
                }
                Some(set) => set.encode(),
                None => json!({}),
            };
            out.insert(element.encode(), below);
        }
        Value::Object(out)
    }

    /// Reads `fieldsV1`; `None` when it is not one.
    pub(crate) fn decode(fields: &Value) -> Option<Self> {
        let mut out = Self::default();
        for (text, below) in fields.as_object()? {
            if text == "." {
                continue;
            }
            let element = PathElement::decode(text)?;
            let below_fields = below.as_object()?;
            if below_fields.is_empty() || below_fields.contains_key(".") {
                out.members.insert(element.clone());
            }
            let set = Self::decode(below)?;
            if !set.is_empty() {
                out.children.insert(element, set);
            }
        }
        Some(out)
    }
}
