//! Layers through the real binary: patches, origins of fields, copied layer files.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::manifests::{cluster, component};
use crate::support::program::run;

const PATCH_FILE: &str = "templates/base/patches/side.yaml";

/// Two apps on one cluster.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let apps = ["web", "api"]
        .map(|name| (format!("apps/{name}/app.yaml"), component(name, "registry.example.com/x:1")));
    let mut all: Vec<(&str, &str)> = apps.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let bj1 = cluster("bj1");
    all.push(("clusters/bj1.yaml", &bj1));
    all.extend(files);
    for (path, text) in all {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
    fs::write(path, text).expect("write");
}

#[test]
fn unmatched_patch_is_reported_once() {
    let patch = |name: &str| {
        format!("target: {{kind: Deployment, name: {name}}}\nmerge: {{spec: {{paused: true}}}}\n")
    };
    let folder = repository(&[(PATCH_FILE, &patch("web"))]);
    let (output, errors, code) = run(folder.path(), &["lint"]);
    assert_eq!(code, 0, "{output}{errors}");
    let (output, _, _) = run(folder.path(), &["render"]);
    assert_eq!(output.matches("paused: true").count(), 1, "{output}");
    write(folder.path(), PATCH_FILE, &patch("wbe"));
    let (_, errors, code) = run(folder.path(), &["lint"]);
    assert_eq!(code, 2, "{errors}");
    assert_eq!(
        errors.matches("error[E3062]: this patch fits no object of any app that has it").count(),
        1,
        "{errors}"
    );
    assert!(errors.contains(&format!("{PATCH_FILE}:1:1")), "{errors}");
}

#[test]
fn trace_lists_the_objects_of_a_line() {
    let own = "# of one app\nreplicas: 4\n";
    let folder = repository(&[
        ("apps/web/layer/values.yaml", own),
        ("templates/base/values.yaml", &shipped_file("base/values.yaml")),
    ]);
    let traced = |place: &str| run(folder.path(), &["trace", place]).0;
    assert_eq!(traced("apps/web/layer/values.yaml:1"), "apps/web/layer/values.yaml:1 reaches no object\n");
    let of_web = traced("apps/web/layer/values.yaml:2");
    assert!(of_web.contains("Deployment default/web"), "{of_web}");
    assert!(!of_web.contains("Service") && !of_web.contains("api"), "{of_web}");
    let of_service = traced("shipped/templates/base/service.yaml.j2");
    assert_eq!(of_service.matches("Service default/").count(), 2, "{of_service}");
    assert!(!of_service.contains("Deployment"), "{of_service}");
    let of_cluster = traced("templates/base/values.yaml");
    assert!(
        of_cluster.contains("Deployment default/web") && of_cluster.contains("Deployment default/api"),
        "{of_cluster}"
    );
}

fn shipped_file(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render/shipped").join(path);
    fs::read_to_string(file).expect("a shipped file")
}

#[test]
fn copied_layer_files_render_the_same() {
    let folder = repository(&[]);
    let render = || run(folder.path(), &["render", "-o", "json"]).0;
    let before = render();
    let (output, errors, code) = run(folder.path(), &["templates", "eject", "workload/deployment"]);
    assert_eq!((output.lines().count(), code), (2, 0), "{output}{errors}");
    assert_eq!(
        fs::read_to_string(folder.path().join("templates/workload/deployment/values.yaml")).expect("it"),
        shipped_file("workload/deployment/values.yaml")
    );
    assert_eq!(render(), before);
    let (_, errors, code) = run(folder.path(), &["templates", "eject"]);
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("these files exist already: templates/workload/deployment/deployment.yaml.j2"),
        "{errors}"
    );
    let (_, _, code) = run(folder.path(), &["templates", "eject", "--force"]);
    assert_eq!((code, render()), (0, before));
    let (_, errors, code) = run(folder.path(), &["templates", "eject", "language/cobol"]);
    assert_eq!(code, 2);
    assert!(errors.contains("nothing of the name language/cobol is shipped"), "{errors}");
}
