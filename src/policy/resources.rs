//! The resource of a kind: `deployments` of Deployment.

use std::borrow::Cow;

use crate::model::Kind;

/// Kinds that are their own plural.
const SAME: [&str; 1] = ["endpoints"];

/// As Kubernetes names its own kinds, and nearly everybody theirs; a definition may say otherwise.
pub fn resource(kind: &Kind) -> Cow<'static, str> {
    let name = kind.kind.to_ascii_lowercase();
    let is_vowel = |letter: Option<char>| letter.is_some_and(|it| "aeiou".contains(it));
    Cow::Owned(match name.chars().next_back() {
        _ if SAME.contains(&name.as_str()) => name,
        Some('s' | 'x') => format!("{name}es"),
        Some('h') if name.ends_with("ch") || name.ends_with("sh") => format!("{name}es"),
        Some('y') if !is_vowel(name.chars().nth_back(1)) => {
            format!("{}ies", name.strip_suffix('y').unwrap_or(&name))
        }
        _ => format!("{name}s"),
    })
}
