//! The facts of a custom kind beside those that every kind has.

use std::sync::Arc;

use super::rules::RuleNode;

/// The facts of a kind that come from its definition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CustomKindInfo {
    pub(crate) api_version: String,
    pub(crate) list_kind: String,
    pub(crate) columns: Vec<PrinterColumn>,
    /// Paths without the first point.
    pub(crate) selectable: Vec<String>,
    /// The warning in every response of a deprecated version.
    pub(crate) warning: Option<String>,
    /// The definition is on its way out.
    pub(crate) terminating: bool,
    /// No other version is served.
    pub(crate) is_only_version: bool,
    /// Nothing is filled in when an object of this version is read.
    pub(crate) has_no_defaults: bool,
    /// Rules in CEL; none in most definitions.
    pub(crate) rules: Option<Arc<RuleNode>>,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}
