//! Compiles expressions: names become indices, operators become variants.

use std::collections::BTreeSet;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

use super::functions;
use super::library::{LibraryCall, is_known};
use super::meter::{CelMeter, EvaluationFailure};
use super::node::{
    ArithmeticOperator, CelLiteral, CelLoop, CelNode, ComparisonOperator, TwoVariableLoop, TwoVariableMacro,
};
use super::regex_cost::compile_cost;
use super::subexpressions::qualified_name;
use super::syntax::{self, ExpressionMistake};
use super::value::CelValue;
use super::{EvaluationScope, evaluate};

/// Steps to compile all regular expressions of one expression.
const MOST_REGEX_STEPS: u64 = 2_000_000;

/// The names that an expression may use.
#[derive(Clone, Copy, Debug)]
pub struct ExpressionNames<'n> {
    /// In the order of [`EvaluationScope::roots`].
    pub roots: &'n [&'n str],
    /// Refused names with the reason, also fields such as `request.userInfo`.
    pub refused: &'n [(&'n str, &'n str)],
    /// The fields of `variables`, in the order of [`EvaluationScope::variables`].
    pub variables: &'n [&'n str],
}

/// A compiled expression.
#[derive(Debug)]
pub struct CelProgram {
    node: CelNode,
    /// Indices of the variables that it uses.
    pub variables: Vec<usize>,
    /// Whether it uses each root.
    pub roots: Vec<bool>,
    /// The longest field path of the first root that it reads: `spec.template.spec`.
    pub field: Option<String>,
    /// The cost of compiling its regular expressions, in steps.
    pub regex_steps: u64,
}

impl CelProgram {
    pub fn of(text: &str, names: ExpressionNames<'_>) -> Result<Self, Vec<ExpressionMistake>> {
        let parsed = syntax::parse_expression(text, syntax::parse_with_optionals, |parsed| parsed)?;
        let roots = vec![false; names.roots.len()];
        let mut compiler = CelCompiler {
            text,
            names,
            locals: Vec::new(),
            used: BTreeSet::new(),
            roots,
            field: None,
            patterns: 0,
        };
        let node = compiler.node(&parsed).map_err(|mistake| vec![mistake])?;
        let CelCompiler { used, roots, field, patterns, .. } = compiler;
        Ok(Self { node, variables: used.into_iter().collect(), roots, field, regex_steps: patterns })
    }

    pub fn evaluate<'a>(
        &'a self,
        scope: &EvaluationScope<'a>,
        meter: &mut CelMeter,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        evaluate::evaluate(&self.node, scope, meter)
    }

    /// The expression must be a boolean.
    pub fn evaluate_bool<'a>(
        &'a self,
        scope: &EvaluationScope<'a>,
        meter: &mut CelMeter,
    ) -> Result<bool, EvaluationFailure> {
        match self.evaluate(scope, meter)? {
            CelValue::Bool(holds) => Ok(holds),
            other => Err(EvaluationFailure::Message(
                format!("it is a {}, not true or false", other.type_name()).into(),
            )),
        }
    }
}

struct CelCompiler<'c> {
    text: &'c str,
    names: ExpressionNames<'c>,
    locals: Vec<String>,
    used: BTreeSet<usize>,
    roots: Vec<bool>,
    field: Option<String>,
    patterns: u64,
}

impl CelCompiler<'_> {
    fn boxed(&mut self, expression: &IdedExpr) -> Result<Box<CelNode>, ExpressionMistake> {
        self.node(expression).map(Box::new)
    }

    fn node(&mut self, expression: &IdedExpr) -> Result<CelNode, ExpressionMistake> {
        Ok(match &expression.expr {
            Expr::Literal(literal) => CelNode::Literal(literal_of(literal)),
            Expr::Ident(name) => self.compile_name(name)?,
            Expr::Select(select) if self.type_named(expression).is_some() && !select.test => {
                CelNode::Literal(CelLiteral::Type(self.type_named(expression).unwrap_or_default()))
            }
            Expr::Select(select) => {
                let depth = |path: &Option<String>| path.as_ref().map_or(0, |it| 1 + it.matches('.').count());
                let path = self.path(expression);
                if depth(&path) > depth(&self.field) {
                    self.field = path;
                }
                if let Expr::Ident(root) = &select.operand.expr
                    && !self.locals.contains(root)
                {
                    if root == "variables" && !select.test {
                        return self.variable(&select.field);
                    }
                    self.refuse(&format!("{root}.{}", select.field))?;
                }
                let (operand, field) = (self.boxed(&select.operand)?, select.field.as_str().into());
                if select.test { CelNode::Has(operand, field) } else { CelNode::Field(operand, field) }
            }
            Expr::List(list) => {
                let optional = |index: usize| list.optional_indices.contains(&index);
                let items = list.elements.iter().enumerate();
                let items = items.map(|(index, item)| Ok((self.node(item)?, optional(index))));
                CelNode::List(items.collect::<Result<_, ExpressionMistake>>()?)
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        Ok((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional))
                    }
                    EntryExpr::StructField(_) => Err(self.no_messages()),
                });
                CelNode::Map(entries.collect::<Result<_, _>>()?)
            }
            Expr::Comprehension(loops) => self.comprehension(loops)?,
            Expr::Call(call) => self.call(call)?,
            Expr::Struct(_) | Expr::Unspecified => return Err(self.no_messages()),
        })
    }

    /// `google.protobuf.Duration`.
    fn type_named(&self, expression: &IdedExpr) -> Option<&'static str> {
        fn dotted(expression: &IdedExpr) -> Option<String> {
            match &expression.expr {
                Expr::Ident(name) => Some(name.clone()),
                Expr::Select(select) => Some(format!("{}.{}", dotted(&select.operand)?, select.field)),
                _ => None,
            }
        }
        let name = dotted(expression).filter(|name| name.starts_with("google."))?;
        functions::TYPE_NAMES.iter().find(|it| **it == name).copied()
    }

    /// `spec.replicas` of `object.spec.replicas`.
    fn path(&self, expression: &IdedExpr) -> Option<String> {
        let Expr::Select(select) = &expression.expr else { return None };
        match &select.operand.expr {
            Expr::Ident(root) => {
                let is_first = self.names.roots.first() == Some(&root.as_str());
                (is_first && !self.locals.contains(root)).then(|| select.field.clone())
            }
            _ => Some(format!("{}.{}", self.path(&select.operand)?, select.field)),
        }
    }

    fn no_messages(&self) -> ExpressionMistake {
        ExpressionMistake::at(
            self.text,
            "{",
            "message types are not supported; write a map: {\"key\": value}".to_owned(),
        )
    }

    fn compile_name(&mut self, name: &str) -> Result<CelNode, ExpressionMistake> {
        if let Some(local) = self.locals.iter().rposition(|local| local == name) {
            return Ok(CelNode::Local(local));
        }
        self.refuse(name)?;
        if let Some(root) = self.names.roots.iter().position(|root| *root == name) {
            if let Some(used) = self.roots.get_mut(root) {
                *used = true;
            }
            return Ok(CelNode::Root(root));
        }
        if let Some(of_type) = functions::TYPE_NAMES.iter().find(|it| **it == name) {
            return Ok(CelNode::Literal(CelLiteral::Type(of_type)));
        }
        let message = match name {
            "variables" => "write `variables.` and a name".to_owned(),
            _ => format!("there is no variable `{name}`; there are {}", self.names.roots.join(", ")),
        };
        Err(ExpressionMistake::at(self.text, name, message))
    }

    fn refuse(&self, name: &str) -> Result<(), ExpressionMistake> {
        match self.names.refused.iter().find(|(refused, _)| *refused == name) {
            Some((_, why)) => Err(ExpressionMistake::at(self.text, name, (*why).to_owned())),
            None => Ok(()),
        }
    }

    fn variable(&mut self, name: &str) -> Result<CelNode, ExpressionMistake> {
        let Some(index) = self.names.variables.iter().position(|known| *known == name) else {
            let message = format!("`variables.{name}` is not defined before this expression");
            return Err(ExpressionMistake::at(self.text, &format!("variables.{name}"), message));
        };
        self.used.insert(index);
        Ok(CelNode::Variable(index))
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<CelNode, ExpressionMistake> {
        let (range, start) = (self.node(&loops.iter_range)?, self.node(&loops.accu_init)?);
        let depth = self.locals.len();
        self.locals.extend([loops.accu_var.clone(), loops.iter_var.clone()]);
        let condition = self.node(&loops.loop_cond);
        let step = self.node(&loops.loop_step);
        let result = self.node(&loops.result);
        self.locals.truncate(depth);
        Ok(CelNode::Loop(Box::new(CelLoop {
            range,
            start,
            condition: condition?,
            step: step?,
            result: result?,
        })))
    }

    fn call(&mut self, call: &CallExpr) -> Result<CelNode, ExpressionMistake> {
        if let (None, args) = (&call.target, call.args.as_slice()) {
            if let Some(appended) = self.compile_append(&call.func_name, args)? {
                return Ok(appended);
            }
            match (call.func_name.as_str(), args) {
                ("!_", [of]) => return Ok(CelNode::Not(self.boxed(of)?)),
                ("-_", [of]) => return Ok(CelNode::Negate(self.boxed(of)?)),
                ("@not_strictly_false", [of]) => return Ok(CelNode::NotStrictlyFalse(self.boxed(of)?)),
                ("_?_:_", [one, two, three]) => {
                    return Ok(CelNode::Conditional(self.boxed(one)?, self.boxed(two)?, self.boxed(three)?));
                }
                ("_?._", [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) => {
                    return Ok(CelNode::OptionalField(self.boxed(of)?, field.inner().into()));
                }
                (name, [left, right]) => {
                    if let Some(node) = self.binary(name, left, right)? {
                        return Ok(node);
                    }
                }
                _ => {}
            }
        }
        if let (Some(target), "optMap" | "optFlatMap", [local, body]) =
            (&call.target, call.func_name.as_str(), call.args.as_slice())
            && let Expr::Ident(name) = &local.expr
        {
            let target = self.boxed(target)?;
            self.locals.push(name.clone());
            let body = self.boxed(body);
            self.locals.pop();
            return Ok(CelNode::OptionalMap(target, body?, call.func_name == "optFlatMap"));
        }
        if let Some(node) = self.compile_two_variables(call)? {
            return Ok(node);
        }
        self.function(call)
    }

    /// The grammar expands only macros with one variable.
    fn compile_two_variables(&mut self, call: &CallExpr) -> Result<Option<CelNode>, ExpressionMistake> {
        let (Some(target), [key, value, rest @ ..]) = (&call.target, call.args.as_slice()) else {
            return Ok(None);
        };
        let (Expr::Ident(key), Expr::Ident(value)) = (&key.expr, &value.expr) else { return Ok(None) };
        let (filter, body) = match rest {
            [body] => (None, body),
            [filter, body] => (Some(filter), body),
            _ => return Ok(None),
        };
        let Some(of) = TwoVariableMacro::of(&call.func_name, call.args.len()) else { return Ok(None) };
        if key == value {
            return Err(ExpressionMistake::at(self.text, key, format!("both variables are called `{key}`")));
        }
        let range = self.node(target)?;
        let depth = self.locals.len();
        self.locals.extend([key.clone(), value.clone()]);
        let filter = filter.map(|filter| self.node(filter)).transpose();
        let body = self.node(body);
        self.locals.truncate(depth);
        Ok(Some(CelNode::TwoVariables(Box::new(TwoVariableLoop {
            kind: of,
            range,
            filter: filter?,
            body: body?,
        }))))
    }

    /// Matches `@result + [x]`, a name that only macros use.
    fn compile_append(
        &mut self,
        name: &str,
        args: &[IdedExpr],
    ) -> Result<Option<CelNode>, ExpressionMistake> {
        let ("_+_", [list, item]) = (name, args) else { return Ok(None) };
        let (Expr::Ident(list), Expr::List(items)) = (&list.expr, &item.expr) else { return Ok(None) };
        let (true, [item]) = (list.starts_with('@'), items.elements.as_slice()) else { return Ok(None) };
        let Some(local) = self.locals.iter().rposition(|local| local == list) else { return Ok(None) };
        Ok(Some(CelNode::Append(local, self.boxed(item)?)))
    }

    fn binary(
        &mut self,
        name: &str,
        left: &IdedExpr,
        right: &IdedExpr,
    ) -> Result<Option<CelNode>, ExpressionMistake> {
        let make: fn(Box<CelNode>, Box<CelNode>) -> CelNode = match name {
            "_&&_" => CelNode::And,
            "_||_" => CelNode::Or,
            "_==_" => CelNode::Equal,
            "_!=_" => CelNode::NotEqual,
            "@in" => CelNode::In,
            "_[_]" => CelNode::Index,
            "_[?_]" => CelNode::OptionalIndex,
            "_<_" => |one, two| CelNode::Compare(ComparisonOperator::Less, one, two),
            "_<=_" => |one, two| CelNode::Compare(ComparisonOperator::LessOrEqual, one, two),
            "_>_" => |one, two| CelNode::Compare(ComparisonOperator::Greater, one, two),
            "_>=_" => |one, two| CelNode::Compare(ComparisonOperator::GreaterOrEqual, one, two),
            "_+_" => |one, two| CelNode::Arithmetic(ArithmeticOperator::Add, one, two),
            "_-_" => |one, two| CelNode::Arithmetic(ArithmeticOperator::Subtract, one, two),
            "_*_" => |one, two| CelNode::Arithmetic(ArithmeticOperator::Multiply, one, two),
            "_/_" => |one, two| CelNode::Arithmetic(ArithmeticOperator::Divide, one, two),
            "_%_" => |one, two| CelNode::Arithmetic(ArithmeticOperator::Remainder, one, two),
            _ => return Ok(None),
        };
        Ok(Some(make(self.boxed(left)?, self.boxed(right)?)))
    }

    fn function(&mut self, call: &CallExpr) -> Result<CelNode, ExpressionMistake> {
        let is_name = |name: &String| self.locals.contains(name) || self.names.roots.contains(&name.as_str());
        let of_library = qualified_name(call).filter(|full| is_known(full));
        let of_library =
            of_library.filter(|full| !full.split('.').next().is_some_and(|it| is_name(&it.to_owned())));
        let (name, target) = match &of_library {
            Some(full) => (full.as_str(), None),
            None => (call.func_name.as_str(), call.target.as_deref()),
        };
        let args = target.into_iter().chain(&call.args).map(|arg| self.node(arg));
        let args: Vec<CelNode> = args.collect::<Result<_, _>>()?;
        let second = match args.get(1) {
            Some(CelNode::Literal(CelLiteral::Text(text))) => Some(&**text),
            _ => None,
        };
        if let ("matches", Some(pattern)) = (name, second) {
            self.patterns += compile_cost(pattern);
            if self.patterns > MOST_REGEX_STEPS {
                let message = "its regular expressions are too large together".to_owned();
                return Err(ExpressionMistake::at(self.text, "matches", message));
            }
        }
        match functions::native_function(name, target.is_some(), args.len(), second) {
            Some(Ok(native)) => Ok(CelNode::Native(native, args)),
            Some(Err(message)) => Err(ExpressionMistake::at(self.text, &call.func_name, message)),
            None => match LibraryCall::of(name, target.is_some(), args.len()).filter(|_| is_known(name)) {
                Some(library) => Ok(CelNode::Library(Box::new(library), args)),
                None => {
                    let message = format!("there is no function `{name}`");
                    Err(ExpressionMistake::at(self.text, &call.func_name, message))
                }
            },
        }
    }
}

fn literal_of(literal: &LiteralValue) -> CelLiteral {
    match literal {
        LiteralValue::Boolean(it) => CelLiteral::Bool(*it.inner()),
        LiteralValue::Bytes(it) => CelLiteral::Bytes(it.inner().to_vec()),
        LiteralValue::Double(it) => CelLiteral::Double(*it.inner()),
        LiteralValue::Int(it) => CelLiteral::Int(*it.inner()),
        LiteralValue::Null => CelLiteral::Null,
        LiteralValue::String(it) => CelLiteral::Text(it.inner().into()),
        LiteralValue::UInt(it) => CelLiteral::Uint(*it.inner()),
    }
}
