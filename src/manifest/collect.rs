//! Reads the manifests of one snapshot, file by file, and caches unchanged files for the next snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::hub::Hub;
use super::ignored_files::IgnoredFiles;
use super::kinds::{self, DocumentIdentity, ManifestKind};
use super::read::{ManifestValue, ReadContext};
use super::unreadable::first_error;
use super::yaml::{self, YamlDocument};
use super::{CONVERSIONS, Manifests, PinManifest, PlainObject, codes, find, possible_kinds};
use crate::model::{
    Approval, Cluster, ClusterName, Diagnostic, DiagnosticScope, Digest, GroupVersionKind, InstanceDefaults,
    Location, RolloutApproval, Snapshot, UNREADABLE_HELP, size_problem,
};

/// A document that is a manifest of tutti.
struct ManifestDocument<'a> {
    file: &'a str,
    native: ManifestKind,
    document: YamlDocument,
    /// No other document is in its file.
    is_alone: bool,
}

/// The parsed files of one snapshot, for the next. Without it, everything is parsed again.
#[derive(Clone, Debug, Default)]
pub struct ManifestCache {
    /// The digest of the conversions, and the namespace of manifests without one.
    hub: Option<Digest>,
    namespace: String,
    /// By path, each with its blob. Files with the Instance or the Rings are not cached, because which of several counts depends on all
    /// files.
    files: BTreeMap<String, (Arc<str>, Arc<Manifests>)>,
}

/// Reads every manifest of a snapshot.
pub fn read(snapshot: &Snapshot) -> Manifests {
    read_incremental(snapshot, &mut ManifestCache::default())
}

/// As [`read`], with the cached results of unchanged files.
pub fn read_incremental(snapshot: &Snapshot, memory: &mut ManifestCache) -> Manifests {
    let (hub, mistakes) = Hub::of(snapshot);
    let conversions = Digest::of_files(snapshot.files_in(CONVERSIONS));
    let mut known = std::mem::take(&mut memory.files);
    if memory.hub.replace(conversions) != Some(conversions) {
        known.clear();
    }
    let mut kept = Vec::new();
    let mut parts: BTreeMap<&str, Manifests> = BTreeMap::new();
    let mut found = Vec::new();
    let ignored = IgnoredFiles::of(snapshot);
    let candidates = snapshot.files.iter().filter(|(path, _)| ignored.is_candidate(path));
    for (path, file) in candidates {
        match known.remove_entry(path).filter(|(_, (blob, _))| *blob == file.blob) {
            Some(entry) => kept.push((path.as_str(), entry)),
            None => found.extend(read_file(snapshot, path, &hub, parts.entry(path).or_default())),
        }
    }
    // The instance first: it has the namespace of manifests without one.
    found.sort_by_key(|found| found.native != ManifestKind::Instance);
    let places = SingletonLocations::of(&found);
    let mut namespace = InstanceDefaults::default().namespace;
    let of_all: BTreeSet<&str> =
        found.iter().filter(|it| it.native.is_singleton()).map(|it| it.file).collect();
    let first_instance = found.iter().take_while(|found| found.native == ManifestKind::Instance).count();
    for found in found.drain(..first_instance) {
        let part = parts.entry(found.file).or_default();
        read_document(&found, &namespace, part, &places);
        if let Some(instance) = &part.instance {
            namespace.clone_from(&instance.defaults.namespace);
        }
    }
    if memory.namespace != namespace {
        memory.namespace.clone_from(&namespace);
        for (path, _) in kept.drain(..) {
            found.extend(read_file(snapshot, path, &hub, parts.entry(path).or_default()));
        }
        found.sort_by(|one, other| one.file.cmp(other.file));
    }
    for found in &found {
        read_document(found, &namespace, parts.entry(found.file).or_default(), &places);
    }
    parts.iter_mut().for_each(|(path, part)| part.record_unreadable_file(path));
    memory.files.extend(kept.into_iter().map(|(_, entry)| entry));
    let mut manifests = Manifests { diagnostics: mistakes, ..Manifests::default() };
    for (path, part) in parts {
        match snapshot.files.get(path) {
            Some(file) if !of_all.contains(path) => {
                memory.files.insert(path.to_owned(), (Arc::clone(&file.blob), Arc::new(part)));
            }
            _ => manifests.add(&part),
        }
    }
    for (_, part) in memory.files.values() {
        manifests.add(part);
    }
    manifests.record_links(snapshot, &ignored);
    manifests.diagnostics.extend(ignored.mistakes(snapshot, &hub));
    manifests.block_on_unreadable();
    manifests.sort();
    manifests
}

/// The clusters of one file; `None` in place of a cluster whose manifest has a mistake. Returns `None` for an unreadable file, whose
/// clusters are unknown.
pub fn clusters_in(path: &str, content: &[u8]) -> Option<Vec<(ClusterName, Option<Cluster>)>> {
    if !String::from_utf8_lossy(content).contains("Cluster") {
        return Some(Vec::new());
    }
    let stream = yaml::read(path, std::str::from_utf8(content).ok()?);
    let is_wrong = |mistakes: &[Diagnostic]| mistakes.iter().any(Diagnostic::is_error);
    if is_wrong(&stream.mistakes) {
        return None;
    }
    let mut clusters = Vec::new();
    for document in &stream.documents {
        // A conversion makes no cluster.
        let mut reading = ReadContext::new(path, DiagnosticScope::File(path.to_owned()));
        let identity = kinds::identify(&document.root, &Hub::default(), &mut reading);
        match (identity, kinds::cluster_scope(&document.root, path)) {
            (Some(DocumentIdentity::Native(ManifestKind::Cluster)), DiagnosticScope::Cluster(name)) => {
                let cluster = kinds::cluster::read(&document.root, &mut reading);
                let is_wrong = is_wrong(&reading.mistakes) || is_wrong(&document.mistakes);
                clusters.push((name, cluster.filter(|_| !is_wrong)));
            }
            (Some(DocumentIdentity::Native(ManifestKind::Cluster)), _) => return None,
            _ => {}
        }
    }
    Some(clusters)
}

/// Whether a file has a manifest of this app or cluster, valid or not.
pub fn has_manifest_of(path: &str, content: &[u8], scope: &DiagnosticScope, namespace: &str) -> bool {
    let Ok(text) = std::str::from_utf8(content) else { return false };
    let is_of_it = |document: &YamlDocument| {
        let root = &document.root;
        let of_kind = match root.get("kind").and_then(yaml::YamlNode::as_str) {
            Some("Cluster") => kinds::cluster_scope(root, path),
            Some("Project") => kinds::project_scope(root, path),
            _ => kinds::app_scope(root, path, namespace),
        };
        of_kind == *scope
    };
    yaml::read(path, text).documents.iter().any(is_of_it)
}

impl Manifests {
    fn add(&mut self, part: &Self) {
        self.instance = self.instance.take().or_else(|| part.instance.clone());
        self.rings = self.rings.take().or_else(|| part.rings.clone());
        self.clusters.extend(part.clusters.iter().cloned());
        self.apps.extend(part.apps.iter().cloned());
        self.approvals.extend(part.approvals.iter().cloned());
        self.rollout_approvals.extend(part.rollout_approvals.iter().cloned());
        self.routes.extend(part.routes.iter().cloned());
        self.pins.extend(part.pins.iter().cloned());
        self.triggers.extend(part.triggers.iter().cloned());
        self.notifications.extend(part.notifications.iter().cloned());
        self.servers.extend(part.servers.iter().cloned());
        self.policies.extend(part.policies.iter().cloned());
        self.admission_policies.extend(part.admission_policies.iter().cloned());
        self.admission_bindings.extend(part.admission_bindings.iter().cloned());
        self.policy_params.extend(part.policy_params.iter().cloned());
        self.windows.extend(part.windows.iter().cloned());
        self.analyses.extend(part.analyses.iter().cloned());
        self.approval_rules.extend(part.approval_rules.iter().cloned());
        self.approvers.extend(part.approvers.iter().cloned());
        self.may_lack_approvers |= part.may_lack_approvers;
        self.invalid.extend(part.invalid.iter().cloned());
        self.invalid_projects.extend(part.invalid_projects.iter().cloned());
        part.unreadable.iter().for_each(|(native, place)| self.record_unreadable(place, [*native]));
        self.unreadable_below_apps
            .extend(part.unreadable_below_apps.iter().map(|(folder, at)| (folder.clone(), at.clone())));
        self.plain_objects.extend(part.plain_objects.iter().cloned());
        self.diagnostics.extend(part.diagnostics.iter().cloned());
    }

    /// Everything in the order of the files.
    fn sort(&mut self) {
        self.clusters.sort_by(|one, other| one.location.cmp(&other.location));
        self.apps.sort_by(|one, other| one.location.cmp(&other.location));
        self.approvals.sort_by(|one, other| one.location.cmp(&other.location));
        self.rollout_approvals.sort_by(|one, other| one.location.cmp(&other.location));
        self.routes.sort_by(|one, other| one.route.location.cmp(&other.route.location));
        self.pins.sort_by(|one, other| one.location.cmp(&other.location));
        self.triggers.sort_by(|one, other| one.location.cmp(&other.location));
        self.notifications.sort_by(|one, other| one.location.cmp(&other.location));
        self.servers.sort_by(|one, other| one.location.cmp(&other.location));
        self.policies.sort_by(|one, other| one.location.cmp(&other.location));
        self.admission_policies.sort_by(|one, other| one.policy.location.cmp(&other.policy.location));
        self.admission_bindings.sort_by(|one, other| one.location.cmp(&other.location));
        self.policy_params.sort_by(|one, other| one.location.cmp(&other.location));
        self.windows.sort_by(|one, other| one.location.cmp(&other.location));
        self.analyses.sort_by(|one, other| one.location.cmp(&other.location));
        self.approval_rules.sort_by(|one, other| one.location.cmp(&other.location));
        self.approvers.sort_by(|one, other| one.location.cmp(&other.location));
        self.invalid_projects.sort();
        self.plain_objects.sort_by(|one, other| one.location.cmp(&other.location));
        self.diagnostics.sort_by(|one, other| one.location.cmp(&other.location));
    }
}

/// The locations of the effective documents of kinds that may exist once.
#[derive(Default)]
struct SingletonLocations(BTreeMap<ManifestKind, Location>);

impl SingletonLocations {
    /// The document at its usual path counts, else the first outside `apps/`, else the first.
    fn of(found: &[ManifestDocument<'_>]) -> Self {
        let mut places: BTreeMap<ManifestKind, (_, Location)> = BTreeMap::new();
        for found in found.iter().filter(|found| found.native.is_singleton()) {
            let is_usual = find::usual_kind_at(found.file) == Some(found.native);
            let rank = (!is_usual, find::is_below_apps(found.file));
            let known = places.get(&found.native);
            if known.is_none_or(|(known, _)| rank < *known) {
                places.insert(found.native, (rank, found.location()));
            }
        }
        Self(places.into_iter().map(|(native, (_, place))| (native, place)).collect())
    }
}

impl ManifestDocument<'_> {
    fn location(&self) -> Location {
        let root = &self.document.root;
        root.entry("kind").map_or_else(|| root.location(self.file), |entry| entry.location(self.file))
    }
}

fn read_file<'a>(
    snapshot: &'a Snapshot,
    path: &'a str,
    hub: &Hub,
    manifests: &mut Manifests,
) -> Vec<ManifestDocument<'a>> {
    let scope = || DiagnosticScope::File(path.to_owned());
    let Some(text) = snapshot.text(path) else {
        let location = Location::new(path, 1, 1);
        // Links are reported together.
        if let Some(file) = snapshot.files.get(path).filter(|file| !file.is_link()) {
            let message = format!("the file {path} {}", snapshot.why_unreadable(path));
            manifests.diagnostics.push(
                Diagnostic::error(codes::UNREADABLE, message, scope())
                    .at(location.clone())
                    .help(UNREADABLE_HELP),
            );
            manifests.record_unreadable(
                &location,
                possible_kinds::possible_kinds_in_text(&String::from_utf8_lossy(&file.content), &[]),
            );
            manifests.record_unreadable_policy(&location);
        }
        if let (true, Some((folder, ring))) = (find::is_pin(path), kinds::pin::parts(path)) {
            manifests.pins.push(PinManifest { folder, ring, version: None, location });
        }
        return Vec::new();
    };
    if find::is_pin(path) {
        read_pin(path, text, manifests);
        return Vec::new();
    }
    if find::is_kustomization(path) {
        // It may say neither apiVersion nor kind.
        let kind = GroupVersionKind::from_api_version("kustomize.config.k8s.io/v1beta1", "Kustomization");
        let (file, location) = (path.to_owned(), Location::new(path, 1, 1));
        manifests.plain_objects.push(PlainObject { file, location, kind, not_yet: None });
        return Vec::new();
    }
    if text.len() > yaml::FILE_LIMIT && !find::is_manifest_path(path) {
        let message = format!("the file {path} {}", size_problem(text.len(), yaml::FILE_LIMIT));
        let location = Location::new(path, 1, 1);
        let mistake = Diagnostic::error(codes::UNREADABLE, message, scope()).at(location.clone());
        let mistake = mistake.help("split it; a file that an Objects app lists may have 16 MiB");
        let hidden = possible_kinds::possible_kinds_in_text(text, &[]);
        manifests.record_unreadable_policy(&location);
        if hidden.is_empty() && !path.starts_with(kinds::policy::FOLDER) {
            // Mostly it is one that an Objects app lists, and which files those are is not known yet.
            let (file, kind) = (path.to_owned(), GroupVersionKind::from_api_version("", ""));
            manifests.plain_objects.push(PlainObject { file, location, kind, not_yet: Some(mistake) });
        } else {
            manifests.record_unreadable(&location, hidden);
            manifests.diagnostics.push(mistake);
        }
        return Vec::new();
    }
    let stream = yaml::read(path, text);
    if stream.documents.is_empty() && stream.mistakes.is_empty() && find::is_manifest_path(path) {
        let mistake =
            Diagnostic::error(codes::NOT_A_MANIFEST, format!("there is no manifest in {path}"), scope())
                .at(Location::new(path, 1, 1))
                .help("delete the file if its content is no longer needed");
        manifests.diagnostics.push(mistake);
    }
    // A `---` that was forgotten makes two documents one, in which keys stand twice.
    let of_documents = stream.documents.iter().flat_map(|document| &document.mistakes);
    let hiding = stream.mistakes.iter().chain(of_documents.filter(|it| it.code == codes::DUPLICATE_KEY));
    if let Some(place) = first_error(hiding) {
        manifests.record_unreadable(&place, possible_kinds::possible_kinds_in_text(text, &stream.documents));
        if possible_kinds::may_hold_policy(text) {
            manifests.record_unreadable_policy(&place);
        }
        if path.starts_with(kinds::window::FOLDER) && text.contains(ManifestKind::Window.name()) {
            manifests.windows.push(Arc::new(kinds::window::unreadable(path, place.clone())));
        }
        if path.starts_with(kinds::approval_rule::FOLDER) && text.contains(ManifestKind::ApprovalRule.name())
        {
            manifests.approval_rules.push(Arc::new(kinds::approval_rule::unreadable(path, place)));
        }
        manifests.may_lack_approvers |=
            path.starts_with(kinds::approval_rule::FOLDER) && text.contains(ManifestKind::Approvers.name());
    }
    let is_alone = stream.documents.len() == 1 && stream.mistakes.is_empty();
    manifests.diagnostics.extend(stream.mistakes);
    let mut found = Vec::new();
    for mut document in stream.documents {
        let mut reading = ReadContext::new(path, scope());
        match kinds::identify(&document.root, hub, &mut reading) {
            Some(DocumentIdentity::Native(native)) => {
                if let Some(folder) = native.folder().filter(|folder| !path.starts_with(folder)) {
                    refuse_folder(native.name(), folder, &document.root, &mut reading);
                    manifests.diagnostics.extend(document.mistakes);
                    manifests.diagnostics.append(&mut reading.mistakes);
                    continue;
                }
                hub.to_hub(native, &mut document.root, &mut reading);
                document.mistakes.append(&mut reading.mistakes);
                found.push(ManifestDocument { file: path, native, document, is_alone });
                continue;
            }
            Some(DocumentIdentity::InFolder { kind, folder }) => {
                refuse_folder(kind, folder, &document.root, &mut reading);
            }
            Some(DocumentIdentity::Planned { api_version, kind, deploys, foreign }) => {
                // Its namespace may come from the instance, but then nobody else has that name either.
                if deploys {
                    reading.scope =
                        kinds::app_scope(&document.root, path, &InstanceDefaults::default().namespace);
                }
                let value = ManifestValue::root(&document.root).entry("kind", path);
                reading.not_yet(&format!("the kind {kind}"), &value);
                record_invalid(document.root.location(path), &reading, manifests);
                if foreign {
                    manifests.plain_objects.push(PlainObject {
                        file: path.to_owned(),
                        location: document.root.location(path),
                        kind: GroupVersionKind::from_api_version(&api_version, &kind),
                        not_yet: reading.mistakes.pop(),
                    });
                }
            }
            Some(DocumentIdentity::PlainObject { api_version, kind })
                if path.starts_with(kinds::policy::FOLDER) =>
            {
                reading.mistakes.append(&mut document.mistakes);
                let read = kinds::admission::read(&api_version, &kind, &document.root, &mut reading);
                let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
                match read {
                    Some(kinds::admission::AdmissionManifest::Policy(it)) => {
                        manifests.admission_policies.push(*it)
                    }
                    Some(kinds::admission::AdmissionManifest::Binding(it)) => {
                        manifests.admission_bindings.push(*it)
                    }
                    Some(kinds::admission::AdmissionManifest::Params(it)) if !is_wrong => {
                        manifests.policy_params.push(*it)
                    }
                    _ => manifests.record_unreadable_policy(&document.root.location(path)),
                }
            }
            Some(DocumentIdentity::PlainObject { api_version, kind }) => {
                manifests.plain_objects.push(PlainObject {
                    file: path.to_owned(),
                    location: document.root.location(path),
                    kind: GroupVersionKind::from_api_version(&api_version, &kind),
                    not_yet: None,
                })
            }
            None => {
                if let Some(place) = first_error(&reading.mistakes) {
                    if possible_kinds::may_be_policy(&document.root) {
                        manifests.record_unreadable_policy(&place);
                    }
                    manifests.record_unreadable(&place, possible_kinds::possible_kinds_of(&document.root));
                }
            }
        }
        manifests.diagnostics.extend(document.mistakes);
        manifests.diagnostics.append(&mut reading.mistakes);
    }
    found
}

/// Refuses a kind outside its folder, because write access to a folder decides who may create the kind.
fn refuse_folder(kind: &str, folder: &str, root: &yaml::YamlNode, reading: &mut ReadContext<'_>) {
    let value = ManifestValue::root(root).entry("kind", reading.file);
    let place = reading.location(value.node);
    let message = format!("a {kind} is read from {folder}, and not from here");
    reading.mistake(codes::NOT_A_MANIFEST, message, place, "kind").help("move the file there");
}

fn read_pin(path: &str, text: &str, manifests: &mut Manifests) {
    let Some((folder, ring)) = kinds::pin::parts(path) else { return };
    let mut reading = ReadContext::new(path, DiagnosticScope::File(path.to_owned()));
    let mut stream = yaml::read(path, text);
    reading.mistakes.append(&mut stream.mistakes);
    let [document] = stream.documents.as_mut_slice() else {
        if reading.mistakes.is_empty() {
            let place = Location::new(path, 1, 1);
            let help = "write `version: v3`";
            reading
                .mistake(codes::MISSING_FIELD, "a pin is one document with a `version`", place, "")
                .help(help);
        }
        keep_pin(
            PinManifest { folder, ring, version: None, location: Location::new(path, 1, 1) },
            reading,
            manifests,
        );
        return;
    };
    reading.mistakes.append(&mut document.mistakes);
    let read = kinds::pin::read(&document.root, &mut reading);
    let location = match &read {
        Some((_, location)) => location.clone(),
        None => reading.location(&document.root),
    };
    let version = read.map(|(version, _)| version);
    keep_pin(PinManifest { folder, ring, version, location }, reading, manifests);
}

/// Keeps a pin with mistakes without its version, because its app must not run as if there were no pin.
fn keep_pin(pin: PinManifest, mut reading: ReadContext<'_>, manifests: &mut Manifests) {
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    let version = pin.version.filter(|_| !is_wrong);
    manifests.pins.push(PinManifest { version, ..pin });
    manifests.diagnostics.append(&mut reading.mistakes);
}

fn read_document(
    found: &ManifestDocument<'_>,
    namespace: &str,
    manifests: &mut Manifests,
    places: &SingletonLocations,
) {
    let ManifestDocument { file, native, document, .. } = found;
    let root = &document.root;
    if let Some(first) = places.0.get(native).filter(|first| **first != found.location()) {
        manifests.diagnostics.push(duplicate_singleton(found, first));
        return;
    }
    let scope = match native {
        // Apps that name a ring wait all the same while it is not known.
        ManifestKind::Rings if find::is_below_apps(file) => DiagnosticScope::File((*file).to_owned()),
        // Which clusters a ring has is not known when rings.yaml is wrong: everything waits.
        ManifestKind::Instance | ManifestKind::Rings => DiagnosticScope::Instance,
        ManifestKind::Cluster => kinds::cluster_scope(root, file),
        ManifestKind::AppSet | ManifestKind::Component | ManifestKind::Objects => {
            kinds::app_scope(root, file, namespace)
        }
        ManifestKind::Project => kinds::project_scope(root, file),
        ManifestKind::Route
        | ManifestKind::Approval
        | ManifestKind::Trigger
        | ManifestKind::Notification
        | ManifestKind::Server
        | ManifestKind::Policy
        | ManifestKind::Window
        | ManifestKind::Analysis
        | ManifestKind::ApprovalRule
        | ManifestKind::Approvers => DiagnosticScope::File((*file).to_owned()),
    };
    let mut reading = ReadContext::new(file, scope.clone());
    let rescoped =
        document.mistakes.iter().cloned().map(|mistake| Diagnostic { scope: scope.clone(), ..mistake });
    reading.mistakes.extend(rescoped);
    match native {
        ManifestKind::Instance => {
            let instance = kinds::instance::read(root, &mut reading);
            keep_valid(instance, &reading, |instance| manifests.instance = Some(instance));
        }
        ManifestKind::Rings => {
            let rings = kinds::rings::read(root, &mut reading);
            keep_valid(rings, &reading, |rings| manifests.rings = Some(rings));
        }
        ManifestKind::Cluster => {
            let cluster = kinds::cluster::read(root, &mut reading);
            keep_valid(cluster, &reading, |cluster| manifests.clusters.push(cluster));
        }
        ManifestKind::AppSet => {
            let app = kinds::appset::read(root, namespace, &mut reading);
            keep_valid(app, &reading, |app| manifests.apps.push(Arc::new(app)));
        }
        ManifestKind::Component => {
            let app = kinds::component::read(root, namespace, &mut reading);
            keep_valid(app, &reading, |app| manifests.apps.push(Arc::new(app)));
        }
        ManifestKind::Objects => {
            let app = kinds::objects::read(root, namespace, &mut reading);
            keep_valid(app, &reading, |app| manifests.apps.push(Arc::new(app)));
        }
        ManifestKind::Project => {
            let app = kinds::project::read(root, &mut reading);
            keep_valid(app, &reading, |app| manifests.apps.push(Arc::new(app)));
            if let Some(place) = first_error(&reading.mistakes) {
                match (&scope, kinds::project::namespace_of(root)) {
                    (DiagnosticScope::App(id), Some(namespace)) => {
                        manifests.invalid_projects.push((id.clone(), namespace, found.location()));
                    }
                    _ => manifests.record_unreadable(&place, [ManifestKind::Project]),
                }
                if find::is_below_apps(file) {
                    manifests.record_unreadable(&place, [ManifestKind::Project]);
                }
            }
        }
        ManifestKind::Route => {
            let route = kinds::route::read(root, &mut reading);
            keep_valid(route, &reading, |route| manifests.routes.push(route));
        }
        ManifestKind::Approval => {
            let approval = kinds::approval::read(root, &mut reading);
            let is_alone = found.is_alone;
            keep_valid(approval, &reading, |approval| match approval {
                kinds::approval::ApprovalManifest::Objects(approval) => {
                    manifests.approvals.push(Approval { is_alone, ..approval });
                }
                kinds::approval::ApprovalManifest::Rollout(approval) => {
                    manifests.rollout_approvals.push(RolloutApproval { is_alone, ..approval });
                }
            });
        }
        ManifestKind::Trigger => {
            let trigger = kinds::trigger::read(root, &mut reading);
            keep_valid(trigger, &reading, |trigger| manifests.triggers.push(Arc::new(trigger)));
        }
        ManifestKind::Notification => {
            let route = kinds::notification::read(root, &mut reading);
            keep_valid(route, &reading, |route| manifests.notifications.push(Arc::new(route)));
        }
        ManifestKind::Server => {
            let server = kinds::server::read(root, &mut reading);
            keep_valid(server, &reading, |server| manifests.servers.push(Arc::new(server)));
        }
        ManifestKind::Policy => manifests.policies.push(Arc::new(kinds::policy::read(root, &mut reading))),
        ManifestKind::Window => manifests.windows.push(Arc::new(kinds::window::read(root, &mut reading))),
        ManifestKind::Analysis => {
            manifests.analyses.push(Arc::new(kinds::analysis::read(root, &mut reading)))
        }
        ManifestKind::ApprovalRule => {
            manifests.approval_rules.push(Arc::new(kinds::approval_rule::read(root, &mut reading)));
        }
        ManifestKind::Approvers => {
            let read = kinds::approval_rule::read_approvers(root, &mut reading);
            manifests.may_lack_approvers |= read.is_none();
            manifests.approvers.extend(read);
        }
    }
    record_invalid(found.location(), &reading, manifests);
    manifests.diagnostics.append(&mut reading.mistakes);
}

/// Records the app or cluster of an invalid manifest.
fn record_invalid(place: Location, reading: &ReadContext<'_>, manifests: &mut Manifests) {
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    if is_wrong && matches!(reading.scope, DiagnosticScope::App(_) | DiagnosticScope::Cluster(_)) {
        manifests.invalid.push((reading.scope.clone(), place));
    }
}

/// Drops a manifest with a mistake, even if it could be built.
fn keep_valid<T>(read: Option<T>, reading: &ReadContext<'_>, to: impl FnOnce(T)) {
    if let Some(manifest) = read
        && !reading.mistakes.iter().any(Diagnostic::is_error)
    {
        to(manifest);
    }
}

/// The only mistake of a second document, because nothing of it is used.
fn duplicate_singleton(found: &ManifestDocument<'_>, first: &Location) -> Diagnostic {
    let kind = found.native.name();
    let message = format!("a second {kind}; a config repository has one, and that in {} counts", first.file);
    Diagnostic::error(codes::SECOND, message, DiagnosticScope::File(found.file.to_owned()))
        .at(found.location())
        .in_path("kind")
        .related(first.clone(), "the one that counts")
        .help("keep one of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a file of more than 1 MiB, and whether only when no app lists the file.
    fn check_large(text: &str, lost: &[ManifestKind], told: Option<&DiagnosticScope>) {
        let text = format!("{text}# {}\n", "x".repeat(yaml::FILE_LIMIT));
        let manifests = read(&Snapshot::of_texts([("all.yaml", text.as_str())]));
        assert_eq!(manifests.unreadable.keys().copied().collect::<Vec<_>>(), lost);
        let found: Vec<_> = manifests.diagnostics.iter().map(|it| (it.code, &it.scope)).collect();
        assert_eq!(found, told.iter().map(|scope| (codes::UNREADABLE, *scope)).collect::<Vec<_>>());
        assert_eq!(manifests.plain_objects.len(), usize::from(told.is_none()));
        assert!(manifests.plain_objects.iter().all(|it| it.not_yet.is_some()));
    }

    #[test]
    fn large_file_may_hide_the_instance() {
        let own = |kind: &str| {
            format!("apiVersion: tutti.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\n---\n")
        };
        let all = own("Instance") + &own("Rings") + COMPONENT;
        check_large(&all, &[ManifestKind::Instance, ManifestKind::Rings], Some(&DiagnosticScope::Instance));
        check_large(
            &own("Project"),
            &[ManifestKind::Project],
            Some(&DiagnosticScope::File("all.yaml".to_owned())),
        );
        check_large(COMPONENT, &[], None);
        check_large("apiVersion: v1\nkind: List\nitems:\n- kind: Project\n", &[], None);
    }

    const COMPONENT: &str =
        "apiVersion: component.luojilab.com/v1alpha1\nkind: Component\nmetadata: {name: a}\n";
}
