//! Lines that are wrapped to the width of the terminal.

use super::output::say;
use super::width::detected_columns;

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
}
