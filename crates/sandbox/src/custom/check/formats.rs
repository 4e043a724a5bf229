//! The `format` keyword: text formats and number widths.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;

use super::super::schema::{text, types};

/// Formats of texts that are checked.
const TEXT: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

/// The format that counts for the schema's type; empty when it is none that the server knows.
pub(super) fn of(schema: &Value) -> &str {
    let format = text(schema, "format");
    let known = match types(schema).as_slice() {
        [] | ["string"] => is_checked(format),
        ["integer"] => matches!(format, "int32" | "int64"),
        ["number"] => matches!(format, "float" | "double"),
        _ => false,
    };
    if known { format } else { "" }
}

pub(super) fn is_checked(format: &str) -> bool {
    matches!(format, "k8s-short-name" | "k8s-long-name") || TEXT.contains(&format.replace('-', "").as_str())
}

static UUID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static HOST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|",
        r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}",
        r"([a-zA-Z\p{L}]){2,63})$",
    ))
    .ok()
});
static DURATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let unit = "ns|us|µs|ms|s|m|h|nano|nanos|micro|micros|milli|millis|sec|secs|second|seconds|min|mins|minute|minutes|hr|hrs|hour|hours|day|days|week|weeks|d|w";
    Regex::new(&format!(r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)\s*({unit})\s*)+)$")).ok()
});
static SSN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$").ok());
static HEX_COLOR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$").ok());
static RGB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
    Regex::new(&format!(r"^rgb\({part},{part},{part}\)$")).ok()
});

fn matches(regex: &LazyLock<Option<Regex>>, value: &str) -> bool {
    (**regex).as_ref().is_some_and(|regex| regex.is_match(value))
}

/// Is the text of this format?
pub(super) fn fits(format: &str, value: &str) -> bool {
    let uuid_version = |version: &[char]| {
        let digits: Vec<char> = value.chars().filter(|letter| *letter != '-').collect();
        matches(&UUID, value) && digits.get(12).is_some_and(|digit| version.contains(digit))
    };
    match format.replace('-', "").as_str() {
        "bsonobjectid" => value.len() == 24 && value.chars().all(|letter| letter.is_ascii_hexdigit()),
        "uri" => is_uri(value),
        "email" => is_email(value),
        "hostname" => {
            matches(&HOST, value) && value.len() <= 255 && value.split('.').all(|one| one.len() <= 63)
        }
        "ipv4" => is_ipv4(value),
        "ipv6" => value.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(value),
        "mac" => is_mac(value),
        "uuid" => matches(&UUID, value),
        "uuid3" => uuid_version(&['3']),
        "uuid4" => uuid_version(&['4']),
        "uuid5" => uuid_version(&['5']),
        "ssn" => matches(&SSN, value),
        "hexcolor" => matches(&HEX_COLOR, value),
        "rgbcolor" => matches(&RGB, value),
        "byte" => !value.is_empty() && STANDARD.decode(value).is_ok(),
        "date" => value.len() == 10 && value.parse::<jiff::civil::Date>().is_ok(),
        "datetime" => value.contains(['T', 't']) && value.parse::<jiff::Timestamp>().is_ok(),
        "duration" => matches(&DURATION, value),
        "k8sshortname" => value.len() <= 63 && is_label(value),
        "k8slongname" => value.len() <= 253 && value.split('.').all(is_label),
        _ => true,
    }
}

fn is_label(value: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !value.is_empty() && value.chars().all(inner) && !value.starts_with('-') && !value.ends_with('-')
}

fn is_uri(value: &str) -> bool {
    let scheme = value.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
            && rest.starts_with('/')
    });
    (scheme || value.starts_with('/')) && !value.contains(|letter: char| letter.is_control() || letter == ' ')
}

fn is_email(value: &str) -> bool {
    let address = match (value.find('<'), value.strip_suffix('>')) {
        (Some(start), Some(inner)) => inner.get(start + 1..).unwrap_or(""),
        _ => value,
    };
    address.rsplit_once('@').is_some_and(|(local, host)| {
        !local.is_empty() && !host.is_empty() && !address.contains(' ') && !local.contains('@')
    })
}

/// Zeros in front of the parts are tolerated.
fn is_ipv4(value: &str) -> bool {
    let parts: Vec<String> = value
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            rest => rest.to_owned(),
        })
        .collect();
    let mapped = value.contains('.') && value.parse::<Ipv6Addr>().is_ok();
    parts.join(".").parse::<Ipv4Addr>().is_ok() || mapped
}

fn is_cidr(value: &str) -> bool {
    let Some((address, length)) = value.split_once('/') else { return false };
    let longest = if is_ipv4(address) { 32 } else { 128 };
    let digits = !length.is_empty() && length.chars().all(|letter| letter.is_ascii_digit());
    (is_ipv4(address) || address.parse::<Ipv6Addr>().is_ok())
        && digits
        && length.parse::<u8>().is_ok_and(|length| length <= longest)
}

fn is_mac(value: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = value.split(separator).collect();
        counts.contains(&parts.len())
            && parts
                .iter()
                .all(|part| part.len() == width && part.chars().all(|letter| letter.is_ascii_hexdigit()))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, good: &[&str], bad: &[&str]) {
        good.iter().for_each(|value| assert!(fits(format, value), "{format} {value}"));
        bad.iter().for_each(|value| assert!(!fits(format, value), "{format} {value}"));
    }

    #[test]
    fn texts_of_formats() {
        check("date-time", &["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+02:00"], &["x", "2024-01-01"]);
        check("date", &["2024-02-29"], &["2023-02-29", "x"]);
        check("ipv4", &["10.0.0.1", "010.0.0.1"], &["x", "10.0.0", "::1"]);
        check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "x"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]);
        check("email", &["a@b", "A <a@b.c>"], &["x", "@b"]);
        check("uuid", &["12345678-1234-4234-8234-123456789abc"], &["x"]);
        check("uuid3", &["12345678-1234-3234-8234-123456789abc"], &["12345678-1234-4234-8234-123456789abc"]);
        check("hostname", &["a", "a-b.example"], &["_x_", "a..b"]);
        check("uri", &["https://a/b", "/a"], &["x", "a b:/"]);
        check("duration", &["1h30m", "1.5s", "3 days"], &["x", "1"]);
        check("byte", &["YQ=="], &["???", ""]);
        check("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00"]);
        check("hexcolor", &["#fff"], &["#ff"]);
        check("k8s-short-name", &["a-b"], &["A", "a.b", "-a"]);
    }
}
