//! Parses timeouts of flags.

use std::time::Duration;

use crate::manifest::read;

/// `90s` or `5m`, as in manifests and with kubectl; a number alone is seconds, as with `argocd`.
pub fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let told = seconds.or_else(|| read::parse_duration(text));
    told.ok_or_else(|| "write it with units: 90s, 5m or 1h30m; a number alone is seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_units_or_in_seconds() {
        for (text, seconds) in [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400)] {
            assert_eq!(timeout(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "-1", "1.5", "5 m", "m", "1d", "99999999999999999999"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }
}
