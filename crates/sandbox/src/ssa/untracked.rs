//! Fields that the server sets, which no manager owns.

use std::sync::LazyLock;

use super::fieldset::FieldSet;
use super::path::PathElement;

const PATHS: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

static FIELDS: LazyLock<FieldSet<'static>> = LazyLock::new(fields);

/// The fields that no entry has.
pub(crate) fn untracked() -> &'static FieldSet<'static> {
    &FIELDS
}

fn fields() -> FieldSet<'static> {
    let mut set = FieldSet::default();
    for path in PATHS {
        let path: Vec<PathElement<'_>> = path.iter().map(|name| PathElement::Field(name)).collect();
        set.insert(&path);
    }
    set
}
