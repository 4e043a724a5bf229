//! Scalars with rules of their own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub(super) const BAD_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Is the text a quantity, as `1.5Gi` or `1e3`?
pub(super) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end =
        unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number = number.chars().any(|letter| letter.is_ascii_digit())
        && number.chars().filter(|letter| *letter == '.').count() <= 1;
    is_number && is_suffix(suffix)
}

fn is_suffix(suffix: &str) -> bool {
    let exponent = suffix.strip_prefix(['e', 'E']).filter(|exponent| !exponent.is_empty());
    match exponent {
        Some(exponent) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit())
        }
        None => matches!(
            suffix,
            "" | "n"
                | "u"
                | "m"
                | "k"
                | "M"
                | "G"
                | "T"
                | "P"
                | "E"
                | "Ki"
                | "Mi"
                | "Gi"
                | "Ti"
                | "Pi"
                | "Ei"
        ),
    }
}

/// What is wrong with the base64 text of bytes.
pub(super) fn base64_mistake(text: &str) -> Option<String> {
    // line ends between the letters are no mistake
    let letters: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    STANDARD.decode(&letters).err()?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut at = letters.bytes().position(|byte| !is_letter(byte)).unwrap_or(letters.len());
    // padding is told where it is wrong, a missing rest at the last whole group
    if letters.as_bytes().get(at) == Some(&b'=') && at % 4 >= 2 {
        let padding = 4 - at % 4;
        at += letters.bytes().skip(at).take(padding).take_while(|byte| *byte == b'=').count();
    } else if at == letters.len() {
        at -= at % 4;
    }
    Some(format!("illegal base64 data at input byte {at}"))
}

/// What is wrong with a time, which is written as RFC 3339 says.
pub(super) fn time_mistake(text: &str, is_micro: bool) -> Option<String> {
    let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let mut rest = text;
    let wrong = |rest: &str, element: &str| {
        Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let mut numbers = Vec::new();
    for (element, digits, separator) in
        [("2006", 4, "-"), ("01", 2, "-"), ("02", 2, "T"), ("15", 2, ":"), ("04", 2, ":"), ("05", 2, "")]
    {
        let number = rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = number else { return wrong(rest, element) };
        numbers.push(number.parse::<u32>().unwrap_or(0));
        rest = rest.get(digits..).unwrap_or_default();
        match rest.strip_prefix(separator) {
            Some(after) => rest = after,
            None => return wrong(rest, separator),
        }
    }
    let fraction =
        rest.strip_prefix('.').map(|after| after.trim_start_matches(|one: char| one.is_ascii_digit()));
    if is_micro && fraction.is_none() {
        return wrong(rest, ".000000");
    }
    rest = fraction.unwrap_or(rest);
    if let [_, month, day, hour, minute, second] = numbers[..] {
        let limits = [("month", month, 1, 12), ("day", day, 1, 31), ("hour", hour, 0, 23)];
        let more = [("minute", minute, 0, 59), ("second", second, 0, 59)];
        for (what, number, least, most) in limits.into_iter().chain(more) {
            if !(least..=most).contains(&number) {
                return Some(format!("parsing time {text:?}: {what} out of range"));
            }
        }
    }
    match rest.as_bytes() {
        [b'Z'] => None,
        [b'Z', after @ ..] => {
            Some(format!("parsing time {text:?}: extra text: {:?}", String::from_utf8_lossy(after)))
        }
        [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => None,
        _ => wrong(rest, "Z07:00"),
    }
}
