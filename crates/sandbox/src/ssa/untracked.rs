//! Fields that the server sets and nobody owns.

use super::fieldset::FieldSet;
use super::path::PathElement;

const AT_ROOT: &[&str] = &["apiVersion", "kind"];
const IN_METADATA: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
const METADATA: &str = "metadata";

/// Is the field `name` inside `path` untracked?
pub(super) fn is(path: &[PathElement], name: &str) -> bool {
    match path {
        [] => AT_ROOT.contains(&name),
        [PathElement::Field(parent)] if parent == METADATA => IN_METADATA.contains(&name),
        _ => false,
    }
}

/// A set without them; metadata itself is not owned either.
pub(super) fn drop_from(mut fields: FieldSet) -> FieldSet {
    for name in AT_ROOT.iter().chain([&METADATA]) {
        fields.members.remove(&PathElement::Field((*name).to_owned()));
    }
    if let Some(metadata) = fields.children.get_mut(&PathElement::Field(METADATA.to_owned())) {
        for name in IN_METADATA {
            let element = PathElement::Field((*name).to_owned());
            metadata.members.remove(&element);
            metadata.children.remove(&element);
        }
    }
    fields
}
