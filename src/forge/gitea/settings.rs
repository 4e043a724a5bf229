//! The repository itself, its webhooks and its protected branches.

use reqwest::Method;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Client;
use super::contents::{Branch, READ_BRANCH};
use super::http::Call;
use crate::forge::{Error, Hook, NewHook, Operation, Permission, Protection, RepositoryFacts};

const READ_REPOSITORY: Call = Call(Operation::ReadRepository, "read the repository");
const READ_HOOKS: Call = Call(Operation::ReadSettings, "read webhooks");
const WRITE_HOOK: Call = Call(Operation::WriteSettings, "write a webhook");
const READ_PROTECTION: Call = Call(Operation::ReadSettings, "read a branch protection");
const WRITE_PROTECTION: Call = Call(Operation::WriteSettings, "write a branch protection");

impl Client {
    pub(in crate::forge) async fn repository_facts(&self) -> Result<RepositoryFacts, Error> {
        let found: Repository = self.get(READ_REPOSITORY, self.repository_url(&[])).await?;
        let rights = found.permissions.unwrap_or_default();
        let permission = match (rights.admin, rights.push, rights.pull) {
            (true, _, _) => Permission::Admin,
            (_, true, _) => Permission::Write,
            (_, _, true) => Permission::Read,
            _ => Permission::None,
        };
        Ok(RepositoryFacts { name: found.full_name, default_branch: found.default_branch, permission })
    }

    pub(in crate::forge) async fn hooks(&self) -> Result<Vec<Hook>, Error> {
        let hooks: Vec<Answered> = self.list(READ_HOOKS, self.repository_url(&["hooks"])).await?;
        Ok(hooks.into_iter().map(Answered::into_hook).collect())
    }

    pub(in crate::forge) async fn create_hook(&self, hook: &NewHook) -> Result<(), Error> {
        let mut body = hook_body(hook);
        body["type"] = "gitea".into();
        self.write(WRITE_HOOK, Method::POST, self.repository_url(&["hooks"]), Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn edit_hook(&self, id: i64, hook: &NewHook) -> Result<(), Error> {
        let url = self.repository_url(&["hooks", &id.to_string()]);
        self.write(WRITE_HOOK, Method::PATCH, url, Some(&hook_body(hook))).await.map(drop)
    }

    pub(in crate::forge) async fn protection(&self, branch: &str) -> Result<Option<Protection>, Error> {
        let found: Branch = self.get(READ_BRANCH, self.branch_url(branch)).await?;
        // A pattern may protect it too; which rule counts is up to Gitea.
        let Some(rule) = found.effective_branch_protection_name.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let url = self.repository_url(&["branch_protections", &rule]);
        let rule: Option<Rule> = self.find(READ_PROTECTION, url).await?;
        Ok(rule.map(|rule| Protection {
            rule: rule.rule_name,
            required: rule.status_check_contexts.unwrap_or_default(),
            has_status_check: rule.enable_status_check,
            allows_push: rule.enable_push,
        }))
    }

    pub(in crate::forge) async fn create_protection(
        &self,
        branch: &str,
        required: &[String],
    ) -> Result<(), Error> {
        // Pushes stay possible: who forbids them does so.
        let body = json!({
            "rule_name": branch, "enable_push": true,
            "enable_status_check": true, "status_check_contexts": required,
        });
        let url = self.repository_url(&["branch_protections"]);
        self.write(WRITE_PROTECTION, Method::POST, url, Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn edit_protection(
        &self,
        rule: &str,
        required: &[String],
    ) -> Result<(), Error> {
        // What is not named stays as it is.
        let body = json!({"enable_status_check": true, "status_check_contexts": required});
        let url = self.repository_url(&["branch_protections", rule]);
        self.write(WRITE_PROTECTION, Method::PATCH, url, Some(&body)).await.map(drop)
    }
}

fn hook_body(hook: &NewHook) -> Value {
    json!({
        "active": true, "events": hook.events,
        "config": {"url": hook.url, "content_type": "json", "secret": hook.secret.expose_secret()},
    })
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
    #[serde(default)]
    default_branch: String,
    permissions: Option<Rights>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rights {
    admin: bool,
    push: bool,
    pull: bool,
}

#[derive(Deserialize)]
struct Answered {
    id: i64,
    config: Option<HookConfig>,
    events: Option<Vec<String>>,
    #[serde(default)]
    active: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HookConfig {
    url: String,
    content_type: String,
}

impl Answered {
    fn into_hook(self) -> Hook {
        let config = self.config.unwrap_or_default();
        let mut events = self.events.unwrap_or_default();
        events.sort();
        Hook {
            id: self.id,
            url: config.url,
            events,
            is_json: config.content_type == "json",
            is_active: self.active,
        }
    }
}

#[derive(Deserialize)]
struct Rule {
    rule_name: String,
    #[serde(default)]
    enable_status_check: bool,
    status_check_contexts: Option<Vec<String>>,
    #[serde(default)]
    enable_push: bool,
}
