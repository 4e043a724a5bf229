//! Last changes, and that an incremental answer equals a fresh one.

use std::collections::BTreeMap;

use super::fixture::{Fixture, open, options};
use crate::model::{Revision, Snapshot, SnapshotFile};
use crate::source::ConfigRepository;

/// The subject of the commit that changed each path last.
async fn subjects(repository: &ConfigRepository, snapshot: &Snapshot) -> BTreeMap<String, String> {
    let commits = repository.recent_commits(&snapshot.revision, 1000).await.expect("recent");
    let subject = |revision: &Revision| {
        commits
            .iter()
            .find(|commit| commit.revision == *revision)
            .map(|commit| commit.subject.clone())
            .expect("on the line")
    };
    snapshot
        .history
        .last_change_index
        .keys()
        .map(|key| (key.clone(), subject(snapshot.last_change([key.as_str()]))))
        .collect()
}

async fn check(repository: &ConfigRepository, expected: &[(&str, &str)]) {
    let tip = repository.fetch().await.expect("fetch");
    let snapshot = repository.snapshot(&tip).await.expect("snapshot");
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(key, subject)| ((*key).to_owned(), (*subject).to_owned())).collect();
    assert_eq!(subjects(repository, &snapshot).await, expected);
}

#[tokio::test]
async fn deletes_count_for_their_folder() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit(
        "one",
        &[("a/x.yaml", Some("1")), ("a/y.yaml", Some("1")), ("b/z.yaml", Some("1")), ("r.yaml", Some("1"))],
    );
    let url = fixture.path().display().to_string();
    let repository = open(&url, state.path()).await;
    check(
        &repository,
        &[
            ("/", "one"),
            ("a/", "one"),
            ("a/x.yaml", "one"),
            ("a/y.yaml", "one"),
            ("b/", "one"),
            ("b/z.yaml", "one"),
            ("r.yaml", "one"),
        ],
    )
    .await;
    fixture.commit("two", &[("a/x.yaml", None)]);
    fixture.commit("three", &[("r.yaml", Some("2"))]);
    let expected = [
        ("/", "three"),
        ("a/", "two"),
        ("a/y.yaml", "one"),
        ("b/", "one"),
        ("b/z.yaml", "one"),
        ("r.yaml", "three"),
    ];
    check(&repository, &expected).await;
    // The same without what was remembered.
    check(&open(&url, state.path()).await, &expected).await;
}

/// Whoever shows commits shows them one on a line.
#[tokio::test]
async fn texts_of_a_commit_are_short_lines() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let tip = fixture.commit(&"é".repeat(2_000_000), &[("a.yaml", Some("1"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let commits = repository.recent_commits(&tip, 1).await.expect("recent");
    assert_eq!(commits[0].subject, format!("{}…", "é".repeat(200)));
}

#[tokio::test]
async fn merge_commit_changed_the_paths_it_brings() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("1")), ("b.yaml", Some("1"))]);
    let base = fixture.tip("main");
    fixture.commit_on("refs/heads/side", &base, "side", &[("b.yaml", Some("2"))]);
    fixture.commit("two", &[("a.yaml", Some("2"))]);
    let parents = [fixture.tip("main"), fixture.tip("side")].concat();
    fixture.commit_on("refs/heads/main", &parents, "merge", &[("b.yaml", Some("2"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    check(&repository, &[("/", "merge"), ("a.yaml", "two"), ("b.yaml", "merge")]).await;
}

#[tokio::test]
async fn reverted_commits_are_found_in_merges() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let revert = |what: &str, it: &Revision| format!("Revert \"{what}\"\n\nThis reverts commit {it}.\n");
    let commit = |message: &str, content: &str| fixture.commit(message, &[("a.yaml", Some(content))]);
    let (one, two) = (commit("one", "1"), commit("two", "2"));
    let again = commit(&revert("two", &two), "1");
    commit(&revert("revert", &again), "2");
    let base = fixture.tip("main");
    fixture.commit_on("refs/heads/side", &base, &revert("one", &one), &[("a.yaml", None)]);
    let parents = [base, fixture.tip("side")].concat();
    fixture.commit_on("refs/heads/main", &parents, "Merge side", &[("a.yaml", None)]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let tip = repository.fetch().await.expect("fetch");
    let reverted = repository.reverted_commits(&tip, 100).await.expect("reverted");
    assert_eq!(reverted, std::collections::BTreeSet::from([one, again]));
}

#[tokio::test]
async fn configured_folder_has_relative_paths() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("deploy/prod/a.yaml", Some("1")), ("src/main.py", Some("1"))]);
    fixture.commit("two", &[("src/main.py", Some("2"))]);
    let mut options = options(&fixture.path().display().to_string(), state.path());
    options.path = "./deploy/".to_owned();
    let repository = ConfigRepository::open(options).await.expect("open");
    check(&repository, &[("/", "one"), ("prod/", "one"), ("prod/a.yaml", "one")]).await;
    let commits =
        repository.recent_commits(&repository.fetch().await.expect("fetch"), 10).await.expect("recent");
    let changed =
        repository.changed_between(&commits[1].revision, &commits[0].revision).await.expect("changed");
    assert_eq!(changed, []);
    fixture.commit("three", &[("deploy/prod/a.yaml", None), ("deploy/b.yaml", Some("1"))]);
    let tip = repository.fetch().await.expect("fetch");
    let changed = repository.changed_between(&commits[0].revision, &tip).await.expect("changed");
    let text = |file: &Option<SnapshotFile>| {
        file.as_ref().map(|it| String::from_utf8_lossy(&it.content).into_owned())
    };
    let changed: Vec<_> =
        changed.iter().map(|it| (it.path.as_str(), text(&it.before), text(&it.after))).collect();
    let one = || Some("1".to_owned());
    assert_eq!(changed, [("b.yaml", None, one()), ("prod/a.yaml", one(), None)]);
}

/// A long random line of commits, with forced pushes: what is remembered never changes the answer.
#[tokio::test]
async fn incremental_history_equals_fresh_history() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    let mut random = StdRng::seed_from_u64(3);
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("first", &[("keep.yaml", Some("1"))]);
    let url = fixture.path().display().to_string();
    let remembering = open(&url, state.path()).await;
    let mut tips = Vec::new();
    for step in 0..120 {
        let present =
            remembering.snapshot(&remembering.fetch().await.expect("fetch")).await.expect("snapshot").files;
        let path = format!(
            "{}/{}/f{}.yaml",
            random.random_range(0..3),
            random.random_range(0..3),
            random.random_range(0..3)
        );
        let content = step.to_string();
        let goes = present.contains_key(&path) && random.random_bool(0.5);
        if random.random_bool(0.1) && !tips.is_empty() {
            let back: &Vec<git2::Oid> = &tips[random.random_range(0..tips.len())];
            fixture.commit_on(
                "refs/heads/main",
                back,
                &format!("forced {step}"),
                &[("keep.yaml", Some(&content))],
            );
        } else {
            fixture.commit(&format!("step {step}"), &[(&path, (!goes).then_some(content.as_str()))]);
        }
        tips.push(fixture.tip("main"));
        let tip = remembering.fetch().await.expect("fetch");
        let remembered = remembering.snapshot(&tip).await.expect("snapshot");
        let fresh = open(&url, state.path()).await.snapshot(&tip).await.expect("snapshot");
        assert_eq!(remembered, fresh, "step {step}");
    }
}
