//! Users and their permissions.

use serde_json::{Value, json};

use super::answers::Answer;
use super::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    None,
    Read,
    Write,
    Admin,
}

impl Right {
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

pub struct User {
    pub login: String,
    pub right: Right,
}

impl State {
    pub fn add_user(&mut self, login: &str, right: Right) {
        match self.users.iter_mut().find(|user| user.login == login) {
            Some(user) => user.right = right,
            None => self.users.push(User { login: login.to_owned(), right }),
        }
    }

    pub fn right(&self, login: &str) -> Right {
        self.users.iter().find(|user| user.login == login).map_or(Right::None, |user| user.right)
    }

    pub fn user(&self, login: &str) -> Value {
        match self.users.iter().position(|user| user.login == login) {
            Some(index) => json!({"id": index + 1, "login": login, "username": login}),
            None => Value::Null,
        }
    }

    /// The user with the commit's address, if any.
    pub fn user_of_email(&self, email: &str) -> Value {
        self.user(email.strip_suffix("@example.com").unwrap_or_default())
    }

    /// Gitea shows the permissions of others to administrators only.
    pub fn permission(&self, doer: &str, login: &str) -> Answer {
        if doer != login && self.right(doer) < Right::Admin {
            return Answer::error(403, "Only admins can query all permissions");
        }
        match self.users.iter().find(|user| user.login == login) {
            Some(user) => {
                let word = user.right.word();
                Answer::of(200, json!({"permission": word, "role_name": word, "user": self.user(login)}))
            }
            None => Answer::error(404, "user does not exist"),
        }
    }
}
