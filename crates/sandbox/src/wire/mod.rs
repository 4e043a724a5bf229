//! HTTP input and output: paths, query parameters, content negotiation, response bodies.

pub(crate) mod answer;
pub(crate) mod delete_options;
pub(crate) mod list_options;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod route;
