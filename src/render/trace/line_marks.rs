//! Finds the template line of each part of an output.
//!
//! Marks with template and line are put into the template, before the first character of each line and before each
//! expression. They are read from the output and removed. Marks stand only where text stands, so that trimming of blanks does
//! not change.

use crate::model::TextPosition;

/// Begin and end of a mark: private-use characters, which Kubernetes objects do not contain.
const BEGIN: char = '\u{F8A0}';
const END: char = '\u{F8A1}';
/// Characters between them: two numbers.
const LONGEST_MARK: usize = 48;

pub fn instrument(text: &str, template: usize) -> String {
    let mut marked = String::with_capacity(text.len() * 2);
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let (before, tag) = rest.split_at(tag_start(rest));
        mark_lines(before, template, &mut line, &mut marked);
        let end = tag_end(tag);
        let (tag, after) = tag.split_at(end);
        if let Some(inner) = tag.strip_prefix("{{") {
            // The sign that trims blanks moves to the mark.
            let (sign, inner) = match inner.chars().next() {
                Some(sign @ ('-' | '+')) => (sign.to_string(), &inner[1..]),
                _ => (String::new(), inner),
            };
            let mark = format!("{BEGIN}{template}:{line}{END}");
            marked.push_str(&format!("{{{{{sign} \"{mark}\" }}}}{{{{{inner}"));
        } else {
            marked.push_str(tag);
        }
        line += tag.matches('\n').count();
        rest = after;
        if is_raw(tag) {
            let end = end_of_raw(rest);
            let (raw, after) = rest.split_at(end);
            mark_lines(raw, template, &mut line, &mut marked);
            rest = after;
        }
    }
    marked
}

/// Copies text, with a mark before the first character of each line.
fn mark_lines(text: &str, template: usize, line: &mut usize, marked: &mut String) {
    for (index, part) in text.split('\n').enumerate() {
        if index > 0 {
            marked.push('\n');
            *line += 1;
        }
        let letters = part.trim_start();
        marked.push_str(&part[..part.len() - letters.len()]);
        // `---` stays a line of its own for YAML.
        if !letters.is_empty() {
            marked.push_str(&format!("{BEGIN}{template}:{line}{END}"));
        }
        marked.push_str(letters);
    }
}

/// Where the next tag or comment begins; the length of the text where none does.
pub fn tag_start(text: &str) -> usize {
    let is_tag = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(is_tag).unwrap_or(text.len())
}

/// The length of the tag at the start; 0 without one.
pub fn tag_end(text: &str) -> usize {
    let Some(kind) = text.get(..2) else { return text.len() };
    let close = match kind {
        "{{" => "}}",
        "{%" => "%}",
        _ => return text.find("#}").map_or(text.len(), |end| end + 2),
    };
    let (mut depth, mut quote) = (0_usize, None);
    let mut letters = text.char_indices().skip(2);
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, _) if depth == 0 && text[at..].starts_with(close) => return at + 2,
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    text.len()
}

pub fn is_raw(tag: &str) -> bool {
    let inner = tag.strip_prefix("{%").and_then(|tag| tag.strip_suffix("%}")).unwrap_or("");
    inner.trim_matches(['-', '+']).trim() == "raw"
}

/// The start of the `endraw` tag.
pub fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let tag = &text[from + at..];
        let inner = tag[2..].trim_start_matches(['-', '+']).trim_start();
        if inner.starts_with("endraw") {
            return from + at;
        }
        from += at + 2;
    }
    text.len()
}

/// Text from here to the next mark comes from this template line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateMark {
    pub at: TextPosition,
    pub template: usize,
    pub line: u32,
}

/// Removes the marks and returns their positions in the remaining text.
pub fn strip(text: &str) -> (String, Vec<TemplateMark>) {
    let mut clean = String::with_capacity(text.len());
    let mut marks = Vec::new();
    let mut at = TextPosition { line: 1, column: 1 };
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some((template, line, after)) = read(rest) {
            marks.push(TemplateMark { at, template, line });
            rest = after;
            continue;
        }
        clean.push(letter);
        if letter == '\n' {
            at = TextPosition { line: at.line + 1, column: 1 };
        } else {
            at.column += 1;
        }
        rest = &rest[letter.len_utf8()..];
    }
    (clean, marks)
}

fn read(text: &str) -> Option<(usize, u32, &str)> {
    let rest = text.strip_prefix(BEGIN)?;
    // A template may write these characters itself, so the search is bounded.
    let (end, _) = rest.char_indices().take(LONGEST_MARK).find(|(_, letter)| *letter == END)?;
    let (mark, after) = rest.split_at(end);
    let (template, line) = mark.split_once(':')?;
    Some((template.parse().ok()?, line.parse().ok()?, after.strip_prefix(END)?))
}

/// The text without marks, for filters that read it.
pub fn without_marks(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(BEGIN) { strip(text).0.into() } else { text.into() }
}

/// The last mark at or before a position.
pub fn mark_at(marks: &[TemplateMark], position: TextPosition) -> Option<&TemplateMark> {
    marks[..marks.partition_point(|mark| mark.at <= position)].last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, expected: &str) {
        let shown = instrument(template, 3).replace(BEGIN, "<").replace(END, ">");
        assert_eq!(shown, expected);
    }

    #[test]
    fn text_and_expressions_get_marks() {
        check("a: 1\n  b: 2\n", "<3:1>a: 1\n  <3:2>b: 2\n");
        check("  {{- x -}}\n y", "  {{- \"<3:1>\" }}{{ x -}}\n <3:2>y");
        check(
            "{# {{ no }} #}\n{% if a == \"%}\" %}b{% endif %}",
            "{# {{ no }} #}\n{% if a == \"%}\" %}<3:2>b{% endif %}",
        );
        check("{{ {\"a\": {\"b\": 1}} }}c", "{{ \"<3:1>\" }}{{ {\"a\": {\"b\": 1}} }}<3:1>c");
        check(
            "{% raw %}{{ a }}\n{% endraw %}{{ b }}",
            "{% raw %}<3:1>{{ a }}\n{% endraw %}{{ \"<3:2>\" }}{{ b }}",
        );
        check("{{ unfinished", "{{ \"<3:1>\" }}{{ unfinished");
    }

    #[test]
    fn marks_are_read_and_stripped() {
        let (text, marks) = strip(&instrument("a: 1\n  b: 2", 0));
        assert_eq!(text, "a: 1\n  b: 2");
        let line = |line, column| mark_at(&marks, TextPosition { line, column }).map(|mark| mark.line);
        assert_eq!((line(1, 1), line(2, 3), line(2, 6)), (Some(1), Some(2), Some(2)));
        assert_eq!(line(2, 1), Some(1), "blanks belong to nothing");
    }
}
