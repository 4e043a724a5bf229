//! Pauses that differ by subject, so that subjects that failed together are not retried together.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Returns the part of the pause to add. It is the same for the same subject and number, so that a simulated run is reproducible.
/// `most` is the largest part, in percent.
pub fn jittered(pause: Duration, most: u32, subject: &impl Hash, number: u32) -> Duration {
    let mut hasher = DefaultHasher::new();
    (subject, number).hash(&mut hasher);
    let part = hasher.finish() % 10_000;
    pause + pause.mul_f64(part as f64 / 10_000.0 * f64::from(most) / 100.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn jitter_spreads_subjects() {
        let pause = Duration::from_secs(100);
        let pauses: BTreeSet<Duration> = (0..1_000).map(|number| jittered(pause, 20, &number, 0)).collect();
        assert!(pauses.len() > 900, "{}", pauses.len());
        assert!(pauses.first().is_some_and(|least| *least >= pause && *least < pause.mul_f64(1.01)));
        assert!(pauses.last().is_some_and(|most| *most < pause.mul_f64(1.2) && *most > pause.mul_f64(1.19)));
        assert_eq!(jittered(pause, 20, &"bj5", 3), jittered(pause, 20, &"bj5", 3));
    }
}
