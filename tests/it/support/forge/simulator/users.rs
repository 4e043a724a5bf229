//! Users and their permissions.

use serde_json::{Value, json};

use super::answers::ForgeAnswer;
use super::state::ForgeState;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForgePermission {
    None,
    Read,
    Write,
    Admin,
}

impl ForgePermission {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

pub struct ForgeUser {
    pub login: String,
    pub permission: ForgePermission,
}

impl ForgeState {
    pub fn add_user(&mut self, login: &str, right: ForgePermission) {
        match self.users.iter_mut().find(|user| user.login == login) {
            Some(user) => user.permission = right,
            None => self.users.push(ForgeUser { login: login.to_owned(), permission: right }),
        }
    }

    pub fn permission_of(&self, login: &str) -> ForgePermission {
        self.users
            .iter()
            .find(|user| user.login == login)
            .map_or(ForgePermission::None, |user| user.permission)
    }

    pub fn user_value(&self, login: &str) -> Value {
        match self.users.iter().position(|user| user.login == login) {
            Some(index) => json!({"id": index + 1, "login": login, "username": login}),
            None => Value::Null,
        }
    }

    /// The user with the commit's address, if any.
    pub fn user_value_of_email(&self, email: &str) -> Value {
        self.user_value(email.strip_suffix("@example.com").unwrap_or_default())
    }

    /// Gitea shows the permissions of others to administrators only.
    pub fn answer_permission(&self, doer: &str, login: &str) -> ForgeAnswer {
        if doer != login && self.permission_of(doer) < ForgePermission::Admin {
            return ForgeAnswer::error(403, "Only admins can query all permissions");
        }
        match self.users.iter().find(|user| user.login == login) {
            Some(user) => {
                let word = user.permission.name();
                ForgeAnswer::of(
                    200,
                    json!({"permission": word, "role_name": word, "user": self.user_value(login)}),
                )
            }
            None => ForgeAnswer::error(404, "user does not exist"),
        }
    }
}
