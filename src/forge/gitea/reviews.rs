//! Reviews of a pull request. The webhook of a review names no commit, so reviews are read here.

use serde::Deserialize;

use super::Client;
use super::http::Call;
use super::pulls::{Named, revision, time};
use crate::forge::{Error, Operation, Review, ReviewState};

const READ_REVIEWS: Call = Call(Operation::ReadReviews, "read reviews");

impl Client {
    pub(in crate::forge) async fn reviews(&self, number: u64) -> Result<Vec<Review>, Error> {
        let answered: Vec<Answered> = self.list(READ_REVIEWS, self.pull_url(number, &["reviews"])).await?;
        Ok(answered.into_iter().map(Answered::into_review).collect())
    }
}

#[derive(Deserialize)]
struct Answered {
    id: i64,
    user: Option<Named>,
    state: Option<String>,
    commit_id: Option<String>,
    #[serde(default)]
    official: bool,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    dismissed: bool,
    submitted_at: Option<String>,
}

impl Answered {
    fn into_review(self) -> Review {
        let state = match self.state.as_deref() {
            Some("APPROVED") => ReviewState::Approved,
            Some("REQUEST_CHANGES") => ReviewState::ChangesRequested,
            Some("COMMENT") => ReviewState::Commented,
            Some("PENDING") => ReviewState::Pending,
            Some("REQUEST_REVIEW") => ReviewState::Requested,
            _ => ReviewState::Other,
        };
        Review {
            id: self.id,
            user: self.user.map(|user| user.login).unwrap_or_default(),
            state,
            commit: self.commit_id.and_then(|id| revision(&id)),
            is_official: self.official,
            is_stale: self.stale,
            is_dismissed: self.dismissed,
            submitted: time(self.submitted_at.as_deref()),
        }
    }
}
