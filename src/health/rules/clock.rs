//! The time functions of Lua's `os`, in UTC.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use mlua::{Error, Function, Lua, Result, Table, Value};

use super::meter::ScriptMeter;

/// Instructions that one call counts.
const PRICE: u64 = 100;
/// In bytes: far more than any format needs.
const LONGEST_FORMAT: usize = 100;

/// The functions by name.
pub fn functions(lua: &Lua, meter: &Arc<ScriptMeter>) -> Result<Vec<(&'static str, Function)>> {
    let (of_time, of_date) = (Arc::clone(meter), Arc::clone(meter));
    let time = lua.create_function(move |_, table| {
        of_time.charge(PRICE)?;
        time(table)
    })?;
    let date = lua.create_function(move |lua, arguments| {
        of_date.charge(PRICE)?;
        date(lua, arguments)
    })?;
    Ok(vec![("time", time), ("date", date)])
}

/// Seconds since 1970: now, or of a table with year, month, day, and optionally a time. Values beyond a month or day
/// carry over.
fn time(table: Option<Table>) -> Result<i64> {
    let Some(table) = table else { return Ok(Timestamp::now().as_second()) };
    let field = |name: &str, default: Option<i64>| match table.raw_get::<Option<i64>>(name) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => default.ok_or_else(|| Error::runtime(format!("field '{name}' missing in date table"))),
        Err(_) => Err(Error::runtime(format!("field '{name}' is not an integer"))),
    };
    let year = i16::try_from(field("year", None)?).map_err(|_| out_of_range())?;
    let (month, day) = (field("month", None)?, field("day", None)?);
    let (hour, minute, second) = (field("hour", Some(12))?, field("min", Some(0))?, field("sec", Some(0))?);
    let begin = DateTime::new(year, 1, 1, 0, 0, 0, 0).map_err(|_| out_of_range())?;
    let span = || {
        let months = Span::new().try_months(month.checked_sub(1)?).ok()?;
        let rest = Span::new().try_days(day.checked_sub(1)?).ok()?.try_hours(hour).ok()?;
        Some((months, rest.try_minutes(minute).ok()?.try_seconds(second).ok()?))
    };
    let (months, rest) = span().ok_or_else(out_of_range)?;
    let then = begin.checked_add(months).and_then(|it| it.checked_add(rest)).map_err(|_| out_of_range())?;
    let then = then.to_zoned(TimeZone::UTC).map_err(|_| out_of_range())?;
    Ok(then.timestamp().as_second())
}

/// A text by the format, or a table for `*t`.
fn date(lua: &Lua, (format, seconds): (Option<String>, Option<i64>)) -> Result<Value> {
    let then = match seconds {
        Some(seconds) => Timestamp::from_second(seconds).map_err(|_| out_of_range())?,
        None => Timestamp::now(),
    };
    let then = then.to_zoned(TimeZone::UTC);
    let format = format.unwrap_or_else(|| "%c".to_owned());
    if format.len() > LONGEST_FORMAT {
        return Err(Error::runtime(format!(
            "a format of {} bytes; {LONGEST_FORMAT} is the most",
            format.len()
        )));
    }
    // It is always UTC.
    let format = format.strip_prefix('!').unwrap_or(&format);
    if format.starts_with("*t") {
        let table = lua.create_table()?;
        for (name, number) in [
            ("year", i64::from(then.year())),
            ("month", i64::from(then.month())),
            ("day", i64::from(then.day())),
            ("hour", i64::from(then.hour())),
            ("min", i64::from(then.minute())),
            ("sec", i64::from(then.second())),
            ("wday", i64::from(then.weekday().to_sunday_one_offset())),
            ("yday", i64::from(then.day_of_year())),
        ] {
            table.raw_set(name, number)?;
        }
        table.raw_set("isdst", false)?;
        return Ok(Value::Table(table));
    }
    let text = strtime::format(format, &then).map_err(|error| Error::runtime(error.to_string()))?;
    Ok(Value::String(lua.create_string(text)?))
}

fn out_of_range() -> Error {
    Error::runtime("time out of range")
}
