//! Kinds ApprovalRule and Approvers: which changes need approvals, of how many people and roles. The check is pure; the controller
//! supplies the reviews and authors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{AppId, FileVersion, Location, ObjectId, Revision, TargetSelector};

/// One manifest below `policies/`: selected changes need an Approval that `count` people have approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    pub name: String,
    pub selector: TargetSelector,
    /// What needs it.
    pub actions: Vec<ApprovalRuleAction>,
    /// Only where an object of such a kind changes or goes: `StatefulSet`, or `StatefulSet.apps`. Empty: any.
    pub kinds: Vec<ApprovalRuleKind>,
    /// `None`: the manifest has a mistake; then no number of approvals suffices.
    pub count: Option<usize>,
    /// Names of Approvers. Empty: everybody whose review counts for the forge.
    pub approvers: Vec<String>,
    /// The authors of the change are not among those who count.
    pub four_eyes: bool,
    pub reason: Option<String>,
    pub location: Location,
    /// One for each of `approvers`.
    pub approver_locations: Vec<Location>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalRuleAction {
    /// A version begins.
    Rollout,
    /// An object that is no longer rendered is deleted.
    Delete,
}

impl ApprovalRuleAction {
    /// As `actions:` of the manifest says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Delete => "delete",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovalRuleKind {
    pub kind: String,
    /// `None`: of every group.
    pub group: Option<String>,
}

/// One manifest below `policies/`: the people of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approvers {
    pub name: String,
    /// Logins at the forge.
    pub users: Vec<String>,
    pub location: Location,
}

/// All rules of a repository, and who is in which role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    pub rules: Vec<Arc<ApprovalRule>>,
    pub roles: ApproverRoles,
}

/// The people of each role, in lower case: logins are the same in upper and lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApproverRoles {
    people: BTreeMap<String, BTreeSet<String>>,
    /// A file with Approvers could not be read, so a missing role is not known to be missing.
    is_incomplete: bool,
}

/// A query to the forge or to Git that an approval depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalQuery {
    /// Who approved the content of a file, in the pull request that its commit came with.
    Reviews { file: Arc<FileVersion> },
    /// Who wrote what an app is made of, in the commits after `since` up to `until`.
    Authors {
        app: AppId,
        /// `None`: in all of them, as far as its own folder is concerned.
        since: Option<Revision>,
        until: Revision,
        /// Of its own folder alone: something in there was taken away.
        is_delete: bool,
    },
}

/// People by their logins, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgePeople {
    pub logins: BTreeSet<String>,
    /// A commit of which the forge does not name the author of it: it may be anybody.
    pub unknown_author: Option<Revision>,
}

/// The reason why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalQueryError {
    /// The query is repeated.
    Temporary(Arc<str>),
    /// A retry would fail again.
    Permanent(Arc<str>),
}

pub type ApprovalQueryResult = Result<Arc<ForgePeople>, ApprovalQueryError>;

/// Looks up the result of a query. `None`: it has not been run yet.
pub type ApprovalQueryLookup<'a> = &'a dyn Fn(&ApprovalQuery) -> Option<ApprovalQueryResult>;

/// The reason why an approval does not satisfy a rule, ordered from far to close.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalShortfall {
    /// The manifest of the rule has a mistake.
    BrokenRule,
    /// There is no approval.
    None,
    /// So many agreed, by name.
    TooFew(Vec<String>),
    /// Without the authors of the change, too few approvers remain.
    Authors { by: Vec<String>, authors: Vec<String> },
    /// The forge does not know who wrote a commit, so it may be one of those who approve.
    UnknownAuthor(Revision),
    /// The reviews cannot be read.
    Unknown(#[serde(serialize_with = "as_text")] Arc<str>),
    /// The reviews are being read; with the last error.
    NotReadYet(#[serde(serialize_with = "as_text_if_any")] Option<Arc<str>>),
}

/// An approval rule that is not satisfied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetApprovalRule {
    pub rule: String,
    /// `None`: the rule has a mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Of whom. Empty: of everybody whose review counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub lack: ApprovalShortfall,
}

impl UnmetApprovalRule {
    /// `2 approvals of managers`.
    pub fn requirement(&self) -> String {
        let count = match self.count {
            None => "approvals".to_owned(),
            Some(1) => "1 approval".to_owned(),
            Some(count) => format!("{count} approvals"),
        };
        match self.approvers.is_empty() {
            true => count,
            false => format!("{count} of {}", self.approvers.join(", ")),
        }
    }
}

impl fmt::Display for UnmetApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lack {
            ApprovalShortfall::BrokenRule => write!(f, "rule {}: {}", self.rule, self.lack)?,
            _ => write!(f, "rule {} requires {}: {}", self.rule, self.requirement(), self.lack)?,
        }
        self.reason.iter().try_for_each(|reason| write!(f, " ({reason})"))
    }
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn as_text_if_any<S: serde::Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

impl fmt::Display for ApprovalShortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is none"),
            Self::NotReadYet(None) => f.write_str("its reviews are not read yet"),
            Self::NotReadYet(Some(because)) => write!(f, "its reviews are not read yet: {because}"),
            Self::Unknown(because) => write!(f, "its approvals are not known: {because}"),
            Self::Authors { by, authors } => {
                let authors = authors.join(", ");
                match by.is_empty() {
                    true => write!(f, "{authors} wrote the change"),
                    false => write!(f, "{} approved it, {authors} wrote the change", by.join(", ")),
                }
            }
            Self::TooFew(by) if by.is_empty() => f.write_str("none of its approvers has approved it"),
            Self::TooFew(by) => write!(f, "only {} approved it", by.join(", ")),
            Self::UnknownAuthor(commit) => {
                write!(f, "the forge does not name the author of {}", commit.short())
            }
            Self::BrokenRule => f.write_str("its manifest has an error, no approval is enough"),
        }
    }
}

impl ApprovalRuleKind {
    fn fits(&self, object: &ObjectId) -> bool {
        *object.kind == *self.kind && self.group.as_ref().is_none_or(|group| **group == *object.group)
    }
}

impl fmt::Display for ApprovalRuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.group.iter().try_for_each(|group| write!(f, ".{group}"))
    }
}

impl ApproverRoles {
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Approvers>, may_lack_some: bool) -> Self {
        let lower = |users: &[String]| users.iter().map(|user| user.to_ascii_lowercase()).collect();
        let people = all.into_iter().map(|it| (it.name.clone(), lower(&it.users))).collect();
        Self { people, is_incomplete: may_lack_some }
    }

    pub fn has(&self, role: &str) -> bool {
        self.is_incomplete || self.people.contains_key(role)
    }

    /// Whether a login is in one of the roles; without roles, every login is.
    pub fn includes(&self, roles: &[String], login: &str) -> bool {
        let is_in = |role: &String| self.people.get(role).is_some_and(|users| users.contains(login));
        roles.is_empty() || roles.iter().any(is_in)
    }
}

impl ApprovalRule {
    /// Whether it is for a change or a delete of an object.
    pub fn is_for_object(&self, object: &ObjectId) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.fits(object))
    }

    /// The unmet rule, with what the approval lacks.
    pub fn unmet(&self, lack: ApprovalShortfall) -> UnmetApprovalRule {
        UnmetApprovalRule {
            rule: self.name.clone(),
            count: self.count,
            approvers: self.approvers.clone(),
            reason: self.reason.clone(),
            lack,
        }
    }

    /// Checks the approval in a file; the error is what it lacks. `change`: the query for the authors, who do not count.
    pub fn check_approval(
        &self,
        roles: &ApproverRoles,
        file: Option<&Arc<FileVersion>>,
        change: &ApprovalQuery,
        answers: ApprovalQueryLookup<'_>,
    ) -> Result<(), ApprovalShortfall> {
        let count = self.count.ok_or(ApprovalShortfall::BrokenRule)?;
        check_approval(
            &RequiredApprovers { count, approvers: &self.approvers, four_eyes: self.four_eyes },
            roles,
            file,
            change,
            answers,
        )
    }
}

/// Who must have approved.
#[derive(Clone, Copy, Debug)]
pub struct RequiredApprovers<'a> {
    pub count: usize,
    /// Roles; empty: everybody.
    pub approvers: &'a [String],
    pub four_eyes: bool,
}

/// Checks that the required people approved a file, which must hold only the Approval.
pub fn check_approval(
    needed: &RequiredApprovers<'_>,
    roles: &ApproverRoles,
    file: Option<&Arc<FileVersion>>,
    change: &ApprovalQuery,
    answers: ApprovalQueryLookup<'_>,
) -> Result<(), ApprovalShortfall> {
    let known = |asked: &ApprovalQuery| {
        answers(asked).ok_or(ApprovalShortfall::NotReadYet(None))?.map_err(|unread| match unread {
            ApprovalQueryError::Temporary(because) => ApprovalShortfall::NotReadYet(Some(because)),
            ApprovalQueryError::Permanent(because) => ApprovalShortfall::Unknown(because),
        })
    };
    let file = file.ok_or_else(|| {
        ApprovalShortfall::Unknown("it is not alone in its file, or its commit is not known".into())
    })?;
    let reviewed = known(&ApprovalQuery::Reviews { file: Arc::clone(file) })?;
    let mut by: Vec<&String> =
        reviewed.logins.iter().filter(|login| roles.includes(needed.approvers, login)).collect();
    // With too few reviews, the query of the authors is not needed.
    if needed.four_eyes && by.len() >= needed.count {
        let authors = known(change)?;
        if let Some(unknown) = &authors.unknown_author {
            return Err(ApprovalShortfall::UnknownAuthor(unknown.clone()));
        }
        let (own, others): (Vec<&String>, Vec<_>) =
            by.iter().copied().partition(|login| authors.logins.contains(*login));
        if others.len() < needed.count {
            let names = |logins: Vec<&String>| logins.into_iter().cloned().collect();
            return Err(ApprovalShortfall::Authors { by: names(others), authors: names(own) });
        }
        by = others;
    }
    match by.len() >= needed.count {
        true => Ok(()),
        false => Err(ApprovalShortfall::TooFew(by.into_iter().cloned().collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(logins: &[&str], unknown: Option<&str>) -> ApprovalQueryResult {
        let logins = logins.iter().map(|login| (*login).to_owned()).collect();
        Ok(Arc::new(ForgePeople { logins, unknown_author: unknown.map(Revision::from) }))
    }

    fn approvers(name: &str, users: &[&str]) -> Approvers {
        let users = users.iter().map(|user| (*user).to_owned()).collect();
        Approvers { name: name.to_owned(), users, location: Location::new("policies/roles.yaml", 1, 1) }
    }

    #[test]
    fn role_members_count_unless_they_are_authors() {
        let roles =
            ApproverRoles::of(&[approvers("managers", &["Ann", "bob", "cy"]), approvers("none", &[])], false);
        let change = ApprovalQuery::Authors {
            app: AppId::parse("shop/pay").expect("an app"),
            since: Some(Revision::from("a")),
            until: Revision::from("c"),
            is_delete: false,
        };
        let check = |count: usize,
                     role: &str,
                     four_eyes: bool,
                     reviews: Option<ApprovalQueryResult>,
                     authors: Option<ApprovalQueryResult>| {
            let approvers = if role.is_empty() { Vec::new() } else { vec![role.to_owned()] };
            let needed = RequiredApprovers { count, approvers: &approvers, four_eyes };
            let answers = |asked: &ApprovalQuery| match asked {
                ApprovalQuery::Reviews { .. } => reviews.clone(),
                ApprovalQuery::Authors { .. } => authors.clone(),
            };
            let content = crate::model::Digest::of(b"an Approval");
            let path = "approvals/a.yaml".to_owned();
            let file = FileVersion { commit: Revision::from("b"), path, content };
            check_approval(&needed, &roles, Some(&Arc::new(file)), &change, &answers)
        };
        let few =
            |by: &[&str]| Err(ApprovalShortfall::TooFew(by.iter().map(|it| (*it).to_owned()).collect()));
        let nobody = Some(people(&[], None));
        let two = Some(people(&["ann", "bob", "dan"], None));
        assert_eq!(check(2, "managers", true, two.clone(), nobody.clone()), Ok(()));
        assert_eq!(check(3, "managers", true, two.clone(), nobody.clone()), few(&["ann", "bob"]));
        // Of no role: everybody.
        assert_eq!(check(3, "", true, two.clone(), nobody.clone()), Ok(()));
        assert_eq!(check(1, "none", true, two.clone(), nobody.clone()), few(&[]));
        assert_eq!(check(1, "lost", true, two.clone(), nobody.clone()), few(&[]));
        // An author is not the second pair of eyes.
        let bob = Some(people(&["bob"], None));
        let of_bob =
            ApprovalShortfall::Authors { by: vec!["ann".to_owned()], authors: vec!["bob".to_owned()] };
        assert_eq!(check(2, "managers", true, two.clone(), bob.clone()), Err(of_bob));
        assert_eq!(check(2, "managers", false, two.clone(), bob), Ok(()));
        let somebody = Some(people(&["zoe"], Some("f00")));
        let unknown = Err(ApprovalShortfall::UnknownAuthor(Revision::from("f00")));
        assert_eq!(check(2, "managers", true, two.clone(), somebody.clone()), unknown);
        assert_eq!(check(2, "managers", false, two.clone(), somebody), Ok(()));
        // What is not known is not enough.
        assert_eq!(check(1, "", true, None, nobody.clone()), Err(ApprovalShortfall::NotReadYet(None)));
        assert_eq!(check(1, "", true, two.clone(), None), Err(ApprovalShortfall::NotReadYet(None)));
        assert_eq!(check(1, "", false, two.clone(), None), Ok(()));
        let unread = || Some(Err(ApprovalQueryError::Temporary("503".into())));
        let never = || Some(Err(ApprovalQueryError::Permanent("no forge".into())));
        assert_eq!(
            check(1, "", true, never(), nobody.clone()),
            Err(ApprovalShortfall::Unknown("no forge".into()))
        );
        assert_eq!(
            check(1, "", true, two.clone(), never()),
            Err(ApprovalShortfall::Unknown("no forge".into()))
        );
        assert_eq!(
            check(1, "", true, unread(), nobody),
            Err(ApprovalShortfall::NotReadYet(Some("503".into())))
        );
        assert_eq!(check(1, "", true, two, unread()), Err(ApprovalShortfall::NotReadYet(Some("503".into()))));
        assert_eq!(check(1, "", true, nobody_at_all(), None), few(&[]));
    }

    fn nobody_at_all() -> Option<ApprovalQueryResult> {
        Some(people(&[], None))
    }
}
