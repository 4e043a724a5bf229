//! What others put in the place of fields of ours, so that an apply cannot put ours back.
//!
//! Server-side apply merges lists by keys. When somebody changes such a key (a port's number), our item is gone and theirs
//! stands there; an apply adds ours beside theirs, and the server refuses both (`Duplicate value: "web"`). So it is with a
//! choice of which one may be set (`httpGet` and `tcpSocket` of a probe). Their part is given to our entry of
//! `managedFields`: the apply that follows does not say it, so the server removes it in the same write that adds ours.
//!
//! Only what the refusal is about, and only what was never in what we applied, is taken.

use serde_json::{Value, json};

use super::owned::{FieldSet, ItemKey, entries, fields, is_ours, text};

/// What is taken, and from whom.
#[derive(Debug, PartialEq)]
pub struct Displaced {
    /// All entries of the object, with what is taken in ours.
    pub entries: Vec<Value>,
    /// Manager and field of each.
    pub taken: Vec<(String, String)>,
}

/// `before`: what was applied last. `refusal`: the words of the server, which name the fields that it refuses.
pub fn displaced(before: &Value, live: &Value, manager: &str, refusal: &str) -> Option<Displaced> {
    let refusal = Refusal::of(refusal);
    let (mut kept, mut own, mut taken) = (Vec::new(), None, Vec::new());
    let mut all = FieldSet::default();
    for entry in entries(live) {
        if is_ours(entry, manager) {
            own = Some(entry.clone());
            continue;
        }
        let mut theirs = fields(entry);
        if text(entry, "subresource").is_empty() {
            let mut walk = Walk { refusal: &refusal, path: Vec::new(), taken: Vec::new() };
            let found = walk.of(&theirs, before, live);
            taken.extend(walk.taken.into_iter().map(|field| (text(entry, "manager").to_owned(), field)));
            theirs.subtract(&found);
            all.add(&found);
        }
        if !theirs.is_empty() {
            let mut entry = entry.clone();
            entry["fieldsV1"] = theirs.to_value();
            kept.push(entry);
        }
    }
    let mut own = own.filter(|_| !all.is_empty())?;
    all.add(&fields(&own));
    own["fieldsV1"] = all.to_value();
    kept.push(own);
    Some(Displaced { entries: kept, taken })
}

/// The fields that a refusal names, without the places of items: `spec.ports.name`.
struct Refusal {
    fields: Vec<String>,
}

impl Refusal {
    fn of(words: &str) -> Self {
        // Several causes stand in brackets, and so do places of items: `[spec.ports[1].name: Duplicate value, …]`.
        let (mut plain, mut rest) = (String::with_capacity(words.len()), words);
        while let Some((before, behind)) = rest.split_once('[') {
            plain.push_str(before);
            let place = behind.split_once(']').filter(|(place, _)| !place.contains([' ', ':', '[']));
            rest = place.map_or(behind, |(_, rest)| rest);
        }
        plain.push_str(rest);
        // A path ends at the colon before what is wrong with it.
        let is_path = |word: &&str| word.contains('.') && !word.contains(['"', '/']);
        let words = plain.split_whitespace().filter_map(|word| word.strip_suffix(':'));
        Self { fields: words.filter(is_path).map(str::to_owned).collect() }
    }

    /// Whether it is about this field, or one right below it. What is further below has nothing to do with its neighbours.
    fn is_about(&self, path: &str) -> bool {
        let parent = |field: &str| field.rsplit_once('.').is_some_and(|(parent, _)| parent == path);
        self.fields.iter().any(|field| field == path || parent(field))
    }
}

struct Walk<'a> {
    refusal: &'a Refusal,
    /// Names of fields alone.
    path: Vec<String>,
    taken: Vec<String>,
}

impl Walk<'_> {
    /// What of a set of theirs stands in the place of ours.
    fn of(&mut self, theirs: &FieldSet, before: &Value, live: &Value) -> FieldSet {
        let mut found = FieldSet::default();
        for (key, child) in &theirs.below {
            let part = match key.strip_prefix("f:") {
                Some(name) => self.of_field(name, child, before, live),
                None => self.of_item(key, child, before, live),
            };
            if !part.is_empty() {
                found.below.insert(key.clone(), part);
            }
        }
        found
    }

    fn of_field(&mut self, name: &str, theirs: &FieldSet, before: &Value, live: &Value) -> FieldSet {
        let parent = self.path.join(".");
        self.path.push(name.to_owned());
        let path = self.path.join(".");
        let part = match (before.get(name), before.as_object()) {
            (Some(before), _) => self.of(theirs, before, live.get(name).unwrap_or(&Value::Null)),
            // A choice: one of ours is not there, and the refusal is about its neighbours; or it names theirs.
            (None, Some(ours)) => {
                let is_missing = ours.keys().any(|known| live.get(known).is_none());
                let in_place = is_missing && self.refusal.is_about(&parent);
                if in_place || self.refusal.is_about(&path) { self.take(theirs) } else { FieldSet::default() }
            }
            (None, None) => FieldSet::default(),
        };
        self.path.pop();
        part
    }

    fn of_item(&mut self, key: &str, theirs: &FieldSet, before: &Value, live: &Value) -> FieldSet {
        let (Some(item_key), Some(ours), Some(now)) =
            (ItemKey::parse(key), before.as_array(), live.as_array())
        else {
            return FieldSet::default();
        };
        let item = item_key.find(now).and_then(|index| now.get(index));
        if let Some(known) = item_key.find(ours).and_then(|index| ours.get(index)) {
            return self.of(theirs, known, item.unwrap_or(&Value::Null));
        }
        let ItemKey::Keys(keys) = &item_key else { return FieldSet::default() };
        let Some(item) = item.filter(|_| self.refusal.is_about(&self.path.join("."))) else {
            return FieldSet::default();
        };
        let missing = ours.iter().filter(|known| !now.iter().any(|item| has_same_keys(known, item, keys)));
        let missing: Vec<&Value> = missing.collect();
        let strangers = now.iter().filter(|item| !ours.iter().any(|known| has_same_keys(known, item, keys)));
        let is_alone = missing.len() == 1 && strangers.count() == 1;
        if missing.iter().any(|known| is_alone || resembles(known, item, keys)) {
            self.take(theirs)
        } else {
            FieldSet::default()
        }
    }

    fn take(&mut self, theirs: &FieldSet) -> FieldSet {
        self.taken.push(self.path.join("."));
        theirs.clone()
    }
}

type Keys = serde_json::Map<String, Value>;

fn has_same_keys(one: &Value, other: &Value, keys: &Keys) -> bool {
    let default = |name: &str| (name == "protocol").then(|| json!("TCP"));
    keys.keys().all(|name| {
        let of = |item: &Value| item.get(name).cloned().or_else(|| default(name));
        of(one) == of(other)
    })
}

/// Whether an item says something of what another says, beside its keys.
fn resembles(known: &Value, item: &Value, keys: &Keys) -> bool {
    let mut said = known.as_object().into_iter().flatten().filter(|(name, _)| !keys.contains_key(*name));
    said.any(|(name, value)| item.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn check(before: &Value, live: &Value, theirs: &Value, refusal: &str, expected: &[&str]) {
        let mut live = live.clone();
        let entries =
            [entry("tutti-main", "Apply", &json!({"f:spec": {}})), entry("kubectl", "Update", theirs)];
        live["metadata"] = json!({"managedFields": entries});
        let found = displaced(before, &live, "tutti-main", refusal);
        let taken = found.map(|found| found.taken).unwrap_or_default();
        let fields: Vec<&str> = taken.iter().map(|(_, field)| field.as_str()).collect();
        assert_eq!(fields, expected, "{refusal}");
    }

    #[test]
    fn item_with_another_key_stands_in_the_place_of_ours() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let ours = ports(json!([{"name": "web", "port": 80}]));
        let duplicate = "Service \"web\" is invalid: spec.ports[1].name: Duplicate value: \"web\"";
        let key = r#"k:{"port":83,"protocol":"TCP"}"#;
        let theirs = json!({"f:spec": {"f:ports": {key: {".": {}, "f:name": {}, "f:port": {}}}}});
        let live = ports(json!([{"name": "web", "port": 83, "protocol": "TCP", "targetPort": 83}]));
        check(&ours, &live, &theirs, duplicate, &["spec.ports"]);
        let several = "Service \"web\" is invalid: [spec.type: Invalid value, spec.ports[1].name: Duplicate value: \"web\"]";
        check(&ours, &live, &theirs, several, &["spec.ports"]);
        check(&ours, &live, &theirs, "Service \"web\" is invalid: spec.selector: Invalid value", &[]);
        // Ours is still there: theirs is one more.
        let both = ports(json!([{"name": "web", "port": 80}, {"name": "x", "port": 83, "protocol": "TCP"}]));
        check(&ours, &both, &theirs, duplicate, &[]);
    }

    #[test]
    fn neighbour_that_is_not_alike_stays() {
        let containers = |list: Value| json!({"spec": {"containers": list}});
        let ours = containers(json!([{"name": "web", "image": "web:1"}]));
        let live =
            containers(json!([{"name": "proxy", "image": "proxy:1"}, {"name": "web2", "image": "web:1"}]));
        let item = json!({".": {}, "f:image": {}, "f:name": {}});
        let theirs = json!({"f:spec": {"f:containers": {r#"k:{"name":"proxy"}"#: item, r#"k:{"name":"web2"}"#: item}}});
        let refusal = "Pod \"a\" is invalid: spec.containers[0].image: Forbidden: x";
        let mut live = live;
        live["metadata"] = json!({"managedFields": [entry("tutti-main", "Apply", &json!({})), entry("x", "Update", &theirs)]});
        let found = displaced(&ours, &live, "tutti-main", refusal).expect("something");
        let left = &found.entries[0]["fieldsV1"]["f:spec"]["f:containers"];
        assert!(left.get(r#"k:{"name":"proxy"}"#).is_some() && left.get(r#"k:{"name":"web2"}"#).is_none());
    }

    #[test]
    fn other_variant_of_a_choice_is_taken() {
        let probe = |probe: Value| json!({"spec": {"livenessProbe": probe}});
        let ours = probe(json!({"httpGet": {"port": 80}, "periodSeconds": 5}));
        let live = probe(json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 1}));
        let theirs = json!({"f:spec": {"f:livenessProbe": {"f:tcpSocket": {".": {}, "f:port": {}}}}});
        let refusal = "Pod \"a\" is invalid: spec.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type";
        check(&ours, &live, &theirs, refusal, &["spec.livenessProbe.tcpSocket"]);
        // A field that somebody added elsewhere stays, also where one of ours is gone beside it.
        let pods = |spec: Value| json!({"spec": spec});
        let ours = pods(json!({"hostname": "a", "livenessProbe": {"httpGet": {"port": 80}}}));
        let live = pods(json!({"priorityClassName": "high", "livenessProbe": {"httpGet": {"port": 80}}}));
        check(&ours, &live, &json!({"f:spec": {"f:priorityClassName": {}}}), refusal, &[]);
        let strategy = |strategy: Value| json!({"spec": {"strategy": strategy}});
        let ours = strategy(json!({"type": "Recreate"}));
        let live = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
        let theirs =
            json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}}}});
        let refusal = "Deployment \"a\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy";
        check(&ours, &live, &theirs, refusal, &["spec.strategy.rollingUpdate"]);
    }
}
