//! What a process leaves on disk and in its log, and a second process beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::fixture::HostileFixture;
use crate::support::manifests::{INSTANCE, cluster, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

#[tokio::test(flavor = "multi_thread")]
async fn second_process_on_a_state_folder_refuses_to_start() {
    let mut arena = HostileFixture::new().await;
    let path = arena.repository.path().display().to_string();
    let address = format!("file://{path}");
    arena.start_process_with_repository(&address, &[], |_| {});
    arena.until_object_exists("Namespace", "shop").await;
    let once = |repository: &str| {
        program::run(arena.folder.path(), &["run", "--once", "--repo", repository, "--kubeconfigs", "."])
    };
    // A local repository is read in place: there is nothing to share.
    let (_, errors, code) = once(&path);
    assert_eq!(code, 0, "{errors}");
    let (_, errors, code) = once(&address);
    assert!(errors.contains("is in use by process ") && errors.contains("--state DIR"), "{errors}");
    assert_eq!(code, 2);
    let state = arena.folder.path().join(".state/tutti");
    let mode = fs::metadata(state).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_as_json_is_json() {
    let mut arena = HostileFixture::start(&["--log-json", "-v"]).await;
    let broken =
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: broken}\nspec: {files: 1}\n";
    arena.repository.commit("Break", &[("apps/broken/app.yaml", Some(broken))]);
    arena.until_logged("1 error").await;
    arena.check_healthy_app().await;
    for line in arena.log().lines() {
        let read: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(read["fields"]["message"].is_string() && read["level"].is_string(), "{line}");
    }
}

/// For every mistake, in a file or in a template.
#[test]
fn values_of_secrets_are_in_no_excerpt() {
    let (app, bj1) = (objects_app("default", "db"), cluster("bj1"));
    let secret =
        |data: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData:\n{data}");
    let cases = [
        ("twice", "  password: hunter2\n  password: hunter2\n"),
        ("indent", "  user: hunter2\n password: hunter2\n"),
        ("tab", "  user: a\n\tpassword: hunter2\n"),
        ("block", "  key: |\n    hunter2\n   hunter2\n"),
        ("quote", "  password: \"hunter2\n"),
        ("number", "  1: {hunter2: hunter2}\n"),
        ("alias", "  password: *hunter2\n"),
        ("near alias", "  user: &hunter2 a\n  password: *hunter3\n"),
        ("tag", "  password: !hunter2\n"),
        ("long tag", "  password: !!hunter2\n"),
        ("fitting", "  password: !!int hunter2\n"),
        ("colon", "  key: |\n    a: b\n   hunter2: b\n"),
        ("word", "  key: a\n hunter2:b\n"),
    ];
    for (name, data) in cases {
        for file in ["db.yaml", "db.yaml.j2"] {
            let path = format!("apps/db/objects/{file}");
            let repository = TestRepository::empty();
            let app = app.replace("objects/*.yaml", &format!("objects/{file}"));
            for (path, text) in [
                ("tutti.yaml", INSTANCE),
                ("clusters/bj1.yaml", &bj1),
                ("apps/db/app.yaml", &app),
                (&path, &secret(data)),
            ] {
                repository.write(path, text);
            }
            let (output, errors, code) = program::run(repository.path(), &["lint"]);
            assert!(!(output.clone() + &errors).contains("hunter2"), "{name} {file}: {output}{errors}");
            assert_eq!(code, 2, "{name} {file}: {output}{errors}");
        }
    }
}
