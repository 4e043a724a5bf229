//! Finds the plural names of kinds without asking a cluster.

use std::collections::BTreeMap;

use crate::model::RenderedTarget;

/// A built-in group, whose plurals are certain.
pub(super) fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// The plurals in rendered definitions, by group and kind.
pub(super) fn plurals_of_definitions<'a>(
    renders: impl Iterator<Item = &'a RenderedTarget>,
) -> BTreeMap<(String, String), String> {
    let objects = renders.flat_map(|rendered| rendered.objects.iter());
    let said = objects.filter_map(|object| {
        let (group, kind) = object.defines()?;
        let plural = object.body.field("/spec/names/plural")?;
        Some(((group.to_owned(), kind.to_owned()), plural.as_str()?.to_owned()))
    });
    said.collect()
}
