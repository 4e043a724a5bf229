//! Parses and prints Kubernetes quantities such as `500m` and `1Gi`.
//!
//! The API server stores a quantity in canonical form: `1024Mi` becomes `1Gi`, `0.5` becomes `500m`; `1000Ki` and
//! `1e3` stay. A quantity keeps the form in which it was written: decimal (`1k`), binary (`1Ki`) or exponent (`1e3`).
//! The smallest unit is a nano; smaller amounts are rounded up.

use std::cmp::Ordering;

/// An amount of something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    /// The amount is `digits` times ten to the `power`.
    digits: i128,
    power: i32,
    form: QuantityForm,
    /// The text it was read from, when the server keeps it as it is.
    original_text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum QuantityForm {
    Decimal,
    Binary,
    Exponent,
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const DECIMAL: &[(&str, i32)] = &[
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: &[&str] = &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i32 = -9;
/// Resources are not counted finer than this.
const MILLI: i32 = -3;
/// The largest binary quantity.
const MAX_BINARY: i128 = i64::MAX as i128;

impl Quantity {
    pub(crate) fn parse(text: &str) -> Result<Self, QuantityError> {
        let QuantityParts { negative, whole, fraction, suffix } = QuantityParts::of(text)?;
        let (form, power) = form_of(suffix).ok_or(QuantityError::Suffix)?;
        let shifted = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
        let digits: i128 = shifted.parse().map_err(|_| QuantityError::Number)?;
        let sign = if negative { -1 } else { 1 };
        if form == QuantityForm::Binary {
            return Self::binary(text, digits, fraction.len(), power, sign);
        }
        let scale = power.saturating_sub(fraction.len() as i32);
        let is_short = shifted.len() <= 18 && scale >= NANO;
        let is_plain = scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0');
        let (digits, scale) = round_up(digits, scale, NANO);
        let kept = (is_short && is_plain).then(|| text.to_owned());
        Ok(Self { digits: sign * digits, power: scale, form, original_text: kept })
    }

    fn binary(
        text: &str,
        digits: i128,
        fraction: usize,
        power: i32,
        sign: i128,
    ) -> Result<Self, QuantityError> {
        let is_plain = fraction == 0 && digits & 7 != 0;
        let unit = 1_i128 << power;
        let amount = digits.checked_mul(unit).unwrap_or(i128::MAX);
        let (mut amount, mut scale) = round_up(amount, -(fraction as i32), NANO);
        if rounded_to_nano(amount, scale).is_none_or(|nano| nano > MAX_BINARY * 1_000_000_000) {
            (amount, scale) = (MAX_BINARY, 0);
        }
        let is_kept = is_plain && amount <= MAX_BINARY && 15 - text.len() as i32 + 2 - power * 3 / 10 > 0;
        // what is less than one has no binary form
        let below_one = rounded_to_nano(amount, scale).is_some_and(|nano| nano > 0 && nano < 1_000_000_000);
        let form = if below_one { QuantityForm::Decimal } else { QuantityForm::Binary };
        Ok(Self {
            digits: sign * amount,
            power: scale,
            form,
            original_text: is_kept.then(|| text.to_owned()),
        })
    }

    /// As resources are counted: nothing finer than a milli.
    pub(crate) fn rounded_to_milli(mut self) -> Self {
        if self.power < MILLI {
            let sign = self.digits.signum();
            let (digits, power) = round_up(self.digits.abs(), self.power, MILLI);
            self.digits = sign * digits;
            self.power = power;
            self.original_text = None;
        }
        self
    }

    /// The form in which the server stores it.
    pub(crate) fn canonical(&self) -> String {
        if let Some(text) = &self.original_text {
            return text.clone();
        }
        if self.digits == 0 {
            return "0".to_owned();
        }
        match self.form {
            QuantityForm::Binary => {
                self.canonical_binary().unwrap_or_else(|| self.canonical_decimal(QuantityForm::Decimal))
            }
            form => self.canonical_decimal(form),
        }
    }

    /// `None` for what is broken, or less than 1024.
    fn canonical_binary(&self) -> Option<String> {
        let nano = rounded_to_nano(self.digits, self.power)?;
        let mut whole = nano / 1_000_000_000;
        if nano % 1_000_000_000 != 0 || whole.abs() < 1024 {
            return None;
        }
        let mut power = 0;
        while whole % 1024 == 0 && power + 1 < BINARY.len() {
            whole /= 1024;
            power += 1;
        }
        BINARY.get(power).map(|suffix| format!("{whole}{suffix}"))
    }

    fn canonical_decimal(&self, form: QuantityForm) -> String {
        let (mut digits, mut power) = (self.digits, self.power);
        while digits % 10 == 0 {
            digits /= 10;
            power = power.saturating_add(1);
        }
        while power % 3 != 0 {
            digits = digits.saturating_mul(10);
            power -= 1;
        }
        let suffix = match form {
            QuantityForm::Exponent if power == 0 => String::new(),
            QuantityForm::Exponent => format!("e{power}"),
            // the server writes no suffix for powers that have none
            _ => DECIMAL.iter().find(|(_, one)| *one == power).map_or("", |(suffix, _)| suffix).to_owned(),
        };
        format!("{digits}{suffix}")
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.digits < 0
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// A whole number?
    pub(crate) fn is_whole(&self) -> bool {
        rounded_to_nano(self.digits, self.power).is_none_or(|nano| nano % 1_000_000_000 == 0)
    }

    /// Rounded up to a whole number.
    pub(crate) fn value(&self) -> i64 {
        let Some(nano) = rounded_to_nano(self.digits, self.power) else { return i64::MAX };
        let up = i128::from(nano > 0 && nano % 1_000_000_000 != 0);
        let down = i128::from(nano < 0 && nano % 1_000_000_000 != 0);
        (nano / 1_000_000_000 + up - down).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// In thousandths, rounded up. Huge values are capped, so that sums do not overflow.
    pub(crate) fn thousandths(&self) -> i128 {
        let most = MAX_BINARY * 1000;
        let Some(nano) = rounded_to_nano(self.digits, self.power) else { return self.digits.signum() * most };
        let up = i128::from(nano > 0 && nano % 1_000_000 != 0);
        (nano / 1_000_000 + up).clamp(-most, most)
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (rounded_to_nano(self.digits, self.power), rounded_to_nano(other.digits, other.power)) {
            (Some(left), Some(right)) => left.cmp(&right),
            // more than any machine has: as good as compared by size
            _ => (self.power, self.digits).cmp(&(other.power, other.digits)),
        }
    }
}

struct QuantityParts<'t> {
    negative: bool,
    /// Without leading zeros.
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> QuantityParts<'t> {
    fn of(text: &'t str) -> Result<Self, QuantityError> {
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if text.is_empty() {
            return Err(QuantityError::Form);
        }
        let digits = |text: &'t str| {
            let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            text.split_at(end)
        };
        let (whole, rest) = digits(rest);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !exponent.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(QuantityError::Form);
        }
        Ok(Self { negative, whole: whole.trim_start_matches('0'), fraction, suffix })
    }
}

/// The form that a suffix means, and its power: of two for the binary form, of ten otherwise.
fn form_of(suffix: &str) -> Option<(QuantityForm, i32)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(one, _)| *one == suffix) {
        return Some((QuantityForm::Decimal, *power));
    }
    if let Some(power) = BINARY.iter().position(|one| *one == suffix) {
        return Some((QuantityForm::Binary, power as i32 * 10));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((QuantityForm::Exponent, power))
}

/// No finer than the power `finest`, away from zero.
fn round_up(digits: i128, power: i32, finest: i32) -> (i128, i32) {
    if power >= finest {
        return (digits, power);
    }
    let Some(unit) = finest.checked_sub(power).and_then(|by| 10_i128.checked_pow(by as u32)) else {
        return (digits.signum(), finest);
    };
    (digits / unit + i128::from(digits % unit != 0), finest)
}

fn rounded_to_nano(digits: i128, power: i32) -> Option<i128> {
    let by = u32::try_from(power.checked_sub(NANO)?).ok()?;
    digits.checked_mul(10_i128.checked_pow(by)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity.canonical(), expected, "{text}");
        let again = Quantity::parse(expected).unwrap();
        assert_eq!(again.canonical(), expected, "{text} is stable");
    }

    #[test]
    fn canonical_forms() {
        for (text, expected) in [
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1000Ki", "1000Ki"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000M", "1G"),
            ("0m", "0"),
            ("0.0001", "100u"),
            ("1e3", "1e3"),
            ("10e2", "1e3"),
            ("1E3", "1E3"),
            ("1E", "1E"),
            ("-1000m", "-1"),
            ("0.1Ki", "102400m"),
            ("0.5Ki", "512"),
            ("0.1n", "1n"),
            ("100Ei", "9223372036854775807"),
            ("1.500", "1.500"),
            ("+1", "+1"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn exponents_end() {
        check("10e2147483647", "10e2147483646");
    }

    #[test]
    fn texts_that_are_no_quantities() {
        for (text, expected) in [
            ("", QuantityError::Form),
            ("much", QuantityError::Form),
            ("1 Gi", QuantityError::Form),
            ("1.2.3", QuantityError::Form),
            ("1mm", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1Kie3", QuantityError::Suffix),
        ] {
            assert_eq!(Quantity::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn resources_are_rounded_up_to_a_milli() {
        let rounded = |text: &str| Quantity::parse(text).unwrap().rounded_to_milli().canonical();
        assert_eq!(rounded("100n"), "1m");
        assert_eq!(rounded("1.0001"), "1001m");
        assert_eq!(rounded("-0.0001"), "-1m");
        assert_eq!(rounded("1Gi"), "1Gi");
    }

    #[test]
    fn thousandths() {
        for (text, expected) in [
            ("1", 1000),
            ("250m", 250),
            ("0.0001", 1),
            ("-1500m", -1500),
            ("1Ki", 1_024_000),
            ("1e3", 1_000_000),
            ("2P", 2_000_000_000_000_000_000),
            ("1Pi", 1_125_899_906_842_624_000),
            ("1e2147483647", MAX_BINARY * 1000),
            ("-99999999999999999999999999999999999999", -MAX_BINARY * 1000),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().thousandths(), expected, "{text}");
        }
    }

    #[test]
    fn powers_beyond_all_bounds() {
        for text in ["10e2147483647", "1000e2147483646", "1e-2147483648", "0e2147483647", "100e-2147483648"] {
            let quantity = Quantity::parse(text).unwrap().rounded_to_milli();
            assert!(!quantity.canonical().is_empty(), "{text}");
            assert_eq!(quantity.compare(&quantity), Ordering::Equal, "{text}");
        }
    }

    #[test]
    fn canonical_form_is_stable_and_keeps_the_value() {
        let suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2", "e1"];
        for whole in ["0", "1", "7", "8", "10", "999", "1000", "1024", "4096", "123456", "007"] {
            for fraction in ["", ".", ".5", ".25", ".000", ".0001", ".1234567891"] {
                for suffix in suffixes {
                    let text = format!("{whole}{fraction}{suffix}");
                    let Ok(quantity) = Quantity::parse(&text) else { continue };
                    let again = Quantity::parse(&quantity.canonical()).unwrap();
                    assert_eq!(again.canonical(), quantity.canonical(), "{text}");
                    assert_eq!(again.compare(&quantity), Ordering::Equal, "{text}");
                }
            }
        }
    }
}
