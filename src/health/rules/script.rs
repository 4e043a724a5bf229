//! Health rules in Lua in the form of Argo CD: the global `obj` is the object, `return {status=…, message=…}`.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Value as Lue};
use parking_lot::Mutex;
use serde_json::Value;

use super::super::json_fields::sentence;
use super::interpreter::{self, Interpreter};
use super::meter::{OUT_OF_INSTRUCTIONS, OUT_OF_MEMORY};
use super::rule_source::{RuleMistake, RulePart};
use crate::model::{Health, HealthStatus};

/// In bytes. The longest published scripts have 10 KiB. A compiled one takes up to twenty times as much.
const LONGEST: usize = 64 * 1024;
/// After so many exceeded limits a script is not run again: others wait for it.
const STRIKES: u32 = 3;
/// Deeper than any object that an API server accepts.
const DEEPEST: usize = 200;

#[derive(Debug)]
pub struct Script {
    /// One object at a time: all callers share the interpreter, the environment of the chunk and the counters.
    judge: Mutex<ScriptRunner>,
}

#[derive(Debug)]
struct ScriptRunner {
    interpreter: Interpreter,
    chunk: Function,
    strikes: u32,
}

impl Script {
    pub fn of(file: &str, text: &str) -> Result<Self, Vec<RuleMistake>> {
        let mistake = |line, message| {
            vec![RuleMistake { source: 0, part: RulePart::Script, line, column: None, message }]
        };
        if text.len() > LONGEST {
            return Err(mistake(1, format!("{} bytes long; {LONGEST} is the most", text.len())));
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        let made = Interpreter::new().and_then(|interpreter| {
            let chunk = interpreter.lua().load(text).set_name(format!("={name}")).set_mode(ChunkMode::Text);
            let chunk = chunk.into_function()?;
            Ok((interpreter, chunk))
        });
        match made {
            Ok((interpreter, chunk)) => {
                Ok(Self { judge: Mutex::new(ScriptRunner { interpreter, chunk, strikes: 0 }) })
            }
            Err(error) => {
                let (line, message) = place(name, &interpreter::message(&error));
                Err(mistake(line, message))
            }
        }
    }

    /// `None`: no result for this object. The error says why it cannot be evaluated.
    pub fn health_of(&self, object: &Value) -> Result<Option<Health>, String> {
        let ScriptRunner { interpreter, chunk, strikes } = &mut *self.judge.lock();
        if *strikes >= STRIKES {
            return Err(format!("it reached its limits {STRIKES} times and is not run any more"));
        }
        let judged = interpreter.run(|lua| {
            let environment = interpreter.environment()?;
            environment.raw_set("obj", table(lua, object, 0)?)?;
            chunk.set_environment(environment)?;
            interpreter.begin();
            Ok(health(&chunk.call::<Lue>(())?))
        });
        // Drops the environment with its object.
        if let Ok(empty) = interpreter.lua().create_table() {
            let _ = chunk.set_environment(empty);
        }
        judged.map_err(|why| {
            if why == OUT_OF_INSTRUCTIONS || why == OUT_OF_MEMORY {
                *strikes += 1;
            }
            why
        })?
    }
}

/// `health.lua:3: unexpected symbol near '='` → 3, the rest.
fn place(name: &str, message: &str) -> (u32, String) {
    let parts = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')?.split_once(':'));
    match parts.and_then(|(line, words)| Some((line.parse().ok()?, words.trim().to_owned()))) {
        Some(found) => found,
        None => (1, message.to_owned()),
    }
}

fn table(lua: &Lua, value: &Value, depth: usize) -> mlua::Result<Lue> {
    if depth > DEEPEST {
        return Err(mlua::Error::runtime("the object is too deep"));
    }
    Ok(match value {
        Value::Null => Lue::Nil,
        Value::Bool(boolean) => Lue::Boolean(*boolean),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Lue::Integer(whole),
            // The scripts expect one number type, and 2.0 shown as 2.
            (None, Some(float)) => {
                lua.coerce_integer(Lue::Number(float))?.map_or(Lue::Number(float), Lue::Integer)
            }
            (None, None) => Lue::Nil,
        },
        Value::String(text) => Lue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for (place, item) in (1_i64..).zip(items) {
                list.raw_set(place, table(lua, item, depth + 1)?)?;
            }
            Lue::Table(list)
        }
        Value::Object(fields) => {
            let map = lua.create_table_with_capacity(0, fields.len())?;
            for (name, field) in fields {
                map.raw_set(name.as_str(), table(lua, field, depth + 1)?)?;
            }
            Lue::Table(map)
        }
    })
}

fn health(returned: &Lue) -> Result<Option<Health>, String> {
    let result = match returned {
        Lue::Table(result) if result.is_empty() => return Ok(None),
        Lue::Table(result) => result,
        Lue::Nil => return Ok(None),
        other => return Err(format!("it returned a {}, not a table", other.type_name())),
    };
    let field = |name: &str| result.raw_get::<Lue>(name).ok();
    let status = match field("status").as_ref().and_then(Lue::as_string).map(|it| it.to_string_lossy()) {
        Some(status) => match status.as_str() {
            "Healthy" => HealthStatus::Current,
            "Progressing" => HealthStatus::InProgress,
            "Degraded" => HealthStatus::Failed,
            "Suspended" => HealthStatus::Suspended,
            "Missing" => HealthStatus::NotFound,
            "Unknown" => HealthStatus::Unknown,
            other => return Err(format!("it returned the status {other:?}")),
        },
        None => return Err("it returned no status".to_owned()),
    };
    let words = match field("message") {
        Some(Lue::String(text)) => sentence(&text.to_string_lossy()),
        Some(Lue::Integer(number)) => number.to_string(),
        Some(Lue::Number(number)) => number.to_string(),
        Some(Lue::Boolean(boolean)) => boolean.to_string(),
        _ => String::new(),
    };
    Ok(Some(Health::new(status, words)))
}
