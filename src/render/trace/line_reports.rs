//! Makes each tag report its line before it runs. The last report shows where a render ended its process.

use super::line_marks::{end_of_raw, is_raw, tag_end, tag_start};

/// The function that tags call with template number and line. It returns an empty text.
pub const REPORT_FUNCTION: &str = "tutti_line";

/// Tags that end or divide a block: no call may stand before some of them, and their block already reported.
const DIVIDING_TAGS: [&str; 3] = ["end", "elif", "else"];

pub fn instrument(text: &str, template: usize) -> String {
    let mut made = String::with_capacity(text.len() * 2);
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let (before, tag) = rest.split_at(tag_start(rest));
        made.push_str(before);
        line += before.matches('\n').count();
        let (tag, after) = tag.split_at(tag_end(tag));
        if is_reporting_tag(tag) {
            // The sign that trims blanks must stand before the report too.
            let sign = if tag[2..].starts_with('-') { "-" } else { "" };
            made.push_str(&format!("{{{{{sign} {REPORT_FUNCTION}({template}, {line}) }}}}"));
        }
        made.push_str(tag);
        line += tag.matches('\n').count();
        rest = after;
        if is_raw(tag) {
            let (raw, after) = rest.split_at(end_of_raw(rest));
            made.push_str(raw);
            line += raw.matches('\n').count();
            rest = after;
        }
    }
    made
}

fn is_reporting_tag(tag: &str) -> bool {
    let word = tag.get(2..).unwrap_or("").trim_start_matches(['-', '+']).trim_start();
    tag.starts_with("{{")
        || (tag.starts_with("{%") && !DIVIDING_TAGS.iter().any(|part| word.starts_with(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_report_line_before_execution() {
        fn check(template: &str, expected: &str) {
            assert_eq!(instrument(template, 3).replace(REPORT_FUNCTION, "at"), expected);
        }
        check("a: {{ x }}\nb:\n  {{- y }}", "a: {{ at(3, 1) }}{{ x }}\nb:\n  {{- at(3, 3) }}{{- y }}");
        check(
            "{% if a %}\n{%- else -%}\n{% set b = '%}\n' %}{{ b }}{% endif %}",
            "{{ at(3, 1) }}{% if a %}\n{%- else -%}\n{{ at(3, 3) }}{% set b = '%}\n' %}{{ at(3, 4) }}{{ b }}{% endif %}",
        );
        check(
            "{# {{ a }} #}{% raw %}{{ a }}\n{% endraw %}{{",
            "{# {{ a }} #}{{ at(3, 1) }}{% raw %}{{ a }}\n{% endraw %}{{ at(3, 2) }}{{",
        );
    }
}
