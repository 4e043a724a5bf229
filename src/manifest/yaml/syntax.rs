//! Turns errors of the YAML parser into diagnostics with help.

use libyaml_safer::{Error, Mark};

use crate::manifest::codes;
use crate::model::{Diagnostic, DiagnosticScope, Location, TextPosition};

/// Marks count from 0, positions from 1; `line` is the line that the parsed text starts at, from 0.
pub fn position(mark: Mark, line: u32) -> TextPosition {
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX - 1) + 1;
    TextPosition { line: count(mark.line).saturating_add(line), column: count(mark.column) }
}

/// `text` is what was parsed, which starts at line `line` (from 0) of the file.
pub fn diagnostic(error: &Error, file: &str, text: &str, line: u32) -> Diagnostic {
    let scope = DiagnosticScope::File(file.to_owned());
    let locate = |position: TextPosition| Location { file: file.to_owned(), start: position, end: None };
    let Some(mark) = error.problem_mark() else {
        let mut diagnostic =
            Diagnostic::error(codes::SYNTAX, "invalid YAML: ".to_owned() + error.problem(), scope);
        let Some((place, letter)) = unprintable(text, line) else {
            return diagnostic.at(locate(TextPosition { line: line + 1, column: 1 }));
        };
        diagnostic.message =
            format!("invalid YAML: the character U+{:04X} is not allowed", u32::from(letter));
        return diagnostic.at(locate(place)).help("remove it, or write it as an escape in double quotes");
    };
    let (mark, context) = cause(error, mark);
    let source = usize::try_from(mark.line).ok().and_then(|index| text.lines().nth(index)).unwrap_or("");
    if let Some(column) = tab(source, mark) {
        let place = TextPosition { line: position(mark, line).line, column };
        return Diagnostic::error(codes::TAB, "a tab where YAML requires spaces", scope)
            .at(locate(place))
            .help("indent with spaces: YAML forbids tabs in indentation");
    }
    let problem = match error.problem() {
        "found unexpected end of stream" | "found unexpected document indicator"
            if error.context().unwrap_or("").contains("quoted") =>
        {
            "a quote is never closed"
        }
        problem => problem,
    };
    let mut diagnostic = Diagnostic::error(codes::SYNTAX, format!("invalid YAML: {problem}"), scope)
        .at(locate(position(mark, line)));
    if let Some((context, place)) = context.filter(|(_, place)| *place != mark) {
        diagnostic = diagnostic.related(locate(position(place, line)), context);
    }
    diagnostic.help = help(problem, source, mark);
    diagnostic
}

/// The origin of an error, and its context. The parser notices a key without `:` and an open quote only much later.
fn cause(error: &Error, mark: Mark) -> (Mark, Option<(&'static str, Mark)>) {
    let context = error.context().zip(error.context_mark());
    match context {
        Some((within, place)) if within.contains("simple key") || within.contains("quoted scalar") => {
            (place, None)
        }
        context => (mark, context),
    }
}

/// The column of a tab that is the cause: at the mark, or in the indentation of its line.
fn tab(source: &str, mark: Mark) -> Option<u32> {
    let column = usize::try_from(mark.column).ok()?;
    let indentation = source.chars().take_while(|letter| letter.is_whitespace()).count();
    let found = source
        .chars()
        .enumerate()
        .find(|(index, letter)| *letter == '\t' && (*index < indentation || *index == column))?;
    u32::try_from(found.0 + 1).ok()
}

/// A byte order mark that is not at the start, which YAML parsers treat differently.
pub fn inner_mark(file: &str, text: &str) -> Option<Diagnostic> {
    let (line, column) = (1..).zip(text.lines()).find_map(|(line, source)| {
        (1..).zip(source.chars()).find(|(_, letter)| *letter == '\u{feff}').map(|(column, _)| (line, column))
    })?;
    let message = "invalid YAML: a byte order mark (U+FEFF) inside the file";
    let mistake = Diagnostic::error(codes::SYNTAX, message, DiagnosticScope::File(file.to_owned()));
    Some(mistake.at(Location::new(file, line, column)).help("remove it: it is not visible in most editors"))
}

fn unprintable(text: &str, line: u32) -> Option<(TextPosition, char)> {
    text.lines().zip(line + 1..).find_map(|(source, line)| {
        source
            .chars()
            .zip(1..)
            .find(|(letter, _)| {
                letter.is_control() && !matches!(letter, '\t' | '\u{85}')
                    || matches!(letter, '\u{fffe}' | '\u{ffff}')
            })
            .map(|(letter, column)| (TextPosition { line, column }, letter))
    })
}

fn help(problem: &str, source: &str, mark: Mark) -> Option<String> {
    let at = usize::try_from(mark.column).ok().and_then(|column| source.chars().nth(column));
    let help = match problem {
        _ if source.contains("{{") || source.contains("{%") => {
            "template expressions work only in files that end in .j2, under templates/ or named by an Objects app"
        }
        "mapping values are not allowed in this context" => {
            "a text with `: ` in it needs quotes; else the indentation of this line is off"
        }
        "did not find expected key" | "did not find expected '-' indicator" => {
            "this line is not indented like its neighbours, or a value before it needs quotes"
        }
        "could not find expected ':'" => "a key needs `:` after it, on the same line",
        "a quote is never closed" => {
            "close the quote that opens here; a quote inside single quotes is written twice"
        }
        "did not find expected ',' or ']'" => "a `[` is never closed, or a `,` is missing",
        "did not find expected ',' or '}'" => "a `{` is never closed, or a `,` is missing",
        "found character that cannot start any token" => {
            return at.map(|letter| format!("a text that starts with `{letter}` needs quotes"));
        }
        "found unknown escape character" => "use single quotes, in which a backslash is only itself",
        "did not find expected alphabetic or numeric character" => {
            "`*` and `&` begin an alias and an anchor; a text that starts with one needs quotes"
        }
        _ => return None,
    };
    Some(help.to_owned())
}
