//! Labels, webhooks and protected branches.

use serde_json::{Value, json};

use super::answers::{ForgeAnswer, ForgeRequest};
use super::hooks::ForgeHook;
use super::pulls::ForgePull;
use super::state::ForgeState;

pub struct ForgeLabel {
    pub id: i64,
    pub name: String,
    color: String,
    description: String,
}

impl ForgeLabel {
    pub fn value(&self) -> Value {
        json!({"id": self.id, "name": self.name, "color": self.color, "description": self.description})
    }
}

pub struct ForgeBranchRule {
    pub rule: String,
    fields: Value,
}

impl ForgeState {
    pub fn answer_labels(&mut self, request: &ForgeRequest) -> ForgeAnswer {
        if request.method == "GET" {
            return self.page(self.labels.iter().map(ForgeLabel::value).collect(), request);
        }
        let (name, description) = (request.text("name").to_owned(), request.text("description").to_owned());
        let color = request.text("color").trim_start_matches('#').to_owned();
        let label = ForgeLabel { id: self.next_id(), name, color, description };
        let value = label.value();
        self.labels.push(label);
        ForgeAnswer::of(201, value)
    }

    pub fn answer_hooks(&mut self, path: &[&str], request: &ForgeRequest) -> ForgeAnswer {
        let id = path.first().and_then(|id| id.parse::<i64>().ok());
        let index = self.hooks.iter().position(|hook| Some(hook.id) == id);
        match (request.method.as_str(), id, index) {
            ("GET", None, _) => self.page(self.hooks.iter().map(hook).collect(), request),
            ("POST", None, _) => {
                let id = self.next_id();
                self.hooks.push(ForgeHook {
                    id,
                    url: String::new(),
                    // Set at creation: an edit does not change it.
                    secret: request.body["config"]["secret"].as_str().unwrap_or_default().to_owned(),
                    content_type: String::new(),
                    events: Vec::new(),
                    is_active: false,
                    branch_filter: String::new(),
                    authorization: String::new(),
                });
                self.write_hook(self.hooks.len() - 1, 201, request)
            }
            ("PATCH", Some(_), Some(index)) => self.write_hook(index, 200, request),
            ("DELETE", Some(_), Some(index)) => {
                self.hooks.remove(index);
                ForgeAnswer::empty(204)
            }
            _ => ForgeAnswer::not_found(),
        }
    }

    fn write_hook(&mut self, index: usize, code: u16, request: &ForgeRequest) -> ForgeAnswer {
        let row = &mut self.hooks[index];
        for (field, text) in [("url", &mut row.url), ("content_type", &mut row.content_type)] {
            if let Some(new) = request.body["config"][field].as_str() {
                new.clone_into(text);
            }
        }
        // Absent fields are emptied.
        row.events = subscribed_events(&request.texts("events"));
        request.text("branch_filter").clone_into(&mut row.branch_filter);
        request.text("authorization_header").clone_into(&mut row.authorization);
        if let Some(is_active) = request.body["active"].as_bool() {
            row.is_active = is_active;
        }
        ForgeAnswer::of(code, hook(row))
    }

    pub fn answer_protections(&mut self, name: &str, request: &ForgeRequest) -> ForgeAnswer {
        let index = self.protections.iter().position(|it| it.rule == name);
        match (request.method.as_str(), name, index) {
            ("GET", "", _) => {
                let rules = self.protections.iter().map(|it| it.fields.clone()).collect();
                self.page(rules, request)
            }
            ("POST", "", _) => {
                let rule = request.text("rule_name").to_owned();
                if self.protections.iter().any(|it| it.rule == rule) {
                    return ForgeAnswer::error(403, "Branch protection already exist");
                }
                let fields = json!({
                    "rule_name": rule, "enable_push": false, "enable_status_check": false,
                    "status_check_contexts": [], "required_approvals": 0,
                });
                self.protections.push(ForgeBranchRule { rule, fields });
                self.write_protection(self.protections.len() - 1, 201, request)
            }
            ("GET", _, Some(index)) => ForgeAnswer::of(200, self.protections[index].fields.clone()),
            ("PATCH", _, Some(index)) => self.write_protection(index, 200, request),
            _ => ForgeAnswer::not_found(),
        }
    }

    fn write_protection(&mut self, index: usize, code: u16, request: &ForgeRequest) -> ForgeAnswer {
        let fields = &mut self.protections[index].fields;
        for (name, value) in request.body.as_object().into_iter().flatten() {
            fields[name] = value.clone();
        }
        ForgeAnswer::of(code, fields.clone())
    }

    /// The rule with the name of the branch, else the first matching pattern.
    pub fn protection_of(&self, branch: &str) -> Option<&ForgeBranchRule> {
        let fits =
            |it: &&ForgeBranchRule| it.rule.strip_suffix('*').is_some_and(|begin| branch.starts_with(begin));
        let exact = self.protections.iter().find(|it| it.rule == branch);
        exact.or_else(|| self.protections.iter().find(fits))
    }

    /// The first requirement of the base's rule that a pull request does not meet.
    pub fn unmet_rule(&self, pull: &ForgePull) -> Option<&'static str> {
        let fields = &self.protection_of(&pull.base)?.fields;
        let head = pull.head_id.to_string();
        let mut contexts = fields["status_check_contexts"].as_array().into_iter().flatten();
        let is_good = |context: &Value| {
            self.newest_statuses(&head)
                .iter()
                .any(|status| *context == status.context.as_str() && status.state == "success")
        };
        if fields["enable_status_check"] == true && !contexts.all(is_good) {
            return Some("Not all required status checks successful");
        }
        let approvals = self.reviews.iter().filter(|review| {
            review.number == pull.number
                && review.state == "APPROVED"
                && review.is_official
                && !review.is_dismissed
        });
        let wanted = fields["required_approvals"].as_u64().unwrap_or_default();
        ((approvals.count() as u64) < wanted).then_some("Does not have enough approvals")
    }
}

fn hook(row: &ForgeHook) -> Value {
    json!({
        "id": row.id, "type": "gitea", "config": {"url": row.url, "content_type": row.content_type},
        "events": row.events, "active": row.is_active, "branch_filter": row.branch_filter,
        "authorization_header": row.authorization,
    })
}

/// A subscription to `pull_request` includes all its types.
fn subscribed_events(asked: &[String]) -> Vec<String> {
    let all = [
        "pull_request_assign",
        "pull_request_label",
        "pull_request_milestone",
        "pull_request_comment",
        "pull_request_review",
        "pull_request_review_request",
        "pull_request_sync",
    ];
    let has_all = asked.iter().any(|event| event == "pull_request");
    let more = all.into_iter().filter(|event| has_all && !asked.iter().any(|it| it == event));
    let mut events: Vec<String> = asked.iter().cloned().chain(more.map(str::to_owned)).collect();
    // The order has no meaning.
    events.reverse();
    events
}
