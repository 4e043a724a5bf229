//! Comments and labels: Gitea treats a pull request as an issue.

use serde_json::{Value, json};

use super::answers::{Answer, Request};
use super::people::Right;
use super::pulls::Comment;
use super::state::State;

impl State {
    pub fn answer_issues(&mut self, doer: &str, path: &[&str], request: &Request) -> Answer {
        match (request.method.as_str(), path) {
            (method, ["comments", id, rest @ ..]) => {
                let id: i64 = id.parse().unwrap_or_default();
                let Some(index) = self.comments.iter().position(|comment| comment.id == id) else {
                    return Answer::not_found();
                };
                match (method, rest) {
                    ("PATCH", []) if !self.may_edit(doer, index) => {
                        Answer::error(403, "user should be the author or a writer")
                    }
                    ("PATCH", []) => {
                        request.text("body").clone_into(&mut self.comments[index].body);
                        self.announce_comment(doer, index, "edited");
                        Answer::of(200, self.comment(&self.comments[index]))
                    }
                    ("POST", ["reactions"]) => {
                        let reaction = (doer.to_owned(), request.text("content").to_owned());
                        let reactions = &mut self.comments[index].reactions;
                        let is_known = reactions.contains(&reaction);
                        reactions.push(reaction);
                        Answer::of(
                            if is_known { 200 } else { 201 },
                            json!({"content": request.text("content")}),
                        )
                    }
                    _ => Answer::not_found(),
                }
            }
            (method, [number, rest]) => {
                let number: u64 = number.parse().unwrap_or_default();
                let Some(index) = self.pulls.iter().position(|pull| pull.number == number) else {
                    return Answer::error(404, "issue does not exist");
                };
                match (method, *rest) {
                    ("GET", "comments") => {
                        let of_pull = self.comments.iter().filter(|comment| comment.number == number);
                        let items = of_pull.map(|comment| self.comment(comment)).collect();
                        Answer::whole(items, !self.quirks.hides_totals)
                    }
                    ("POST", "comments") => self.add_comment(doer, number, request),
                    ("POST", "labels") if self.right(doer) < Right::Write => {
                        Answer::error(403, "user should have a permission to write")
                    }
                    ("POST", "labels") => self.add_labels(doer, index, request),
                    _ => Answer::not_found(),
                }
            }
            _ => Answer::not_found(),
        }
    }

    fn may_edit(&self, doer: &str, index: usize) -> bool {
        self.comments[index].author == doer || self.right(doer) >= Right::Write
    }

    fn add_comment(&mut self, doer: &str, number: u64, request: &Request) -> Answer {
        let (id, created) = (self.next_id(), self.now());
        let (author, body) = (doer.to_owned(), request.text("body").to_owned());
        self.comments.push(Comment { id, number, author, body, created, reactions: Vec::new() });
        let index = self.comments.len() - 1;
        self.announce_comment(doer, index, "created");
        Answer::of(201, self.comment(&self.comments[index]))
    }

    fn add_labels(&mut self, doer: &str, index: usize, request: &Request) -> Answer {
        let items = request.body["labels"].as_array().into_iter().flatten();
        let ids: Option<Vec<i64>> = items.map(Value::as_i64).collect();
        let Some(ids) = ids else { return Answer::error(422, "labels are numbers") };
        for id in ids {
            if !self.pulls[index].labels.contains(&id) {
                self.pulls[index].labels.push(id);
            }
        }
        self.announce_pull(doer, index, "pull_request_label", "label_updated");
        Answer::of(200, self.pull(index)["labels"].clone())
    }

    pub fn comment(&self, comment: &Comment) -> Value {
        json!({
            "id": comment.id, "user": self.user(&comment.author), "body": comment.body,
            "created_at": Self::time(comment.created),
        })
    }
}
