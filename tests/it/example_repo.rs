//! `examples/repo` → `tests/golden/<cluster>/<namespace>.<app>.yaml`.
//!
//! `UPDATE_GOLDEN=1` writes the files; `git diff` then shows the changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tutti::fleet::{Fleet, assemble};
use tutti::model::{Diagnostic, NoCharts, RenderedTarget, Snapshot};
use tutti::render::{render, unit_contents};
use tutti::{manifest, schedule};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files of a folder, by relative path.
fn folder_texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn snapshot() -> Snapshot {
    let texts = folder_texts(&root().join("examples/repo"));
    Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

fn fleet(snapshot: &Snapshot) -> Fleet {
    assemble(manifest::read(snapshot), snapshot)
}

fn render_all(fleet: &Fleet, snapshot: &Snapshot) -> Vec<RenderedTarget> {
    let render = |target| {
        render(fleet, snapshot, &NoCharts, target).unwrap_or_else(|mistakes| {
            panic!("{target}:\n{}", mistakes.iter().map(diagnostic_text).collect::<Vec<_>>().join("\n"))
        })
    };
    fleet.targets().iter().map(render).collect()
}

fn diagnostic_text(diagnostic: &Diagnostic) -> String {
    format!("{diagnostic}\n  help: {}", diagnostic.help.as_deref().unwrap_or("-"))
}

fn rendered_yaml(rendered: &RenderedTarget) -> String {
    let documents = rendered.objects.iter().map(|object| {
        let origin = format!("# {} from {}\n# {}\n", object.id, object.source, object.hash);
        format!("---\n{origin}{}", serde_yaml::to_string(&object.body.fields()).unwrap())
    });
    documents.collect()
}

fn golden_files(rendered: &[RenderedTarget]) -> BTreeMap<String, String> {
    let name = |one: &RenderedTarget| format!("{}/{}.{}.yaml", one.cluster, one.app.namespace, one.app.name);
    rendered.iter().map(|one| (name(one), rendered_yaml(one))).collect()
}

#[test]
fn example_has_no_mistakes_or_warnings() {
    let fleet = fleet(&snapshot());
    assert!(fleet.is_valid());
    assert_eq!(fleet.diagnostics.iter().map(diagnostic_text).collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(fleet.targets().len(), 12);
}

#[test]
fn example_renders_to_the_golden_files() {
    let snapshot = snapshot();
    let rendered = golden_files(&render_all(&fleet(&snapshot), &snapshot));
    let golden = root().join("tests/golden");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        if golden.exists() {
            fs::remove_dir_all(&golden).unwrap();
        }
        for (name, text) in &rendered {
            let path = golden.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        return;
    }
    let expected = folder_texts(&golden);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&rendered), names(&expected), "UPDATE_GOLDEN=1 writes them anew");
    for (name, text) in &rendered {
        let difference = similar::TextDiff::from_lines(&expected[name], text).unified_diff().to_string();
        assert!(difference.is_empty(), "{name} differs (UPDATE_GOLDEN=1 writes it anew):\n{difference}");
    }
}

/// Content hashes of each unit without its pod counts: a new hash causes a rollout.
fn content_hashes() -> BTreeMap<String, String> {
    let snapshot = snapshot();
    let mut contents = BTreeMap::new();
    for rendered in &render_all(&fleet(&snapshot), &snapshot) {
        for (pod_set, content) in unit_contents(rendered) {
            let pod_set = if pod_set.is_empty() { "-" } else { &*pod_set };
            let unit = format!("{} {} {pod_set}", rendered.cluster, rendered.app);
            contents.insert(unit, content.digest.to_string());
        }
    }
    contents
}

/// Before an upgrade of tutti, users must know which apps it rolls out.
#[test]
fn changelog_lists_changed_templates() {
    let path = root().join("tests/golden-release.txt");
    let now = content_hashes();
    if std::env::var_os("UPDATE_RELEASE").is_some() {
        let lines: Vec<String> = now.iter().map(|(unit, digest)| format!("{unit} {digest}\n")).collect();
        fs::write(path, lines.concat()).unwrap();
        return;
    }
    let released = fs::read_to_string(path).unwrap();
    let released = released.lines().map(|line| line.rsplit_once(' ').unwrap());
    let changed: Vec<&str> = released
        .filter(|(unit, digest)| now.get(*unit).is_none_or(|now| now != digest))
        .map(|it| it.0)
        .collect();
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let unreleased = changelog.split("\n## ").nth(1).unwrap();
    assert!(
        unreleased.starts_with("Unreleased\n"),
        "the first part of CHANGELOG.md is of what is not released"
    );
    let told = unreleased.split("\n### ").find_map(|part| part.strip_prefix("Starts rollouts\n"));
    assert_eq!(
        told.is_some_and(|told| !told.trim().is_empty()),
        !changed.is_empty(),
        "CHANGELOG.md has a part `### Starts rollouts`, which names the templates that changed since the last release, if and \
         only if the content of these units is another: {changed:?}. The commit of a release runs this with UPDATE_RELEASE=1"
    );
}

#[test]
fn rendering_is_deterministic() {
    let once = || {
        let snapshot = snapshot();
        golden_files(&render_all(&fleet(&snapshot), &snapshot))
    };
    let first = once();
    for _ in 1..10 {
        assert_eq!(once(), first);
    }
}

#[test]
fn example_app_set_splits_into_its_pod_sets() {
    let snapshot = snapshot();
    let fleet = fleet(&snapshot);
    let assignment = schedule::schedule(&fleet);
    let pod_sets = assignment.targets.iter().filter(|(target, _)| &*target.app.name == "bbcc");
    let told: Vec<String> = pod_sets
        .flat_map(|(target, pod_sets)| pod_sets.iter().map(move |pod_set| (target, pod_set)))
        .map(|(target, pod_set)| {
            let (replicas, version) = (pod_set.replicas.unwrap(), pod_set.version.as_deref().unwrap());
            format!("{} {} {replicas} {version} {}", target.cluster, pod_set.name, pod_set.group)
        })
        .collect();
    assert_eq!(
        told,
        [
            "bj-prod bbcc-gz01b-canary 1 v4 canary",
            "bj-prod bbcc-gz01b-blue 2 v3 blue",
            "bj-prod bbcc-gz01b-green 2 v3 green",
            "gz-prod bbcc-gz01a-canary 1 v4 canary",
            "gz-prod bbcc-gz01a-blue 2 v3 blue",
            "gz-prod bbcc-gz01a-green 2 v3 green",
        ]
    );
}
