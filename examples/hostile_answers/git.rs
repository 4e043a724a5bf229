//! A Git host over http: what `git upload-pack` answers.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use parking_lot::Mutex;
use tutti::source::{self, ConfigRepository, GitCredentials, SourceOptions};

use super::HostilePeer;
use super::server::{PeerAnswer, PeerRequest};

pub const PEER: HostilePeer =
    HostilePeer { name: "git", answer, ask: |address, folder| Box::pin(ask(address, folder)) };

static REPOSITORY: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..20 {
        std::fs::write(folder.path().join(format!("{number}.yaml")), format!("a: {number}\n"))
            .expect("a file");
    }
    source::create(folder.path(), "Begin").expect("a repository");
    folder
});

/// The answers by request: equal requests have equal answers.
static UPLOAD_PACK_CACHE: LazyLock<Mutex<HashMap<Vec<u8>, Vec<u8>>>> = LazyLock::new(Mutex::default);

fn answer(asked: &PeerRequest) -> PeerAnswer {
    let (kind, greeting): (_, &[u8]) = match asked.method.as_str() {
        "GET" => ("advertisement", b"001e# service=git-upload-pack\n0000"),
        _ => ("result", b""),
    };
    let mut said = UPLOAD_PACK_CACHE.lock();
    let body = said.entry([asked.method.as_bytes(), &asked.body].concat()).or_insert_with(|| {
        let more: &[&str] = if asked.method == "GET" { &["--http-backend-info-refs"] } else { &[] };
        [greeting, &upload_pack(more, &asked.body)].concat()
    });
    let headers = vec![format!("content-type: application/x-git-upload-pack-{kind}")];
    PeerAnswer { status: 200, headers, body: body.clone() }
}

fn upload_pack(more: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["upload-pack", "--stateless-rpc"]).args(more).arg(REPOSITORY.path());
    command.env("GIT_PROTOCOL", "version=2").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("git");
    child.stdin.take().expect("its input").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends").stdout
}

async fn ask(address: String, folder: PathBuf) {
    let options = SourceOptions {
        url: format!("{address}/platform/config.git"),
        branch: None,
        path: ".".to_owned(),
        outside_file_lister: |_, _| Vec::new(),
        credentials: GitCredentials::None,
        state_folder: folder,
    };
    let Ok(repository) = ConfigRepository::open(options).await else { return };
    for _ in 0..2 {
        match repository.fetch().await {
            Ok(revision) => {
                let _ = repository.snapshot(&revision).await;
                let _ = repository.recent_commits(&revision, 10).await;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() < 4096 && !text.contains(char::is_control), "{text:?}");
            }
        }
    }
}
