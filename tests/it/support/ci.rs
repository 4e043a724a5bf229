//! Simulated Drone and Woodpecker: what their servers and steps send about a build, with the documented fields and
//! signatures. Neither server runs in the tests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tutti::model::WebhookReceiverKind;

use super::senders;

/// One build of an application repository.
#[derive(Clone, Debug)]
pub struct CiBuild {
    /// `owner/name`.
    pub repository: String,
    pub number: u64,
    /// `push`, `tag`, `promote`, `pull_request`, `cron` or `custom`.
    pub event: String,
    /// `pending`, `running`, `success`, `failure`, `killed` or `error`.
    pub status: String,
    /// The full name of the reference.
    pub reference: String,
    pub commit: String,
    pub message: String,
    /// The target of a promotion.
    pub target: Option<String>,
}

impl CiBuild {
    /// A successful build of a tag.
    pub fn of_tag(repository: &str, number: u64, tag: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            number,
            event: "tag".to_owned(),
            status: "success".to_owned(),
            reference: format!("refs/tags/{tag}"),
            commit: "3f9c2d1a0b4e5f60718293a4b5c6d7e8f9012345".to_owned(),
            message: format!("Release {tag}\n"),
            target: None,
        }
    }

    fn owner_and_name(&self) -> (&str, &str) {
        self.repository.split_once('/').expect("owner/name")
    }

    fn tag(&self) -> Option<&str> {
        self.reference.strip_prefix("refs/tags/")
    }

    /// The body of Drone's global webhook for a changed build.
    pub fn drone_body(&self, action: &str) -> Value {
        let (owner, name) = self.owner_and_name();
        let link = format!("https://git.example.com/{}", self.repository);
        let mut build = json!({
            "id": 100 + self.number, "repo_id": 7, "trigger": "@hook", "number": self.number, "status": self.status,
            "event": self.event, "action": "", "link": format!("{link}/compare/0...1"), "timestamp": 0, "message": self.message,
            "before": "0".repeat(40), "after": self.commit, "ref": self.reference, "source_repo": "",
            "source": self.tag().unwrap_or("main"), "target": "main", "author_login": "li", "author_name": "Li", "author_email": "li@example.com",
            "author_avatar": "", "sender": "li", "started": 1_700_000_000, "finished": 1_700_000_060, "created": 1_700_000_000,
            "updated": 1_700_000_060, "version": 3,
            "stages": [{"id": 1, "number": 1, "name": "default", "status": self.status, "steps": []}],
        });
        if let Some(target) = &self.target {
            build["deploy_to"] = target.as_str().into();
        }
        json!({
            "event": "build", "action": action,
            "repo": {
                "id": 7, "uid": "7", "user_id": 1, "namespace": owner, "name": name, "slug": self.repository, "scm": "",
                "git_http_url": format!("{link}.git"), "git_ssh_url": format!("git@git.example.com:{}.git", self.repository),
                "link": link, "default_branch": "main", "private": true, "visibility": "private", "active": true,
                "config_path": ".drone.yml", "trusted": false, "protected": false, "timeout": 60, "counter": self.number,
            },
            "build": build,
            "system": {"proto": "https", "host": "drone.example.com", "link": "https://drone.example.com", "version": "2.0.4"},
        })
    }

    /// A delivery of Drone's server: headers and body.
    pub fn drone(&self, action: &str, secret: &str) -> (Vec<(&'static str, String)>, String) {
        let body = self.drone_body(action).to_string();
        (senders::headers(WebhookReceiverKind::Drone, "build", body.as_bytes(), secret, self.number), body)
    }

    /// The same delivery, sent at another time.
    pub fn drone_at(
        &self,
        action: &str,
        secret: &str,
        at: Timestamp,
    ) -> (Vec<(&'static str, String)>, String) {
        let body = self.drone_body(action).to_string();
        (senders::drone_headers(body.as_bytes(), secret, at).into(), body)
    }

    /// The variables that Drone sets for a step.
    pub fn drone_step(&self) -> BTreeMap<&'static str, String> {
        let mut variables = BTreeMap::from([
            ("CI", "true".to_owned()),
            ("DRONE", "true".to_owned()),
            ("DRONE_REPO", self.repository.clone()),
            ("DRONE_COMMIT_SHA", self.commit.clone()),
            ("DRONE_COMMIT_AUTHOR", "li".to_owned()),
            ("DRONE_COMMIT_MESSAGE", self.message.clone()),
            ("DRONE_BUILD_NUMBER", self.number.to_string()),
            ("DRONE_BUILD_EVENT", self.event.clone()),
            ("DRONE_BUILD_LINK", format!("https://drone.example.com/{}/{}", self.repository, self.number)),
        ]);
        variables.extend(self.tag().map(|tag| ("DRONE_TAG", tag.to_owned())));
        variables.extend(self.target.clone().map(|target| ("DRONE_DEPLOY_TO", target)));
        variables
    }

    /// The variables that Woodpecker sets for a step.
    pub fn woodpecker_step(&self) -> BTreeMap<&'static str, String> {
        let mut variables = BTreeMap::from([
            ("CI", "woodpecker".to_owned()),
            ("CI_REPO", self.repository.clone()),
            ("CI_COMMIT_SHA", self.commit.clone()),
            ("CI_COMMIT_REF", self.reference.clone()),
            ("CI_COMMIT_AUTHOR", "li".to_owned()),
            ("CI_COMMIT_MESSAGE", self.message.clone()),
            ("CI_PIPELINE_NUMBER", self.number.to_string()),
            ("CI_PIPELINE_EVENT", self.event.clone()),
            ("CI_PIPELINE_STATUS", self.status.clone()),
            ("CI_PIPELINE_URL", format!("https://ci.example.com/repos/7/pipeline/{}", self.number)),
            ("CI_FORGE_TYPE", "gitea".to_owned()),
        ]);
        variables.extend(self.tag().map(|tag| ("CI_COMMIT_TAG", tag.to_owned())));
        variables.extend(self.target.clone().map(|target| ("CI_PIPELINE_DEPLOY_TARGET", target)));
        variables
    }

    /// The request of the last step of a Woodpecker pipeline to a receiver.
    pub fn woodpecker(&self, secret: &str) -> (Vec<(&'static str, String)>, String) {
        let body = json!(self.woodpecker_step()).to_string();
        (senders::headers(WebhookReceiverKind::Woodpecker, "", body.as_bytes(), secret, self.number), body)
    }
}
