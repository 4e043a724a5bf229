//! Charges library functions that do much work within one instruction, before they run.

use std::sync::Arc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Result, Table, Value};

use super::meter::{MEMORY, ScriptMeter};
use super::patterns::worst_case_steps;

/// Steps of one match in the worst case: as much as all instructions.
const MATCHING: u64 = 50_000_000;
/// Steps in the time of an instruction.
const STEPS: u64 = 50;
/// Bytes that are searched, and bytes that are copied or compared, in that time.
const BYTES_SEARCHED: u64 = 16;
const BYTES_COPIED: u64 = 64;
/// Iterations in that time of a loop that copies a few bytes.
const TURNS: u64 = 32;

pub fn bound_strings(lua: &Lua, meter: &Arc<ScriptMeter>) -> Result<()> {
    for name in ["find", "match", "gmatch", "gsub"] {
        replace(lua, "string", name, meter, move |lua, meter, arguments| {
            meter.charge(search(lua, name, arguments)?)
        })?;
    }
    replace(lua, "string", "format", meter, |_, meter, arguments| {
        let texts = arguments.iter().filter_map(Value::as_string).map(|text| whole(text.as_bytes().len()));
        meter.charge(texts.fold(0, u64::saturating_add) / BYTES_COPIED)
    })?;
    replace(lua, "string", "rep", meter, |lua, meter, arguments| {
        let turns = integer(lua, arguments, 1).unwrap_or(0).max(0).unsigned_abs();
        let bytes = length(lua, arguments, 0).saturating_add(length(lua, arguments, 2)).saturating_mul(turns);
        // A result larger than the memory fails at once.
        if bytes > whole(MEMORY) {
            Ok(())
        } else {
            meter.charge(turns / TURNS + bytes / (TURNS * BYTES_COPIED))
        }
    })?;
    ending_iterators(lua)
}

/// `gmatch` is charged for one pass. Without this, an iterator that has ended or failed would scan the rest again in
/// each call.
fn ending_iterators(lua: &Lua) -> Result<()> {
    let source = r"
        local gmatch = ...
        return function(...)
            local search, is_over = gmatch(...), false
            local function found(...)
                is_over = ... == nil
                return ...
            end
            return function()
                if is_over then return end
                is_over = true
                return found(search())
            end
        end";
    surround(lua, "string", "gmatch", source)
}

/// Patterns backtrack: one that could take too long is refused.
fn search(lua: &Lua, name: &str, arguments: &MultiValue) -> Result<u64> {
    let (Some(subject), Some(pattern)) = (text(lua, arguments, 0), text(lua, arguments, 1)) else {
        return Ok(0);
    };
    let length = whole(subject.as_bytes().len());
    let is_plain = name == "find"
        && arguments.get(3).is_some_and(|it| !matches!(it, Value::Nil | Value::Boolean(false)));
    if is_plain {
        return Ok(length.saturating_mul(whole(pattern.as_bytes().len())) / BYTES_COPIED);
    }
    // With `gmatch` a `^` does not anchor.
    let steps = worst_case_steps(subject.as_bytes().len(), &pattern.as_bytes(), name != "gmatch");
    if steps > MATCHING {
        let words = format!("string.{name}: the pattern could take too long on {length} bytes");
        return Err(Error::runtime(words));
    }
    // A replacement is processed for each match, even if it adds nothing.
    let replacement = if name == "gsub" { self::length(lua, arguments, 2) } else { 0 };
    let replacing = length.saturating_add(1).saturating_mul(replacement);
    Ok(length / BYTES_SEARCHED + steps / STEPS + replacing / BYTES_COPIED)
}

pub fn bound_tables(lua: &Lua, meter: &Arc<ScriptMeter>) -> Result<()> {
    for name in ["concat", "insert", "move", "remove", "sort", "unpack"] {
        replace(lua, "table", name, meter, move |lua, meter, arguments| {
            let Some(Value::Table(table)) = arguments.front() else {
                // A text would pass by its metatable, and has no length to charge.
                let given = arguments.front().map_or("no value", Value::type_name);
                return Err(Error::runtime(format!("table.{name}: table expected, got {given}")));
            };
            let length = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
            let at = |place, default| integer(lua, arguments, place).unwrap_or(default);
            meter.charge(match name {
                // At the end nothing is moved.
                "insert" if arguments.len() == 2 => 1,
                "remove" if arguments.len() == 1 => 1,
                // The range may be larger than the table.
                "move" => span(at(1, 1), at(2, 0)),
                "unpack" => span(at(1, 1), at(2, length)),
                "concat" => span(at(2, 1), at(3, length)),
                _ => span(1, length),
            })
        })?;
    }
    // From Lua 5.1, which existing scripts use.
    let length = lua.create_function(|_, table: Table| Ok(table.raw_len()))?;
    lua.globals().raw_get::<Table>("table")?.raw_set("getn", length)?;
    counted_sort(lua)
}

/// The library compares within one instruction, and texts may be long: here each comparison counts.
fn counted_sort(lua: &Lua) -> Result<()> {
    let source = r"
        local sort = ...
        local function before(one, other) return one < other end
        return function(table, given) return sort(table, given or before) end";
    surround(lua, "table", "sort", source)
}

/// Wraps a library function in Lua code.
fn surround(lua: &Lua, library: &str, name: &str, source: &str) -> Result<()> {
    let library: Table = lua.globals().raw_get(library)?;
    let original: Function = library.raw_get(name)?;
    let surrounded: Function = lua.load(source).set_name(format!("={name}")).call(original)?;
    library.raw_set(name, surrounded)
}

/// Runs a check before a library function.
fn replace(
    lua: &Lua,
    library: &str,
    name: &str,
    meter: &Arc<ScriptMeter>,
    pay: impl Fn(&Lua, &ScriptMeter, &MultiValue) -> Result<()> + Send + 'static,
) -> Result<()> {
    let library: Table = lua.globals().raw_get(library)?;
    let original: Function = library.raw_get(name)?;
    let meter = Arc::clone(meter);
    let bounded = lua.create_function(move |lua, arguments: MultiValue| {
        pay(lua, &meter, &arguments)?;
        original.call::<MultiValue>(arguments)
    })?;
    library.raw_set(name, bounded)
}

/// A number counts as a text.
fn text(lua: &Lua, arguments: &MultiValue, at: usize) -> Option<LuaString> {
    match arguments.get(at)? {
        given @ (Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            lua.coerce_string(given.clone()).ok().flatten()
        }
        _ => None,
    }
}

fn length(lua: &Lua, arguments: &MultiValue, at: usize) -> u64 {
    text(lua, arguments, at).map_or(0, |text| whole(text.as_bytes().len()))
}

/// A numeric text counts as a number.
fn integer(lua: &Lua, arguments: &MultiValue, at: usize) -> Option<i64> {
    lua.coerce_integer(arguments.get(at)?.clone()).ok().flatten()
}

fn span(first: i64, last: i64) -> u64 {
    if last < first { 0 } else { last.abs_diff(first).saturating_add(1) }
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
