//! What a document that cannot be read may have been. A slip of the finger in what others depend on must not count as if it were not
//! there: an instance that only observes would begin to write, and apps would run in no ring, or without the limits of their project.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{self, Native};
use super::read::{nearest, with_a_slip};
use super::yaml::Node;
use super::{Manifests, OWN_VERSION};
use crate::model::{Diagnostic, Location, Scope};

/// Others run as these say.
const DEPENDED_ON: [Native; 3] = [Native::Instance, Native::Rings, Native::Project];

/// Where the first place of each is that cannot be read and may be it.
pub type Lost = BTreeMap<Native, Location>;

impl Manifests {
    /// What these mistakes hide is not known. What it may be is asked only where there are any.
    pub(super) fn lose(&mut self, mistakes: Vec<Diagnostic>, meant: impl FnOnce() -> BTreeSet<Native>) {
        if let Some(place) = first_error(&mistakes) {
            meant().into_iter().for_each(|native| lose(&mut self.lost, native, place));
        }
        self.diagnostics.extend(mistakes);
    }

    /// Of a whole file, read: one that has a mistake, and not what is usually there, may have been just that.
    pub(super) fn lose_what_is_usual(&mut self, path: &str) {
        let Some(usual) = by_path(path).filter(|native| !self.holds(*native)) else { return };
        if let Some(place) = first_error(&self.diagnostics) {
            lose(&mut self.lost, usual, place);
        }
    }

    pub(super) fn lose_with(&mut self, other: &Self) {
        other.lost.iter().for_each(|(native, place)| lose(&mut self.lost, *native, place));
    }

    /// Nobody runs while what cannot be read may be the instance or the rings, unless those were read. A lost project holds back its apps
    /// alone, which the fleet knows.
    pub(super) fn wait_for_the_lost(&mut self) {
        for native in [Native::Instance, Native::Rings] {
            if self.holds(native) {
                continue;
            }
            let Some(place) = self.lost.get(&native) else { continue };
            let there = |it: &&mut Diagnostic| it.is_error() && it.location.as_ref() == Some(place);
            self.diagnostics.iter_mut().filter(there).for_each(|it| it.scope = Scope::Instance);
        }
    }

    /// Of those that others depend on.
    pub fn holds(&self, native: Native) -> bool {
        match native {
            Native::Instance => self.instance.is_some(),
            Native::Rings => self.rings.is_some(),
            Native::Project => {
                !self.unread_projects.is_empty() || self.apps.iter().any(|app| app.id.is_project())
            }
            Native::Cluster
            | Native::AppSet
            | Native::Component
            | Native::Objects
            | Native::Route
            | Native::Approval => false,
        }
    }
}

/// Whether a kind is named as one of these, whatever its version.
pub fn is_depended_on(kind: &str) -> bool {
    DEPENDED_ON.iter().any(|native| native.name().eq_ignore_ascii_case(kind))
}

fn lose(lost: &mut Lost, native: Native, place: &Location) {
    let first = lost.entry(native).or_insert_with(|| place.clone());
    if place < first {
        first.clone_from(place);
    }
}

fn first_error(mistakes: &[Diagnostic]) -> Option<&Location> {
    mistakes.iter().filter(|it| it.is_error()).filter_map(|it| it.location.as_ref()).min()
}

/// Of a text that hides a document; of a text that is none at all, what can be found in it.
pub fn by_text(text: &str) -> BTreeSet<Native> {
    // UTF-16, which is read as if it were UTF-8, has one behind each letter.
    let text = text.replace('\0', "");
    let kinds: BTreeSet<&str> = kinds_in(&text).collect();
    kinds.into_iter().filter_map(by_kind).collect()
}

/// Of a document of which it is not known what it is.
pub fn by_root(root: &Node) -> BTreeSet<Native> {
    let text = |key| root.get(key).and_then(Node::as_str);
    let is_own =
        text("apiVersion").is_some_and(|version| kinds::group_of(version) == kinds::group_of(OWN_VERSION));
    match text("kind") {
        Some(kind) if !is_own => by_kind(kind).into_iter().collect(),
        None if !is_own => BTreeSet::new(),
        kind => match kind.and_then(|kind| nearest(kind, &kinds::names())) {
            Some(kind) => by_kind(kind).into_iter().collect(),
            None => DEPENDED_ON.into_iter().collect(),
        },
    }
}

/// What usually stands there.
pub fn by_path(path: &str) -> Option<Native> {
    match path {
        "tutti.yaml" | "tutti.yml" => Some(Native::Instance),
        "rings.yaml" | "rings.yml" => Some(Native::Rings),
        _ => path.starts_with("projects/").then_some(Native::Project),
    }
}

/// Of a kind with a slip of the finger, or none.
fn by_kind(kind: &str) -> Option<Native> {
    let names = DEPENDED_ON.map(Native::name);
    let name = with_a_slip(kind, &names)?;
    DEPENDED_ON.into_iter().find(|native| native.name() == name)
}

/// `kind: Rings`, `"kind": "Rings"`, `kind: !!str Rings`
fn kinds_in(text: &str) -> impl Iterator<Item = &str> {
    text.split("kind").skip(1).filter_map(|rest| {
        let mut rest = rest.trim_start_matches(is_around).strip_prefix(':')?.trim_start_matches(is_around);
        // Tags, anchors, and comments.
        while rest.starts_with(['!', '&', '#']) {
            let end = if rest.starts_with('#') { rest.find('\n') } else { rest.find(char::is_whitespace) };
            rest = rest[end?..].trim_start_matches(is_around);
        }
        rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().filter(|kind| !kind.is_empty())
    })
}

fn is_around(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_for_all_that_it_may_be() {
        use Native::{Instance, Project, Rings};
        for (text, expected) in [
            ("kind: Rings\nspec: [", &[Rings][..]),
            ("{apiVersion: tutti.dev/v1alpha1, \"kind\": \"Instanc\", ", &[Instance]),
            ("<<<<<<< HEAD\nkind: Component\n---\nkind: Projet\n", &[Project]),
            ("kind: Project\n---\nkind : 'Ring'\n", &[Rings, Project]),
            ("kind:\tInstance\n>>>>>>>", &[Instance]),
            ("kind: !!str Instance\n>>>>>>>", &[Instance]),
            ("kind: &k # of all\n  Instance\n>>>>>>>", &[Instance]),
            ("? kind\n: Instance\n>>>>>>>", &[Instance]),
            ("k\0i\0n\0d\0:\0 \0R\0i\0n\0g\0s\0", &[Rings]),
            ("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {kind: Role", &[]),
            ("kind: Ingress\nspec: [", &[]),
            ("kind: AppProject\nspec: [", &[]),
            ("kind:\n\t", &[]),
            ("kind: !!str", &[]),
            ("a: [", &[]),
        ] {
            assert_eq!(by_text(text), expected.iter().copied().collect(), "{text}");
        }
    }

    #[test]
    fn usual_places() {
        assert_eq!(by_path("tutti.yaml"), Some(Native::Instance));
        assert_eq!(by_path("rings.yml"), Some(Native::Rings));
        assert_eq!(by_path("projects/shop.yaml"), Some(Native::Project));
        assert_eq!(by_path("apps/projects/rings.yaml"), None);
    }
}
