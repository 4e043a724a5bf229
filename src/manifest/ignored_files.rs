//! Files that `spec.ignore` of tutti.yaml excludes: YAML of other tools in the config repository.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use globset::Glob;

use super::hub::Hub;
use super::kinds::policy::FOLDER;
use super::kinds::{self, DocumentIdentity, ManifestKind};
use super::read::ReadContext;
use super::yaml::{self, YamlNode};
use super::{codes, find, possible_kinds};
use crate::model::glob::{self, Globs, SeparatorMatching};
use crate::model::{Diagnostic, DiagnosticScope, Location, Snapshot};

/// Patterns at most: each is matched against all files.
pub const MOST_PATTERNS: usize = 256;

/// The file with the patterns. It is read before any other file.
pub const INSTANCE_FILE: &str = "tutti.yaml";

/// The patterns of files that are not read as manifests.
#[derive(Debug, Default)]
pub struct IgnoredFiles {
    globs: Globs,
    /// Each with where it stands.
    patterns: Vec<(String, Location)>,
}

impl IgnoredFiles {
    /// Reads the valid patterns; the reader of the instance reports mistakes.
    pub fn of(snapshot: &Snapshot) -> Self {
        let Some(text) = snapshot.text(INSTANCE_FILE).filter(|text| text.contains("ignore")) else {
            return Self::default();
        };
        let stream = yaml::read(INSTANCE_FILE, text);
        let is_instance = |root: &&YamlNode| {
            root.get("kind").and_then(YamlNode::as_str) == Some(ManifestKind::Instance.name())
        };
        let instance = stream.documents.iter().map(|document| &document.root).find(is_instance);
        let list = instance.and_then(|root| root.find(&["spec", "ignore"])?.as_seq());
        let (mut globs, mut patterns) = (Vec::new(), Vec::new());
        for node in list.into_iter().flatten().take(MOST_PATTERNS) {
            let Some(pattern) = node.as_str() else { continue };
            globs.extend(globs_of(pattern).into_iter().flatten());
            patterns.push((pattern.to_owned(), node.location(INSTANCE_FILE)));
        }
        Self { globs: Globs::of(&globs), patterns }
    }

    /// Whether a file is ignored. Policies are never ignored.
    pub fn fits(&self, path: &str) -> bool {
        path != INSTANCE_FILE && !is_policy_path(path) && self.globs.fits(path)
    }

    /// Whether a file is looked into for manifests.
    pub fn is_candidate(&self, path: &str) -> bool {
        find::is_candidate(path) && !self.fits(path)
    }

    /// An error for each pattern that matches a manifest at its usual path: otherwise rings and project limits would vanish silently, and
    /// apps would be removed.
    pub fn mistakes(&self, snapshot: &Snapshot, hub: &Hub) -> Vec<Diagnostic> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        let candidates =
            snapshot.files.keys().filter(|path| find::is_candidate(path) && *path != INSTANCE_FILE);
        let ignored = candidates.filter(|path| {
            let is_usual = || find::is_manifest_path(path) && has_own_manifest(snapshot, path, hub);
            self.globs.fits(path.as_str()) && (is_policy_path(path) || is_usual())
        });
        let each =
            LazyCell::new(|| self.patterns.iter().map(|it| (single_globs(&it.0), it)).collect::<Vec<_>>());
        let mut by_pattern: BTreeMap<&(String, Location), Vec<&str>> = BTreeMap::new();
        for path in ignored {
            if let Some((_, pattern)) = each.iter().find(|(globs, _)| globs.fits(path)) {
                by_pattern.entry(*pattern).or_default().push(path);
            }
        }
        let mistake = |((pattern, place), files): (&(String, Location), Vec<&str>)| {
            let more = match files.len() {
                1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            let first = files.first().copied().unwrap_or_default();
            let message = format!("the pattern {pattern:?} leaves out the manifest {first}{more}");
            let help = "narrow the pattern; to remove a manifest, delete its file";
            // Below `apps/` only apps are affected, which may be new.
            let is_of_apps = files.iter().all(|file| find::is_below_apps(file));
            let scope = if is_of_apps {
                DiagnosticScope::File(INSTANCE_FILE.to_owned())
            } else {
                DiagnosticScope::Instance
            };
            let error = Diagnostic::error(codes::BAD_PATTERN, message, scope);
            error.at(place.clone()).in_path("spec.ignore").help(help)
        };
        by_pattern.into_iter().map(mistake).collect()
    }
}

fn is_policy_path(path: &str) -> bool {
    path.starts_with(FOLDER) || path == FOLDER.trim_end_matches('/')
}

/// Whether a file holds a manifest of tutti, or may hold one that others depend on.
fn has_own_manifest(snapshot: &Snapshot, path: &str, hub: &Hub) -> bool {
    let Some(text) = snapshot.text(path) else { return true };
    let documents = yaml::read(path, text).documents;
    let mut reading = ReadContext::new(path, DiagnosticScope::Instance);
    let mut is_native = |root: &YamlNode| {
        matches!(kinds::identify(root, hub, &mut reading), Some(DocumentIdentity::Native(_)))
    };
    documents.iter().any(|document| is_native(&document.root))
        || !possible_kinds::possible_kinds_in_text(text, &[]).is_empty()
}

/// Parses a pattern of paths from the configured folder. The pattern of a folder matches everything in it.
pub fn globs_of(pattern: &str) -> Result<[Glob; 2], String> {
    let pattern = trim_pattern(pattern);
    let glob = |pattern: &str| glob::parse(pattern, SeparatorMatching::Literal);
    let globs = [glob(pattern)?, glob(&format!("{pattern}/**"))?];
    glob::compile(pattern, SeparatorMatching::Literal)?;
    Ok(globs)
}

fn single_globs(pattern: &str) -> Globs {
    globs_of(pattern).map(|globs| Globs::of(&globs)).unwrap_or_default()
}

/// The pattern without redundant parts; empty for the configured folder.
pub fn trim_pattern(pattern: &str) -> &str {
    match pattern.trim_start_matches("./").trim_end_matches('/') {
        "." => "",
        trimmed => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn patterns_fit_files_and_folders() {
        let check = |patterns: &str, path: &str, expected: bool| {
            let text = format!("kind: Instance\nspec: {{ignore: {patterns}}}\n");
            let ignored = IgnoredFiles::of(&Snapshot::of_texts([(INSTANCE_FILE, text.as_str())]));
            assert_eq!(ignored.fits(path), expected, "{patterns} {path}");
        };
        check("[docs]", "docs/a/b.yaml", true);
        check("[docs/]", "docs/a.yaml", true);
        check("[docs]", "apps/docs/a.yaml", false);
        check("['**/kustomization.yaml']", "apps/a/kustomization.yaml", true);
        check("['**/kustomization.yaml']", "kustomization.yaml", true);
        check("['apps/*/values*.yaml']", "apps/a/values-prod.yaml", true);
        check("['apps/*/values*.yaml']", "apps/a/b/values.yaml", false);
        check("['**']", "tutti.yaml", false);
        check("['**']", "policies/a.yaml", false);
        check("[policies]", "policies", false);
        check("[policies]", "apps/a/policies/a.yaml", false);
        check("[]", "a.yaml", false);
    }

    #[test]
    fn manifest_in_its_usual_place_is_not_ignored() {
        let check = |pattern: &str, path: &str, text: &str, expected: &[&str]| {
            let own = format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: a}}\nspec: {{ignore: ['{pattern}']}}\n"
            );
            let manifests =
                manifest::read(&Snapshot::of_texts([(INSTANCE_FILE, own.as_str()), (path, text)]));
            let found: Vec<String> =
                manifests.diagnostics.iter().map(|it| format!("{} {}", it.code, it.message)).collect();
            assert_eq!(found, expected, "{pattern} {path}");
            let is_of_all = |it: &Diagnostic| it.scope == DiagnosticScope::Instance;
            assert!(path.starts_with("apps/") || manifests.diagnostics.iter().all(is_of_all));
        };
        let rings =
            "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: []}\n";
        let component = "apiVersion: component.luojilab.com/v1alpha1\nkind: Component\nmetadata: {name: a}\n";
        let argo = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: shop}\n";
        let error = "E1209 the pattern \"*.yaml\" leaves out the manifest rings.yaml";
        check("*.yaml", "rings.yaml", rings, &[error]);
        check("*.yaml", "rings.yaml", "kind: Rings\nspec: [", &[error]);
        let error = "E1209 the pattern \"**/*.yaml\" leaves out the manifest apps/a/app.yaml";
        check("**/*.yaml", "apps/a/app.yaml", component, &[error]);
        check("projects", "projects/shop.yaml", argo, &[]);
        for pattern in ["policies", "policies/*", "policies/a.yaml"] {
            let error = format!("E1209 the pattern {pattern:?} leaves out the manifest policies/a.yaml");
            let window = "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {name: night}\nspec: {cron: '0 1 * * *', duration: 1h, action: deny}\n";
            let manifests = |text: &str| {
                let own = format!(
                    "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: a}}\nspec: {{ignore: ['{pattern}']}}\n"
                );
                manifest::read(&Snapshot::of_texts([
                    (INSTANCE_FILE, own.as_str()),
                    ("policies/a.yaml", text),
                ]))
            };
            for text in [window, "a: [", "kind: Other\n"] {
                let told = manifests(text).diagnostics;
                assert!(
                    told.iter().any(|it| format!("{} {}", it.code, it.message) == error),
                    "{text} {told:?}"
                );
            }
            assert_eq!(manifests("a: [").policies.len(), 1);
        }
        check("docs", "docs/rings.yaml", rings, &[]);
        for pattern in [".", "./", "././", ""] {
            check(pattern, "docs/rings.txt", rings, &["E1209 the pattern is empty"]);
        }
    }
}
