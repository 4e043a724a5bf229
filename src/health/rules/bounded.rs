//! Functions that do much within one instruction, and pay for it before they start.

use std::sync::Arc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Result, Table, Value};

use super::interpreter::MEMORY;
use super::meter::Meter;
use super::patterns::worst_case;

/// What one match may take at worst, in steps: as much as all instructions.
const MATCHING: u64 = 50_000_000;
/// How many of these are done in the time of an instruction.
const STEPS: u64 = 50;
/// How many bytes are looked through, and copied or compared, in that time.
const BYTES_SEARCHED: u64 = 16;
const BYTES_COPIED: u64 = 64;
/// How many turns a loop makes in that time that copies a few bytes in each.
const TURNS: u64 = 32;

pub fn strings(lua: &Lua, meter: &Arc<Meter>) -> Result<()> {
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
        // What is longer than the memory is not begun.
        if bytes > whole(MEMORY) {
            Ok(())
        } else {
            meter.charge(turns / TURNS + bytes / (TURNS * BYTES_COPIED))
        }
    })?;
    ending_iterators(lua)
}

/// `gmatch` pays for going through the text once. By itself an iterator that found nothing more, or failed, goes
/// through the rest of it again each time it is called.
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

/// Patterns backtrack: what could take for ever is refused.
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
    // Where matching goes on by itself, it cannot be held to the beginning.
    let steps = worst_case(subject.as_bytes().len(), &pattern.as_bytes(), name != "gmatch");
    if steps > MATCHING {
        let words = format!("string.{name}: the pattern could take too long on {length} bytes");
        return Err(Error::runtime(words));
    }
    // A replacement is gone through for each match, also where it adds nothing.
    let replacement = if name == "gsub" { self::length(lua, arguments, 2) } else { 0 };
    let replacing = length.saturating_add(1).saturating_mul(replacement);
    Ok(length / BYTES_SEARCHED + steps / STEPS + replacing / BYTES_COPIED)
}

pub fn tables(lua: &Lua, meter: &Arc<Meter>) -> Result<()> {
    for name in ["concat", "insert", "move", "remove", "sort", "unpack"] {
        replace(lua, "table", name, meter, move |lua, meter, arguments| {
            let Some(Value::Table(table)) = arguments.front() else {
                // By its metatable a text would do, and has no length to pay for.
                let given = arguments.front().map_or("no value", Value::type_name);
                return Err(Error::runtime(format!("table.{name}: table expected, got {given}")));
            };
            let length = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
            let at = |place, default| integer(lua, arguments, place).unwrap_or(default);
            meter.charge(match name {
                // At the end nothing is moved.
                "insert" if arguments.len() == 2 => 1,
                "remove" if arguments.len() == 1 => 1,
                // What is asked for need not be there.
                "move" => span(at(1, 1), at(2, 0)),
                "unpack" => span(at(1, 1), at(2, length)),
                "concat" => span(at(2, 1), at(3, length)),
                _ => span(1, length),
            })
        })?;
    }
    // Of Lua 5.1, for which the ecosystem writes.
    let length = lua.create_function(|_, table: Table| Ok(table.raw_len()))?;
    lua.globals().raw_get::<Table>("table")?.raw_set("getn", length)?;
    counted_sort(lua)
}

/// By itself it compares within one instruction, and texts may be long: so that each comparison counts.
fn counted_sort(lua: &Lua) -> Result<()> {
    let source = r"
        local sort = ...
        local function before(one, other) return one < other end
        return function(table, given) return sort(table, given or before) end";
    surround(lua, "table", "sort", source)
}

/// Puts something in Lua around a function of a library.
fn surround(lua: &Lua, library: &str, name: &str, source: &str) -> Result<()> {
    let library: Table = lua.globals().raw_get(library)?;
    let original: Function = library.raw_get(name)?;
    let surrounded: Function = lua.load(source).set_name(format!("={name}")).call(original)?;
    library.raw_set(name, surrounded)
}

/// Puts something before a function of a library.
fn replace(
    lua: &Lua,
    library: &str,
    name: &str,
    meter: &Arc<Meter>,
    pay: impl Fn(&Lua, &Meter, &MultiValue) -> Result<()> + Send + 'static,
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

/// Numbers are texts too.
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

/// Texts of numbers are numbers too.
fn integer(lua: &Lua, arguments: &MultiValue, at: usize) -> Option<i64> {
    lua.coerce_integer(arguments.get(at)?.clone()).ok().flatten()
}

fn span(first: i64, last: i64) -> u64 {
    if last < first { 0 } else { last.abs_diff(first).saturating_add(1) }
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
