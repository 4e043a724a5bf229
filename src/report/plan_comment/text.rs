//! Escapes foreign texts for Markdown.

use crate::model::{ClusterName, short_line, visible_line};

/// The most clusters that are named; the others are counted.
const MAX_NAMED_CLUSTERS: usize = 6;
/// Of a line in a fence, in characters.
const LONGEST_LINE: usize = 300;
/// Of a name, and of a name in a long list, in characters.
pub const MAX_NAME_CHARS: usize = 120;
pub const MAX_SHORT_NAME_CHARS: usize = 48;

/// One line without mentions, links, HTML or Markdown.
pub fn escaped(text: &str, limit: usize) -> String {
    let mut made = String::new();
    for letter in short_line(text, limit).chars() {
        match letter {
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '&' => made.push_str("&amp;"),
            '@' => made.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' | '|' | '$' => made.extend(['\\', letter]),
            // Breaks the automatic link of an address.
            '/' if made.ends_with(":/") => made.push_str("&#47;"),
            letter => made.push(letter),
        }
    }
    made
}

/// A code span, unless the text would end one.
pub fn code_span(text: &str, limit: usize) -> String {
    let line = short_line(text, limit);
    if line.is_empty() || line.contains(['`', '@', '|', '\\']) {
        return escaped(&line, limit);
    }
    format!("`{line}`")
}

/// For the summary of a collapsed section, which is HTML.
pub fn escaped_html(text: &str, limit: usize) -> String {
    let mut made = String::new();
    for letter in short_line(text, limit).chars() {
        match letter {
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '&' => made.push_str("&amp;"),
            '"' => made.push_str("&quot;"),
            '@' => made.push_str("&#64;"),
            '#' => made.push_str("&#35;"),
            '`' => made.push_str("&#96;"),
            '[' => made.push_str("&#91;"),
            ']' => made.push_str("&#93;"),
            letter => made.push(letter),
        }
    }
    made
}

/// A fence that is longer than any run of backticks in its lines.
pub fn fenced(language: &str, lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| visible_line(line, LONGEST_LINE)).collect();
    let longest = lines.iter().map(|line| longest_run(line, '`')).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

fn longest_run(line: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for letter in line.chars() {
        run = if letter == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// `bj1, bj2 and 3 more`, each in the form of `shown`.
pub fn join_clusters(clusters: &[ClusterName], shown: impl Fn(&str) -> String) -> String {
    let names: Vec<String> =
        clusters.iter().take(MAX_NAMED_CLUSTERS).map(|name| shown(name.as_str())).collect();
    match clusters.len().saturating_sub(MAX_NAMED_CLUSTERS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

pub fn bold(text: &str) -> String {
    format!("**{}**", escaped(text, MAX_SHORT_NAME_CHARS))
}

/// The first lines that fit into the bytes, and the number of the others.
pub fn take_within(lines: impl IntoIterator<Item = String>, bytes: usize) -> (Vec<String>, usize) {
    let (mut kept, mut size, mut left) = (Vec::new(), 0, 0);
    for line in lines {
        size += line.len() + 1;
        if size > bytes {
            left += 1;
        } else {
            kept.push(line);
        }
    }
    (kept, left)
}
