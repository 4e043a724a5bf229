//! Runs layered templates with minijinja: strict about undefined variables, within bounds, without access to the outside.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cluster_facts;
use super::layer_source::LayerSource;
use super::output_limits;
use super::template_depth::first_too_deep_line;
use super::template_error::TemplateError;
use super::trace::{line_marks, line_reports};

/// The value of `parent` in `extends parent`; no file has this name.
pub const PARENT: &str = "(parent)";
/// Steps of one template. Shipped templates take some hundreds.
pub const FUEL: u64 = 1_000_000;
/// Includes, macros and blocks within each other.
const DEEPEST_INCLUDES: usize = 64;

/// Filters that accept an undefined variable.
const LENIENT_FILTERS: [&str; 6] = ["chain", "e", "escape", "groupby", "pprint", "zip"];

/// A template that the engine cannot load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum InvalidTemplate {
    Mistake(TemplateError),
    /// The engine panicked on it.
    GivenUp {
        file: String,
    },
    /// The engine would overflow the stack.
    TooDeep {
        file: String,
        line: usize,
    },
}

/// Instrumentation of templates. Each template has a number among all templates of one render.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateMode {
    /// Adds marks to the text; the number of the first template.
    pub marks: Option<usize>,
    /// Reports each line before it runs; the number of the first template.
    pub lines: Option<(usize, ReportLine)>,
}

/// Receives the number of a template and a line.
pub type ReportLine = fn(usize, usize);

impl TemplateMode {
    pub fn is_plain(self) -> bool {
        self.marks.is_none() && self.lines.is_none()
    }
}

/// Templates that can include each other, by file name.
#[derive(Debug)]
pub struct Engine {
    environment: Environment<'static>,
}

impl Engine {
    /// Takes chains of files by name, lowest first. The error lists every invalid template.
    pub fn new(
        chains: &BTreeMap<&str, Vec<&LayerSource>>,
        mode: TemplateMode,
    ) -> Result<Self, Vec<InvalidTemplate>> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(format);
        // Marks take steps too.
        environment.set_fuel(Some(if mode.is_plain() { FUEL } else { 4 * FUEL }));
        environment.set_recursion_limit(DEEPEST_INCLUDES);
        environment.set_debug(true);
        environment.add_filter("tojson", to_json);
        environment.add_filter("string", to_text);
        environment.add_filter("join", join);
        environment.add_filter("replace", output_limits::replace);
        environment.add_filter("indent", output_limits::indent);
        if let Some((_, report)) = mode.lines {
            environment.add_function(line_reports::REPORT_FUNCTION, move |template: usize, line: usize| {
                report(template, line);
                ""
            });
        }
        match mode.marks {
            Some(_) => {
                environment.add_filter("sha256", |text: &str| sha256(&line_marks::without_marks(text)))
            }
            None => environment.add_filter("sha256", sha256),
        }
        environment.add_test("has", cluster_facts::has_api);
        for filter in LENIENT_FILTERS {
            environment.remove_filter(filter);
        }

        let mut highest: BTreeMap<String, String> = BTreeMap::new();
        let mut next_lower: BTreeMap<String, String> = BTreeMap::new();
        let mut mistakes = Vec::new();
        let mut number = 0;
        for (name, chain) in chains {
            for source in chain {
                let mut text = match mode.marks {
                    Some(first) => line_marks::instrument(&source.text, first + number),
                    None => source.text.to_string(),
                };
                if let Some((first, report)) = mode.lines {
                    text = line_reports::instrument(&text, first + number);
                    // The engine evaluates constants when it loads a template.
                    report(first + number, 1);
                }
                number += 1;
                let path = source.path.clone();
                // The tokenizer panics where the engine does.
                if let Ok(Some(line)) = catch_unwind(|| first_too_deep_line(&source.text)) {
                    mistakes.push(InvalidTemplate::TooDeep { file: path, line });
                    continue;
                }
                // The engine panics on an assignment whose left side is no name.
                let added = catch_unwind(AssertUnwindSafe(|| environment.add_template_owned(path, text)));
                mistakes.extend(match added {
                    Ok(added) => added.err().map(|error| InvalidTemplate::Mistake((&error).into())),
                    Err(_) => Some(InvalidTemplate::GivenUp { file: source.path.clone() }),
                });
            }
            for pair in chain.windows(2) {
                next_lower.insert(pair[1].path.clone(), pair[0].path.clone());
            }
            highest.extend(chain.last().map(|source| ((*name).to_owned(), source.path.clone())));
        }
        environment.set_path_join_callback(move |name, from| {
            let found = if name == PARENT { next_lower.get(from) } else { highest.get(name) };
            found.map_or_else(|| name.to_owned().into(), |path| path.clone().into())
        });
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self { environment })
    }

    pub fn render(&self, path: &str, variables: Value) -> Result<String, Box<TemplateError>> {
        let mut paper = output_limits::BoundedOutput::default();
        let template = self.environment.get_template(path);
        let rendered = template.and_then(|template| template.render_captured_to(variables, &mut paper));
        rendered.map_err(|error| Box::new(TemplateError::from(&error)))?;
        Ok(paper.into_text())
    }
}

/// The filter of the engine turns an undefined variable into null, which hides the mistake.
fn to_json(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let failed = |error| Error::new(ErrorKind::BadSerialization, "not JSON").with_source(error);
    serde_json::to_string(value).map_err(failed)
}

/// For names and annotations that change with their content.
fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// The filter of the engine turns an undefined variable into an empty text.
fn to_text(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(ErrorKind::UndefinedError.into()),
        ValueKind::None | ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => to_json(value),
        _ => Ok(value.to_string()),
    }
}

/// The filter of the engine joins an undefined variable to an empty text.
fn join(value: &Value, separator: Option<&str>) -> Result<String, Error> {
    let undefined = || Error::from(ErrorKind::UndefinedError);
    let items = if value.is_undefined() { return Err(undefined()) } else { value.try_iter()? };
    let texts: Vec<String> = items.map(|item| to_text(&item)).collect::<Result<_, _>>()?;
    let separator = separator.unwrap_or("");
    let length = texts.iter().map(|text| text.len().saturating_add(separator.len())).sum();
    output_limits::check_length(Some(length))?;
    Ok(texts.join(separator))
}

/// Writes texts unchanged, maps and lists as JSON (which is YAML), none as null.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::None => "null".to_owned(),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => to_json(value)?,
        _ => {
            output_limits::count_output(state, value.as_str().map_or(0, str::len))?;
            return minijinja::escape_formatter(out, state, value);
        }
    };
    output_limits::count_output(state, text.len())?;
    out.write_str(&text).map_err(|error| Error::new(ErrorKind::WriteFailure, "output").with_source(error))
}

/// Whether a template may read a variable, by its tokens. Compiling it would evaluate constants.
pub fn reads_variable(text: &str, variable: &str) -> bool {
    // A fast path for most templates.
    if !text.contains(variable) {
        return false;
    }
    let mut before = None;
    // The tokenizer panics on some texts; their render reports that.
    let found = catch_unwind(AssertUnwindSafe(|| {
        tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok).any(|(token, _)| {
            let is_variable = matches!(&token, Token::Ident(name) if *name == variable)
                && !matches!(before, Some(Token::Dot | Token::Pipe));
            before = Some(token);
            is_variable
        })
    }));
    found.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_quotes_are_not_read() {
        for (text, expected) in [
            ("{{ ring }}", true),
            ("{% if a == ring %}{% endif %}", true),
            ("{{ a[ring] | upper }}", true),
            ("ring: {{ a.ring }}", false),
            ("{{ 'ring' }}{# ring #}", false),
            ("{{ a | ring }}", false),
            ("{{ string }}", false),
            ("{{ ring", true),
        ] {
            assert_eq!(reads_variable(text, "ring"), expected, "{text}");
        }
    }
}
