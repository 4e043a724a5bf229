//! Calls a function of `kube_cel` by its name.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value as Cel};

use super::fault::RuleFault;

thread_local! {
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// Not of Kubernetes: it makes a list of any length from a number.
pub(super) const UNKNOWN: &[&str] = &["lists.range"];
/// Where arguments stand while a function runs.
pub(super) const PLACES: &[&str] = &["@0", "@1", "@2", "@3", "@4", "@5", "@6", "@7"];

/// A function is known if calling it without anything fails for another reason.
pub(super) fn has(name: &str) -> bool {
    let call = call_of(name, false, 0);
    let called = || FUNCTIONS.with(|functions| Cel::resolve(&call, functions));
    let answered = catch_unwind(AssertUnwindSafe(called));
    !UNKNOWN.contains(&name) && !matches!(answered, Ok(Err(ExecutionError::UndeclaredReference(_))))
}

fn call_of(name: &str, has_target: bool, arguments: usize) -> IdedExpr {
    let place = |name: &&str| IdedExpr { id: 0, expr: Expr::Ident((*name).to_owned()) };
    let mut places = PLACES.iter().map(place);
    let target = has_target.then(|| places.next().map(Box::new)).flatten();
    let args = places.take(arguments).collect();
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target, args }) }
}

/// A text as a time or duration; `None` if it is none.
pub(super) fn parsed(function: &str, text: &str) -> Option<Cel> {
    run(function, None, vec![Cel::String(Arc::new(text.to_owned()))]).ok()
}

pub(super) fn run(name: &str, target: Option<Cel>, arguments: Vec<Cel>) -> Result<Cel, RuleFault> {
    let call = call_of(name, target.is_some(), arguments.len());
    let answered = catch_unwind(AssertUnwindSafe(|| {
        FUNCTIONS.with(|functions| {
            let mut scope = functions.new_inner_scope();
            for (place, value) in PLACES.iter().zip(target.into_iter().chain(arguments)) {
                scope.add_variable_from_value(*place, value);
            }
            Cel::resolve(&call, &scope)
        })
    }));
    match answered {
        Ok(answered) => answered.map_err(|error| RuleFault::of(&error)),
        Err(_) => Err(RuleFault::Unsupported(format!("the function `{name}` gave up"))),
    }
}
