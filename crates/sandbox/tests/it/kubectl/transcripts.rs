//! Transcripts: commands with their whole output, compared byte for byte.
//!
//! `TUTTI_TRANSCRIPT=write` writes the current outputs. `TUTTI_TRANSCRIPT_SERVER=<kubeconfig>` runs the commands on that
//! server, whose outputs are the same. Every transcript has its own namespace.

use std::path::{Path, PathBuf};

use super::normalization::normalize_output;
use super::program::Kubectl;

const MODE_VARIABLE: &str = "TUTTI_TRANSCRIPT";
const SERVER_VARIABLE: &str = "TUTTI_TRANSCRIPT_SERVER";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

async fn start_kubectl() -> Option<Kubectl> {
    match std::env::var(SERVER_VARIABLE) {
        Ok(path) => Kubectl::for_server(path.into()).await,
        Err(_) => Kubectl::new().await,
    }
}

/// Runs the commands of a transcript; returns the transcript with the new output.
async fn run_transcript(kubectl: &Kubectl, namespace: &str, transcript: &str) -> String {
    let mut out = String::new();
    for line in transcript.lines() {
        if line.starts_with("# ") {
            out.push_str(&format!("{line}\n"));
        }
        let Some(command) = line.strip_prefix("$ kubectl ") else { continue };
        let mut words = vec!["--namespace", namespace];
        words.extend(command.split(' '));
        let (code, text) = kubectl.run(&words).await;
        out.push_str(&format!("{line}\n"));
        let text = normalize_output(&text);
        if !text.trim().is_empty() {
            out.push_str(&format!("{}\n", text.trim_end()));
        }
        if code != 0 {
            out.push_str(&format!("[exit {code}]\n"));
        }
        out.push('\n');
    }
    out
}

async fn check_transcript(name: &str) {
    let Some(kubectl) = start_kubectl().await else { return };
    for file in std::fs::read_dir(folder().join("files")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), kubectl.home.path().join(file.file_name())).unwrap();
    }
    let namespace = format!("transcript-{name}");
    kubectl.write(
        "namespace.json",
        &serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    );
    kubectl.check_output("create -f namespace.json", "created").await;
    let path = folder().join(format!("kubectl-{name}.txt"));
    let recorded = std::fs::read_to_string(&path).unwrap();
    let now = run_transcript(&kubectl, &namespace, &recorded).await;
    kubectl.check_output("delete -f namespace.json --timeout=50s", "deleted").await;
    if std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "write") {
        std::fs::write(&path, now).unwrap();
    } else {
        assert_eq!(now, recorded, "kubectl-{name}.txt");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout() {
    check_transcript("rollout").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply() {
    check_transcript("apply").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom() {
    check_transcript("custom").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday() {
    check_transcript("everyday").await;
}
