//! Paths below a volume.

use crate::validation::field_cursor::FieldCursor;
use crate::validation::validation_errors::ValidationErrors;

/// A path below the volume.
pub(super) fn check_relative(path: &FieldCursor, problems: &mut ValidationErrors) {
    if path.text().starts_with('/') {
        problems.invalid(path, "must be a relative path");
    }
    check_no_steps_back(path, problems);
}

pub(super) fn check_no_steps_back(path: &FieldCursor, problems: &mut ValidationErrors) {
    if path.text().split('/').any(|part| part == "..") {
        problems.invalid(path, "must not contain '..'");
    }
}

/// As [`check_relative`]; what begins with two dots belongs to the kubelet.
pub(super) fn check_file_path(path: &FieldCursor, problems: &mut ValidationErrors) {
    check_relative(path, problems);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        problems.invalid(path, "must not start with '..'");
    }
}
