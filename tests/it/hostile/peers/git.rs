//! A Git server that an attacker controls. It is the only repository of the process, so nothing converges, but the
//! process runs, uses little memory, and names it.

use std::process::Command;
use std::time::Duration;

use super::super::fixture::HostileFixture;
use super::server::{HostilePeer, PeerAnswer, answer_head, whole_answer};

const ID: &str = "1d50357000000000000000000000000000000001";
/// A required option of version 0.
const OPTIONS: &str = "side-band-64k symref=HEAD:refs/heads/main";

/// A packet of Git's protocol.
fn packet(content: &[u8]) -> Vec<u8> {
    [format!("{:04x}", content.len() + 4).as_bytes(), content].concat()
}

fn reference_advertisement(lines: &[&str]) -> Vec<u8> {
    let start = [packet(b"# service=git-upload-pack\n"), b"0000".to_vec()].concat();
    lines.iter().fold(start, |bytes, line| [bytes, packet(line.as_bytes())].concat())
}

fn version_2_answer() -> PeerAnswer {
    let lines =
        reference_advertisement(&["version 2\n", "ls-refs\n", "fetch=shallow\n", "object-format=sha1\n"]);
    whole_answer("200 OK", "", &[lines, b"0000".to_vec()].concat())
}

fn list_answer() -> PeerAnswer {
    let line = format!("{ID} HEAD symref-target:refs/heads/main\n");
    whole_answer("200 OK", "", &[packet(line.as_bytes()), b"0000".to_vec()].concat())
}

/// Sends `bytes`, then `again` without end.
fn answer_prefix_and_repeat(status: &str, bytes: Vec<u8>, again: Vec<u8>) -> PeerAnswer {
    PeerAnswer::Endless([answer_head(status), bytes].concat(), again)
}

/// Answers `greet`, `list` and `fetch` by request.
async fn start_git_peer(
    answer: impl Fn(&str, &str) -> PeerAnswer + Send + Sync + 'static,
    arguments: &[&str],
    change: impl FnOnce(&mut Command),
) -> (HostilePeer, HostileFixture) {
    let server = HostilePeer::start(move |head, body| {
        let body = String::from_utf8_lossy(body);
        let step = match body.split_once("command=").map(|(_, command)| command) {
            _ if head.starts_with("get") => "greet",
            Some(command) if command.starts_with("ls-refs") => "list",
            _ => "fetch",
        };
        answer(step, head)
    })
    .await;
    let mut arena = HostileFixture::new().await;
    let url = format!("{}/a/b.git", server.url());
    arena.start_process_with_repository(&url, arguments, change);
    server.until_asked().await;
    (server, arena)
}

async fn check_git_answer(
    answer: impl Fn(&str, &str) -> PeerAnswer + Send + Sync + 'static,
    says: &str,
) -> HostilePeer {
    let (server, mut arena) = start_git_peer(answer, &[], |_| {}).await;
    arena.until_logged(says).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    arena.assert_running();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn references_without_end_are_cut() {
    let more = packet(format!("{ID} refs/heads/{}\n", "x".repeat(200)).as_bytes()).repeat(200);
    let answer = move |step: &str, _: &str| match step {
        "greet" => version_2_answer(),
        _ => answer_prefix_and_repeat("200 OK", Vec::new(), more.clone()),
    };
    check_git_answer(answer, "more than 67108864 bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_references_without_end_are_cut() {
    let first = reference_advertisement(&[&format!("{ID} HEAD\0{OPTIONS}\n")]);
    let more = packet(format!("{ID} refs/tags/{}\n", "x".repeat(200)).as_bytes()).repeat(200);
    check_git_answer(
        move |_, _| answer_prefix_and_repeat("200 OK", first.clone(), more.clone()),
        "more than 67108864 bytes",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_references_without_end_are_cut() {
    let first = reference_advertisement(&[&format!("{ID} HEAD\0{OPTIONS}\n")]);
    let more = packet(format!("{ID} refs/heads/x\n").as_bytes()).repeat(1000);
    check_git_answer(
        move |_, _| answer_prefix_and_repeat("200 OK", first.clone(), more.clone()),
        "too many branches",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn features_without_end_are_cut() {
    let more = packet(b"x=y\n").repeat(5000);
    check_git_answer(
        move |_, _| {
            answer_prefix_and_repeat("200 OK", reference_advertisement(&["version 2\n"]), more.clone())
        },
        "more than 67108864 bytes",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dripping_references_are_given_up() {
    let drip = packet(format!("{ID} refs/heads/main\n").as_bytes());
    let answer = move |step: &str, _: &str| match step {
        "greet" => version_2_answer(),
        _ => PeerAnswer::Drip(answer_head("200 OK"), drip.clone()),
    };
    check_git_answer(answer, "did not end within 20 s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pack_of_too_many_objects_is_refused() {
    let start = [&b"\x01PACK\0\0\0\x02"[..], &u32::MAX.to_be_bytes()].concat();
    // A blob without a byte.
    let more = packet(&[&b"\x01"[..], &b"\x30\x78\x9c\x03\0\0\0\0\x01".repeat(7000)].concat());
    let answer = move |step: &str, _: &str| match step {
        "greet" => version_2_answer(),
        "list" => list_answer(),
        _ => {
            answer_prefix_and_repeat("200 OK", [packet(b"packfile\n"), packet(&start)].concat(), more.clone())
        }
    };
    check_git_answer(answer, "more than 2000000 objects").await;
}

/// Until it is cut, it is on disk and not in memory.
#[tokio::test(flavor = "multi_thread")]
async fn pack_without_end_takes_no_memory() {
    // A blob of 2^60 bytes, in uncompressed blocks of zlib.
    let size = b"\xb0\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    let start = [&b"\x01PACK\0\0\0\x02\0\0\0\x01"[..], size, b"\x78\x01"].concat();
    let block = [&b"\0\xff\xef\0\x10"[..], &[b'x'; 0xefff]].concat();
    let more = packet(&[&b"\x01"[..], &block].concat());
    let answer = move |step: &str, _: &str| match step {
        "greet" => version_2_answer(),
        "list" => list_answer(),
        _ => {
            answer_prefix_and_repeat("200 OK", [packet(b"packfile\n"), packet(&start)].concat(), more.clone())
        }
    };
    let (_server, mut arena) = start_git_peer(answer, &[], |_| {}).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        arena.assert_running();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn token_follows_no_redirect() {
    let thief = HostilePeer::start(|_, _| {
        whole_answer("401 Unauthorized", "www-authenticate: Basic realm=\"x\"\r\n", b"")
    })
    .await;
    let location =
        format!("location: {}/a/b.git/info/refs?service=git-upload-pack&token=s3cr3t\r\n", thief.url());
    let answer = move |_: &str, _: &str| whole_answer("302 Found", &location, b"");
    let (_server, arena) = start_git_peer(answer, &["--token-env", "TUTTI_SECRET_GIT"], |command| {
        command.env("TUTTI_SECRET_GIT", "t0ken");
    })
    .await;
    // A moved repository is a wrong setting: the process says so and ends.
    for _ in 0..100 {
        if arena.log().contains("redirects are not followed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = arena.log();
    assert!(log.contains("redirects are not followed") && !log.contains("s3cr3t"), "{log}");
    assert_eq!(thief.request_heads(), Vec::<String>::new());
}

/// The process does not start.
#[tokio::test(flavor = "multi_thread")]
async fn token_is_not_sent_without_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        ["run", "--repo", "http://git.invalid/a/b.git", "--token-env", "TUTTI_SECRET_GIT", "--once"];
    let mut program = crate::support::program::tutti(folder.path());
    program.args(arguments).env("TUTTI_SECRET_GIT", "t0ken");
    let ended = tokio::task::spawn_blocking(move || program.output()).await.expect("no panic");
    let (_, said, code) = crate::support::program::output_text(&ended.expect("it runs"));
    assert!(code == 2 && said.contains("--allow-http git.invalid"), "{code}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_an_address_are_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = "http://127.0.0.1:1/a/b.git?token=s3cr3t&access_token=s3cr3t";
    let mut program = crate::support::program::tutti(folder.path());
    program.args(["doctor", "-vv", "--repo", url]).env("RUST_LOG", "tutti=trace");
    let ended = tokio::task::spawn_blocking(move || program.output()).await.expect("no panic");
    let (out, said, code) = crate::support::program::output_text(&ended.expect("it runs"));
    assert!(code == 6 && said.contains("http://127.0.0.1:1/a/b.git?***"), "{code}: {said}");
    assert!(!format!("{out}{said}").contains("s3cr3t"), "{said}");
}
