//! The errors of steps that are cancelled or refused.

use tokio_util::sync::CancellationToken;

use crate::cluster::Error;
use crate::model::{ObjectId, RenderedObject};

/// The error of a cancelled step. Checked before each write that follows another request: while a slow server
/// answered, a newer commit or another cluster may have taken over.
pub(super) fn superseded_error(cancelled: &CancellationToken, id: &ObjectId) -> Option<Error> {
    cancelled.is_cancelled().then(|| Error::Superseded { object: id.clone() })
}

pub(super) fn conflict_error(action: &'static str, object: &ObjectId) -> Error {
    let (reason, detail) = ("Conflict".to_owned(), "it changed meanwhile and is read again".to_owned());
    Error::Rejected { action, object: object.clone(), code: 409, reason, detail }
}

/// The error as it may be shown: servers quote refused values.
pub(super) fn without_secret_values(object: &RenderedObject, error: Error) -> Error {
    if object.encrypted_values.is_some() { error.without_values() } else { error }
}
