//! Guesses which kinds an unreadable document may contain, and what must wait for it. A typo in an Instance, Rings or Project must not
//! count as its absence: an observing instance would begin to write, and apps would run without rings or without project limits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kinds::{self, Native};
use super::read::{nearest, with_a_slip};
use super::yaml::{Document, Node};
use super::{Ignored, Manifests, OWN_VERSION, codes};
use crate::model::{Diagnostic, Location, Policy, Scope, Snapshot, beside};

/// Kinds that other manifests depend on.
const DEPENDED_ON: [Native; 3] = [Native::Instance, Native::Rings, Native::Project];

/// The unreadable locations that may hold each kind: the usual path, else the first.
pub type Lost = BTreeMap<Native, Location>;

impl Manifests {
    /// Records that an unreadable location may hold each of these kinds. Below `apps/` it blocks only its own folder.
    pub(super) fn lose(&mut self, place: &Location, meant: impl IntoIterator<Item = Native>) {
        for native in meant {
            if native != Native::Instance && is_below_apps(&place.file) {
                let folder = place.file.rsplit_once('/').map(|(folder, _)| folder);
                // A link may hide a folder; a file blocks only itself.
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

    /// Adds a policy that denies everything for an unreadable document below `policies/`.
    pub(super) fn lose_policy(&mut self, place: &Location) {
        if place.file.starts_with(kinds::policy::FOLDER) {
            self.policies.push(Arc::new(Policy::unreadable(&place.file, place.clone())));
        }
    }

    /// The unreadable location that may hold the project of an app, by the app's file.
    pub fn lost_project(&self, file: &str) -> Option<&Location> {
        let mut folders = file.match_indices('/').map(|(slash, _)| &file[..=slash]);
        let in_file = || self.lost_below_apps.get(&format!("{file}/"));
        let of_folder = || folders.find_map(|folder| self.lost_below_apps.get(folder));
        self.lost.get(&Native::Project).or_else(of_folder).or_else(in_file)
    }

    /// Records links, because the files and folders behind them are unknown.
    pub(super) fn add_links(&mut self, snapshot: &Snapshot, ignored: &Ignored) {
        let links = snapshot.files.iter().filter(|(path, file)| file.is_link() && !ignored.fits(path));
        for path in links.map(|(path, _)| path) {
            let place = Location::new(path, 1, 1);
            let is_file = path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".j2");
            let shared = ["templates", "health", "plugins"];
            let is_shared = shared.contains(&path.split('/').next().unwrap_or_default());
            // A hidden folder of shared kinds may affect every app.
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

    /// Records a file with a mistake at the usual path of a shared kind, when the file does not contain that kind.
    pub(super) fn lose_what_is_usual(&mut self, path: &str) {
        let usual = by_path(path).filter(|native| !self.holds(*native));
        if let (Some(usual), Some(place)) = (usual, first_error(&self.diagnostics)) {
            self.lose(&place, [usual]);
        }
    }

    /// Blocks everything while an unreadable document may be the Instance or the Rings, unless those were read. An unreadable project blocks
    /// only its apps, in the fleet.
    pub(super) fn wait_for_the_lost(&mut self) {
        for native in DEPENDED_ON {
            let Some(place) = self.lost.get(&native).filter(|_| self.stops_everybody(native)) else {
                continue;
            };
            let there = |it: &&mut Diagnostic| it.is_error() && it.location.as_ref() == Some(place);
            self.diagnostics.iter_mut().filter(there).for_each(|it| it.scope = Scope::Instance);
        }
    }

    /// Whether an unreadable document of this kind blocks everything.
    pub fn stops_everybody(&self, native: Native) -> bool {
        // A readable document elsewhere does not replace an unreadable one at the usual path.
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

    /// Whether a document of a shared kind is known, valid or not.
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

/// Whether app teams own the file.
pub fn is_below_apps(file: &str) -> bool {
    file.starts_with("apps/")
}

/// Whether a kind has the name of a shared kind, in any version.
pub fn is_depended_on(kind: &str) -> bool {
    DEPENDED_ON.iter().any(|native| native.name().eq_ignore_ascii_case(kind))
}

/// Whether a version has no group, or one that resembles ours.
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

/// The shared kinds that a text may contain besides its readable documents.
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

/// The shared kinds that an unidentified document may be.
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

/// Whether an unidentified document may be a policy, because its kind resembles no other kind of ours.
pub fn may_be_policy(root: &Node) -> bool {
    let kind = root.get("kind").and_then(Node::as_str);
    let meant = kind.and_then(|kind| with_a_slip(kind, &kinds::names()));
    meant.is_none_or(|meant| meant == Native::Policy.name())
}

/// Whether a text that is not YAML may hold a policy or its params. It does not when each document has exactly one `kind:` line, of
/// another kind of ours such as `kind: Window`.
pub fn may_hold_policy(text: &str) -> bool {
    const OTHERS: [Native; 4] = [Native::Window, Native::Analysis, Native::ApprovalRule, Native::Approvers];
    let is_other = |kind: &str| OTHERS.iter().any(|other| other.name() == kind.trim());
    let is_apart = |document: &str| {
        let mut kinds = document.lines().filter_map(|line| line.strip_prefix("kind:")).peekable();
        kinds.peek().is_some() && kinds.all(is_other)
    };
    text.contains(Native::Policy.name()) || !text.split("\n---").all(is_apart)
}

/// The kind whose usual path this is.
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

/// The shared kind that a kind name equals or nearly equals.
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
    fn text_counts_as_every_possible_kind() {
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
    fn other_kinds_alone_hold_no_policy() {
        for (text, expected) in [
            ("kind: Window\nspec: [", false),
            ("kind: Window\nspec: {}\n---\nkind: Approvers\nspec: [", false),
            ("kind: ConfigMap\ndata: {kinds: Window, b: [", true),
            ("data:\n  a: |\n    kind: Window\n b: [", true),
            ("kind: Window\nkind: ConfigMap\ndata: [", true),
            ("kind: Window\n---\ndata: [", true),
            ("kind: Window\n---\nkind: Policy\n a: [", true),
            ("a: [", true),
        ] {
            assert_eq!(may_hold_policy(text), expected, "{text}");
        }
    }

    #[test]
    fn readable_documents_hide_nothing() {
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
