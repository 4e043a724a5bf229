//! Strategic merge patches, for kubectl's older commands: keyed lists merge by their first key, with
//! `$patch: delete | replace`, `$deleteFromPrimitiveList`, `$retainKeys` and `$setElementOrder`.

use serde_json::{Map, Value};

use crate::ssa::Schema;

/// Merges `change` into `live`.
pub(super) fn merge(live: &mut Value, change: &Value, schema: Schema<'_>) {
    let Value::Object(changes) = change else {
        *live = change.clone();
        return;
    };
    if changes.get("$patch").and_then(Value::as_str) == Some("replace") || !live.is_object() {
        *live = without_directives(changes);
        return;
    }
    let Some(fields) = live.as_object_mut() else { return };
    if let Some(Value::Array(kept)) = changes.get("$retainKeys") {
        fields.retain(|name, _| kept.iter().any(|one| one == name));
    }
    for (name, value) in changes {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            remove_items(fields.get_mut(list), value);
        } else if name.starts_with('$') {
            continue;
        } else if value.is_null() {
            fields.shift_remove(name);
        } else {
            let below = schema.field(name);
            let place = fields.entry(name.clone()).or_insert(Value::Null);
            match (value, below.patch_key()) {
                (Value::Array(items), Some(key)) => merge_list(place, items, key, below.item()),
                (Value::Array(items), None) if below.is_set() => add_items(place, items),
                (Value::Object(_), _) => merge(place, value, below),
                _ => *place = value.clone(),
            }
        }
    }
}

fn without_directives(changes: &Map<String, Value>) -> Value {
    let kept = changes.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn remove_items(list: Option<&mut Value>, gone: &Value) {
    let gone = gone.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(items) = list.and_then(Value::as_array_mut) {
        items.retain(|item| !gone.contains(item));
    }
}

fn add_items(list: &mut Value, added: &[Value]) {
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Some(items) = list.as_array_mut() else { return };
    for item in added {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

fn merge_list(live: &mut Value, changes: &[Value], key: &str, schema: Schema<'_>) {
    if changes.iter().any(|one| one["$patch"] == "replace") {
        let kept = changes.iter().filter(|one| one["$patch"] != "replace");
        *live = Value::Array(kept.cloned().collect());
        return;
    }
    if !live.is_array() {
        *live = Value::Array(Vec::new());
    }
    let Some(items) = live.as_array_mut() else { return };
    let known: Vec<Value> = items.iter().map(|item| item[key].clone()).collect();
    let place_of = |item: &Value| known.iter().position(|one| *one == item[key]);
    let mut named = Vec::new();
    for change in changes {
        let before = items.iter().position(|item| item[key] == change[key]).map(|place| items.remove(place));
        if change["$patch"] == "delete" {
            continue;
        }
        named.push(match before {
            Some(mut item) => {
                merge(&mut item, change, schema);
                item
            }
            None => change.as_object().map_or_else(|| change.clone(), without_directives),
        });
    }
    // what the patch names keeps its place among the rest; what is new comes before it
    let mut rest = std::mem::take(items).into_iter().peekable();
    for item in named {
        while let (Some(at), Some(other)) = (place_of(&item), rest.peek())
            && place_of(other).is_some_and(|other| other < at)
        {
            items.extend(rest.next());
        }
        items.push(item);
    }
    items.extend(rest);
}
