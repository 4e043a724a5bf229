//! Renews the credential of a plug-in: at the first connection, before it expires, and once after a server refused
//! it.
//!
//! One API behind a server may refuse what all others accept. So a refusal does not discard a valid credential, and
//! does not run the plug-in more often than its expiry.
//!
//! While the credential is valid, no request waits for the next one. A caller that times out does not cancel the run,
//! because others may wait for it.

use std::sync::Arc;

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::ExecConfig;
use parking_lot::Mutex;

use super::Credential;
use super::identity::Identity;
use super::login::bearer;
use super::plug_in::{self, Brought};

/// A credential this close to its end may expire on the way.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// The shortest time between two runs.
const PAUSE: SignedDuration = SignedDuration::from_secs(15);
/// The longest time from a failed run to the next.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Clones share it.
#[derive(Clone)]
pub(super) struct Renewal(Arc<Inner>);

struct Inner {
    exec: ExecConfig,
    user: String,
    /// Receives new certificates.
    identity: Arc<Identity>,
    now: Mutex<Now>,
    /// Locked during a run.
    turn: tokio::sync::Mutex<()>,
}

/// The current credential.
#[derive(Default)]
struct Now {
    header: Option<HeaderValue>,
    is_certificate: bool,
    issued: Option<Timestamp>,
    expires: Option<Timestamp>,
    /// When to run the plug-in again.
    due: Option<Timestamp>,
    /// When the last run ended.
    ran: Option<Timestamp>,
    /// Number of runs.
    runs: u64,
    /// Number of successful runs.
    brought: u64,
    refused: Refused,
    /// The error of the last run.
    trouble: Option<String>,
}

/// Whether the server refused the credential.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Refused {
    #[default]
    No,
    /// The current credential was refused.
    Now,
    /// This credential or the one before was refused, and the plug-in has run since. Until a server accepts the
    /// current one, another refusal changes nothing.
    Before,
}

/// What to do before the next request.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Renew in the background: the current credential is still valid.
    Soon,
    Wait,
    Trouble(String),
}

impl Now {
    fn need(&self, now: Timestamp) -> Need {
        let is_due = self.due.is_some_and(|due| due <= now);
        let is_refused = self.refused == Refused::Now && is_due;
        let is_over = is_refused || self.expires.is_some_and(|end| end <= now + MARGIN);
        match (is_due, is_over, &self.trouble) {
            (true, true, _) => Need::Wait,
            (true, false, _) => Need::Soon,
            (false, true, Some(trouble)) => Need::Trouble(trouble.clone()),
            (false, ..) => Need::Nothing,
        }
    }

    fn note(&mut self, brought: Result<(Brought, Option<HeaderValue>), String>, now: Timestamp) {
        self.runs += 1;
        self.ran = Some(now);
        let was_refused = self.refused != Refused::No;
        if was_refused {
            self.refused = Refused::Before;
        }
        match brought {
            Ok((brought, header)) => {
                self.brought += 1;
                self.header = header;
                self.is_certificate = brought.certificate.is_some() && brought.token.is_none();
                (self.issued, self.expires) = (brought.issued, brought.expires);
                self.trouble = None;
                // Some plug-ins return the same credential until its last moment: they run ever more often, within a
                // limit.
                self.due = self
                    .credential(String::new())
                    .doubtful_from()
                    .map(|from| if now < from { from } else { now + self.left(now).max(PAUSE) });
            }
            Err(trouble) => {
                self.trouble = Some(trouble);
                let pause = if was_refused { PAUSE } else { self.left(now).clamp(PAUSE, LONGEST_PAUSE) };
                self.due = Some(now + pause);
            }
        }
    }

    /// Half of the remaining lifetime.
    fn left(&self, now: Timestamp) -> SignedDuration {
        self.expires.map_or(SignedDuration::ZERO, |end| end.duration_since(now) / 2)
    }

    /// Records the answer of a server to this credential.
    fn answered(&mut self, brought: u64, is_refused: bool, now: Timestamp) {
        if brought != self.brought {
            return;
        }
        match (is_refused, self.refused) {
            (false, Refused::Before) => self.refused = Refused::No,
            (true, Refused::No) => {
                self.refused = Refused::Now;
                self.due = Some(self.ran.map_or(now, |ran| now.max(ran + PAUSE)));
            }
            _ => {}
        }
    }

    fn credential(&self, way: String) -> Credential {
        Credential {
            way,
            expires: self.expires,
            issued: self.issued,
            renewed: true,
            of_plug_in: true,
            trouble: self.trouble.clone(),
        }
    }
}

impl Renewal {
    pub fn new(exec: ExecConfig, user: &str, identity: Arc<Identity>) -> Self {
        let (now, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { exec, user: user.to_owned(), identity, now, turn }))
    }

    /// The first run.
    pub async fn begin(&self) -> Result<(), String> {
        self.clone().run(0).await;
        match self.0.now.lock().trouble.clone() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    /// The header and the number of the credential; runs the plug-in if due.
    pub async fn header(&self) -> Result<(Option<HeaderValue>, u64), String> {
        let (need, runs) = self.need();
        match need {
            // A run is in progress.
            Need::Soon if self.0.turn.try_lock().is_err() => {}
            Need::Soon => drop(tokio::spawn(self.clone().run(runs))),
            Need::Nothing => {}
            Need::Wait => {
                self.renewed(runs).await;
                if let (Need::Trouble(trouble), _) = self.need() {
                    return Err(trouble);
                }
            }
            Need::Trouble(trouble) => return Err(trouble),
        }
        let now = self.0.now.lock();
        Ok((now.header.clone(), now.brought))
    }

    /// Runs the plug-in if due, and waits for it.
    pub async fn look(&self) {
        let (need, runs) = self.need();
        if matches!(need, Need::Soon | Need::Wait) {
            self.renewed(runs).await;
        }
    }

    pub fn answered(&self, brought: u64, is_refused: bool) {
        self.0.now.lock().answered(brought, is_refused, Timestamp::now());
    }

    pub fn credential(&self) -> Credential {
        let now = self.0.now.lock();
        let what = if now.is_certificate { "client certificate" } else { "token" };
        now.credential(format!(
            "{what} of the plug-in {} for user {}",
            plug_in::name_of(&self.0.exec),
            self.0.user
        ))
    }

    fn need(&self) -> (Need, u64) {
        let now = self.0.now.lock();
        (now.need(Timestamp::now()), now.runs)
    }

    async fn renewed(&self, runs: u64) {
        // It fails only when the process ends.
        let _ = tokio::spawn(self.clone().run(runs)).await;
    }

    /// One run, unless another caller ran it meanwhile.
    async fn run(self, runs: u64) {
        let it = &self.0;
        let _turn = it.turn.lock().await;
        if it.now.lock().runs != runs {
            return;
        }
        let brought = plug_in::run(&it.exec).await.and_then(|brought| {
            let header = brought.token.as_ref().map(bearer).transpose()?;
            if let Some(certificate) = &brought.certificate {
                it.identity.set(Arc::clone(certificate));
            }
            Ok((brought, header))
        });
        it.now.lock().note(brought, Timestamp::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
    }

    /// Received at second `from`, valid until second `until`.
    fn brings(now: &mut Now, from: i64, until: i64) {
        let brought =
            Brought { token: None, certificate: None, issued: Some(at(0)), expires: Some(at(until)) };
        now.note(Ok((brought, None)), at(from));
    }

    #[test]
    fn plug_in_runs_at_a_tenth_of_lifetime() {
        let mut now = Now::default();
        brings(&mut now, 0, 900);
        let needs = |now: &Now, seconds: &[i64]| -> Vec<Need> {
            seconds.iter().map(|second| now.need(at(*second))).collect()
        };
        assert_eq!(
            needs(&now, &[0, 809, 810, 889, 890, 1000]),
            [Need::Nothing, Need::Nothing, Need::Soon, Need::Soon, Need::Wait, Need::Wait]
        );
        // The same credential again: the next run is after half of its remaining lifetime, at least 15 s later.
        brings(&mut now, 810, 900);
        assert_eq!(needs(&now, &[811, 854, 855]), [Need::Nothing, Need::Nothing, Need::Soon]);
        brings(&mut now, 895, 900);
        assert_eq!(needs(&now, &[896, 909, 910]), [Need::Nothing, Need::Nothing, Need::Wait]);
        brings(&mut now, 910, 1800);
        assert_eq!(needs(&now, &[911]), [Need::Nothing]);
    }

    #[test]
    fn one_that_fails_is_run_again_with_pauses() {
        let mut now = Now::default();
        brings(&mut now, 0, 900);
        now.note(Err("it fails".to_owned()), at(810));
        assert_eq!(now.need(at(811)), Need::Nothing, "what it brought is good still");
        assert_eq!(now.need(at(855)), Need::Soon);
        now.note(Err("it fails".to_owned()), at(900));
        assert_eq!(now.need(at(901)), Need::Trouble("it fails".to_owned()));
        assert_eq!(now.need(at(915)), Need::Wait);
        let told = now.credential("token".to_owned()).warning(at(901));
        assert_eq!(told.as_deref(), Some("it fails"));
    }

    #[test]
    fn refused_credential_is_renewed_once() {
        let mut now = Now::default();
        brings(&mut now, 0, 900);
        now.answered(0, true, at(1));
        assert_eq!(now.need(at(1)), Need::Nothing, "what was shown before says nothing");
        now.answered(1, true, at(20));
        assert_eq!(now.need(at(20)), Need::Wait);
        brings(&mut now, 20, 900);
        now.answered(2, true, at(21));
        assert_eq!(now.need(at(100)), Need::Nothing, "it brings what is refused");
        now.answered(2, false, at(101));
        now.answered(2, true, at(102));
        assert_eq!(now.need(at(102)), Need::Wait);
    }

    #[test]
    fn one_refusal_keeps_a_valid_credential() {
        let mut now = Now::default();
        brings(&mut now, 0, 900);
        now.answered(1, true, at(100));
        now.note(Err("it fails".to_owned()), at(100));
        assert_eq!(now.need(at(101)), Need::Nothing, "one API may refuse what all others take");
        now.answered(1, true, at(102));
        assert_eq!(now.need(at(114)), Need::Nothing);
        assert_eq!(now.need(at(115)), Need::Soon);
        now.note(Err("it fails".to_owned()), at(115));
        assert_eq!(now.need(at(130)), Need::Soon, "nobody has taken it since");
        now.note(Err("it fails".to_owned()), at(895));
        assert_eq!(now.need(at(896)), Need::Trouble("it fails".to_owned()));
    }

    #[test]
    fn working_plug_in_runs_not_for_each_refusal() {
        let mut now = Now::default();
        brings(&mut now, 0, 900);
        for second in 1..=60 {
            now.answered(now.brought, false, at(second));
            now.answered(now.brought, true, at(second));
            match now.need(at(second)) {
                Need::Wait => brings(&mut now, second, 900),
                other => assert_eq!(other, Need::Nothing, "what it brought is shown"),
            }
        }
        assert_eq!(now.runs, 5);
    }
}
