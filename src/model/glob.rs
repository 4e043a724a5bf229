//! Shell patterns within limits, because manifest authors must not control the cost of a match.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Bytes of one pattern.
pub const LONGEST_PATTERN: usize = 1024;
/// Braces within each other.
const DEEPEST_BRACES: usize = 4;
/// `**` in one pattern.
const MOST_DEEP_STARS: usize = 8;

/// Whether `*` matches a `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeparatorMatching {
    Matched,
    Literal,
}

/// Parses a pattern; the error is the reason why it is invalid.
pub fn parse(pattern: &str, separator: SeparatorMatching) -> Result<Glob, String> {
    check_bounds(pattern)?;
    let glob = GlobBuilder::new(pattern).literal_separator(separator == SeparatorMatching::Literal).build();
    glob.map_err(|error| error.kind().to_string())
}

/// Compiles a pattern; the error is the reason why it is invalid.
pub fn compile(pattern: &str, separator: SeparatorMatching) -> Result<GlobSet, String> {
    build_set(&[parse(pattern, separator)?])
}

/// Many patterns at once.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<GlobSet>);

impl Globs {
    /// Compiles each pattern alone when all together exceed the size limit.
    pub fn of(globs: &[Glob]) -> Self {
        let each = || globs.iter().filter_map(|glob| build_set(std::slice::from_ref(glob)).ok()).collect();
        Self(build_set(globs).map_or_else(|_| each(), |set| vec![set]))
    }

    pub fn fits(&self, path: &str) -> bool {
        self.0.iter().any(|set| set.is_match(path))
    }
}

fn build_set(globs: &[Glob]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    globs.iter().for_each(|glob| _ = set.add(glob.clone()));
    set.build().map_err(|error| error.kind().to_string())
}

fn check_bounds(pattern: &str) -> Result<(), String> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(format!("it has more than {LONGEST_PATTERN} bytes"));
    }
    if pattern.matches("**").count() > MOST_DEEP_STARS {
        return Err(format!("it has `**` more than {MOST_DEEP_STARS} times"));
    }
    let mut depth: usize = 0;
    for letter in pattern.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACES {
            return Err(format!("it has more than {DEEPEST_BRACES} braces within each other"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_bounded() {
        let check = |pattern: &str, expected: bool| {
            assert_eq!(compile(pattern, SeparatorMatching::Literal).is_ok(), expected, "{pattern}");
        };
        check("apps/{a,b{1,2}}/*.yaml", true);
        check("a/**/b/**/*.yaml", true);
        check("{a,{b,{c,{d,{e}}}}}", false);
        check(&"{".repeat(1000), false);
        check(&"**/".repeat(9), false);
        check(&"*".repeat(1025), false);
        check(&"[a-z]".repeat(200), true);
        check("[", false);
        check("{a", false);
    }
}
