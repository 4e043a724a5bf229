//! The codes of mistakes in manifests. Codes are stable: an unused code is never reused.

/// Not UTF-8, or larger than [`super::yaml::FILE_LIMIT`].
pub const UNREADABLE: &str = "E1101";
/// Not YAML.
pub const SYNTAX: &str = "E1102";
/// A tab where YAML wants spaces.
pub const TAB: &str = "E1103";
/// One key twice in one map.
pub const DUPLICATE_KEY: &str = "E1104";
/// An alias without its anchor.
pub const ALIAS: &str = "E1105";
/// An ambiguous merge key (`<<`).
pub const MERGE: &str = "E1106";
/// A tag that Kubernetes does not know, or that the value does not fit.
pub const TAG: &str = "E1107";
/// Too deep, too many nodes, too many after aliases are expanded.
pub const LIMIT: &str = "E1108";
/// YAML without an equivalent in JSON, and so in Kubernetes.
pub const NOT_JSON: &str = "E1109";
/// A document without apiVersion or kind, or that is not a map.
pub const NOT_A_MANIFEST: &str = "E1110";
pub const UNKNOWN_KIND: &str = "E1111";
pub const UNKNOWN_API_VERSION: &str = "E1112";
/// A second manifest of a kind that may exist once.
pub const SECOND: &str = "E1113";

/// Stands for further mistakes of a document.
pub const MORE_MISTAKES: &str = "E1114";

pub const UNKNOWN_FIELD: &str = "E1201";
pub const MISSING_FIELD: &str = "E1202";
pub const WRONG_TYPE: &str = "E1203";
/// None of the values that the field takes.
pub const UNKNOWN_VALUE: &str = "E1204";
/// Not a valid Kubernetes name.
pub const BAD_NAME: &str = "E1205";
/// The right type, but not a duration, an address, a digest, or out of range.
pub const BAD_VALUE: &str = "E1206";
/// A secret written out.
pub const LITERAL_SECRET: &str = "E1207";
/// None or several of a set of fields that needs exactly one.
pub const NOT_EXACTLY_ONE: &str = "E1208";
/// An invalid file pattern, or one that leaves the folder of the manifests.
pub const BAD_PATTERN: &str = "E1209";
/// One name twice in a list.
pub const DUPLICATE_ITEM: &str = "E1210";
/// A field or value that the version of a manifest does not have.
pub const NOT_IN_VERSION: &str = "E1221";
/// A conversion that cannot be used, or a document that needs one.
pub const BAD_CONVERSION: &str = "E1222";
/// Planned, and not supported yet.
pub const NOT_YET: &str = "E1290";
