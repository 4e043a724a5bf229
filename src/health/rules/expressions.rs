//! Rules in CEL, with the functions that Kubernetes gives it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use parking_lot::Mutex;
use serde_json::Value;

use super::super::generic::GOALS;
use super::super::read::{Condition, old_condition, old_status, sentence};
use super::cost::{self, Extent};
use super::{Expressions, Part, RuleMistake, calls, values};
use crate::model::{Health, Status, unless_it_panics};

/// In bytes; a rule of one kind needs a few hundred.
const LONGEST: usize = 4096;
/// Levels of an expression: it is evaluated level in level, on the stack of whoever asks. Rules have ten or so; the grammar's engine
/// limits brackets only.
const DEEPEST: usize = 40;
/// Of brackets within one another, in the text.
const MOST_BRACKETS: usize = 100;
/// That engine takes much stack for each level of brackets and of operators. What is not used costs nothing.
const STACK: usize = 64 * 1024 * 1024;
/// Top-level fields that are there for every object, if only empty: `has(status.phase)` can then be asked.
const ALWAYS: [&str; 3] = ["metadata", "spec", "status"];

/// The library of functions. Evaluations take turns: each is short.
static FUNCTIONS: LazyLock<Mutex<Context<'static>>> =
    LazyLock::new(|| Mutex::new(Context::default().with_all()));

/// The expressions of one rule, in the order in which they are asked.
pub struct Compiled {
    parts: Vec<(Part, Program)>,
    /// Conditions that they ask for by name.
    conditions: Vec<&'static str>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(part, _)| part)).finish()
    }
}

impl Compiled {
    pub fn of(texts: &Expressions) -> Result<Self, Vec<RuleMistake>> {
        let (mut parts, mut mistakes) = (Vec::new(), Vec::new());
        let given = [
            (Part::InProgress, texts.in_progress.as_deref()),
            (Part::Failed, texts.failed.as_deref()),
            (Part::Current, Some(&*texts.current)),
        ];
        for (part, text) in given {
            let Some(text) = text else { continue };
            match compile(part, text) {
                Ok(program) => parts.push((part, program)),
                Err(mut found) => mistakes.append(&mut found),
            }
        }
        let names = |name: &&str| {
            let quoted = ['\'', '"'].map(|quote| format!("{quote}{name}{quote}"));
            let texts = given.iter().filter_map(|(_, text)| *text);
            texts.into_iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
        };
        let conditions = GOALS.into_iter().filter(names).collect();
        if mistakes.is_empty() { Ok(Self { parts, conditions }) } else { Err(mistakes) }
    }

    /// Or why it cannot be told.
    pub fn of_object(&self, object: &Value) -> Result<Health, String> {
        // Whatever the rule says of the status, it says it of an older spec.
        if let Some(old) = old_status(object, false) {
            return Ok(old);
        }
        if let Some(old) = self.conditions.iter().find_map(|name| old_condition(object, name)) {
            return Ok(old);
        }
        let extent = Extent::of(object);
        let functions = FUNCTIONS.lock();
        let mut scope = functions.new_inner_scope();
        for name in ALWAYS {
            scope.add_variable_from_value(name, values::empty());
        }
        for (name, value) in object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            scope.add_variable_from_value(name.as_str(), values::cel(value));
        }
        for (part, program) in &self.parts {
            if holds(program, &scope, extent).map_err(|why| format!("{}: {why}", part.name()))? {
                return Ok(Health::new(part.status(), words(*part, object)));
            }
        }
        let words = main_condition(object).unwrap_or_else(|| "none of the expressions holds".to_owned());
        Ok(Health::new(Status::InProgress, words))
    }
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "inProgress",
            Self::Failed => "failed",
            Self::Current => "current",
            Self::Script => "script",
        }
    }

    fn status(self) -> Status {
        match self {
            Self::InProgress => Status::InProgress,
            Self::Failed => Status::Failed,
            Self::Current => Status::Current,
            Self::Script => Status::Unknown,
        }
    }
}

fn compile(part: Part, text: &str) -> Result<Program, Vec<RuleMistake>> {
    let mistake = |message: String| RuleMistake { source: 0, part, line: 1, column: None, message };
    if text.len() > LONGEST {
        return Err(vec![mistake(format!("{} bytes long; {LONGEST} is the most", text.len()))]);
    }
    let read = thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read(part, text));
        reader.ok()?.join().ok()
    });
    read.unwrap_or_else(|| Err(vec![mistake(NO_EXPRESSION.to_owned())]))
}

/// Once compiled, a byte of an expression takes about as much memory as 8 bytes of a script, and a bracket as 256.
pub fn weight(text: &str) -> usize {
    const OF_A_BYTE: usize = 8;
    const OF_A_BRACKET: usize = 256;
    let brackets = text.bytes().filter(|letter| b"([{".contains(letter)).count();
    OF_A_BYTE * text.len() + OF_A_BRACKET * brackets
}

const NO_EXPRESSION: &str = "it is not an expression";

/// Of brackets within one another; those in texts count too.
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

fn read(part: Part, text: &str) -> Result<Program, Vec<RuleMistake>> {
    let mistake = |line, column, message: String| RuleMistake { source: 0, part, line, column, message };
    let too_deep = || format!("nested too deeply; {DEEPEST} levels are the most");
    // The parser takes seconds to find out by itself.
    if deepest_bracket(text) > MOST_BRACKETS {
        return Err(vec![mistake(1, None, too_deep())]);
    }
    if text.contains(|it: char| it.is_control() && !it.is_whitespace()) {
        return Err(vec![mistake(1, None, "it has a control character".to_owned())]);
    }
    // The grammar's engine is not ours: what it gives up on is a mistake, and not the end of the process.
    let program = match unless_it_panics(|| Program::compile(text)) {
        Some(Ok(program)) => program,
        Some(Err(errors)) => {
            let place = |number: isize| u32::try_from(number).unwrap_or(1).max(1);
            if errors.errors.iter().any(|error| error.msg.contains("Recursion limit")) {
                return Err(vec![mistake(1, None, too_deep())]);
            }
            let mistakes = errors
                .errors
                .into_iter()
                .map(|error| mistake(place(error.pos.0), Some(place(error.pos.1)), plain(&error.msg)));
            return Err(mistakes.collect());
        }
        None => return Err(vec![mistake(1, None, NO_EXPRESSION.to_owned())]),
    };
    if calls::depth(program.expression()) > DEEPEST {
        return Err(vec![mistake(1, None, too_deep())]);
    }
    let unknown: Vec<_> = calls::names(program.expression())
        .into_iter()
        .filter(|names| !names.iter().any(|name| is_known(name)))
        .filter_map(|names| {
            let name = names.first()?;
            let (line, column) = place_of(text, name);
            Some(mistake(line, Some(column), format!("there is no function `{name}`")))
        })
        .collect();
    if unknown.is_empty() { Ok(program) } else { Err(unknown) }
}

/// What the grammar's engine says, without the list of all that could stand there.
fn plain(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    sentence(&message.replace("'<EOF>'", "the end").replace("mismatched input", "unexpected"))
}

/// A function is known if calling it without anything fails for another reason.
fn is_known(name: &str) -> bool {
    let called = || {
        let program = Program::compile(&format!("{name}()")).ok()?;
        Some(matches!(program.execute(&FUNCTIONS.lock()), Err(ExecutionError::UndeclaredReference(_))))
    };
    !catch_unwind(called).ok().flatten().unwrap_or(false)
}

fn place_of(text: &str, name: &str) -> (u32, u32) {
    let at = text.find(name).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(1), u32::try_from(column).unwrap_or(1))
}

fn holds(program: &Program, scope: &Context<'_>, extent: Extent) -> Result<bool, String> {
    if cost::bound(program.expression(), extent) > cost::LIMIT {
        return Err("it could take too long on an object of this size".to_owned());
    }
    match catch_unwind(AssertUnwindSafe(|| program.execute(scope))) {
        Ok(Ok(Cel::Bool(holds))) => Ok(holds),
        Ok(Ok(other)) => Err(format!("it is a {}, not true or false", other.type_of())),
        Ok(Err(error)) => Err(say(&error)),
        Err(_) => Err("the evaluator gave up".to_owned()),
    }
}

/// Without the values, which may be anything.
fn say(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => format!("there is no field `{name}`; ask `has(…)` first"),
        ExecutionError::UndeclaredReference(name) => {
            format!("there is no field `{name}` at the top of the object")
        }
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..) => {
            "an operator has values that it does not take".to_owned()
        }
        ExecutionError::FunctionError { function, .. } => format!("the function `{function}` failed"),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, not {actual}")
        }
        ExecutionError::UnexpectedType { got, want } => format!("a {got} where a {want} is wanted"),
        ExecutionError::IndexOutOfBounds(_) => "a list is shorter than that".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "a division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        ExecutionError::NotSupportedAsMethod { method, .. } => {
            format!("the function `{method}` does not take such a value")
        }
        _ => "it cannot be evaluated".to_owned(),
    }
}

/// An expression says that, and not why; most kinds do so in their conditions.
fn words(part: Part, object: &Value) -> String {
    if part == Part::Current {
        return String::new();
    }
    main_condition(object).unwrap_or_else(|| format!("`{}` holds", part.name()))
}

fn main_condition(object: &Value) -> Option<String> {
    let stalled = Condition::of(object, "Stalled").filter(|condition| condition.is("True"));
    let goal = GOALS.into_iter().find_map(|name| Condition::of(object, name));
    Some(stalled.or(goal.filter(|goal| !goal.is("True")))?.words())
}
