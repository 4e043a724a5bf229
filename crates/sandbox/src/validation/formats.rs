//! The forms of names and other short texts. Each check answers with what is wrong, in the words of
//! the server; nothing wrong is an empty list.

use std::net::{IpAddr, Ipv4Addr};

use super::field_cursor::FieldCursor;
use super::validation_errors::ValidationErrors;

const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

type FormatMessages = Vec<String>;

fn is_low(letter: u8) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

/// Letters of `inner`, with `outer` ones at both ends.
fn framed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => outer(*first) && outer(*last) && bytes.iter().all(|one| inner(*one)),
        _ => false,
    }
}

fn is_label(text: &str) -> bool {
    framed(text, is_low, |letter| is_low(letter) || letter == b'-')
}

fn too_long(text: &str, longest: usize, wrong: &mut FormatMessages) {
    if text.len() > longest {
        wrong.push(format!("must be no more than {longest} characters"));
    }
}

/// `message (e.g. 'a',  or 'b', regex used for validation is 'form')`.
fn form(message: &str, form: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|one| format!("'{one}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{form}')", examples.join(" or "))
}

/// RFC 1123: the name of a namespace.
pub(super) fn dns_label(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 63, &mut wrong);
    if is_label(text) {
        return wrong;
    }
    if text.split('.').all(is_label) {
        wrong.push("must not contain dots".to_owned());
    } else {
        let message = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        wrong.push(form(message, LABEL_FORM, &["my-name", "123-abc"]));
    }
    wrong
}

/// RFC 1123: the name of most objects.
pub(super) fn dns_subdomain(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 253, &mut wrong);
    if !text.split('.').all(is_label) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        wrong.push(form(message, SUBDOMAIN_FORM, &["example.com"]));
    }
    wrong
}

/// As [`dns_subdomain`], with underscores.
pub(super) fn dns_search(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 253, &mut wrong);
    let part = |part: &str| {
        let inner = |letter: u8| is_low(letter) || letter == b'-' || letter == b'_';
        framed(part.strip_prefix('_').unwrap_or(part), is_low, inner)
    };
    if !text.split('.').all(part) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        let label = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        wrong.push(form(message, &format!("{label}(\\.{label})*"), &["example.com"]));
    }
    wrong
}

/// `*.example.com`.
pub(super) fn dns_wildcard(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 253, &mut wrong);
    if !text.strip_prefix("*.").is_some_and(|rest| rest.split('.').all(is_label)) {
        let message = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        wrong.push(form(message, &format!("\\*\\.{SUBDOMAIN_FORM}"), &["*.example.com"]));
    }
    wrong
}

/// A part of a path: anything but `.`, `..`, `/` and `%`.
pub(super) fn path_segment(text: &str) -> FormatMessages {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

pub(super) fn path_segment_prefix(text: &str) -> FormatMessages {
    ["/", "%"]
        .iter()
        .filter(|one| text.contains(**one))
        .map(|one| format!("may not contain '{one}'"))
        .collect()
}

/// `name`, or `prefix.example.com/name`: label keys, finalizers, resources.
pub(super) fn qualified_name(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    let message = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let wanted = form(message, KEY_FORM, &examples);
            return vec![format!(
                "a valid label key {wanted} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                // messages give key lengths in bytes
                let said =
                    dns_subdomain(prefix).into_iter().map(|one| one.replace("253 characters", "253 bytes"));
                wrong.extend(said.map(|one| format!("prefix part {one}")));
            }
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key(name) {
        wrong.push(format!("name part {}", form(message, KEY_FORM, &examples)));
    }
    wrong
}

fn is_key(text: &str) -> bool {
    let outer = |letter: u8| letter.is_ascii_alphanumeric();
    framed(text, outer, |letter| outer(letter) || b"-_.".contains(&letter))
}

pub(super) fn label_value(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_key(text) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        wrong.push(form(message, &format!("({KEY_FORM})?"), &["MyValue", "my_value", "12345"]));
    }
    wrong
}

pub(super) fn config_key(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 253, &mut wrong);
    let inner = |letter: u8| letter.is_ascii_alphanumeric() || b"-._".contains(&letter);
    if text.is_empty() || !text.bytes().all(inner) {
        let message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        wrong.push(form(message, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." | ".." => wrong.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Anything that prints, but no `=`.
pub(super) fn variable_name(text: &str) -> FormatMessages {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if text.chars().any(|letter| !(' '..='~').contains(&letter) || letter == '=') {
        return vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ];
    }
    FormatMessages::new()
}

pub(super) fn port_number(number: i64) -> FormatMessages {
    if (1..=65_535).contains(&number) { FormatMessages::new() } else { vec![between(1, 65_535)] }
}

pub(super) fn between(least: i64, most: i64) -> String {
    format!("must be between {least} and {most}, inclusive")
}

/// The name of a port: 15 letters, digits and single hyphens, with a letter among them.
pub(super) fn port_name(text: &str) -> FormatMessages {
    let mut wrong = FormatMessages::new();
    too_long(text, 15, &mut wrong);
    let rules: [(bool, &str); 4] = [
        (
            !text.is_empty() && text.bytes().all(|letter| is_low(letter) || letter == b'-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (text.bytes().any(|letter| letter.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    wrong.extend(rules.iter().filter(|(holds, _)| !holds).map(|(_, why)| (*why).to_owned()));
    wrong
}

pub(super) fn is_percent(text: &str) -> bool {
    text.strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

pub(super) fn percent(text: &str) -> FormatMessages {
    if is_percent(text) {
        return FormatMessages::new();
    }
    let message = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![form(message, "[0-9]+%", &["1%", "93%"])]
}

pub(super) fn header_name(text: &str) -> FormatMessages {
    if !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-') {
        return FormatMessages::new();
    }
    let message = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![form(message, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// An address, with leading zeros allowed as older fields do.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let parts: Vec<u8> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let octets: [u8; 4] = parts.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

pub(super) fn ip(text: &str) -> FormatMessages {
    if parse_ip(text).is_some() {
        return FormatMessages::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// Address and prefix length.
pub(super) fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_ip(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.parse().ok().filter(|length| *length <= most)?;
    Some((address, length))
}

pub(super) fn cidr(text: &str) -> FormatMessages {
    if parse_cidr(text).is_some() {
        return FormatMessages::new();
    }
    vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
}

/// Is the address one of those that share the first `length` bits with `network`?
pub(super) fn is_within(address: IpAddr, network: IpAddr, length: u8) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, true),
        IpAddr::V6(v6) => (v6.to_bits(), false),
    };
    let ((left, left_is_v4), (right, right_is_v4)) = (bits(address), bits(network));
    let shift = 128 - u32::from(length);
    left_is_v4 == right_is_v4 && (shift == 128 || left >> shift == right >> shift)
}

/// `example.com/path`, as the managers of things are named.
pub(super) fn check_prefixed_path(place: &FieldCursor, problems: &mut ValidationErrors) {
    let text = place.text();
    if text.is_empty() {
        return problems.required(place, "");
    }
    let Some((host, path)) = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return problems.invalid(place, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    for message in dns_subdomain(host) {
        problems.invalid_value(place, &host.into(), &message);
    }
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&letter);
    if !path.bytes().all(is_letter) {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        problems.invalid_value(place, &path.into(), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wrong: &[String], expected: &[&str]) {
        assert_eq!(wrong.len(), expected.len(), "{wrong:?}");
        for (one, start) in wrong.iter().zip(expected) {
            assert!(one.starts_with(start), "{one} does not start with {start}");
        }
    }

    #[test]
    fn names() {
        check(&dns_label("my-name"), &[]);
        check(&dns_label("a.b"), &["must not contain dots"]);
        check(&dns_label(&"x".repeat(64)), &["must be no more than 63 characters"]);
        check(&dns_label("A"), &["a lowercase RFC 1123 label"]);
        check(&dns_subdomain("a.b-c.d"), &[]);
        check(&dns_subdomain(""), &["a lowercase RFC 1123 subdomain"]);
        check(&dns_wildcard("*.a.b"), &[]);
        check(&dns_wildcard("*"), &["a wildcard DNS-1123 subdomain"]);
        check(&path_segment("a/%"), &["may not contain '/'", "may not contain '%'"]);
        check(&path_segment(".."), &["may not be '..'"]);
        check(&dns_search("_srv.a_b"), &[]);
    }

    #[test]
    fn keys_and_values() {
        check(&qualified_name("example.com/Name_1"), &[]);
        check(&qualified_name("/x"), &["prefix part must be non-empty"]);
        check(&qualified_name("a/b/c"), &["a valid label key must consist"]);
        check(&qualified_name(""), &["name part must be non-empty", "name part must consist"]);
        check(&label_value(""), &[]);
        check(&label_value("a b"), &["a valid label must be an empty string"]);
        check(&config_key(".."), &["must not be '..'"]);
        check(&config_key("a b"), &["a valid config key"]);
        check(&variable_name("A B"), &[]);
        check(&variable_name("A=B"), &["a valid environment variable name"]);
    }

    #[test]
    fn ports_and_addresses() {
        check(&port_name("http"), &[]);
        check(&port_name("80"), &["must contain at least one letter"]);
        check(&port_name("-a--b"), &["must not contain consecutive", "must not begin or end"]);
        check(&port_number(0), &["must be between 1 and 65535, inclusive"]);
        check(&percent("50%"), &[]);
        check(&percent("%"), &["a valid percent string"]);
        check(&ip("1.2.3.4"), &[]);
        check(&ip("::1"), &[]);
        check(&ip("1.2.3"), &["must be a valid IP address"]);
        check(&cidr("10.0.0.0/8"), &[]);
        check(&cidr("10.0.0.0/33"), &["must be a valid CIDR value"]);
        check(&header_name("X-A"), &[]);
    }
}
