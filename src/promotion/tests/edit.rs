use std::ops::Range;

use serde_json::Value;

use super::Dice;
use crate::manifest::yaml;
use crate::promotion::edit::set_scalar;

#[track_caller]
fn check(text: &str, path: &str, value: &str, expected: &str) {
    assert_eq!(set_scalar(text, path, value).expect("an edit"), expected);
}

/// `expected`: `line:column: message`, without the help.
#[track_caller]
fn check_refused(text: &str, path: &str, expected: &str) {
    let error = set_scalar(text, path, "v2").expect_err("it is refused").to_string();
    let (found, help) = error.split_once("; ").expect("a help");
    assert_eq!(found, expected, "{text:?}");
    assert!(!help.is_empty());
}

#[test]
fn one_scalar_changes() {
    check("version: v1\n", "version", "v2", "version: v2\n");
    check("version: v1", "version", "v2", "version: v2");
    check(
        "# prod\nversion:   'v1'   # since May\n\n",
        "version",
        "v2",
        "# prod\nversion:   'v2'   # since May\n\n",
    );
    check("version: \"v1\"\r\nb: 1\r\n", "version", "v2", "version: \"v2\"\r\nb: 1\r\n");
    check("version: 1.8\n", "version", "1.10", "version: \"1.10\"\n");
    check("version: ~\n", "version", "v2", "version: v2\n");
    check("a: ä\nversion: v1 # é\n", "version", "v2", "a: ä\nversion: v2 # é\n");
    check("\u{feff}version: v1\n", "version", "v2", "\u{feff}version: v2\n");
    check("{\"a\": {\"b\": \"v1\"}}", "a.b", "v2", "{\"a\": {\"b\": \"v2\"}}");
    check(
        "a: {b: [{name: x, c: v1}, {name: y, c: v1}]}\n",
        "a.b[name=y].c",
        "v:2",
        "a: {b: [{name: x, c: v1}, {name: y, c: v:2}]}\n",
    );
    check(
        "a:\n- name: x\n  c: v1\n- c: v1 # y\n  name: y\n",
        "a[name=y].c",
        "v2",
        "a:\n- name: x\n  c: v1\n- c: v2 # y\n  name: y\n",
    );
    check("a: {x.y/z: v1}\n", "a[\"x.y/z\"]", "v2", "a: {x.y/z: v2}\n");
    check("b: 1\n---\na: v1\n", "a", "v2", "b: 1\n---\na: v2\n");
    let two = "metadata: {name: x}\na: v1\n---\nmetadata: {name: y}\na: v1\n";
    check(two, "[metadata.name=y].a", "v2", "metadata: {name: x}\na: v1\n---\nmetadata: {name: y}\na: v2\n");
    // An edit to the same value does not change quotes either.
    check("version: 'v2'\n", "version", "v2", "version: 'v2'\n");
}

#[test]
fn unsafe_edits_are_refused_with_position() {
    check_refused("a: &x v1\n", "a", "1:4: `a` is an anchor or an alias, which other places share");
    check_refused("b: &x v1\na: *x\n", "a", "1:4: `a` is an anchor or an alias, which other places share");
    let shared = "1:8: `b.c` cannot be edited in one place: an anchor and its aliases share it";
    check_refused("a: &x {c: v1}\nb: *x\n", "b.c", &shared.replace("1:8", "1:11"));
    check_refused("a: &x {c: v1}\nb: {<<: *x}\n", "b.c", &shared.replace("1:8", "1:11"));
    check_refused("a: |\n  v1\n", "a", "1:4: `a` is a block scalar");
    check_refused("a: >-\n  v1\n", "a", "1:4: `a` is a block scalar");
    check_refused("a: !!str v1\n", "a", "1:4: `a` has a tag");
    check_refused("a: \"{{ version }}\"\n", "a", "1:4: `a` is a template expression");
    check_refused("a:\nb: 1\n", "a", "1:3: `a` has no value");
    check_refused("a: v1\n  v2\n", "a", "1:4: `a` is written over several lines");
    check_refused("b: 1\na: {c: v1}\n", "a", "2:4: `a` is a map, not a scalar");
    check_refused("b: 1\n", "a", "1:1: `a` is not there: no `a` in this map");
    check_refused("b: 1\nc: {d: 1}\n", "c.a", "2:4: `c.a` is not there: no `a` in this map");
    check_refused("c: [{a: 1}]\n", "c.a", "1:4: `c.a` is not there: `a` is looked for in a list");
    check_refused("c: [{id: x}]\n", "c[id=y].a", "1:4: `c[id=y].a` is not there: no item fits [id=y]");
    check_refused(
        "c: [{id: x}, {id: x}]\n",
        "c[id=x].a",
        "1:14: `c[id=x].a` is not one place: [id=x] fits several items",
    );
    check_refused("a: 1\n---\na: 2\n", "a", "3:1: `a` is in several documents, this is another");
    check_refused("", "a", "1:1: `a` is not there: the file is empty");
    check_refused("a: [\n", "a", "2:1: invalid YAML: did not find expected node content");
    check_refused("a: 1\na: 2\n", "a", "2:1: the key `a` is given twice");
    for path in ["", ".", "a.", "a..b", "[a=b]", "a[", "a[b]", "a]", "[\"a", "[=b].c"] {
        check_refused("a: 1\n", path, &format!("1:1: `{path}` is not a path"));
    }
}

/// A text, and each of its scalars: the path, the place in JSON (document, then keys), and the bytes.
#[derive(Default)]
struct Made {
    text: String,
    scalars: Vec<(String, String, Range<usize>)>,
}

const SCALARS: [&str; 12] = [
    "v1",
    "'v1'",
    "\"v1\"",
    "1.10",
    "0644",
    "yes",
    "'it''s'",
    "\"a\\n\\u00e9\"",
    "é",
    "a:b/c@d",
    "~",
    "\"{ # }\"",
];
const VALUES: [&str; 16] = [
    "v2",
    "1.10",
    "yes",
    "",
    "a: b",
    "a #b",
    "it's",
    "\"",
    "é\u{85}\u{2028}",
    "{{ x }}",
    "- a",
    "a\nb",
    "&a",
    "0x1f",
    "null",
    "reg:5000/a:1@sha256:0",
];

impl Made {
    fn scalar(&mut self, dice: &mut Dice, path: &str, pointer: &str) {
        let from = self.text.len();
        self.text.push_str(dice.pick(&SCALARS));
        self.scalars.push((path.to_owned(), pointer.to_owned(), from..self.text.len()));
    }

    fn end_of_line(&mut self, dice: &mut Dice, end: &str) {
        self.text.push_str(dice.pick(&["", "  # v1", " #é: {v1}", ""]));
        self.text.push_str(end);
        if dice.once_in(6) {
            self.text.push_str(dice.pick(&["# version: v1", "", "    # - 'v1"]));
            self.text.push_str(end);
        }
    }

    fn map(&mut self, dice: &mut Dice, depth: usize, path: &str, pointer: &str, end: &str) {
        let indentation = "  ".repeat(depth);
        for key in 0..=dice.below(3) {
            let (path, pointer) = (format!("{path}.k{key}"), format!("{pointer}/k{key}"));
            self.text
                .push_str(&format!("{indentation}{}:", dice.pick(&[format!("k{key}"), format!("'k{key}'")])));
            match dice.below(if depth > 3 { 1 } else { 4 }) {
                1 => {
                    self.end_of_line(dice, end);
                    self.map(dice, depth + 1, &path, &pointer, end);
                }
                2 => {
                    self.end_of_line(dice, end);
                    for item in 0..=dice.below(2) {
                        self.text.push_str(&format!("{indentation}- name: n{item}"));
                        self.end_of_line(dice, end);
                        self.map(
                            dice,
                            depth + 1,
                            &format!("{path}[name=n{item}]"),
                            &format!("{pointer}/{item}"),
                            end,
                        );
                    }
                }
                3 => {
                    self.text.push_str(" {f: ");
                    self.scalar(dice, &format!("{path}.f"), &format!("{pointer}/f"));
                    self.text.push_str(", g: [{name: x, h: ");
                    self.scalar(dice, &format!("{path}.g[name=x].h"), &format!("{pointer}/g/0/h"));
                    self.text.push_str(" }]}");
                    self.end_of_line(dice, end);
                }
                _ => {
                    self.text.push_str(dice.pick(&[" ", "   "]));
                    self.scalar(dice, &path, &pointer);
                    self.end_of_line(dice, end);
                }
            }
        }
    }

    fn new(dice: &mut Dice) -> Self {
        let mut made = Self::default();
        let end = dice.pick(&["\n", "\n", "\r\n"]);
        for document in 0..=dice.below(2) {
            if document > 0 {
                made.text.push_str(&format!("---{end}"));
            }
            made.text.push_str(&format!("metadata: {{name: d{document}}}{end}"));
            made.map(dice, 0, &format!("[metadata.name=d{document}]"), &format!("/{document}"), end);
        }
        made
    }
}

fn json(text: &str) -> Value {
    let (documents, mistakes) = yaml::parse("x.yaml", text);
    assert_eq!(mistakes, [], "{text}");
    documents.iter().map(|document| document.root.to_json()).collect()
}

#[test]
fn everything_but_the_scalar_stays() {
    let mut dice = Dice(31);
    let mut edits = 0;
    for _ in 0..1_500 {
        let made = Made::new(&mut dice);
        let (path, pointer, span) = dice.pick(&made.scalars);
        let value = dice.pick(&VALUES);
        let edited = set_scalar(&made.text, &path, value)
            .unwrap_or_else(|error| panic!("{error}: {path}\n{}", made.text));
        let mut expected = json(&made.text);
        *expected.pointer_mut(&pointer).expect("the scalar") = Value::from(value);
        assert_eq!(json(&edited), expected, "{path} {value:?}\n{}", made.text);
        let (before, after) = (&made.text[..span.start], &made.text[span.end..]);
        assert!(
            edited.starts_with(before) && edited.ends_with(after),
            "{path} {value:?}\n{}\n{edited}",
            made.text
        );
        assert!(edited.len() >= before.len() + after.len());
        edits += usize::from(edited != made.text);
    }
    assert!(edits > 1_000, "{edits}");
}
