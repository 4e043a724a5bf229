//! Webhooks: each event is delivered once, signed, as Gitea does.

use std::sync::Arc;

use git2::Oid;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::mpsc::UnboundedReceiver;

use super::state::ForgeState;
use super::users::ForgePermission;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeHook {
    pub id: i64,
    pub url: String,
    pub secret: String,
    pub content_type: String,
    pub events: Vec<String>,
    pub is_active: bool,
    pub branch_filter: String,
    pub authorization: String,
}

/// One delivery, before it is sent.
pub struct UnsentDelivery {
    url: String,
    secret: String,
    event: String,
    kind: String,
    id: i64,
    body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// `X-Gitea-Event`, and `X-Gitea-Event-Type`.
    pub event: String,
    pub kind: String,
    pub body: String,
    /// `None` without an answer.
    pub code: Option<u16>,
}

pub async fn send_deliveries(mut parcels: UnboundedReceiver<UnsentDelivery>, state: Arc<Mutex<ForgeState>>) {
    // The client needs a provider even without TLS; installing it twice is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    while let Some(UnsentDelivery { url, secret, event, kind, id, body }) = parcels.recv().await {
        let signature = signature(body.as_bytes(), &secret);
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .header("x-gitea-delivery", format!("00000000-0000-4000-8000-{id:012}"))
            .header("x-gitea-event", &event)
            .header("x-gitea-event-type", &kind)
            .header("x-gitea-signature", &signature)
            .header("x-github-event", &event)
            .header("x-hub-signature-256", format!("sha256={signature}"))
            .body(body.clone());
        let answer = request.send().await;
        let code = answer.ok().map(|answer| answer.status().as_u16());
        state.lock().deliveries.push(DeliveryRecord { event, kind, body, code });
    }
}

pub fn signature(body: &[u8], secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

impl ForgeState {
    /// `wanted` are the event names that a hook may subscribe to; `event` and `kind` are the headers of the delivery.
    fn queue_deliveries(&mut self, doer: &str, wanted: &[&str], event: &str, kind: &str, mut payload: Value) {
        payload["repository"] = self.repository_value(ForgePermission::Read);
        payload["sender"] = self.user_value(doer);
        let hooks: Vec<ForgeHook> = self
            .hooks
            .iter()
            .filter(|hook| hook.is_active && hook.events.iter().any(|it| wanted.contains(&it.as_str())))
            .cloned()
            .collect();
        for ForgeHook { url, secret, .. } in hooks {
            let (event, kind, body) = (event.to_owned(), kind.to_owned(), payload.to_string());
            let parcel = UnsentDelivery { url, secret, event, kind, id: self.next_id(), body };
            // The receiver is gone when the simulator ends.
            let _ = self.delivery_sender.send(parcel);
        }
    }

    pub fn queue_push(&mut self, doer: &str, branch: &str, before: Option<Oid>, after: Option<Oid>) {
        let none = Oid::ZERO_SHA1;
        let id = |id: Option<Oid>| id.unwrap_or(none).to_string();
        let rows = after.map(|after| self.git.commits_between(before, after)).unwrap_or_default();
        let commits: Vec<Value> = rows
            .iter()
            .take(self.quirks.max_listed_commits)
            .map(|row| {
                let [added, removed, modified] = &row.paths;
                json!({"id": row.id.to_string(), "message": row.message, "author": {"email": row.author},
                    "added": added, "removed": removed, "modified": modified})
            })
            .collect();
        let push = json!({
            "ref": format!("refs/heads/{branch}"), "before": id(before), "after": id(after),
            "commits": commits, "total_commits": rows.len(), "pusher": self.user_value(doer),
        });
        self.queue_deliveries(doer, &["push"], "push", "push", push);
        let event = match (before, after) {
            (None, Some(_)) => "create",
            (Some(_), None) => "delete",
            _ => return,
        };
        let payload = json!({"ref": branch, "ref_type": "branch", "sha": id(after)});
        self.queue_deliveries(doer, &[event], event, event, payload);
    }

    /// `kind` is `pull_request`, or one of the types with the same event name.
    pub fn queue_pull(&mut self, doer: &str, index: usize, kind: &str, action: &str) {
        let number = self.pulls[index].number;
        let payload = json!({"action": action, "number": number, "pull_request": self.pull_value(index)});
        self.queue_deliveries(doer, &[kind, "pull_request"], "pull_request", kind, payload);
    }

    pub fn queue_review(&mut self, doer: &str, index: usize, verdict: &str) {
        let (event, kind) = match verdict {
            "APPROVED" => ("pull_request_approved", "pull_request_review_approved"),
            "REQUEST_CHANGES" => ("pull_request_rejected", "pull_request_review_rejected"),
            _ => ("pull_request_comment", "pull_request_review_comment"),
        };
        // Gitea does not send the reviewed commit.
        let payload = json!({
            "action": "reviewed", "number": self.pulls[index].number, "pull_request": self.pull_value(index),
            "commit_id": "", "review": {"type": kind, "content": ""},
        });
        self.queue_deliveries(doer, &["pull_request_review", "pull_request"], event, kind, payload);
    }

    pub fn queue_comment(&mut self, doer: &str, index: usize, action: &str) {
        let comment = &self.comments[index];
        let payload = json!({
            "action": action, "is_pull": true, "issue": {"number": comment.number},
            "comment": self.comment_value(comment),
        });
        let wanted = ["pull_request_comment", "pull_request"];
        self.queue_deliveries(doer, &wanted, "issue_comment", "pull_request_comment", payload);
    }

    pub fn queue_status(&mut self, doer: &str, payload: Value) {
        if self.quirks.statuses_loop_back {
            self.queue_deliveries(doer, &["status", "push"], "", "status", payload);
        } else {
            self.queue_deliveries(doer, &["status"], "status", "status", payload);
        }
    }
}
