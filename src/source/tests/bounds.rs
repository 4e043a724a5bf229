//! Commits of a few KiB that make much: of each, no more is read than the bounds say.

use std::sync::Arc;

use git2::{ObjectType, Oid, TreeEntry};

use super::fixture::{Fixture, open, options};
use crate::model::{Revision, Snapshot};
use crate::source::branch_names::BRANCHES;
use crate::source::readable_files::LARGEST_OBJECTS;
use crate::source::remote_references::{RemoteReference, choose_branch};
use crate::source::{ConfigRepository, Error, ErrorKind};

const FILE: i32 = 0o100_644;
const LINK: i32 = 0o120_000;
const FOLDER: i32 = 0o040_000;

/// A folder in which each name stands for the same.
fn folder(fixture: &Fixture, names: impl IntoIterator<Item = String>, id: Oid, mode: i32) -> Oid {
    let mut folder = fixture.repository.treebuilder(None).expect("a folder");
    for name in names {
        folder.insert(name, id, mode).expect("an entry");
    }
    folder.write().expect("written")
}

/// Ten folders in each of ten folders, and so on.
fn bomb(fixture: &Fixture, innermost: Oid, levels: usize) -> Oid {
    let names = || (0..10).map(|number| format!("{number}"));
    (0..levels).fold(innermost, |id, _| folder(fixture, names(), id, FOLDER))
}

/// Puts something beside what the tip has, or takes it out.
fn commit(fixture: &Fixture, name: &str, entry: Option<(Oid, i32)>) -> Revision {
    let repository = &fixture.repository;
    let parent = fixture.tip("main").first().map(|id| repository.find_commit(*id).expect("a commit"));
    let tree = parent.as_ref().map(|parent| parent.tree().expect("a tree"));
    let mut root = repository.treebuilder(tree.as_ref()).expect("a folder");
    match entry {
        Some((id, mode)) => _ = root.insert(name, id, mode).expect("an entry"),
        None => root.remove(name).expect("it was there"),
    }
    let root = repository.find_tree(root.write().expect("written")).expect("a tree");
    let who = git2::Signature::new("Li", "li@example.com", &git2::Time::new(1_700_000_000, 0));
    let who = who.expect("a signature");
    let id = repository.commit(Some("refs/heads/main"), &who, &who, name, &root, parent.as_ref().as_slice());
    Revision::from(id.expect("committed").to_string().as_str())
}

async fn opened(fixture: &Fixture) -> ConfigRepository {
    let state = tempfile::tempdir().expect("state");
    open(&fixture.path().display().to_string(), state.path()).await
}

#[track_caller]
fn check(read: Result<Snapshot, Error>, what: &str, below: &str) {
    let error = read.map(|snapshot| snapshot.files.len()).expect_err("too much");
    let Error::LimitExceeded { folder, .. } = &error else { panic!("{error}") };
    assert!(folder.starts_with(below), "{error}");
    assert!(error.to_string().contains(what), "{error}");
    assert!(error.help().is_some_and(|help| help.contains("--path")));
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

fn names(count: usize, ending: &'static str) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{number:03}{ending}"))
}

#[tokio::test]
async fn one_content_is_kept_once_whatever_its_names() {
    let fixture = Fixture::new();
    let large = fixture.repository.blob(&vec![b'#'; LARGEST_OBJECTS]).expect("a blob");
    let one = commit(&fixture, "apps", Some((folder(&fixture, names(70, ".yaml"), large, FILE), FOLDER)));
    let repository = opened(&fixture).await;
    let same = |snapshot: &Snapshot, count| {
        let first = &snapshot.files["apps/000.yaml"];
        assert_eq!(snapshot.files.len(), count);
        assert!(snapshot.files.values().all(|file| Arc::ptr_eq(&file.content, &first.content)));
    };
    same(&repository.snapshot(&one).await.expect("a snapshot"), 70);
    // Read from what was there, and anew.
    let two = commit(&fixture, "more.yaml", Some((large, FILE)));
    same(&repository.snapshot(&two).await.expect("a snapshot"), 71);
    same(&opened(&fixture).await.snapshot(&two).await.expect("a snapshot"), 71);
    // Where the limit of a name is smaller, it does not count what stands elsewhere.
    let three = commit(&fixture, "text.txt", Some((large, FILE)));
    same(&repository.snapshot(&three).await.expect("a snapshot"), 71);
    // Whoever reads it would read all of them.
    let four = commit(&fixture, "more", Some((folder(&fixture, names(60, ".yaml"), large, FILE), FOLDER)));
    check(repository.snapshot(&four).await, "files of more than 2 GiB, equal ones counted each", "apps/");
}

#[tokio::test]
async fn different_contents_are_bounded_by_their_sum() {
    let fixture = Fixture::new();
    let content = |number: usize| {
        let mut content = vec![b'#'; LARGEST_OBJECTS];
        content[0] = b'a' + u8::try_from(number).expect("a letter");
        content
    };
    let mut folder = fixture.repository.treebuilder(None).expect("a folder");
    for (number, name) in names(17, ".yaml").enumerate() {
        let id = fixture.repository.blob(&content(number)).expect("a blob");
        folder.insert(name, id, FILE).expect("an entry");
    }
    let tip = commit(&fixture, "apps", Some((folder.write().expect("written"), FOLDER)));
    check(opened(&fixture).await.snapshot(&tip).await, "files of more than 256 MiB", "apps/");
}

/// A team may take its own folder back, and nothing of the others has changed then.
#[tokio::test]
async fn files_without_number_end_the_read() {
    let fixture = Fixture::new();
    let blob = fixture.repository.blob(b"a: 1\n").expect("a blob");
    let one = fixture.commit("one", &[("apps/hello.yaml", Some("a: 1\n"))]);
    let repository = opened(&fixture).await;
    repository.snapshot(&one).await.expect("a snapshot");
    let innermost = folder(&fixture, names(10, ".yaml"), blob, FILE);
    let attack = commit(&fixture, "bomb", Some((bomb(&fixture, innermost, 9), FOLDER)));
    check(repository.snapshot(&attack).await, "more than 200000 files", "bomb/");
    check(opened(&fixture).await.snapshot(&attack).await, "more than 200000 files", "bomb/");
    let changed = repository.changed_between(&one, &attack).await.expect_err("too many");
    assert!(matches!(changed, Error::LimitExceeded { .. }), "{changed}");
    commit(&fixture, "bomb", None);
    let two = fixture.commit("two", &[("apps/other.yaml", Some("a: 1\n"))]);
    let snapshot = repository.snapshot(&two).await.expect("a snapshot");
    assert_eq!(snapshot.files.len(), 2);
    assert_eq!(*snapshot.last_change(["apps/hello.yaml"]), one);
    assert_eq!(*snapshot.last_change(["apps/"]), two);
    assert_eq!(opened(&fixture).await.snapshot(&two).await, Ok(snapshot), "read anew it is the same");
}

#[tokio::test]
async fn folders_without_number_end_the_read() {
    let fixture = Fixture::new();
    let one = fixture.commit("one", &[("a.yaml", Some("a: 1\n"))]);
    let repository = opened(&fixture).await;
    repository.snapshot(&one).await.expect("a snapshot");
    let empty = folder(&fixture, [], Oid::ZERO_SHA1, FILE);
    let tip = commit(&fixture, "bomb", Some((bomb(&fixture, empty, 10), FOLDER)));
    check(repository.snapshot(&tip).await, "names of files and folders", "bomb/");
    // Long names make long paths.
    let fixture = Fixture::new();
    let blob = fixture.repository.blob(b"").expect("a blob");
    let deep = (0..9).fold(folder(&fixture, names(200, ""), blob, FILE), |id, _| {
        folder(&fixture, names(10, "").map(|name| name + &"x".repeat(4000)), id, FOLDER)
    });
    let tip = commit(&fixture, "long", Some((deep, FOLDER)));
    check(opened(&fixture).await.snapshot(&tip).await, "names of files and folders", "long/");
}

/// Of a file below them, something is kept by each folder above it.
#[tokio::test]
async fn folders_within_folders_end_the_read() {
    let fixture = Fixture::new();
    let blob = fixture.repository.blob(b"a: 1\n").expect("a blob");
    let one = fixture.commit("one", &[("apps/hello.yaml", Some("a: 1\n"))]);
    let nested = |depth: usize| {
        let innermost = folder(&fixture, ["a.yaml".to_owned()], blob, FILE);
        (1..depth).fold(innermost, |id, _| folder(&fixture, ["d".to_owned()], id, FOLDER))
    };
    let repository = opened(&fixture).await;
    repository.snapshot(&one).await.expect("a snapshot");
    let fits = commit(&fixture, "d", Some((nested(64), FOLDER)));
    assert_eq!(repository.snapshot(&fits).await.expect("a snapshot").files.len(), 2);
    let deep = commit(&fixture, "d", Some((nested(2_000), FOLDER)));
    let what = "more than 64 folders within each other";
    check(repository.snapshot(&deep).await, what, &"d/".repeat(65));
    check(opened(&fixture).await.snapshot(&deep).await, what, &"d/".repeat(65));
    // One that was taken back is passed over.
    commit(&fixture, "d", None);
    let two = fixture.commit("two", &[("apps/other.yaml", Some("a: 1\n"))]);
    for repository in [repository, opened(&fixture).await] {
        let snapshot = repository.snapshot(&two).await.expect("a snapshot");
        assert_eq!(*snapshot.last_change(["apps/hello.yaml"]), one);
        assert!(snapshot.history.last_change_index.len() < 10, "{:?}", snapshot.history.last_change_index);
    }
}

#[tokio::test]
async fn links_count_as_files() {
    let fixture = Fixture::new();
    let target = fixture.repository.blob("../".repeat(1000).as_bytes()).expect("a blob");
    let folder = folder(&fixture, (0..100_000).map(|number| format!("{number}.yaml")), target, LINK);
    let tip = commit(&fixture, "links", Some((folder, FOLDER)));
    check(opened(&fixture).await.snapshot(&tip).await, "files of more than 256 MiB", "links/");
}

#[tokio::test]
async fn targets_of_links_are_bounded() {
    let fixture = Fixture::new();
    let other = fixture.commit("one", &[("apps/hello.yaml", Some("a: 1\n"))]);
    // It would lead to a folder with a file, but for its length.
    let long = "./".repeat(2046) + "apps";
    for (name, target, expected) in [
        ("fits", &long[..], Some(long.as_str())),
        ("longer", &format!("./{long}"), None),
        ("longer.yaml", &format!("./{long}"), Some("")),
    ] {
        let link = fixture.repository.blob(target.as_bytes()).expect("a blob");
        let tip = commit(&fixture, name, Some((link, LINK)));
        let snapshot = opened(&fixture).await.snapshot(&tip).await.expect("a snapshot");
        let found = snapshot.files.get(name).map(|file| file.blob.to_string());
        assert_eq!(found, expected.map(|target| format!("link to {target}")), "{name}");
        assert_eq!(*snapshot.last_change(["apps/hello.yaml"]), other);
    }
}

/// What a link leads to is not in the way of the read: it may be hidden.
#[tokio::test]
async fn folders_behind_links_are_searched_once() {
    let fixture = Fixture::new();
    let text = fixture.repository.blob(b"text").expect("a blob");
    let innermost = folder(&fixture, names(10, ".txt"), text, FILE);
    let hidden = bomb(&fixture, innermost, 9);
    commit(&fixture, ".hidden", Some((hidden, FOLDER)));
    let link = fixture.repository.blob(b"../.hidden/1").expect("a blob");
    let tip = commit(&fixture, "links", Some((folder(&fixture, names(100, ""), link, LINK), FOLDER)));
    let files = opened(&fixture).await.snapshot(&tip).await.expect("a snapshot").files;
    assert_eq!(files.len(), 0, "nothing there is read");
    let yaml = folder(&fixture, ["a.yaml".to_owned()], text, FILE);
    let mut inner = fixture.repository.find_tree(hidden).expect("a folder");
    let at = |entry: TreeEntry<'_>| (entry.id(), entry.kind());
    assert_eq!(at(inner.get(1).expect("an entry")).1, Some(ObjectType::Tree));
    let mut changed = fixture.repository.treebuilder(Some(&inner)).expect("a folder");
    changed.insert("1", yaml, FOLDER).expect("an entry");
    inner = fixture.repository.find_tree(changed.write().expect("written")).expect("a folder");
    let tip = commit(&fixture, ".hidden", Some((inner.id(), FOLDER)));
    let files = opened(&fixture).await.snapshot(&tip).await.expect("a snapshot").files;
    assert_eq!(files.values().filter(|file| file.is_link()).count(), 100);
}

#[tokio::test]
async fn ages_read_no_more_than_the_bounds() {
    let fixture = Fixture::new();
    let says = |_: &str, content: &[u8]| content.starts_with(b"web");
    let large = format!("web{}", "#".repeat(LARGEST_OBJECTS));
    fixture.commit("one", &[("a.yaml", Some(&*large)), ("b.yaml", Some("web"))]);
    let tip = fixture.commit("two", &[("a.yaml", Some("web"))]);
    let files = ["a.yaml", "b.yaml"].map(str::to_owned).to_vec();
    let ages = opened(&fixture).await.content_ages(&tip, files, says).await;
    assert_eq!(ages, Ok(vec![1, 2]), "one that is too large says nothing");
    // So much that nobody reads all of it: none is older than another.
    let content = |number: usize| format!("web{number}{}", "#".repeat(LARGEST_OBJECTS / 4));
    let contents: Vec<(String, String)> =
        names(6, ".yaml").enumerate().map(|(at, name)| (name, content(at))).collect();
    let changes: Vec<_> = contents.iter().map(|(name, text)| (name.as_str(), Some(text.as_str()))).collect();
    let tip = fixture.commit("three", &changes);
    let files: Vec<String> = ["b.yaml".to_owned()].into_iter().chain(names(6, ".yaml")).collect();
    let ages = opened(&fixture).await.content_ages(&tip, files, says).await;
    assert_eq!(ages, Ok(vec![0; 7]));
}

#[test]
fn few_branches_are_compared_with_a_missing_one() {
    let head = |name: String| RemoteReference {
        name: BRANCHES.to_owned() + &name,
        tip: Oid::ZERO_SHA1,
        target: None,
    };
    let odd = ["x\u{1b}[31m".to_owned(), "x".repeat(251), "producti on".to_owned()];
    let many = (0..500_000).map(|number| format!("b{number}"));
    let heads: Vec<RemoteReference> =
        odd.into_iter().chain(["production".to_owned()]).chain(many).map(head).collect();
    let error = choose_branch("url", Some("producton"), &heads).expect_err("it is not there");
    let Error::MissingBranch { branches, .. } = &error else { panic!("{error}") };
    assert_eq!((branches.len(), &*branches[0]), (1_000, "production"));
    assert!(branches.iter().all(|name| name.len() <= 250 && !name.contains(['\u{1b}', ' '])));
    let error = choose_branch("url", None, &heads).expect_err("nobody says which");
    let Error::NoDefaultBranch { branches, .. } = &error else { panic!("{error}") };
    assert_eq!(branches.len(), 1_000);
    assert!(error.to_string().ends_with(" and many more"), "{error}");
}

/// As over http; the list of references is not bounded here.
#[tokio::test]
async fn packs_of_libgit2_are_bounded() {
    use crate::source::remote::{FetchProgress, RemoteFailure, list_and_fetch};
    use crate::source::remote_address::RemoteAddress;
    let (fixture, state) = (Fixture::new(), tempfile::tempdir().expect("state"));
    let tip = fixture.commit("one", &[("a.yaml", Some("1")), ("b.yaml", Some("2"))]);
    let options = options(&fixture.file_url(), state.path());
    git2::Repository::init_bare(state.path()).expect("a copy");
    let address = RemoteAddress {
        display_url: options.url.clone(),
        url: options.url,
        credentials: options.credentials,
        branch: None,
        reference: None,
        clone: state.path().to_owned(),
    };
    let most = |objects, bytes| {
        let mut progress = FetchProgress::default();
        (progress.most_objects, progress.most_bytes) = (objects, bytes);
        progress
    };
    for (progress, expected) in [
        (most(3, 1000), "it sends more than 3 objects"),
        (most(1000, 10), "its answer has more than 10 bytes"),
    ] {
        match list_and_fetch(&address, &progress) {
            Err(RemoteFailure::Failed(Error::Remote { message, .. })) => assert_eq!(message, expected),
            other => panic!("{other:?}"),
        }
    }
    let fetched = list_and_fetch(&address, &FetchProgress::default()).expect("it is within the bounds");
    assert_eq!(fetched.to_string(), tip.as_str());
}
