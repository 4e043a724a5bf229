//! Checks names by the rules of Kubernetes, and suggests similar ones.

/// Which names are valid (RFC 1123, as the API server checks them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63.
    Label,
    /// Labels with dots between, at most 253.
    Subdomain,
}

impl NameRule {
    pub fn fits(self, name: &str) -> bool {
        match self {
            Self::Label => is_label(name),
            Self::Subdomain => name.len() <= 253 && name.split('.').all(is_label),
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Label => "lower case letters, digits and `-`, a letter or digit at both ends, at most 63",
            Self::Subdomain => {
                "lower case letters, digits, `-` and `.`, a letter or digit at both ends, at most 253"
            }
        }
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// A label's or annotation's key: an optional DNS prefix and `/`, then a qualified name.
pub fn is_label_key(key: &str) -> bool {
    let name = match key.split_once('/') {
        Some((prefix, name)) if NameRule::Subdomain.fits(prefix) => name,
        Some(_) => return false,
        None => key,
    };
    !name.is_empty() && is_label_value(name)
}

/// Letters, digits, `-`, `_`, `.`, a letter or digit at both ends, at most 63; may be empty.
pub fn is_label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends_well = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && ends_well(bytes.first())
        && ends_well(bytes.last())
}

/// The most similar known name.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Below this share of common letters, two names have nothing to do with each other.
    const ALIKE: f32 = 0.6;
    closest(name, known, ALIKE)
}

/// The known name of which this is likely a typo. Less similar names may be intended.
pub fn likely_typo_of<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const SLIP: f32 = 0.85;
    closest(name, known, SLIP)
}

/// Longer names are not compared.
const LONGEST_NAME: usize = 253;
/// With more names, no suggestion is made.
const MOST_NAMES: usize = 4096;

fn closest<'k>(name: &str, known: &[&'k str], share: f32) -> Option<&'k str> {
    if name.len() > LONGEST_NAME || known.len() > MOST_NAMES {
        return None;
    }
    let is_near = |other: &&&str| is_near(name.len(), other.len(), share);
    known.iter().find(|candidate| candidate.eq_ignore_ascii_case(name)).copied().or_else(|| {
        let known: Vec<&str> = known.iter().filter(is_near).copied().collect();
        similar::get_close_matches(name, &known, 1, share).first().copied()
    })
}

/// Whether two names of these lengths in bytes can reach this share of common letters.
#[expect(clippy::cast_precision_loss, reason = "lengths of names")]
fn is_near(one: usize, other: usize, share: f32) -> bool {
    other <= LONGEST_NAME && (one.min(other) * 8) as f32 >= share * (one + other) as f32
}

/// The help for a wrong name: the nearest one among all that are known, and the valid ones.
pub fn suggest(name: &str, known: &[&str], valid: &[&str]) -> String {
    let mut sorted = valid.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let all = if sorted.is_empty() {
        "nothing is valid here".to_owned()
    } else {
        format!("valid: {}", sorted.join(", "))
    };
    match nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`? {all}"),
        None => all,
    }
}
