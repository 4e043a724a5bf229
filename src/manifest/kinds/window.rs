//! Kind Window: when new versions may begin, and when not.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::target_selector::{self, read_all, refuse_empty};
use super::time_zone::read_zone;
use super::{read_envelope, spec_fields};
use crate::model::{
    CronSchedule, Diagnostic, Location, TargetSelector, Window, WindowAction, WindowTimes, short_line,
};

/// A folder of its own, because a window may stop all rollouts.
pub const FOLDER: &str = "policies/";

const ACTIONS: &[(&str, WindowAction)] = &[("deny", WindowAction::Deny), ("allow", WindowAction::Allow)];

/// Characters of a path that replaces a missing name.
const MOST_OF_A_NAME: usize = 63;

/// Longer than the period of any practical schedule.
const LONGEST_DURATION: SignedDuration = SignedDuration::from_hours(366 * 24);

const SCHEDULE_HELP: &str =
    "minute, hour, day of the month, month, day of the week: \"0 18 * * Fri\" is each Friday at 18:00";

/// A manifest with a mistake becomes a window that is always in effect and selects everything: a freeze with a typo must not count as
/// absent.
pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Window {
    let window = read_window(root, reading);
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    let unreadable = || {
        let name = root.find(&["metadata", "name"]).and_then(YamlNode::as_str).unwrap_or(reading.file);
        unreadable(name, reading.location(root))
    };
    window.filter(|_| !is_wrong).unwrap_or_else(unreadable)
}

pub fn unreadable(name: &str, location: Location) -> Window {
    Window {
        name: short_line(name, MOST_OF_A_NAME),
        action: WindowAction::Deny,
        selector: TargetSelector::default(),
        times: WindowTimes::Unknown,
        reason: Some("its manifest has an error".to_owned()),
        may_override: Vec::new(),
        location,
    }
}

fn read_window(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Window> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let action = fields.required("action", reading);
    let action = action.and_then(|action| reading.choice(&action, ACTIONS, &[], false));
    let selector = match fields.optional_selector("select", reading) {
        Some(select) => target_selector::read(&select, reading),
        None => Some(TargetSelector::default()),
    };
    let time_zone = fields.required("timeZone", reading).and_then(|zone| read_zone(&zone, reading));
    let times = read_times(&mut fields, time_zone, reading);
    let reason = fields.optional("reason", reading).and_then(|reason| reading.text(&reason));
    let may_override = fields.optional("override", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        read_all(&list, reading, |name, reading| reading.word(name))
    });
    fields.finish(reading);
    let metadata = metadata?;
    Some(Window {
        name: metadata.name,
        action: action?,
        selector: selector?,
        times: times?,
        reason,
        may_override: may_override.unwrap_or_default(),
        location: metadata.location,
    })
}

fn read_times(
    fields: &mut ManifestFields<'_>,
    zone: Option<TimeZone>,
    reading: &mut ReadContext<'_>,
) -> Option<WindowTimes> {
    let given = ["schedule", "duration", "from", "to"].map(|name| fields.optional(name, reading));
    match given {
        [Some(schedule), Some(duration), None, None] => {
            let schedule = read_schedule(&schedule, reading);
            let duration = read_duration(&duration, reading);
            Some(WindowTimes::Repeated { schedule: schedule?, duration: duration?, time_zone: zone? })
        }
        [None, None, Some(from), Some(end)] => {
            let (from, to) = (read_time(&from, reading), read_time(&end, reading));
            let (from, to, zone) = (from?, to?, zone?);
            if to <= from {
                reading.bad_value(&end, "the window ends before it begins", "write a later `to`");
                return None;
            }
            Some(WindowTimes::Once {
                from: timestamp_at(from, &zone, false)?,
                to: timestamp_at(to, &zone, true)?,
            })
        }
        _ => {
            let (place, path) = (fields.location().clone(), fields.path_of("schedule"));
            let message = "a window has `schedule` and `duration`, or `from` and `to`";
            reading
                .mistake(codes::NOT_EXACTLY_ONE, message, place, &path)
                .help("schedule says when it begins again and again; from and to are one stretch of time");
            None
        }
    }
}

fn read_schedule(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<CronSchedule> {
    let text = reading.text(value)?;
    match CronSchedule::parse(&text) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            reading.bad_value(value, error.to_string(), SCHEDULE_HELP);
            None
        }
    }
}

fn read_duration(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<SignedDuration> {
    let duration = SignedDuration::try_from(reading.duration(value)?).ok();
    let duration = duration.filter(|duration| *duration <= LONGEST_DURATION);
    if duration.is_none() {
        reading.bad_value(
            value,
            "a window lasts 8784h at most",
            "write a shorter duration, or `from` and `to`",
        );
    }
    duration
}

/// `2026-12-24T00:00`, in local time of the zone.
fn read_time(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<DateTime> {
    let text = reading.text(value)?;
    let fits = text.len() == 16
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            10 => byte == b'T',
            13 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
    let time = text.parse::<DateTime>().ok().filter(|_| fits);
    if time.is_none() {
        reading.bad_value(
            value,
            format!("{text:?} is not a date and time"),
            "write it as the clocks of timeZone show it: 2026-12-24T00:00",
        );
    }
    time
}

/// A local time that does not exist counts as after the gap. Of a local time that exists twice, the first begins the window and the
/// second ends it.
fn timestamp_at(time: DateTime, zone: &TimeZone, is_end: bool) -> Option<Timestamp> {
    let at = zone.to_ambiguous_timestamp(time);
    if is_end { at.later().ok() } else { at.compatible().ok() }
}
