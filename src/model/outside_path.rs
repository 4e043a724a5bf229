//! Paths of files outside the configured folder, relative to it: `../deploy/web.yaml`.

/// Normalizes a path or pattern relative to `folder`, with as few `../` as possible. `folder` is from the root of the repository, empty
/// for the root. `None`: the path leaves the repository.
pub fn normalize(folder: &str, path: &str) -> Option<String> {
    let own = path_components(folder);
    let (up, mut rest) = split_parents(path);
    let mut shared = own.len().checked_sub(up)?;
    // Down again into the folders that it has left.
    while let Some((_, further)) = rest.split_once('/').filter(|(name, _)| own.get(shared) == Some(name)) {
        (rest, shared) = (further, shared + 1);
    }
    Some(format!("{}{rest}", "../".repeat(own.len() - shared)))
}

/// The path of a file of the repository, from `folder`.
pub fn from_folder(folder: &str, path: &str) -> String {
    let up = "../".repeat(path_components(folder).len());
    normalize(folder, &format!("{up}{path}")).unwrap_or_else(|| path.to_owned())
}

/// The other way round: the path from the root of the repository. `None`: it leaves the repository.
pub fn from_root(folder: &str, path: &str) -> Option<String> {
    let mut own = path_components(folder);
    let (up, rest) = split_parents(path);
    own.truncate(own.len().checked_sub(up)?);
    own.push(rest);
    Some(own.join("/"))
}

/// The number of leading `../`, and the rest of the path. A pattern matches only paths with the same number.
pub fn split_parents(path: &str) -> (usize, &str) {
    let (mut up, mut rest) = (0, path);
    while let Some(further) = rest.strip_prefix("../") {
        (up, rest) = (up + 1, further);
    }
    (up, rest)
}

/// The literal prefix of a pattern; the whole text when it has no wildcard.
pub fn literal_prefix(pattern: &str) -> &str {
    pattern.find(['*', '?', '[', '{', '\\']).map_or(pattern, |wildcard| &pattern[..wildcard])
}

/// Whether a file is outside the configured folder.
pub fn is_outside(path: &str) -> bool {
    path.starts_with("../")
}

fn path_components(folder: &str) -> Vec<&str> {
    folder.split('/').filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_paths_are_normalized() {
        let check = |folder: &str, path: &str, expected: Option<&str>, root: Option<&str>| {
            assert_eq!(normalize(folder, path).as_deref(), expected, "{folder}: {path}");
            assert_eq!(from_root(folder, path).as_deref(), root, "{folder}: {path}");
            if let (Some(key), Some(root)) = (expected, root) {
                assert_eq!(from_folder(folder, root), key, "{folder}: {root}");
                assert_eq!(from_root(folder, key).as_deref(), Some(root), "{folder}: {key}");
            }
        };
        check("", "apps/a.yaml", Some("apps/a.yaml"), Some("apps/a.yaml"));
        check("", "../a.yaml", None, None);
        check("config", "apps/a.yaml", Some("apps/a.yaml"), Some("config/apps/a.yaml"));
        check("config", "../a.yaml", Some("../a.yaml"), Some("a.yaml"));
        check("config", "../../a.yaml", None, None);
        check("config", "../config/a.yaml", Some("a.yaml"), Some("config/a.yaml"));
        check("config", "../config.yaml", Some("../config.yaml"), Some("config.yaml"));
        check("a/b", "../c/x.yaml", Some("../c/x.yaml"), Some("a/c/x.yaml"));
        check("a/b", "../../a/c/x.yaml", Some("../c/x.yaml"), Some("a/c/x.yaml"));
        check("a/b", "../../a/b/x.yaml", Some("x.yaml"), Some("a/b/x.yaml"));
        check("a/b", "../../*/x.yaml", Some("../../*/x.yaml"), Some("*/x.yaml"));
        check("a/b", "../../../x.yaml", None, None);
    }
}
