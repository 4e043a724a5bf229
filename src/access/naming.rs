//! The plural of a kind, where no cluster is asked for it.

use std::collections::BTreeMap;

use crate::model::Rendered;

/// The plural as Kubernetes makes it. Right for every built-in kind; a definition may have named any other.
pub fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if matches!(&*word, "endpoints") {
        return word;
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        format!("{word}es")
    } else if let Some(stem) = word.strip_suffix('y')
        && !ends(&["ay", "ey", "oy", "uy"])
    {
        format!("{stem}ies")
    } else {
        format!("{word}s")
    }
}

/// A group of Kubernetes itself: its plurals are no guesses.
pub(super) fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// The plurals that the definitions among some renders say, by group and kind.
pub(super) fn defined<'a>(renders: impl Iterator<Item = &'a Rendered>) -> BTreeMap<(String, String), String> {
    let objects = renders.flat_map(|rendered| rendered.objects.iter());
    let said = objects.filter_map(|object| {
        let (group, kind) = object.defines()?;
        let plural = object.body.field("/spec/names/plural")?;
        Some(((group.to_owned(), kind.to_owned()), plural.as_str()?.to_owned()))
    });
    said.collect()
}
