//! Formats values for `string` and `format`.

use kube_cel::cel::Value as Other;

use super::clock;
use super::meter::{Failure, Meter};
use super::value::{List, Map, Value};

/// Numbers with more integer digits use an exponent.
const LONGEST: i32 = 6;

/// The shortest exact decimal; with an exponent if it is small or has more than six digits.
pub fn double(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        }
        .to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..LONGEST).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// `None`: the value has no text form.
pub fn text(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => double(*it),
        Value::Other(Other::Timestamp(at)) => {
            clock::written(at.timestamp(), at.timestamp_subsec_nanos(), at.offset().local_minus_utc())?
        }
        Value::Other(Other::Duration(span)) => clock::span(span.num_seconds(), span.subsec_nanos()),
        _ => return None,
    })
}

/// `'%s of %d'.format([…])` like the API server: fractions in English format.
pub fn format(template: &str, args: &List<'_>, meter: &mut Meter) -> Result<String, Failure> {
    let (mut written, mut next) = (String::new(), 0);
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        written.push_str(before);
        let after = after.strip_prefix('%').unwrap_or(after);
        if let Some(after) = after.strip_prefix('%') {
            written.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(after)?;
        let verb = after.chars().next().ok_or_else(|| said("`format` ends with %"))?;
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
        let arg = args.get(next).ok_or_else(|| said("`format` has too few values"))?;
        next += 1;
        meter.hold(precision.unwrap_or(0).saturating_add(64))?;
        let one = match verb {
            's' => plain(&arg, meter)?,
            'd' => match &arg {
                Value::Int(_) | Value::Uint(_) => text(&arg).unwrap_or_default(),
                _ => return Err(wrong()),
            },
            'f' => fixed(&arg, precision.unwrap_or(6))?,
            'e' => scientific(&arg)?,
            'b' => match arg {
                Value::Bool(it) => u8::from(it).to_string(),
                other => in_base(&other, |it| format!("{it:b}"))?,
            },
            'o' => in_base(&arg, |it| format!("{it:o}"))?,
            'x' | 'X' => hexadecimal(&arg, verb == 'X')?,
            _ => return Err(said("`format` does not know what follows %")),
        };
        meter.hold(one.len())?;
        written.push_str(&one);
    }
    if next != args.len() {
        return Err(said("`format` has too many values"));
    }
    written.push_str(rest);
    meter.hold(written.len())?;
    Ok(written)
}

fn said(words: &'static str) -> Failure {
    Failure::Said(words.into())
}

fn wrong() -> Failure {
    Failure::NoOverload("format")
}

fn precision(after: &str) -> Result<(Option<usize>, &str), Failure> {
    let Some(digits) = after.strip_prefix('.') else { return Ok((None, after)) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    // The formatter of Rust supports no more.
    let number =
        number.parse::<u16>().map_err(|_| said("`format` has a precision that is no small number"))?;
    Ok((Some(usize::from(number)), rest))
}

fn plain(value: &Value<'_>, meter: &mut Meter) -> Result<String, Failure> {
    Ok(match value {
        Value::Text(text) => text.as_str().to_owned(),
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Other(Other::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(_) | Value::Map(_) => nested(value, meter)?,
        other => text(other).ok_or_else(wrong)?,
    })
}

/// Formats a value within a list or map.
fn nested(value: &Value<'_>, meter: &mut Meter) -> Result<String, Failure> {
    meter.step()?;
    let written = match value {
        Value::Text(text) => format!("{:?}", text.as_str()),
        Value::Double(it) => fixed(&Value::Double(*it), 6)?,
        Value::Other(Other::Timestamp(_)) => format!("timestamp(\"{}\")", text(value).ok_or_else(wrong)?),
        Value::Other(Other::Duration(_)) => format!("duration(\"{}\")", text(value).ok_or_else(wrong)?),
        Value::List(list) => {
            let items = (0..list.len()).filter_map(|index| list.get(index));
            let items: Vec<_> = meter
                .within_level(|meter| items.map(|item| nested(&item, meter)).collect::<Result<_, _>>())?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => in_order(map, meter)?,
        other => plain(other, meter)?,
    };
    meter.hold(written.len())?;
    Ok(written)
}

fn in_order(map: &Map<'_>, meter: &mut Meter) -> Result<String, Failure> {
    let mut entries = Vec::new();
    for (key, value) in map.entries(meter)? {
        let key = nested(&key, meter)?;
        entries.push((key, meter.within_level(|meter| nested(&value, meter))?));
    }
    entries.sort();
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

fn number(value: &Value<'_>) -> Result<f64, Failure> {
    match (value, value.as_str()) {
        (Value::Double(it), _) => Ok(*it),
        (_, Some("NaN")) => Ok(f64::NAN),
        (_, Some("Infinity")) => Ok(f64::INFINITY),
        (_, Some("-Infinity")) => Ok(f64::NEG_INFINITY),
        _ => Err(wrong()),
    }
}

fn not_finite(number: f64) -> Option<String> {
    let words = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "∞"
    } else {
        "-∞"
    };
    (!number.is_finite()).then(|| words.to_owned())
}

/// `1,234.500000`.
fn fixed(value: &Value<'_>, precision: usize) -> Result<String, Failure> {
    let number = number(value)?;
    if let Some(words) = not_finite(number) {
        return Ok(words);
    }
    let all = format!("{number:.precision$}");
    let (sign, all) = all.strip_prefix('-').map_or(("", all.as_str()), |rest| ("-", rest));
    let (whole, fraction) = all.split_once('.').map_or((all, None), |(one, two)| (one, Some(two)));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.map(|it| format!(".{it}")).unwrap_or_default();
    Ok(format!("{sign}{grouped}{fraction}"))
}

/// `1.500000×10⁰³`: always six decimals.
fn scientific(value: &Value<'_>) -> Result<String, Failure> {
    let number = number(value)?;
    if let Some(words) = not_finite(number) {
        return Ok(words);
    }
    let written = format!("{number:.6e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let raised = |digit: char| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    let digits: String = format!("{:02}", exponent.abs()).chars().map(raised).collect();
    Ok(format!("{mantissa}×10{}{digits}", if exponent < 0 { "⁻" } else { "" }))
}

fn in_base(value: &Value<'_>, write: impl Fn(u64) -> String) -> Result<String, Failure> {
    match value {
        Value::Int(it) if *it < 0 => Ok(format!("-{}", write(it.unsigned_abs()))),
        Value::Int(it) => Ok(write(it.unsigned_abs())),
        Value::Uint(it) => Ok(write(*it)),
        _ => Err(wrong()),
    }
}

fn hexadecimal(value: &Value<'_>, is_upper: bool) -> Result<String, Failure> {
    let of_bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written = match value {
        Value::Text(text) => of_bytes(text.as_str().as_bytes()),
        Value::Other(Other::Bytes(bytes)) => of_bytes(bytes),
        other => in_base(other, |it| format!("{it:x}"))?,
    };
    Ok(if is_upper { written.to_uppercase() } else { written })
}
