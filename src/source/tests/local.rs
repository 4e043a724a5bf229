//! What is read from a revision and from a folder.

use super::fixture::{Fixture, open, options};
use crate::model::{Revision, Snapshot};
use crate::source::readable_files::{LARGEST_FILE, LARGEST_OBJECTS};
use crate::source::{ConfigRepository, Error, SourceOptions, read_folder};

fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.keys().map(String::as_str).collect()
}

fn links(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.iter().filter(|(_, file)| file.is_link()).map(|(path, _)| path.as_str()).collect()
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
    fixture.commit_mode("link", b"a.yaml", 0o120_000);
    fixture.commit_mode("elsewhere", b"../other/folder", 0o120_000);
    fixture.commit_mode("binaries", b"bin", 0o120_000);
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
    let tip = fixture.commit_mode("bin/run", b"/bin/sh", 0o120_000);
    let snapshot = repository.snapshot(&tip).await.expect("snapshot");
    assert_eq!(paths(&snapshot), ["a.yaml"], "none of them stands where something is to be read");
}

/// What stands behind them would count as taken away.
#[tokio::test]
async fn links_become_unreadable_files() {
    for (path, target) in [
        ("apps/pay/app.yaml", "../../shared/app.yaml"),
        ("apps/pay/app.yaml", "/etc/app.yaml"),
        ("apps/pay", "../shared/pay"),
        ("apps/pay", ".././shared//pay/"),
    ] {
        let fixture = Fixture::new();
        let (state, folder) = (tempfile::tempdir().expect("state"), tempfile::tempdir().expect("a folder"));
        let before = fixture.commit("one", &[("shared/pay/app.yaml", Some("a: 1\n"))]);
        let repository = open(&fixture.path().display().to_string(), state.path()).await;
        repository.snapshot(&before).await.expect("a snapshot");
        let tip = fixture.commit_mode(path, target.as_bytes(), 0o120_000);
        let snapshot = repository.snapshot(&tip).await.expect("a snapshot");
        assert_eq!((snapshot.text(path), links(&snapshot)), (None, vec![path]), "{path} to {target}");
        assert_eq!(*snapshot.last_change([path]), tip);
        std::fs::create_dir_all(folder.path().join("shared/pay")).expect("a folder");
        std::fs::write(folder.path().join("shared/pay/app.yaml"), "a: 1").expect("a file");
        let link = folder.path().join(path);
        std::fs::create_dir_all(link.parent().expect("a parent")).expect("a folder");
        std::os::unix::fs::symlink(target, link).expect("a link");
        let on_disk = read_folder(folder.path(), |_, _| Vec::new()).expect("a folder");
        assert_eq!(on_disk.files.get(path), snapshot.files.get(path), "{path} to {target}, on disk");
        let after = fixture.commit("two", &[(path, None)]);
        assert_eq!(links(&repository.snapshot(&after).await.expect("a snapshot")), Vec::<&str>::new());
    }
}

#[tokio::test]
async fn file_above_its_limit_stands_there_without_text() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let tip = fixture.commit_mode("apps/big.yaml", &vec![b'#'; LARGEST_OBJECTS + 1], 0o100_644);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let snapshot = repository.snapshot(&tip).await.expect("the other files can be read");
    assert_eq!(snapshot.text("apps/big.yaml"), None);
    assert_eq!(
        snapshot.why_unreadable("apps/big.yaml"),
        "has 16777217 bytes, more than the limit of 16777216"
    );
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
    std::os::unix::fs::symlink("a.yaml", fixture.path().join("link")).expect("link");
    std::os::unix::fs::symlink("/usr", fixture.path().join("elsewhere")).expect("link");
    let tip =
        fixture.commit("same", &[("a.yaml", Some("a: 1\n")), ("deep/er/b.yaml.j2", Some("b: {{ b }}\n"))]);
    let folder = read_folder(fixture.path(), |_, _| Vec::new()).expect("folder");
    assert!(folder.revision.is_worktree());
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    assert_eq!(folder.files, repository.snapshot(&tip).await.expect("snapshot").files);
    // A folder inside says the same about its part.
    assert_eq!(
        paths(&read_folder(&fixture.path().join("deep"), |_, _| Vec::new()).expect("folder")),
        ["er/b.yaml.j2"]
    );
    assert!(matches!(
        read_folder(&fixture.path().join("nowhere"), |_, _| Vec::new()),
        Err(Error::Folder { .. })
    ));
}

/// As an app of kind Objects does: each line of a file `lists` is a pattern.
fn by_line(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|_| path.ends_with("lists"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn listed_outside_files_are_read() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let url = fixture.path().display().to_string();
    let options = SourceOptions {
        path: "teams/config".to_owned(),
        outside_file_lister: by_line,
        ..options(&url, state.path())
    };
    let repository = ConfigRepository::open(options.clone()).await.expect("open");
    let one = fixture.commit(
        "one",
        &[
            ("teams/config/a.yaml", Some("a: 1\n")),
            ("teams/deploy/a.yaml", Some("a: 1\n")),
            ("teams/deploy/b.yaml", Some("b: 1\n")),
            ("other/c.yaml", Some("c: 1\n")),
        ],
    );
    let own = "a.yaml";
    assert_eq!(paths(&repository.snapshot(&one).await.expect("a snapshot")), [own]);
    let two = fixture.commit("two", &[("teams/config/lists", Some("../deploy/*.yaml\n"))]);
    let beside = ["../deploy/a.yaml", "../deploy/b.yaml"];
    let three =
        fixture.commit("three", &[("teams/deploy/b.yaml", Some("b: 2\n")), ("other/c.yaml", Some("c: 2\n"))]);
    let steps: [(&Revision, &[&str], &str); 2] = [(&two, &beside, "b: 1\n"), (&three, &beside, "b: 2\n")];
    for (revision, beside, text) in steps {
        let snapshot = repository.snapshot(revision).await.expect("a snapshot");
        assert_eq!(paths(&snapshot), [beside, &[own, "lists"]].concat(), "{revision}");
        assert_eq!(snapshot.text("../deploy/b.yaml"), Some(text));
        assert_eq!(*snapshot.last_change(["../deploy/a.yaml"]), one);
        let changed = if *revision == three { &three } else { &one };
        assert_eq!(snapshot.last_change(["../deploy/b.yaml"]), changed);
        // Whoever begins with it reads the same.
        let anew = ConfigRepository::open(options.clone()).await.expect("open");
        assert_eq!(anew.snapshot(revision).await.expect("a snapshot"), snapshot);
    }
    assert_eq!(
        paths(&repository.files_without_history(&one).await.expect("files")),
        [own],
        "of an earlier one what that lists"
    );
    let lists = "../deploy/a.yaml\n../../other/*.yaml\n../../teams/config/a.yaml\n../../../x.yaml\n";
    let four = fixture.commit("four", &[("teams/config/lists", Some(lists)), ("teams/deploy/b.yaml", None)]);
    let snapshot = repository.snapshot(&four).await.expect("a snapshot");
    assert_eq!(paths(&snapshot), ["../../other/c.yaml", "../deploy/a.yaml", own, "lists"]);
    assert_eq!(*snapshot.last_change(["../../other/c.yaml"]), three);
    let linked = fixture.commit_mode("teams/deploy/a.yaml", b"../../other/c.yaml", 0o120_000);
    let snapshot = repository.snapshot(&linked).await.expect("a snapshot");
    assert_eq!(links(&snapshot), ["../deploy/a.yaml"]);
    let as_before = fixture.commit("as before", &[("other/d.yaml", Some("d: 1\n"))]);
    let snapshot = repository.snapshot(&as_before).await.expect("a snapshot");
    assert_eq!(links(&snapshot), ["../deploy/a.yaml"], "it is still there");
    let five = fixture.commit("five", &[("teams/config/lists", None)]);
    assert_eq!(paths(&repository.snapshot(&five).await.expect("a snapshot")), [own]);
}

#[tokio::test]
async fn folder_on_disk_has_listed_outside_files() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let files = [
        ("config/lists", "../deploy/*.yaml\n"),
        ("deploy/a.yaml", "a: 1\n"),
        ("deploy/deeper/b.yaml", "b: 1\n"),
        ("config/c.yaml", "c: 1\n"),
    ];
    for (path, text) in files {
        let path = fixture.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let tip = fixture.commit("one", &files.map(|(path, text)| (path, Some(text))));
    let options = SourceOptions {
        path: "config".to_owned(),
        outside_file_lister: by_line,
        ..options(&fixture.path().display().to_string(), state.path())
    };
    let committed =
        ConfigRepository::open(options).await.expect("open").snapshot(&tip).await.expect("a snapshot");
    let on_disk = read_folder(&fixture.path().join("config"), by_line).expect("a folder");
    assert_eq!(paths(&on_disk), ["../deploy/a.yaml", "c.yaml", "lists"]);
    assert_eq!((&on_disk.files, &on_disk.folder), (&committed.files, &committed.folder));
    std::os::unix::fs::symlink("a.yaml", fixture.path().join("deploy/link.yaml")).expect("a link");
    let on_disk = read_folder(&fixture.path().join("config"), by_line).expect("a folder");
    assert_eq!(links(&on_disk), ["../deploy/link.yaml"]);
    // Without a repository around it nothing is beside it.
    let alone = tempfile::tempdir().expect("a folder");
    std::fs::write(alone.path().join("lists"), "../a.yaml\n").expect("a file");
    assert_eq!(paths(&read_folder(alone.path(), by_line).expect("a folder")), ["lists"]);
}

#[tokio::test]
async fn content_age_counts_commits() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("b.yaml", Some("web"))]);
    fixture.commit("two", &[("a.yaml", Some("other")), ("b.yaml", Some("web 2"))]);
    fixture.commit("three", &[("a.yaml", Some("web"))]);
    let tip = fixture.commit("four", &[("c.yaml", Some("web"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let files = ["a.yaml", "b.yaml", "c.yaml"].map(str::to_owned).to_vec();
    let ages = repository.content_ages(&tip, files, |_, content| content.starts_with(b"web")).await;
    assert_eq!(ages, Ok(vec![2, 3, 1]));
}

#[tokio::test]
async fn last_content_change_is_found() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("web 1"))]);
    fixture.commit("two", &[("a.yaml", Some("web 2\nmore"))]);
    fixture.commit("three", &[("a.yaml", Some("web 2\nless"))]);
    let tip = fixture.commit("four", &[("b.yaml", Some("web 3"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let check = async |path: &str, since: i64, expected: Option<&str>| {
        let says = |content: &[u8]| Some(String::from_utf8_lossy(content).lines().next()?.to_owned());
        let found = repository.last_content_change(&tip, path, since, says).await.expect("read");
        let found = found.map(|change| change.messages.concat().trim().to_owned());
        assert_eq!(found.as_deref(), expected, "{path} since {since}");
    };
    check("a.yaml", 0, Some("two")).await;
    check("b.yaml", 0, Some("four")).await;
    check("c.yaml", 0, None).await;
    check("a.yaml", i64::MAX, None).await;
}
