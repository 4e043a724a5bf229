//! Glob patterns of paths. Most patterns only use `*` within a folder. Those are matched by hand: building a glob matcher
//! costs more than using it, and every commit matches every pattern.

use globset::GlobSet;

use crate::model::glob::{self, SeparatorMatching};

/// `*` stays within one folder, `**` crosses folders. A path equal to the pattern always matches.
pub struct PathPattern {
    text: String,
    /// `None` for a simple pattern.
    matcher: Option<GlobSet>,
    is_simple: bool,
}

impl PathPattern {
    pub fn new(text: &str) -> Self {
        let is_simple = !text.contains(['?', '[', ']', '{', '}', '\\', ',']) && !text.contains("**");
        let matcher = if is_simple { None } else { glob::compile(text, SeparatorMatching::Literal).ok() };
        Self { text: text.to_owned(), matcher, is_simple }
    }

    pub fn fits(&self, path: &str) -> bool {
        if !self.is_simple {
            return self.text == path || self.matcher.as_ref().is_some_and(|matcher| matcher.is_match(path));
        }
        let (mut names, mut parts) = (path.split('/'), self.text.split('/'));
        loop {
            match (names.next(), parts.next()) {
                (Some(name), Some(part)) if fits_name(part, name) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

/// Matches one name of a path. A part between two stars matches at its leftmost position.
fn fits_name(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        let Some(place) = left.find(part) else { return false };
        left = &left[place + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of these letters, up to a length.
    fn texts(letters: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut begin = 0;
        for _ in 0..longest {
            let end = all.len();
            for place in begin..end {
                let longer: Vec<String> =
                    letters.iter().map(|letter| format!("{}{letter}", all[place])).collect();
                all.extend(longer);
            }
            begin = end;
        }
        all
    }

    #[test]
    fn simple_patterns_match_like_the_glob_matcher() {
        let paths = texts(&['a', 'b', '/'], 5);
        for pattern in texts(&['a', 'b', '*', '/'], 4).iter().filter(|pattern| !pattern.contains("**")) {
            let matcher = glob::compile(pattern, SeparatorMatching::Literal).expect("a pattern");
            let simple = PathPattern::new(pattern);
            assert!(simple.is_simple);
            for path in &paths {
                assert_eq!(simple.fits(path), matcher.is_match(path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn other_patterns_use_the_glob_matcher() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(PathPattern::new(pattern).fits(path), expected, "{pattern} {path}");
        };
        check("apps/**/x.yaml", "apps/a/b/x.yaml", true);
        check("apps/{a,b}.yaml", "apps/b.yaml", true);
        check("apps/[.yaml", "apps/[.yaml", true);
        check("apps/[.yaml", "apps/a.yaml", false);
    }
}
