//! Durations as people read them: `12s`, `3m4s`, `5h`, `2d`.

/// Seconds as the server's tables write them.
pub(super) fn format_age(seconds: i64) -> String {
    let minutes = seconds / 60;
    let hours = minutes / 60;
    let days = hours / 24;
    let pair = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () if days < 8 * 365 => pair(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: i64, expected: &str) {
        assert_eq!(format_age(seconds), expected, "{seconds}");
    }

    #[test]
    fn ages() {
        check(-2, "<invalid>");
        check(119, "119s");
        check(120, "2m");
        check(185, "3m5s");
        check(3_600, "60m");
        check(3 * 3_600 + 120, "3h2m");
        check(30 * 3_600, "30h");
        check(3 * 86_400 + 7_200, "3d2h");
        check(100 * 86_400, "100d");
        check(800 * 86_400, "2y70d");
    }
}
