//! Reviews of a pull request, and which of them approve its head.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::Revision;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    pub id: i64,
    /// Login; empty if a team was asked, or if the user was deleted.
    pub user: String,
    pub state: ReviewState,
    /// The reviewed commit; `None` if the forge gives none.
    pub commit: Option<Revision>,
    /// It counts for the forge: the reviewer has write permission or is named by the branch protection.
    pub is_official: bool,
    /// The head changed after it.
    pub is_stale: bool,
    pub is_dismissed: bool,
    pub submitted: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    Approved,
    ChangesRequested,
    Commented,
    /// A draft.
    Pending,
    /// A review was requested.
    Requested,
    Other,
}

/// Logins, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PullApprovals {
    pub by: Vec<String>,
    /// Their latest review requests changes, of any head.
    pub refused_by: Vec<String>,
}

/// The latest approval or rejection of each user counts; comments and requests do not. A dismissed approval does not restore
/// an earlier one.
pub fn approvals(reviews: &[Review], head: &Revision, author: &str, bot: &str) -> PullApprovals {
    let mut latest: BTreeMap<String, &Review> = BTreeMap::new();
    let is_verdict = |it: &&Review| matches!(it.state, ReviewState::Approved | ReviewState::ChangesRequested);
    for review in reviews.iter().filter(is_verdict) {
        // Logins are case-insensitive.
        let is = |login: &str| review.user.eq_ignore_ascii_case(login);
        if review.user.is_empty() || is(author) || is(bot) {
            continue;
        }
        let kept = latest.entry(review.user.to_ascii_lowercase()).or_insert(review);
        if (kept.submitted, kept.id) < (review.submitted, review.id) {
            *kept = review;
        }
    }
    let mut approvals = PullApprovals::default();
    for review in latest.into_values().filter(|review| !review.is_dismissed) {
        let user = review.user.clone();
        match review.state {
            ReviewState::ChangesRequested => approvals.refused_by.push(user),
            _ if review.is_official && !review.is_stale && review.commit.as_ref() == Some(head) => {
                approvals.by.push(user);
            }
            _ => {}
        }
    }
    approvals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(id: i64, user: &str, state: ReviewState) -> Review {
        Review {
            id,
            user: user.to_owned(),
            state,
            commit: Some(Revision::from("head")),
            is_official: true,
            is_stale: false,
            is_dismissed: false,
            submitted: Timestamp::from_second(1_790_000_000 + id).expect("a time"),
        }
    }

    #[test]
    fn latest_verdict_of_each_user_counts() {
        use ReviewState::{Approved, ChangesRequested, Commented, Other, Pending, Requested};
        let check = |reviews: &[Review], by: &[&str], refused_by: &[&str]| {
            let found = approvals(reviews, &Revision::from("head"), "Author", "tutti");
            let owned = |logins: &[&str]| logins.iter().map(|login| (*login).to_owned()).collect();
            let expected = PullApprovals { by: owned(by), refused_by: owned(refused_by) };
            assert_eq!(found, expected, "{reviews:#?}");
        };
        let approved = |id, user: &str| review(id, user, Approved);
        let refused = |id, user: &str| review(id, user, ChangesRequested);
        let old = Some(Revision::from("old"));
        check(&[], &[], &[]);
        check(&[approved(1, "wu"), approved(2, "li")], &["li", "wu"], &[]);
        check(&[approved(1, "li"), approved(2, "li")], &["li"], &[]);
        check(&[approved(1, "li"), refused(2, "li")], &[], &["li"]);
        check(&[refused(1, "li"), approved(2, "li")], &["li"], &[]);
        // In any order, and with any case of the login.
        check(&[refused(2, "Li"), approved(1, "li")], &[], &["Li"]);
        check(&[approved(1, "li"), refused(2, "wu")], &["li"], &["wu"]);
        // Within one second the id decides.
        let same_time = Review { submitted: refused(1, "li").submitted, ..approved(2, "li") };
        check(&[same_time, refused(1, "li")], &["li"], &[]);
        for state in [Commented, Pending, Requested, Other] {
            check(&[review(1, "li", state)], &[], &[]);
            check(&[approved(1, "li"), review(2, "li", state)], &["li"], &[]);
            check(&[refused(1, "li"), review(2, "li", state)], &[], &["li"]);
        }
        check(&[approved(1, "author"), approved(2, "Tutti"), refused(3, "author")], &[], &[]);
        check(&[approved(1, "")], &[], &[]);
        check(&[Review { is_official: false, ..approved(1, "li") }], &[], &[]);
        check(&[Review { is_stale: true, ..approved(1, "li") }], &[], &[]);
        check(&[Review { commit: old.clone(), ..approved(1, "li") }], &[], &[]);
        check(&[Review { commit: None, ..approved(1, "li") }], &[], &[]);
        check(&[approved(1, "li"), Review { is_dismissed: true, ..approved(2, "li") }], &[], &[]);
        check(&[Review { is_dismissed: true, ..refused(1, "li") }], &[], &[]);
        // A requested change holds for every commit.
        check(&[Review { is_stale: true, commit: old, ..refused(1, "li") }], &[], &["li"]);
        check(&[Review { is_official: false, ..refused(1, "li") }], &[], &["li"]);
    }
}
