//! Evaluates macros with two variables: index and item of a list, key and value of a map.

use std::rc::Rc;

use super::evaluate::{ITEM, Run};
use super::meter::Failure;
use super::tree::Node;
use super::value::{List, Map, Value, equal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Macro {
    All,
    Exists,
    ExistsOne,
    TransformList,
    TransformMap,
    TransformMapEntry,
}

impl Macro {
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
pub struct Pairs {
    pub of: Macro,
    pub range: Node,
    /// In filter and body, the variables are the last two locals.
    pub filter: Option<Node>,
    pub body: Node,
}

impl<'a> Run<'_, 'a> {
    pub(super) fn pairs(&mut self, it: &'a Pairs) -> Result<Value<'a>, Failure> {
        let entries: Vec<(Value<'a>, Value<'a>)> = match self.value(&it.range)? {
            Value::Map(map) => map.entries(self.meter)?,
            Value::List(list) => {
                self.meter.hold(2 * ITEM * list.len())?;
                let item = |index| Some((Value::Int(i64::try_from(index).ok()?), list.get(index)?));
                (0..list.len()).filter_map(item).collect()
            }
            other => {
                return Err(Failure::Said(format!("a {} is no list and no map", other.type_name()).into()));
            }
        };
        match it.of {
            Macro::All | Macro::Exists => self.quantified(it, entries),
            Macro::ExistsOne => {
                let mut count = 0;
                for (key, value) in entries {
                    count += usize::from(self.turn(key, value, |run| run.boolean(&it.body, "existsOne"))?);
                }
                Ok(Value::Bool(count == 1))
            }
            Macro::TransformList | Macro::TransformMap | Macro::TransformMapEntry => {
                self.transformed(it, entries)
            }
        }
    }

    /// A deciding turn is enough, even if another one fails.
    fn quantified(
        &mut self,
        it: &'a Pairs,
        entries: Vec<(Value<'a>, Value<'a>)>,
    ) -> Result<Value<'a>, Failure> {
        let decides = it.of == Macro::Exists;
        let mut failed = None;
        for (key, value) in entries {
            match self.turn(key, value, |run| run.boolean(&it.body, "all")) {
                Ok(found) if found == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn transformed(
        &mut self,
        it: &'a Pairs,
        entries: Vec<(Value<'a>, Value<'a>)>,
    ) -> Result<Value<'a>, Failure> {
        let (mut items, mut made): (Vec<Value<'a>>, Vec<(Value<'a>, Value<'a>)>) = (Vec::new(), Vec::new());
        for (key, value) in entries {
            let known = key.clone();
            let transformed = self.turn(key, value, |run| {
                let wanted = match &it.filter {
                    Some(filter) => run.boolean(filter, "transformList")?,
                    None => true,
                };
                wanted.then(|| run.value(&it.body)).transpose()
            })?;
            let Some(value) = transformed else { continue };
            self.meter.hold(2 * ITEM)?;
            match (it.of, value) {
                (Macro::TransformList, value) => items.push(value),
                (Macro::TransformMapEntry, Value::Map(map)) => {
                    for (key, value) in map.entries(self.meter)? {
                        for (known, _) in &made {
                            if equal(known, &key, self.meter)? {
                                return Err(Failure::Said("a map has a key twice".into()));
                            }
                        }
                        made.push((key, value));
                    }
                }
                (Macro::TransformMapEntry, _) => return Err(Failure::NoOverload("transformMapEntry")),
                (_, value) => made.push((known, value)),
            }
        }
        Ok(match it.of {
            Macro::TransformList => Value::List(List::Owned(Rc::new(items))),
            _ => Value::Map(Map::Owned(Rc::new(made))),
        })
    }

    fn turn<T>(
        &mut self,
        key: Value<'a>,
        value: Value<'a>,
        body: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let depth = self.locals.len();
        self.locals.extend([Ok(key), Ok(value)]);
        let result = body(self);
        self.locals.truncate(depth);
        result
    }
}
