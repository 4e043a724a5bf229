//! Parses expressions with the grammar of `kube_cel`, within limits.

use std::thread;

use kube_cel::cel::parser::Parser;
use kube_cel::cel::{IdedExpr, ParseErrors};

use super::library::is_known;
use super::subexpressions;
use crate::model::catch_panic;

/// In bytes; usual rules need a few hundred.
const LONGEST_EXPRESSION: usize = 4096;
/// Levels of an expression: evaluation recurses on the caller's stack. Rules have about ten; the parser itself limits
/// brackets only.
pub const DEEPEST_EXPRESSION: usize = 40;
/// Nested brackets in the text.
const MOST_BRACKETS: usize = 100;
/// The parser uses much stack for each level. Unused stack costs nothing.
const STACK: usize = 64 * 1024 * 1024;

/// A mistake in an expression, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionMistake {
    /// Counted from 1.
    pub line: u32,
    /// `None`: the whole text.
    pub column: Option<u32>,
    pub message: String,
}

impl ExpressionMistake {
    pub fn of_whole_text(message: impl Into<String>) -> Self {
        Self { line: 1, column: None, message: message.into() }
    }

    /// At the first occurrence of a name.
    pub fn at(text: &str, name: &str, message: String) -> Self {
        let at = text.find(name).unwrap_or(0);
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let number = |count| u32::try_from(count).unwrap_or(1);
        Self { line: number(line), column: Some(number(column)), message }
    }
}

/// Parses a text and refuses unknown functions.
pub fn parse_known<T: Send>(
    text: &str,
    parse: fn(&str) -> Result<T, ParseErrors>,
    expression: fn(&T) -> &IdedExpr,
) -> Result<T, Vec<ExpressionMistake>> {
    let parsed = parse_expression(text, parse, expression)?;
    let unknown: Vec<_> = subexpressions::function_names(expression(&parsed))
        .into_iter()
        .filter(|names| !names.iter().any(|name| is_known(name)))
        .filter_map(|names| {
            let name = names.first()?;
            Some(ExpressionMistake::at(text, name, format!("there is no function `{name}`")))
        })
        .collect();
    if unknown.is_empty() { Ok(parsed) } else { Err(unknown) }
}

/// Parses a text on a large stack.
pub fn parse_expression<T: Send>(
    text: &str,
    parse: fn(&str) -> Result<T, ParseErrors>,
    expression: fn(&T) -> &IdedExpr,
) -> Result<T, Vec<ExpressionMistake>> {
    if text.len() > LONGEST_EXPRESSION {
        return Err(vec![ExpressionMistake::of_whole_text(format!(
            "{} bytes long; {LONGEST_EXPRESSION} is the most",
            text.len()
        ))]);
    }
    let read = thread::scope(|scope| {
        let read = || parse_on_this_stack(text, parse, expression);
        let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        reader.ok()?.join().ok()
    });
    read.unwrap_or_else(|| Err(vec![ExpressionMistake::of_whole_text(NO_EXPRESSION)]))
}

/// A parser for [`parse_expression`] that accepts `a.?b` and `[?a]`.
pub fn parse_with_optionals(text: &str) -> Result<IdedExpr, ParseErrors> {
    Parser::default().enable_optional_syntax(true).parse(text)
}

/// Approximate memory once compiled: a byte counts as 8 bytes of a script, a bracket as 256.
pub fn approximate_memory(text: &str) -> usize {
    const OF_A_BYTE: usize = 8;
    const OF_A_BRACKET: usize = 256;
    let brackets = text.bytes().filter(|letter| b"([{".contains(letter)).count();
    OF_A_BYTE * text.len() + OF_A_BRACKET * brackets
}

const NO_EXPRESSION: &str = "it is not an expression";

/// Brackets in quoted texts count too.
fn deepest_bracket(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for letter in text.bytes() {
        match letter {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn parse_on_this_stack<T>(
    text: &str,
    parse: fn(&str) -> Result<T, ParseErrors>,
    expression: fn(&T) -> &IdedExpr,
) -> Result<T, Vec<ExpressionMistake>> {
    let too_deep = || {
        vec![ExpressionMistake::of_whole_text(format!(
            "nested too deeply; {DEEPEST_EXPRESSION} levels are the most"
        ))]
    };
    // The parser needs seconds to detect it.
    if deepest_bracket(text) > MOST_BRACKETS {
        return Err(too_deep());
    }
    if text.contains(|it: char| it.is_control() && !it.is_whitespace()) {
        return Err(vec![ExpressionMistake::of_whole_text("it has a control character")]);
    }
    // A panic of the parser is a mistake of the text, not the end of the process.
    let parsed = match catch_panic(|| parse(text)) {
        Some(Ok(parsed)) => parsed,
        Some(Err(errors)) => {
            let place = |number: isize| u32::try_from(number).unwrap_or(1).max(1);
            if errors.errors.iter().any(|error| error.msg.contains("Recursion limit")) {
                return Err(too_deep());
            }
            let mistakes = errors.errors.into_iter().map(|error| ExpressionMistake {
                line: place(error.pos.0),
                column: Some(place(error.pos.1)),
                message: plain_message(&error.msg),
            });
            return Err(mistakes.collect());
        }
        None => return Err(vec![ExpressionMistake::of_whole_text(NO_EXPRESSION)]),
    };
    if subexpressions::depth(expression(&parsed)) > DEEPEST_EXPRESSION {
        return Err(too_deep());
    }
    Ok(parsed)
}

/// The parser's message without the list of expected tokens.
fn plain_message(message: &str) -> String {
    const MOST: usize = 300;
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    let message = message.replace("'<EOF>'", "the end").replace("mismatched input", "unexpected");
    crate::model::short_line(&message, MOST)
}
