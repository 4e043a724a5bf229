//! Calls single functions of the Kubernetes libraries, with copied values.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, ExecutionError, Program, Value as Other};

use super::meter::{CelMeter, EvaluationFailure};
use super::regex_cost::{RegexCost, match_cost, translate_re2, whole_steps};
use super::value::{CelList, CelValue, bytes_of};
use crate::model::catch_panic;

thread_local! {
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// Native functions that the library lacks.
const NATIVE_NAMES: [&str; 5] = ["bool", "dyn", "optMap", "optFlatMap", "type"];

pub fn with_functions<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    FUNCTIONS.with(run)
}

/// A function exists if a call without arguments fails for another reason.
pub fn is_known(name: &str) -> bool {
    let called = || {
        let program = Program::compile(&format!("{name}()")).ok()?;
        let result = with_functions(|functions| program.execute(functions));
        Some(matches!(result, Err(ExecutionError::UndeclaredReference(_))))
    };
    NATIVE_NAMES.contains(&name) || !catch_panic(called).flatten().unwrap_or(false)
}

/// A call with the variables `a0`, `a1` … as arguments.
#[derive(Debug)]
pub struct LibraryCall {
    name: Box<str>,
    program: Program,
    names: Vec<String>,
}

impl LibraryCall {
    /// The first argument of a method is its target. `None`: there is no such function.
    pub fn of(name: &str, is_method: bool, count: usize) -> Option<Self> {
        let names: Vec<String> = (0..count).map(|index| format!("a{index}")).collect();
        let text = match names.split_first() {
            Some((first, rest)) if is_method => format!("{first}.{name}({})", rest.join(", ")),
            _ => format!("{name}({})", names.join(", ")),
        };
        let program = catch_panic(|| Program::compile(&text).ok()).flatten()?;
        Some(Self { name: name.into(), program, names })
    }

    pub fn call<'a>(
        &self,
        args: &[CelValue<'a>],
        meter: &mut CelMeter,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        if let Some(found) = self.corrected_result(args, meter)? {
            return Ok(found);
        }
        const OF_A_CALL: u64 = 20;
        meter.steps(OF_A_CALL)?;
        let mut copied = args.iter().map(|arg| arg.for_library(meter)).collect::<Result<Vec<_>, _>>()?;
        self.charge(args, meter)?;
        if let ("find" | "findAll", Some(Other::String(pattern))) = (&*self.name, copied.get_mut(1)) {
            *pattern = Arc::new(translate_re2(pattern));
        }
        let result = catch_panic(|| {
            with_functions(|functions| {
                let mut scope = functions.new_inner_scope();
                for (name, value) in self.names.iter().zip(copied) {
                    scope.add_variable_from_value(name.as_str(), value);
                }
                self.program.execute(&scope)
            })
        });
        match result {
            Some(Ok(value)) => CelValue::from_library(value, meter),
            // The library's message repeats the values.
            _ => Err(EvaluationFailure::Message(
                format!("the function `{}` does not take these values", self.name).into(),
            )),
        }
    }

    /// Corrects results where the library differs from the API server.
    fn corrected_result<'a>(
        &self,
        args: &[CelValue<'a>],
        meter: &mut CelMeter,
    ) -> Result<Option<CelValue<'a>>, EvaluationFailure> {
        let text = |index: usize| args.get(index).and_then(CelValue::as_str).unwrap_or_default();
        let is_refused = match &*self.name {
            "quantity" | "isQuantity" => text(0).contains(char::is_whitespace),
            // A prefix length with a leading zero.
            "cidr" | "isCIDR" => {
                text(0).split_once('/').is_some_and(|(_, it)| it.len() > 1 && it.starts_with('0'))
            }
            // The API server splits into characters.
            "split" if args.len() == 2 && text(1).is_empty() => {
                let letters =
                    text(0).chars().map(|it| CelValue::owned_text(it.encode_utf8(&mut [0; 4]), meter));
                let letters = letters.collect::<Result<Vec<_>, _>>()?;
                return Ok(Some(CelValue::List(CelList::Owned(Rc::new(letters)))));
            }
            // A text that overflows is no integer.
            "isInteger" => {
                static WHOLE: LazyLock<Option<LibraryCall>> =
                    LazyLock::new(|| LibraryCall::of("asInteger", true, 1));
                let whole = WHOLE.as_ref().map(|it| it.call(args, meter));
                return Ok(whole.map(|it| CelValue::Bool(it.is_ok())));
            }
            // A negative count means no limit.
            "replace" if matches!(args, [.., CelValue::Int(count)] if *count < 0) => {
                static ALL: LazyLock<Option<LibraryCall>> =
                    LazyLock::new(|| LibraryCall::of("replace", true, 3));
                let Some((_, all)) = args.split_last().filter(|(_, all)| all.len() == 3) else {
                    return Ok(None);
                };
                return ALL.as_ref().map(|it| it.call(all, meter)).transpose();
            }
            _ => false,
        };
        Ok(match (&*self.name, is_refused) {
            (_, false) => None,
            ("isQuantity" | "isCIDR", _) => Some(CelValue::Bool(false)),
            _ => {
                return Err(EvaluationFailure::Message(
                    format!("the function `{}` does not take these values", self.name).into(),
                ));
            }
        })
    }

    /// Charges the cost before the call; the size of the arguments is charged already.
    fn charge(&self, args: &[CelValue<'_>], meter: &mut CelMeter) -> Result<(), EvaluationFailure> {
        let sizes: Vec<usize> = args.iter().map(approximate_bytes).collect();
        let total: usize = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
        let product =
            |count: usize| sizes.iter().take(count).fold(1_usize, |all, size| all.saturating_mul(1 + size));
        match &*self.name {
            "join" | "replace" => meter.charge_memory(product(usize::MAX)),
            "indexOf" | "lastIndexOf" => meter.charge_reading(product(2)),
            "sets.contains" | "sets.equivalent" | "sets.intersects" => meter.steps(to_steps(product(2)) / 32),
            "distinct" | "sort" | "isSorted" | "flatten" | "reverse" => {
                meter.steps(to_steps(total.saturating_mul(total)) / 32)
            }
            "find" | "findAll" => {
                let text = args.first().and_then(CelValue::as_str).unwrap_or_default();
                let pattern =
                    args.get(1).and_then(CelValue::as_str).map_or_else(RegexCost::largest, RegexCost::of);
                meter.steps(whole_steps(pattern.compile_steps + match_cost(text, pattern)))
            }
            "lists.range" => match args.first() {
                Some(CelValue::Int(count)) => {
                    meter.charge_memory(usize::try_from(*count).unwrap_or(0).saturating_mul(ITEM_BYTES))
                }
                _ => Ok(()),
            },
            _ => meter.charge_reading(total.saturating_mul(8)),
        }
    }
}

const ITEM_BYTES: usize = 32;

/// Approximate bytes of a value that was copied already, so it is bounded.
fn approximate_bytes(value: &CelValue<'_>) -> usize {
    match value {
        CelValue::Text(text) => text.as_str().len(),
        CelValue::List(list) => {
            (0..list.len()).filter_map(|index| list.get(index)).map(|item| 1 + approximate_bytes(&item)).sum()
        }
        CelValue::Map(map) => {
            map.iter().map(|(key, item)| 1 + approximate_bytes(&key) + approximate_bytes(&item)).sum()
        }
        CelValue::Other(other) => bytes_of(other),
        _ => ITEM_BYTES,
    }
}

fn to_steps(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
