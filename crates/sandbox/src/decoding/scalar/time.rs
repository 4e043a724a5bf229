//! Times, as RFC 3339 says.

/// Digits of a fraction of a `MicroTime`.
const MICRO: usize = 6;

/// The parts of a time in their layout, with their digits and what follows.
const PARTS: [(&str, usize, &str); 6] =
    [("2006", 4, "-"), ("01", 2, "-"), ("02", 2, "T"), ("15", 2, ":"), ("04", 2, ":"), ("05", 2, "")];

/// The error of a time.
pub(crate) fn mistake(text: &str, is_micro: bool) -> Option<String> {
    let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let wrong = |rest: &str, element: &str| {
        Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let mut rest = text;
    let mut numbers = Vec::new();
    for (element, digits, separator) in PARTS {
        let number = rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = number else { return wrong(rest, element) };
        numbers.push(number.parse::<u32>().unwrap_or(0));
        rest = rest.get(digits..).unwrap_or_default();
        match rest.strip_prefix(separator) {
            Some(after) => rest = after,
            None => return wrong(rest, separator),
        }
    }
    let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let is_fraction = rest.starts_with('.') && digits > 0;
    if is_micro && !(is_fraction && digits >= MICRO) {
        return wrong(rest, ".000000");
    }
    if is_fraction {
        rest = rest.get(1 + if is_micro { MICRO } else { digits }..).unwrap_or_default();
    }
    let out_of_range = |what: &str| Some(format!("parsing time {text:?}: {what} out of range"));
    if let Some(what) = impossible(&numbers) {
        return out_of_range(what);
    }
    match rest.as_bytes() {
        [b'Z'] => None,
        [b'Z', after @ ..] => {
            Some(format!("parsing time {text:?}: extra text: {:?}", String::from_utf8_lossy(after)))
        }
        [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => {
            let number = |tens: &u8, ones: &u8| (tens - b'0') * 10 + (ones - b'0');
            match (number(a, b), number(c, d)) {
                (25.., _) => out_of_range("time zone offset hour"),
                (_, 61..) => out_of_range("time zone offset minute"),
                _ => None,
            }
        }
        _ => wrong(rest, "Z07:00"),
    }
}

/// The part of a time that cannot be.
fn impossible(numbers: &[u32]) -> Option<&'static str> {
    let &[year, month, day, hour, minute, second] = numbers else { return None };
    let limits = [
        ("month", month, 1, 12),
        ("day", day, 1, days_of(year, month)),
        ("hour", hour, 0, 23),
        ("minute", minute, 0, 59),
        ("second", second, 0, 59),
    ];
    limits
        .into_iter()
        .find(|(_, number, least, most)| !(least..=most).contains(&number))
        .map(|(what, ..)| what)
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// As the server writes it: in UTC, and with a fraction only where microseconds count.
pub(crate) fn canonical(text: String, is_micro: bool) -> String {
    let is_canonical = text.ends_with('Z') && (is_micro || !text.contains('.'));
    match text.parse::<jiff::Timestamp>() {
        Ok(time) if !is_canonical => {
            let form = if is_micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
            time.strftime(form).to_string()
        }
        _ => text,
    }
}
