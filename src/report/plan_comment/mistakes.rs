//! Errors and warnings of the comment.

use super::super::merged;
use super::super::words::count;
use super::text::{code, escaped, html, within};
use crate::compare::Comparison;
use crate::model::{AppId, Diagnostic};

/// The most of each kind, and the bytes for them.
const MOST: usize = 25;
const ERRORS: usize = 10_000;
const OTHERS: usize = 3_000;
const LONGEST: usize = 400;
const LONGEST_HELP: usize = 200;

pub fn errors(plan: &Comparison) -> String {
    let (lines, number) = lines(plan, &plan.errors, ERRORS);
    if number == 0 {
        return String::new();
    }
    format!("#### {}\n{lines}", count(number, "error"))
}

pub fn known(plan: &Comparison, base: &str) -> String {
    fold(plan, &plan.known_errors, &|number| {
        format!("{} that {} has too", count(number, "error"), html(base, 120))
    })
}

pub fn warnings(plan: &Comparison) -> String {
    fold(plan, &plan.warnings, &|number| count(number, "warning"))
}

fn fold(plan: &Comparison, mistakes: &[Diagnostic], title: &dyn Fn(usize) -> String) -> String {
    let (lines, number) = lines(plan, mistakes, OTHERS);
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
    let all = merged(mistakes, placed);
    let (mut lines, _) = within(all.iter().take(MOST).map(line), bytes);
    if all.len() > lines.len() {
        lines.push(format!("- and {} more", all.len() - lines.len()));
    }
    (lines.join("\n"), all.len())
}

fn line(mistake: &Diagnostic) -> String {
    let at = mistake.location.as_ref().map(|location| format!(" at {}", code(&location.to_string(), 200)));
    let help = mistake.help.as_ref().map(|help| format!("\n  help: {}", escaped(help, LONGEST_HELP)));
    let message = escaped(&mistake.message, LONGEST);
    format!("- `{}` {message}{}{}", mistake.code, at.unwrap_or_default(), help.unwrap_or_default())
}
