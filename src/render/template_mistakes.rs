//! Turns template errors into diagnostics with position and help.

use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use super::engine::InvalidTemplate;
use super::render_job::RenderJob;
use super::template_error::{TemplateError, TemplateFault};
use super::{codes, engine};
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, Location, NO_WORKER_HELP, RenderFailureCause, TextPosition};

pub fn invalid_template(job: &RenderJob<'_>, unread: &InvalidTemplate) -> Diagnostic {
    match unread {
        InvalidTemplate::Mistake(error) => template_mistake(job, error, &|| Value::Null),
        InvalidTemplate::GivenUp { file } => job
            .error(codes::SYNTAX, format!("{file} is not a template"))
            .at(Location::new(file, 1, 1))
            .help("look for an assignment (`set`, `with`, `for`, `import … as`) with more than a name on its left"),
        InvalidTemplate::TooDeep { file, line } => job
            .error(codes::SYNTAX, format!("{file} has an expression that is too long, or too many `elif`"))
            .at(Location::new(file, u32::try_from(*line).unwrap_or(u32::MAX), 1))
            .help("split it with `set`, so that a tag has fewer than 400 operators"),
    }
}

/// For an undefined variable, names it and the most similar one.
pub fn template_mistake(
    job: &RenderJob<'_>,
    error: &TemplateError,
    context: &dyn Fn() -> Value,
) -> Diagnostic {
    let file = error.file.as_deref().unwrap_or("(template)");
    let location = location(error, file);
    let detail = &error.detail;
    let of = |code, message: String| job.error(code, message).at(location.clone());
    match &error.fault {
        TemplateFault::Syntax => of(codes::SYNTAX, format!("{file} is not a template: {detail}")),
        TemplateFault::Undefined => match undefined_variable(error, &context()) {
            Some((variable, help)) => {
                of(codes::UNDEFINED, format!("{variable} is undefined in {file}")).help(help)
            }
            None => {
                let what = expression(error).unwrap_or("a variable");
                of(codes::UNDEFINED, format!("{what} is undefined in {file}"))
            }
        },
        TemplateFault::Steps => of(codes::FUEL, format!("{file} takes more than {} steps", engine::FUEL))
            .help("look for a loop over too many items, or for a loop within a loop"),
        TemplateFault::Size => of(codes::SIZE, format!("{file} makes more than 16 MiB of text"))
            .help("look for a text that is put into itself in a loop"),
        TemplateFault::NotFound if detail.contains(engine::PARENT) => of(
            codes::NO_TEMPLATE,
            format!("{file} extends its parent, and no lower layer has a file of its name"),
        ),
        TemplateFault::NotFound => of(codes::NO_TEMPLATE, format!("{file}: {detail}")).help(
            "templates see the files of their layers only, by file name; a part of a template is named _*.j2",
        ),
        TemplateFault::Other(kind) => {
            let detail = if detail.is_empty() { kind.clone() } else { format!("{kind}: {detail}") };
            of(codes::TEMPLATE, format!("{file}: {detail}"))
        }
    }
}

/// The time slice ended: the target gets a longer one later.
pub fn awaited_render(job: &RenderJob<'_>) -> Diagnostic {
    job.time_slice.record_cut_off();
    job.error(codes::AWAITED, format!("{} is being rendered", job.target)).at(job.app.location.clone())
}

/// Templates ended their worker, at a line if it is known. `limit`: the time that they may take.
pub fn worker_end(
    job: &RenderJob<'_>,
    cause: &RenderFailureCause,
    limit: Duration,
    file: &str,
    line: u32,
) -> Diagnostic {
    let of = |code, message: String| job.error(code, message).at(Location::new(file, line, 1));
    match cause {
        RenderFailureCause::Postponed => awaited_render(job),
        RenderFailureCause::Time => {
            let limit = limit.as_secs_f64();
            let target = &job.target;
            of(
                codes::TIME,
                format!("{file} takes longer than the {limit} s of processor time that {target} may take"),
            )
            .help("look for a loop over too many items, or for a filter on a long text within a loop")
        }
        RenderFailureCause::Memory(limit) => {
            of(codes::MEMORY, format!("{file} takes more than {} MiB of memory", limit / 1024 / 1024))
                .help("look for a text or a list that is put into itself in a loop")
        }
        RenderFailureCause::Stack => of(codes::STACK, format!("{file} is nested too deeply"))
            .help("look for a list or a map that is put into itself in a loop"),
        RenderFailureCause::Output(limit) => {
            let message =
                format!("the templates of {} make more than {} MiB of text", job.target, limit / 1024 / 1024);
            of(codes::SIZE, message).help("look for a text that is put into itself in a loop")
        }
        RenderFailureCause::Crash(words) => {
            of(codes::WORKER, format!("{file} crashes the process that renders it: {words}"))
                .help("this is a bug of the template engine: write this line differently, and report the bug")
        }
        RenderFailureCause::NoWorker(error) => {
            of(codes::WORKER, format!("failed to render {file}: no worker process starts: {error}"))
                .help(NO_WORKER_HELP)
        }
    }
}

fn location(error: &TemplateError, file: &str) -> Location {
    let line = error.line.unwrap_or(1);
    let (Some(range), Some(text)) = (range(error), error.text.as_deref()) else {
        return Location::new(file, line, 1);
    };
    let (Some(start), Some(end)) = (position(text, range.start), position(text, range.end)) else {
        return Location::new(file, line, 1);
    };
    Location { file: file.to_owned(), start, end: (end > start).then_some(end) }
}

fn position(text: &str, offset: usize) -> Option<TextPosition> {
    let before = text.get(..offset)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    Some(TextPosition { line: u32::try_from(line).ok()?, column: u32::try_from(column).ok()? })
}

fn expression(error: &TemplateError) -> Option<&str> {
    error.text.as_deref()?.get(range(error)?)
}

/// The range of the engine may begin within a dotted name; this one begins with the name.
fn range(error: &TemplateError) -> Option<Range<usize>> {
    let range = error.range.clone()?;
    let before = error.text.as_deref()?.get(..range.start)?;
    let name = before.trim_end_matches(is_name_part);
    Some(name.len()..range.end)
}

fn is_name_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

/// The first undefined dotted name, up to its undefined part, with a suggestion. The range of a filter error spans only the
/// filter, so the whole tag is searched as well.
fn undefined_variable(error: &TemplateError, context: &Value) -> Option<(String, String)> {
    let (text, range) = (error.text.as_deref()?, range(error)?);
    let before = text.get(..range.start)?;
    let tag = before.rfind("{{").max(before.rfind("{%")).unwrap_or(range.start);
    let of = |part: &str| {
        variable_names(part)
            .into_iter()
            .take(MOST_NAMES)
            .find_map(|name| first_undefined_part(name, text, context))
    };
    let of_range = if before.trim_end().ends_with('|') { None } else { of(text.get(range.clone())?) };
    of_range.or_else(|| of(text.get(tag..range.end)?))
}

/// Names checked in one tag: each may search the whole text.
const MOST_NAMES: usize = 100;

/// The dotted names of values in an expression: no quoted text, filters, tests, functions or keywords.
fn variable_names(expression: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut rest, mut after_value) = (expression, false);
    while let Some(letter) = rest.chars().next() {
        let end = if letter == '"' || letter == '\'' {
            rest[1..].find(letter).map_or(rest.len(), |end| end + 2)
        } else if is_name_part(letter) {
            rest.find(|letter| !is_name_part(letter)).unwrap_or(rest.len())
        } else {
            letter.len_utf8()
        };
        let (word, next) = rest.split_at(end);
        let is_name = letter.is_alphabetic() && !KEYWORDS.contains(&word) && !next.starts_with(['(', '=']);
        if is_name && !after_value {
            found.push(word);
        }
        if !letter.is_whitespace() {
            after_value = letter == '|' || word == "is";
        }
        rest = next;
    }
    found
}

/// Keywords and constants.
const KEYWORDS: &[&str] = &[
    "and", "block", "call", "elif", "else", "extends", "false", "filter", "for", "from", "if", "import",
    "in", "include", "is", "loop", "macro", "none", "not", "null", "or", "parent", "set", "true", "with",
];

/// Whether a template defines the variable itself: a loop, `set`, `with`, a macro or an import.
fn is_local(name: &str, text: &str) -> bool {
    let tags = text.split("{%").skip(1).map(|tag| tag.split("%}").next().unwrap_or(tag));
    let mut words =
        tags.map(|tag| tag.split(|letter: char| !is_name_part(letter)).filter(|word| !word.is_empty()));
    words.any(|mut words| {
        let makes = words
            .next()
            .is_some_and(|first| ["for", "set", "with", "macro", "call", "import", "from"].contains(&first));
        makes && words.any(|word| word == name)
    })
}

fn first_undefined_part(name: &str, text: &str, context: &Value) -> Option<(String, String)> {
    let mut reached = context;
    let mut path: Vec<&str> = Vec::new();
    for part in name.split('.').filter(|part| !part.is_empty()) {
        path.push(part);
        let Some(map) = reached.as_object() else { break };
        let Some(next) = map.get(part) else {
            if path.len() == 1 && is_local(part, text) {
                return None;
            }
            let known: Vec<&str> = map.keys().map(String::as_str).collect();
            let help = if known.is_empty() {
                "there is no value of that kind".to_owned()
            } else {
                suggest(part, &known, &known)
            };
            return Some((path.join("."), help));
        };
        reached = next;
    }
    None
}
