//! Loops, and what else binds a variable: `all`, `map`, `optMap` …

use std::rc::Rc;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr};

use super::cost_meter::STEP;
use super::evaluate::RuleEvaluation;
use super::fault::RuleFault;
use super::syntax::is_name;
use super::value::{RuleOperand, RuleResult, optional};

/// The grammar expands loops with one variable ([`comprehension`]); these are the others.
pub(super) fn is_macro(call: &CallExpr) -> bool {
    let names = match (call.func_name.as_str(), call.args.len()) {
        ("all" | "exists" | "existsOne" | "exists_one", 3) | ("transformList" | "transformMap", 3 | 4) => 2,
        ("optMap" | "optFlatMap", 2) => 1,
        _ => return false,
    };
    call.target.is_some() && call.args.iter().take(names).all(|name| matches!(name.expr, Expr::Ident(_)))
}

#[inline(never)]
pub(super) fn run<'a>(evaluation: &mut RuleEvaluation<'a>, call: &'a CallExpr) -> RuleResult<'a> {
    let target = call.target.as_deref().ok_or(RuleFault::NoOverload)?;
    let range = evaluation.run(target)?;
    match (call.func_name.as_str(), &*call.args) {
        (name @ ("optMap" | "optFlatMap"), [variable, body]) => {
            let RuleOperand::Optional(inside) = range else { return Err(RuleFault::NoOverload) };
            let Some(inside) = inside else { return Ok(RuleOperand::Optional(None)) };
            let found = with_variables(evaluation, &[(variable, RuleOperand::clone(&inside))], body)?;
            match (name, found) {
                ("optMap", found) => Ok(optional(Some(found))),
                (_, found @ RuleOperand::Optional(_)) => Ok(found),
                _ => Err(RuleFault::NoOverload),
            }
        }
        (name, [key, value, rest @ ..]) => {
            let pairs = range.pairs().ok_or(RuleFault::NoOverload)?;
            let bound = |(one, other): (RuleOperand<'a>, RuleOperand<'a>)| [(key, one), (value, other)];
            match (name, rest) {
                ("all", [body]) => any_turn_decides(evaluation, pairs, bound, body, false),
                ("exists", [body]) => any_turn_decides(evaluation, pairs, bound, body, true),
                ("existsOne" | "exists_one", [body]) => {
                    let mut found = 0;
                    for pair in pairs {
                        found += u32::from(
                            with_variables(evaluation, &bound(pair), body).and_then(|found| truth(&found))?,
                        );
                    }
                    Ok(RuleOperand::Bool(found == 1))
                }
                ("transformList" | "transformMap", [filter @ .., body]) => {
                    let mut made = Vec::new();
                    for pair in pairs {
                        let key = pair.0.clone();
                        let bound = bound(pair);
                        let is_kept = match filter {
                            [filter, ..] => {
                                with_variables(evaluation, &bound, filter).and_then(|found| truth(&found))?
                            }
                            [] => true,
                        };
                        if is_kept {
                            made.push((key, with_variables(evaluation, &bound, body)?));
                        }
                    }
                    Ok(if name == "transformMap" {
                        RuleOperand::Map(Rc::new(made))
                    } else {
                        RuleOperand::List(Rc::new(made.into_iter().map(|(_, item)| item).collect()))
                    })
                }
                _ => Err(RuleFault::NoOverload),
            }
        }
        _ => Err(RuleFault::NoOverload),
    }
}

fn truth(value: &RuleOperand<'_>) -> Result<bool, RuleFault> {
    match value {
        RuleOperand::Bool(truth) => Ok(*truth),
        _ => Err(RuleFault::NoOverload),
    }
}

/// The body with some variables.
fn with_variables<'a>(
    evaluation: &mut RuleEvaluation<'a>,
    bound: &[(&'a IdedExpr, RuleOperand<'a>)],
    body: &'a IdedExpr,
) -> RuleResult<'a> {
    let depth = evaluation.variables.len();
    for (name, value) in bound {
        if let Expr::Ident(name) = &name.expr {
            evaluation.variables.push((name, Ok(value.clone())));
        }
    }
    let found = evaluation.meter.charge(STEP).and_then(|()| evaluation.run(body));
    evaluation.variables.truncate(depth);
    found
}

/// `all` and `exists`: one turn may decide, also after others that failed.
fn any_turn_decides<'a, const N: usize>(
    evaluation: &mut RuleEvaluation<'a>,
    pairs: Vec<(RuleOperand<'a>, RuleOperand<'a>)>,
    bound: impl Fn((RuleOperand<'a>, RuleOperand<'a>)) -> [(&'a IdedExpr, RuleOperand<'a>); N],
    body: &'a IdedExpr,
    decides: bool,
) -> RuleResult<'a> {
    let mut failed = None;
    for pair in pairs {
        match with_variables(evaluation, &bound(pair), body).and_then(|found| truth(&found)) {
            Ok(found) if found == decides => return Ok(RuleOperand::Bool(decides)),
            Ok(_) => {}
            Err(RuleFault::Cost) => return Err(RuleFault::Cost),
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    failed.map_or(Ok(RuleOperand::Bool(!decides)), Err)
}

/// A loop as the grammar expands it.
#[inline(never)]
pub(super) fn comprehension<'a>(
    evaluation: &mut RuleEvaluation<'a>,
    given: &'a ComprehensionExpr,
) -> RuleResult<'a> {
    let range = evaluation.run(&given.iter_range)?;
    let is_map = !range.is_list();
    let pairs = range.pairs().ok_or(RuleFault::NoOverload)?;
    let items = pairs.into_iter().map(|(key, value)| if is_map { key } else { value });
    let depth = evaluation.variables.len();
    let found = match list_append(given) {
        Some(step) => append_each(evaluation, given, step, items),
        None => accumulate(evaluation, given, items),
    };
    evaluation.variables.truncate(depth);
    found
}

/// The item that each iteration of `map` and `filter` appends, and its condition.
#[derive(Clone, Copy)]
struct ListAppend<'a> {
    condition: Option<&'a IdedExpr>,
    added: &'a IdedExpr,
}

fn list_append(given: &ComprehensionExpr) -> Option<ListAppend<'_>> {
    let Expr::List(start) = &given.accu_init.expr else { return None };
    if !start.elements.is_empty() || !is_name(&given.result, &given.accu_var) {
        return None;
    }
    let Expr::Call(call) = &given.loop_step.expr else { return None };
    match (call.func_name.as_str(), &*call.args) {
        ("_?_:_", [condition, then, otherwise]) if is_name(otherwise, &given.accu_var) => {
            Some(ListAppend { condition: Some(condition), added: appended(then, &given.accu_var)? })
        }
        _ => Some(ListAppend { condition: None, added: appended(&given.loop_step, &given.accu_var)? }),
    }
}

/// `@result + [x]`
fn appended<'e>(step: &'e IdedExpr, list: &str) -> Option<&'e IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match (call.func_name.as_str(), &*call.args) {
        ("_+_", [known, IdedExpr { expr: Expr::List(one), .. }]) if is_name(known, list) => {
            match &*one.elements {
                [added] => Some(added),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Without a copy of the list for each turn.
fn append_each<'a>(
    evaluation: &mut RuleEvaluation<'a>,
    given: &'a ComprehensionExpr,
    step: ListAppend<'a>,
    items: impl Iterator<Item = RuleOperand<'a>>,
) -> RuleResult<'a> {
    let depth = evaluation.variables.len();
    let mut made = Vec::new();
    for item in items {
        evaluation.meter.charge(STEP)?;
        evaluation.variables.truncate(depth);
        evaluation.variables.push((&given.iter_var, Ok(item)));
        let is_added = step.condition.map(|condition| evaluation.truth(condition)).transpose()?;
        if is_added.unwrap_or(true) {
            made.push(evaluation.run(step.added)?);
        }
    }
    Ok(RuleOperand::List(Rc::new(made)))
}

fn accumulate<'a>(
    evaluation: &mut RuleEvaluation<'a>,
    given: &'a ComprehensionExpr,
    items: impl Iterator<Item = RuleOperand<'a>>,
) -> RuleResult<'a> {
    let start = evaluation.run(&given.accu_init);
    let depth = evaluation.variables.len();
    evaluation.variables.push((&given.accu_var, start));
    for item in items {
        if !evaluation.truth(&given.loop_cond)? {
            break;
        }
        evaluation.meter.charge(STEP)?;
        evaluation.variables.push((&given.iter_var, Ok(item)));
        let next = evaluation.run(&given.loop_step);
        evaluation.variables.truncate(depth);
        if matches!(next, Err(RuleFault::Cost)) {
            return next;
        }
        evaluation.variables.push((&given.accu_var, next));
    }
    evaluation.run(&given.result)
}
