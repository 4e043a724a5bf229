//! Mutates texts of the corpus.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// An input is not longer than this: what is too long is refused elsewhere, and by tests of its own.
const LONGEST: usize = 64 * 1024;

/// Pieces that mean something to a reader.
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "\t",
    "  ",
    ": ",
    "- ",
    "? ",
    "| \n",
    ">-\n",
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!!binary ",
    "%YAML 1.1\n",
    "# ",
    "'",
    "\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\\",
    "\u{feff}",
    "\u{2028}",
    "\u{0}",
    "é",
    "😀",
    "0644",
    "1e999",
    "-.inf",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "yes",
    "null",
    "~",
    "2001-01-01",
    "$patch: delete",
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{# ",
    " #}",
    "{%- if x -%}",
    "{% endif %}",
    "{% for a in range(9999) %}",
    "{% endfor %}",
    "{% extends parent %}",
    "{% include '_workload.j2' %}",
    "{% macro m(x) %}",
    "{% endmacro %}",
    "{% set x = x ~ x %}",
    "{% block b %}",
    "{% endblock %}",
    "{% import '_workload.j2' as w %}",
    "| tojson",
    "| sha256",
    "| length",
    "* 100000",
    "cluster.labels",
    "cluster",
    "values",
    "podSet.name",
    "range(100000000)",
    "[1] * 100000000",
    "m(m)",
    "loop.index",
    "- 1",
    "** 99",
    "// 0",
    "% 0",
    "9",
    "'a' * 100000000",
    "debug()",
    "values.update(x)",
    "self.b()",
    "| indent(99999999)",
    "| replace('a', 'aaaa')",
    "| batch(0)",
    "| slice(0)",
    "[::0]",
    "[-9223372036854775808]",
];

pub fn of(corpus: &[String], random: &mut StdRng) -> String {
    let mut text = one(corpus, random).as_bytes().to_vec();
    for _ in 0..random.random_range(0..12) {
        change(&mut text, corpus, random);
        text.truncate(LONGEST);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn one<'c>(corpus: &'c [String], random: &mut StdRng) -> &'c str {
    &corpus[random.random_range(0..corpus.len())]
}

fn change(text: &mut Vec<u8>, corpus: &[String], random: &mut StdRng) {
    let at = random.random_range(0..=text.len());
    let range = span(text, random);
    match random.random_range(0..10) {
        0 => drop(text.drain(range)),
        1 => {
            let copy = text[range].to_vec();
            insert(text, at, &copy);
        }
        2 => {
            let copy = text[range].repeat(random.random_range(2..200));
            insert(text, at, &copy[..copy.len().min(LONGEST)]);
        }
        3 => {
            let other = one(corpus, random).as_bytes();
            let piece = span(other, random);
            let piece = &other[piece];
            insert(text, at, piece);
        }
        4 => {
            let cut = at.min(text.len());
            text.truncate(cut);
        }
        5 => {
            if let Some(byte) = text.get_mut(at) {
                *byte = random.random();
            }
        }
        6 => {
            let word = WORDS[random.random_range(0..WORDS.len())];
            let many = word.repeat(random.random_range(1..4000));
            insert(text, at, &many.as_bytes()[..many.len().min(LONGEST)]);
        }
        _ => insert(text, at, WORDS[random.random_range(0..WORDS.len())].as_bytes()),
    }
}

/// Some part of a text, seldom a large one.
fn span(text: &[u8], random: &mut StdRng) -> std::ops::Range<usize> {
    let start = random.random_range(0..=text.len());
    let longest = if random.random_range(0..5) == 0 { text.len() } else { 40 };
    let end = (start + random.random_range(0..=longest)).min(text.len());
    start..end
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(text.len());
    text.splice(at..at, piece.iter().copied());
}
