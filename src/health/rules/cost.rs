//! Bounds the cost of an expression on an object, before it runs.
//!
//! CEL has no loops but those over lists and maps, and functions over lists and texts, so lengths and sizes bound its
//! work. The evaluator itself does not count. The bound is rough and above the truth: if the operand is unknown, the
//! largest value of the object counts.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{Expr, LiteralValue};
use serde_json::Value;

use crate::cel::{RegexCost, children, qualified_name};

/// Steps of the evaluator: about a second, a thousand times the need of usual conditions.
pub const LIMIT: f64 = 10_000_000.0;
/// How much is copied or compared in the time of a step.
const SIZE_OF_STEP: f64 = 32.0;
/// Digits of a number before its point, and its sign.
const DIGITS: f64 = 310.0;
/// The most decimals that `format` writes, and the bytes that request them: `%.65535f`.
const DECIMALS: f64 = 65_535.0;
const ASKING: f64 = 8.0;

/// The maxima of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectExtent {
    /// Values, and bytes of text.
    pub size: f64,
    /// The longest list or map.
    pub length: f64,
    /// The largest item of a list or map below the top.
    pub item: f64,
    /// The longest text.
    pub text: f64,
}

impl ObjectExtent {
    pub fn of(object: &Value) -> Self {
        let mut extent = Self { size: 1.0, length: 0.0, item: 1.0, text: 0.0 };
        for value in object.as_object().into_iter().flat_map(|map| map.values()) {
            extent.size += extent.measure(value, 0);
        }
        extent.length = extent.length.max(object.as_object().map_or(0.0, |map| number(map.len())));
        extent
    }

    fn measure(&mut self, value: &Value, depth: usize) -> f64 {
        let mut size = 1.0;
        let mut length = 0.0;
        let mut add = |extent: &mut Self, item: &Value| {
            let of_item = extent.measure(item, depth + 1);
            if depth > 0 {
                extent.item = extent.item.max(of_item);
            }
            size += of_item;
            length += 1.0;
        };
        match value {
            Value::Array(items) => items.iter().for_each(|item| add(self, item)),
            Value::Object(map) => {
                map.values().for_each(|item| add(self, item));
                size += map.keys().map(|key| number(key.len())).sum::<f64>();
            }
            Value::String(text) => {
                size += number(text.len());
                self.text = self.text.max(number(text.len()));
            }
            // As text: its digits before the point.
            Value::Number(number) => size += number.as_f64().map_or(0.0, |it| it.abs().max(1.0).log10()),
            Value::Null | Value::Bool(_) => {}
        }
        self.length = self.length.max(length);
        size
    }
}

/// Bounds of the value of an expression, and of its computation.
#[derive(Clone, Copy, Debug)]
struct CostBound {
    cost: f64,
    size: f64,
    /// The longest list or map in it.
    length: f64,
    item: f64,
}

impl CostBound {
    fn small(cost: f64) -> Self {
        Self { cost, size: 1.0, length: 0.0, item: 1.0 }
    }
}

/// An upper bound of the steps on this object.
pub fn max_cost(expression: &IdedExpr, extent: ObjectExtent) -> f64 {
    let bound = bound_of(expression, extent, &mut Vec::new());
    // Memory counts like work.
    bound.cost + bound.size / SIZE_OF_STEP
}

fn bound_of<'e>(
    expression: &'e IdedExpr,
    extent: ObjectExtent,
    scope: &mut Vec<(&'e str, CostBound)>,
) -> CostBound {
    match &expression.expr {
        Expr::Unspecified => CostBound::small(1.0),
        Expr::Literal(LiteralValue::String(text)) => {
            CostBound { size: 1.0 + number(text.inner().len()), ..CostBound::small(1.0) }
        }
        Expr::Literal(LiteralValue::Double(_)) => CostBound { size: DIGITS, ..CostBound::small(1.0) },
        Expr::Literal(_) => CostBound { size: 16.0, ..CostBound::small(1.0) },
        Expr::Ident(name) => match scope.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => CostBound { cost: 1.0, ..*known },
            None => CostBound { cost: 1.0, size: extent.size, length: extent.length, item: extent.item },
        },
        Expr::Select(select) => {
            let operand = bound_of(&select.operand, extent, scope);
            if select.test {
                return CostBound::small(1.0 + operand.cost);
            }
            CostBound { cost: 1.0 + operand.cost + operand.size / SIZE_OF_STEP, ..operand }
        }
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => together(children(&expression.expr), extent, scope),
        Expr::Call(call) => {
            let name = qualified_name(call).filter(|name| name.starts_with("sets."));
            called(name.as_deref().unwrap_or(&call.func_name), &children(&expression.expr), extent, scope)
        }
        Expr::Comprehension(loops) => {
            let range = bound_of(&loops.iter_range, extent, scope);
            let start = bound_of(&loops.accu_init, extent, scope);
            let depth = scope.len();
            let item = CostBound { cost: 1.0, size: range.item.min(range.size), ..range };
            scope.push((&loops.iter_var, item));
            if let Some(second) = &loops.iter_var2 {
                scope.push((second, item));
            }
            // Macros only add to the result, by as much in each iteration.
            scope.push((&loops.accu_var, CostBound { size: 0.0, ..CostBound::small(1.0) }));
            let step = bound_of(&loops.loop_step, extent, scope);
            scope.pop();
            let added = added(&loops.loop_step, &loops.accu_var);
            // Parts of the items are not larger than the items together.
            let (gathered, item_size) = match added {
                Some(added) if is_part_of(added, &loops.iter_var) => (range.size, range.item),
                _ => (range.length * step.size, step.item.max(step.size)),
            };
            // The evaluator copies the whole list for each added item.
            let copied = match added {
                Some(_) => range.length * (range.length + gathered / SIZE_OF_STEP) / 2.0,
                None => 0.0,
            };
            let result = CostBound {
                cost: 1.0,
                size: start.size + gathered,
                length: (start.length + range.length).max(step.length),
                item: item_size,
            };
            scope.push((&loops.accu_var, result));
            let check = bound_of(&loops.loop_cond, extent, scope);
            let last = bound_of(&loops.result, extent, scope);
            scope.truncate(depth);
            let turn = check.cost + step.cost + 1.0 + item.size / SIZE_OF_STEP;
            CostBound { cost: range.cost + start.cost + last.cost + range.length * turn + copied, ..last }
        }
    }
}

/// What each iteration of `map` and `filter` adds to the list; other loops gather nothing.
fn added<'e>(step: &'e IdedExpr, list: &str) -> Option<&'e IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match (&*call.func_name, &*call.args) {
        ("_+_", [IdedExpr { expr: Expr::Ident(name), .. }, IdedExpr { expr: Expr::List(one), .. }])
            if name == list =>
        {
            one.elements.first()
        }
        ("_?_:_", [_, then, _]) => added(then, list),
        _ => None,
    }
}

/// `c`, `c.metadata.name`
fn is_part_of(expression: &IdedExpr, item: &str) -> bool {
    root(expression) == Some(item)
}

/// The variable of `c.metadata.name`.
fn root(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) => Some(name),
        Expr::Select(select) if !select.test => root(&select.operand),
        _ => None,
    }
}

fn together<'e>(
    parts: Vec<&'e IdedExpr>,
    extent: ObjectExtent,
    scope: &mut Vec<(&'e str, CostBound)>,
) -> CostBound {
    let mut all = CostBound { length: number(parts.len()), ..CostBound::small(1.0) };
    for part in parts {
        let part = bound_of(part, extent, scope);
        all.cost += part.cost + part.size / SIZE_OF_STEP;
        all.size += part.size;
        all.length = all.length.max(part.length);
        all.item = all.item.max(part.size);
    }
    all
}

fn called<'e>(
    name: &str,
    arguments: &[&'e IdedExpr],
    extent: ObjectExtent,
    scope: &mut Vec<(&'e str, CostBound)>,
) -> CostBound {
    let bounds: Vec<CostBound> = arguments.iter().map(|argument| bound_of(argument, extent, scope)).collect();
    let total = |part: fn(&CostBound) -> f64| bounds.iter().map(part).sum::<f64>();
    let product = bounds.iter().map(|bound| 1.0 + bound.size).product::<f64>();
    let size = total(|bound| bound.size);
    let mut result = CostBound {
        cost: 1.0 + total(|bound| bound.cost) + size / SIZE_OF_STEP,
        size: 64.0 + size,
        length: total(|bound| bound.length),
        item: bounds.iter().map(|bound| bound.item).fold(1.0, f64::max),
    };
    match name {
        "_&&_"
        | "_||_"
        | "!_"
        | "_==_"
        | "_!=_"
        | "_<_"
        | "_<=_"
        | "_>_"
        | "_>=_"
        | "@not_strictly_false"
        | "size"
        | "startsWith"
        | "endsWith"
        | "contains" => {
            result.size = 1.0;
            result.length = 0.0;
        }
        // The whole needle is compared at every position. A third argument is only the start.
        "indexOf" | "lastIndexOf" => {
            let texts = arguments.iter().zip(&bounds).take(2).map(|(argument, bound)| {
                let is_of_object = root(argument).is_some_and(|name| scope.iter().all(|(it, _)| *it != name));
                if is_of_object { bound.size.min(extent.text) } else { bound.size }
            });
            let pair = texts.map(|size| 1.0 + size).product::<f64>();
            result = CostBound::small(result.cost + pair / SIZE_OF_STEP);
        }
        // Every left item with every right one.
        "@in" | "sets.contains" | "sets.equivalent" | "sets.intersects" => {
            result.cost += product / SIZE_OF_STEP;
        }
        // Every item with all before it.
        "distinct" => result.cost += result.length * (result.length + size) / SIZE_OF_STEP,
        "matches" | "find" | "findAll" => {
            let pattern = arguments.get(1).map_or_else(RegexCost::largest, |it| pattern(it));
            let text = bounds.first().map_or(1.0, |text| 1.0 + text.size);
            result.cost += pattern.compile_steps + text * pattern.states / SIZE_OF_STEP;
            if name == "findAll" {
                result.length = size;
            }
        }
        "split" | "flatten" | "getQuery" => result.length = size,
        "join" | "replace" => {
            result.size = product;
            result.cost += product / SIZE_OF_STEP;
        }
        "format" => {
            result.size = product + digits(arguments, &bounds);
            result.cost += result.size / SIZE_OF_STEP;
        }
        "range" => {
            result.length = arguments.last().map_or(0.0, |argument| count(argument));
            result.size = result.length;
            result.cost += result.length;
        }
        _ => {}
    }
    result
}

/// What `format` writes for numbers, beyond the sizes of its text and list.
fn digits(arguments: &[&IdedExpr], bounds: &[CostBound]) -> f64 {
    let (Some(text), Some(bound)) = (arguments.first(), bounds.first()) else { return 0.0 };
    let (verbs, decimals) = match &text.expr {
        Expr::Literal(LiteralValue::String(text)) => {
            let text = text.inner();
            let precisions = text.split("%.").skip(1).map(|rest| {
                let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
                digits.parse::<u32>().map_or(DECIMALS, f64::from)
            });
            (number(text.matches('%').count()), precisions.fold(0.0, f64::max).min(DECIMALS))
        }
        // A computed format may be any.
        _ => (bound.size / ASKING, DECIMALS),
    };
    // A verb without a value is refused.
    let values = bounds.iter().skip(1).map(|list| list.length).fold(0.0, f64::max);
    verbs.min(values) * (DIGITS + decimals)
}

/// A literal number; a computed one may be any.
fn count(expression: &IdedExpr) -> f64 {
    match &expression.expr {
        Expr::Literal(LiteralValue::Int(count)) => {
            i32::try_from(*count.inner()).map_or(f64::INFINITY, f64::from)
        }
        _ => f64::INFINITY,
    }
}

/// A regular expression, compiled in each call; a computed one may be any.
fn pattern(expression: &IdedExpr) -> RegexCost {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => RegexCost::of(text.inner()),
        _ => RegexCost::largest(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
fn number(count: usize) -> f64 {
    count as f64
}
