//! Quantities, as `1.5Gi` or `1e3`.

const BAD_FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const BAD_SUFFIX: &str = "unable to parse quantity's suffix";

/// The error of a quantity; `None` stands for a value that is no text.
pub(crate) fn mistake(text: Option<&str>) -> Option<&'static str> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Some(BAD_FORM) };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut suffix = after_digits(unsigned);
    if let Some(fraction) = suffix.strip_prefix('.') {
        suffix = after_digits(fraction);
    }
    let rest = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if !after_digits(rest).is_empty() {
        return Some(BAD_FORM);
    }
    (!is_suffix(suffix)).then_some(BAD_SUFFIX)
}

fn after_digits(text: &str) -> &str {
    text.trim_start_matches(|letter: char| letter.is_ascii_digit())
}

fn is_suffix(suffix: &str) -> bool {
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i32>().is_ok());
    let units = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    exponent || units.contains(&suffix)
}
