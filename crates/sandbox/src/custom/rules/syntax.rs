//! Walks the syntax tree of an expression.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};

/// The expressions that one is made of.
fn inside(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(it) => {
            vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(fields) => fields.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
    }
}

fn of_entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Every expression with its depth. Not by recursion: that is what the depth is asked for.
pub(super) fn all(expression: &IdedExpr) -> impl Iterator<Item = (&Expr, usize)> {
    let mut left = vec![(expression, 1)];
    std::iter::from_fn(move || {
        let (next, depth) = left.pop()?;
        left.extend(inside(&next.expr).into_iter().map(|part| (part, depth + 1)));
        Some((&next.expr, depth))
    })
}

pub(super) fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

/// `sets.contains`, if the call can be read so.
pub(super) fn qualified(call: &CallExpr) -> Option<String> {
    match &call.target.as_ref()?.expr {
        Expr::Ident(library) => Some(format!("{library}.{}", call.func_name)),
        _ => None,
    }
}

pub(super) fn is_name(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(ident) if ident == name)
}
