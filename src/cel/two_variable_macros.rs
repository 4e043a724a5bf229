//! Evaluates macros with two variables: index and item of a list, key and value of a map.

use std::rc::Rc;

use super::evaluate::ExpressionRun;
use super::meter::EvaluationFailure;
use super::node::{TwoVariableLoop, TwoVariableMacro};
use super::value::{CelList, CelMap, CelValue, ITEM_BYTES, equal};

impl<'a> ExpressionRun<'_, 'a> {
    pub(super) fn evaluate_two_variables(
        &mut self,
        it: &'a TwoVariableLoop,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        let entries: Vec<(CelValue<'a>, CelValue<'a>)> = match self.value(&it.range)? {
            CelValue::Map(map) => map.entries(self.meter)?,
            CelValue::List(list) => {
                self.meter.charge_memory(2 * ITEM_BYTES * list.len())?;
                let item = |index| Some((CelValue::Int(i64::try_from(index).ok()?), list.get(index)?));
                (0..list.len()).filter_map(item).collect()
            }
            other => {
                return Err(EvaluationFailure::Message(
                    format!("a {} is neither a list nor a map", other.type_name()).into(),
                ));
            }
        };
        match it.kind {
            TwoVariableMacro::All | TwoVariableMacro::Exists => self.evaluate_quantifier(it, entries),
            TwoVariableMacro::ExistsOne => {
                let mut count = 0;
                for (key, value) in entries {
                    count += usize::from(
                        self.with_variables(key, value, |run| run.boolean(&it.body, "existsOne"))?,
                    );
                }
                Ok(CelValue::Bool(count == 1))
            }
            TwoVariableMacro::TransformList
            | TwoVariableMacro::TransformMap
            | TwoVariableMacro::TransformMapEntry => self.evaluate_transform(it, entries),
        }
    }

    /// A deciding turn is enough, even if another one fails.
    fn evaluate_quantifier(
        &mut self,
        it: &'a TwoVariableLoop,
        entries: Vec<(CelValue<'a>, CelValue<'a>)>,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        let decides = it.kind == TwoVariableMacro::Exists;
        let mut failed = None;
        for (key, value) in entries {
            match self.with_variables(key, value, |run| run.boolean(&it.body, "all")) {
                Ok(found) if found == decides => return Ok(CelValue::Bool(decides)),
                Ok(_) => {}
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(CelValue::Bool(!decides)), Err)
    }

    fn evaluate_transform(
        &mut self,
        it: &'a TwoVariableLoop,
        entries: Vec<(CelValue<'a>, CelValue<'a>)>,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        let (mut items, mut made): (Vec<CelValue<'a>>, Vec<(CelValue<'a>, CelValue<'a>)>) =
            (Vec::new(), Vec::new());
        for (key, value) in entries {
            let known = key.clone();
            let transformed = self.with_variables(key, value, |run| {
                let wanted = match &it.filter {
                    Some(filter) => run.boolean(filter, "transformList")?,
                    None => true,
                };
                wanted.then(|| run.value(&it.body)).transpose()
            })?;
            let Some(value) = transformed else { continue };
            self.meter.charge_memory(2 * ITEM_BYTES)?;
            match (it.kind, value) {
                (TwoVariableMacro::TransformList, value) => items.push(value),
                (TwoVariableMacro::TransformMapEntry, CelValue::Map(map)) => {
                    for (key, value) in map.entries(self.meter)? {
                        for (known, _) in &made {
                            if equal(known, &key, self.meter)? {
                                return Err(EvaluationFailure::Message("a map has a key twice".into()));
                            }
                        }
                        made.push((key, value));
                    }
                }
                (TwoVariableMacro::TransformMapEntry, _) => {
                    return Err(EvaluationFailure::NoOverload("transformMapEntry"));
                }
                (_, value) => made.push((known, value)),
            }
        }
        Ok(match it.kind {
            TwoVariableMacro::TransformList => CelValue::List(CelList::Owned(Rc::new(items))),
            _ => CelValue::Map(CelMap::Owned(Rc::new(made))),
        })
    }

    fn with_variables<T>(
        &mut self,
        key: CelValue<'a>,
        value: CelValue<'a>,
        body: impl FnOnce(&mut Self) -> Result<T, EvaluationFailure>,
    ) -> Result<T, EvaluationFailure> {
        let depth = self.locals.len();
        self.locals.extend([Ok(key), Ok(value)]);
        let result = body(self);
        self.locals.truncate(depth);
        result
    }
}
