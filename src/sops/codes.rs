//! Codes of mistakes in encrypted files. They never change.

use crate::model::{Diagnostic, DiagnosticSeverity};

/// No identity was given.
pub const NO_IDENTITY: &str = "E3301";
/// No identity decrypts the file.
pub const WRONG_IDENTITY: &str = "E3302";
/// The MAC of the file is wrong.
pub const MAC: &str = "E3303";
/// An invalid `sops` map.
pub const ENVELOPE: &str = "E3304";
/// A value that `sops` did not write, or for another path.
pub const VALUE: &str = "E3305";
/// Keys other than age, or an unsupported rule.
pub const NOT_SUPPORTED: &str = "E3306";
/// A program built without SOPS.
pub const NOT_BUILT: &str = "E3307";

/// Without any key, a check of a change only warns about encrypted files.
pub fn downgrade_missing_identity(mistake: &mut Diagnostic) {
    if mistake.code == NO_IDENTITY {
        mistake.severity = DiagnosticSeverity::Warning;
    }
}
