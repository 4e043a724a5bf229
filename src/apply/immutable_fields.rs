//! Names the immutable fields of a refused change, if the server names only their section.
//!
//! For a StatefulSet, a Pod or a claim the server says `spec` and lists the mutable fields. The others are found by
//! comparing the applied body with the live object.

use serde_json::Value;

use super::managed_fields::{self, OwnedFieldSet, is_blank_value};
use crate::cluster::{Client, Error, ImmutableField, Resource};
use crate::model::RenderedObject;

/// The section that such messages name.
const SECTION: &str = "spec";
/// At most so many fields are listed.
const MOST: usize = 8;

/// Adds the differing fields to the error. Reads the object once; without an answer the error is unchanged.
pub async fn name_immutable_fields(
    client: &Client,
    resource: &Resource,
    manager: &str,
    object: &RenderedObject,
    error: Error,
) -> Error {
    let Error::Immutable { action, object: id, fields } = error else { return error };
    let is_section = |field: &ImmutableField| field.field == SECTION;
    let live = if fields.iter().any(is_section) { client.get(resource, &id).await } else { Ok(None) };
    let Ok(Some(live)) = live else { return Error::Immutable { action, object: id, fields } };
    let body = object.body.fields();
    let mut named: Vec<ImmutableField> = Vec::new();
    for field in fields {
        let found =
            if is_section(&field) { changed_fields(&body, &live, manager, &field.why) } else { Vec::new() };
        if found.is_empty() {
            named.push(field);
        } else {
            let why = &field.why;
            named.extend(found.into_iter().map(|field| ImmutableField { field, why: why.clone() }));
        }
    }
    named.dedup();
    Error::Immutable { action, object: id, fields: named }
}

/// The fields of the section that an apply of `body` would change, without those that the server names as mutable.
fn changed_fields(body: &Value, live: &Value, manager: &str, why: &str) -> Vec<String> {
    // A StatefulSet has other quotes than a Pod, and a Pod has the section in the name.
    let quoted = |quote: char| why.split(quote).skip(1).step_by(2);
    let free = ['\'', '`'].into_iter().flat_map(quoted);
    let free: Vec<&str> = free
        .map(|field| field.strip_prefix(SECTION).map_or(field, |field| field.trim_start_matches('.')))
        .collect();
    let entry = managed_fields::managed_entries(live)
        .iter()
        .find(|entry| managed_fields::is_apply_entry(entry, manager));
    let ours = entry.map(managed_fields::entry_fields).unwrap_or_default();
    let ours = ours.children.get(&format!("f:{SECTION}"));
    let mut found = Vec::new();
    compare(&body[SECTION], &live[SECTION], ours, SECTION, &mut found);
    let is_within = |field: &str, free: &str| {
        field.strip_prefix(free).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    found.retain(|path| {
        let field = without_places(path[SECTION.len()..].trim_start_matches('.'));
        !free.iter().any(|free| is_within(&field, free))
    });
    found.truncate(MOST);
    found
}

/// With the wildcard of refusals: `containers[*].image`.
fn without_places(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| path + "[*" + part.trim_start_matches(|it: char| it.is_ascii_digit()))
}

fn compare(body: &Value, live: &Value, ours: Option<&OwnedFieldSet>, path: &str, found: &mut Vec<String>) {
    match (body, live) {
        (Value::Object(wanted), Value::Object(there)) => {
            for (name, value) in wanted {
                let below = ours.and_then(|ours| ours.children.get(&format!("f:{name}")));
                let live = there.get(name).unwrap_or(&Value::Null);
                compare(value, live, below, &format!("{path}.{name}"), found);
            }
            // Applied before, and no longer in Git.
            let names = ours
                .into_iter()
                .flat_map(|ours| ours.children.keys())
                .filter_map(|key| key.strip_prefix("f:"));
            let dropped = names.filter(|name| !wanted.contains_key(*name) && there.contains_key(*name));
            found.extend(dropped.map(|name| format!("{path}.{name}")));
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            for (place, (wanted, there)) in wanted.iter().zip(there).enumerate() {
                compare(wanted, there, None, &format!("{path}[{place}]"), found);
            }
        }
        _ if body == live || is_same_quantity(body, live) || is_blank_value(body) && is_blank_value(live) => {
        }
        _ => found.push(path.to_owned()),
    }
}

/// Servers store quantities in their shortest form: `1024Mi` becomes `1Gi`.
fn is_same_quantity(one: &Value, other: &Value) -> bool {
    amount(one).zip(amount(other)).is_some_and(|(one, other)| (one - other).abs() <= one.abs() * 1e-12)
}

fn amount(value: &Value) -> Option<f64> {
    let text = match value {
        Value::String(text) => text.as_str(),
        other => return other.as_f64(),
    };
    let end = text.find(|it: char| it.is_ascii_alphabetic() && it != 'e').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 2f64.powi(10),
        "Mi" => 2f64.powi(20),
        "Gi" => 2f64.powi(30),
        "Ti" => 2f64.powi(40),
        "Pi" => 2f64.powi(50),
        "Ei" => 2f64.powi(60),
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stateful_set_change_names_its_fields() {
        let set = |change: &dyn Fn(&mut Value)| {
            let mut set = json!({"spec": {"serviceName": "web", "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [{"name": "main", "image": "web:1"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}]}});
            change(&mut set);
            set
        };
        let live = set(&|set| {
            set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = json!("1Gi");
            set["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] = json!("Filesystem");
            set["spec"]["podManagementPolicy"] = json!("OrderedReady");
            let fields = json!({"f:spec": {"f:serviceName": {}, "f:podManagementPolicy": {}}});
            set["metadata"]["managedFields"] =
                json!([{"manager": "tutti-main", "operation": "Apply", "fieldsV1": fields}]);
        });
        let why = "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden";
        let check = |change: &dyn Fn(&mut Value), expected: &[&str]| {
            // The policy was applied and is still in Git.
            let body = set(&|set| {
                set["spec"]["podManagementPolicy"] = json!("OrderedReady");
                change(set);
            });
            assert_eq!(changed_fields(&body, &live, "tutti-main", why), expected, "{body}");
        };
        check(&|_| {}, &[]);
        check(&|set| set["spec"]["serviceName"] = json!("other"), &["spec.serviceName"]);
        check(
            &|set| {
                set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] =
                    json!("2Gi");
                set["spec"]["replicas"] = json!(3);
                set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
            },
            &["spec.volumeClaimTemplates[0].spec.resources.requests.storage"],
        );
        check(&|set| set["spec"]["volumeClaimTemplates"] = json!([]), &["spec.volumeClaimTemplates"]);
        let drop = |set: &mut Value| {
            set["spec"].as_object_mut().expect("a map").remove("podManagementPolicy");
        };
        check(&drop, &["spec.podManagementPolicy"]);
    }

    #[test]
    fn a_change_of_a_pod_names_its_fields() {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                   `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                   `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        let pod = |image: &str, command: &str, node: &str| {
            json!({"spec": {"nodeName": node, "containers": [
                {"name": "a", "image": "a:1"}, {"name": "b", "image": image, "command": [command]}]}})
        };
        let check = |body: &Value, expected: &[&str]| {
            assert_eq!(
                changed_fields(body, &pod("b:1", "run", "one"), "tutti-main", why),
                expected,
                "{body}"
            );
        };
        check(&pod("b:2", "run", "one"), &[]);
        check(&pod("b:2", "stop", "two"), &["spec.nodeName", "spec.containers[1].command[0]"]);
    }

    #[test]
    fn quantities_are_compared_by_their_amount() {
        for (one, other, expected) in [
            (json!("1024Mi"), json!("1Gi"), true),
            (json!(1), json!("1000m"), true),
            (json!("1e3"), json!("1k"), true),
            (json!("1Gi"), json!("1G"), false),
            (json!("web"), json!("api"), false),
        ] {
            assert_eq!(is_same_quantity(&one, &other), expected, "{one} {other}");
        }
    }
}
