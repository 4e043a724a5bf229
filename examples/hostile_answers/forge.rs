//! A simulated Gitea API with every request that tutti sends.

use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::{Value, json};
use tutti::forge::{CommitStatus, CommitStatusState, ForgeClient, ForgeHostRules};
use tutti::model::{Hosts, Revision};

use super::HostilePeer;
use super::server::{PeerAnswer, PeerRequest};

pub const PEER: HostilePeer =
    HostilePeer { name: "forge", answer, ask: |address, _: PathBuf| Box::pin(ask(address)) };

const COMMIT: &str = "3f9c2d1a0000000000000000000000000000beef";

fn answer(asked: &PeerRequest) -> PeerAnswer {
    let path = asked.path.split('?').next().unwrap_or_default();
    match (asked.method.as_str(), path) {
        ("GET", path) if path.ends_with("/version") => PeerAnswer::json(&json!({"version": "1.27.1"})),
        ("GET", path) if path.ends_with("/statuses") => {
            let statuses: Vec<Value> = (0..50).map(status).collect();
            PeerAnswer {
                headers: vec!["x-total-count: 120".to_owned()],
                ..PeerAnswer::json(&json!(statuses))
            }
        }
        ("POST", _) => PeerAnswer { status: 201, ..PeerAnswer::json(&status(1)) },
        _ => {
            PeerAnswer::json(&json!({"id": 1, "full_name": "platform/config", "permissions": {"push": true}}))
        }
    }
}

fn status(number: usize) -> Value {
    json!({"id": number, "status": "success", "context": format!("tutti/deploy/{number}"), "description": "3 of 3",
        "target_url": "", "created_at": "2026-01-01T00:00:00Z", "creator": {"login": "tutti"}})
}

async fn ask(address: String) {
    let host = address.trim_start_matches("http://");
    let rules = ForgeHostRules::new("/srv/config", Hosts::new([host]), Hosts::new([host]));
    let token = Some(SecretString::from("hunter2"));
    let client = ForgeClient::gitea(&address, "platform/config", token, &rules).expect("a client");
    let commit = Revision::from(COMMIT);
    let status = CommitStatus {
        context: "tutti/deploy".to_owned(),
        state: CommitStatusState::Success,
        description: "3 of 3".to_owned(),
        target_url: None,
    };
    let told = [
        client.version().await.err(),
        client.statuses(&commit).await.err(),
        client.post_status(&commit, &status).await.err(),
    ];
    for error in told.into_iter().flatten().map(|error| error.to_string()) {
        assert!(error.len() < 4096 && !error.contains(char::is_control), "{error:?}");
        assert!(!error.contains("hunter2"), "{error:?}");
    }
}
