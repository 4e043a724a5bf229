//! The repository, its webhooks and its branch protection.

use reqwest::{Method, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::GiteaClient;
use super::contents::{BranchResponse, READ_BRANCH};
use super::http::GiteaCall;
use crate::forge::{
    BranchProtection, Error, ForgeOperation, NewHook, Permission, RepositoryFacts, RepositoryHook,
};

const READ_REPOSITORY: GiteaCall = GiteaCall(ForgeOperation::ReadRepository, "read the repository");
const READ_HOOKS: GiteaCall = GiteaCall(ForgeOperation::ReadSettings, "read webhooks");
const WRITE_HOOK: GiteaCall = GiteaCall(ForgeOperation::WriteSettings, "write a webhook");
const DELETE_HOOK: GiteaCall = GiteaCall(ForgeOperation::WriteSettings, "delete a webhook");
const READ_PROTECTION: GiteaCall = GiteaCall(ForgeOperation::ReadSettings, "read a branch protection");
const WRITE_PROTECTION: GiteaCall = GiteaCall(ForgeOperation::WriteSettings, "write a branch protection");

impl GiteaClient {
    pub(in crate::forge) async fn repository_facts(&self) -> Result<RepositoryFacts, Error> {
        let found: RepositoryResponse = self.get(READ_REPOSITORY, self.repository_url(&[])).await?;
        let rights = found.permissions.unwrap_or_default();
        let permission = match (rights.admin, rights.push, rights.pull) {
            (true, _, _) => Permission::Admin,
            (_, true, _) => Permission::Write,
            (_, _, true) => Permission::Read,
            _ => Permission::None,
        };
        Ok(RepositoryFacts { name: found.full_name, default_branch: found.default_branch, permission })
    }

    pub(in crate::forge) async fn hooks(&self) -> Result<Vec<RepositoryHook>, Error> {
        let hooks: Vec<HookResponse> = self.list(READ_HOOKS, self.repository_url(&["hooks"])).await?;
        Ok(hooks.into_iter().map(HookResponse::into_hook).collect())
    }

    pub(in crate::forge) async fn create_hook(&self, hook: &NewHook) -> Result<(), Error> {
        let secret = hook.secret.expose_secret();
        let body = json!({
            "type": "gitea", "active": true, "events": hook.events,
            "config": {"url": hook.url, "content_type": "json", "secret": secret},
        });
        self.write(WRITE_HOOK, Method::POST, self.repository_url(&["hooks"]), Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn edit_hook(
        &self,
        hook: &RepositoryHook,
        events: &[String],
    ) -> Result<(), Error> {
        // Omitted fields would be cleared.
        let body = json!({
            "active": true, "events": events, "config": {"url": hook.url, "content_type": "json"},
            "branch_filter": hook.branch_filter, "authorization_header": hook.authorization.expose_secret(),
        });
        self.write(WRITE_HOOK, Method::PATCH, self.hook_url(hook.id), Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn delete_hook(&self, id: i64) -> Result<(), Error> {
        self.write(DELETE_HOOK, Method::DELETE, self.hook_url(id), None).await.map(drop)
    }

    fn hook_url(&self, id: i64) -> Url {
        self.repository_url(&["hooks", &id.to_string()])
    }

    pub(in crate::forge) async fn protection(&self, branch: &str) -> Result<Option<BranchProtection>, Error> {
        let found: BranchResponse = self.get(READ_BRANCH, self.branch_url(branch)).await?;
        // A pattern may protect the branch too; Gitea decides which rule is effective.
        let rule = found.effective_branch_protection_name.filter(|name| !name.is_empty());
        let Some(rule) = rule else {
            if found.protected {
                let message = "only an administrator of the repository sees the rule".to_owned();
                let (url, step) = (self.address(), READ_PROTECTION.1);
                return Err(Error::Authentication { url, step, message });
            }
            return Ok(None);
        };
        let url = self.repository_url(&["branch_protections", &rule]);
        let rule: Option<ProtectionResponse> = self.find(READ_PROTECTION, url).await?;
        Ok(rule.map(|rule| BranchProtection {
            rule: rule.rule_name,
            required_contexts: rule.status_check_contexts.unwrap_or_default(),
            has_status_check: rule.enable_status_check,
            allows_push: rule.enable_push,
        }))
    }

    pub(in crate::forge) async fn create_protection(
        &self,
        branch: &str,
        required: &[String],
    ) -> Result<(), Error> {
        // Pushes stay allowed: forbidding them is a decision of the user.
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
        // Omitted fields stay.
        let body = json!({"enable_status_check": true, "status_check_contexts": required});
        let url = self.repository_url(&["branch_protections", rule]);
        self.write(WRITE_PROTECTION, Method::PATCH, url, Some(&body)).await.map(drop)
    }
}

#[derive(Deserialize)]
struct RepositoryResponse {
    full_name: String,
    #[serde(default)]
    default_branch: String,
    permissions: Option<RepositoryRights>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RepositoryRights {
    admin: bool,
    push: bool,
    pull: bool,
}

#[derive(Deserialize)]
struct HookResponse {
    id: i64,
    config: Option<HookConfig>,
    events: Option<Vec<String>>,
    #[serde(default)]
    active: bool,
    #[serde(default)]
    branch_filter: String,
    #[serde(default)]
    authorization_header: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HookConfig {
    url: String,
    content_type: String,
}

impl HookResponse {
    fn into_hook(self) -> RepositoryHook {
        let config = self.config.unwrap_or_default();
        let mut events = self.events.unwrap_or_default();
        events.sort();
        RepositoryHook {
            id: self.id,
            url: config.url,
            events,
            is_json: config.content_type == "json",
            is_active: self.active,
            branch_filter: self.branch_filter,
            authorization: SecretString::from(self.authorization_header),
        }
    }
}

#[derive(Deserialize)]
struct ProtectionResponse {
    rule_name: String,
    #[serde(default)]
    enable_status_check: bool,
    status_check_contexts: Option<Vec<String>>,
    #[serde(default)]
    enable_push: bool,
}
