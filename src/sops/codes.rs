//! The codes of mistakes in encrypted files; stable for ever.

/// No identity was given.
pub const NO_IDENTITY: &str = "E3301";
/// None of the identities opens the file.
pub const WRONG_IDENTITY: &str = "E3302";
/// The code over the values of the file is wrong.
pub const MAC: &str = "E3303";
/// A `sops` map that is none.
pub const ENVELOPE: &str = "E3304";
/// A value that is not what `sops` makes of one, or was made for another place.
pub const VALUE: &str = "E3305";
/// Keys that are not age's, or a rule that is not read.
pub const NOT_SUPPORTED: &str = "E3306";
/// A program without SOPS.
pub const NOT_BUILT: &str = "E3307";
