//! Errors and warnings of the comment.

use super::super::merge_diagnostics;
use super::super::status_text::count_noun;
use super::text::{code_span, escaped, escaped_html, take_within};
use crate::compare::Comparison;
use crate::model::{AppId, Diagnostic};

/// The most of each kind, and the bytes for them.
const MAX_PER_KIND: usize = 25;
const MAX_ERRORS_BYTES: usize = 10_000;
const MAX_OTHERS_BYTES: usize = 3_000;
const MAX_MESSAGE_CHARS: usize = 400;
const MAX_HELP_CHARS: usize = 200;

pub fn errors(plan: &Comparison) -> String {
    let (lines, number) = lines(plan, &plan.errors, MAX_ERRORS_BYTES);
    if number == 0 {
        return String::new();
    }
    format!("#### {}\n{lines}", count_noun(number, "error"))
}

pub fn existing_errors(plan: &Comparison, base: &str) -> String {
    collapsed_section(plan, &plan.known_errors, &|number| {
        format!("{} that {} has too", count_noun(number, "error"), escaped_html(base, 120))
    })
}

pub fn warnings(plan: &Comparison) -> String {
    collapsed_section(plan, &plan.warnings, &|number| count_noun(number, "warning"))
}

fn collapsed_section(plan: &Comparison, mistakes: &[Diagnostic], title: &dyn Fn(usize) -> String) -> String {
    let (lines, number) = lines(plan, mistakes, MAX_OTHERS_BYTES);
    if number == 0 {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n\n{lines}\n\n</details>", title(number))
}

/// The lines, and the number of those that were left out.
fn lines(plan: &Comparison, mistakes: &[Diagnostic], bytes: usize) -> (String, usize) {
    let placed = |id: &AppId| {
        let app = plan.apps.iter().find(|app| app.app == *id);
        app.map_or(0, |it| it.on.len() + it.unchanged.len() + it.broken.len() + it.mended.len())
    };
    let all = merge_diagnostics(mistakes, placed);
    let (mut lines, _) = take_within(all.iter().take(MAX_PER_KIND).map(line), bytes);
    if all.len() > lines.len() {
        lines.push(format!("- and {} more", all.len() - lines.len()));
    }
    (lines.join("\n"), all.len())
}

fn line(mistake: &Diagnostic) -> String {
    let at =
        mistake.location.as_ref().map(|location| format!(" at {}", code_span(&location.to_string(), 200)));
    let help = mistake.help.as_ref().map(|help| format!("\n  help: {}", escaped(help, MAX_HELP_CHARS)));
    let message = escaped(&mistake.message, MAX_MESSAGE_CHARS);
    format!("- `{}` {message}{}{}", mistake.code, at.unwrap_or_default(), help.unwrap_or_default())
}
