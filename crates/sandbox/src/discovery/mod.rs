//! API discovery in the legacy and the aggregated form, and OpenAPI documents.

mod aggregated;
mod legacy;
mod openapi;

pub(crate) use aggregated::group_list as aggregated;
pub(crate) use legacy::{core_versions, group, groups, resources};
pub(crate) use openapi::{document as openapi_document, index as openapi_index};
