//! What is read from a revision and from a folder.

use super::fixture::{Fixture, open};
use crate::model::{Revision, Snapshot};
use crate::source::{Error, LARGEST_FILE, read_folder};

fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn only_visible_regular_files_are_read() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let url = fixture.path().display().to_string();
    fixture.commit(
        "one",
        &[("a.yaml", Some("a: 1\n")), (".drone.yml", Some("x")), (".gitea/w/ci.yaml", Some("x"))],
    );
    fixture.commit_mode("link.yaml", b"a.yaml", 0o120_000);
    fixture.commit_mode("module", b"", 0o160_000);
    fixture.commit_mode("bin/run", b"#!/bin/sh\n", 0o100_755);
    let tip = fixture.commit_mode("picture.png", &vec![0; LARGEST_FILE + 1], 0o100_644);
    let repository = open(&url, state.path()).await;
    let snapshot = repository.snapshot(&tip).await.expect("snapshot");
    assert_eq!(paths(&snapshot), ["a.yaml", "bin/run"]);
    assert_eq!(snapshot.text("a.yaml"), Some("a: 1\n"));
    assert!(repository.contains(&tip).await.expect("contains"));
    assert!(
        !repository
            .contains(&Revision::from("0123456789012345678901234567890123456789"))
            .await
            .expect("contains")
    );
    // A file that becomes a link, seen by the incremental read.
    let tip = fixture.commit_mode("a.yaml", b"bin/run", 0o120_000);
    assert_eq!(paths(&repository.snapshot(&tip).await.expect("snapshot")), ["bin/run"]);
}

#[tokio::test]
async fn a_large_manifest_is_an_error() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let tip = fixture.commit_mode("apps/big.yaml", &vec![b'#'; LARGEST_FILE + 1], 0o100_644);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let error = repository.snapshot(&tip).await.expect_err("too large");
    let expected =
        Error::FileTooLarge { path: "apps/big.yaml".to_owned(), size: LARGEST_FILE + 1, limit: LARGEST_FILE };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_folder_reads_like_its_commit() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let write = |path: &str, text: &str| {
        let path = fixture.path().join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(path, text).expect("write");
    };
    write("a.yaml", "a: 1\n");
    write("deep/er/b.yaml.j2", "b: {{ b }}\n");
    write(".editorconfig", "root = true\n");
    write(".gitignore", "ignored/\n*.log\n");
    write("ignored/c.yaml", "c: 1\n");
    write("run.log", "x");
    std::os::unix::fs::symlink("a.yaml", fixture.path().join("link.yaml")).expect("link");
    let tip =
        fixture.commit("same", &[("a.yaml", Some("a: 1\n")), ("deep/er/b.yaml.j2", Some("b: {{ b }}\n"))]);
    let folder = read_folder(fixture.path()).expect("folder");
    assert!(folder.revision.is_worktree());
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    assert_eq!(folder.files, repository.snapshot(&tip).await.expect("snapshot").files);
    // A folder inside says the same about its part.
    assert_eq!(paths(&read_folder(&fixture.path().join("deep")).expect("folder")), ["er/b.yaml.j2"]);
    assert!(matches!(read_folder(&fixture.path().join("nowhere")), Err(Error::Folder { .. })));
}
