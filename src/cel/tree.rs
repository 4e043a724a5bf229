//! Compiles expressions: names become indices, operators become variants.

use std::collections::BTreeSet;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

use super::calls::qualified;
use super::functions::{self, Native};
use super::library::{LibraryCall, is_known};
use super::meter::{Failure, Meter};
use super::pairs::{Macro, Pairs};
use super::syntax::{self, Mistake};
use super::value::Value;
use super::{Scope, evaluate};

/// Steps to compile all regular expressions of one expression.
const MOST_OF_PATTERNS: u64 = 2_000_000;

/// The names that an expression may use.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    /// In the order of [`Scope::roots`].
    pub roots: &'n [&'n str],
    /// Refused names with the reason, also fields such as `request.userInfo`.
    pub refused: &'n [(&'n str, &'n str)],
    /// The fields of `variables`, in the order of [`Scope::variables`].
    pub variables: &'n [&'n str],
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    node: Node,
    /// Indices of the variables that it uses.
    pub variables: Vec<usize>,
    /// Whether it uses each root.
    pub roots: Vec<bool>,
    /// The longest field path of the first root that it reads: `spec.template.spec`.
    pub field: Option<String>,
    /// The cost of compiling its regular expressions, in steps.
    pub patterns: u64,
}

impl Program {
    pub fn of(text: &str, names: Names<'_>) -> Result<Self, Vec<Mistake>> {
        let parsed = syntax::parsed(text, syntax::with_optionals, |parsed| parsed)?;
        let roots = vec![false; names.roots.len()];
        let mut compiler = Compiler {
            text,
            names,
            locals: Vec::new(),
            used: BTreeSet::new(),
            roots,
            field: None,
            patterns: 0,
        };
        let node = compiler.node(&parsed).map_err(|mistake| vec![mistake])?;
        let Compiler { used, roots, field, patterns, .. } = compiler;
        Ok(Self { node, variables: used.into_iter().collect(), roots, field, patterns })
    }

    pub fn value<'a>(&'a self, scope: &Scope<'a>, meter: &mut Meter) -> Result<Value<'a>, Failure> {
        evaluate::value(&self.node, scope, meter)
    }

    /// The expression must be a boolean.
    pub fn holds<'a>(&'a self, scope: &Scope<'a>, meter: &mut Meter) -> Result<bool, Failure> {
        match self.value(scope, meter)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(Failure::Said(format!("it is a {}, not true or false", other.type_name()).into())),
        }
    }
}

#[derive(Debug)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Vec<u8>),
    Type(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub enum Node {
    Literal(Literal),
    Root(usize),
    Variable(usize),
    /// A local of a macro such as `all`, counted from the outermost.
    Local(usize),
    Field(Box<Node>, Box<str>),
    OptionalField(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    Index(Box<Node>, Box<Node>),
    OptionalIndex(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    NotStrictlyFalse(Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    Equal(Box<Node>, Box<Node>),
    NotEqual(Box<Node>, Box<Node>),
    Compare(Order, Box<Node>, Box<Node>),
    Arithmetic(Operator, Box<Node>, Box<Node>),
    In(Box<Node>, Box<Node>),
    /// Each with whether it is optional.
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    Pairs(Box<Pairs>),
    /// One turn of `map` or `filter`: appends to the list in this local.
    Append(usize, Box<Node>),
    /// `optMap` and `optFlatMap`: target, body with one more local, and whether the body returns an optional.
    OptionalMap(Box<Node>, Box<Node>, bool),
    Native(Native, Vec<Node>),
    Library(Box<LibraryCall>, Vec<Node>),
}

#[derive(Debug)]
pub struct Loop {
    pub range: Node,
    pub start: Node,
    /// In these three, the accumulator and the item are locals.
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

struct Compiler<'c> {
    text: &'c str,
    names: Names<'c>,
    locals: Vec<String>,
    used: BTreeSet<usize>,
    roots: Vec<bool>,
    field: Option<String>,
    patterns: u64,
}

impl Compiler<'_> {
    fn boxed(&mut self, expression: &IdedExpr) -> Result<Box<Node>, Mistake> {
        self.node(expression).map(Box::new)
    }

    fn node(&mut self, expression: &IdedExpr) -> Result<Node, Mistake> {
        Ok(match &expression.expr {
            Expr::Literal(literal) => Node::Literal(of_literal(literal)),
            Expr::Ident(name) => self.named(name)?,
            Expr::Select(select) if self.type_named(expression).is_some() && !select.test => {
                Node::Literal(Literal::Type(self.type_named(expression).unwrap_or_default()))
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
                if select.test { Node::Has(operand, field) } else { Node::Field(operand, field) }
            }
            Expr::List(list) => {
                let optional = |index: usize| list.optional_indices.contains(&index);
                let items = list.elements.iter().enumerate();
                let items = items.map(|(index, item)| Ok((self.node(item)?, optional(index))));
                Node::List(items.collect::<Result<_, Mistake>>()?)
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        Ok((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional))
                    }
                    EntryExpr::StructField(_) => Err(self.no_messages()),
                });
                Node::Map(entries.collect::<Result<_, _>>()?)
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
        functions::TYPES.iter().find(|it| **it == name).copied()
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

    fn no_messages(&self) -> Mistake {
        Mistake::at(self.text, "{", "there are no messages here; a map is {\"key\": value}".to_owned())
    }

    fn named(&mut self, name: &str) -> Result<Node, Mistake> {
        if let Some(local) = self.locals.iter().rposition(|local| local == name) {
            return Ok(Node::Local(local));
        }
        self.refuse(name)?;
        if let Some(root) = self.names.roots.iter().position(|root| *root == name) {
            if let Some(used) = self.roots.get_mut(root) {
                *used = true;
            }
            return Ok(Node::Root(root));
        }
        if let Some(of_type) = functions::TYPES.iter().find(|it| **it == name) {
            return Ok(Node::Literal(Literal::Type(of_type)));
        }
        let message = match name {
            "variables" => "write `variables.` and a name".to_owned(),
            _ => format!("there is no variable `{name}`; there are {}", self.names.roots.join(", ")),
        };
        Err(Mistake::at(self.text, name, message))
    }

    fn refuse(&self, name: &str) -> Result<(), Mistake> {
        match self.names.refused.iter().find(|(refused, _)| *refused == name) {
            Some((_, why)) => Err(Mistake::at(self.text, name, (*why).to_owned())),
            None => Ok(()),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Node, Mistake> {
        let Some(index) = self.names.variables.iter().position(|known| *known == name) else {
            let message = format!("there is no `variables.{name}`, or it comes later");
            return Err(Mistake::at(self.text, &format!("variables.{name}"), message));
        };
        self.used.insert(index);
        Ok(Node::Variable(index))
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<Node, Mistake> {
        let (range, start) = (self.node(&loops.iter_range)?, self.node(&loops.accu_init)?);
        let depth = self.locals.len();
        self.locals.extend([loops.accu_var.clone(), loops.iter_var.clone()]);
        let condition = self.node(&loops.loop_cond);
        let step = self.node(&loops.loop_step);
        let result = self.node(&loops.result);
        self.locals.truncate(depth);
        Ok(Node::Loop(Box::new(Loop { range, start, condition: condition?, step: step?, result: result? })))
    }

    fn call(&mut self, call: &CallExpr) -> Result<Node, Mistake> {
        if let (None, args) = (&call.target, call.args.as_slice()) {
            if let Some(appended) = self.appended(&call.func_name, args)? {
                return Ok(appended);
            }
            match (call.func_name.as_str(), args) {
                ("!_", [of]) => return Ok(Node::Not(self.boxed(of)?)),
                ("-_", [of]) => return Ok(Node::Negate(self.boxed(of)?)),
                ("@not_strictly_false", [of]) => return Ok(Node::NotStrictlyFalse(self.boxed(of)?)),
                ("_?_:_", [one, two, three]) => {
                    return Ok(Node::Conditional(self.boxed(one)?, self.boxed(two)?, self.boxed(three)?));
                }
                ("_?._", [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) => {
                    return Ok(Node::OptionalField(self.boxed(of)?, field.inner().into()));
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
            return Ok(Node::OptionalMap(target, body?, call.func_name == "optFlatMap"));
        }
        if let Some(node) = self.pairs(call)? {
            return Ok(node);
        }
        self.function(call)
    }

    /// The grammar expands only macros with one variable.
    fn pairs(&mut self, call: &CallExpr) -> Result<Option<Node>, Mistake> {
        let (Some(target), [key, value, rest @ ..]) = (&call.target, call.args.as_slice()) else {
            return Ok(None);
        };
        let (Expr::Ident(key), Expr::Ident(value)) = (&key.expr, &value.expr) else { return Ok(None) };
        let (filter, body) = match rest {
            [body] => (None, body),
            [filter, body] => (Some(filter), body),
            _ => return Ok(None),
        };
        let Some(of) = Macro::of(&call.func_name, call.args.len()) else { return Ok(None) };
        if key == value {
            return Err(Mistake::at(self.text, key, format!("both variables are called `{key}`")));
        }
        let range = self.node(target)?;
        let depth = self.locals.len();
        self.locals.extend([key.clone(), value.clone()]);
        let filter = filter.map(|filter| self.node(filter)).transpose();
        let body = self.node(body);
        self.locals.truncate(depth);
        Ok(Some(Node::Pairs(Box::new(Pairs { of, range, filter: filter?, body: body? }))))
    }

    /// Matches `@result + [x]`, a name that only macros use.
    fn appended(&mut self, name: &str, args: &[IdedExpr]) -> Result<Option<Node>, Mistake> {
        let ("_+_", [list, item]) = (name, args) else { return Ok(None) };
        let (Expr::Ident(list), Expr::List(items)) = (&list.expr, &item.expr) else { return Ok(None) };
        let (true, [item]) = (list.starts_with('@'), items.elements.as_slice()) else { return Ok(None) };
        let Some(local) = self.locals.iter().rposition(|local| local == list) else { return Ok(None) };
        Ok(Some(Node::Append(local, self.boxed(item)?)))
    }

    fn binary(&mut self, name: &str, left: &IdedExpr, right: &IdedExpr) -> Result<Option<Node>, Mistake> {
        let make: fn(Box<Node>, Box<Node>) -> Node = match name {
            "_&&_" => Node::And,
            "_||_" => Node::Or,
            "_==_" => Node::Equal,
            "_!=_" => Node::NotEqual,
            "@in" => Node::In,
            "_[_]" => Node::Index,
            "_[?_]" => Node::OptionalIndex,
            "_<_" => |one, two| Node::Compare(Order::Less, one, two),
            "_<=_" => |one, two| Node::Compare(Order::LessOrEqual, one, two),
            "_>_" => |one, two| Node::Compare(Order::Greater, one, two),
            "_>=_" => |one, two| Node::Compare(Order::GreaterOrEqual, one, two),
            "_+_" => |one, two| Node::Arithmetic(Operator::Add, one, two),
            "_-_" => |one, two| Node::Arithmetic(Operator::Subtract, one, two),
            "_*_" => |one, two| Node::Arithmetic(Operator::Multiply, one, two),
            "_/_" => |one, two| Node::Arithmetic(Operator::Divide, one, two),
            "_%_" => |one, two| Node::Arithmetic(Operator::Remainder, one, two),
            _ => return Ok(None),
        };
        Ok(Some(make(self.boxed(left)?, self.boxed(right)?)))
    }

    fn function(&mut self, call: &CallExpr) -> Result<Node, Mistake> {
        let is_name = |name: &String| self.locals.contains(name) || self.names.roots.contains(&name.as_str());
        let of_library = qualified(call).filter(|full| is_known(full));
        let of_library =
            of_library.filter(|full| !full.split('.').next().is_some_and(|it| is_name(&it.to_owned())));
        let (name, target) = match &of_library {
            Some(full) => (full.as_str(), None),
            None => (call.func_name.as_str(), call.target.as_deref()),
        };
        let args = target.into_iter().chain(&call.args).map(|arg| self.node(arg));
        let args: Vec<Node> = args.collect::<Result<_, _>>()?;
        if let ("matches", Some(Node::Literal(Literal::Text(pattern)))) = (name, args.get(1)) {
            self.patterns += functions::compiling(pattern);
            if self.patterns > MOST_OF_PATTERNS {
                let message = "its regular expressions are too large together".to_owned();
                return Err(Mistake::at(self.text, "matches", message));
            }
        }
        match functions::native(name, target.is_some(), &args) {
            Some(Ok(native)) => Ok(Node::Native(native, args)),
            Some(Err(message)) => Err(Mistake::at(self.text, &call.func_name, message)),
            None => match LibraryCall::of(name, target.is_some(), args.len()).filter(|_| is_known(name)) {
                Some(library) => Ok(Node::Library(Box::new(library), args)),
                None => {
                    let message = format!("there is no function `{name}`");
                    Err(Mistake::at(self.text, &call.func_name, message))
                }
            },
        }
    }
}

fn of_literal(literal: &LiteralValue) -> Literal {
    match literal {
        LiteralValue::Boolean(it) => Literal::Bool(*it.inner()),
        LiteralValue::Bytes(it) => Literal::Bytes(it.inner().to_vec()),
        LiteralValue::Double(it) => Literal::Double(*it.inner()),
        LiteralValue::Int(it) => Literal::Int(*it.inner()),
        LiteralValue::Null => Literal::Null,
        LiteralValue::String(it) => Literal::Text(it.inner().into()),
        LiteralValue::UInt(it) => Literal::Uint(*it.inner()),
    }
}
