//! HTTP input and output: paths, query parameters, content negotiation, response bodies.

pub(crate) mod content_negotiation;
pub(crate) mod delete_options;
pub(crate) mod list_options;
pub(crate) mod query;
pub(crate) mod response;
pub(crate) mod route;
