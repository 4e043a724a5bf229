//! The verbs of the API (get, list, create, update, patch, delete, …) on the locked state.
//!
//! The HTTP service and the controllers call the same functions, so controllers behave like real clients. Nothing
//! here depends on HTTP.

mod bootstrap;
mod caller;
mod create;
mod delete;
mod evict;
mod json_patch;
mod ownership;
mod page;
mod patch;
mod quota;
mod read;
mod scale;
mod strategic;
mod update;

pub(crate) use crate::wire::delete_options::{DeleteOptions, Propagation};
pub(crate) use bootstrap::bootstrap;
pub(crate) use caller::{Caller, key};
pub(crate) use create::{create, prepare};
pub(crate) use delete::{Deleted, delete, delete_collection};
pub(crate) use evict::evict;
pub(crate) use page::{list, page, selector, too_large};
pub(crate) use patch::{Patch, patch};
pub(crate) use quota::usage as quota_usage;
pub(crate) use read::{check_revision, get, stored};
pub(crate) use scale::{ScaleChange, read_scale, write_scale};
pub(crate) use update::{Update, update};
