use serde_json::{Value, json};

use super::{check, database, mistakes, rules, script, shown, source};

const BY_PHASE: &str = r#"
-- Ours, in the manner of the ecosystem's.
local hs = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" and condition.status == "False" then
      hs.status = "Degraded"
      hs.message = condition.message
      return hs
    end
    if condition.type == "Ready" and condition.status == "True" then
      hs.status = "Healthy"
      hs.message = condition.message
      return hs
    end
  end
end
hs.status = "Progressing"
hs.message = "Waiting for the database"
return hs
"#;

#[test]
fn scripts_of_the_ecosystem_decide() {
    let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "message": "3 of 3 are up"}]});
    check(script(BY_PHASE), ready("True"), "Current: 3 of 3 are up");
    check(script(BY_PHASE), ready("False"), "Failed: 3 of 3 are up");
    check(script(BY_PHASE), Value::Null, "InProgress: Waiting for the database");
    for (word, expected) in [
        ("Healthy", "Current"),
        ("Progressing", "InProgress"),
        ("Degraded", "Failed"),
        ("Suspended", "Suspended"),
        ("Missing", "NotFound"),
        ("Unknown", "Unknown"),
    ] {
        check(script(&format!("return {{status = '{word}'}}")), Value::Null, expected);
    }
}

#[test]
fn script_without_result_uses_the_shipped_rule() {
    let waiting = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NoDisk"}]});
    for text in ["return nil", "", "return {}", "local hs = {} return hs"] {
        check(script(text), waiting.clone(), "InProgress: NoDisk");
    }
}

#[test]
fn objects_are_tables() {
    let text = r"
        local s = obj.status
        local words = {
            tostring(s.count), tostring(s.share), tostring(s.whole), tostring(s.yes), tostring(s.none == nil), #s.list,
            s.list[1], s.map.key, type(s.list), tostring(next(s.empty) == nil),
        }
        return {status = 'Healthy', message = table.concat(words, ' ')}";
    check(
        script(text),
        json!({"count": 3, "share": 0.5, "whole": 2.0, "yes": true, "none": null, "list": ["a", "b"], "map": {"key": "v"}, "empty": {}}),
        "Current: 3 0.5 2 true true 2 a v table true",
    );
}

#[test]
fn the_libraries_that_scripts_use_are_there() {
    let text = r"
        local parts = {}
        for word in string.gmatch('one two', '%a+') do table.insert(parts, word) end
        table.sort(parts, function(a, b) return a > b end)
        local ok, why = pcall(function() error('oh') end)
        local found = ('v1.2'):match('^v(%d+)')
        return {status = 'Healthy', message = table.concat(parts, ',') .. ' ' .. tostring(ok) .. ' ' .. found
            .. ' ' .. string.format('%02d', 7) .. ' ' .. math.max(1, 2) .. ' ' .. table.getn(parts)
            .. ' ' .. select('#', unpack(parts)) .. ' ' .. tostring(tonumber('8')) .. ' ' .. ('a-b'):gsub('-', '+')}";
    check(script(text), Value::Null, "Current: two,one false 1 07 2 2 2 8 a+b");
}

/// The interpreter's own order differs in every process.
#[test]
fn maps_are_walked_in_order() {
    let text = "local out = {} for key in pairs(obj.status) do out[#out + 1] = key end return {status = 'Healthy', message = table.concat(out)}";
    let names: Vec<String> = ('a'..='z').rev().map(String::from).collect();
    let status: Value =
        names.iter().map(|name| (name.clone(), json!(1))).collect::<serde_json::Map<_, _>>().into();
    check(script(text), status, "Current: abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn no_state_carries_over_between_objects() {
    let text =
        "count = (count or 0) + 1 string.len = nil return {status = 'Healthy', message = tostring(count)}";
    let rules = rules(vec![source("example.com", "Database", script(text))]);
    for _ in 0..3 {
        assert_eq!(shown(&rules.health_of(&database(Value::Null))), "Current: 1");
    }
}

#[test]
fn failing_script_makes_the_object_unknown() {
    for (text, why) in [
        ("return obj.status.phase.name", "health.lua:1: attempt to index a nil value (field 'phase')"),
        ("return 'Healthy'", "it returned a string, not a table"),
        ("return {status = 'Fine'}", "it returned the status \"Fine\""),
        ("return {message = 'x'}", "it returned no status"),
        ("error('no such thing')", "health.lua:1: no such thing"),
    ] {
        let expected = format!("Unknown: the health rule health/example.com/Database/health.lua: {why}");
        check(script(text), json!({}), &expected);
    }
}

#[test]
fn mistakes_have_their_line() {
    let told = |text: &str| -> Vec<String> {
        mistakes(script(text)).iter().map(|it| format!("{} {}", it.line, it.message)).collect()
    };
    assert_eq!(told("local hs = {}\nhs.status == 'x'\nreturn hs"), ["2 syntax error near '=='"]);
    assert_eq!(told("if true then\n"), ["2 'end' expected (to close 'if' at line 1) near <eof>"]);
    assert_eq!(told("\u{1b}Lua"), ["1 attempt to load a binary chunk (mode is 't')"]);
}

#[test]
fn scripts_may_compute_with_the_time() {
    let says = |expression: &str, expected: &str| {
        let text = format!("return {{status = 'Healthy', message = tostring({expression})}}");
        check(script(&text), Value::Null, &format!("Current: {expected}"));
    };
    says(
        "os.time({year = '2026', month = '02', day = '03', hour = '04', min = '05', sec = '06'})",
        "1770091506",
    );
    says("os.time({year = 2026, month = 1, day = 34, hour = 4, min = 5, sec = 6})", "1770091506");
    says("os.time({year = 2026, month = 2, day = 3})", "1770120000");
    says("os.date('!%Y-%m-%dT%H:%M:%SZ', 1770091506)", "2026-02-03T04:05:06Z");
    says("os.date('*t', 1770091506).yday", "34");
    says("os.time(os.date('*t', 1770091506)) == 1770091506", "true");
    says("os.time() > 1770091506 and os.date() ~= ''", "true");
    says("pcall(os.time, {year = 2026})", "false");
    says("select(2, pcall(os.time, {year = 99999, month = 1, day = 1}))", "time out of range");
    says("pcall(os.date, '%!')", "false");
}
