//! What of a checkout is ignored, and that hostile ones end the read.

use std::path::Path;
use std::process::Command;

use super::fixture::Fixture;
use crate::source::gitignore::GitIgnore;
use crate::source::{Error, read_folder};

fn ignored(fixture: &Fixture, patterns: &str) -> GitIgnore {
    std::fs::write(fixture.path().join(".gitignore"), patterns).expect("a file");
    // Nothing of whoever runs the test.
    GitIgnore::default().in_subfolder("", fixture.path()).expect("patterns")
}

#[test]
fn patterns_match_as_in_git() {
    let fixture = Fixture::new();
    let paths = [
        "a",
        "b",
        "a/b",
        "b/a",
        "a/b/c",
        "x/a/b/c",
        "x/a",
        "a.log",
        "x/y/a.log",
        "a.yaml",
        "{a}",
        "{a,b}",
        "a b",
        "a ",
        "#a",
        "!a",
        "ab",
        "a-b",
        "aXb",
        "x/ab",
        "a/x/b",
        "a/x/y/b",
        "ax/b",
        "foo/bar/a",
        "[a]",
        "a\\b",
        "é",
        "*",
        "a*b",
        "A.LOG",
    ];
    for patterns in [
        "a",
        "/a",
        "a/",
        "a/b",
        "/a/b/",
        "*.log",
        "*.log\n!a.log",
        "!a.log\n*.log",
        "**/a",
        "a/**",
        "a/**/b",
        "**",
        "*",
        "/*\n!/a",
        "*/b",
        "a**b",
        "x/**/c",
        "{a,b}",
        "{a}",
        "\\{a}",
        "a\\ ",
        "a ",
        "a\\ b",
        "\\#a",
        "#a",
        "\\!a",
        "[ab]",
        "[!a]",
        "[^a]",
        "a[!x]b",
        "[!]a]b",
        "*[^g]",
        "\u{feff}a\nb",
        "a\t",
        "[a-c].log",
        "[",
        "a[",
        "\\",
        "a?b",
        "??",
        "\\*",
        "a\\*b",
        "/",
        "//",
        "\r\na\r\n",
        "  a",
        "foo/*",
        "foo/**/",
        "**/b/**",
        "?",
        "\t",
        "x/*/c",
        "x\n!x/a",
        "[[]a]",
        "a\\\\b",
        "é",
        "*é",
        "!*",
        "[a",
    ] {
        let own = ignored(&fixture, patterns);
        for path in paths {
            for is_folder in [false, true] {
                let asked = if is_folder { format!("{path}/") } else { path.to_owned() };
                let above = || path.match_indices('/').map(|(slash, _)| &path[..slash]);
                let has =
                    above().any(|folder| own.is_ignored(folder, true)) || own.is_ignored(path, is_folder);
                let is_ignored = |path: &str| fixture.repository.is_path_ignored(path).expect("an answer");
                let expected = above().any(|folder| is_ignored(&format!("{folder}/"))) || is_ignored(&asked);
                assert_eq!(has, expected, "{patterns:?} on {asked:?}");
            }
        }
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

#[track_caller]
fn check(folder: &Path, expected: &[&str]) {
    let snapshot = read_folder(folder, |_, _| Vec::new()).expect("a snapshot");
    assert_eq!(snapshot.files.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn patterns_of_the_nearest_folder_win() {
    let fixture = Fixture::new();
    let folder = fixture.path();
    write(folder, ".git/info/exclude", "*.mine\n*.txt\n");
    write(folder, ".gitignore", "*.log\n/b.yaml\nout/\n!kept.txt\n");
    write(folder, "a/.gitignore", "!*.log\n/c.yaml\n");
    for path in [
        "x.mine", "x.txt", "kept.txt", "b.yaml", "x.log", "out/x", "a/b.yaml", "a/c.yaml", "a/x.log",
        "a/out/x",
    ] {
        write(folder, path, "x");
    }
    write(folder, "a/b/c.yaml", "x");
    check(folder, &["a/b.yaml", "a/b/c.yaml", "a/x.log", "kept.txt"]);
    check(&folder.join("a"), &["b.yaml", "b/c.yaml", "x.log"]);
    check(&folder.join("a/b"), &["c.yaml"]);
    check(&folder.join("out"), &[]);
}

/// libgit2 tries each way to spread a name over the `*`.
#[test]
fn pattern_of_many_stars_is_fast() {
    let fixture = Fixture::new();
    let name = format!("{}.yaml", "a".repeat(200));
    write(fixture.path(), &name, "a: 1");
    write(fixture.path(), ".gitignore", &format!("{}*b\n", "*a".repeat(24)));
    check(fixture.path(), &[&name]);
}

/// Whoever opens a pipe waits for somebody who writes.
#[test]
fn only_regular_files_are_opened() {
    let fixture = Fixture::new();
    let folder = fixture.path();
    let pipe = |path: &str| {
        let made = Command::new("mkfifo").arg(folder.join(path)).status().expect("mkfifo");
        assert!(made.success());
    };
    write(folder, "a/a.yaml", "a: 1");
    ["pipe.yaml", ".gitignore", ".git/info/exclude"].into_iter().for_each(|path| {
        _ = std::fs::remove_file(folder.join(path));
        pipe(path);
    });
    std::os::unix::fs::symlink("../pipe.yaml", folder.join("a/.gitignore")).expect("a link");
    std::os::unix::net::UnixListener::bind(folder.join("socket.yaml")).expect("a socket");
    check(folder, &["a/a.yaml"]);
}

#[test]
fn checkout_is_read_within_bounds() {
    let read = |files: &[(&str, &str)]| {
        let fixture = Fixture::new();
        files.iter().for_each(|(path, text)| write(fixture.path(), path, text));
        write(fixture.path(), "a.yaml", "a: 1");
        read_folder(fixture.path(), |_, _| Vec::new()).expect_err("too much")
    };
    let names = |error: &Error, file: &str| matches!(error, Error::TooManyIgnorePatterns { path } if path.ends_with(file));
    let patterns = "a\n".repeat((32 << 10) + 1);
    for file in [".gitignore", "a/b/.gitignore", ".git/info/exclude"] {
        let error = read(&[(file, &patterns)]);
        assert!(names(&error, file), "{error}");
    }
    let many: Vec<String> = (0..70).map(|number| format!("d{number}/.gitignore")).collect();
    let files: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), &patterns[2..])).collect();
    let error = read(&files);
    assert!(names(&error, ".gitignore"), "{error}");
    let deep = "d/".repeat(65);
    let error = read(&[(&format!("{deep}a.yaml"), "a: 1")]);
    assert!(error.to_string().contains("more than 64 folders within each other"), "{error}");
    assert!(matches!(error, Error::LimitExceeded { folder, .. } if folder == deep));
}
