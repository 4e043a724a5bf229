//! The codes of mistakes that reading finds. A code is stable for ever: one that is no longer used is
//! not given to anything else.

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
/// A merge key (`<<`) that does not say one thing.
pub const MERGE: &str = "E1106";
/// A tag that Kubernetes does not know, or that the value does not fit.
pub const TAG: &str = "E1107";
/// Too deep, too many nodes, too many after aliases are expanded.
pub const LIMIT: &str = "E1108";
/// YAML that JSON, and so Kubernetes, cannot say.
pub const NOT_JSON: &str = "E1109";
/// A document without apiVersion or kind, or that is not a map.
pub const NOT_A_MANIFEST: &str = "E1110";
pub const UNKNOWN_KIND: &str = "E1111";
pub const UNKNOWN_API_VERSION: &str = "E1112";
/// A second manifest of a kind of which there is one.
pub const SECOND: &str = "E1113";

/// In the place of further mistakes of a document.
pub const MORE_MISTAKES: &str = "E1114";

pub const UNKNOWN_FIELD: &str = "E1201";
pub const MISSING_FIELD: &str = "E1202";
pub const WRONG_TYPE: &str = "E1203";
/// None of the values that the field takes.
pub const UNKNOWN_VALUE: &str = "E1204";
/// Not a name that Kubernetes takes.
pub const BAD_NAME: &str = "E1205";
/// The right type, but not a duration, an address, a digest, or out of range.
pub const BAD_VALUE: &str = "E1206";
/// A secret written out.
pub const LITERAL_SECRET: &str = "E1207";
/// None or several of fields of which exactly one is wanted.
pub const NOT_EXACTLY_ONE: &str = "E1208";
/// A file pattern that is none, or that leaves the folder of the manifests.
pub const BAD_PATTERN: &str = "E1209";
/// One name twice in a list.
pub const DUPLICATE_ITEM: &str = "E1210";
/// What the version of a manifest cannot say.
pub const NOT_IN_VERSION: &str = "E1221";
/// A conversion that cannot be used, or a document that needs one.
pub const BAD_CONVERSION: &str = "E1222";
/// Known, and comes later.
pub const NOT_YET: &str = "E1290";
