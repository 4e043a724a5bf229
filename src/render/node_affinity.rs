//! Adds the node selector of a podSet to the node affinity of its pods.

use serde_json::{Map, Value, json};

/// Existing terms are alternatives, so each of them is narrowed.
pub fn add_required_term(template: &mut Map<String, Value>, term: &Value) {
    let mut place = template.entry("spec").or_insert_with(|| json!({}));
    for key in ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"] {
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(key).or_insert_with(|| json!({}));
    }
    let Some(map) = place.as_object_mut() else { return };
    let terms = map.entry("nodeSelectorTerms").or_insert_with(|| json!([]));
    let Some(terms) = terms.as_array_mut() else { return };
    if terms.is_empty() {
        terms.push(term.clone());
        return;
    }
    // A term without requirements matches no node; an added one would change that.
    let empty = |known: &Map<String, Value>| {
        !known.values().any(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    };
    for known in terms.iter_mut().filter_map(Value::as_object_mut).filter(|known| !empty(known)) {
        for (list, requirements) in term.as_object().into_iter().flatten() {
            let known = known.entry(list.clone()).or_insert_with(|| json!([]));
            if let (Some(known), Some(more)) = (known.as_array_mut(), requirements.as_array()) {
                known.extend(more.iter().filter(|one| !known.contains(one)).cloned().collect::<Vec<_>>());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: &Value) {
        let term = json!({"matchExpressions": [{"key": "ldc", "operator": "In", "values": ["b"]}]});
        let mut template = Map::from_iter([("spec".to_owned(), spec)]);
        add_required_term(&mut template, &term);
        let path = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        assert_eq!(template["spec"].pointer(path), Some(expected));
    }

    #[test]
    fn term_narrows_existing_node_affinity() {
        let own = json!({"key": "ldc", "operator": "In", "values": ["b"]});
        check(json!({}), &json!([{"matchExpressions": [own]}]));
        let with = |terms: Value| {
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let (ssd, name) =
            (json!({"key": "ssd", "operator": "Exists"}), json!({"key": "name", "operator": "Exists"}));
        check(
            with(json!([{"matchExpressions": [ssd]}, {"matchFields": [name]}])),
            &json!([{"matchExpressions": [ssd, own]}, {"matchFields": [name], "matchExpressions": [own]}]),
        );
        // Terms that match no node stay so.
        check(
            with(json!([{"matchExpressions": [ssd]}, {}, {"matchFields": []}])),
            &json!([{"matchExpressions": [ssd, own]}, {}, {"matchFields": []}]),
        );
        check(with(json!([{}])), &json!([{}]));
        check(with(json!([])), &json!([{"matchExpressions": [own]}]));
    }
}
