//! What a template did wrong, and where.

use std::error::Error as _;

use minijinja::{Error, ErrorKind};
use serde_json::Value;

use super::{Job, codes, engine};
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, Location, Position};

/// The mistake of a template, with the variable's name and the nearest valid one where that is known.
pub fn of_template(job: &Job<'_>, error: &Error, context: &Value) -> Diagnostic {
    let error = innermost(error);
    let file = error.name().unwrap_or("(template)").to_owned();
    let location = location(error, &file);
    let expression = expression(error);
    let detail = error.detail().unwrap_or("").to_owned();
    let of = |code, message: String| job.error(code, message).at(location.clone());
    match error.kind() {
        ErrorKind::SyntaxError => of(codes::SYNTAX, format!("{file} is not a template: {detail}")),
        ErrorKind::UndefinedError => match expression.and_then(|text| undefined(text, context)) {
            Some((variable, help)) => {
                of(codes::UNDEFINED, format!("{variable} is undefined in {file}")).help(help)
            }
            None => {
                of(codes::UNDEFINED, format!("{} is undefined in {file}", expression.unwrap_or("a variable")))
            }
        },
        ErrorKind::OutOfFuel => of(codes::FUEL, format!("{file} takes more than {} steps", engine::FUEL))
            .help("look for a loop over too much, or within another"),
        ErrorKind::TemplateNotFound if detail.contains(engine::PARENT) => of(
            codes::NO_TEMPLATE,
            format!("{file} extends its parent, and no lower layer has a file of its name"),
        ),
        ErrorKind::TemplateNotFound => of(codes::NO_TEMPLATE, format!("{file}: {detail}")).help(
            "templates see the files of their layers only, by file name; a part of a template is named _*.j2",
        ),
        kind => {
            let detail = if detail.is_empty() { kind.to_string() } else { format!("{kind}: {detail}") };
            of(codes::TEMPLATE, format!("{file}: {detail}"))
        }
    }
}

/// The engine wraps a mistake in an include or a block; the cause is the innermost.
fn innermost(error: &Error) -> &Error {
    let mut innermost = error;
    while let Some(cause) = innermost.source().and_then(|cause| cause.downcast_ref::<Error>()) {
        innermost = cause;
    }
    innermost
}

fn location(error: &Error, file: &str) -> Location {
    let line = error.line().and_then(|line| u32::try_from(line).ok()).unwrap_or(1);
    let (Some(range), Some(text)) = (error.range(), error.template_source()) else {
        return Location::new(file, line, 1);
    };
    let (Some(start), Some(end)) = (position(text, range.start), position(text, range.end)) else {
        return Location::new(file, line, 1);
    };
    Location { file: file.to_owned(), start, end: (end > start).then_some(end) }
}

fn position(text: &str, offset: usize) -> Option<Position> {
    let before = text.get(..offset)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    Some(Position { line: u32::try_from(line).ok()?, column: u32::try_from(column).ok()? })
}

fn expression(error: &Error) -> Option<&str> {
    error.template_source()?.get(error.range()?)
}

/// The first dotted name of an expression that leads nowhere, up to where it is lost, and what is there
/// instead.
fn undefined(expression: &str, context: &Value) -> Option<(String, String)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let names = expression.split(|letter: char| !is_part(letter));
    names
        .filter(|name| name.starts_with(|letter: char| letter.is_alphabetic()))
        .find_map(|name| lost(name, context))
}

fn lost(name: &str, context: &Value) -> Option<(String, String)> {
    let mut reached = context;
    let mut path: Vec<&str> = Vec::new();
    for part in name.split('.').filter(|part| !part.is_empty()) {
        path.push(part);
        let Some(map) = reached.as_object() else { break };
        let Some(next) = map.get(part) else {
            let known: Vec<&str> = map.keys().map(String::as_str).collect();
            return Some((path.join("."), suggest(part, &known, &known)));
        };
        reached = next;
    }
    None
}
