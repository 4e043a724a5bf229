//! Masks values that must not be shown: those of Secrets, and those that are encrypted in the config repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::{Digest, EncryptedValues, RenderedObject, is_secret_kind};

/// The JSON pointer of kubectl's last-applied annotation, which repeats all values.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// The fields of a Secret without values. Any other field may be a misplaced value.
const PUBLIC_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];

/// How SOPS begins a value that it encrypted.
pub const CIPHERTEXT: &str = "ENC[AES256_GCM,";

/// The body as it may be shown: `*** 3f9a1c2e` for each value that is secret. The digits change with the value.
pub fn masked_body(object: &RenderedObject) -> Value {
    let mut body = object.body.fields();
    let mask = |text: &str| {
        let digest = match &object.encrypted_values {
            Some(sealed) => sealed.of(text),
            None => Digest::of(format!("{} {text}", object.id.origin()).as_bytes()),
        };
        Value::String(format!("*** {}", digest.to_string().get(..8).unwrap_or_default()))
    };
    let is_secret = is_secret_kind(&object.kind.kind);
    if is_secret {
        let fields = body.as_object_mut().into_iter().flatten();
        for (_, field) in fields.filter(|(name, _)| !PUBLIC_FIELDS.contains(&name.as_str())) {
            match field {
                Value::Object(entries) => {
                    entries.iter_mut().for_each(|(_, value)| *value = mask(&text_of(value)));
                }
                value => *value = mask(&text_of(value)),
            }
        }
    }
    if let Some(applied) =
        body.pointer_mut(LAST_APPLIED).filter(|_| is_secret || object.encrypted_values.is_some())
    {
        *applied = mask(&text_of(applied));
    }
    if let Some(sealed) = &object.encrypted_values {
        mask_scalars(&mut body, "", &|path, text| sealed.has_value(path, text).then(|| mask(text)));
    }
    body
}

impl fmt::Debug for RenderedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderedObject")
            .field("id", &self.id)
            .field("body", &masked_body(self))
            .field("hash", &self.hash)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Masks the secret values of both states of an object; values that differ still differ. `kind` and `sealed` are those of the rendered
/// object.
pub fn mask_both(kind: &str, sealed: Option<&EncryptedValues>, before: &mut Value, after: &mut Value) {
    let is_secret = is_secret_kind(kind);
    // The earlier values are not known here, so they are found by path.
    let mut places: BTreeSet<String> = BTreeSet::new();
    if let Some(sealed) = sealed {
        places.extend(sealed.paths().map(str::to_owned));
        for object in [&*before, &*after] {
            visit_scalars(object, "", "", &mut |path, _, text| {
                if sealed.has_value(path, text) {
                    places.insert(path.to_owned());
                }
            });
        }
    }
    let hidden = |path: &str, pointer: &str| {
        let of_secret = !PUBLIC_FIELDS.contains(&pointer.split('/').nth(1).unwrap_or_default());
        // There the values stand too, escaped.
        let is_last_applied = pointer == LAST_APPLIED && (is_secret || sealed.is_some());
        !is_identity_path(pointer) && (places.contains(path) || is_secret && of_secret || is_last_applied)
    };
    let texts = |object: &Value| {
        let mut texts = BTreeMap::new();
        visit_scalars(object, "", "", &mut |path, pointer, text| {
            if hidden(path, pointer) {
                texts.insert(pointer.to_owned(), text.to_owned());
            }
        });
        texts
    };
    let (was, will_be) = (texts(before), texts(after));
    for (object, own, others, word) in
        [(before, &was, &will_be, "*** (before)"), (after, &will_be, &was, "*** (after)")]
    {
        for (pointer, text) in own {
            let shown = if others.get(pointer) == Some(text) { "***" } else { word };
            if let Some(value) = object.pointer_mut(pointer) {
                *value = Value::String(shown.to_owned());
            }
        }
    }
}

/// Masks every changed value of `before`, for objects whose earlier encrypted values are unknown.
pub fn mask_changes(before: &mut Value, after: &Value) {
    let mut changed = Vec::new();
    visit_scalars(before, "", "", &mut |_, pointer, text| {
        if !is_identity_path(pointer) && after.pointer(pointer).map(text_of).as_deref() != Some(text) {
            changed.push(pointer.to_owned());
        }
    });
    for pointer in changed {
        if let Some(value) = before.pointer_mut(&pointer) {
            *value = Value::String("*** (before)".to_owned());
        }
    }
}

/// Calls with the keys that lead to each scalar, its JSON pointer, and its text.
fn visit_scalars(value: &Value, path: &str, pointer: &str, call: &mut dyn FnMut(&str, &str, &str)) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                visit_scalars(item, path, &format!("{pointer}/{index}"), call);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                visit_scalars(value, &format!("{path}/{key}"), &format!("{pointer}/{escaped}"), call);
            }
        }
        scalar => call(path, pointer, &text_of(scalar)),
    }
}

/// Names and namespaces are always shown.
pub fn is_identity_path(path: &str) -> bool {
    ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"].contains(&path)
}

fn mask_scalars(value: &mut Value, path: &str, mask: &dyn Fn(&str, &str) -> Option<Value>) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter_mut().for_each(|item| mask_scalars(item, path, mask)),
        Value::Object(entries) => {
            entries.iter_mut().for_each(|(key, value)| mask_scalars(value, &format!("{path}/{key}"), mask));
        }
        scalar if !is_identity_path(path) => {
            if let Some(masked) = mask(path, &text_of(scalar)) {
                *scalar = masked;
            }
        }
        _ => {}
    }
}

/// The path of a text that is still as SOPS encrypts it, if there is one.
pub fn ciphertext_path(map: &Map<String, Value>) -> Option<String> {
    map.iter().find_map(|(key, value)| ciphertext_in(value, key))
}

fn ciphertext_in(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.trim_start().starts_with(CIPHERTEXT).then(|| path.to_owned()),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| ciphertext_in(item, &format!("{path}[{index}]")))
        }
        Value::Object(map) => {
            map.iter().find_map(|(key, value)| ciphertext_in(value, &format!("{path}.{key}")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use serde_json::json;

    use super::*;

    #[test]
    fn masked_secret_values_show_changes() {
        let secret = |value: &str| {
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque",
                              "data": {"password": value}});
            masked_body(&RenderedObject::for_test(&body, None))
        };
        let (one, other) = (secret("aHVudGVyMg=="), secret("aHVudGVyMw=="));
        assert_eq!(one, secret("aHVudGVyMg=="));
        assert_ne!(one["data"], other["data"]);
        let text = one["data"]["password"].as_str().unwrap_or_default();
        assert!(text.starts_with("*** ") && text.len() == 12, "{text}");
        assert_eq!(one["type"], "Opaque");
    }

    #[test]
    fn unknown_fields_of_secrets_are_masked() {
        let books = format!("{{\"data\":{{\"password\":\"{}\"}}}}", "hunter2");
        let body = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
                          "metadata": {"name": "a", "annotations": {
                              "kubectl.kubernetes.io/last-applied-configuration": books, "team": "a"}},
                          "data": "hunter2", "dataa": {"password": "hunter2", "more": {"b": "hunter2"}},
                          "stringdata": ["hunter2"], "password": "hunter2", "type/x": "hunter2",
                          "metadata/name": "hunter2"});
        let shown = masked_body(&RenderedObject::for_test(&body, None));
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        let (mut before, mut after) = (body.clone(), body.clone());
        after["password"] = json!("hunter22");
        mask_both("Secret", None, &mut before, &mut after);
        assert!(
            !before.to_string().contains("hunter2") && !after.to_string().contains("hunter2"),
            "{before} {after}"
        );
        assert_eq!((&before["password"], &before["data"]), (&json!("*** (before)"), &json!("***")));
        for shown in [shown, before, after] {
            for field in ["apiVersion", "kind", "type", "immutable"] {
                assert_eq!(shown[field], body[field]);
            }
            assert_eq!(
                (&shown["metadata"]["name"], &shown["metadata"]["annotations"]["team"]),
                (&json!("a"), &json!("a"))
            );
            assert!(
                shown["dataa"]["password"].as_str().is_some_and(|text| text.starts_with("***")),
                "{shown}"
            );
        }
    }

    #[test]
    fn encrypted_values_are_masked_everywhere() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "labels": {"a": "5"}},
                          "data": {"url": "https://hunter22@db", "open": "x", "port": 5}});
        let value = |path: &str, value: &str| (path.to_owned(), SecretString::from(value));
        let values =
            vec![value("/data/password", "hunter22"), value("/data/port", "5"), value("/data/a", "")];
        let sealed = EncryptedValues::new(b"salt", values);
        let shown = masked_body(&RenderedObject::for_test(&body, Some(sealed.clone())));
        assert_eq!(shown["metadata"], body["metadata"]);
        assert_eq!(shown["data"]["open"], "x");
        for hidden in [&shown["data"]["url"], &shown["data"]["port"]] {
            assert!(hidden.as_str().is_some_and(|text| text.starts_with("*** ")), "{hidden}");
        }
        let of_salt = |salt: &[u8]| EncryptedValues::new(salt, Vec::new()).digest(&body);
        assert_ne!(of_salt(b"salt"), of_salt(b"other"));
        let printed = format!("{:?}", RenderedObject::for_test(&body, Some(sealed)));
        assert!(!printed.contains("@db"), "{printed}");
    }

    #[test]
    fn states_of_a_secret_show_only_differences() {
        let secret = |password: &str, user: &str| {
            let books = format!("{{\"data\":{{\"password\":\"{password}\"}}}}");
            json!({"kind": "Secret", "metadata": {"name": "db", "annotations": {
                       "kubectl.kubernetes.io/last-applied-configuration": books, "team": "a"}},
                   "type": "Opaque", "data": {"password": password, "user": user, "a/b": password}})
        };
        let (mut before, mut after) = (secret("hunter2", "me"), secret("hunter3", "me"));
        mask_both("Secret", None, &mut before, &mut after);
        assert_eq!(before["data"], json!({"password": "*** (before)", "user": "***", "a/b": "*** (before)"}));
        assert_eq!(after["data"], json!({"password": "*** (after)", "user": "***", "a/b": "*** (after)"}));
        assert_eq!(
            (&before["type"], &before["metadata"]["annotations"]["team"]),
            (&json!("Opaque"), &json!("a"))
        );
        assert!(!before.to_string().contains("hunter") && !after.to_string().contains("hunter"));
    }

    #[test]
    fn earlier_values_at_encrypted_paths_are_masked() {
        let values = vec![("/data/password".to_owned(), SecretString::from("newpassword"))];
        let sealed = EncryptedValues::new(b"salt", values);
        let state = |password: &str| json!({"data": {"password": password, "open": "x", "url": [format!("u:{password}")]}});
        let (mut before, mut after) = (state("oldpassword"), state("newpassword"));
        mask_both("ConfigMap", Some(&sealed), &mut before, &mut after);
        let hidden = |word: &str| json!({"data": {"password": word, "open": "x", "url": [word]}});
        assert_eq!(before, hidden("*** (before)"));
        assert_eq!(after, hidden("*** (after)"));
        let (mut nothing, mut after) = (Value::Null, state("newpassword"));
        mask_both("ConfigMap", Some(&sealed), &mut nothing, &mut after);
        assert_eq!((nothing, after), (Value::Null, hidden("*** (after)")));
    }

    #[test]
    fn unknown_encrypted_values_mask_all_changes() {
        let mut before = json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"old": "x", "same": 1, "list": ["a", "b"]}});
        let after = json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"same": 1, "list": ["a"]}});
        mask_changes(&mut before, &after);
        assert_eq!(before["spec"], json!({"old": "*** (before)", "same": 1, "list": ["a", "*** (before)"]}));
        assert_eq!(before["metadata"]["name"], "a");
    }

    #[test]
    fn ciphertext_is_found_by_path() {
        let found = |body: &Value| ciphertext_path(body.as_object().expect("a map"));
        let text = "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]";
        assert_eq!(found(&json!({"a": 1, "b": {"c": ["d", {"e": text}]}})), Some("b.c[1].e".to_owned()));
        assert_eq!(found(&json!({"a": format!("\n{text}")})), Some("a".to_owned()));
        assert_eq!(found(&json!({"a": format!("see {text}"), "b": null})), None);
    }
}
