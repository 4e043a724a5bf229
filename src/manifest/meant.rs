//! What a document that cannot be read may have been. A slip of the finger in what others depend on must not count as if it were not
//! there: an instance that only observes would begin to write, and apps would run in no ring, or without the limits of their project.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kinds::{self, Native};
use super::read::{nearest, with_a_slip};
use super::yaml::{Document, Node};
use super::{Ignored, Manifests, OWN_VERSION, codes};
use crate::model::{Diagnostic, Location, Policy, Scope, Snapshot, beside};

/// Others run as these say.
const DEPENDED_ON: [Native; 3] = [Native::Instance, Native::Rings, Native::Project];

/// Where the place of each is that cannot be read and may be it: the usual one, else the first.
pub type Lost = BTreeMap<Native, Location>;

impl Manifests {
    /// What is hidden there is not known, and may be each of these. Whoever may write below `apps/` holds up nobody outside of the
    /// own folder by it.
    pub(super) fn lose(&mut self, place: &Location, meant: impl IntoIterator<Item = Native>) {
        for native in meant {
            if native != Native::Instance && is_below_apps(&place.file) {
                let folder = place.file.rsplit_once('/').map(|(folder, _)| folder);
                // A link stands for a folder, and a file for itself.
                let own = folder.filter(|folder| *folder != "apps").unwrap_or(&place.file);
                if native == Native::Project {
                    self.lost_below_apps.entry(format!("{own}/")).or_insert_with(|| place.clone());
                }
                continue;
            }
            let known = self.lost.entry(native).or_insert_with(|| place.clone());
            let rank = |place: &Location| by_path(&place.file) != Some(native);
            if (rank(place), place) < (rank(known), known) {
                known.clone_from(place);
            }
        }
    }

    /// What stands below `policies/` and cannot be read may be a policy. One that denies everything stands for it.
    pub(super) fn lose_policy(&mut self, place: &Location) {
        if place.file.starts_with(kinds::policy::FOLDER) {
            self.policies.push(Arc::new(Policy::unreadable(&place.file, place.clone())));
        }
    }

    /// Where something that cannot be read may be the project of an app, by the file of the app.
    pub fn lost_project(&self, file: &str) -> Option<&Location> {
        let mut folders = file.match_indices('/').map(|(slash, _)| &file[..=slash]);
        let in_file = || self.lost_below_apps.get(&format!("{file}/"));
        let of_folder = || folders.find_map(|folder| self.lost_below_apps.get(folder));
        self.lost.get(&Native::Project).or_else(of_folder).or_else(in_file)
    }

    /// Links stand for files and folders of which nothing is known.
    pub(super) fn add_links(&mut self, snapshot: &Snapshot, ignored: &Ignored) {
        let links = snapshot.files.iter().filter(|(path, file)| file.is_link() && !ignored.fits(path));
        for path in links.map(|(path, _)| path) {
            let place = Location::new(path, 1, 1);
            let is_file = path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".j2");
            let shared = ["templates", "health", "plugins"];
            let is_shared = shared.contains(&path.split('/').next().unwrap_or_default());
            // Nobody could tell what the apps lose with a whole folder of these.
            let scope = if is_shared && !is_file { Scope::Instance } else { Scope::File(path.clone()) };
            let message = format!("{path} {}", snapshot.why_unreadable(path));
            let error = Diagnostic::error(codes::UNREADABLE, message, scope).at(place.clone());
            self.diagnostics.push(error.help("put what it names in its place"));
            let folder = kinds::policy::FOLDER;
            if path.starts_with(folder) || path == folder.trim_end_matches('/') {
                self.policies.push(Arc::new(Policy::unreadable(path, place.clone())));
            }
            if !is_shared && !path.starts_with("charts/") && !beside::is_beside(path) {
                self.lose(&place, DEPENDED_ON);
            }
        }
    }

    /// Of a whole file, read: one that has a mistake, and not what is usually there, may have been just that.
    pub(super) fn lose_what_is_usual(&mut self, path: &str) {
        let usual = by_path(path).filter(|native| !self.holds(*native));
        if let (Some(usual), Some(place)) = (usual, first_error(&self.diagnostics)) {
            self.lose(&place, [usual]);
        }
    }

    /// Nobody runs while what cannot be read may be the instance or the rings, unless those were read. A lost project holds back its apps
    /// alone, which the fleet knows.
    pub(super) fn wait_for_the_lost(&mut self) {
        for native in DEPENDED_ON {
            let Some(place) = self.lost.get(&native).filter(|_| self.stops_everybody(native)) else {
                continue;
            };
            let there = |it: &&mut Diagnostic| it.is_error() && it.location.as_ref() == Some(place);
            self.diagnostics.iter_mut().filter(there).for_each(|it| it.scope = Scope::Instance);
        }
    }

    /// Whether nobody may run while this may be what cannot be read.
    pub fn stops_everybody(&self, native: Native) -> bool {
        // One that stands elsewhere does not take the place of the usual one.
        let is_usual = |place: &Location| by_path(&place.file) == Some(native);
        let is_lost = || self.lost.get(&native).is_some_and(is_usual);
        match native {
            Native::Instance => {
                let place = self.instance.as_ref().and_then(|instance| instance.location.as_ref());
                self.instance.is_none() || is_lost() && !place.is_some_and(is_usual)
            }
            Native::Rings => {
                let place = self.rings.as_ref().map(|rings| &rings.location);
                place.is_none_or(|place| is_lost() && !is_usual(place))
            }
            _ => false,
        }
    }

    /// Whether any of it is here, of those that others depend on.
    fn holds(&self, native: Native) -> bool {
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
            | Native::Approval
            | Native::Trigger
            | Native::Notification
            | Native::Server
            | Native::Policy
            | Native::Window
            | Native::Analysis
            | Native::ApprovalRule
            | Native::Approvers => false,
        }
    }
}

/// Where app teams write.
pub fn is_below_apps(file: &str) -> bool {
    file.starts_with("apps/")
}

/// Whether a kind is named as one of these, whatever its version.
pub fn is_depended_on(kind: &str) -> bool {
    DEPENDED_ON.iter().any(|native| native.name().eq_ignore_ascii_case(kind))
}

/// Whether a version has no group, or one that is called a little like ours.
pub fn may_be_own(api_version: &str) -> bool {
    !api_version.contains('/') || sounds_own(api_version)
}

/// `tutti.io`, `tuti.dev`
fn sounds_own(api_version: &str) -> bool {
    let (group, own) = (kinds::group_of(api_version), kinds::group_of(OWN_VERSION));
    let name = |group| str::split(group, '.').next().unwrap_or_default();
    [(group, own), (name(group), name(own))].iter().any(|(one, other)| with_a_slip(one, &[*other]).is_some())
}

pub fn first_error<'d>(mistakes: impl IntoIterator<Item = &'d Diagnostic>) -> Option<Location> {
    let errors = mistakes.into_iter().filter(|it| it.is_error());
    errors.filter_map(|it| it.location.as_ref()).min().cloned()
}

/// What a text hides beside the documents that could be read of it: what can be found in it.
pub fn by_text(text: &str, readable: &[Document]) -> BTreeSet<Native> {
    // UTF-16, which is read as if it were UTF-8, has one at each letter.
    let text = text.replace('\0', "");
    let mut versions = values_in(&text, "apiVersion").peekable();
    if versions.peek().is_some() && !versions.any(sounds_own) {
        return BTreeSet::new();
    }
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    values_in(&text, "kind").for_each(|kind| *times.entry(kind).or_default() += 1);
    for kind in readable.iter().filter_map(|document| document.root.get("kind")?.as_str()) {
        if let Some(times) = times.get_mut(kind) {
            *times = times.saturating_sub(1);
        }
    }
    times.into_iter().filter(|(_, times)| *times > 0).filter_map(|(kind, _)| by_kind(kind)).collect()
}

/// Of a document of which it is not known what it is.
pub fn by_root(root: &Node) -> BTreeSet<Native> {
    if let Some(items) = root.as_seq() {
        return items.iter().flat_map(by_root).collect();
    }
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

/// Whether a document of which it is not known what it is may be a policy: it is not nearly of another kind of ours.
pub fn may_be_policy(root: &Node) -> bool {
    let kind = root.get("kind").and_then(Node::as_str);
    let meant = kind.and_then(|kind| with_a_slip(kind, &kinds::names()));
    meant.is_none_or(|meant| meant == Native::Policy.name())
}

/// Whether a text that is not YAML may hold a policy, or the params of one: it does not name other kinds alone.
pub fn may_hold_policy(text: &str) -> bool {
    const OTHERS: [Native; 4] = [Native::Window, Native::Analysis, Native::ApprovalRule, Native::Approvers];
    text.contains(Native::Policy.name()) || !OTHERS.iter().any(|other| text.contains(other.name()))
}

/// What usually stands there.
pub fn by_path(path: &str) -> Option<Native> {
    match path {
        "tutti.yaml" | "tutti.yml" => Some(Native::Instance),
        "rings.yaml" | "rings.yml" => Some(Native::Rings),
        _ => {
            let file = path.strip_prefix("projects/")?;
            (!file.contains('/')).then_some(Native::Project)
        }
    }
}

/// Of a kind with a slip of the finger, or none.
fn by_kind(kind: &str) -> Option<Native> {
    let names = DEPENDED_ON.map(Native::name);
    let name = with_a_slip(kind, &names)?;
    DEPENDED_ON.into_iter().find(|native| native.name() == name)
}

/// `kind: Rings`, `"kind": "Rings"`, `kind: !!str Rings`, and what is nearly that: `kind Rings`, `kind: [Rings`.
fn values_in<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(key).skip(1).filter_map(|rest| {
        let mut rest = rest.trim_start_matches(is_around);
        // Tags, anchors, and comments.
        while rest.starts_with(['!', '&', '#']) {
            let end = if rest.starts_with('#') { rest.find('\n') } else { rest.find(char::is_whitespace) };
            rest = rest[end?..].trim_start_matches(is_around);
        }
        let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '/' | '-');
        rest.split(|letter| !is_of_it(letter)).next().filter(|value| !value.is_empty())
    })
}

fn is_around(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | ':' | '[' | '{' | '-' | '>' | '|')
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
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
            ("kind Instance\nspec: {}\n", &[Instance]),
            ("kind: [Instance\nspec: {}\n", &[Instance]),
            ("kind: >-\n  Instance\n>>>>>>>", &[Instance]),
            ("apiVersion: tutty.dev/v1alpha1\nkind: Instance\n>>>>>>>", &[Instance]),
            ("apiVersion: ec2.aws.upbound.io/v1beta1\nkind: Instance\nspec: [", &[]),
            ("apiVersion: v1\nkind: List\nitems: [{kind: Project", &[]),
            ("? kind\n: Instance\n>>>>>>>", &[Instance]),
            ("k\0i\0n\0d\0:\0 \0R\0i\0n\0g\0s\0", &[Rings]),
            ("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {kind: Role", &[]),
            ("kind: Ingress\nspec: [", &[]),
            ("kind: AppProject\nspec: [", &[]),
            ("kind:\n\t", &[]),
            ("kind: !!str", &[]),
            ("a: [", &[]),
        ] {
            assert_eq!(by_text(text, &[]), expected.iter().copied().collect(), "{text}");
        }
    }

    #[test]
    fn what_was_read_is_not_hidden() {
        let text = "kind: Instance\n---\nkind: Project\n---\nkind: Rings\n---\nkind: Project\nspec: [\n";
        let stream = yaml::read("x.yaml", text);
        assert_eq!((stream.documents.len(), stream.mistakes.len()), (3, 1));
        assert_eq!(by_text(text, &stream.documents), [Native::Project].into());
    }

    #[test]
    fn usual_places() {
        assert_eq!(by_path("tutti.yaml"), Some(Native::Instance));
        assert_eq!(by_path("rings.yml"), Some(Native::Rings));
        assert_eq!(by_path("projects/shop.yaml"), Some(Native::Project));
        assert_eq!(by_path("projects/shop/app.yaml"), None);
        assert_eq!(by_path("apps/projects/rings.yaml"), None);
    }
}
