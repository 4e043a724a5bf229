//! Samples from the systems before tutti, unchanged: `lint` is clean and `render` is golden. An AppSet that needs waves
//! is installed, and then not changed until waves are built.
//!
//! `UPDATE_GOLDEN=1` writes `tests/golden-seeds`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program;
use crate::support::repository::TestRepository;

const APPSET: &str = include_str!("../fixtures/seeds/appset.yaml");
const COMPONENT: &str = include_str!("../fixtures/seeds/component.yaml");

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The example with the chart, with the samples as its apps.
fn write_sample_repository(folder: &Path) {
    let example = root().join("examples/helm-repo");
    let mut folders = vec![example.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let to = folder.join(path.strip_prefix(&example).expect("inside"));
            fs::create_dir_all(to.parent().expect("a folder")).expect("make a folder");
            fs::copy(&path, to).expect("copy");
        }
    }
    fs::remove_dir_all(folder.join("templates")).expect("a folder");
    fs::write(folder.join("apps/bbcc/app.yaml"), APPSET).expect("write");
    fs::create_dir_all(folder.join("apps/nginx")).expect("make a folder");
    fs::write(folder.join("apps/nginx/app.yaml"), COMPONENT).expect("write");
}

/// Helm's programs, or `None` and a printed reason.
fn helm_programs() -> Option<::live::HelmPrograms> {
    ::live::HelmPrograms::from_env()
        .expect("the programs of charts")
        .inspect_err(|why| eprintln!("{why}"))
        .ok()
}

#[test]
fn the_samples_are_linted_rendered_and_rolled_out() {
    let Some(helm) = helm_programs() else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    write_sample_repository(&folder.path().join("config"));
    let run = |arguments: &[&str]| {
        let mut command = program::tutti(folder.path());
        let output = command.env("TUTTI_HELM_RENDER", &helm.helm_render).args(arguments).output();
        program::output_text(&output.expect("the binary runs"))
    };
    // A note says that no cluster was read.
    let clean = |errors: &str| !errors.contains("error") && !errors.contains("warning");
    let (out, err, code) = run(&["lint", "--strict", "config"]);
    assert!(clean(&err) && code == 0, "{out}{err}");
    assert_eq!(out, "2 apps on 2 clusters render to 22 objects: no errors\n");
    for cluster in ["tcc-bj4-dks-test-01", "tcc-bj5-dks-test-01"] {
        let (out, err, code) = run(&["render", "--repo", "config", "--cluster", cluster]);
        assert!(clean(&err) && code == 0, "{out}{err}");
        check_golden(&root().join(format!("tests/golden-seeds/{cluster}.yaml")), &out);
    }
    commit_folder(&folder.path().join("config"));
    let (out, err, code) =
        run(&["run", "--once", "--repo", "config", "--cluster", "*=sandbox", "--timeout", "120"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.matches("5/5").count(), 2, "{out}");
}

fn commit_folder(folder: &Path) {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside").to_str().expect("UTF-8").to_owned();
                files.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    let changes: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    TestRepository::at(folder).commit("Everything", &changes);
}

fn check_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        fs::write(path, text).expect("write");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(text == expected, "{} differs (UPDATE_GOLDEN=1 writes it anew)", path.display());
}
