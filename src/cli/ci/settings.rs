//! Settings of a step from its variables: its own ones, and facts about the pipeline.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli::timeout::timeout;
use crate::cli::wait::{WaitGoal, WaitSubject};
use crate::model::AppId;
use crate::report::pipeline_report::AppReportFilter;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// In characters, of one payload value: commit messages are unbounded.
const MAX_VALUE_CHARS: usize = 1000;

#[derive(Debug)]
pub struct CiSettings {
    pub server: Url,
    pub token: SecretString,
    pub allow_http: Vec<String>,
    pub ca_file: Option<PathBuf>,
    pub action: CiAction,
    pub wait: Option<WaitGoal>,
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CiAction {
    Trigger {
        name: String,
        payload: Value,
        /// Idempotency key: the same for a repeated step.
        key: String,
    },
    Wait(WaitSubject),
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

struct CiVariables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl CiVariables<'_> {
    fn first_set(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.0)(name).filter(|value| !value.trim().is_empty()))
    }

    /// A setting of the step: `PLUGIN_` in Drone and Woodpecker, `INPUT_` of an action.
    fn setting(&self, name: &str) -> Option<String> {
        let name = name.to_uppercase();
        self.first_set(&[&format!("PLUGIN_{name}"), &format!("INPUT_{name}")])
            .map(|value| value.trim().to_owned())
    }

    fn required_setting(&self, name: &str, other: &str) -> Result<String, String> {
        let found = self.setting(name).or_else(|| self.first_set(&[other]));
        found.ok_or_else(|| {
            format!("the setting {name} is missing (help: PLUGIN_{}, or {other})", name.to_uppercase())
        })
    }

    fn tag(&self) -> Option<String> {
        let is_tag = || self.first_set(&["GITHUB_REF_TYPE"]).as_deref() == Some("tag");
        self.first_set(TAG).or_else(|| self.first_set(&["GITHUB_REF_NAME"]).filter(|_| is_tag()))
    }

    fn branch(&self) -> Option<String> {
        let is_branch = || self.first_set(&["GITHUB_REF_TYPE"]).as_deref() == Some("branch");
        self.first_set(BRANCH).or_else(|| self.first_set(&["GITHUB_REF_NAME"]).filter(|_| is_branch()))
    }

    /// Gitea Actions lacks these variables: builds the URL of its page.
    fn page_url(&self, rest: &[&str]) -> Option<String> {
        let parts = [self.first_set(&["GITHUB_SERVER_URL"])?, self.first_set(&["GITHUB_REPOSITORY"])?];
        let parts = parts.iter().map(|part| part.trim_end_matches('/')).chain(rest.iter().copied());
        Some(parts.collect::<Vec<_>>().join("/"))
    }

    fn commit_payload(&self) -> Map<String, Value> {
        let sha = self.first_set(SHA);
        let url = self.first_set(COMMIT_LINK).or_else(|| self.page_url(&["commit", sha.as_deref()?]));
        let parts = [
            ("sha", sha),
            ("repo", self.first_set(REPOSITORY)),
            ("author", self.first_set(AUTHOR)),
            ("message", self.first_set(MESSAGE)),
            ("url", url),
        ];
        string_map(parts)
    }
}

fn string_map<const N: usize>(parts: [(&str, Option<String>); N]) -> Map<String, Value> {
    let given = parts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let short = |value: String| value.chars().take(MAX_VALUE_CHARS).collect::<String>();
    given.map(|(name, value)| (name.to_owned(), short(value).into())).collect()
}

impl CiSettings {
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variables = CiVariables(variable);
        let server = variables.required_setting("server", "TUTTI_SERVER")?;
        let server =
            server.parse().map_err(|error| format!("the setting server is not an address: {error}"))?;
        let token = SecretString::from(variables.required_setting("token", "TUTTI_API_TOKEN")?);
        let wait = match variables.setting("wait").as_deref() {
            None | Some("false") => None,
            Some("true" | "healthy") => Some(WaitGoal::Healthy),
            Some("planned") => Some(WaitGoal::Planned),
            Some(other) => {
                return Err(format!("the setting wait is {other:?} (help: write healthy, planned or false)"));
            }
        };
        let limit = variables.setting("timeout");
        let limit = limit.map(|text| timeout(&text).map_err(|error| format!("the setting timeout: {error}")));
        let allow_http = variables.setting("allow_http").unwrap_or_default();
        let allow_http =
            allow_http.split(',').filter(|host| !host.is_empty()).map(ToOwned::to_owned).collect();
        let ca_file = variables.setting("ca_file").map(PathBuf::from);
        let timeout = limit.transpose()?.unwrap_or(DEFAULT_TIMEOUT);
        let (action, wait) = match variables.setting("action").as_deref() {
            None | Some("trigger") => (trigger_action(&variables)?, wait),
            Some("wait") => (CiAction::Wait(wait_subject(&variables)?), wait.or(Some(WaitGoal::Healthy))),
            Some(other) => {
                return Err(format!("the setting action is {other:?} (help: write trigger or wait)"));
            }
        };
        Ok(Self { server, token, allow_http, ca_file, action, wait, timeout })
    }
}

fn trigger_action(variables: &CiVariables<'_>) -> Result<CiAction, String> {
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
        return Err("neither the setting version nor image is there, and this pipeline has no tag (help: \
                    PLUGIN_VERSION)"
            .to_owned());
    }
    let number = variables.first_set(NUMBER);
    let link =
        variables.first_set(LINK).or_else(|| variables.page_url(&["actions", "runs", number.as_deref()?]));
    let mut payload = string_map([
        ("app", variables.setting("app")),
        ("version", version),
        ("image", image),
        ("ring", variables.setting("ring").or_else(|| variables.first_set(RING))),
        ("event", variables.first_set(EVENT)),
        ("tag", tag),
        ("branch", variables.branch()),
    ]);
    payload.insert("build".to_owned(), string_map([("number", number.clone()), ("link", link)]).into());
    payload.insert("commit".to_owned(), variables.commit_payload().into());
    let payload = Value::Object(payload);
    // A pipeline has one number, so a repeated step has the same key.
    let of_call = json!([name, payload, number]).to_string();
    Ok(CiAction::Trigger { name, payload, key: hex::encode(Sha256::digest(of_call.as_bytes())) })
}

fn wait_subject(variables: &CiVariables<'_>) -> Result<WaitSubject, String> {
    if let Some(app) = variables.setting("app") {
        let id = AppId::parse(&app)
            .ok_or_else(|| format!("the setting app is {app:?} (help: write namespace/name)"))?;
        let question =
            AppReportFilter { version: variables.setting("version"), ring: variables.setting("ring") };
        return Ok(WaitSubject::App(id, question));
    }
    let commit = variables.setting("commit").or_else(|| variables.first_set(SHA));
    commit
        .map(WaitSubject::Commit)
        .ok_or_else(|| "there is no commit to wait for (help: PLUGIN_COMMIT or PLUGIN_APP)".to_owned())
}
