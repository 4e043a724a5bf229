//! Parses and compiles expressions.

use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{Arc, LazyLock};
use std::thread;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::Expr;
use kube_cel::cel::parser::Parser;
use parking_lot::Mutex;

use super::{crate_call, functions, macros, syntax};

/// In bytes; the longest of public definitions has three thousand.
const LONGEST: usize = 16 * 1024;
/// Levels of an expression: it is evaluated level in level, on the stack of whoever writes.
const DEEPEST: usize = 100;
/// The grammar's engine takes much stack for each level of brackets. What is not used costs nothing.
const STACK: usize = 64 * 1024 * 1024;
/// Programs are shared by all clusters of a process: they have the same definitions.
const SHARED: usize = 10_000;

static PROGRAMS: LazyLock<Mutex<HashMap<String, Arc<RuleProgram>>>> = LazyLock::new(Mutex::default);

/// A text, and what can be evaluated of it.
#[derive(Debug)]
pub(super) struct RuleProgram {
    pub(super) text: String,
    /// Or why it cannot be evaluated.
    pub(super) expression: Result<IdedExpr, String>,
    pub(super) uses_old: bool,
}

impl RuleProgram {
    pub(super) fn of(text: &str) -> Arc<Self> {
        if let Some(known) = PROGRAMS.lock().get(text) {
            return Arc::clone(known);
        }
        let Some(expression) = compile(text) else {
            // Another time there may be a thread.
            let expression = Err("there is no thread to read it".to_owned());
            return Arc::new(Self { text: text.to_owned(), expression, uses_old: false });
        };
        let uses_old = expression.as_ref().is_ok_and(|expression| {
            syntax::all(expression).any(|(part, _)| matches!(part, Expr::Ident(name) if name == "oldSelf"))
        });
        let program = Arc::new(Self { text: text.to_owned(), expression, uses_old });
        let mut shared = PROGRAMS.lock();
        if shared.len() >= SHARED {
            shared.clear();
        }
        shared.insert(text.to_owned(), Arc::clone(&program));
        program
    }
}

/// `None` when it is unknown.
pub(crate) fn uses_old_value(text: &str) -> Option<bool> {
    let program = RuleProgram::of(text);
    program.expression.is_ok().then_some(program.uses_old)
}

impl PartialEq for RuleProgram {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// `None` when there is no thread for it.
fn compile(text: &str) -> Option<Result<IdedExpr, String>> {
    if text.len() > LONGEST {
        return Some(Err(format!("it has {} bytes; {LONGEST} is the most", text.len())));
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read(text));
        Some(reader.ok()?.join().unwrap_or_else(|_| Err(NO_EXPRESSION.to_owned())))
    })
}

const NO_EXPRESSION: &str = "it is not an expression";

fn read(text: &str) -> Result<IdedExpr, String> {
    // The grammar's engine is not ours: what it gives up on must not end the process.
    let parsed = catch_unwind(|| Parser::default().enable_optional_syntax(true).parse(text));
    let expression = match parsed {
        Ok(Ok(expression)) => expression,
        Ok(Err(errors)) => {
            return Err(errors
                .errors
                .first()
                .map_or_else(|| NO_EXPRESSION.to_owned(), |one| one.msg.clone()));
        }
        Err(_) => return Err(NO_EXPRESSION.to_owned()),
    };
    for (part, depth) in syntax::all(&expression) {
        if depth > DEEPEST {
            return Err(format!("it is nested too deeply; {DEEPEST} levels are the most"));
        }
        match part {
            Expr::Call(call) if !is_known(call) => {
                return Err(format!("there is no function `{}`", call.func_name));
            }
            Expr::Struct(_) => return Err("it makes an object of a named type".to_owned()),
            _ => {}
        }
    }
    Ok(expression)
}

fn is_known(call: &kube_cel::cel::common::ast::CallExpr) -> bool {
    syntax::is_operator(&call.func_name)
        || macros::is_macro(call)
        || functions::is_native(call)
        || syntax::qualified(call).is_some_and(|name| crate_call::has(&name))
        || crate_call::has(&call.func_name)
}
