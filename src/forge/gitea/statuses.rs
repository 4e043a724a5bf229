//! Commit statuses.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::GiteaClient;
use super::http::{GiteaCall, MOST_REQUESTS, PAGE_SIZE};
use crate::forge::status;
use crate::forge::{CommitStatus, CommitStatusState, Error, ForgeOperation};
use crate::model::Revision;

impl GiteaClient {
    pub(in crate::forge) async fn post_status(
        &self,
        revision: &Revision,
        status: &CommitStatus,
    ) -> Result<(), Error> {
        let call = GiteaCall(ForgeOperation::PostStatus, "write a commit status");
        let url = self.repository_url(&["statuses", revision.as_str()]);
        let body = json!({
            "state": status.state.as_str(),
            "context": status.context,
            "description": status::shorten_description(&status.description),
            "target_url": status.target_url.as_deref().unwrap_or_default(),
        });
        let result = match self.send(call, self.request(Method::POST, url).json(&body)).await {
            Ok(answer) => self.expect_commit_success(call, answer, revision).await.map(drop),
            Err(error) => Err(error),
        };
        if let Some(observer) = &self.observer {
            observer.status_posted(result.as_ref().copied());
        }
        result
    }

    pub(in crate::forge) async fn statuses(&self, revision: &Revision) -> Result<Vec<CommitStatus>, Error> {
        let call = GiteaCall(ForgeOperation::ReadStatuses, "read commit statuses");
        let mut newest: BTreeMap<String, (i64, CommitStatus)> = BTreeMap::new();
        let mut seen = 0;
        for page in 1..=MOST_REQUESTS {
            let mut url = self.repository_url(&["commits", revision.as_str(), "status"]);
            url.query_pairs_mut()
                .append_pair("page", &page.to_string())
                .append_pair("limit", &PAGE_SIZE.to_string());
            let answer = self.send(call, self.request(Method::GET, url)).await?;
            let body = self.expect_commit_success(call, answer, revision).await?;
            // Older versions return an empty body if there are no statuses.
            if body.trim_ascii().is_empty() {
                break;
            }
            let combined: CombinedStatusResponse = self.parse(call, &body)?;
            let statuses = combined.statuses.unwrap_or_default();
            seen += statuses.len();
            let last = statuses.is_empty() || combined.total_count.is_some_and(|total| seen >= total);
            for status in statuses {
                let id = status.id;
                let Some(status) = status.into_status() else { continue };
                let known = newest.get(&status.context).map(|(id, _)| *id);
                if known.is_none_or(|known| known < id) {
                    newest.insert(status.context.clone(), (id, status));
                }
            }
            if last {
                break;
            }
        }
        Ok(newest.into_values().map(|(_, status)| status).collect())
    }
}

#[derive(Deserialize)]
struct CombinedStatusResponse {
    statuses: Option<Vec<StatusResponse>>,
    total_count: Option<usize>,
}

/// Written as `state`, read as `status`.
#[derive(Deserialize)]
struct StatusResponse {
    #[serde(default)]
    id: i64,
    context: Option<String>,
    status: Option<String>,
    state: Option<String>,
    description: Option<String>,
    target_url: Option<String>,
}

impl StatusResponse {
    fn into_status(self) -> Option<CommitStatus> {
        let state = [self.status, self.state]
            .into_iter()
            .flatten()
            .find_map(|text| CommitStatusState::parse(&text))?;
        Some(CommitStatus {
            context: self.context?,
            state,
            description: self.description.unwrap_or_default(),
            target_url: self.target_url.filter(|url| !url.is_empty()),
        })
    }
}
