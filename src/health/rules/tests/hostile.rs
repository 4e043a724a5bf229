use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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

/// In its own thread: an endless script fails the test instead of blocking it.
#[track_caller]
fn ended(text: &str, status: Value, why: &str) {
    let (told, heard) = mpsc::channel();
    let body = script(text);
    thread::spawn(move || {
        let rules = rules(vec![source("example.com", "Database", body)]);
        let _ = told.send(shown(&rules.health_of(&database(status))));
    });
    let health = heard.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("not ended: {text}"));
    let expected = format!("Unknown: the health rule health/example.com/Database/health.lua: {why}");
    assert_eq!(health, expected, "{text}");
}

const LONG: &str = "it ran for too long";
const LARGE: &str = "it needed too much memory";

#[test]
fn endless_scripts_are_ended() {
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
fn scripts_without_memory_are_ended() {
    refused("local s = 'x' while true do s = s .. s end", LARGE);
    refused("local t = {} while true do t[#t + 1] = string.rep('x', 1e6) end", LARGE);
    refused("return string.rep('x', 1e9)", LARGE);
    refused("while true do local s = string.rep('x', 1e6) end", LARGE);
    refused("while true do pcall(string.rep, 'x', 1e9) end", LARGE);
}

#[test]
fn backtracking_pattern_is_refused() {
    let text = "local s = string.rep('a', 5000) return string.find(s, '.-.-.-.-.-b')";
    refused(text, "string.find: the pattern could take too long on 5000 bytes");
    refused(
        &text.replace("string.find(s, '.-.-.-.-.-b')", "s:match('.-.-.-.-.-b')"),
        "string.match: the pattern could take too long on 5000 bytes",
    );
}

/// The hook does not run inside library functions: they are charged before.
#[test]
fn expensive_library_calls_are_refused() {
    for text in [
        "return string.rep('', 1e18)",
        "return ('').rep('', '1000000000000000000', '')",
        "while true do pcall(string.rep, '', 1e8) end",
        "table.move({}, 1, 1e18, 2)",
        "table.move({}, math.mininteger, math.maxinteger, 2)",
        "while true do table.move({}, 1, 1e5, 2) end",
        "while true do table.unpack({}, 1, 2e5) end",
        "local t = {} for i = 2, 1e4 do t[i] = '' end while true do table.concat(t, '', 2, 1e4) end",
        // A length is any border that the interpreter finds.
        "local t = {} local i = 1 while i > 0 do t[i] = 1 i = i * 2 end table.insert(t, 1, 1) while true do end",
        "local s = ('a'):rep(129) while true do s:find('.-.-.-b') end",
        "local s = ('a'):rep(5000) while true do s:gsub('(a+)c', '') end",
        "for part in ('a'):rep(3000):gmatch('^.-.-b') do end while true do end",
        "local s, p = ('a'):rep(1e6), ('a'):rep(1e5) .. 'b' while true do s:find(p, 1, true) end",
        "local s, p = ('a'):rep(1e6), ('a'):rep(1e5) .. 'b' while true do s:find(p, 1, 'plain') end",
        "return ('a'):rep(1e5):gsub('(x*)', ('%1'):rep(1e5))",
        "local s, t = ('x'):rep(4e6), {} for i = 1, 1e5 do t[i] = s end while true do ('%.0s'):rep(1e5):format(unpack(t)) end",
        "local s, t = ('x'):rep(1e6), {} for i = 1, 3000 do t[i] = s end while true do table.sort(t) end",
        "local t = {} for i = 1, 300 do t[i] = i end while true do table.sort(t, function() return true end) end",
    ] {
        let text = format!("while true do local ok, why = pcall(function() {text} end) end");
        ended(&text, Value::Null, LONG);
    }
    let text = "return ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')";
    ended(text, Value::Null, "string.find: the pattern could take too long on 40 bytes");
    let text = "return ('a'):rep(6000):find('[' .. ('b'):rep(9000) .. 'a]-c')";
    ended(text, Value::Null, "string.find: the pattern could take too long on 6000 bytes");
    // The last item is tried for every way to get there.
    let text = "return ('a'):rep(300):find('.-.-[' .. ('b'):rep(1e6) .. ']+')";
    ended(text, Value::Null, "string.find: the pattern could take too long on 300 bytes");
    // So is the item after one that settles the length.
    let text = "return ('a'):rep(9900):find('a+[' .. ('b'):rep(240) .. ']')";
    ended(text, Value::Null, "string.find: the pattern could take too long on 9900 bytes");
}

/// A text would be accepted, and has no length to charge.
#[test]
fn functions_of_tables_take_nothing_else() {
    for name in ["concat", "insert", "move", "remove", "sort", "unpack"] {
        let why = format!("table.{name}: table expected, got string");
        ended(&format!("return table.{name}('', 1, 1e18, 1, {{}})"), Value::Null, &why);
    }
    ended("return unpack('', 1, 9e5)", Value::Null, "table.unpack: table expected, got string");
    ended("return table.concat()", Value::Null, "table.concat: table expected, got no value");
}

/// It is charged for one pass over the text.
#[test]
fn ended_iterator_searches_no_more() {
    let says = |text: &str, expected: &str| check(script(text), Value::Null, expected);
    says(
        "local next = ('a'):rep(2000):gmatch('.-b') for i = 1, 2000 do next() end return {status = 'Healthy'}",
        "Current",
    );
    says(
        "local next = ('ab'):gmatch('a(b')
        local ok = pcall(next)
        return {status = 'Healthy', message = tostring(ok) .. ' ' .. tostring(next() == nil)}",
        "Current: false true",
    );
    says(
        "local count, last = 0
        for key, value in ('k=v, '):rep(2000):gmatch('(%a)=(%a)') do count, last = count + 1, key .. value end
        return {status = 'Healthy', message = count .. last}",
        "Current: 2000kv",
    );
}

/// The controller's loop and tasks beside it evaluate objects.
#[test]
fn concurrent_objects_get_their_own_health() {
    let text = "for i = 1, 500 do local phase = obj.status.phase end return {status = 'Healthy', message = obj.status.phase}";
    let rules = rules(vec![source("example.com", "Database", script(text))]);
    thread::scope(|scope| {
        for phase in ["Up", "Down"] {
            let rules = &rules;
            scope.spawn(move || {
                for _ in 0..200 {
                    let health = rules.health_of(&database(json!({"phase": phase})));
                    assert_eq!(shown(&health), format!("Current: {phase}"));
                }
            });
        }
    });
}

/// For work that is counted too cheaply.
#[test]
fn a_script_ends_by_the_clock_too() {
    let long = json!({"text": " ".repeat(1_400_000)});
    let text = "while true do tonumber(obj.status.text) end";
    ended(text, long, LONG);
}

#[test]
fn usual_texts_and_tables_are_affordable() {
    let text = r"
        local words = {}
        for i = 1, 200 do
            local year, month, day = ('2026-02-03T04:05:06Z'):match('(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
            words[i] = ('  state: ready  '):gsub('^%s*(.-)%s*$', '%1') .. string.rep('=', 40) .. year
            table.insert(words, 1, string.format('%s/%d', day, i))
            if not ('failed: no disk at node'):find('(.*) at (.*)') or ('a,b'):find(',', 1, true) ~= 2 then return nil end
        end
        table.sort(words)
        return {status = 'Healthy', message = words[1] .. ' ' .. #table.concat(words, ' ', 1, 10)}";
    check(script(text), Value::Null, "Current: 03/1 66");
}

#[test]
fn a_recursion_ends() {
    let rules = rules(vec![source(
        "example.com",
        "Database",
        script("local function f() return 1 + f() end return f()"),
    )]);
    let health = shown(&rules.health_of(&database(Value::Null)));
    assert!(["stack overflow", LONG, LARGE].iter().any(|why| health.contains(why)), "{health}");
    let rules = self::rules(vec![source(
        "example.com",
        "Database",
        script("local function f() pcall(f) end f() return {status = 'Healthy'}"),
    )]);
    assert!(!rules.health_of(&database(Value::Null)).reason.contains("panic"));
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
        "('').dump",
        "('').unpack",
        "('').packsize",
        "math.random",
    ] {
        check(
            script(&format!("return {{status = 'Healthy', message = tostring({name})}}")),
            Value::Null,
            "Current: nil",
        );
    }
    refused("os.date(string.rep('%c', 51))", "a format of 102 bytes; 100 is the most");
    refused("os.execute('rm -rf /')", "health.lua:1: attempt to call a nil value (field 'execute')");
}

/// Objects wait for each other, so a script that always hits a limit soon stops running.
#[test]
fn after_some_strikes_it_is_not_run() {
    let rules = rules(vec![
        source("example.com", "Database", script("while true do end")),
        source("example.com", "Cache", script("return {status = 'Healthy'}")),
    ]);
    for _ in 0..3 {
        assert!(rules.health_of(&database(Value::Null)).reason.ends_with(LONG));
    }
    let health = rules.health_of(&database(Value::Null));
    assert!(
        health.reason.ends_with("it reached its limits 3 times and is not run any more"),
        "{}",
        health.reason
    );
    let cache = json!({"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "c"}});
    assert_eq!(shown(&rules.health_of(&cache)), "Current", "others go on");
}
