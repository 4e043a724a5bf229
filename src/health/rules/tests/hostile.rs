use serde_json::{Value, json};

use super::{check, database, rules, script, shown, source};

#[track_caller]
fn refused(text: &str, why: &str) {
    check(
        script(text),
        json!({}),
        &format!("Unknown: the health rule health/example.com/Database/health.lua: {why}"),
    );
}

const LONG: &str = "it ran for too long";
const LARGE: &str = "it needed too much memory";

#[test]
fn what_never_ends_is_ended() {
    refused("while true do end", LONG);
    refused("while true do pcall(function() while true do end end) end", LONG);
    refused("local function f() return f() end return f()", LONG);
    refused("local a, b = string.rep('x', 4e6), string.rep('x', 4e6) .. '' while a == b do end", LONG);
    refused("for i = 1, 1e18 do local x = i * i end", LONG);
    refused("local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t) end", LONG);
    refused(
        "local t = {} for i = 1, 1000 do t[i] = i end while true do table.insert(t, 1, 1) table.remove(t, 1) end",
        LONG,
    );
    refused(
        "local t = setmetatable({}, {})",
        "health.lua:1: attempt to call a nil value (global 'setmetatable')",
    );
}

#[test]
fn what_takes_all_memory_is_ended() {
    refused("local s = 'x' while true do s = s .. s end", LARGE);
    refused("local t = {} while true do t[#t + 1] = string.rep('x', 1e6) end", LARGE);
    refused("return string.rep('x', 1e9)", LARGE);
    refused("while true do local s = string.rep('x', 1e6) end", LARGE);
    refused("while true do pcall(string.rep, 'x', 1e9) end", LARGE);
}

#[test]
fn a_pattern_that_backtracks_for_ever_is_not_tried() {
    let text = "local s = string.rep('a', 5000) return string.find(s, '.-.-.-.-.-b')";
    refused(text, "string.find: the pattern could take too long on 5000 bytes");
    refused(
        &text.replace("string.find(s, '.-.-.-.-.-b')", "s:match('.-.-.-.-.-b')"),
        "string.match: the pattern could take too long on 5000 bytes",
    );
}

#[test]
fn a_recursion_ends() {
    let rules = rules(vec![source(
        "example.com",
        "Database",
        script("local function f() return 1 + f() end return f()"),
    )]);
    let health = shown(&rules.of(&database(Value::Null)));
    assert!(["stack overflow", LONG, LARGE].iter().any(|why| health.contains(why)), "{health}");
    let rules = self::rules(vec![source(
        "example.com",
        "Database",
        script("local function f() pcall(f) end f() return {status = 'Healthy'}"),
    )]);
    assert!(!rules.of(&database(Value::Null)).reason.contains("panic"));
}

#[test]
fn the_world_outside_is_not_there() {
    for name in [
        "io",
        "package",
        "debug",
        "require",
        "load",
        "loadfile",
        "loadstring",
        "dofile",
        "coroutine",
        "collectgarbage",
        "getmetatable",
        "setmetatable",
        "rawequal and string.dump",
        "math.random",
    ] {
        check(
            script(&format!("return {{status = 'Healthy', message = tostring({name})}}")),
            Value::Null,
            "Current: nil",
        );
    }
    refused("os.execute('rm -rf /')", "health.lua:1: attempt to call a nil value (field 'execute')");
}

/// Objects wait for each other's judgement, so a script that always hits a limit is soon not run any more.
#[test]
fn after_some_strikes_it_is_not_run() {
    let rules = rules(vec![
        source("example.com", "Database", script("while true do end")),
        source("example.com", "Cache", script("return {status = 'Healthy'}")),
    ]);
    for _ in 0..3 {
        assert!(rules.of(&database(Value::Null)).reason.ends_with(LONG));
    }
    let health = rules.of(&database(Value::Null));
    assert!(
        health.reason.ends_with("it reached its limits 3 times and is not run any more"),
        "{}",
        health.reason
    );
    let cache = json!({"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "c"}});
    assert_eq!(shown(&rules.of(&cache)), "Current", "others go on");
}
