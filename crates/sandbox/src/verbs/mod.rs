//! The verbs of the API (get, list, create, update, patch, delete, …) on the locked state.
//!
//! The HTTP service and the controllers call the same functions, so controllers behave like real clients. Nothing
//! here depends on HTTP.

mod bootstrap;
mod create;
mod delete;
mod evict;
mod json_patch;
mod list_page;
mod ownership;
mod patch;
mod quota;
mod read;
mod scale;
mod strategic;
mod update;
mod write_caller;

pub(crate) use crate::wire::delete_options::{DeletionPropagation, RequestDeleteOptions};
pub(crate) use bootstrap::bootstrap;
pub(crate) use create::{create, prepare};
pub(crate) use delete::{DeletedObject, delete, delete_collection};
pub(crate) use evict::evict;
pub(crate) use list_page::{future_revision_error, list, page, request_selector};
pub(crate) use patch::{PatchRequest, patch};
pub(crate) use quota::usage as quota_usage;
pub(crate) use read::{check_revision, get, stored_object};
pub(crate) use scale::{ScaleChange, read_scale, write_scale};
pub(crate) use update::{ObjectUpdate, update};
pub(crate) use write_caller::{WriteCaller, object_key};
