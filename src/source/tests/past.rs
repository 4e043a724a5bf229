//! Looking back: what is shown of earlier commits, and where it ends.

use std::sync::Arc;

use parking_lot::Mutex;

use super::fixture::{Fixture, open};
use crate::model::{File, Revision};
use crate::source::{Reached, Repository, Walk};

/// What is seen from the tip on: of each file of interest, its path, and what it held before and after.
async fn looked_back(
    repository: &Repository,
    known: Option<&Revision>,
    most: usize,
) -> (Reached, Vec<String>) {
    looked_back_in(repository, &[], known, most).await
}

async fn looked_back_in(
    repository: &Repository,
    folders: &[&str],
    known: Option<&Revision>,
    most: usize,
) -> (Reached, Vec<String>) {
    let walk = Walk {
        tip: repository.fetch().await.expect("fetch"),
        known: known.cloned(),
        most,
        path: |path| path.ends_with(".yaml"),
        content: |content| content.starts_with(b"cluster"),
        folders: folders.iter().map(ToString::to_string).collect(),
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    let text = |file: &Option<File>| match file {
        Some(file) => String::from_utf8_lossy(&file.content).into_owned(),
        None => "-".to_owned(),
    };
    let visit = move |_: &Revision, changed: &[crate::model::Changed]| {
        let lines = changed.iter().map(|it| format!("{} {} {}", it.path, text(&it.before), text(&it.after)));
        shared.lock().push(lines.collect::<Vec<_>>().join(", "));
    };
    let reached = repository.look_back(walk, visit).await.expect("read");
    let seen = seen.lock().clone();
    (reached, seen)
}

#[tokio::test]
async fn what_was_of_interest_is_shown_with_all_that_changed_beside_it() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture
        .commit("one", &[("a.yaml", Some("cluster a")), ("b.yaml", Some("app")), ("c.txt", Some("cluster"))]);
    let two = fixture.commit("two", &[("b.yaml", Some("app 2")), ("d.yaml", Some("cluster d"))]);
    fixture.commit("three", &[("a.yaml", None), ("b.yaml", Some("cluster a")), ("c.txt", None)]);
    fixture.commit("four", &[("x/.hidden/d.yaml", Some("cluster")), ("d.yaml", Some("cluster e"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;

    let four = "d.yaml cluster d cluster e";
    let three = "a.yaml cluster a -, b.yaml - cluster a";
    let check = async |known: Option<&Revision>, most, reached, expected: &[&str]| {
        assert_eq!(
            looked_back(&repository, known, most).await,
            (reached, expected.iter().map(ToString::to_string).collect())
        );
    };
    check(None, 100, Reached::Beginning, &[four, three]).await;
    check(None, 2, Reached::Limit, &[four, three]).await;
    check(None, 1, Reached::Limit, &[four]).await;
    check(Some(&two), 100, Reached::Known, &[four, three]).await;
    check(Some(&two), 2, Reached::Known, &[four, three]).await;
    check(Some(&two), 1, Reached::Limit, &[four]).await;
    // Not on this line.
    let elsewhere = Revision::from("1111111111111111111111111111111111111111");
    check(Some(&elsewhere), 100, Reached::Beginning, &[four, three]).await;
}

#[tokio::test]
async fn it_ends_where_a_shallow_clone_does() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("cluster a"))]);
    let two = fixture.commit("two", &[("a.yaml", None)]);
    fixture.commit("three", &[("b.yaml", Some("app"))]);
    std::fs::write(fixture.path().join(".git/shallow"), format!("{two}\n")).expect("cut off");
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    assert_eq!(looked_back(&repository, None, 100).await, (Reached::Beginning, Vec::new()));
}

/// A list of ten thousand names is not read for each commit that changes one of them; where a cluster is, it is.
#[tokio::test]
async fn large_folders_are_looked_into_where_there_is_a_reason_to() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let paths: Vec<String> = (0..600).map(|number| format!("apps/app-{number:04}.yaml")).collect();
    let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), Some("cluster of apps"))).collect();
    files.push(("clusters/a.yaml", Some("cluster a")));
    fixture.commit("one", &files);
    fixture.commit("two", &[("apps/app-0000.yaml", None), ("clusters/a.yaml", None)]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let (a, app) = ("clusters/a.yaml cluster a -", "apps/app-0000.yaml cluster of apps -");
    let seen = async |folders: &[&str]| looked_back_in(&repository, folders, None, 100).await.1;
    assert_eq!(seen(&[]).await, [a]);
    assert_eq!(seen(&["clusters/"]).await, [a]);
    assert_eq!(seen(&["apps/"]).await, [format!("{app}, {a}")]);
    assert_eq!(seen(&["apps/south/"]).await, [format!("{app}, {a}")]);
}

/// What files hold counts as well.
#[tokio::test]
async fn it_ends_where_too_much_would_be_read() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let paths: Vec<String> = (0..48).map(|number| format!("{number:02}.yaml")).collect();
    for word in ["one", "two", "three"] {
        let content = format!("cluster {word}\n").repeat(64 << 10);
        let files: Vec<_> = paths.iter().map(|path| (path.as_str(), Some(content.as_str()))).collect();
        fixture.commit(word, &files);
    }
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let (reached, seen) = looked_back(&repository, None, 100).await;
    assert_eq!((reached, seen.len()), (Reached::Limit, 1));
}
