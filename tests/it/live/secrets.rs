//! SOPS-encrypted files on a real cluster: they arrive decrypted, and neither the debug log nor the forge
//! contains their values, also when the cluster refuses them.

use super::support::LiveFixture;
use crate::sops_secrets::{ENCRYPTED_SECRET, IDENTITY, REFUSED_OBJECTS, assert_shows_no_secret};
use crate::support::program;

#[tokio::test]
async fn decrypted_values_reach_only_the_cluster() {
    let Some(scene) = LiveFixture::new("secrets", 1).await else { return };
    let key = scene.folder().join("key");
    std::fs::write(&key, IDENTITY).expect("a file");
    scene.write_app("db", &[]);
    let once = async |secret: &str, subject: &str| {
        scene.worktree.write("apps/db/objects/all.yaml", secret);
        let commit = scene.worktree.publish(subject);
        let mut command = program::tutti(&scene.folder());
        command.args(scene.arguments(&["run", "--once"], &["--timeout", "20"]));
        command.env("RUST_LOG", "trace").env("TUTTI_AGE_IDENTITY_FILE", &key);
        command
            .env("TUTTI_SECRET_GITEA", scene.gitea().token())
            .env("TUTTI_SECRET_HOOK", "known to both sides");
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a task");
        let (out, errors, code) = program::output_text(&output.expect("the binary runs"));
        assert!(errors.contains("TRACE"), "everything is logged: {errors}");
        assert_shows_no_secret(subject, &format!("{out}{errors}"));
        let (state, text) = scene.status(&commit, "deploy").await.expect("posted before the end");
        assert_shows_no_secret(subject, &text);
        (code, state, text)
    };
    let (code, state, text) = once(ENCRYPTED_SECRET, "two objects, encrypted").await;
    assert_eq!((code, state.as_str()), (0, "success"), "{text}");
    let secret = scene.object(scene.cluster(0), "secrets", "db").await.expect("the Secret");
    assert_eq!(secret["data"]["password"], "Y2FuYXJ5LTRmMWQtaHVudGVyMg==");
    let (code, state, text) = once(REFUSED_OBJECTS, "values that the cluster refuses").await;
    // For invalid base64 a real server returns an internal error, which counts as transient.
    assert!([3, 4].contains(&code) && state != "success", "{code} {state} {text}");
}
