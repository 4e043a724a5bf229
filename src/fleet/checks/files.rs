//! Checks Objects apps and the Kubernetes documents of the repository.

use std::collections::BTreeSet;

use super::CheckInput;
use crate::fleet::{codes, files_of};
use crate::manifest::codes::{BAD_PATTERN, BAD_VALUE, NOT_A_MANIFEST};
use crate::manifest::{self, Manifests, PlainObject};
use crate::model::{App, AppSpec, Diagnostic, DiagnosticScope, ObjectsApp, outside_path};

pub fn patterns_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (app, objects) in objects_apps(facts) {
        for (pattern, location) in &objects.files {
            if files_of(pattern, facts.snapshot).next().is_some() {
                continue;
            }
            let error =
                |code, message| Diagnostic::error(code, message, DiagnosticScope::App(app.id.clone()));
            let error = match outside_path::normalize(&facts.snapshot.folder, pattern) {
                Some(_) => {
                    let message = format!("Objects {} lists {pattern}, and no file fits it", app.id);
                    let help = format!("paths are relative to {}", app.location.file);
                    error(codes::NO_SUCH_FILE, message).help(help)
                }
                None => error(BAD_PATTERN, format!("the pattern {pattern} leaves the repository"))
                    .help("files may be beside the folder of `--path`, but are in the repository: commit them to it"),
            };
            found.push(error.at(location.clone()));
        }
    }
    found
}

pub fn no_stray_document(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let patterns = objects_apps(facts).flat_map(|(_, objects)| &objects.files);
    let listed: BTreeSet<&str> =
        patterns.flat_map(|(pattern, _)| files_of(pattern, facts.snapshot)).collect();
    // The files of an app with a mistake are unknown. An unreadable file may be an app.
    let is_of_app = |it: &&Diagnostic| {
        it.is_error() && matches!(it.scope, DiagnosticScope::App(_) | DiagnosticScope::File(_))
    };
    let mistakes = facts.manifests.diagnostics.iter().filter(is_of_app);
    let files = mistakes.filter_map(|it| it.location.as_ref()).map(|place| &*place.file);
    let folders: BTreeSet<&str> = files.filter_map(|file| folders_of(file).last()).collect();
    let is_beside_one = |file: &str| folders_of(file).any(|folder| folders.contains(folder));
    let kustomized = kustomized_folders(facts.manifests);
    let is_kustomized = |file: &str| folders_of(file).any(|folder| kustomized.contains(folder));
    let is_known = |file: &str| {
        listed.contains(file)
            || manifest::usual_kind_at(file).is_none() && (is_beside_one(file) || is_kustomized(file))
    };
    let plain = facts.manifests.plain_objects.iter();
    let not_yet = plain.clone().filter(|document| !listed.contains(&*document.file));
    let not_yet: Vec<Diagnostic> = not_yet.filter_map(|document| document.not_yet.clone()).collect();
    let plain = plain.filter(|document| document.not_yet.is_none() && !is_kustomize_document(document));
    let mut strays: Vec<&PlainObject> = plain.filter(|document| !is_known(&document.file)).collect();
    // A file is reported once, for its first document.
    strays.sort_by(|one, other| (&one.file, &one.location).cmp(&(&other.file, &other.location)));
    strays.dedup_by(|one, other| one.file == other.file);
    let error = |stray: &PlainObject| {
        let message = format!("{} in {} belongs to no app", stray.kind, stray.file);
        // At the path of the instance or the rings, the document counts as a broken one of these.
        let scope = match manifest::usual_kind_at(&stray.file) {
            Some(usual) if facts.manifests.blocks_everything(usual) => DiagnosticScope::Instance,
            _ => DiagnosticScope::File(stray.file.clone()),
        };
        Diagnostic::error(codes::STRAY_DOCUMENT, message, scope)
            .at(stray.location.clone())
            .help("list the file under spec.files of an app of kind Objects; nothing else applies it")
    };
    not_yet.into_iter().chain(strays.into_iter().map(error)).collect()
}

/// `ignore` works in tutti.yaml only: it must be known before other files are read.
pub fn ignore_is_read(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let instance = facts.manifests.instance.as_ref().filter(|instance| !instance.ignore.is_empty());
    let place = instance.and_then(|instance| instance.location.as_ref());
    let Some(place) = place.filter(|place| place.file != manifest::INSTANCE_FILE) else { return Vec::new() };
    let message = format!("`ignore` is read from {} alone", manifest::INSTANCE_FILE);
    let error = Diagnostic::error(BAD_VALUE, message, DiagnosticScope::File(place.file.clone()));
    vec![error.at(place.clone()).in_path("spec.ignore").help("move the instance to that file")]
}

/// One error for all kustomization files, at the first of them.
pub fn no_kustomization(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<&PlainObject> =
        facts.manifests.plain_objects.iter().filter(|it| is_kustomize_document(it)).collect();
    found.sort_by(|one, other| one.location.cmp(&other.location));
    let Some((first, others)) = found.split_first() else { return Vec::new() };
    let message = match others.len() {
        0 => format!("{} is not used: tutti does not run kustomize", first.file),
        _ => format!("{} files are not used: tutti does not run kustomize", found.len()),
    };
    let help = "build it in CI and commit the output, or list its resources under spec.files of an app of \
                kind Objects; then \
                delete the file, or name it under `ignore` in tutti.yaml";
    let error = Diagnostic::error(codes::KUSTOMIZATION, message, DiagnosticScope::File(first.file.clone()));
    let error = error.at(first.location.clone()).help(help);
    const SHOWN: usize = 3;
    let related =
        |error: Diagnostic, other: &&PlainObject| error.related(other.location.clone(), "also here");
    vec![others.iter().take(SHOWN).fold(error, related)]
}

/// Whether a mistake follows from a kustomization file, for which one error exists.
pub fn kustomize_error_filter<'m>(manifests: &'m Manifests) -> impl Fn(&Diagnostic) -> bool + use<'m> {
    let folders = kustomized_folders(manifests);
    move |mistake| {
        let is_below = |file: &str| folders_of(file).any(|folder| folders.contains(folder));
        let file = mistake.location.as_ref().map(|place| &*place.file);
        mistake.code == NOT_A_MANIFEST
            && file.is_some_and(|file| is_below(file) && !manifest::find::is_manifest_path(file))
    }
}

fn is_kustomize_document(document: &PlainObject) -> bool {
    &*document.kind.group == "kustomize.config.k8s.io"
}

/// The folders of kustomization files, with a final `/`. A file at the top covers only itself.
fn kustomized_folders(manifests: &Manifests) -> BTreeSet<&str> {
    let files = manifests.plain_objects.iter().filter(|it| is_kustomize_document(it));
    files.filter_map(|it| folders_of(&it.file).last()).collect()
}

/// With a final `/`, the outermost first; none for a file at the top.
fn folders_of(file: &str) -> impl Iterator<Item = &str> {
    file.match_indices('/').map(|(at, _)| &file[..=at])
}

fn objects_apps<'a>(facts: &CheckInput<'a>) -> impl Iterator<Item = (&'a App, &'a ObjectsApp)> {
    facts.manifests.apps.iter().filter_map(|app| match &app.spec {
        AppSpec::Objects(objects) => Some((&**app, objects)),
        AppSpec::AppSet(_) | AppSpec::Component(_) | AppSpec::Project(_) => None,
    })
}
