//! What Git ignores of a checkout, without libgit2: its matcher takes exponential time for one pattern of many `*`, and it opens
//! whatever stands in the place of a `.gitignore`, a pipe too.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::Repository;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Bytes of the patterns that hold in one folder: a name is held against all of them.
const MOST_PATTERNS: u64 = 64 << 10;

/// That they are more.
const TOO_MANY: &str = "`.gitignore` files with more than 64 KiB of patterns for one folder";

/// The patterns that hold in a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored {
    level: Rc<Level>,
    is_caseless: bool,
}

/// Those of one file.
#[derive(Debug, Default)]
struct Level {
    /// What they are relative to, from the root of the checkout, with its final `/`.
    folder: String,
    fits: GlobSet,
    /// Of each pattern, in order.
    rules: Vec<Rule>,
    /// Bytes, with those of the files that come after it.
    size: u64,
    /// Where none of its own fits.
    next: Option<Rc<Level>>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    /// What fits is not ignored.
    takes_back: bool,
    of_folders: bool,
}

impl Ignored {
    /// What holds in the whole of a checkout beside its own files: what this clone ignores, and its user.
    pub(super) fn of(repository: &Repository) -> Result<Self, &'static str> {
        let config = repository.config();
        let is_caseless = config.as_ref().is_ok_and(|it| it.get_bool("core.ignorecase").unwrap_or(false));
        let of_user = config.and_then(|config| config.get_path("core.excludesfile"));
        let of_user = of_user.or_else(|_| Ok(git2::Config::find_xdg()?.with_file_name("ignore")));
        let of_user: PathBuf = of_user.unwrap_or_else(|_: git2::Error| PathBuf::new());
        let none = Self { is_caseless, ..Self::default() };
        // People keep that one elsewhere, behind a link.
        let of_user = of_user.canonicalize().unwrap_or_default();
        none.with("", &of_user)?.with("", &repository.commondir().join("info/exclude"))
    }

    /// What holds in a folder, given what does in the one that it is in. `folder` is its path from the root of the checkout, with the
    /// final `/`.
    pub(super) fn below(&self, folder: &str, path: &Path) -> Result<Self, &'static str> {
        self.with(folder, &path.join(".gitignore"))
    }

    fn with(&self, folder: &str, file: &Path) -> Result<Self, &'static str> {
        // As Git, which follows no link to one of a checkout. One that cannot be read ignores nothing.
        let is_regular = file.symlink_metadata().is_ok_and(|file| file.is_file());
        let opened = is_regular.then(|| File::open(file).ok()).flatten();
        let Some(opened) = opened else { return Ok(self.clone()) };
        let mut text = Vec::new();
        let room = MOST_PATTERNS - self.level.size;
        let size = opened.take(room + 1).read_to_end(&mut text).unwrap_or_default() as u64;
        if size > room {
            return Err(TOO_MANY);
        }
        let lines = text.split(|byte| *byte == b'\n').filter_map(|line| pattern(line, self.is_caseless));
        let (globs, rules): (Vec<Glob>, Vec<Rule>) = lines.unzip();
        if globs.is_empty() {
            return Ok(self.clone());
        }
        let mut fits = GlobSetBuilder::new();
        globs.into_iter().for_each(|glob| _ = fits.add(glob));
        // The library has a bound on what they are compiled to.
        let fits = fits.build().map_err(|_| TOO_MANY)?;
        let next = Some(Rc::clone(&self.level));
        let level = Level { folder: folder.to_owned(), fits, rules, size: self.level.size + size, next };
        Ok(Self { level: Rc::new(level), is_caseless: self.is_caseless })
    }

    /// Whether something in such a folder is ignored, by its path from the root of the checkout. What is in a folder that is ignored
    /// is not asked for.
    pub(super) fn has(&self, path: &str, is_folder: bool) -> bool {
        let mut level = Some(&self.level);
        while let Some(Level { folder, fits, rules, next, .. }) = level.map(Rc::as_ref) {
            let matched = path.strip_prefix(folder).map(|path| fits.matches(path)).unwrap_or_default();
            let mut matched = matched.into_iter().filter_map(|number| rules.get(number));
            // The last one counts.
            if let Some(rule) = matched.rfind(|rule| is_folder || !rule.of_folders) {
                return !rule.takes_back;
            }
            level = next.as_ref();
        }
        false
    }
}

/// One line of such a file. One that is no pattern fits nothing, as in Git.
fn pattern(line: &[u8], is_caseless: bool) -> Option<(Glob, Rule)> {
    let line = std::str::from_utf8(line).ok()?;
    let line = without_blanks(line.strip_suffix('\r').unwrap_or(line));
    if line.starts_with('#') {
        return None;
    }
    let (takes_back, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
    let (of_folders, line) = line.strip_suffix('/').map_or((false, line), |line| (true, line));
    let is_placed = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let text = if is_placed { without_braces(line) } else { format!("**/{}", without_braces(line)) };
    let mut glob = GlobBuilder::new(&text);
    let glob = glob.literal_separator(true).backslash_escape(true).case_insensitive(is_caseless);
    Some((glob.build().ok()?, Rule { takes_back, of_folders }))
}

/// Without the blanks at its end, but for one that is escaped.
fn without_blanks(line: &str) -> &str {
    let kept = line.trim_end_matches([' ', '\t']);
    let is_escaped = kept.len() < line.len() && (kept.len() - kept.trim_end_matches('\\').len()) % 2 == 1;
    if is_escaped { &line[..=kept.len()] } else { kept }
}

/// Braces have no meaning to Git.
fn without_braces(pattern: &str) -> String {
    let (mut made, mut is_escaped) = (String::with_capacity(pattern.len()), false);
    for letter in pattern.chars() {
        if matches!(letter, '{' | '}') && !is_escaped {
            made.push('\\');
        }
        is_escaped = letter == '\\' && !is_escaped;
        made.push(letter);
    }
    made
}
