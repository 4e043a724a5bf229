package main

import "strings"

var keys = []string{"name", "spec", "replicas", "image", "a", "b", "on", "no", "x.y/z", "env", "port", "'quoted'", "\"double\""}

var countedKeys = []string{"name%d", "x.y/z-%d", "'quoted%d'", "\"double%d\"", "%d", "%d.5", "é%d", "a b %d"}

var blocks = []string{"|", "|-", "|+", ">", ">-", ">+", "|", ">", "|-", "|", "|1-"}

var prose = []string{"one line", "  indented", "a: b", "- item", "# no comment", "{{ .Values.x }}", "trailing  ", "tab\there", "é"}

// scalars are read by every reader, one way or another.
var scalars = []string{
	"yes", "no", "on", "off", "y", "N", "true", "True", "tRue", "~", "null", "NULL", "''", "\"\"", "0", "1", "-1", "+1", "0644", "0o644",
	"0x1F", "0b11", "1_000", "08", "09", "12e3", "1e3", "1.5", "1.", ".5", "-0", "-0.0", "9223372036854775807", "9223372036854775808",
	"18446744073709551615", "18446744073709551616", "1:30", "1.2.3", "v1", "100m", "1Gi", "2026-11-21", "2026-11-21T10:00:00Z",
	"'2026-11-21'", "\"0644\"", "'yes'", "\"a\\tb\"", "\"a\\u00e9\"", "\"\\x41\"", "plain text", "a#b", "a:b", "http://x:80/y", "'it''s'",
	"\"say \\\"x\\\"\"", "!!str 5", "!!float 1", "!!bool yes", "! 5", "[]", "{}", "${X}", "=", "é", "日本", "\\", "0x", "0b2", "1__0",
	"_1", "1_", "+", "++1", "--", "---x", "...", "1e400", "a]", "a # b",
}

// traps are scalars that many readers refuse, and those that some take for a map, a list or a tag.
var traps = []string{
	"a: b", "-", "- a", "?", "? a", "*", "&", "!", "@x", "`x`", "%x", "|", ">", "!!int \"5\"", "!!null ''", "!!binary aGk=", "!custom x",
	".inf", ".nan", "{{ x }}", "{% x %}", "<<", "\u2028", "\"\\q\"", "'open", "[a", "{a",
}

// written are texts about structure: documents, ends, anchors, merge keys, indentation, limits.
var written = []string{
	"", "\n", "# only\n", "---\n", "---\n---\n", "a: 1", "a: 1\n", "a: 1\r\n", "a: 1\rb: 2\r", "\ufeffa: 1\n", "a: 1\n\ufeffb: 2\n",
	"---\na: 1\n---\nb: 2\n", "a: 1\n---\n", "a: 1\n--- \nb: 2\n", "a: 1\n---\t\nb: 2\n", "a: 1\n--- # x\nb: 2\n", "a: 1\n...\nb: 2\n", "a: 1\n...\n---\nb: 2\n",
	"--- a\n", "--- {a: 1}\n", "--- |\n  x\n", "a: |\n  x\n---\nb: 1\n", "a: |\n  ---\n  x\n", "a: '---'\n", "a: \"\n---\n\"\n", "a: 'x\n\n  y'\n", "a: x\n  y\n",
	"%YAML 1.1\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "%TAG ! x\n---\na: 1\n", "%FOO\n---\na: 1\n",
	"a: 1\na: 2\n", "a: 1\n'a': 2\n", "1: a\n'1': b\n", "yes: 1\ntrue: 2\n", "? a\n: b\n", "? [a]\n: b\n", "? {a: 1}\n: b\n", "[a]: b\n", ": b\n", "a:\n", "a: \n", "a\n", "- a\n- b\n", "a:\n- b\n- c\n", "a:\n  - b\n - c\n", "- - a\n  - b\n- c\n", "- a: 1\n  b: 2\n-\n  a: 1\n", "-\ta: 1\n", "a:\tb\n", "a:\n\tb: 1\n", "\ta: 1\n", "a: b\t\n", "a:\n  b: 1\n c: 2\n", "a:\n  b: 1\n   c: 2\n",
	"a: &x 1\nb: *x\n", "a: *x\n", "a: &x\nb: *x\n", "&x a: 1\nb: *x\n", "a: &x [*x]\n", "a: &x 1\nb: &x 2\nc: *x\n", "*x : 1\n", "&x a: 1\n*x : 2\n",
	"x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  a: 3\n", "x: &x {a: 1, b: 2}\ny:\n  a: 3\n  <<: *x\n", "x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny:\n  <<: [*x, *z]\n", "x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x\n", "y:\n  <<: 1\n", "y:\n  <<: [1]\n", "y:\n  <<: {a: 1}\n", "y:\n  '<<': {a: 1}\n", "y:\n  !!merge <<: {a: 1}\n", "x: &x {<<: {a: 1}, b: 2}\ny: {<<: *x}\n",
	"a: [1, 2,]\n", "a: [1 2]\n", "a: [,]\n", "a: {b, c: 1}\n", "a: {b: 1,}\n", "a: {b:1}\n", "a: {\"b\":1}\n", "a: [b: 1]\n", "a: [a, [b, {c: d}]]\n", "a: [\n1,\n2\n]\n", "a: {\n  b: 1\n}\n", "a: [\n1\n", "{a: 1, a: 2}\n", "{\"a\": 1}\n", "[1, 2]\n", "\"text\"\n", "5\n", "{\"a\": \"\\/\"}\n", "{\"a\": \"\\ud83d\\ude00\"}\n", "{\n\t\"a\": 1\n}\n", "{\n\t\"a\": {\n\t\t\"b\": [1,\n\t\t2]\n\t}\n}\n",
	"a: |\n x\n  y\n", "a: |\n  x\n y\n", "a: |\n\n  x\n", "a: |\n    \n  x\n", "a: >\n  x\n  y\n\n  z\n", "a: >\n  x\n    y\n  z\n", "a: |2\n    x\n", "a: |0\n x\n", "a: |10\n x\n", "a: | # c\n  x\n", "a: |\n", "a: |\nb: 1\n", "a: |+\n  x\n\n\nb: 1\n", "a: >-\n\n  x\n", "a: |\n\tx\n", "- |\n x\n- >\n y\n",
	"a: \"x\\\n  y\"\n", "a: \"x\n  y\"\n", "a: 'x\n  y'\n", "a: \"\\e\\0\\a\"\n", "a: \"\\N\\_\\L\\P\"\n", "a: \"\\u12\"\n", "a: \"\\U0001F600\"\n", "a: \"\\ud800\"\n", "a: \x01\n", "a: \x7f\n", "a: \u0085b\n", "a: \u00a0b\n",
	"a: !!map {b: 1}\n", "a: !!seq [1]\n", "a: !!set {b}\n", "a: !!omap [b: 1]\n", "a: !!timestamp 2026-11-21\n", "a: !!str\n", "a: !<tag:yaml.org,2002:str> 5\n", "a: !!int x\n", "a: !!binary '*'\n", "a: !!str [1]\n",
	"a: 0.1\nb: 1.0\nc: 1e2\nd: 1.5e300\ne: 123456789012345678\nf: 1234567890123456789012\ng: 0.000001\nh: 1e-7\n",
	"1.5: a\n1e3: b\n0x10: c\n0644: d\n2026-11-21: e\n~: f\n", "null: 1\n", "'': 1\n", "!!null '': 1\n", ".inf: 1\n", "true: 1\nfalse: 2\n",
	"a: " + strings.Repeat("x", 2000) + "\n", "a: \"" + strings.Repeat("y ", 1000) + "\"\n", strings.Repeat("k", 1100) + ": 1\n", "? " + strings.Repeat("k", 1100) + "\n: 1\n",
	strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n", "a: " + strings.Repeat("{a: ", 50) + "1" + strings.Repeat("}", 50) + "\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  key: |\n    a=b\n    c=d\n  on: \"yes\"\n",
	"spec:\n  template:\n    spec:\n      containers:\n      - name: a\n        args: [\"--x=1\", --y]\n        resources: {limits: {cpu: 100m, memory: 1Gi}}\n        ports:\n        - containerPort: 8080\n",
}
