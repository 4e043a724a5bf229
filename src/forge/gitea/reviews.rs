//! Reviews of a pull request. The webhook of a review names no commit, so reviews are read here.

use serde::Deserialize;

use super::GiteaClient;
use super::http::GiteaCall;
use super::pulls::{UserResponse, parse_revision, parse_time};
use crate::forge::{Error, ForgeOperation, Review, ReviewState};

const READ_REVIEWS: GiteaCall = GiteaCall(ForgeOperation::ReadReviews, "read reviews");

impl GiteaClient {
    pub(in crate::forge) async fn reviews(&self, number: u64) -> Result<Vec<Review>, Error> {
        let answered: Vec<ReviewResponse> =
            self.list(READ_REVIEWS, self.pull_url(number, &["reviews"])).await?;
        Ok(answered.into_iter().map(ReviewResponse::into_review).collect())
    }
}

#[derive(Deserialize)]
struct ReviewResponse {
    id: i64,
    user: Option<UserResponse>,
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

impl ReviewResponse {
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
            commit: self.commit_id.and_then(|id| parse_revision(&id)),
            is_official: self.official,
            is_stale: self.stale,
            is_dismissed: self.dismissed,
            submitted: parse_time(self.submitted_at.as_deref()),
        }
    }
}
