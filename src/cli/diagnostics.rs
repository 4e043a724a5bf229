//! Prints diagnostics for people: the source with the place marked, related places, help, and a count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use std::io::IsTerminal as _;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::output::tell;
use crate::manifest::codes;
use crate::model::{Diagnostic, DiagnosticSeverity, Location, TextPosition, secret_text};

/// Prints without source lines.
pub fn print(diagnostics: &[Diagnostic]) {
    print_from(diagnostics, &|_| None);
}

/// Prints each with its source line.
pub fn print_from(diagnostics: &[Diagnostic], source: &dyn Fn(&str) -> Option<String>) {
    if !diagnostics.is_empty() {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        tell!("{}", render(diagnostics, source, colour).trim_end());
    }
}

/// All diagnostics by file and place, then a line that counts them; empty without any. `source` returns the text of a repository
/// file, if it may be shown. Literal secrets are masked.
pub fn render(diagnostics: &[Diagnostic], source: impl Fn(&str) -> Option<String>, colour: bool) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let sources = SourceFiles::read(diagnostics, source);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    // Those without a place are last.
    sorted.sort_by_key(|diagnostic| (diagnostic.location.is_none(), &diagnostic.location, diagnostic.code));
    let mut text = String::new();
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for diagnostic in sorted {
        let file = diagnostic.location.as_ref().map_or("", |location| location.file.as_str());
        let count = told.entry(file).or_default();
        *count += 1;
        if *count <= MAX_PER_FILE {
            text.push_str(&renderer.render(&[diagnostic_group(diagnostic, &sources)]));
            text.push_str("\n\n");
        }
    }
    for (file, count) in told.into_iter().filter(|(_, count)| *count > MAX_PER_FILE) {
        text.push_str(&format!("{file}: {} more are not shown\n\n", count - MAX_PER_FILE));
    }
    text.push_str(&count_text(diagnostics));
    text.push('\n');
    text
}

fn diagnostic_group<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceFiles) -> Group<'a> {
    let level = match diagnostic.severity {
        DiagnosticSeverity::Error => Level::ERROR,
        DiagnosticSeverity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code));
    let label = diagnostic.path.as_deref().unwrap_or("");
    let places = diagnostic.location.iter().map(|location| (location, label, true));
    let related = diagnostic
        .related
        .iter()
        .take(MAX_RELATED)
        .map(|(location, label)| (location, label.as_str(), false));
    // One block per file, the mistake's file first. Distant places get their own blocks.
    let mut files: Vec<(&str, Vec<SourceMark<'_>>)> = Vec::new();
    for (location, label, primary) in places.chain(related) {
        let mark = SourceMark { location, label, is_primary: primary };
        let near = |marks: &[SourceMark<'_>]| {
            marks
                .iter()
                .all(|mark| mark.location.start.line.abs_diff(location.start.line) <= MAX_BLOCK_DISTANCE)
        };
        match files.iter_mut().find(|(file, marks)| *file == location.file && near(marks)) {
            Some((_, marks)) => marks.push(mark),
            None => files.push((&location.file, vec![mark])),
        }
    }
    for (file, marks) in files {
        group = match sources.excerpt(file, &marks) {
            Some(excerpt) => {
                let annotations = marks.iter().zip(excerpt.spans).map(|(mark, span)| mark.annotation(span));
                let snippet = Snippet::source(excerpt.text).path(file).line_start(excerpt.line);
                group.element(snippet.annotations(annotations))
            }
            None => marks.iter().fold(group, |group, mark| group.element(mark.origin())),
        };
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

const MAX_PER_FILE: usize = 100;
const MAX_RELATED: usize = 10;
/// In bytes; longer lines are not shown.
const MAX_LINE_BYTES: usize = 1000;

/// Largest distance, in lines, of two places in one block.
const MAX_BLOCK_DISTANCE: u32 = 50;

struct SourceMark<'a> {
    location: &'a Location,
    label: &'a str,
    is_primary: bool,
}

impl<'a> SourceMark<'a> {
    fn annotation(&self, span: Range<usize>) -> annotate_snippets::Annotation<'a> {
        let kind = if self.is_primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(span);
        if self.label.is_empty() { annotation } else { annotation.label(self.label) }
    }

    /// For a file without its text.
    fn origin(&self) -> Origin<'a> {
        let TextPosition { line, column } = self.location.start;
        Origin::path(self.location.file.as_str()).line(line as usize).char_column(column as usize)
    }
}

/// Lines of the files with mistakes, secrets masked.
struct SourceFiles(BTreeMap<String, Vec<String>>);

struct SourceExcerpt {
    text: String,
    /// Number of the first line.
    line: usize,
    /// In bytes of `text`, one per mark.
    spans: Vec<Range<usize>>,
}

impl SourceFiles {
    fn read(diagnostics: &[Diagnostic], source: impl Fn(&str) -> Option<String>) -> Self {
        let places = diagnostics.iter().flat_map(|diagnostic| {
            diagnostic.location.iter().chain(diagnostic.related.iter().map(|(place, _)| place))
        });
        let files: BTreeSet<&str> = places.map(|location| location.file.as_str()).collect();
        let lines = |text: String| -> Vec<String> {
            let shown = text.strip_prefix('\u{feff}').unwrap_or(&text);
            if secret_text::has_secret(shown) {
                secret_text::lines_without_values(shown)
            } else {
                shown.lines().map(str::to_owned).collect()
            }
        };
        let mut sources: BTreeMap<String, Vec<String>> =
            files.into_iter().filter_map(|file| Some((file.to_owned(), lines(source(file)?)))).collect();
        let secrets = diagnostics.iter().filter(|diagnostic| diagnostic.code == codes::LITERAL_SECRET);
        for location in secrets.filter_map(|diagnostic| diagnostic.location.as_ref()) {
            if let Some(lines) = sources.get_mut(&location.file) {
                mask(lines, location);
            }
        }
        Self(sources)
    }

    /// The lines from the first to the last mark; `None`: a mark is outside the file.
    fn excerpt(&self, file: &str, marks: &[SourceMark<'_>]) -> Option<SourceExcerpt> {
        let lines = self.0.get(file)?;
        let first = marks.iter().map(|mark| mark.location.start.line).min()? as usize;
        let last = marks.iter().map(|mark| mark.location.start.line).max()? as usize;
        let shown = lines.get(first.checked_sub(1)?..last)?;
        if shown.iter().any(|line| line.len() > MAX_LINE_BYTES) {
            return None;
        }
        let mut starts = Vec::with_capacity(shown.len());
        let mut text = String::new();
        for line in shown {
            starts.push(text.len());
            text.push_str(line);
            text.push('\n');
        }
        let span = |mark: &SourceMark<'_>| {
            let index = mark.location.start.line as usize - first;
            Some(shift_span(*starts.get(index)?, span_in(shown.get(index)?, mark.location)))
        };
        let spans = marks.iter().map(span).collect::<Option<Vec<_>>>()?;
        Some(SourceExcerpt { text, line: first, spans })
    }
}

fn shift_span(by: usize, span: Range<usize>) -> Range<usize> {
    span.start + by..span.end + by
}

/// The bytes of a line that a location covers; to its end when the location continues.
fn span_in(line: &str, location: &Location) -> Range<usize> {
    let byte = |column: u32| {
        let column = (column as usize).saturating_sub(1);
        line.char_indices().nth(column).map_or(line.len(), |(index, _)| index)
    };
    let start = byte(location.start.column);
    let end = match location.end {
        Some(end) if end.line == location.start.line => byte(end.column),
        Some(end) if end.line > location.start.line => line.trim_end().len(),
        _ => byte(location.start.column.saturating_add(1)),
    };
    start..end.max(start)
}

fn mask(lines: &mut [String], location: &Location) {
    let (start, end) = (location.start, location.end.unwrap_or(location.start));
    for (number, line) in (1_u32..).zip(lines) {
        if number < start.line || number > end.line {
            continue;
        }
        let covered = |column: u32| {
            (number > start.line || column >= start.column) && (number < end.line || column < end.column)
        };
        let masked = (1_u32..)
            .zip(line.chars())
            .map(|(column, letter)| if covered(column) && !letter.is_whitespace() { '*' } else { letter });
        *line = masked.collect();
    }
}

/// `3 errors and 1 warning in 2 files`.
fn count_text(diagnostics: &[Diagnostic]) -> String {
    let plural = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let found = match (errors, warnings) {
        (errors, 0) => plural(errors, "error"),
        (0, warnings) => plural(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", plural(errors, "error"), plural(warnings, "warning")),
    };
    let files: BTreeSet<&str> = diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic.location.as_ref())
        .map(|location| location.file.as_str())
        .collect();
    if files.is_empty() { found } else { format!("{found} in {}", plural(files.len(), "file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DiagnosticScope;

    fn at(file: &str, from: (u32, u32), to: (u32, u32)) -> Location {
        let end = Some(TextPosition { line: to.0, column: to.1 });
        Location { end, ..Location::new(file, from.0, from.1) }
    }

    fn check(diagnostics: &[Diagnostic], expected: &str) {
        let source = |file: &str| match file {
            "a.yaml" => Some("\u{feff}é: 1\nb:\n  c: tok en\nb: 2\n".to_owned()),
            _ => None,
        };
        let text = render(diagnostics, source, false);
        assert_eq!(text, expected, "{text}");
    }

    fn error(code: &'static str, message: &str) -> Diagnostic {
        Diagnostic::error(code, message, DiagnosticScope::Instance)
    }

    #[test]
    fn marked_source_in_order_with_a_count() {
        let diagnostics = [
            Diagnostic::warning("E2001", "odd", DiagnosticScope::Instance),
            error("E1104", "the key `b` is given twice")
                .at(at("a.yaml", (4, 1), (4, 2)))
                .related(at("a.yaml", (2, 1), (2, 2)), "here first")
                .help("keep one of them"),
            error("E1203", "wrong").at(at("a.yaml", (1, 4), (1, 5))).in_path("é"),
            error("E1101", "gone").at(Location::new("b.yaml", 7, 3)),
        ];
        check(
            &diagnostics,
            "\
error[E1203]: wrong
 --> a.yaml:1:4
  |
1 | é: 1
  |    ^ é

error[E1104]: the key `b` is given twice
 --> a.yaml:4:1
  |
2 | b:
  | - here first
3 |   c: tok en
4 | b: 2
  | ^
  |
  = help: keep one of them

error[E1101]: gone
--> b.yaml:7:3

warning[E2001]: odd

3 errors and 1 warning in 2 files
",
        );
        check(&[], "");
    }

    #[test]
    fn secrets_are_masked_in_every_excerpt() {
        let secret = error(codes::LITERAL_SECRET, "a value").at(at("a.yaml", (3, 6), (3, 12)));
        let text = render(
            &[secret, error("E1", "x").at(at("a.yaml", (2, 1), (4, 2)))],
            |_| Some("a\nb\n  c: tok en\n".to_owned()),
            false,
        );
        assert!(text.contains("c: *** **") && !text.contains("tok"), "{text}");
    }

    #[test]
    fn places_far_apart_have_blocks_of_their_own() {
        let mistake = error("E1", "x")
            .at(at("a.yaml", (200, 1), (200, 2)))
            .related(at("a.yaml", (2, 1), (2, 2)), "first");
        let text = render(&[mistake], |_| Some("a\n".repeat(300)), false);
        assert!(text.contains(" --> a.yaml:200:1") && text.contains("::: a.yaml:2:1"), "{text}");
    }

    #[test]
    fn places_outside_the_file_do_not_panic() {
        for (from, to) in
            [((0, 0), (0, 0)), ((99, 1), (99, 2)), ((1, 99), (1, 100)), ((4, 4), (1, 1)), ((5, 1), (5, 1))]
        {
            let text = render(
                &[error("E1", "x").at(at("a.yaml", from, to))],
                |_| Some("a: 1\nb\nc\n日本".to_owned()),
                true,
            );
            assert!(text.contains('x'), "{text}");
        }
    }
}
