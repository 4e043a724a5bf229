//! Guesses which kinds an unreadable document may contain, and what must wait for it. A typo in an Instance, Rings or Project must not
//! count as its absence: an observing instance would begin to write, and apps would run without rings or without project limits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kinds::{self, ManifestKind};
use super::read::{likely_typo_of, nearest};
use super::yaml::{YamlDocument, YamlNode};
use super::{IgnoredFiles, Manifests, OWN_VERSION, codes};
use crate::model::{Diagnostic, DiagnosticScope, Location, Policy, Snapshot, outside_path};

/// Kinds that other manifests depend on.
const SHARED_KINDS: [ManifestKind; 3] = [ManifestKind::Instance, ManifestKind::Rings, ManifestKind::Project];

/// The unreadable locations that may hold each kind: the usual path, else the first.
pub type UnreadableKinds = BTreeMap<ManifestKind, Location>;

impl Manifests {
    /// Records that an unreadable location may hold each of these kinds. Below `apps/` it blocks only its own folder.
    pub(super) fn record_unreadable(
        &mut self,
        place: &Location,
        meant: impl IntoIterator<Item = ManifestKind>,
    ) {
        for native in meant {
            if native != ManifestKind::Instance && is_below_apps(&place.file) {
                let folder = place.file.rsplit_once('/').map(|(folder, _)| folder);
                // A link may hide a folder; a file blocks only itself.
                let own = folder.filter(|folder| *folder != "apps").unwrap_or(&place.file);
                if native == ManifestKind::Project {
                    self.unreadable_below_apps.entry(format!("{own}/")).or_insert_with(|| place.clone());
                }
                continue;
            }
            let known = self.unreadable.entry(native).or_insert_with(|| place.clone());
            let rank = |place: &Location| usual_kind_at(&place.file) != Some(native);
            if (rank(place), place) < (rank(known), known) {
                known.clone_from(place);
            }
        }
    }

    /// Adds a policy that denies everything for an unreadable document below `policies/`.
    pub(super) fn record_unreadable_policy(&mut self, place: &Location) {
        if place.file.starts_with(kinds::policy::FOLDER) {
            self.policies.push(Arc::new(Policy::unreadable(&place.file, place.clone())));
        }
    }

    /// The unreadable location that may hold the project of an app, by the app's file.
    pub fn unreadable_project_of(&self, file: &str) -> Option<&Location> {
        let mut folders = file.match_indices('/').map(|(slash, _)| &file[..=slash]);
        let in_file = || self.unreadable_below_apps.get(&format!("{file}/"));
        let of_folder = || folders.find_map(|folder| self.unreadable_below_apps.get(folder));
        self.unreadable.get(&ManifestKind::Project).or_else(of_folder).or_else(in_file)
    }

    /// Records links, because the files and folders behind them are unknown.
    pub(super) fn record_links(&mut self, snapshot: &Snapshot, ignored: &IgnoredFiles) {
        let links = snapshot.files.iter().filter(|(path, file)| file.is_link() && !ignored.fits(path));
        for path in links.map(|(path, _)| path) {
            let place = Location::new(path, 1, 1);
            let is_file = path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".j2");
            let shared = ["templates", "health", "plugins"];
            let is_shared = shared.contains(&path.split('/').next().unwrap_or_default());
            // A hidden folder of shared kinds may affect every app.
            let scope = if is_shared && !is_file {
                DiagnosticScope::Instance
            } else {
                DiagnosticScope::File(path.clone())
            };
            let message = format!("{path} {}", snapshot.why_unreadable(path));
            let error = Diagnostic::error(codes::UNREADABLE, message, scope).at(place.clone());
            self.diagnostics.push(error.help("replace the link by the file or folder that it names"));
            let folder = kinds::policy::FOLDER;
            if path.starts_with(folder) || path == folder.trim_end_matches('/') {
                self.policies.push(Arc::new(Policy::unreadable(path, place.clone())));
            }
            if !is_shared && !path.starts_with("charts/") && !outside_path::is_outside(path) {
                self.record_unreadable(&place, SHARED_KINDS);
            }
        }
    }

    /// Records a file with a mistake at the usual path of a shared kind, when the file does not contain that kind.
    pub(super) fn record_unreadable_file(&mut self, path: &str) {
        let usual = usual_kind_at(path).filter(|native| !self.has_kind(*native));
        if let (Some(usual), Some(place)) = (usual, first_error(&self.diagnostics)) {
            self.record_unreadable(&place, [usual]);
        }
    }

    /// Blocks everything while an unreadable document may be the Instance or the Rings, unless those were read. An unreadable project blocks
    /// only its apps, in the fleet.
    pub(super) fn block_on_unreadable(&mut self) {
        for native in SHARED_KINDS {
            let Some(place) = self.unreadable.get(&native).filter(|_| self.blocks_everything(native)) else {
                continue;
            };
            let there = |it: &&mut Diagnostic| it.is_error() && it.location.as_ref() == Some(place);
            self.diagnostics.iter_mut().filter(there).for_each(|it| it.scope = DiagnosticScope::Instance);
        }
    }

    /// Whether an unreadable document of this kind blocks everything.
    pub fn blocks_everything(&self, native: ManifestKind) -> bool {
        // A readable document elsewhere does not replace an unreadable one at the usual path.
        let is_usual = |place: &Location| usual_kind_at(&place.file) == Some(native);
        let is_lost = || self.unreadable.get(&native).is_some_and(is_usual);
        match native {
            ManifestKind::Instance => {
                let place = self.instance.as_ref().and_then(|instance| instance.location.as_ref());
                self.instance.is_none() || is_lost() && !place.is_some_and(is_usual)
            }
            ManifestKind::Rings => {
                let place = self.rings.as_ref().map(|rings| &rings.location);
                place.is_none_or(|place| is_lost() && !is_usual(place))
            }
            _ => false,
        }
    }

    /// Whether a document of a shared kind is known, valid or not.
    fn has_kind(&self, native: ManifestKind) -> bool {
        match native {
            ManifestKind::Instance => self.instance.is_some(),
            ManifestKind::Rings => self.rings.is_some(),
            ManifestKind::Project => {
                !self.invalid_projects.is_empty() || self.apps.iter().any(|app| app.id.is_project())
            }
            ManifestKind::Cluster
            | ManifestKind::AppSet
            | ManifestKind::Component
            | ManifestKind::Objects
            | ManifestKind::Route
            | ManifestKind::Approval
            | ManifestKind::Trigger
            | ManifestKind::Notification
            | ManifestKind::Server
            | ManifestKind::Policy
            | ManifestKind::Window
            | ManifestKind::Analysis
            | ManifestKind::ApprovalRule
            | ManifestKind::Approvers => false,
        }
    }
}

/// Whether app teams own the file.
pub fn is_below_apps(file: &str) -> bool {
    file.starts_with("apps/")
}

/// Whether a kind has the name of a shared kind, in any version.
pub fn is_shared_kind(kind: &str) -> bool {
    SHARED_KINDS.iter().any(|native| native.name().eq_ignore_ascii_case(kind))
}

/// Whether a version has no group, or one that resembles ours.
pub fn may_be_own_version(api_version: &str) -> bool {
    !api_version.contains('/') || resembles_own_group(api_version)
}

/// `tutti.io`, `tuti.dev`
fn resembles_own_group(api_version: &str) -> bool {
    let (group, own) = (kinds::group_of(api_version), kinds::group_of(OWN_VERSION));
    let name = |group| str::split(group, '.').next().unwrap_or_default();
    [(group, own), (name(group), name(own))]
        .iter()
        .any(|(one, other)| likely_typo_of(one, &[*other]).is_some())
}

pub fn first_error<'d>(mistakes: impl IntoIterator<Item = &'d Diagnostic>) -> Option<Location> {
    let errors = mistakes.into_iter().filter(|it| it.is_error());
    errors.filter_map(|it| it.location.as_ref()).min().cloned()
}

/// The shared kinds that a text may contain besides its readable documents.
pub fn possible_kinds_in_text(text: &str, readable: &[YamlDocument]) -> BTreeSet<ManifestKind> {
    // UTF-16, which is read as if it were UTF-8, has one at each letter.
    let text = text.replace('\0', "");
    let mut versions = values_in(&text, "apiVersion").peekable();
    if versions.peek().is_some() && !versions.any(resembles_own_group) {
        return BTreeSet::new();
    }
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    values_in(&text, "kind").for_each(|kind| *times.entry(kind).or_default() += 1);
    for kind in readable.iter().filter_map(|document| document.root.get("kind")?.as_str()) {
        if let Some(times) = times.get_mut(kind) {
            *times = times.saturating_sub(1);
        }
    }
    times
        .into_iter()
        .filter(|(_, times)| *times > 0)
        .filter_map(|(kind, _)| nearest_shared_kind(kind))
        .collect()
}

/// The shared kinds that an unidentified document may be.
pub fn possible_kinds_of(root: &YamlNode) -> BTreeSet<ManifestKind> {
    if let Some(items) = root.as_seq() {
        return items.iter().flat_map(possible_kinds_of).collect();
    }
    let text = |key| root.get(key).and_then(YamlNode::as_str);
    let is_own =
        text("apiVersion").is_some_and(|version| kinds::group_of(version) == kinds::group_of(OWN_VERSION));
    match text("kind") {
        Some(kind) if !is_own => nearest_shared_kind(kind).into_iter().collect(),
        None if !is_own => BTreeSet::new(),
        kind => match kind.and_then(|kind| nearest(kind, &kinds::kind_names())) {
            Some(kind) => nearest_shared_kind(kind).into_iter().collect(),
            None => SHARED_KINDS.into_iter().collect(),
        },
    }
}

/// Whether an unidentified document may be a policy, because its kind resembles no other kind of ours.
pub fn may_be_policy(root: &YamlNode) -> bool {
    let kind = root.get("kind").and_then(YamlNode::as_str);
    let meant = kind.and_then(|kind| likely_typo_of(kind, &kinds::kind_names()));
    meant.is_none_or(|meant| meant == ManifestKind::Policy.name())
}

/// Whether a text that is not YAML may hold a policy or its params. It does not when each document has exactly one `kind:` line, of
/// another kind of ours such as `kind: Window`.
pub fn may_hold_policy(text: &str) -> bool {
    const OTHERS: [ManifestKind; 4] =
        [ManifestKind::Window, ManifestKind::Analysis, ManifestKind::ApprovalRule, ManifestKind::Approvers];
    let is_other = |kind: &str| OTHERS.iter().any(|other| other.name() == kind.trim());
    let is_apart = |document: &str| {
        let mut kinds = document.lines().filter_map(|line| line.strip_prefix("kind:")).peekable();
        kinds.peek().is_some() && kinds.all(is_other)
    };
    text.contains(ManifestKind::Policy.name()) || !text.split("\n---").all(is_apart)
}

/// The kind whose usual path this is.
pub fn usual_kind_at(path: &str) -> Option<ManifestKind> {
    match path {
        "tutti.yaml" | "tutti.yml" => Some(ManifestKind::Instance),
        "rings.yaml" | "rings.yml" => Some(ManifestKind::Rings),
        _ => {
            let file = path.strip_prefix("projects/")?;
            (!file.contains('/')).then_some(ManifestKind::Project)
        }
    }
}

/// The shared kind that a kind name equals or nearly equals.
fn nearest_shared_kind(kind: &str) -> Option<ManifestKind> {
    let names = SHARED_KINDS.map(ManifestKind::name);
    let name = likely_typo_of(kind, &names)?;
    SHARED_KINDS.into_iter().find(|native| native.name() == name)
}

/// `kind: Rings`, `"kind": "Rings"`, `kind: !!str Rings`, and what is nearly that: `kind Rings`, `kind: [Rings`.
fn values_in<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(key).skip(1).filter_map(|rest| {
        let mut rest = rest.trim_start_matches(is_punctuation);
        // Tags, anchors, and comments.
        while rest.starts_with(['!', '&', '#']) {
            let end = if rest.starts_with('#') { rest.find('\n') } else { rest.find(char::is_whitespace) };
            rest = rest[end?..].trim_start_matches(is_punctuation);
        }
        let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '/' | '-');
        rest.split(|letter| !is_of_it(letter)).next().filter(|value| !value.is_empty())
    })
}

fn is_punctuation(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | ':' | '[' | '{' | '-' | '>' | '|')
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn text_counts_as_every_possible_kind() {
        use ManifestKind::{Instance, Project, Rings};
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
            assert_eq!(possible_kinds_in_text(text, &[]), expected.iter().copied().collect(), "{text}");
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
        assert_eq!(possible_kinds_in_text(text, &stream.documents), [ManifestKind::Project].into());
    }

    #[test]
    fn usual_places() {
        assert_eq!(usual_kind_at("tutti.yaml"), Some(ManifestKind::Instance));
        assert_eq!(usual_kind_at("rings.yml"), Some(ManifestKind::Rings));
        assert_eq!(usual_kind_at("projects/shop.yaml"), Some(ManifestKind::Project));
        assert_eq!(usual_kind_at("projects/shop/app.yaml"), None);
        assert_eq!(usual_kind_at("apps/projects/rings.yaml"), None);
    }
}
