//! Settings of the repository on its forge.

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

/// A webhook as the forge returns it, without its secret.
#[derive(Clone, Debug)]
pub struct RepositoryHook {
    pub id: i64,
    pub url: String,
    /// In the forge's names, sorted.
    pub events: Vec<String>,
    pub is_json: bool,
    pub is_active: bool,
    /// A pattern of branches; empty for all.
    pub branch_filter: String,
    /// An additional header; empty for none.
    pub authorization: SecretString,
}

/// A new webhook: always active, signed and JSON.
#[derive(Clone, Debug)]
pub struct NewHook {
    pub url: String,
    pub secret: SecretString,
    pub events: Vec<String>,
}

/// The rule that protects a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchProtection {
    /// The name of the branch, or a pattern.
    pub rule: String,
    /// Contexts that must succeed before a merge.
    pub required_contexts: Vec<String>,
    pub has_status_check: bool,
    pub allows_push: bool,
}
