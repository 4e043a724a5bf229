//! Mutating webhooks that change objects on every write.

use serde_json::{Value, json};

use crate::object;
use crate::registry::ResourceKind;

/// A change of every object of a resource that is created or updated, by whomever.
#[derive(Debug, Clone, PartialEq)]
pub struct MutatingWebhook {
    /// `pods`, `deployments.apps`.
    pub resource: String,
    pub mutation: WebhookMutation,
}

/// The change of a webhook, which is idempotent.
#[derive(Debug, Clone, PartialEq)]
pub enum WebhookMutation {
    Annotation {
        key: String,
        value: String,
    },
    Label {
        key: String,
        value: String,
    },
    /// One more container, for pods.
    Sidecar {
        name: String,
        image: String,
    },
    /// Sets a field to this value: `["spec", "replicas"]`.
    Set {
        path: Vec<String>,
        value: Value,
    },
}

/// Lets the webhooks change an object; true when one did.
pub(crate) fn apply_webhooks(webhooks: &[MutatingWebhook], kind: &ResourceKind, new: &mut Value) -> bool {
    let mut changed = false;
    for webhook in webhooks.iter().filter(|webhook| kind.has_resource_name(&webhook.resource)) {
        changed |= webhook.mutation.change(new);
    }
    changed
}

impl WebhookMutation {
    fn change(&self, new: &mut Value) -> bool {
        match self {
            Self::Annotation { key, value } => {
                set_field(new, &["metadata", "annotations", key], json!(value))
            }
            Self::Label { key, value } => set_field(new, &["metadata", "labels", key], json!(value)),
            Self::Set { path, value } => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                set_field(new, &path, value.clone())
            }
            Self::Sidecar { name, image } => {
                let place = object::value_mut(new, &["spec", "containers"]);
                match place.as_array_mut() {
                    Some(containers) if containers.iter().all(|one| one["name"] != name.as_str()) => {
                        containers.push(json!({"name": name, "image": image}));
                        true
                    }
                    _ => false,
                }
            }
        }
    }
}

fn set_field(new: &mut Value, path: &[&str], value: Value) -> bool {
    if object::value_at(new, path) == Some(&value) {
        return false;
    }
    object::set(new, path, value);
    true
}
