//! Maps positions in texts of manifests (CEL expressions) to positions in the file.

use crate::model::{Location, Snapshot};

/// The file position of a position in a text. For folded lines and escapes it is the beginning of the text.
pub fn location_in_text(
    text: &Location,
    line_of_text: u32,
    column: Option<u32>,
    snapshot: &Snapshot,
) -> Location {
    let Some(column) = column else { return text.clone() };
    let line_at = |number: u32| {
        let number = usize::try_from(number.saturating_sub(1)).unwrap_or_default();
        snapshot.text(&text.file).and_then(|file| file.lines().nth(number)).unwrap_or_default()
    };
    let first: String = line_at(text.start.line).chars().skip(index(text.start.column)).collect();
    let place = |line, column| Location::new(&text.file, line, column);
    match first.chars().next() {
        Some('|') => {
            let line = text.start.line + line_of_text;
            let indent = line_at(text.start.line + 1).chars().take_while(|it| *it == ' ').count();
            place(line, u32::try_from(indent).unwrap_or_default() + column)
        }
        Some('\'' | '"') if line_of_text == 1 => place(text.start.line, text.start.column + column),
        Some(other) if line_of_text == 1 && other != '>' => {
            place(text.start.line, text.start.column + column - 1)
        }
        _ => text.clone(),
    }
}

fn index(column: u32) -> usize {
    usize::try_from(column.saturating_sub(1)).unwrap_or_default()
}
