//! Settings of a step from its variables: its own ones, and facts about the pipeline.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli::timeout::timeout;
use crate::cli::wait::{Goal, Subject};
use crate::model::AppId;
use crate::report::became::AppQuestion;

const TIMEOUT: Duration = Duration::from_secs(600);
/// In characters, of one payload value: commit messages are unbounded.
const LONGEST: usize = 1000;

#[derive(Debug)]
pub struct Settings {
    pub server: Url,
    pub token: SecretString,
    pub allow_http: Vec<String>,
    pub ca_file: Option<PathBuf>,
    pub action: Action,
    pub wait: Option<Goal>,
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Trigger {
        name: String,
        payload: Value,
        /// Idempotency key: the same for a repeated step.
        key: String,
    },
    Wait(Subject),
}

/// Names of each variable in Drone, Woodpecker and Gitea Actions (as in GitHub's).
const REPOSITORY: &[&str] = &["DRONE_REPO", "CI_REPO", "GITHUB_REPOSITORY"];
const SHA: &[&str] = &["DRONE_COMMIT_SHA", "CI_COMMIT_SHA", "GITHUB_SHA"];
const BRANCH: &[&str] = &["DRONE_BRANCH", "CI_COMMIT_BRANCH"];
const EVENT: &[&str] = &["DRONE_BUILD_EVENT", "CI_PIPELINE_EVENT", "GITHUB_EVENT_NAME"];
const NUMBER: &[&str] = &["DRONE_BUILD_NUMBER", "CI_PIPELINE_NUMBER", "GITHUB_RUN_ID"];
const LINK: &[&str] = &["DRONE_BUILD_LINK", "CI_PIPELINE_URL"];
const AUTHOR: &[&str] = &["DRONE_COMMIT_AUTHOR", "CI_COMMIT_AUTHOR", "GITHUB_ACTOR"];
const MESSAGE: &[&str] = &["DRONE_COMMIT_MESSAGE", "CI_COMMIT_MESSAGE"];
const COMMIT_LINK: &[&str] = &["DRONE_COMMIT_LINK", "CI_PIPELINE_FORGE_URL"];
const TAG: &[&str] = &["DRONE_TAG", "CI_COMMIT_TAG"];
/// Set for a promotion.
const RING: &[&str] = &["DRONE_DEPLOY_TO", "CI_PIPELINE_DEPLOY_TARGET"];

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.0)(name).filter(|value| !value.trim().is_empty()))
    }

    /// A setting of the step: `PLUGIN_` in Drone and Woodpecker, `INPUT_` of an action.
    fn setting(&self, name: &str) -> Option<String> {
        let name = name.to_uppercase();
        self.first(&[&format!("PLUGIN_{name}"), &format!("INPUT_{name}")])
            .map(|value| value.trim().to_owned())
    }

    fn required(&self, name: &str, other: &str) -> Result<String, String> {
        let found = self.setting(name).or_else(|| self.first(&[other]));
        found.ok_or_else(|| {
            format!("the setting {name} is missing (help: PLUGIN_{}, or {other})", name.to_uppercase())
        })
    }

    fn tag(&self) -> Option<String> {
        let is_tag = || self.first(&["GITHUB_REF_TYPE"]).as_deref() == Some("tag");
        self.first(TAG).or_else(|| self.first(&["GITHUB_REF_NAME"]).filter(|_| is_tag()))
    }

    fn branch(&self) -> Option<String> {
        let is_branch = || self.first(&["GITHUB_REF_TYPE"]).as_deref() == Some("branch");
        self.first(BRANCH).or_else(|| self.first(&["GITHUB_REF_NAME"]).filter(|_| is_branch()))
    }

    /// Gitea Actions lacks these variables: builds the URL of its page.
    fn page(&self, rest: &[&str]) -> Option<String> {
        let parts = [self.first(&["GITHUB_SERVER_URL"])?, self.first(&["GITHUB_REPOSITORY"])?];
        let parts = parts.iter().map(|part| part.trim_end_matches('/')).chain(rest.iter().copied());
        Some(parts.collect::<Vec<_>>().join("/"))
    }

    fn commit(&self) -> Map<String, Value> {
        let sha = self.first(SHA);
        let url = self.first(COMMIT_LINK).or_else(|| self.page(&["commit", sha.as_deref()?]));
        let parts = [
            ("sha", sha),
            ("repo", self.first(REPOSITORY)),
            ("author", self.first(AUTHOR)),
            ("message", self.first(MESSAGE)),
            ("url", url),
        ];
        map(parts)
    }
}

fn map<const N: usize>(parts: [(&str, Option<String>); N]) -> Map<String, Value> {
    let given = parts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let short = |value: String| value.chars().take(LONGEST).collect::<String>();
    given.map(|(name, value)| (name.to_owned(), short(value).into())).collect()
}

impl Settings {
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variables = Variables(variable);
        let server = variables.required("server", "TUTTI_SERVER")?;
        let server = server.parse().map_err(|error| format!("the setting server is no address: {error}"))?;
        let token = SecretString::from(variables.required("token", "TUTTI_API_TOKEN")?);
        let wait = match variables.setting("wait").as_deref() {
            None | Some("false") => None,
            Some("true" | "healthy") => Some(Goal::Healthy),
            Some("planned") => Some(Goal::Planned),
            Some(other) => {
                return Err(format!("the setting wait is {other:?}, not healthy, planned or false"));
            }
        };
        let limit = variables.setting("timeout");
        let limit = limit.map(|text| timeout(&text).map_err(|error| format!("the setting timeout: {error}")));
        let allow_http = variables.setting("allow_http").unwrap_or_default();
        let allow_http =
            allow_http.split(',').filter(|host| !host.is_empty()).map(ToOwned::to_owned).collect();
        let ca_file = variables.setting("ca_file").map(PathBuf::from);
        let timeout = limit.transpose()?.unwrap_or(TIMEOUT);
        let (action, wait) = match variables.setting("action").as_deref() {
            None | Some("trigger") => (trigger(&variables)?, wait),
            Some("wait") => (Action::Wait(subject(&variables)?), wait.or(Some(Goal::Healthy))),
            Some(other) => return Err(format!("the setting action is {other:?}, not trigger or wait")),
        };
        Ok(Self { server, token, allow_http, ca_file, action, wait, timeout })
    }
}

fn trigger(variables: &Variables<'_>) -> Result<Action, String> {
    let name = variables
        .setting("trigger")
        .ok_or("the setting trigger is missing (help: PLUGIN_TRIGGER, the name of a Trigger in triggers/)")?;
    let tag = variables.tag();
    let image = variables.setting("image");
    // An image's tag is the version, if it has one.
    let has_tag = image.as_deref().is_some_and(|image| crate::model::image_tag(image).is_some());
    let version = variables.setting("version").or_else(|| tag.clone().filter(|_| !has_tag));
    let image = match (image, &version) {
        (Some(image), Some(version)) => Some(crate::model::with_version(&image, version)),
        (image, _) => image,
    };
    if image.is_none() && version.is_none() {
        return Err("neither the setting version nor image is there, and this pipeline is of no tag (help: PLUGIN_VERSION)".to_owned());
    }
    let number = variables.first(NUMBER);
    let link = variables.first(LINK).or_else(|| variables.page(&["actions", "runs", number.as_deref()?]));
    let mut payload = map([
        ("app", variables.setting("app")),
        ("version", version),
        ("image", image),
        ("ring", variables.setting("ring").or_else(|| variables.first(RING))),
        ("event", variables.first(EVENT)),
        ("tag", tag),
        ("branch", variables.branch()),
    ]);
    payload.insert("build".to_owned(), map([("number", number.clone()), ("link", link)]).into());
    payload.insert("commit".to_owned(), variables.commit().into());
    let payload = Value::Object(payload);
    // A pipeline has one number, so a repeated step has the same key.
    let of_call = json!([name, payload, number]).to_string();
    Ok(Action::Trigger { name, payload, key: hex::encode(Sha256::digest(of_call.as_bytes())) })
}

fn subject(variables: &Variables<'_>) -> Result<Subject, String> {
    if let Some(app) = variables.setting("app") {
        let id =
            AppId::parse(&app).ok_or_else(|| format!("the setting app is {app:?}, not namespace/name"))?;
        let question = AppQuestion { version: variables.setting("version"), ring: variables.setting("ring") };
        return Ok(Subject::App(id, question));
    }
    let commit = variables.setting("commit").or_else(|| variables.first(SHA));
    commit
        .map(Subject::Commit)
        .ok_or_else(|| "there is no commit to wait for (help: PLUGIN_COMMIT or PLUGIN_APP)".to_owned())
}
