//! Names of branches: their place among the references, and those that an error shows.

pub(super) const BRANCHES: &str = "refs/heads/";

/// Branches that are compared with a missing one, and the bytes of their names.
pub(super) const MOST_NAMES: usize = 1_000;
const LONGEST_NAME: usize = 250;

/// Names ordered by similarity to the wanted one. Bounded, because a remote may have half a million references.
pub(super) fn nearest_names(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names = displayable_names(names);
    let likeness = |name: &String| {
        let ratio = similar::TextDiff::from_chars(wanted, name.as_str()).ratio();
        std::cmp::Reverse((ratio * 1000.0) as u32)
    };
    names.sort_by_cached_key(|name| (likeness(name), name.clone()));
    names
}

/// The names that an error may show, without invalid branch names.
pub(super) fn displayable_names(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_name = |name: &String| {
        name.len() <= LONGEST_NAME && git2::Reference::is_valid_name(&format!("{BRANCHES}{name}"))
    };
    names.filter(is_name).take(MOST_NAMES).collect()
}
