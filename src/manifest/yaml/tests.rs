use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{YamlDocument, parse, parse_values};
use crate::manifest::codes;

fn document(text: &str) -> YamlDocument {
    let (mut documents, mistakes) = parse("x.yaml", text);
    assert_eq!(mistakes, [], "{text}");
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

fn check(text: &str, expected: &Value) {
    assert_eq!(document(text).root.to_json(), *expected, "{text}");
}

/// Every mistake as `code line:column message`.
fn check_mistakes(text: &str, expected: &[&str]) {
    let (_, mistakes) = parse("x.yaml", text);
    let found: Vec<String> = mistakes
        .iter()
        .map(|mistake| {
            let place = mistake.location.as_ref().map(|location| location.start);
            let place =
                place.map_or("nowhere".to_owned(), |start| format!("{}:{}", start.line, start.column));
            format!("{} {place} {}", mistake.code, mistake.message)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn scalars_are_resolved_as_by_kubectl() {
    let mut wrong = Vec::new();
    for line in include_str!("scalars.txt").lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').unwrap();
        let (documents, mistakes) = parse("x.yaml", &format!("v: {text}\n"));
        let found = match documents.first() {
            Some(document) if mistakes.is_empty() => document.root.get("v").unwrap().to_json().to_string(),
            _ => "!".to_owned(),
        };
        let alike = match (serde_json::from_str::<Value>(expected), serde_json::from_str::<Value>(&found)) {
            (Ok(expected), Ok(found)) => same(&expected, &found),
            _ => expected == found,
        };
        if !alike {
            wrong.push(format!("{text}: kubectl {expected}, here {found}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What kubectl reads, one way or another, and this refuses: see the module's story. Of the syntax: a byte order mark
/// inside, and text that kubectl loses without a word (behind `...`, behind a list).
const STRICTER: [&str; 5] = [codes::DUPLICATE_KEY, codes::TAG, codes::MERGE, codes::NOT_JSON, codes::SYNTAX];
/// What kubectl's splitting of documents stumbles over, or its reading of JSON takes, and is YAML all the same.
const WIDER: [&str; 5] =
    ["%YAML 1.1\n", "%YAML 1.2\n", "%TAG ! x\n", r#"{"a": "\/"}"#, r#"{"a": "\ud83d\ude00"}"#];

/// 1,147 texts with what kubectl's library makes of them: never another value, nothing taken that it refuses.
#[test]
fn documents_are_parsed_as_by_kubectl() {
    let packed = flate2::read::GzDecoder::new(&include_bytes!("documents.jsonl.gz")[..]);
    let (mut wrong, mut alike, mut stricter) = (Vec::new(), 0, BTreeMap::<&str, usize>::new());
    for line in serde_json::Deserializer::from_reader(packed).into_iter::<Value>() {
        let line = line.unwrap();
        let text = line["text"].as_str().unwrap();
        let refused =
            line["documents"].as_array().unwrap().iter().any(|document| document["refused"] == true);
        let (documents, mistakes) = parse("x.yaml", text);
        let found: Vec<Value> =
            documents.iter().map(|document| json!({"json": document.root.to_json()})).collect();
        match mistakes.first() {
            Some(_) if refused => alike += 1,
            None if !refused && same(&line["documents"], &json!(found)) => alike += 1,
            None if refused && WIDER.iter().any(|start| text.starts_with(start)) => {}
            Some(mistake) if STRICTER.contains(&mistake.code) => {
                *stricter.entry(mistake.code).or_default() += 1
            }
            _ => wrong.push(format!(
                "{text:?}\n  kubectl {}\n  here {}, {mistakes:?}",
                line["documents"],
                json!(found)
            )),
        }
    }
    assert!(wrong.is_empty(), "{} texts:\n{}", wrong.len(), wrong.join("\n"));
    let expected = [
        (codes::DUPLICATE_KEY, 7),
        (codes::MERGE, 1),
        (codes::NOT_JSON, 3),
        (codes::SYNTAX, 4),
        (codes::TAG, 11),
    ];
    assert_eq!((alike, stricter), (1116, BTreeMap::from(expected)));
}

/// Numbers are compared as numbers: Go and Rust write large ones differently.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

#[test]
fn keys_are_converted_as_by_kubectl() {
    check(
        "n: 1\non: 2\n1: a\n0x10: b\n1.5: c\n1e6: d\n1e5: e\n1e-5: f\n0.0001: g\n1234567.0: h\n!!str 5: i\n1.10: j\n123456789.5: k\n",
        &json!({"false": 1, "true": 2, "1": "a", "16": "b", "1.5": "c", "1e+06": "d", "100000": "e", "1e-05": "f",
            "0.0001": "g", "1.234567e+06": "h", "5": "i", "1.1": "j", "1.2345679e+08": "k"}),
    );
}

#[test]
fn structure() {
    check("a: |\n  x\n  y\nb: >-\n  x\n  y\n\n  z\n", &json!({"a": "x\ny\n", "b": "x y\nz"}));
    check("a:\n- b\n- {c: [d, yes,]}\n", &json!({"a": ["b", {"c": ["d", true]}]}));
    check("a: &x {k: 1}\nb: *x\n", &json!({"a": {"k": 1}, "b": {"k": 1}}));
    check(
        "x: &x {a: 2, b: 3}\nz:\n  <<: *x\n  a: 1\n",
        &json!({"x": {"a": 2, "b": 3}, "z": {"a": 1, "b": 3}}),
    );
    check(
        "x: [&a {k: 1}, &b {k: 2, l: 2}]\nz:\n  <<: [*a, *b]\n",
        &json!({"x": [{"k": 1}, {"k": 2, "l": 2}], "z": {"k": 1, "l": 2}}),
    );
    check("\u{feff}a: 1\r\nb:\r\n  - c\r\n", &json!({"a": 1, "b": ["c"]}));
    check("%YAML 1.1\n---\na: 1\n...\n", &json!({"a": 1}));
}

#[test]
fn a_last_line_without_end() {
    for (text, expected) in [
        ("a: |\n  x", "x\n"),
        ("a: |\n  x\n", "x\n"),
        ("a: |\n  x\n ", "x\n"),
        ("a: |-\n  x\n", "x"),
        ("a: |+\n  x\n\n", "x\n\n"),
        ("a: >\n  x\n  y", "x y\n"),
        ("a: 'x'", "x"),
    ] {
        check(text, &json!({"a": expected}));
    }
    check("a: |\n  x\nb: 1", &json!({"a": "x\n", "b": 1}));
}

#[test]
fn parser_panic_is_a_mistake() {
    check_mistakes("a: [!1,\n 2]\n", &["E1102 1:5 invalid YAML: the parser cannot go on after this"]);
    check_mistakes(
        "a: x\u{feff}y\n",
        &["E1102 1:5 invalid YAML: a byte order mark (U+FEFF) inside the file"],
    );
}

#[test]
fn documents_and_empty_ones() {
    let (documents, mistakes) =
        parse("x.yaml", "# nothing\n---\na: 1\n---\n---\n# still nothing\n---\nb: 2\n");
    assert_eq!(mistakes, []);
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[1].root.start.line, 8);
}

#[test]
fn positions() {
    let root = document("spec:\n  names:\n    - \"é\"\n    - b c\n\n# comment\nlast: {x: 1}\n").root;
    let span = |keys: &[&str]| {
        let node = root.find(keys).unwrap();
        (node.start.line, node.start.column, node.end.line, node.end.column)
    };
    assert_eq!(span(&["spec"]), (2, 3, 4, 10));
    assert_eq!(span(&["last"]), (7, 7, 7, 13));
    let item = &root.find(&["spec", "names"]).unwrap().as_seq().unwrap()[0];
    assert_eq!((item.start.column, item.end.column), (7, 10));
    let crlf = document("a: 1\r\nb: 2\r\n").root;
    assert_eq!(crlf.get("b").unwrap().start.line, 2);
}

#[test]
fn mistakes() {
    check_mistakes("a:\n\t- b\n", &["E1103 2:1 a tab where YAML requires spaces"]);
    check_mistakes("a: |\n  x\n\ty\n", &["E1103 3:1 a tab where YAML requires spaces"]);
    check_mistakes("a: 1\nb: 2\na: 3\n", &["E1104 3:1 the key `a` is given twice"]);
    check_mistakes("1: a\n'1': b\n", &["E1104 2:1 the key `1` is given twice"]);
    check_mistakes("base: &base 1\na: *bsae\n", &["E1105 2:4 no anchor `&bsae` before this alias"]);
    check_mistakes("a: &a [*a]\n", &["E1105 1:8 no anchor `&a` before this alias"]);
    check_mistakes(
        "x: &x {a: 2}\ny:\n  a: 1\n  <<: *x\n",
        &["E1106 3:3 `a` is before a `<<` that sets it too"],
    );
    check_mistakes("a: {<<: 1}\n", &["E1106 1:9 `<<` merges a map or a list of maps"]);
    check_mistakes("a: !foo x\n", &["E1107 1:4 the tag !foo has no meaning in Kubernetes"]);
    check_mistakes("a: !!int x\n", &["E1107 1:4 `x` does not fit its tag !!int"]);
    check_mistakes("a: .inf\n", &["E1109 1:4 `.inf` is a number that Kubernetes cannot take"]);
    check_mistakes("a: {{ x }}\n", &["E1109 1:5 a list or a map cannot be a key"]);
    check_mistakes("~: 1\n", &["E1109 1:1 null cannot be a key"]);
    check_mistakes("a: x\u{1}y\n", &["E1102 1:5 invalid YAML: the character U+0001 is not allowed"]);
}

#[test]
fn a_syntax_error_hides_one_document_only() {
    let text = "a: b: c\n---\nok: 1\n---\n- x\ny\n---\n\"open\n---\nok: 2\nok: 3\n";
    check_mistakes(
        text,
        &[
            "E1102 1:5 invalid YAML: mapping values are not allowed in this context",
            "E1102 6:1 invalid YAML: could not find expected ':'",
            "E1102 8:1 invalid YAML: a quote is never closed",
            "E1104 11:1 the key `ok` is given twice",
        ],
    );
    let (documents, _) = parse("x.yaml", text);
    assert_eq!(documents.len(), 2);
}

#[test]
fn limits() {
    let deep = "[".repeat(70) + &"]".repeat(70);
    check_mistakes(&deep, &["E1108 1:66 more than 64 maps and lists within each other"]);
    // Each level of aliases is nine times the one before.
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")] {
        let aliases = vec![format!("*{from}"); 9].join(", ");
        bomb += &format!("{to}: &{to} [{aliases}]\n");
    }
    let (_, mistakes) = parse("x.yaml", &bomb);
    assert_eq!(mistakes.iter().map(|mistake| mistake.code).collect::<Vec<_>>(), ["E1108"]);
    let chain: String = (1..40).map(|level| format!("a{level}: &a{level} [[[*a{}]]]\n", level - 1)).collect();
    let (_, mistakes) = parse("x.yaml", &format!("a0: &a0 [x]\n{chain}"));
    assert_eq!(mistakes.iter().map(|mistake| mistake.code).collect::<Vec<_>>(), ["E1108"]);
    let (_, mistakes) = parse("x.yaml", &"a".repeat(2_000_000));
    assert_eq!(mistakes.iter().map(|mistake| mistake.code).collect::<Vec<_>>(), ["E1101"]);
}

#[test]
fn a_file_of_nothing_but_mistakes_is_left() {
    let (_, mistakes) = parse("x.yaml", &"---\n: x: y\n".repeat(80));
    assert_eq!(mistakes.len(), 51);
    assert_eq!(mistakes[50].message, "after 50 errors the rest of the file was not read");
}

#[test]
fn values() {
    assert_eq!(parse_values("values.yaml", ""), Ok(serde_json::Map::new()));
    assert_eq!(
        Value::Object(parse_values("values.yaml", "a: {b: on}\n").unwrap()),
        json!({"a": {"b": true}})
    );
    assert!(parse_values("values.yaml", "- a\n").is_err());
    assert!(parse_values("values.yaml", "a: 1\n---\nb: 2\n").is_err());
}
