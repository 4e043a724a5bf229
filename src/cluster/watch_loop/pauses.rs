//! The backoff of a watch.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);

/// After an error the next attempt waits 0.5 s, 1 s, 2 s … up to this.
pub(in crate::cluster) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct WatchBackoff {
    next: Duration,
    is_due: bool,
    /// The limit before a list: an optional list that is refused waits longer.
    longest_of_lists: Duration,
}

impl WatchBackoff {
    pub fn new(longest_of_lists: Duration) -> Self {
        Self { next: FIRST, is_due: false, longest_of_lists }
    }

    /// The next attempt waits.
    pub fn note_failure(&mut self) {
        self.is_due = true;
    }

    /// A request succeeded: the next error starts a new backoff.
    pub fn reset(&mut self) {
        self.next = FIRST;
    }

    pub async fn wait(&mut self, is_list: bool) {
        if std::mem::take(&mut self.is_due) {
            let longest = if is_list { self.longest_of_lists } else { LONGEST_PAUSE };
            let pause = self.next.min(longest);
            self.next = (pause * 2).min(longest);
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_a_success() {
        let mut pauses = WatchBackoff::new(LONGEST_PAUSE * 2);
        let mut waited = async |is_list: bool| {
            let start = Instant::now();
            pauses.wait(is_list).await;
            let first = start.elapsed().as_millis();
            let mut all = vec![first];
            for _ in 0..8 {
                pauses.note_failure();
                let start = Instant::now();
                pauses.wait(is_list).await;
                all.push(start.elapsed().as_millis());
            }
            pauses.reset();
            all
        };
        let expected = [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(waited(false).await, expected);
        let expected = [0, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000];
        assert_eq!(waited(true).await, expected);
    }
}
