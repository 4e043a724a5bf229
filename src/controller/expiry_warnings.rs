//! Logs in time that the credential of a cluster expires.

use jiff::{SignedDuration, Timestamp};

use crate::cluster::Credential;
use crate::model::ClusterName;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The stages that were logged: 30 days, 7 days, one day, and the end, one line each.
#[derive(Debug, Default)]
pub struct ExpiryWarnings {
    stages_logged: u8,
}

impl ExpiryWarnings {
    /// Logs a new stage, if there is one.
    pub fn log_new_stage(&mut self, cluster: &ClusterName, credential: &Credential, now: Timestamp) {
        if let Some(warning) = self.next_warning(credential, now) {
            tracing::warn!(%cluster, "{warning}");
        }
    }

    fn next_warning(&mut self, credential: &Credential, now: Timestamp) -> Option<String> {
        let warning = credential.warning(now);
        let left = credential.expires.map(|expires| expires.duration_since(now));
        let stage = match (&warning, left) {
            (None, _) => 0,
            (_, None) => 1,
            (_, Some(left)) if !left.is_positive() => 4,
            (_, Some(left)) if left < DAY => 3,
            (_, Some(left)) if left < DAY * 7 => 2,
            _ => 1,
        };
        let is_news = stage > self.stages_logged;
        self.stages_logged = stage;
        warning.filter(|_| is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_logged_once() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().expect("a time");
        let mut expiry = ExpiryWarnings::default();
        let mut check = |hours: i64, expected: bool| {
            let credential = Credential {
                description: "token of user admin".to_owned(),
                expires: Some(now + SignedDuration::from_hours(hours)),
                ..Credential::default()
            };
            assert_eq!(expiry.next_warning(&credential, now).is_some(), expected, "{hours}");
        };
        for (hours, expected) in [
            (24 * 40, false),
            (24 * 29, true),
            (24 * 28, false),
            (24 * 6, true),
            (24 * 5, false),
            (20, true),
            (-1, true),
            (-2, false),
            // Another credential.
            (24 * 90, false),
            (24 * 20, true),
        ] {
            check(hours, expected);
        }
    }
}
