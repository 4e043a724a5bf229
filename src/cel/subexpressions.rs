//! Walks an expression: called functions, and depth.

use std::collections::BTreeSet;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};

/// The possible names of each call: `lists.range(3)` is a library function, or a method of a field.
pub fn function_names(expression: &IdedExpr) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut left = vec![expression];
    while let Some(next) = left.pop() {
        if let Expr::Call(call) = &next.expr
            && !is_operator(&call.func_name)
        {
            let qualified = qualified_name(call);
            found.insert(std::iter::once(call.func_name.clone()).chain(qualified).collect());
        }
        left.extend(children(&next.expr));
    }
    found
}

/// The nesting depth. Iterative, because it checks whether recursion is safe.
pub fn depth(expression: &IdedExpr) -> usize {
    let (mut deepest, mut left) = (0, vec![(expression, 1)]);
    while let Some((next, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(children(&next.expr).into_iter().map(|part| (part, depth + 1)));
    }
    deepest
}

/// `lists.range`, if the target of the call is a name.
pub fn qualified_name(call: &CallExpr) -> Option<String> {
    match &call.target.as_ref()?.expr {
        Expr::Ident(library) => Some(format!("{library}.{}", call.func_name)),
        _ => None,
    }
}

fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

/// The direct subexpressions.
pub fn children(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(it) => {
            vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| children_of_entry(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(fields) => {
            fields.entries.iter().flat_map(|entry| children_of_entry(&entry.expr)).collect()
        }
    }
}

fn children_of_entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
