//! The Lua sandbox of a script.
//!
//! It has no files, processes, random numbers, debugger, metatables, coroutines or other code: only the listed
//! functions exist, also as methods of texts (`(''):dump`). Instructions and bytes are counted. When either runs out,
//! the script ends with an error that it cannot catch ([`ScriptMeter`]). Functions with much work in one instruction are
//! charged separately ([`bounded_functions`]). Every object gets a fresh environment, so no state carries over.

use std::sync::Arc;

use mlua::{
    Error, Function, HookTriggers, Lua, LuaOptions, MultiValue, Result, StdLib, Table, Value, VmState,
};

use super::meter::{MEMORY, OUT_OF_MEMORY, ScriptMeter};
use super::{bounded_functions, clock};

/// The hook counts every so many instructions.
const STEP: u32 = 100;

const PLAIN: [&str; 11] = [
    "assert", "error", "ipairs", "next", "rawequal", "rawget", "rawlen", "rawset", "select", "tonumber",
    "tostring",
];
const STRING: [&str; 14] = [
    "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub",
    "upper", "pack",
];
const TABLE: [&str; 8] = ["concat", "insert", "move", "pack", "remove", "sort", "unpack", "getn"];
const MATH: [&str; 16] = [
    "abs",
    "ceil",
    "floor",
    "fmod",
    "huge",
    "max",
    "maxinteger",
    "min",
    "mininteger",
    "modf",
    "pi",
    "sqrt",
    "tointeger",
    "type",
    "ult",
    "exp",
];

/// One interpreter for one script.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    meter: Arc<ScriptMeter>,
    /// Our own functions by name.
    own: Vec<(&'static str, Function)>,
    /// Of `os`.
    clock: Vec<(&'static str, Function)>,
}

impl Interpreter {
    pub fn new() -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::new())?;
        let meter = Arc::new(ScriptMeter::new());
        let mut own = vec![("pairs", pairs(&lua)?), ("pcall", pcall(&lua, &meter)?)];
        own.push(("print", lua.create_function(|_, _: MultiValue| Ok(()))?));
        bounded_functions::bound_strings(&lua, &meter)?;
        only_listed(&lua)?;
        bounded_functions::bound_tables(&lua, &meter)?;
        let clock = clock::functions(&lua, &meter)?;
        lua.set_memory_limit(MEMORY)?;
        Ok(Self { lua, meter, own, clock })
    }

    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    pub fn environment(&self) -> Result<Table> {
        let globals = self.lua.globals();
        let environment = self.lua.create_table()?;
        for name in PLAIN.into_iter().chain(["type"]) {
            environment.raw_set(name, globals.raw_get::<Value>(name)?)?;
        }
        for (name, function) in &self.own {
            environment.raw_set(*name, function)?;
        }
        for (name, functions) in [("string", &STRING[..]), ("table", &TABLE), ("math", &MATH)] {
            let (library, copy) = (globals.raw_get::<Table>(name)?, self.lua.create_table()?);
            for function in functions {
                copy.raw_set(*function, library.raw_get::<Value>(*function)?)?;
            }
            environment.raw_set(name, copy)?;
        }
        let os = self.lua.create_table()?;
        for (name, function) in &self.clock {
            os.raw_set(*name, function)?;
        }
        environment.raw_set("os", os)?;
        environment.raw_set("unpack", globals.raw_get::<Table>("table")?.raw_get::<Value>("unpack")?)?;
        environment.raw_set("_G", &environment)?;
        Ok(environment)
    }

    /// The memory in use now is not the script's: it has not begun.
    pub fn begin(&self) {
        self.meter.begin(self.lua.used_memory());
    }

    /// Runs `work` within the limits, and frees its memory. The caller must serialize calls.
    pub fn run<T>(&self, work: impl FnOnce(&Lua) -> Result<T>) -> std::result::Result<T, String> {
        self.meter.reset();
        self.begin();
        // Without a collector the total allocation is bounded, and so is the time for it. When memory runs out, the
        // interpreter collects on its own: then the witness is gone.
        self.lua.gc_stop();
        let done = self.watched().and_then(|()| work(&self.lua));
        self.lua.remove_hook();
        self.lua.gc_restart();
        let _ = self.lua.gc_collect();
        done.map_err(|error| match (self.meter.exceeded_limit(), error) {
            (Some(limit), _) => limit.to_owned(),
            (None, error) if is_of_memory(&error) => OUT_OF_MEMORY.to_owned(),
            (None, error) => message(&error),
        })
    }

    fn watched(&self) -> Result<()> {
        let witness = self.lua.create_table()?;
        let mode = self.lua.create_table_from([("__mode", "v")])?;
        witness.set_metatable(Some(mode))?;
        witness.raw_set(1, self.lua.create_table()?)?;
        let meter = Arc::clone(&self.meter);
        let triggers = HookTriggers::new().every_nth_instruction(STEP);
        self.lua.set_hook(triggers, move |lua, _| {
            if witness.raw_get::<Value>(1)?.is_nil() {
                meter.set_out_of_memory();
            }
            meter.charge(u64::from(STEP) * meter.weight(lua.used_memory()))?;
            Ok(VmState::Continue)
        })
    }
}

/// A text finds methods in the library itself, not in the environment's copy.
fn only_listed(lua: &Lua) -> Result<()> {
    let library: Table = lua.globals().raw_get("string")?;
    let names: Vec<String> =
        library.pairs::<String, Value>().map(|entry| entry.map(|(name, _)| name)).collect::<Result<_>>()?;
    for name in names.iter().filter(|name| !STRING.contains(&name.as_str())) {
        library.raw_remove(name.as_str())?;
    }
    Ok(())
}

/// In key order: the interpreter's own order differs in every process.
fn pairs(lua: &Lua) -> Result<Function> {
    let source = r"
        local next, sort, type = ...
        return function(table)
            local keys, count = {}, 0
            for key in next, table do
                count = count + 1
                keys[count] = key
            end
            local function before(one, other)
                local of_one, of_other = type(one), type(other)
                if of_one ~= of_other then return of_one < of_other end
                if of_one == 'boolean' then return one and not other end
                if of_one ~= 'number' and of_one ~= 'string' then return false end
                return one < other
            end
            sort(keys, before)
            local at = 0
            return function()
                while at < count do
                    at = at + 1
                    local key = keys[at]
                    local value = table[key]
                    if value ~= nil then return key, value end
                end
            end, table, nil
        end";
    let globals = lua.globals();
    let sort: Value = globals.raw_get::<Table>("table")?.raw_get("sort")?;
    let (next, kind): (Value, Value) = (globals.raw_get("next")?, globals.raw_get("type")?);
    lua.load(source).set_name("=pairs").call((next, sort, kind))
}

/// Errors of limits are not caught.
fn pcall(lua: &Lua, meter: &Arc<ScriptMeter>) -> Result<Function> {
    let meter = Arc::clone(meter);
    lua.create_function(move |lua, (function, arguments): (Function, MultiValue)| {
        match function.call::<MultiValue>(arguments) {
            Ok(mut values) => {
                values.push_front(Value::Boolean(true));
                Ok(values)
            }
            Err(error) if is_of_memory(&error) => {
                meter.set_out_of_memory();
                Err(Error::runtime(OUT_OF_MEMORY))
            }
            Err(error) => {
                meter.charge(0)?;
                let words = Value::String(lua.create_string(message(&error))?);
                Ok(MultiValue::from_iter([Value::Boolean(false), words]))
            }
        }
    })
}

/// Also inside our own functions.
fn is_of_memory(error: &Error) -> bool {
    match error {
        Error::CallbackError { cause, .. } => is_of_memory(cause),
        other => matches!(other, Error::MemoryError(_)),
    }
}

/// The error without its trace.
pub fn message(error: &Error) -> String {
    match error {
        Error::CallbackError { cause, .. } => message(cause),
        Error::RuntimeError(text) => text.lines().next().unwrap_or_default().to_owned(),
        Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}
