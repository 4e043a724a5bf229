//! Writes standard output and standard error: tables for people, JSON and YAML for programs.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::exit::Exit;
use super::width;
use crate::model::set_panic_hook;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Table,
    Json,
    Yaml,
}

/// Writes one line to standard output. `println!` would panic on a closed pipe.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::output::write_text(format_args!("{}\n", format_args!($($text)*))) };
}
pub(super) use say;

/// Writes one line to standard error. `eprintln!` would panic on a closed pipe.
macro_rules! tell {
    ($($text:tt)*) => { $crate::cli::output::write_error(format_args!("{}\n", format_args!($($text)*))) };
}
pub(super) use tell;

/// Writes text to standard output. After a closed pipe (`tutti plan | head`) the command still finishes, with its normal exit
/// code.
pub fn write_text(text: fmt::Arguments<'_>) {
    match std::io::stdout().lock().write_all(without_control_codes(&text.to_string()).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell!("error: failed to write to standard output: {error}");
            std::process::exit(Exit::Configuration as i32);
        }
        _ => {}
    }
}

/// Standard error is JSON lines.
static ERRORS_AS_JSON: AtomicBool = AtomicBool::new(false);

/// Keeps the usual panic output, except for panics that are reported as mistakes.
pub fn install_panic_hook() {
    let usual = std::panic::take_hook();
    set_panic_hook(usual);
}

/// Switches standard error to JSON lines, for panics too.
pub fn write_errors_as_json() {
    ERRORS_AS_JSON.store(true, Ordering::Relaxed);
    set_panic_hook(|panic| tell!("error: {panic}"));
}

/// Writes text to standard error; errors are ignored.
pub fn write_error(text: fmt::Arguments<'_>) {
    let mut errors = std::io::stderr().lock();
    let _ = match ERRORS_AS_JSON.load(Ordering::Relaxed) {
        true => writeln!(errors, "{}", log_line_json(&text.to_string())),
        false => errors.write_all(without_control_codes(&text.to_string()).as_bytes()),
    };
}

/// Replaces control characters, whatever their source. Colours stay; a colour that hides text does not.
fn without_control_codes(text: &str) -> Cow<'_, str> {
    let is_obeyed = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = colour_length(rest).unwrap_or(0);
        shown.push_str(&rest[..length]);
        rest = &rest[length..];
        if length == 0 {
            let mut letters = rest.chars();
            letters.next();
            shown.push(char::REPLACEMENT_CHARACTER);
            rest = letters.as_str();
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Length of a colour sequence at the start.
fn colour_length(text: &str) -> Option<usize> {
    const HIDDEN: &str = "8";
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|it: char| !it.is_ascii_digit() && it != ';')?;
    let is_colour = numbers[end..].starts_with('m') && numbers[..end].split(';').all(|it| it != HIDDEN);
    is_colour.then_some("\u{1b}[".len() + end + 1)
}

/// In the format of other log lines.
fn log_line_json(text: &str) -> Value {
    let text = console::strip_ansi_codes(text.trim_end());
    let level = match text.split([':', '[']).next() {
        Some("error") => "ERROR",
        Some("warning") => "WARN",
        _ => "INFO",
    };
    json!({"timestamp": Timestamp::now().to_string(), "level": level, "fields": {"message": text}})
}

/// Writes a value as JSON or YAML. Callers write tables.
pub fn write_value(format: OutputFormat, value: &impl Serialize) -> anyhow::Result<()> {
    match format {
        OutputFormat::Yaml => write_text(format_args!("{}", serde_yaml::to_string(value)?)),
        OutputFormat::Json | OutputFormat::Table => say!("{}", serde_json::to_string_pretty(value)?),
    }
    Ok(())
}

pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings);
    for column in table.column_iter_mut() {
        column.set_padding((0, COLUMN_GAP));
    }
    table
}

/// Wraps the widest columns to the terminal's width. In files and pipes each row is one line.
pub fn fit_terminal(table: Table) -> Table {
    let Some(width) = width::detected_columns().and_then(|width| u16::try_from(width).ok()) else {
        return table;
    };
    fit_width(table, width)
}

/// A space that is not wrapped or trimmed.
pub const NON_BREAKING_SPACE: &str = "\u{a0}";

/// Spaces after a column.
const COLUMN_GAP: u16 = 2;

fn fit_width(mut table: Table, width: u16) -> Table {
    // Narrower columns are harder to read than lines that the terminal wraps.
    const NARROWEST: u16 = 12;
    let widths = table.column_max_content_widths();
    // Those after the last column are not written.
    let of_all =
        |most: u16| widths.iter().fold(0_u16, |sum, one| sum.saturating_add(COLUMN_GAP + (*one).min(most)));
    let gaps = u16::try_from(widths.len().saturating_sub(1)).unwrap_or(u16::MAX);
    let excess = of_all(u16::MAX).saturating_sub(width.saturating_add(COLUMN_GAP));
    if (1..=gaps).contains(&excess) {
        // One space between columns suffices.
        table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 1)));
        return table;
    }
    let fits = |most: &u16| of_all(*most) <= width.saturating_add(COLUMN_GAP);
    let Some(most) = (NARROWEST..=width).rev().find(fits) else { return table };
    // The rest goes to the last column.
    let rest = width.saturating_add(COLUMN_GAP).saturating_sub(of_all(most));
    let last = widths.len().saturating_sub(1);
    for (number, column) in table.column_iter_mut().enumerate() {
        let Some(content) = widths.get(number).filter(|content| **content > most) else { continue };
        let content = if number == last { (most + rest).min(*content) } else { most };
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(content + COLUMN_GAP)));
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.saturating_add(COLUMN_GAP));
    table
}

/// Writes a table without trailing spaces.
pub fn write_table(table: &Table) {
    for line in table.to_string().lines() {
        say!("{}", line.replace(NON_BREAKING_SPACE, " ").trim_end());
    }
}

/// Age in kubectl's format: `3h37m`, `47h`, `12d`.
pub fn age(created: Option<&str>, now: Timestamp) -> String {
    let Some(created) = created.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "-".to_owned();
    };
    let seconds = now.as_second().saturating_sub(created.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => format!("{minutes}m{}s", seconds % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => format!("{hours}h{}m", minutes % 60),
        28_800..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_not_obeyed() {
        for (text, expected) in [
            ("a\tb\n", "a\tb\n"),
            ("\u{1b}[1;31mred\u{1b}[0m é", "\u{1b}[1;31mred\u{1b}[0m é"),
            ("a\u{1b}]0;title\u{7}b", "a\u{fffd}]0;title\u{fffd}b"),
            ("\u{1b}[2J\r\u{9b}2J\u{7f}", "\u{fffd}[2J\u{fffd}\u{fffd}2J\u{fffd}"),
            ("\u{1b}[8mhidden", "\u{fffd}[8mhidden"),
            ("\u{1b}", "\u{fffd}"),
            ("\u{1b}[1;", "\u{fffd}[1;"),
        ] {
            assert_eq!(without_control_codes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn widest_columns_wrap() {
        let of = |rows: &[[&str; 3]], width: u16| {
            let mut lines = table(&["APP", "WAVES", "WAITS"]);
            lines.add_rows(rows);
            let text = fit_width(lines, width).to_string();
            text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        let long = ["pay", "a a a a a a a a a a a a", "bb bb bb bb bb bb bb bb bb"];
        assert_eq!(of(&[long], 100)[1], "pay  a a a a a a a a a a a a  bb bb bb bb bb bb bb bb bb");
        assert_eq!(
            of(&[long], 40),
            [
                "APP  WAVES             WAITS",
                "pay  a a a a a a a a   bb bb bb bb bb bb",
                "     a a a a           bb bb bb",
            ]
        );
        assert_eq!(of(&[long], 55)[1], "pay a a a a a a a a a a a a bb bb bb bb bb bb bb bb bb");
        // One long column uses the free width.
        assert_eq!(
            of(&[["pay", "a", "bb bb bb bb bb bb bb bb bb"]], 34)[1],
            "pay  a      bb bb bb bb bb bb bb"
        );
        assert_eq!(of(&[long], 20).len(), 2, "too narrow to be wrapped");
    }

    #[test]
    fn ages_read_as_in_kubectl() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let check =
            |created: &str, expected: &str| assert_eq!(age(Some(created), now), expected, "{created}");
        check("2026-11-21T11:59:01Z", "59s");
        check("2026-11-21T11:56:55Z", "3m5s");
        check("2026-11-21T11:06:00Z", "54m");
        check("2026-11-21T08:23:00Z", "3h37m");
        check("2026-11-19T13:00:00Z", "47h");
        check("2026-11-09T12:00:00Z", "12d");
        assert_eq!(age(None, now), "-");
    }
}
