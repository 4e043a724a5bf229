//! Who is told of each request to the forge, to count it.

use std::fmt;

use http::StatusCode;

use super::Error;

/// What is asked of the forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    PostStatus,
    ReadStatuses,
    ReadRepository,
    ReadVersion,
}

impl Operation {
    pub const ALL: [Self; 4] =
        [Self::PostStatus, Self::ReadStatuses, Self::ReadRepository, Self::ReadVersion];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PostStatus => "post_status",
            Self::ReadStatuses => "read_statuses",
            Self::ReadRepository => "read_repository",
            Self::ReadVersion => "read_version",
        }
    }
}

/// Is told of requests, and does not wait.
pub trait Observer: fmt::Debug + Send + Sync {
    /// One request is over; without a code where no answer came.
    fn answered(&self, operation: Operation, code: Option<StatusCode>);
    /// A commit status was written, or not.
    fn posted(&self, result: Result<(), &Error>);
}
