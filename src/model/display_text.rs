//! Cleans foreign texts for display: one line, bounded length, no terminal escape sequences.

use std::str::Chars;

/// A foreign text on one line without escape sequences, at most `limit` characters.
pub fn short_line(text: &str, limit: usize) -> String {
    // A character has four bytes at most.
    shortened(one_line(text, limit * 4), limit)
}

/// The same of a line whose spaces mean something.
pub fn visible_line(text: &str, limit: usize) -> String {
    let visible = text.chars().map(|letter| if letter == '\t' { ' ' } else { letter });
    shortened(visible.filter(|letter| !is_invisible(*letter)).take(limit + 1).collect(), limit)
}

/// At most so many characters.
pub fn shortened(mut line: String, limit: usize) -> String {
    if let Some((cut, _)) = line.char_indices().nth(limit) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// The text on one line, words one space apart, without escape sequences. Reading stops when the line has about `enough` bytes.
pub fn one_line(text: &str, enough: usize) -> String {
    let mut line = String::new();
    let mut is_apart = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            is_apart = !line.is_empty();
            if is_apart && line.len() > enough {
                break;
            }
        } else if letter == ESCAPE {
            skip_escape_sequence(&mut letters);
        } else if !is_invisible(letter) {
            if std::mem::take(&mut is_apart) {
                line.push(' ');
            }
            line.push(letter);
        }
    }
    line
}

/// Begins an escape sequence: a colour, a title, a movement.
const ESCAPE: char = '\u{1b}';

/// Skips the rest of an escape sequence (ECMA-48). An unterminated one hides the rest of the text, as on a terminal.
fn skip_escape_sequence(letters: &mut Chars<'_>) {
    match letters.next() {
        // Parameters, then one letter.
        Some('[') => {
            letters.find(|letter| matches!(letter, '@'..='~'));
        }
        // A text, up to its own end: a bell, or `ESC \`.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut before = ' ';
            letters.find(|&letter| {
                let is_end = letter == '\u{7}' || (before, letter) == (ESCAPE, '\\');
                before = letter;
                is_end
            });
        }
        // Some more, then one letter.
        Some(' '..='/') => {
            letters.find(|letter| matches!(letter, '0'..='~'));
        }
        _ => {}
    }
}

/// Control characters, and those that change the direction of a text or hide in it.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
