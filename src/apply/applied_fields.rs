//! Reads the fields that an object sets, and those of its last `kubectl apply`.

use serde_json::{Value, json};

use super::managed_fields::OwnedFieldSet;

/// Fields of `metadata` that only the server sets.
const SERVER_FIELDS: [&str; 6] =
    ["creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"];

pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Read from the annotation of `kubectl apply`.
pub fn last_applied_fields(live: &Value) -> Option<OwnedFieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
    let mut set = OwnedFieldSet::of(&serde_json::from_str(text).ok()?);
    set.add(&OwnedFieldSet::of(&json!({"metadata": {"annotations": {LAST_APPLIED: ""}}})));
    Some(set)
}

impl OwnedFieldSet {
    /// All fields that an object sets. A list counts as one field, but finalizers are a set.
    pub fn of(object: &Value) -> Self {
        let mut set = Self::of_value(object, &["apiVersion", "kind", "status"]);
        if let Some(metadata) = object.get("metadata") {
            let mut fields = Self::of_value(metadata, &SERVER_FIELDS);
            fields.children.remove("f:finalizers");
            let finalizers = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
            let below =
                finalizers.filter(|it| it.is_string()).map(|name| (format!("v:{name}"), Self::leaf()));
            let finalizers = Self { children: below.collect(), ..Self::default() };
            if !finalizers.children.is_empty() {
                fields.children.insert("f:finalizers".to_owned(), finalizers);
            }
            set.children.insert("f:metadata".to_owned(), fields);
        }
        set
    }

    fn of_value(value: &Value, except: &[&str]) -> Self {
        let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return Self::leaf() };
        let fields = map.iter().filter(|(name, _)| !except.contains(&name.as_str()));
        let below = fields.map(|(name, value)| (format!("f:{name}"), Self::of_value(value, &[]))).collect();
        Self { children: below, ..Self::default() }
    }

    fn leaf() -> Self {
        Self { owned: true, owns_subtree: true, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_of_kubectl_names_its_fields() {
        let applied = json!({"apiVersion": "v1", "kind": "Account", "metadata": {"finalizers": ["example.com/x"]},
            "spec": {"owner": "a"}});
        let mut live = applied.clone();
        assert!(last_applied_fields(&live).is_none());
        live["metadata"]["annotations"] = json!({LAST_APPLIED: applied.to_string()});
        let known = last_applied_fields(&live).expect("it is there");
        for path in [&["spec", "owner"][..], &["metadata", "annotations", LAST_APPLIED]] {
            assert!(known.has_path(path), "{path:?}");
        }
        let text = known.to_value().to_string();
        assert!(text.contains(r#""f:finalizers":{"v:\"example.com/x\"":{}}"#), "{text}");
    }
}
