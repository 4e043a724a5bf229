//! Says whether a new version may begin now, by the Windows that select its target.
//!
//! Depends on the windows and the time alone, so downtime or a jumping clock changes nothing. Computed by days, in bounded work
//! for every schedule. `rollout`, `promotion`, `report` and `tutti get` use it.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::model::{CALENDAR_CYCLE_DAYS, CronSchedule, Window, WindowAction, WindowTimes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowActivity {
    pub is_active: bool,
    /// Until when this is so at least. `None`: for ever.
    pub until: Option<Timestamp>,
}

/// Combined state of the windows that select one target.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowState {
    Open,
    Shut(ShutWindow),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShutWindow {
    pub window: Arc<Window>,
    /// When it may end. `None`: not by itself.
    pub until: Option<Timestamp>,
}

/// Text about a shut window, for all reports.
pub fn shut_text(
    name: &str,
    until: Option<Timestamp>,
    reason: Option<&str>,
    may_override: &[String],
) -> String {
    format!("window {name} is {}", shut_state_text(until, reason, may_override))
}

pub fn shut_state_text(until: Option<Timestamp>, reason: Option<&str>, may_override: &[String]) -> String {
    let until = until.map(|until| format!(" until {}", until.strftime("%F %H:%M UTC"))).unwrap_or_default();
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let who = match may_override {
        [] => String::new(),
        names => format!(", {} may override", names.join(", ")),
    };
    format!("shut{until}{who}{reason}")
}

/// Limit of beginnings that follow each other without a break.
const MAX_BEGINNINGS: usize = 4096;

/// A `deny` window shuts while it is active. `allow` windows shut while none of them is active.
pub fn window_state<'w>(windows: impl IntoIterator<Item = &'w Arc<Window>>, now: Timestamp) -> WindowState {
    let (mut denied, mut allowed, mut is_allowed) = (Vec::new(), Vec::new(), false);
    for window in windows {
        let WindowActivity { is_active: lasts, until } = activity_at(&window.times, now);
        let shut = || ShutWindow { window: Arc::clone(window), until };
        match window.action {
            WindowAction::Deny if lasts => denied.push(shut()),
            WindowAction::Deny => {}
            WindowAction::Allow if lasts => is_allowed = true,
            WindowAction::Allow => allowed.push(shut()),
        }
    }
    // No end counts as the latest.
    let end = |shut: &ShutWindow| (shut.until.is_none(), shut.until);
    let last = denied.into_iter().max_by_key(|shut| (end(shut), Reverse(shut.window.name.clone())));
    let next = allowed.into_iter().min_by_key(|shut| (end(shut), shut.window.name.clone()));
    match last.or(next.filter(|_| !is_allowed)) {
        Some(shut) => WindowState::Shut(shut),
        None => WindowState::Open,
    }
}

pub fn activity_at(times: &WindowTimes, now: Timestamp) -> WindowActivity {
    match times {
        WindowTimes::Unknown => WindowActivity { is_active: true, until: None },
        WindowTimes::Once { from, .. } if now < *from => {
            WindowActivity { is_active: false, until: Some(*from) }
        }
        WindowTimes::Once { to, .. } => {
            WindowActivity { is_active: now < *to, until: Some(*to).filter(|to| now < *to) }
        }
        WindowTimes::Repeated { schedule, duration, time_zone } => {
            match current_end(schedule, *duration, time_zone, now) {
                Some(end) => WindowActivity { is_active: true, until: Some(end) },
                None => WindowActivity { is_active: false, until: next_beginning(schedule, time_zone, now) },
            }
        }
    }
}

/// The end of the active period, including periods that begin before it ends.
fn current_end(
    schedule: &CronSchedule,
    duration: SignedDuration,
    zone: &TimeZone,
    now: Timestamp,
) -> Option<Timestamp> {
    let day_of = |at: Timestamp| zone.to_datetime(at).date();
    let end_of = |begins: Timestamp| begins.saturating_add(duration).unwrap_or(Timestamp::MAX);
    let oldest = day_of(now.saturating_sub(duration).unwrap_or(Timestamp::MIN));
    let before = day_of(now).series(-1.day()).take_while(|day| *day >= oldest);
    let newest_of = |day| schedule.times_on(day, zone).into_iter().rev().find(|begins| *begins <= now);
    let begins = { before }.find_map(newest_of)?;
    let mut end = Some(end_of(begins)).filter(|end| now < *end)?;
    let mut number = 0;
    for day in day_of(begins).series(1.day()) {
        if day > day_of(end) || number > MAX_BEGINNINGS {
            break;
        }
        for begins in schedule.times_on(day, zone) {
            if begins <= end {
                number += 1;
                end = end.max(end_of(begins));
            }
        }
    }
    Some(end)
}

fn next_beginning(schedule: &CronSchedule, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let days = zone.to_datetime(now).date().series(1.day()).take(CALENDAR_CYCLE_DAYS);
    { days }.find_map(|day| schedule.times_on(day, zone).into_iter().find(|begins| now < *begins))
}
