//! Commit statuses: each write is a row, and the newest of a context counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::{ForgeAnswer, ForgeRequest};
use super::state::ForgeState;

#[derive(Clone, Debug)]
pub struct ForgeStatus {
    id: i64,
    pub at: Instant,
    pub commit: String,
    pub context: String,
    pub state: String,
    pub description: String,
    target_url: String,
}

impl ForgeState {
    pub fn write_status(&mut self, doer: &str, commit: &str, request: &ForgeRequest) -> ForgeAnswer {
        if !self.git.has_commit(commit) {
            return ForgeAnswer::error(404, &format!("object does not exist [id: {commit}, rel_path: ]"));
        }
        let text = |field: &str| request.text(field).to_owned();
        let status = ForgeStatus {
            id: self.next_id(),
            at: Instant::now(),
            commit: commit.to_owned(),
            context: text("context"),
            state: text("state"),
            description: text("description"),
            target_url: text("target_url"),
        };
        let payload = json!({
            "sha": commit, "context": status.context, "state": status.state, "description": status.description,
        });
        let value = self.status_value(&status);
        self.statuses.push(status);
        self.queue_status(doer, payload);
        ForgeAnswer::of(201, value)
    }

    pub fn combined_status(&self, commit: &str, request: &ForgeRequest) -> ForgeAnswer {
        if !self.git.has_commit(commit) {
            return ForgeAnswer::error(404, &format!("object does not exist [id: {commit}, rel_path: ]"));
        }
        let newest = self.newest_statuses(commit);
        if newest.is_empty() && self.quirks.empty_combined {
            return ForgeAnswer::empty(200);
        }
        let largest = self.quirks.max_page;
        let number = |name: &str| request.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let size = number("limit").unwrap_or(largest).clamp(1, largest);
        let before = (number("page").unwrap_or(1).max(1) - 1).saturating_mul(size);
        let page: Vec<Value> =
            newest.iter().skip(before).take(size).map(|it| self.status_value(it)).collect();
        ForgeAnswer::of(200, json!({"sha": commit, "total_count": newest.len(), "statuses": page}))
    }

    pub fn newest_statuses(&self, commit: &str) -> Vec<ForgeStatus> {
        let mut newest: BTreeMap<&str, &ForgeStatus> = BTreeMap::new();
        for status in self.statuses.iter().filter(|status| status.commit == commit) {
            newest.insert(&status.context, status);
        }
        newest.into_values().cloned().collect()
    }

    fn status_value(&self, status: &ForgeStatus) -> Value {
        let field = if self.quirks.answers_state { "state" } else { "status" };
        let mut value = json!({
            "id": status.id, "context": status.context, "description": status.description,
            "target_url": status.target_url,
        });
        value[field] = status.state.as_str().into();
        value
    }
}
