//! What a script may use, and how much of it.
//!
//! No files, processes, chance, debugger, metatables, coroutines or other code: what is not in the lists
//! below is not there. Instructions and bytes are counted; when either runs out the script ends with an error
//! that it cannot catch. Every object gets an environment of its own, so nothing is carried from one to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use mlua::{
    Error, Function, HookTriggers, Lua, LuaOptions, MultiValue, Result, StdLib, Table, Value, VmState,
};

use super::clock;

/// Far more than any script needs: about 10 ms.
const INSTRUCTIONS: u64 = 1_000_000;
/// How often is counted.
const STEP: u32 = 100;
/// An object may be 1.5 MiB as JSON, and a few times as much in tables.
const MEMORY: usize = 16 * 1024 * 1024;
/// What matching a pattern may take at worst, in steps.
const MATCHING: f64 = 50_000_000.0;

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

pub const OUT_OF_INSTRUCTIONS: &str = "it ran for too long";
pub const OUT_OF_MEMORY: &str = "it needed too much memory";

/// One interpreter, for one script.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    meter: Arc<Meter>,
    /// Functions that are ours: by name, and those of libraries by library and name.
    own: Vec<(&'static str, Function)>,
    /// Of `os`.
    clock: Vec<(&'static str, Function)>,
}

/// An instruction may take as long as the largest text is: with every so many bytes of the script's own each counts
/// once more, and with every so many of the object.
const OWN_BYTES: usize = 16 * 1024;
const GIVEN_BYTES: usize = 256 * 1024;

#[derive(Debug, Default)]
struct Meter {
    /// Bytes in use when the script begins.
    given: AtomicUsize,
    instructions: AtomicU64,
    /// Memory ran out once, or the collector had to run, which is the same.
    memory: AtomicU64,
}

impl Meter {
    fn charge(&self, instructions: u64) -> Result<()> {
        let used = self.instructions.fetch_add(instructions, Ordering::Relaxed) + instructions;
        self.check(used)
    }

    /// How much an instruction counts with so many bytes in use.
    fn weight(&self, bytes: usize) -> u64 {
        let given = self.given.load(Ordering::Relaxed);
        let weight = 1 + bytes.saturating_sub(given) / OWN_BYTES + given / GIVEN_BYTES;
        u64::try_from(weight).unwrap_or(u64::MAX)
    }

    fn check(&self, used: u64) -> Result<()> {
        if self.memory.load(Ordering::Relaxed) > 0 {
            return Err(Error::runtime(OUT_OF_MEMORY));
        }
        if used > INSTRUCTIONS { Err(Error::runtime(OUT_OF_INSTRUCTIONS)) } else { Ok(()) }
    }

    fn is_used_up(&self) -> Option<&'static str> {
        match (self.memory.load(Ordering::Relaxed), self.instructions.load(Ordering::Relaxed)) {
            (1.., _) => Some(OUT_OF_MEMORY),
            (_, used) if used > INSTRUCTIONS => Some(OUT_OF_INSTRUCTIONS),
            _ => None,
        }
    }
}

impl Interpreter {
    pub fn new() -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::new())?;
        let meter = Arc::new(Meter::default());
        let mut own = vec![("pairs", pairs(&lua)?), ("pcall", pcall(&lua, &meter)?)];
        own.push(("print", lua.create_function(|_, _: MultiValue| Ok(()))?));
        bound_strings(&lua, &meter)?;
        bound_tables(&lua, &meter)?;
        let clock = clock::functions(&lua)?;
        lua.set_memory_limit(MEMORY)?;
        Ok(Self { lua, meter, own, clock })
    }

    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    /// A fresh environment.
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

    /// What is in use now is given: the script has still to begin.
    pub fn begin(&self) {
        self.meter.given.store(self.lua.used_memory(), Ordering::Relaxed);
    }

    /// Runs something within the limits; the memory of it is given back.
    pub fn run<T>(&self, work: impl FnOnce(&Lua) -> Result<T>) -> std::result::Result<T, String> {
        self.meter.instructions.store(0, Ordering::Relaxed);
        self.meter.memory.store(0, Ordering::Relaxed);
        self.begin();
        // Without a collector, what is allocated in all is bounded, and with it the time to fill it. When memory
        // runs out, the interpreter collects by itself: the witness is gone then.
        self.lua.gc_stop();
        let done = self.watched().and_then(|()| work(&self.lua));
        self.lua.remove_hook();
        self.lua.gc_restart();
        let _ = self.lua.gc_collect();
        done.map_err(|error| match (self.meter.is_used_up(), error) {
            (Some(limit), _) => limit.to_owned(),
            (None, Error::MemoryError(_)) => OUT_OF_MEMORY.to_owned(),
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
                meter.memory.store(1, Ordering::Relaxed);
            }
            meter.charge(u64::from(STEP) * meter.weight(lua.used_memory()))?;
            Ok(VmState::Continue)
        })
    }
}

/// In the order of the keys: the order of the interpreter is another one in every process.
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

/// Errors of limits go through.
fn pcall(lua: &Lua, meter: &Arc<Meter>) -> Result<Function> {
    let meter = Arc::clone(meter);
    lua.create_function(move |lua, (function, arguments): (Function, MultiValue)| {
        match function.call::<MultiValue>(arguments) {
            Ok(mut values) => {
                values.push_front(Value::Boolean(true));
                Ok(values)
            }
            Err(Error::MemoryError(_)) => {
                meter.memory.store(1, Ordering::Relaxed);
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

/// Patterns backtrack inside one instruction: what could take for ever is refused before it starts.
fn bound_strings(lua: &Lua, meter: &Arc<Meter>) -> Result<()> {
    let library: Table = lua.globals().raw_get("string")?;
    for name in ["find", "match", "gmatch", "gsub"] {
        let original: Function = library.raw_get(name)?;
        let meter = Arc::clone(meter);
        let bounded = lua.create_function(move |lua, arguments: MultiValue| {
            let text = |at: usize| {
                arguments.get(at).and_then(|value| lua.coerce_string(value.clone()).ok().flatten())
            };
            let (subject, pattern) = (text(0), text(1));
            let is_plain = name == "find" && arguments.get(3).is_some_and(|it| it.as_boolean() == Some(true));
            if let (Some(subject), Some(pattern)) = (subject, pattern) {
                let (length, pattern) = (subject.as_bytes().len(), pattern.as_bytes());
                if !is_plain && worst_case(length, &pattern) > MATCHING {
                    let words = format!("string.{name}: the pattern could take too long on {length} bytes");
                    return Err(Error::runtime(words));
                }
                meter.charge(u64::try_from(length / 16).unwrap_or(u64::MAX))?;
            }
            original.call::<MultiValue>(arguments)
        })?;
        library.raw_set(name, bounded)?;
    }
    Ok(())
}

/// From every start, all ways to share out the text among the repetitions.
fn worst_case(length: usize, pattern: &[u8]) -> f64 {
    let starts = if pattern.first() == Some(&b'^') { 1 } else { length + 1 };
    let number = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    let ways = (1..=repeats(pattern)).fold(1.0, |ways, one| ways * number(length + one) / number(one));
    ways.max(number(length)) * number(starts)
}

/// Items with `*`, `+` or `-` behind them. Behind a bracket or at the beginning these stand for themselves.
fn repeats(pattern: &[u8]) -> usize {
    let (mut count, mut at, mut is_item) = (0, 0, false);
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'%' => {
                at += 1;
                is_item = true;
            }
            b'[' => {
                // The first of a class is in it, whatever it is.
                let first = if pattern.get(at + 1) == Some(&b'^') { 3 } else { 2 };
                let inside = pattern.get(at + first..).unwrap_or_default();
                at += first + inside.iter().position(|byte| *byte == b']').unwrap_or(inside.len());
                is_item = true;
            }
            b'(' | b')' | b'^' => is_item = false,
            b'*' | b'+' | b'-' if is_item => {
                count += 1;
                is_item = false;
            }
            _ => is_item = true,
        }
        at += 1;
    }
    count
}

/// Functions whose time grows with a table pay for its length.
fn bound_tables(lua: &Lua, meter: &Arc<Meter>) -> Result<()> {
    let library: Table = lua.globals().raw_get("table")?;
    for name in ["concat", "insert", "move", "remove", "sort", "unpack"] {
        let original: Function = library.raw_get(name)?;
        let meter = Arc::clone(meter);
        let bounded = lua.create_function(move |_, arguments: MultiValue| {
            if let Some(Value::Table(table)) = arguments.front() {
                let length = u64::try_from(table.raw_len()).unwrap_or(u64::MAX);
                // At the end nothing is moved.
                let is_short =
                    name == "insert" && arguments.len() == 2 || name == "remove" && arguments.len() == 1;
                meter.charge(if is_short { 1 } else { length })?;
            }
            original.call::<MultiValue>(arguments)
        })?;
        library.raw_set(name, bounded)?;
    }
    // Of Lua 5.1, for which the ecosystem writes.
    let length = lua.create_function(|_, table: Table| Ok(table.raw_len()))?;
    library.raw_set("getn", length)
}

/// What went wrong, without the trace.
pub fn message(error: &Error) -> String {
    match error {
        Error::CallbackError { cause, .. } => message(cause),
        Error::RuntimeError(text) => text.lines().next().unwrap_or_default().to_owned(),
        Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_counted() {
        for (pattern, expected) in [
            ("^(%d+)-(%d+)T(%d+)$", 3),
            (".-.*x?", 2),
            ("[%w-]+[^]-]*-", 2),
            ("%-%+*", 1),
            ("", 0),
            ("-a", 0),
        ] {
            assert_eq!(repeats(pattern.as_bytes()), expected, "{pattern}");
        }
    }

    #[test]
    fn usual_patterns_are_tried_and_others_not() {
        let check = |length, pattern: &str, expected: bool| {
            assert_eq!(worst_case(length, pattern.as_bytes()) <= MATCHING, expected, "{pattern} on {length}");
        };
        check(20, "(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)", true);
        check(300, "failed: (.*) at (.*)", true);
        check(5000, "ready", true);
        check(5000, ".-.-.-.-b", false);
        check(100_000, "(a*)(a*)b", false);
    }
}
