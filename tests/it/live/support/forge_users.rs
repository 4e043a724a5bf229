//! Actions of people at the forge.

use serde_json::{Value, json};

use super::{HOOK_SECRET, LiveFixture};

/// The events that `tutti forge setup` subscribes to.
const EVENTS: [&str; 8] = [
    "push",
    "create",
    "delete",
    "pull_request",
    "pull_request_sync",
    "pull_request_label",
    "pull_request_review_approved",
    "pull_request_review_rejected",
];

/// The API calls of people.
pub struct ForgeUsers<'s> {
    scene: &'s LiveFixture,
}

impl<'s> ForgeUsers<'s> {
    pub fn of(scene: &'s LiveFixture) -> Self {
        Self { scene }
    }

    /// Creates a webhook with all events that tutti needs.
    pub async fn create_webhook(&self) {
        let url = self.scene.hook_url();
        self.scene.gitea().create_hook(self.scene.name(), &url, HOOK_SECRET, &EVENTS).await.expect("a hook");
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/v1/repos/{}/{}{rest}", self.scene.gitea().user(), self.scene.name())
    }

    pub async fn request(&self, method: &str, rest: &str, body: Option<&Value>) -> Value {
        let answer = self.scene.gitea().request(method, &self.path(rest), body).await;
        answer.unwrap_or_else(|error| panic!("{method} {rest}: {error}"))
    }

    /// A user with the right to write, who is neither the author nor tutti.
    pub async fn reviewer(&self, name: &str) {
        let user = json!({"username": name, "email": format!("{name}@example.com"), "password": "only-on-loopback",
            "must_change_password": false});
        self.scene.gitea().request("POST", "/api/v1/admin/users", Some(&user)).await.expect("a user");
        self.request("PUT", &format!("/collaborators/{name}"), Some(&json!({"permission": "write"}))).await;
    }

    pub async fn open(&self, branch: &str) -> u64 {
        let body = json!({"head": branch, "base": "main", "title": branch, "body": ""});
        self.request("POST", "/pulls", Some(&body)).await["number"].as_u64().expect("a number")
    }

    /// Bodies of the comments that begin with the marker.
    pub async fn plan_comments(&self, number: u64) -> Vec<String> {
        let comments = self.request("GET", &format!("/issues/{number}/comments"), None).await;
        let bodies = comments.as_array().into_iter().flatten().filter_map(|it| it["body"].as_str());
        bodies.filter(|body| body.starts_with("<!-- tutti:plan v1")).map(str::to_owned).collect()
    }

    pub async fn until_plan_contains(&self, number: u64, words: &[&str]) -> String {
        self.scene
            .eventually(&format!("the comment of #{number} says {words:?}"), async || {
                let plans = self.plan_comments(number).await;
                match plans.as_slice() {
                    [plan] if words.iter().all(|word| plan.contains(word)) => Ok(plan.clone()),
                    plans => Err(format!("{plans:#?}")),
                }
            })
            .await
    }

    /// The open pull request of a branch.
    async fn open_pull_of(&self, branch: &str) -> Option<Value> {
        let pulls = self.request("GET", "/pulls?state=open&limit=50", None).await;
        let pulls = pulls.as_array().cloned().unwrap_or_default();
        pulls.into_iter().find(|pull| pull["head"]["ref"] == branch)
    }

    /// State and title of each pull request; the oldest first.
    pub async fn pull_states(&self) -> Vec<String> {
        let pulls = self.request("GET", "/pulls?state=all&sort=oldest&limit=50", None).await;
        let one = |pull: &Value| {
            let state = if pull["merged"] == true { &json!("merged") } else { &pull["state"] };
            format!("{} {}", state.as_str().unwrap_or_default(), pull["title"].as_str().unwrap_or_default())
        };
        pulls.as_array().into_iter().flatten().map(one).collect()
    }

    /// A file at a commit.
    pub async fn file_text(&self, path: &str, commit: &str) -> String {
        let text = self.request("GET", &format!("/raw/{path}?ref={commit}"), None).await;
        text.as_str().unwrap_or_else(|| panic!("{path}: {text}")).to_owned()
    }

    /// Waits for the pull request of a branch; its number and head.
    pub async fn until_opened(&self, branch: &str) -> (u64, String) {
        self.scene
            .eventually(&format!("a pull request of {branch}"), async || {
                let pull = self.open_pull_of(branch).await.ok_or("there is none")?;
                let head = pull["head"]["sha"].as_str().unwrap_or_default().to_owned();
                pull["number"].as_u64().map(|number| (number, head)).ok_or("without a number".to_owned())
            })
            .await
    }

    pub async fn merge(&self, number: u64, head: &str) {
        let merge = json!({"Do": "merge", "head_commit_id": head});
        self.request("POST", &format!("/pulls/{number}/merge"), Some(&merge)).await;
    }

    /// The merge commit of a pull request, once it is merged.
    pub async fn until_merged(&self, number: u64) -> String {
        self.scene
            .eventually(&format!("#{number} is merged"), async || {
                let pull = self.request("GET", &format!("/pulls/{number}"), None).await;
                match (pull["merged"].as_bool(), pull["merge_commit_sha"].as_str()) {
                    (Some(true), Some(commit)) => Ok(commit.to_owned()),
                    _ => Err(pull["state"].to_string()),
                }
            })
            .await
    }

    /// Sets a status like another program.
    pub async fn set_status(&self, commit: &str, context: &str, state: &str) {
        let status = json!({"context": context, "state": state, "description": "by a pipeline"});
        self.request("POST", &format!("/statuses/{commit}"), Some(&status)).await;
    }
}

/// A web server with one image.
pub fn component(namespace: &str, image: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {{name: web, namespace: {namespace}}}
spec:
  workloadType: Deployment
  developLanguage: python
  runType: server
  image: {image}
  port: 8080
  replicas: 2
{more}"
    )
}
