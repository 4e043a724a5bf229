//! Parses the parameters of a watch request.

use std::time::Duration;

use http::StatusCode;

use crate::selectors::Selector;
use crate::status::ApiError;
use crate::verbs;
use crate::wire::list_options;
use crate::wire::negotiate::Shape;
use crate::wire::query::Query;
use crate::wire::route::Target;

#[derive(Debug)]
pub(crate) struct WatchRequest {
    pub(super) target: Target,
    pub(super) selector: Selector,
    pub(super) shape: Shape,
    pub(super) begin: Begin,
    pub(super) bookmarks: bool,
    pub(super) timeout: Duration,
}

/// The revision at which a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// The changes after a revision.
    After(u64),
    /// The changes from now on.
    Now,
    /// The present objects, in a state of at least this revision; perhaps with a mark at their end.
    Present { at_least: u64, marked: bool },
}

/// A server ends watches without `timeoutSeconds` after 30 to 60 minutes.
const LONGEST: Duration = Duration::from_secs(1800);

impl WatchRequest {
    /// `streaming_lists`: whether there are any; `None`: the server has never heard of them.
    pub(crate) fn parse(
        target: &Target,
        query: &Query,
        shape: Shape,
        streaming_lists: Option<bool>,
    ) -> Result<Self, ApiError> {
        let selector = if target.name.is_empty() {
            verbs::selector(&target.kind, query)?
        } else {
            let one = format!("metadata.name={}", target.name);
            Selector::parse(&target.kind, query.text("labelSelector"), &one)?
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
            (true, at_least) => Begin::Present { at_least, marked: true },
            (false, 0) if streaming_lists.is_some() && query.given("sendInitialEvents").is_some() => {
                Begin::Now
            }
            (false, 0) => Begin::Present { at_least: 0, marked: false },
            (false, revision) => Begin::After(revision),
        };
        Ok(Self {
            target: target.clone(),
            selector,
            shape,
            begin,
            bookmarks: query.flag("allowWatchBookmarks"),
            // longer than any run, and far from the end of the clock
            timeout: timeout.map_or(LONGEST, |seconds| Duration::from_secs(seconds.min(1 << 30))),
        })
    }
}

impl Begin {
    /// A watch from a future revision gets no earlier changes.
    pub(super) fn skips(self, revision: u64) -> bool {
        matches!(self, Self::After(after) if revision <= after)
    }

    /// Is the start revision newer than the current one?
    pub(super) fn is_ahead_of(self, current: u64) -> bool {
        matches!(self, Self::After(after) if current < after)
    }
}
