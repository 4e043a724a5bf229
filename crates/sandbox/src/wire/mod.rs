//! HTTP in and out: paths, queries, what the client accepts, bodies.

pub(crate) mod answer;
pub(crate) mod delete_options;
pub(crate) mod list_options;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod route;
