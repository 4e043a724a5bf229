//! The functions of Kubernetes' libraries, called one by one with values that are copied for them.

use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, ExecutionError, Program, Value as Other};

use super::functions::{OWN, matching, steps};
use super::meter::{Failure, Meter};
use super::pattern::{Pattern, of_re2};
use super::value::Value;
use crate::model::unless_it_panics;

thread_local! {
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// All functions of the libraries.
pub fn with_functions<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    FUNCTIONS.with(run)
}

/// A function of the libraries is known if calling it without anything fails for another reason.
pub fn is_known(name: &str) -> bool {
    let called = || {
        let program = Program::compile(&format!("{name}()")).ok()?;
        let result = with_functions(|functions| program.execute(functions));
        Some(matches!(result, Err(ExecutionError::UndeclaredReference(_))))
    };
    OWN.contains(&name) || !unless_it_panics(called).flatten().unwrap_or(false)
}

/// A call whose arguments are the variables `a0`, `a1` …
#[derive(Debug)]
pub struct LibraryCall {
    name: Box<str>,
    program: Program,
    names: Vec<String>,
}

impl LibraryCall {
    /// Of a method, the first argument is what it is called of. `None`: there is no such function.
    pub fn of(name: &str, is_method: bool, count: usize) -> Option<Self> {
        let names: Vec<String> = (0..count).map(|index| format!("a{index}")).collect();
        let text = match names.split_first() {
            Some((first, rest)) if is_method => format!("{first}.{name}({})", rest.join(", ")),
            _ => format!("{name}({})", names.join(", ")),
        };
        let program = unless_it_panics(|| Program::compile(&text).ok()).flatten()?;
        Some(Self { name: name.into(), program, names })
    }

    pub fn call<'a>(&self, args: &[Value<'a>], meter: &mut Meter) -> Result<Value<'a>, Failure> {
        const OF_A_CALL: u64 = 20;
        meter.steps(OF_A_CALL)?;
        let mut copied = args.iter().map(|arg| arg.for_library(meter)).collect::<Result<Vec<_>, _>>()?;
        self.pay(args, meter)?;
        if let ("find" | "findAll", Some(Other::String(pattern))) = (&*self.name, copied.get_mut(1)) {
            *pattern = Arc::new(of_re2(pattern));
        }
        let result = unless_it_panics(|| {
            with_functions(|functions| {
                let mut scope = functions.new_inner_scope();
                for (name, value) in self.names.iter().zip(copied) {
                    scope.add_variable_from_value(name.as_str(), value);
                }
                self.program.execute(&scope)
            })
        });
        match result {
            Some(Ok(value)) => Value::from_library(value, meter),
            // Its words repeat the values.
            _ => {
                Err(Failure::Said(format!("the function `{}` does not take these values", self.name).into()))
            }
        }
    }

    /// Beyond the size of the arguments, which is paid already: before it is called.
    fn pay(&self, args: &[Value<'_>], meter: &mut Meter) -> Result<(), Failure> {
        let sizes: Vec<usize> = args.iter().map(size).collect();
        let total: usize = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
        let product =
            |count: usize| sizes.iter().take(count).fold(1_usize, |all, size| all.saturating_mul(1 + size));
        match &*self.name {
            "join" | "replace" => meter.hold(product(usize::MAX)),
            "format" => meter.hold(total.saturating_mul(8).saturating_add(digits(args))),
            "indexOf" | "lastIndexOf" => meter.look(product(2)),
            "sets.contains" | "sets.equivalent" | "sets.intersects" => meter.steps(whole(product(2)) / 32),
            "distinct" | "sort" | "isSorted" | "flatten" | "reverse" => {
                meter.steps(whole(total.saturating_mul(total)) / 32)
            }
            "find" | "findAll" => {
                let text = args.first().and_then(Value::as_str).unwrap_or_default();
                let pattern = args.get(1).and_then(Value::as_str).map_or_else(Pattern::largest, Pattern::of);
                meter.steps(steps(pattern.compiling + matching(text, pattern)))
            }
            "lists.range" => match args.first() {
                Some(Value::Int(count)) => {
                    meter.hold(usize::try_from(*count).unwrap_or(0).saturating_mul(ITEM))
                }
                _ => Ok(()),
            },
            _ => meter.look(total.saturating_mul(8)),
        }
    }
}

const ITEM: usize = 32;

/// In bytes, about; of what was copied already, so it ends.
fn size(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.as_str().len(),
        Value::List(list) => {
            (0..list.len()).filter_map(|index| list.get(index)).map(|item| 1 + size(&item)).sum()
        }
        Value::Map(map) => map.entries().iter().map(|(key, item)| 1 + size(key) + size(item)).sum(),
        _ => ITEM,
    }
}

/// What `format` writes of numbers: `%.65535f` writes as many decimals.
fn digits(args: &[Value<'_>]) -> usize {
    const DIGITS: usize = 310;
    const DECIMALS: usize = 65_535;
    let text = args.first().and_then(Value::as_str).unwrap_or_default();
    let decimals = text.split("%.").skip(1).map(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<usize>().unwrap_or(DECIMALS)
    });
    text.matches('%').count().saturating_mul(DIGITS.saturating_add(decimals.max().unwrap_or(0)))
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
