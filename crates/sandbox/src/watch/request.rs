//! Parses the parameters of a watch request.

use std::time::Duration;

use http::StatusCode;

use crate::api_error::ApiError;
use crate::selectors::RequestSelector;
use crate::verbs;
use crate::wire::content_negotiation::ResponseShape;
use crate::wire::list_options;
use crate::wire::query::QueryParameters;
use crate::wire::route::RequestTarget;

#[derive(Debug)]
pub(crate) struct WatchRequest {
    pub(super) target: RequestTarget,
    pub(super) selector: RequestSelector,
    pub(super) shape: ResponseShape,
    pub(super) start: WatchStart,
    pub(super) bookmarks: bool,
    pub(super) timeout: Duration,
}

/// The revision at which a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchStart {
    /// The changes after a revision.
    After(u64),
    /// The changes from now on.
    Now,
    /// The present objects, in a state of at least this revision; perhaps with a mark at their end.
    Existing { at_least: u64, marked: bool },
}

/// A server ends watches without `timeoutSeconds` after 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

impl WatchRequest {
    /// `streaming_lists`: whether there are any; `None`: the server has never heard of them.
    pub(crate) fn parse(
        target: &RequestTarget,
        query: &QueryParameters,
        shape: ResponseShape,
        streaming_lists: Option<bool>,
    ) -> Result<Self, ApiError> {
        let selector = if target.name.is_empty() {
            verbs::request_selector(&target.kind, query)?
        } else {
            let one = format!("metadata.name={}", target.name);
            RequestSelector::parse(&target.kind, query.text("labelSelector"), &one)?
        };
        query.integer("limit")?;
        // less than no time is over at once
        let timeout = query.integer("timeoutSeconds")?.filter(|seconds| *seconds != 0);
        let timeout = timeout.map(|seconds| u64::try_from(seconds).unwrap_or(0));
        let initial_events = list_options::initial_events(query, streaming_lists)?;
        let asked = query.revision().map_err(|why| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", format!("resourceVersion: {why}"))
        })?;
        let begin = match (initial_events, asked) {
            (true, at_least) => WatchStart::Existing { at_least, marked: true },
            (false, 0) if streaming_lists.is_some() && query.get("sendInitialEvents").is_some() => {
                WatchStart::Now
            }
            (false, 0) => WatchStart::Existing { at_least: 0, marked: false },
            (false, revision) => WatchStart::After(revision),
        };
        Ok(Self {
            target: target.clone(),
            selector,
            shape,
            start: begin,
            bookmarks: query.flag("allowWatchBookmarks"),
            // longer than any run, and far from the end of the clock
            timeout: timeout.map_or(DEFAULT_TIMEOUT, |seconds| Duration::from_secs(seconds.min(1 << 30))),
        })
    }
}

impl WatchStart {
    /// A watch from a future revision gets no earlier changes.
    pub(super) fn skips(self, revision: u64) -> bool {
        matches!(self, Self::After(after) if revision <= after)
    }

    /// Is the start revision newer than the current one?
    pub(super) fn is_after(self, current: u64) -> bool {
        matches!(self, Self::After(after) if current < after)
    }
}
