//! One requirement of a label selector.

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SelectorRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
    /// A number greater than this.
    Above(String, i64),
    Below(String, i64),
}
