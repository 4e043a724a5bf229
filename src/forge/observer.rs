//! Observes requests to the forge, for metrics.

use std::fmt;

use http::StatusCode;

use super::Error;

/// The kind of a request. 15 kinds with all status codes stay below 1,000 series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeOperation {
    PostStatus,
    ReadStatuses,
    ReadRepository,
    ReadVersion,
    ReadUser,
    ReadPulls,
    WritePull,
    MergePull,
    ReadComments,
    WriteComment,
    ReadReviews,
    ReadBranch,
    WriteBranch,
    ReadSettings,
    WriteSettings,
}

impl ForgeOperation {
    pub const ALL: [Self; 15] = [
        Self::PostStatus,
        Self::ReadStatuses,
        Self::ReadRepository,
        Self::ReadVersion,
        Self::ReadUser,
        Self::ReadPulls,
        Self::WritePull,
        Self::MergePull,
        Self::ReadComments,
        Self::WriteComment,
        Self::ReadReviews,
        Self::ReadBranch,
        Self::WriteBranch,
        Self::ReadSettings,
        Self::WriteSettings,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PostStatus => "post_status",
            Self::ReadStatuses => "read_statuses",
            Self::ReadRepository => "read_repository",
            Self::ReadVersion => "read_version",
            Self::ReadUser => "read_user",
            Self::ReadPulls => "read_pulls",
            Self::WritePull => "write_pull",
            Self::MergePull => "merge_pull",
            Self::ReadComments => "read_comments",
            Self::WriteComment => "write_comment",
            Self::ReadReviews => "read_reviews",
            Self::ReadBranch => "read_branch",
            Self::WriteBranch => "write_branch",
            Self::ReadSettings => "read_settings",
            Self::WriteSettings => "write_settings",
        }
    }
}

/// Gets each request; must not block.
pub trait ForgeObserver: fmt::Debug + Send + Sync {
    /// A request ended; without a code if no answer came.
    fn request_finished(&self, operation: ForgeOperation, code: Option<StatusCode>);
    /// A commit status was written, or the write failed.
    fn status_posted(&self, result: Result<(), &Error>);
}
