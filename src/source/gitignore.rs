//! The `.gitignore` rules of a checkout. libgit2 is not used, because its matcher takes exponential time for a pattern of many `*`, and
//! it opens anything named `.gitignore`, even a pipe.

use std::cell::Cell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::Repository;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use super::Error;

/// Bytes of the patterns that apply in one folder: every name is matched against all of them.
const MOST_PATTERNS: u64 = 64 << 10;
/// Bytes of the patterns of a whole checkout: those of each file are compiled.
const MOST_IN_ALL: u64 = 4 << 20;

/// The patterns that apply in a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct GitIgnore {
    level: Rc<GitIgnoreLevel>,
    is_caseless: bool,
    /// Bytes of the patterns that were compiled for this checkout.
    compiled: Rc<Cell<u64>>,
}

/// The patterns of one ignore file.
#[derive(Debug, Default)]
struct GitIgnoreLevel {
    /// What they are relative to, from the root of the checkout, with its final `/`.
    folder: String,
    patterns: GlobSet,
    /// Of each pattern, in order.
    rules: Vec<GitIgnoreRule>,
    /// Bytes, with those of the files that come after it.
    size: u64,
    /// Consulted when no own pattern matches.
    fallback: Option<Rc<GitIgnoreLevel>>,
}

#[derive(Clone, Copy, Debug)]
struct GitIgnoreRule {
    /// `!`: a path that matches is not ignored.
    is_negated: bool,
    is_folder_only: bool,
}

impl GitIgnore {
    /// The patterns for the whole checkout: `.git/info/exclude` and the user's file.
    pub(super) fn of(repository: &Repository) -> Result<Self, Error> {
        let config = repository.config();
        let is_caseless = config.as_ref().is_ok_and(|it| it.get_bool("core.ignorecase").unwrap_or(false));
        let of_user =
            config.and_then(|config| config.get_path("core.excludesfile")).ok().or_else(user_excludes_file);
        let none = Self { is_caseless, ..Self::default() };
        let files = of_user.into_iter().chain([repository.commondir().join("info/exclude")]);
        // These files may be links, because they are not part of the checkout.
        files
            .filter_map(|file| file.canonicalize().ok())
            .try_fold(none, |ignored, file| ignored.with_file("", &file))
    }

    /// The patterns for a subfolder of this one. `folder` is its path from the root of the checkout, with the final `/`.
    pub(super) fn in_subfolder(&self, folder: &str, path: &Path) -> Result<Self, Error> {
        self.with_file(folder, &path.join(".gitignore"))
    }

    fn with_file(&self, folder: &str, file: &Path) -> Result<Self, Error> {
        // As in Git: a symbolic link is not followed, and an unreadable file ignores nothing.
        let is_regular = file.symlink_metadata().is_ok_and(|file| file.is_file());
        let opened = is_regular.then(|| File::open(file).ok()).flatten();
        let Some(opened) = opened else { return Ok(self.clone()) };
        let too_many = || Error::TooManyIgnorePatterns { path: file.to_owned() };
        let mut text = Vec::new();
        let room = (MOST_PATTERNS - self.level.size).min(MOST_IN_ALL - self.compiled.get());
        let size = opened.take(room + 1).read_to_end(&mut text).unwrap_or_default() as u64;
        if size > room {
            return Err(too_many());
        }
        self.compiled.set(self.compiled.get() + size);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let lines =
            text.split(|byte| *byte == b'\n').filter_map(|line| parse_pattern(line, self.is_caseless));
        let (globs, rules): (Vec<Glob>, Vec<GitIgnoreRule>) = lines.unzip();
        if globs.is_empty() {
            return Ok(self.clone());
        }
        let mut patterns = GlobSetBuilder::new();
        globs.into_iter().for_each(|glob| _ = patterns.add(glob));
        // The library has a bound on what they are compiled to.
        let patterns = patterns.build().map_err(|_| too_many())?;
        let next = Some(Rc::clone(&self.level));
        let level = GitIgnoreLevel {
            folder: folder.to_owned(),
            patterns,
            rules,
            size: self.level.size + size,
            fallback: next,
        };
        Ok(Self { level: Rc::new(level), ..self.clone() })
    }

    /// Whether an entry of the folder is ignored, by its path from the root of the checkout. Callers do not enter ignored folders.
    pub(super) fn is_ignored(&self, path: &str, is_folder: bool) -> bool {
        let mut level = Some(&self.level);
        while let Some(GitIgnoreLevel { folder, patterns, rules, fallback: next, .. }) = level.map(Rc::as_ref)
        {
            let matched = path.strip_prefix(folder).map(|path| patterns.matches(path)).unwrap_or_default();
            let mut matched = matched.into_iter().filter_map(|number| rules.get(number));
            // The last one that matches decides.
            if let Some(rule) = matched.rfind(|rule| is_folder || !rule.is_folder_only) {
                return !rule.is_negated;
            }
            level = next.as_ref();
        }
        false
    }
}

/// Parses one line of an ignore file. An invalid pattern matches nothing, as in Git.
fn parse_pattern(line: &[u8], is_caseless: bool) -> Option<(Glob, GitIgnoreRule)> {
    let line = std::str::from_utf8(line).ok()?;
    let line = without_blanks(line.strip_suffix('\r').unwrap_or(line));
    if line.starts_with('#') {
        return None;
    }
    let (is_negated, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
    let (is_folder_only, line) = line.strip_suffix('/').map_or((false, line), |line| (true, line));
    let is_anchored = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let text = to_glob_syntax(line);
    let text = if is_anchored { text } else { format!("**/{text}") };
    let mut glob = GlobBuilder::new(&text);
    let glob = glob.literal_separator(true).backslash_escape(true).case_insensitive(is_caseless);
    Some((glob.build().ok()?, GitIgnoreRule { is_negated, is_folder_only }))
}

/// Without the blanks at its end, but for one that is escaped.
fn without_blanks(line: &str) -> &str {
    let kept = line.trim_end_matches([' ', '\t']);
    let is_escaped = kept.len() < line.len() && (kept.len() - kept.trim_end_matches('\\').len()) % 2 == 1;
    if is_escaped { &line[..=kept.len()] } else { kept }
}

/// Braces have no meaning to Git, and no class of it matches a `/`.
fn to_glob_syntax(pattern: &str) -> String {
    let mut made = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' => made.extend(['\\', letter]),
            '\\' => made.extend([letter].into_iter().chain(letters.next())),
            '[' => {
                made.push(letter);
                if let Some(not) = letters.next_if(|it| matches!(it, '!' | '^')) {
                    made.push(not);
                    // What stands first is part of the class, a bracket too.
                    made.extend(letters.next_if_eq(&']'));
                    made.push('/');
                }
                made.extend(std::iter::from_fn(|| letters.next_if(|it| *it != ']')));
            }
            _ => made.push(letter),
        }
    }
    made
}

/// The default path of the user's ignore file.
fn user_excludes_file() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    Some(folder.or_else(|| Some(std::env::home_dir()?.join(".config")))?.join("git/ignore"))
}
