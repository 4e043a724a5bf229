//! Comments and labels: Gitea treats a pull request as an issue.

use serde_json::{Value, json};

use super::answers::{ForgeAnswer, ForgeRequest};
use super::pulls::ForgeComment;
use super::state::ForgeState;
use super::users::ForgePermission;

impl ForgeState {
    pub fn answer_issues(&mut self, doer: &str, path: &[&str], request: &ForgeRequest) -> ForgeAnswer {
        match (request.method.as_str(), path) {
            (method, ["comments", id, rest @ ..]) => {
                let id: i64 = id.parse().unwrap_or_default();
                let Some(index) = self.comments.iter().position(|comment| comment.id == id) else {
                    return ForgeAnswer::not_found();
                };
                match (method, rest) {
                    ("PATCH", []) if !self.may_edit(doer, index) => {
                        ForgeAnswer::error(403, "user should be the author or a writer")
                    }
                    ("PATCH", []) => {
                        request.text("body").clone_into(&mut self.comments[index].body);
                        self.queue_comment(doer, index, "edited");
                        ForgeAnswer::of(200, self.comment_value(&self.comments[index]))
                    }
                    ("POST", ["reactions"]) => {
                        let reaction = (doer.to_owned(), request.text("content").to_owned());
                        let reactions = &mut self.comments[index].reactions;
                        let is_known = reactions.contains(&reaction);
                        reactions.push(reaction);
                        ForgeAnswer::of(
                            if is_known { 200 } else { 201 },
                            json!({"content": request.text("content")}),
                        )
                    }
                    _ => ForgeAnswer::not_found(),
                }
            }
            (method, [number, rest]) => {
                let number: u64 = number.parse().unwrap_or_default();
                let Some(index) = self.pulls.iter().position(|pull| pull.number == number) else {
                    return ForgeAnswer::error(404, "issue does not exist");
                };
                match (method, *rest) {
                    ("GET", "comments") => {
                        let of_pull = self.comments.iter().filter(|comment| comment.number == number);
                        let items = of_pull.map(|comment| self.comment_value(comment)).collect();
                        ForgeAnswer::unpaged(items, !self.quirks.hides_totals)
                    }
                    ("POST", "comments") => self.add_comment(doer, number, request),
                    ("POST", "labels") if self.permission_of(doer) < ForgePermission::Write => {
                        ForgeAnswer::error(403, "user should have a permission to write")
                    }
                    ("POST", "labels") => self.add_labels(doer, index, request),
                    _ => ForgeAnswer::not_found(),
                }
            }
            _ => ForgeAnswer::not_found(),
        }
    }

    fn may_edit(&self, doer: &str, index: usize) -> bool {
        self.comments[index].author == doer || self.permission_of(doer) >= ForgePermission::Write
    }

    fn add_comment(&mut self, doer: &str, number: u64, request: &ForgeRequest) -> ForgeAnswer {
        let (id, created) = (self.next_id(), self.now());
        let (author, body) = (doer.to_owned(), request.text("body").to_owned());
        self.comments.push(ForgeComment { id, number, author, body, created, reactions: Vec::new() });
        let index = self.comments.len() - 1;
        self.queue_comment(doer, index, "created");
        ForgeAnswer::of(201, self.comment_value(&self.comments[index]))
    }

    fn add_labels(&mut self, doer: &str, index: usize, request: &ForgeRequest) -> ForgeAnswer {
        let items = request.body["labels"].as_array().into_iter().flatten();
        let ids: Option<Vec<i64>> = items.map(Value::as_i64).collect();
        let Some(ids) = ids else { return ForgeAnswer::error(422, "labels are numbers") };
        for id in ids {
            if !self.pulls[index].labels.contains(&id) {
                self.pulls[index].labels.push(id);
            }
        }
        self.queue_pull(doer, index, "pull_request_label", "label_updated");
        ForgeAnswer::of(200, self.pull_value(index)["labels"].clone())
    }

    pub fn comment_value(&self, comment: &ForgeComment) -> Value {
        json!({
            "id": comment.id, "user": self.user_value(&comment.author), "body": comment.body,
            "created_at": Self::format_time(comment.created),
        })
    }
}
