//! Width of the terminal, and lines wrapped to it.

use console::Term;

use super::output::say;

const DEFAULT_COLUMNS: usize = 120;

/// Columns from `COLUMNS`, else the terminal, else 120.
pub fn terminal_columns() -> usize {
    detected_columns().unwrap_or(DEFAULT_COLUMNS)
}

/// The same without the default; `None` for files and pipes.
pub fn detected_columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || {
        let term = Term::stdout();
        let size = if term.is_term() { term.size_checked() } else { None };
        size.map(|(_, columns)| usize::from(columns))
    };
    said.filter(|columns| *columns > 0).or_else(of_terminal)
}

/// Writes a line; on a terminal it is wrapped with an indent.
pub fn say_wrapped(text: &str) {
    match detected_columns() {
        Some(width) => wrap(text, width).iter().for_each(|line| say!("{line}")),
        None => say!("{text}"),
    }
}

/// Wraps between words; longer words are split.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent = text.chars().take_while(|it| *it == ' ').count() + 4;
    // On a narrow terminal the terminal wraps.
    if width < indent + 20 {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > width {
        let is_break = |at: &usize| rest[*at] == ' ';
        let at = (indent + 1..=width).rev().find(is_break).unwrap_or(width);
        let line: String = rest[..at].iter().collect();
        lines.push(line.trim_end().to_owned());
        let next = rest[at..].iter().skip_while(|it| **it == ' ');
        rest = std::iter::repeat_n(&' ', indent).chain(next).copied().collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// The first names, and the number of others.
pub fn first_names(names: &[String], most: usize) -> String {
    match names.len().saturating_sub(most) {
        // A single name is as short as its count.
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..most].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words() {
        let check = |text: &str, width: usize, expected: &[&str]| assert_eq!(wrap(text, width), expected);
        check("short", 40, &["short"]);
        check(
            "  c1: waits for wave test, 0/1 done, c1: no image",
            30,
            &["  c1: waits for wave test, 0/1", "      done, c1: no image"],
        );
        let long = "x".repeat(50);
        check(&long, 40, &[&"x".repeat(40), &format!("    {}", "x".repeat(10))]);
        check("too narrow to be broken at all", 10, &["too narrow to be broken at all"]);
    }

    #[test]
    fn many_names_are_counted() {
        let names: Vec<String> = (1..=5).map(|number| format!("c{number}")).collect();
        assert_eq!(first_names(&names, 3), "c1, c2, c3 and 2 more");
        assert_eq!(first_names(&names, 4), "c1, c2, c3, c4, c5");
    }
}
