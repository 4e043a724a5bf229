//! `examples/helm-repo` has no mistakes, renders to the golden objects, and rolls out on embedded clusters by the real binary.
//!
//! `UPDATE_GOLDEN=1` rewrites `tests/golden-charts`.

use std::fs;
use std::path::{Path, PathBuf};

use tutti::chart::{ChartRenderLimits, ChartService};
use tutti::fleet::assemble;
use tutti::manifest;
use tutti::model::Snapshot;
use tutti::render::{FleetRenderer, RenderCache};

use super::support::{helm_programs, library_renderer};
use crate::support::program;
use crate::support::repository::TestRepository;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the example, by relative path.
fn texts() -> Vec<(String, String)> {
    let example = root().join("examples/helm-repo");
    let (mut found, mut folders) = (Vec::new(), vec![example.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&example).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn renders_to_the_golden_files() {
    let Some(helm) = helm_programs() else { return };
    let texts = texts();
    let snapshot = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    assert_eq!(fleet.diagnostics, []);
    let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
    let renders = FleetRenderer::new(&fleet, &snapshot, &service).render_all(&mut RenderCache::default());
    assert_eq!(renders.results().count(), 2);
    for (target, (_, render)) in renders.iter() {
        let rendered = render.as_ref().unwrap_or_else(|mistakes| panic!("{target}: {mistakes:#?}"));
        let documents = rendered.objects.iter().map(|object| {
            format!(
                "---\n# from {}\n{}",
                object.source,
                serde_yaml::to_string(&object.body.fields()).unwrap()
            )
        });
        check_golden(
            &root().join(format!("tests/golden-charts/{}.yaml", target.cluster)),
            &documents.collect::<String>(),
        );
    }
}

fn check_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(text == expected, "{} differs (UPDATE_GOLDEN=1 writes it anew)", path.display());
}

#[test]
fn rolls_out_on_embedded_clusters() {
    let Some(helm) = helm_programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let repository = TestRepository::at(&folder.path().join("config"));
    let texts = texts();
    let changes: Vec<_> = texts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    repository.commit("Everything", &changes);
    let output = program::tutti(folder.path())
        .env("TUTTI_HELM_RENDER", &helm.helm_render)
        .args(["run", "--once", "--repo", "config", "--cluster", "*=sandbox", "--timeout", "120"])
        .output()
        .expect("the binary runs");
    let (out, err, code) = program::output_text(&output);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.matches("5/5").count(), 2, "{out}");
    assert!(out.contains("v3/v4"), "{out}");
}
