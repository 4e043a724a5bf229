//! What a container wrote last.

use crate::model::{SecretValues, one_line, shortened};

/// So many bytes of a log are read at most: what is shown, with colours and values that are hidden.
pub const LOG_BYTES: usize = 4096;

/// Longest line that is shown, in characters.
const LINE_LIMIT: usize = 200;

/// What a kubelet writes in the place of a log that it has no more, as if it were one.
const NO_LOGS: [&str; 3] = [
    "unable to retrieve container logs for ",
    "failed to try resolving symlinks in path ",
    "failed to open log file ",
];

/// The last line of a log as it may be shown; `None` when there is none. `log` is the end of it, or, where that is longer than
/// [`LOG_BYTES`], so much of it.
pub fn last_line(log: &[u8], secrets: &SecretValues) -> Option<String> {
    let is_cut = !log.ends_with(b"\n");
    if log.len() >= LOG_BYTES && log[..log.len() - 1].contains(&b'\n') {
        // More than the one line that was asked for, and its end is not here: whatever is last of it was not the last.
        return None;
    }
    let text = String::from_utf8_lossy(log);
    // Half a character is no letter.
    let text = if is_cut { text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &text };
    let shown = |text: &str| one_line(text, usize::MAX);
    // Who shows how far it came writes one line again and again.
    let line = text.split(['\n', '\r']).rev().map(shown).find(|line| !line.is_empty())?;
    if NO_LOGS.iter().any(|words| line.starts_with(words)) {
        return None;
    }
    Some(shortened(secrets.hide(&line, is_cut, shown), LINE_LIMIT))
}
