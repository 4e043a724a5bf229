//! The last line of a container's log.

use crate::model::{SecretValues, one_line, shortened};

/// At most so many bytes of a log are read: enough for the shown line with colours and hidden values.
pub const LOG_BYTES: usize = 4096;

/// Longest shown line, in characters.
const LINE_LIMIT: usize = 200;

/// What a kubelet returns as the log if it has no log any more.
const NO_LOGS: [&str; 3] = [
    "unable to retrieve container logs for ",
    "failed to try resolving symlinks in path ",
    "failed to open log file ",
];

/// The last line of a log as it may be shown; `None` if there is none. `log` is its end, cut to [`LOG_BYTES`].
pub fn last_line(log: &[u8], secrets: &SecretValues) -> Option<String> {
    let is_cut = !log.ends_with(b"\n");
    if log.len() >= LOG_BYTES && log[..log.len() - 1].contains(&b'\n') {
        // More than the one requested line, and cut: the last line here is not the last of the log.
        return None;
    }
    let text = String::from_utf8_lossy(log);
    // The cut may split a character.
    let text = if is_cut { text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &text };
    let shown = |text: &str| one_line(text, usize::MAX);
    // Progress bars rewrite their line with a carriage return.
    let line = text.split(['\n', '\r']).rev().map(shown).find(|line| !line.is_empty())?;
    if NO_LOGS.iter().any(|words| line.starts_with(words)) {
        return None;
    }
    Some(shortened(secrets.hide(&line, is_cut, shown), LINE_LIMIT))
}
