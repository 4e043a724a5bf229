//! ControllerRevisions: the templates of StatefulSets and DaemonSets, each under the hash that its
//! pods carry.

use serde_json::{Value, json};

use super::context::Context;
use crate::object;
use crate::seed::short_hash;
use crate::store::{Key, ObjectName};

/// The label of a pod that names its template.
pub(super) const LABEL: &str = "controller-revision-hash";

/// The name of the present template's revision; written when it is new.
pub(super) fn of(context: &mut Context<'_>, owner: &Value, kind: &str) -> String {
    let template = &owner["spec"]["template"];
    let hash = short_hash(&template.to_string());
    let name = format!("{}-{hash}", object::name(owner));
    let namespace = object::namespace(owner).to_owned();
    if context.state.store.at(&key(&namespace, &name)).is_none() {
        let number = context.owned(owner, "controllerrevisions.apps").len() + 1;
        let labels = object::at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
        let revision = json!({
            "metadata": {"name": name, "labels": labels,
                "ownerReferences": [object::controller_reference(owner, "apps/v1", kind)]},
            "data": {"spec": {"template": template}},
            "revision": number,
        });
        context.create("controllerrevisions.apps", &namespace, revision);
    }
    name
}

/// The template of a revision.
pub(super) fn template(context: &Context<'_>, namespace: &str, name: &str) -> Option<Value> {
    let revision = context.state.store.at(&key(namespace, name))?;
    object::at(revision, &["data", "spec", "template"]).cloned()
}

fn key(namespace: &str, name: &str) -> Key {
    Key { resource: "controllerrevisions.apps".to_owned(), name: ObjectName::new(namespace, name) }
}
