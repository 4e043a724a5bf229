//! Formats values for `string` and `format`.

use kube_cel::cel::Value as Other;

use super::meter::{CelMeter, EvaluationFailure};
use super::time_values;
use super::value::{CelList, CelMap, CelValue};

/// Numbers with more integer digits use an exponent.
const LONGEST_PLAIN_NUMBER: i32 = 6;

/// The shortest exact decimal; with an exponent if it is small or has more than six digits.
pub fn format_double(number: f64) -> String {
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
    if number != 0.0 && !(-4..LONGEST_PLAIN_NUMBER).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// `None`: the value has no text form.
pub fn format_value(value: &CelValue<'_>) -> Option<String> {
    Some(match value {
        CelValue::Bool(it) => it.to_string(),
        CelValue::Int(it) => it.to_string(),
        CelValue::Uint(it) => it.to_string(),
        CelValue::Double(it) => format_double(*it),
        CelValue::Other(Other::Timestamp(at)) => time_values::format_timestamp(
            at.timestamp(),
            at.timestamp_subsec_nanos(),
            at.offset().local_minus_utc(),
        )?,
        CelValue::Other(Other::Duration(span)) => {
            time_values::format_duration(span.num_seconds(), span.subsec_nanos())
        }
        _ => return None,
    })
}

/// `'%s of %d'.format([…])` like the API server: fractions in English format.
pub fn format(template: &str, args: &CelList<'_>, meter: &mut CelMeter) -> Result<String, EvaluationFailure> {
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
        let verb = after.chars().next().ok_or_else(|| failure("`format` ends with %"))?;
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
        let arg = args.get(next).ok_or_else(|| failure("`format` has too few values"))?;
        next += 1;
        meter.charge_memory(precision.unwrap_or(0).saturating_add(64))?;
        let one = match verb {
            's' => format_plain(&arg, meter)?,
            'd' => match &arg {
                CelValue::Int(_) | CelValue::Uint(_) => format_value(&arg).unwrap_or_default(),
                _ => return Err(no_overload()),
            },
            'f' => format_fixed(&arg, precision.unwrap_or(6))?,
            'e' => format_scientific(&arg)?,
            'b' => match arg {
                CelValue::Bool(it) => u8::from(it).to_string(),
                other => format_in_base(&other, |it| format!("{it:b}"))?,
            },
            'o' => format_in_base(&arg, |it| format!("{it:o}"))?,
            'x' | 'X' => format_hexadecimal(&arg, verb == 'X')?,
            _ => return Err(failure("`format` does not support the verb after %")),
        };
        meter.charge_memory(one.len())?;
        written.push_str(&one);
    }
    if next != args.len() {
        return Err(failure("`format` has too many values"));
    }
    written.push_str(rest);
    meter.charge_memory(written.len())?;
    Ok(written)
}

fn failure(words: &'static str) -> EvaluationFailure {
    EvaluationFailure::Message(words.into())
}

fn no_overload() -> EvaluationFailure {
    EvaluationFailure::NoOverload("format")
}

fn precision(after: &str) -> Result<(Option<usize>, &str), EvaluationFailure> {
    let Some(digits) = after.strip_prefix('.') else { return Ok((None, after)) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    // The formatter of Rust supports no more.
    let number =
        number.parse::<u16>().map_err(|_| failure("`format` has a precision that is not a small number"))?;
    Ok((Some(usize::from(number)), rest))
}

fn format_plain(value: &CelValue<'_>, meter: &mut CelMeter) -> Result<String, EvaluationFailure> {
    Ok(match value {
        CelValue::Text(text) => text.as_str().to_owned(),
        CelValue::Null => "null".to_owned(),
        CelValue::Type(name) => (*name).to_owned(),
        CelValue::Other(Other::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        CelValue::List(_) | CelValue::Map(_) => format_nested(value, meter)?,
        other => format_value(other).ok_or_else(no_overload)?,
    })
}

/// Formats a value within a list or map.
fn format_nested(value: &CelValue<'_>, meter: &mut CelMeter) -> Result<String, EvaluationFailure> {
    meter.step()?;
    let written = match value {
        CelValue::Text(text) => format!("{:?}", text.as_str()),
        CelValue::Double(it) => format_fixed(&CelValue::Double(*it), 6)?,
        CelValue::Other(Other::Timestamp(_)) => {
            format!("timestamp(\"{}\")", format_value(value).ok_or_else(no_overload)?)
        }
        CelValue::Other(Other::Duration(_)) => {
            format!("duration(\"{}\")", format_value(value).ok_or_else(no_overload)?)
        }
        CelValue::List(list) => {
            let items = (0..list.len()).filter_map(|index| list.get(index));
            let items: Vec<_> = meter.within_level(|meter| {
                items.map(|item| format_nested(&item, meter)).collect::<Result<_, _>>()
            })?;
            format!("[{}]", items.join(", "))
        }
        CelValue::Map(map) => format_map(map, meter)?,
        other => format_plain(other, meter)?,
    };
    meter.charge_memory(written.len())?;
    Ok(written)
}

fn format_map(map: &CelMap<'_>, meter: &mut CelMeter) -> Result<String, EvaluationFailure> {
    let mut entries = Vec::new();
    for (key, value) in map.entries(meter)? {
        let key = format_nested(&key, meter)?;
        entries.push((key, meter.within_level(|meter| format_nested(&value, meter))?));
    }
    entries.sort();
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

fn as_double(value: &CelValue<'_>) -> Result<f64, EvaluationFailure> {
    match (value, value.as_str()) {
        (CelValue::Double(it), _) => Ok(*it),
        (_, Some("NaN")) => Ok(f64::NAN),
        (_, Some("Infinity")) => Ok(f64::INFINITY),
        (_, Some("-Infinity")) => Ok(f64::NEG_INFINITY),
        _ => Err(no_overload()),
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
fn format_fixed(value: &CelValue<'_>, precision: usize) -> Result<String, EvaluationFailure> {
    let number = as_double(value)?;
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
fn format_scientific(value: &CelValue<'_>) -> Result<String, EvaluationFailure> {
    let number = as_double(value)?;
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

fn format_in_base(value: &CelValue<'_>, write: impl Fn(u64) -> String) -> Result<String, EvaluationFailure> {
    match value {
        CelValue::Int(it) if *it < 0 => Ok(format!("-{}", write(it.unsigned_abs()))),
        CelValue::Int(it) => Ok(write(it.unsigned_abs())),
        CelValue::Uint(it) => Ok(write(*it)),
        _ => Err(no_overload()),
    }
}

fn format_hexadecimal(value: &CelValue<'_>, is_upper: bool) -> Result<String, EvaluationFailure> {
    let of_bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written = match value {
        CelValue::Text(text) => of_bytes(text.as_str().as_bytes()),
        CelValue::Other(Other::Bytes(bytes)) => of_bytes(bytes),
        other => format_in_base(other, |it| format!("{it:x}"))?,
    };
    Ok(if is_upper { written.to_uppercase() } else { written })
}
