//! Replaces text that differs between runs and between clusters.

use regex::Regex;

/// Patterns and their replacements, in order.
const REPLACEMENTS: &[(&str, &str)] = &[
    // rollout progress depends on the time of the read
    (r"(?m)^Waiting for .*\n", ""),
    (r"(?m)^(---|\+\+\+) /tmp/(LIVE|MERGED)-\d+/(\S+)\s.*$", "$1 $2/$3"),
    (r"(?m)^diff -u -N /tmp/\S+ /tmp/\S+$", "diff"),
    // added by newer kubectls
    (r"(?m) deleted from \S+ namespace$", " deleted"),
    (r"(?m)^Warning: resource \S+ was previously managed with 'kubectl apply'.*\n", ""),
    // log lines of kubectl
    (r"(?m)^[WIE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]", "LOG $1]"),
    // hunk positions depend on other fields of the object
    (r"(?m)^@@ .* @@.*$", "@@"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "DATE"),
    (r"resourceVersion: .*", "resourceVersion: \"RV\""),
    (r"Resource Version: .*", "Resource Version: RV"),
    (r#"resourceVersion\\":\\"\d+"#, r#"resourceVersion\":\"RV"#),
    (r"\bweb-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "web-HASH-POD"),
    (r"\bweb-[a-z0-9]{8,10}\b", "web-HASH"),
    (r"pod-template-hash=[a-z0-9]+", "pod-template-hash=HASH"),
    (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-SUFFIX"),
    (r"\b10\.\d+\.\d+\.\d+\b", "IP"),
    (r"(?m)^(Node: +).*$", "${1}NODE"),
    (r"\(x\d+ over (\d+[smh])+\)", "(xN over AGE)"),
    (r"\b(\d+[dhms])+ ago\b", "AGE ago"),
    (r"(?m)([ \t])(\d+[dhms])+([ \t]|$)", "${1}AGE${3}"),
    (r"(?m)[ \t]+$", ""),
];

pub fn normalize_output(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in REPLACEMENTS {
        text = Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned();
    }
    let lines: Vec<String> = text.lines().map(collapse_columns).collect();
    lines.join("\n")
}

/// Columns are as wide as their widest cell: two spaces replace any number of them.
fn collapse_columns(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let wide = Regex::new(r" {2,}").unwrap();
    format!("{}{}", &line[..indent], wide.replace_all(line.trim_start(), "  "))
}
