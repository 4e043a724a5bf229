//! Why a session could not read its repository, with the help and the exit code of each error.

use std::fmt;

use super::super::exit::{self, Exit};
use super::super::leadership::LeaseLost;
use crate::controller::LoadError;
use crate::forge;
use crate::source::{self, ErrorKind};

/// The repository could not be opened.
#[derive(Debug)]
pub struct SourceError(pub source::Error);

/// The repository could not be read.
#[derive(Debug)]
pub struct RepositoryUnreadable(pub LoadError);

/// The run ended before the repository was read.
#[derive(Debug)]
pub struct RepositoryNotRead {
    pub(super) interrupted: bool,
}

impl fmt::Display for RepositoryNotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.interrupted {
            true => "stopped before the config repository was read",
            false => "the config repository was not read in time; --timeout gives it more",
        })
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RepositoryUnreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for RepositoryNotRead {}
impl std::error::Error for SourceError {}
impl std::error::Error for RepositoryUnreadable {}

fn error_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    let opened = error.downcast_ref::<SourceError>().map(|error| error.0.kind());
    opened.or_else(|| error.downcast_ref::<RepositoryUnreadable>().map(|error| error.0.kind))
}

pub fn help_of(error: &anyhow::Error) -> Option<String> {
    let opened = error.downcast_ref::<SourceError>().and_then(|error| error.0.help().map(ToOwned::to_owned));
    let of_forge =
        || error.downcast_ref::<forge::Error>().and_then(|error| error.help()).map(ToOwned::to_owned);
    let unreadable = || error.downcast_ref::<RepositoryUnreadable>().and_then(|error| error.0.help.clone());
    opened.or_else(unreadable).or_else(of_forge)
}

pub fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(RepositoryNotRead { interrupted }) = error.downcast_ref() {
        return if *interrupted { Exit::Interrupted } else { Exit::TimedOut };
    }
    if error.is::<LeaseLost>() {
        return Exit::Denied;
    }
    if let Some(error) = error.downcast_ref::<forge::Error>() {
        return exit::of_forge(error);
    }
    match error_kind(error) {
        Some(ErrorKind::Authentication) => Exit::Denied,
        Some(ErrorKind::Unreachable | ErrorKind::Transient) => Exit::Unreachable,
        Some(ErrorKind::Configuration) | None => Exit::Configuration,
    }
}
