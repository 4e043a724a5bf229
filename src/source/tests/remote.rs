//! A remote, its copy, and what becomes of the copy.

use std::path::{Path, PathBuf};

use super::fixture::{Fixture, open, options};
use crate::source::{ConfigRepository, Error};

fn copy_in(state: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(state.join("repository")).expect("copies");
    entries.next().expect("a copy").expect("entry").path()
}

#[tokio::test]
async fn fetches_new_and_forced_commits() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let one = fixture.commit("one", &[("a.yaml", Some("1"))]);
    let base = fixture.tip("main");
    let repository = open(&fixture.file_url(), state.path()).await;
    assert!(!repository.contains(&one).await.expect("contains"));
    assert_eq!(repository.fetch().await, Ok(one.clone()));
    assert_eq!(repository.fetch().await, Ok(one));
    let two = fixture.commit("two", &[("a.yaml", Some("2"))]);
    assert_eq!(repository.fetch().await, Ok(two.clone()));
    assert_eq!(repository.snapshot(&two).await.expect("snapshot").text("a.yaml"), Some("2"));
    let forced = fixture.commit_on("refs/heads/main", &base, "forced", &[("a.yaml", Some("3"))]);
    assert_eq!(repository.fetch().await, Ok(forced.clone()));
    assert_eq!(repository.snapshot(&forced).await.expect("snapshot").text("a.yaml"), Some("3"));
    // Only the branch that is asked for comes.
    let other = fixture.commit_on("refs/heads/other", &base, "other", &[("b.yaml", Some("1"))]);
    repository.fetch().await.expect("fetch");
    assert!(!repository.contains(&other).await.expect("contains"));
}

#[tokio::test]
async fn copy_is_reused_and_recreated_when_damaged() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let one = fixture.commit("one", &[("a.yaml", Some("1"))]);
    let first = open(&fixture.file_url(), state.path()).await;
    first.fetch().await.expect("fetch");
    drop(first);
    let second = open(&fixture.file_url(), state.path()).await;
    assert!(second.contains(&one).await.expect("contains"), "used again");
    // Objects vanish under a running process.
    let copy = copy_in(state.path());
    std::fs::remove_dir_all(copy.join("objects")).expect("damage");
    let third = open(&fixture.file_url(), state.path()).await;
    assert_eq!(third.fetch().await, Ok(one.clone()), "objects lost");
    assert_eq!(third.snapshot(&one).await.expect("snapshot").text("a.yaml"), Some("1"));
    drop((second, third));
    std::fs::write(copy.join("HEAD"), "nonsense").expect("damage");
    let fourth = open(&fixture.file_url(), state.path()).await;
    assert_eq!(fourth.fetch().await, Ok(one.clone()), "head lost");
    // One blob is lost, commit and tree are there.
    drop(fourth);
    let copy = copy_in(state.path());
    for entry in std::fs::read_dir(copy.join("objects/pack")).expect("packs") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|ending| ending == "pack") {
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("mode");
            let length = std::fs::metadata(&path).expect("metadata").len();
            let mut bytes = std::fs::read(&path).expect("read");
            let middle = usize::try_from(length / 2).expect("small");
            bytes[12..middle].fill(0);
            std::fs::write(&path, bytes).expect("damage");
        }
    }
    let fifth = open(&fixture.file_url(), state.path()).await;
    assert_eq!(fifth.fetch().await, Ok(one.clone()), "pack damaged");
    assert_eq!(fifth.snapshot(&one).await.expect("snapshot").text("a.yaml"), Some("1"));
}

#[tokio::test]
async fn default_branch_is_named_by_the_remote() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("1"))]);
    let release = fixture.commit_on("refs/heads/release", &[], "release", &[("a.yaml", Some("2"))]);
    fixture.repository.set_head("refs/heads/release").expect("head");
    assert_eq!(open(&fixture.file_url(), state.path()).await.fetch().await, Ok(release.clone()));
    assert_eq!(open(&fixture.path().display().to_string(), state.path()).await.fetch().await, Ok(release));
}

#[tokio::test]
async fn missing_branches_name_the_nearest() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("1"))]);
    let base = fixture.tip("main");
    for branch in ["zebra", "production"] {
        fixture.commit_on(&format!("refs/heads/{branch}"), &base, "x", &[]);
    }
    for url in [fixture.file_url(), fixture.path().display().to_string()] {
        let mut options = options(&url, state.path());
        options.branch = Some("producton".to_owned());
        let error = ConfigRepository::open(options).await.expect("open").fetch().await.expect_err("missing");
        let text = format!("failed to find branch `producton` in {url}; it has `production`, ");
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(matches!(error, Error::MissingBranch { .. }));
    }
}
