//! The nodes of a compiled expression.

use super::functions::NativeFunction;
use super::library::LibraryCall;

#[derive(Debug)]
pub enum CelLiteral {
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
pub enum ComparisonOperator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub enum CelNode {
    Literal(CelLiteral),
    Root(usize),
    Variable(usize),
    /// A local of a macro such as `all`, counted from the outermost.
    Local(usize),
    Field(Box<CelNode>, Box<str>),
    OptionalField(Box<CelNode>, Box<str>),
    Has(Box<CelNode>, Box<str>),
    Index(Box<CelNode>, Box<CelNode>),
    OptionalIndex(Box<CelNode>, Box<CelNode>),
    And(Box<CelNode>, Box<CelNode>),
    Or(Box<CelNode>, Box<CelNode>),
    Not(Box<CelNode>),
    Negate(Box<CelNode>),
    NotStrictlyFalse(Box<CelNode>),
    Conditional(Box<CelNode>, Box<CelNode>, Box<CelNode>),
    Equal(Box<CelNode>, Box<CelNode>),
    NotEqual(Box<CelNode>, Box<CelNode>),
    Compare(ComparisonOperator, Box<CelNode>, Box<CelNode>),
    Arithmetic(ArithmeticOperator, Box<CelNode>, Box<CelNode>),
    In(Box<CelNode>, Box<CelNode>),
    /// Each with whether it is optional.
    List(Vec<(CelNode, bool)>),
    Map(Vec<(CelNode, CelNode, bool)>),
    Loop(Box<CelLoop>),
    TwoVariables(Box<TwoVariableLoop>),
    /// One turn of `map` or `filter`: appends to the list in this local.
    Append(usize, Box<CelNode>),
    /// `optMap` and `optFlatMap`: target, body with one more local, and whether the body returns an optional.
    OptionalMap(Box<CelNode>, Box<CelNode>, bool),
    Native(NativeFunction, Vec<CelNode>),
    Library(Box<LibraryCall>, Vec<CelNode>),
}

#[derive(Debug)]
pub struct CelLoop {
    pub range: CelNode,
    pub start: CelNode,
    /// In these three, the accumulator and the item are locals.
    pub condition: CelNode,
    pub step: CelNode,
    pub result: CelNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoVariableMacro {
    All,
    Exists,
    ExistsOne,
    TransformList,
    TransformMap,
    TransformMapEntry,
}

impl TwoVariableMacro {
    /// `count` includes the two variables. With four arguments the third is a filter.
    pub fn of(name: &str, count: usize) -> Option<Self> {
        Some(match (name, count) {
            ("all", 3) => Self::All,
            ("exists", 3) => Self::Exists,
            ("existsOne" | "exists_one", 3) => Self::ExistsOne,
            ("transformList", 3 | 4) => Self::TransformList,
            ("transformMap", 3 | 4) => Self::TransformMap,
            ("transformMapEntry", 3 | 4) => Self::TransformMapEntry,
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub struct TwoVariableLoop {
    pub kind: TwoVariableMacro,
    pub range: CelNode,
    /// In filter and body, the variables are the last two locals.
    pub filter: Option<CelNode>,
    pub body: CelNode,
}
