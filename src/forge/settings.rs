//! Settings of the repository at its forge.

use secrecy::SecretString;

use super::Permission;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryFacts {
    /// `owner/name`, as the forge writes it.
    pub name: String,
    pub default_branch: String,
    /// Of the token's user.
    pub permission: Permission,
}

/// A webhook as the forge shows it: never with its secret.
#[derive(Clone, Debug)]
pub struct Hook {
    pub id: i64,
    pub url: String,
    /// As the forge names them, sorted.
    pub events: Vec<String>,
    pub is_json: bool,
    pub is_active: bool,
    /// A pattern of branches; empty for all.
    pub branch_filter: String,
    /// A header that is sent along; empty for none.
    pub authorization: SecretString,
}

/// Always active, signed and JSON.
#[derive(Clone, Debug)]
pub struct NewHook {
    pub url: String,
    pub secret: SecretString,
    pub events: Vec<String>,
}

/// The rule that protects a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// The name of the branch, or a pattern.
    pub rule: String,
    /// Contexts that must be successful before a merge.
    pub required: Vec<String>,
    pub has_status_check: bool,
    pub allows_push: bool,
}
