//! Single rights of the printed roles, and the roles without one of them.

use serde_json::{Value, json};

/// One verb on one resource in one role, limited to a name if the role does so.
#[derive(Debug)]
pub struct RemovedRight {
    document: usize,
    namespace: Option<String>,
    group: String,
    pub resource: String,
    name: Option<String>,
    pub verb: String,
}

fn string_list(rule: &Value, key: &str) -> Vec<String> {
    let items = rule[key].as_array().into_iter().flatten();
    items.map(|item| item.as_str().expect("a text").to_owned()).collect()
}

/// All rights of some roles.
pub fn all_rights(documents: &[Value]) -> Vec<RemovedRight> {
    let mut found = Vec::new();
    for (document, role) in documents.iter().enumerate() {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = string_list(rule, "resourceNames");
            let names: Vec<_> =
                if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
            for resource in string_list(rule, "resources") {
                for (name, verb) in names
                    .iter()
                    .flat_map(|name| string_list(rule, "verbs").into_iter().map(move |verb| (name, verb)))
                {
                    found.push(RemovedRight {
                        document,
                        namespace: role["metadata"]["namespace"].as_str().map(str::to_owned),
                        group: string_list(rule, "apiGroups").join(","),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb,
                    });
                }
            }
        }
    }
    found
}

impl RemovedRight {
    /// The right as doctor names it. A right on all namespaces, because tutti creates the namespace itself, is needed in `own` only.
    pub fn doctor_name(&self, own: Option<&str>) -> String {
        let mut text = format!("{} {}", self.verb, self.resource);
        for (sign, part) in [
            (".", Some(self.group.as_str()).filter(|group| !group.is_empty())),
            (" ", self.name.as_deref()),
            (" in namespace ", self.namespace.as_deref().or(own)),
        ] {
            if let Some(part) = part {
                text += &format!("{sign}{part}");
            }
        }
        text
    }

    /// The roles without this right.
    pub fn remove_from(&self, documents: &[Value]) -> Vec<Value> {
        let mut documents = documents.to_vec();
        let rules = documents[self.document]["rules"].as_array_mut().expect("rules");
        let mut taken = 0;
        let mut split = Vec::new();
        for rule in std::mem::take(rules) {
            let is_it = string_list(&rule, "apiGroups") == [self.group.as_str()]
                && string_list(&rule, "resources").contains(&self.resource)
                && string_list(&rule, "verbs").contains(&self.verb)
                && self.name.as_ref().is_none_or(|name| string_list(&rule, "resourceNames").contains(name));
            if !is_it {
                split.push(rule);
                continue;
            }
            taken += 1;
            // The rest: other resources, other verbs, other names.
            let ways = [
                ("resources", Some(&self.resource)),
                ("verbs", Some(&self.verb)),
                ("resourceNames", self.name.as_ref()),
            ];
            for (key, value) in ways.into_iter().filter_map(|(key, value)| Some((key, value?))) {
                let left: Vec<String> =
                    string_list(&rule, key).into_iter().filter(|it| it != value).collect();
                if !left.is_empty() {
                    let mut others = rule.clone();
                    others[key] = json!(left);
                    split.push(others);
                }
            }
        }
        *rules = split;
        assert_eq!(taken, 1, "{self:?}");
        documents
    }
}

/// The roles without the rights of discovery.
pub fn without_discovery(documents: &[Value]) -> Vec<Value> {
    let mut documents = documents.to_vec();
    let mut taken = 0;
    for rules in documents.iter_mut().filter_map(|it| it.get_mut("rules")?.as_array_mut()) {
        let before = rules.len();
        rules.retain(|rule| rule.get("nonResourceURLs").is_none());
        taken += before - rules.len();
    }
    assert_eq!(taken, 1);
    documents
}
