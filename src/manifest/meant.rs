//! What a document that cannot be read may have been. A slip of the finger in what others depend on must not count as if it were not
//! there: an instance that only observes would begin to write, and apps would run in no ring, or without the limits of their project.

use super::read::nearest;
use super::yaml::Node;
use super::{OWN_VERSION, find, kinds};

/// Who must wait until it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meant {
    /// Every app: it may be the instance, or the rings.
    Fleet,
    /// Apps whose namespace has no project: it may be theirs.
    Project,
    /// Nobody but the file itself.
    File,
}

/// Of a text that hides a document; of a text that is none at all, what can be found in it.
pub fn by_text(path: &str, text: &str) -> Meant {
    kinds_in(text).map(by_kind).fold(by_path(path), Meant::min)
}

/// Of a document of which it is not known what it is.
pub fn by_root(path: &str, root: &Node) -> Meant {
    let text = |key| root.get(key).and_then(Node::as_str);
    let is_own =
        text("apiVersion").is_some_and(|version| kinds::group_of(version) == kinds::group_of(OWN_VERSION));
    let meant = match text("kind") {
        Some(kind) if is_own && nearest(kind, &kinds::names()).is_none() => Meant::Fleet,
        Some(kind) => by_kind(kind),
        None if is_own => Meant::Fleet,
        None => Meant::File,
    };
    meant.min(by_path(path))
}

/// Where these usually stand.
pub fn by_path(path: &str) -> Meant {
    if find::is_of_fleet(path) {
        Meant::Fleet
    } else if path.starts_with("projects/") {
        Meant::Project
    } else {
        Meant::File
    }
}

fn by_kind(kind: &str) -> Meant {
    match nearest(kind, &kinds::names()) {
        Some("Instance" | "Rings") => Meant::Fleet,
        Some("Project") => Meant::Project,
        _ => Meant::File,
    }
}

/// `kind: Rings`, `"kind": "Rings"`
fn kinds_in(text: &str) -> impl Iterator<Item = &str> {
    let quotes = ['"', '\''];
    text.split("kind").skip(1).filter_map(move |rest| {
        let rest = rest.trim_start_matches(quotes).trim_start_matches(' ').strip_prefix(':')?;
        let rest = rest.trim_start_matches([' ', '"', '\'']);
        rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().filter(|kind| !kind.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_for_what_more_depends_on() {
        for (path, text, expected) in [
            ("x.yaml", "kind: Rings\nspec: [", Meant::Fleet),
            ("x.yaml", "{apiVersion: tutti.dev/v1alpha1, \"kind\": \"Instanc\", ", Meant::Fleet),
            ("x.yaml", "<<<<<<< HEAD\nkind: Component\n---\nkind: Projet\n", Meant::Project),
            ("x.yaml", "kind: Project\n---\nkind : 'Ring'\n", Meant::Fleet),
            (
                "x.yaml",
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {kind: Role",
                Meant::File,
            ),
            ("x.yaml", "kind: Ingress\nspec: [", Meant::File),
            ("apps/web/app.yaml", "kind:\n\t", Meant::File),
            ("tutti.yaml", "kind: Component\n\t", Meant::Fleet),
            ("rings.yml", "", Meant::Fleet),
            ("projects/shop.yaml", "a: [", Meant::Project),
            ("apps/projects/rings.yaml", "a: [", Meant::File),
        ] {
            assert_eq!(by_text(path, text), expected, "{path}: {text}");
        }
    }
}
