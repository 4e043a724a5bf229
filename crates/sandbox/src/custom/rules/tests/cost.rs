//! No object makes an evaluation endless.

use std::time::Instant;

use serde_json::{Value, json};

use super::{of_spec, said, thing};

const EXCEEDED: &str = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to \
    call cost exceeds limit for rule: dear";

fn fields() -> Value {
    json!({"list": {"type": "array", "items": {"type": "integer"}}, "texts": {"type": "array", "items": {"type": "string"}},
        "text": {"type": "string"}})
}

fn found(rules: &Value, spec: &Value) -> Vec<String> {
    let begun = Instant::now();
    let found = said(&of_spec(&fields(), rules), None, &thing(spec));
    assert!(begun.elapsed().as_secs() < 20, "{rules}: {:?}", begun.elapsed());
    found
}

#[test]
fn expensive_expressions_are_rejected() {
    let list: Vec<u32> = (0..3000).collect();
    let texts: Vec<String> = (0..3000).map(|number| format!("text-{number}-{}", "x".repeat(100))).collect();
    let spec = json!({"list": list, "texts": texts, "text": "a".repeat(300_000)});
    for rule in [
        "self.list.all(a, self.list.all(b, a + b >= 0))",
        "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a + b + c + d >= 0))))",
        "self.list.map(a, self.list.map(b, a)).size() > 0",
        "self.texts.all(a, self.texts.all(b, a + b != ''))",
        "self.texts.all(a, a in self.texts)",
        "self.list.all(a, b, self.list.all(c, d, a + d >= 0))",
        "self.texts.map(t, self.text).join('') != ''",
        "self.text.replace('a', self.text) == ''",
        "self.text.indexOf(self.text + 'b') < 0",
        "self.text.matches('(a?){200}b') || self.text.matches('(a?){200}c') || true == self.text.matches(self.text)",
        "self.list.all(a, self.text.matches('(a|aa)+$') && self.text.contains('aaaaaaaaaaaaaaaaab') == false)",
        "self.list.all(a, '%.65535f'.format([1.5]).size() > 0)",
        "self.texts.all(a, self.texts.map(b, b.upperAscii()).size() > 0)",
        "sets.contains(self.texts, self.texts) && sets.contains(self.texts, self.texts)",
        "self.texts.all(t, 'a'.matches('(a{0,900}' + t + '){5}') || true)",
        "[self.list.transformMap(at, a, a)].all(m, self.list.all(a, m[a] == a && m[a] >= 0))",
        "(self.text + self.text + self.text + self.text).findAll('a{0,500}b').size() == 0",
    ] {
        let told = found(&json!([{"rule": rule, "message": "dear"}, {"rule": "false"}]), &spec);
        assert_eq!(told, [format!("spec: Invalid value: \"object\": {EXCEEDED}")], "{rule}");
    }
}

/// A map that was made is searched entry by entry.
#[test]
fn patterns_and_maps_of_common_size_are_cheap() {
    let texts: Vec<String> = (0..100).map(|number| format!("text-{number}")).collect();
    let rules = json!([
        {"rule": "self.texts.all(t, t.matches('^' + t + '[a-z0-9]{0,20}$'))"},
        {"rule": "self.texts.all(t, ['^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'].exists(p, t.matches(p)))"},
        {"rule": "[self.texts.transformMap(at, t, t)].all(m, self.texts.all(at, t, m[at] == t && at in m))"},
    ]);
    assert_eq!(found(&rules, &json!({"texts": texts})), Vec::<String>::new());
}

#[test]
fn all_rules_of_a_write_share_a_budget() {
    let list: Vec<u32> = (0..200).collect();
    let rules: Vec<Value> =
        (0..40).map(|_| json!({"rule": "self.list.all(a, self.list.all(b, a + b >= 0))"})).collect();
    let told = found(&json!(rules), &json!({"list": list}));
    assert!(told.len() == 1 && told[0].contains("running out of cost budget"), "{told:?}");
    let few: Vec<Value> = rules.into_iter().take(5).collect();
    assert_eq!(found(&json!(few), &json!({"list": list})), Vec::<String>::new());
}

#[test]
fn deep_expressions_need_little_stack() {
    let deep = format!("{}self.text{}", "[".repeat(90), "].map(x, x[0])[0]".repeat(6));
    let nots = format!("{}(self.text == 'b')", "!".repeat(91));
    let sum = format!("0{}", " + 1".repeat(90));
    let ternary = format!("{}false{}", "self.text == 'a' ? ".repeat(40), " : true".repeat(40));
    for rule in [deep, nots, format!("{sum} == 0"), ternary] {
        let reader = std::thread::Builder::new().stack_size(1024 * 1024);
        let told = reader.spawn(move || found(&json!([{"rule": rule}]), &json!({"text": "a"}))).unwrap();
        told.join().unwrap();
    }
}
