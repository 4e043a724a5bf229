//! The elements of a field path.

use std::borrow::Cow;
use std::fmt;

use super::literal::FieldLiteral;

/// One step. Their order is the order of `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement<'a> {
    /// A field of a map.
    Field(&'a str),
    /// An item of a list with keys, the keys in name order.
    Key(Vec<(Cow<'a, str>, FieldLiteral<'a>)>),
    /// An item of a set.
    Item(FieldLiteral<'a>),
    /// An item by its place.
    Index(i64),
    /// An item that has no step, as merging may leave behind for a moment. Never written.
    Unresolved,
}

/// As messages show a step: `.spec`, `[name="web"]`, `[="web"]`, `[0]`.
impl fmt::Display for PathElement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(keys) => {
                for (place, (name, value)) in keys.iter().enumerate() {
                    write!(out, "{}{name}={value}", if place == 0 { '[' } else { ',' })?;
                }
                out.write_str("]")
            }
            Self::Item(value) => write!(out, "[={value}]"),
            Self::Index(index) => write!(out, "[{index}]"),
            Self::Unresolved => out.write_str("{{invalid path element}}"),
        }
    }
}

/// A whole path as messages show it.
pub(crate) fn display(path: &[PathElement<'_>]) -> String {
    path.iter().map(ToString::to_string).collect()
}
