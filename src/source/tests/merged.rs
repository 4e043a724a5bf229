//! Pull requests: a reference fetched by name, and a head merged into its base in memory.

use std::collections::BTreeMap;
use std::path::Path;

use super::fixture::{Change, Fixture, open};
use crate::model::Revision;
use crate::source::{ConfigRepository, Error, MergePreview};

const HEAD: &str = "refs/heads/feature";

struct Branches {
    fixture: Fixture,
    base: Revision,
    head: Revision,
}

/// Two branches from one commit, each with the commits that are given.
fn branches(first: &[Change<'_>], base: &[&[Change<'_>]], head: &[&[Change<'_>]]) -> Branches {
    let fixture = Fixture::new();
    fixture.commit("first", first);
    let first = fixture.tip("main");
    let mut parents = first.clone();
    let mut tip = Revision::from(first[0].to_string().as_str());
    for (number, changes) in head.iter().enumerate() {
        tip = fixture.commit_on(HEAD, &parents, &format!("head {number}"), changes);
        parents = fixture.tip("feature");
    }
    let mut main = Revision::from(first[0].to_string().as_str());
    for (number, changes) in base.iter().enumerate() {
        main = fixture.commit(&format!("base {number}"), changes);
    }
    Branches { fixture, base: main, head: tip }
}

impl Branches {
    async fn open(&self) -> ConfigRepository {
        let state = tempfile::tempdir().expect("state");
        open(&self.fixture.path().display().to_string(), state.path()).await
    }

    async fn merged(&self) -> Result<MergePreview, Error> {
        self.open().await.preview_merge(&self.base, &self.head).await
    }

    fn subject(&self, revision: &Revision) -> String {
        let id = git2::Oid::from_str(revision.as_str()).expect("an id");
        let commit = self.fixture.repository.find_commit(id).expect("a commit");
        commit.summary().expect("UTF-8").expect("a subject").to_owned()
    }
}

/// The texts, and the subjects of the commits that changed them last.
#[track_caller]
fn check(branches: &Branches, merged: &MergePreview, changed: &[&str], expected: &[(&str, &str, &str)]) {
    let found: Vec<(&str, &str, String)> = merged
        .snapshot
        .files
        .keys()
        .map(|path| {
            let text = merged.snapshot.text(path).expect("a text");
            (path.as_str(), text, branches.subject(merged.snapshot.last_change([path.as_str()])))
        })
        .collect();
    let expected: Vec<(&str, &str, String)> =
        expected.iter().map(|(path, text, subject)| (*path, *text, (*subject).to_owned())).collect();
    assert_eq!(found, expected);
    assert_eq!(merged.changed, changed);
    assert_eq!(merged.snapshot.revision, branches.head);
}

#[tokio::test]
async fn fast_forward_merge_equals_the_head() {
    let branches = branches(
        &[("a/x.yaml", Some("1")), ("a/y.yaml", Some("1"))],
        &[],
        &[&[("a/x.yaml", Some("2"))], &[("b/z.yaml", Some("1"))]],
    );
    let merged = branches.merged().await.expect("merged");
    let expected = [("a/x.yaml", "2", "head 0"), ("a/y.yaml", "1", "first"), ("b/z.yaml", "1", "head 1")];
    check(&branches, &merged, &["a/x.yaml", "b/z.yaml"], &expected);
}

#[tokio::test]
async fn both_sides_are_kept_with_their_own_commits() {
    let branches = branches(
        &[("a/x.yaml", Some("1")), ("a/y.yaml", Some("1")), ("c.yaml", Some("1"))],
        &[&[("a/y.yaml", Some("2")), ("c.yaml", None)]],
        &[&[("a/x.yaml", Some("3"))], &[("a/x.yaml", Some("2"))]],
    );
    let merged = branches.merged().await.expect("merged");
    let expected = [("a/x.yaml", "2", "head 1"), ("a/y.yaml", "2", "base 0")];
    check(&branches, &merged, &["a/x.yaml"], &expected);
    // The folder was changed by both: by the head last.
    assert_eq!(branches.subject(merged.snapshot.last_change(["a/"])), "head 1");
}

#[tokio::test]
async fn file_changed_by_both_is_merged_by_lines() {
    let lines = |first: &str, last: &str| format!("{first}\nb\nc\nd\ne\nf\n{last}\n");
    let (one, two, three, both) = (lines("a", "g"), lines("A", "g"), lines("a", "G"), lines("A", "G"));
    let branches =
        branches(&[("x.yaml", Some(&one))], &[&[("x.yaml", Some(&two))]], &[&[("x.yaml", Some(&three))]]);
    let merged = branches.merged().await.expect("merged");
    check(&branches, &merged, &["x.yaml"], &[("x.yaml", &both, "head 0")]);
}

#[tokio::test]
async fn renamed_file_takes_change_of_other_side() {
    let lines = |last: &str| format!("a\nb\nc\nd\ne\nf\n{last}\n");
    let (one, two) = (lines("g"), lines("G"));
    let branches = branches(
        &[("old.yaml", Some(&one))],
        &[&[("old.yaml", None), ("new.yaml", Some(&one))]],
        &[&[("old.yaml", Some(&two))]],
    );
    let merged = branches.merged().await.expect("merged");
    check(&branches, &merged, &["new.yaml"], &[("new.yaml", &two, "head 0")]);
}

#[tokio::test]
async fn conflicts_are_named() {
    let branches = branches(
        &[("a.yaml", Some("1")), ("b.yaml", Some("1")), ("c.yaml", Some("1"))],
        &[&[("a.yaml", Some("2")), ("b.yaml", None), ("c.yaml", Some("2"))]],
        &[&[("a.yaml", Some("3")), ("b.yaml", Some("3")), ("c.yaml", Some("2"))]],
    );
    let error = branches.merged().await.expect_err("a conflict");
    let (head, base) = (branches.head.short(), branches.base.short());
    assert_eq!(error.to_string(), format!("failed to merge {head} into {base}: conflicts in a.yaml, b.yaml"));
    assert!(error.help().is_some_and(|help| help.contains("rebase")));
}

#[tokio::test]
async fn histories_without_a_common_commit_are_refused() {
    let mut branches = branches(&[("a.yaml", Some("1"))], &[], &[&[("a.yaml", Some("2"))]]);
    branches.head = branches.fixture.commit_on("refs/heads/alone", &[], "alone", &[("b.yaml", Some("1"))]);
    let error = branches.merged().await.expect_err("unrelated");
    assert!(matches!(error, Error::NoCommonCommit { .. }), "{error}");
}

/// All files below a folder with their content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => _ = found.insert(path.display().to_string(), std::fs::read(&path).expect("a file")),
            }
        }
    }
    found
}

#[tokio::test]
async fn nothing_is_written() {
    let lines = |first: &str, last: &str| format!("{first}\nb\nc\nd\ne\nf\n{last}\n");
    let (one, two, three) = (lines("a", "g"), lines("A", "g"), lines("a", "G"));
    let branches = branches(
        &[("x.yaml", Some(&one)), ("y.yaml", Some("1"))],
        &[&[("x.yaml", Some(&two))]],
        &[&[("x.yaml", Some(&three)), ("z/new.yaml", Some("1"))]],
    );
    let repository = branches.open().await;
    repository.snapshot(&branches.base).await.expect("a snapshot");
    let before = files(branches.fixture.path());
    let merged = repository.preview_merge(&branches.base, &branches.head).await.expect("merged");
    assert_eq!(merged.changed, ["x.yaml", "z/new.yaml"]);
    assert_eq!(files(branches.fixture.path()), before);
    // What was read last is still the base: the next push costs its own commits.
    let again = repository.snapshot(&branches.base).await.expect("a snapshot");
    assert_eq!(again.text("x.yaml"), Some(two.as_str()));
}

/// A head of a few KiB whose folders name a file a million times, and whose base changed something else.
#[tokio::test]
async fn bomb_is_refused_before_it_is_merged() {
    let branches =
        branches(&[("a.yaml", Some("1"))], &[&[("a.yaml", Some("2"))]], &[&[("a.yaml", Some("3"))]]);
    let repository = &branches.fixture.repository;
    let blob = repository.blob(b"x").expect("a blob");
    let mut id = blob;
    for level in 0..7 {
        let mut folder = repository.treebuilder(None).expect("a folder");
        for number in 0..10 {
            let mode = if level == 0 { 0o100_644 } else { 0o040_000 };
            folder.insert(format!("{number}.yaml"), id, mode).expect("an entry");
        }
        id = folder.write().expect("written");
    }
    let parent = repository.find_commit(branches.fixture.tip("feature")[0]).expect("a commit");
    let mut root = repository.treebuilder(Some(&parent.tree().expect("a tree"))).expect("a folder");
    root.insert(".hidden", id, 0o040_000).expect("an entry");
    let tree = repository.find_tree(root.write().expect("written")).expect("a tree");
    let who =
        git2::Signature::new("Li", "li@example.com", &git2::Time::new(1_700_000_000, 0)).expect("a name");
    let head = repository.commit(None, &who, &who, "bomb", &tree, &[&parent]).expect("committed");
    let opened = branches.open().await;
    let head = Revision::from(head.to_string().as_str());
    // Contents have to be merged, so that libgit2 would walk all of it.
    let error = opened.preview_merge(&branches.base, &head).await.expect_err("too much");
    assert!(
        matches!(&error, Error::LimitExceeded { folder, .. } if folder.starts_with(".hidden/")),
        "{error}"
    );
}

#[tokio::test]
async fn large_contents_are_not_merged() {
    let branches = branches(
        &[("a.yaml", Some("1"))],
        &[&[("a.yaml", Some("2"))]],
        &[&[("a.yaml", Some("3")), (".ci/huge", Some(&"x".repeat(33 << 20)))]],
    );
    let error = branches.merged().await.expect_err("too much");
    assert!(error.to_string().contains("files of more than 32 MiB in which the sides"), "{error}");
}

#[tokio::test]
async fn fetched_reference_leaves_no_name() {
    let branches = branches(&[("a.yaml", Some("1"))], &[], &[&[("b.yaml", Some("1"))]]);
    let target = branches.fixture.tip("feature")[0];
    branches.fixture.repository.reference("refs/pull/7/head", target, true, "pull").expect("a reference");
    let state = tempfile::tempdir().expect("state");
    for url in [branches.fixture.file_url(), branches.fixture.path().display().to_string()] {
        let repository = open(&url, state.path()).await;
        assert_eq!(repository.fetch().await, Ok(branches.base.clone()));
        for _ in 0..2 {
            assert_eq!(repository.fetch_reference("refs/pull/7/head").await, Ok(branches.head.clone()));
        }
        let merged = repository.preview_merge(&branches.base, &branches.head).await.expect("merged");
        assert_eq!(merged.changed, ["b.yaml"]);
        for wrong in ["refs/pull/8/head", "refs/pull/../x", "HEAD", "main"] {
            let error = repository.fetch_reference(wrong).await.expect_err("missing");
            assert!(matches!(error, Error::MissingReference { .. }), "{wrong}: {error}");
        }
    }
    let copies = std::fs::read_dir(state.path().join("repository")).expect("copies");
    for copy in copies {
        assert!(!copy.expect("a copy").path().join("refs/pull").exists());
    }
}
