//! Finds the changes of others to an object of ours, by its `managedFields`. The observation and the drift texts use
//! it.

use serde_json::Value;

use super::displaced_fields::{DisplacementSign, find_displaced};
use super::managed_fields::{
    ItemKey, OwnedFieldSet, entry_fields, entry_text, is_apply_entry, is_never_owned, managed_entries,
};
use crate::model::{Displacement, FieldPath, ForeignChanges, ForeignField};

/// `applied`: what we apply, without the `ignored` fields. `is_whole`: the whole object is known, not only its
/// metadata.
pub fn find_foreign_changes(
    applied: &Value,
    live: &Value,
    manager: &str,
    ignored: &[FieldPath],
    is_whole: bool,
) -> ForeignChanges {
    let sets: Vec<(&Value, OwnedFieldSet)> =
        managed_entries(live).iter().map(|entry| (entry, entry_fields(entry))).collect();
    let mut ours = OwnedFieldSet::default();
    let mut others = Vec::new();
    for (entry, set) in &sets {
        if is_apply_entry(entry, manager) {
            ours.add(set);
        } else if entry_text(entry, "subresource") != "status" {
            others.push((entry_text(entry, "manager"), set));
        }
    }
    let mut walk = ForeignChangeWalk { path: String::new(), fields: Vec::new(), lacks_items: false };
    walk.object(applied, &ours, &others);
    let in_place = match find_displaced(applied, live, manager, ignored, DisplacementSign::Likeness) {
        found if !is_whole && (walk.lacks_items || found.is_some()) => Displacement::NotKnown,
        Some(found) => {
            walk.fields.extend(found.taken);
            Displacement::Seen(Box::new(live.clone()))
        }
        None => Displacement::Nothing,
    };
    ForeignChanges { fields: walk.fields, displacement: in_place }
}

/// Whether a list item that we apply is missing in the fields that are ours.
pub fn has_missing_items(applied: &Value, ours: &OwnedFieldSet) -> bool {
    let mut walk = ForeignChangeWalk { path: String::new(), fields: Vec::new(), lacks_items: false };
    walk.object(applied, ours, &[]);
    walk.lacks_items
}

fn metadata_of(set: &OwnedFieldSet) -> Option<&OwnedFieldSet> {
    set.children.get("f:metadata")
}

/// Finds applied fields that we do not own.
struct ForeignChangeWalk {
    path: String,
    fields: Vec<ForeignField>,
    lacks_items: bool,
}

impl ForeignChangeWalk {
    fn object(&mut self, applied: &Value, ours: &OwnedFieldSet, others: &[(&str, &OwnedFieldSet)]) {
        let never = ["apiVersion", "kind", "status"];
        let told = ["annotations", "labels", "finalizers"];
        let none = OwnedFieldSet::default();
        for (name, value) in applied.as_object().into_iter().flatten() {
            match value.as_object().filter(|_| name == "metadata") {
                Some(metadata) => {
                    let part = |set| metadata_of(set).unwrap_or(&none);
                    let theirs: Vec<(&str, &OwnedFieldSet)> =
                        others.iter().map(|(manager, set)| (*manager, part(set))).collect();
                    self.path.push_str(".metadata");
                    for (name, value) in metadata.iter().filter(|(name, _)| told.contains(&name.as_str())) {
                        self.field(name, value, part(ours), &theirs);
                    }
                    self.path.clear();
                }
                None if never.contains(&name.as_str()) => {}
                None => self.field(name, value, ours, others),
            }
        }
    }

    fn field(&mut self, name: &str, value: &Value, ours: &OwnedFieldSet, others: &[(&str, &OwnedFieldSet)]) {
        self.part(&format!("f:{name}"), &format!(".{name}"), value, ours, others);
    }

    /// A field or a list item, by its key in the sets.
    fn part(
        &mut self,
        key: &str,
        shown: &str,
        value: &Value,
        ours: &OwnedFieldSet,
        others: &[(&str, &OwnedFieldSet)],
    ) {
        if is_never_owned(value) {
            return;
        }
        let length = self.path.len();
        self.path.push_str(shown);
        let theirs: Vec<(&str, &OwnedFieldSet)> =
            others.iter().filter_map(|(manager, set)| Some((*manager, set.children.get(key)?))).collect();
        match ours.children.get(key) {
            Some(ours) if ours.owns_subtree => {}
            Some(ours) => self.value(value, ours, &theirs),
            None if theirs.is_empty() => self.record(""),
            None => self.value(value, &OwnedFieldSet::default(), &theirs),
        }
        self.path.truncate(length);
    }

    fn value(&mut self, value: &Value, ours: &OwnedFieldSet, theirs: &[(&str, &OwnedFieldSet)]) {
        // A manager that owns a value as a whole owns no part of it.
        let whole = theirs.iter().find(|(_, set)| set.owns_subtree);
        match value {
            Value::Object(map) if whole.is_none() => {
                map.iter().for_each(|(name, value)| self.field(name, value, ours, theirs));
            }
            Value::Array(items) if whole.is_none() => {
                for item in items {
                    let sets = [ours].into_iter().chain(theirs.iter().map(|(_, set)| *set));
                    match sets.filter_map(|set| set.find_item_key(item)).next().map(str::to_owned) {
                        Some(key) => {
                            let shown =
                                ItemKey::parse(&key).map(|key| key.conflict_notation()).unwrap_or_default();
                            self.lacks_items |= !ours.children.contains_key(&key);
                            self.part(&key, &shown, item, ours, theirs);
                        }
                        None => {
                            self.lacks_items = true;
                            self.record("");
                        }
                    }
                }
            }
            _ if ours.owned => {}
            _ => self.record(theirs.first().map_or("", |(manager, _)| *manager)),
        }
    }

    fn record(&mut self, manager: &str) {
        let told = ForeignField { manager: manager.to_owned(), field: self.path.clone() };
        if !self.fields.contains(&told) {
            self.fields.push(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(
        applied: &Value,
        live: &Value,
        ours: &Value,
        theirs: &Value,
        expected: &[(&str, &str)],
    ) -> ForeignChanges {
        let entry = |manager: &str, operation: &str, fields: &Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
        let mut live = live.clone();
        live["metadata"]["managedFields"] =
            json!([entry("tutti-main", "Apply", ours), entry("kubectl-edit", "Update", theirs)]);
        let found = find_foreign_changes(applied, &live, "tutti-main", &[], true);
        let told: Vec<(&str, &str)> =
            found.fields.iter().map(|it| (it.manager.as_str(), it.field.as_str())).collect();
        assert_eq!(told, expected, "{theirs}");
        found
    }

    #[test]
    fn changed_and_lost_fields_are_reported() {
        let applied = json!({"apiVersion": "v1", "metadata": {"name": "a", "labels": {"a": "1"}},
            "data": {"level": "info", "mode": "fast"}});
        let labels = json!({"f:labels": {"f:a": {}}});
        let live = json!({"data": {"level": "debug"}});
        let ours = json!({"f:metadata": labels});
        let theirs = json!({"f:data": {"f:level": {}}});
        check(&applied, &live, &ours, &theirs, &[("kubectl-edit", ".data.level"), ("", ".data.mode")]);
        check(&applied, &live, &ours, &json!({}), &[("", ".data")]);
        let all = json!({"f:metadata": labels, "f:data": {"f:level": {}, "f:mode": {}}});
        check(&applied, &live, &all, &theirs, &[]);
    }

    #[test]
    fn renamed_item_is_reported_with_its_replacement() {
        let ports = |items: Value| json!({"spec": {"ports": items}});
        let key = |port: u32| format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}");
        let item = json!({".": {}, "f:name": {}, "f:port": {}});
        let applied = ports(json!([{"name": "web", "port": 80}, {"name": "admin", "port": 90}]));
        let live = ports(json!([
            {"name": "web", "port": 83, "protocol": "TCP"}, {"name": "admin", "port": 90, "protocol": "TCP"}]));
        let ours = json!({"f:spec": {"f:ports": {key(90): item}}});
        let theirs = json!({"f:spec": {"f:ports": {key(83): item}}});
        let told = [("", ".spec.ports"), ("kubectl-edit", ".spec.ports[port=83,protocol=\"TCP\"]")];
        let found = check(&applied, &live, &ours, &theirs, &told);
        assert!(matches!(found.displacement, Displacement::Seen(_)));
        // One more item beside all of ours.
        let ours = json!({"f:spec": {"f:ports": {key(80): item, key(90): item}}});
        let live = ports(
            json!([{"name": "web", "port": 80}, {"name": "admin", "port": 90}, {"name": "x", "port": 83}]),
        );
        let found = check(&applied, &live, &ours, &theirs, &[]);
        assert_eq!(found.displacement, Displacement::Nothing);
    }
}
