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
use super::authorization_header::bearer_header;
use super::identity::ClientIdentity;
use super::plug_in::{self, PlugInCredential};

/// A credential this close to its end may expire on the way.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// The shortest time between two runs.
const PAUSE: SignedDuration = SignedDuration::from_secs(15);
/// The longest time from a failed run to the next.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Clones share it.
#[derive(Clone)]
pub(super) struct PlugInRenewal(Arc<PlugInRenewalState>);

struct PlugInRenewalState {
    exec: ExecConfig,
    user: String,
    /// Receives new certificates.
    identity: Arc<ClientIdentity>,
    state: Mutex<RenewalState>,
    /// Locked during a run.
    run_lock: tokio::sync::Mutex<()>,
}

/// The current credential.
#[derive(Default)]
struct RenewalState {
    header: Option<HeaderValue>,
    is_certificate: bool,
    issued: Option<Timestamp>,
    expires: Option<Timestamp>,
    /// When to run the plug-in again.
    next_run_at: Option<Timestamp>,
    /// When the last run ended.
    last_run_at: Option<Timestamp>,
    /// Number of runs.
    runs: u64,
    /// Number of successful runs.
    credential_number: u64,
    refused: RefusalState,
    /// The error of the last run.
    last_error: Option<String>,
}

/// Whether the server refused the credential.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RefusalState {
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
enum RenewalNeed {
    Nothing,
    /// Renew in the background: the current credential is still valid.
    Soon,
    Wait,
    Trouble(String),
}

impl RenewalState {
    fn need(&self, now: Timestamp) -> RenewalNeed {
        let is_due = self.next_run_at.is_some_and(|due| due <= now);
        let is_refused = self.refused == RefusalState::Now && is_due;
        let is_over = is_refused || self.expires.is_some_and(|end| end <= now + MARGIN);
        match (is_due, is_over, &self.last_error) {
            (true, true, _) => RenewalNeed::Wait,
            (true, false, _) => RenewalNeed::Soon,
            (false, true, Some(trouble)) => RenewalNeed::Trouble(trouble.clone()),
            (false, ..) => RenewalNeed::Nothing,
        }
    }

    fn note_run(&mut self, brought: Result<(PlugInCredential, Option<HeaderValue>), String>, now: Timestamp) {
        self.runs += 1;
        self.last_run_at = Some(now);
        let was_refused = self.refused != RefusalState::No;
        if was_refused {
            self.refused = RefusalState::Before;
        }
        match brought {
            Ok((brought, header)) => {
                self.credential_number += 1;
                self.header = header;
                self.is_certificate = brought.certificate.is_some() && brought.token.is_none();
                (self.issued, self.expires) = (brought.issued, brought.expires);
                self.last_error = None;
                // Some plug-ins return the same credential until its last moment: they run ever more often, within a
                // limit.
                self.next_run_at = self
                    .credential(String::new())
                    .recheck_from()
                    .map(|from| if now < from { from } else { now + self.left(now).max(PAUSE) });
            }
            Err(trouble) => {
                self.last_error = Some(trouble);
                let pause = if was_refused { PAUSE } else { self.left(now).clamp(PAUSE, LONGEST_PAUSE) };
                self.next_run_at = Some(now + pause);
            }
        }
    }

    /// Half of the remaining lifetime.
    fn left(&self, now: Timestamp) -> SignedDuration {
        self.expires.map_or(SignedDuration::ZERO, |end| end.duration_since(now) / 2)
    }

    /// Records the answer of a server to this credential.
    fn note_answer(&mut self, brought: u64, is_refused: bool, now: Timestamp) {
        if brought != self.credential_number {
            return;
        }
        match (is_refused, self.refused) {
            (false, RefusalState::Before) => self.refused = RefusalState::No,
            (true, RefusalState::No) => {
                self.refused = RefusalState::Now;
                self.next_run_at = Some(self.last_run_at.map_or(now, |ran| now.max(ran + PAUSE)));
            }
            _ => {}
        }
    }

    fn credential(&self, way: String) -> Credential {
        Credential {
            description: way,
            expires: self.expires,
            issued: self.issued,
            is_renewed: true,
            is_from_plug_in: true,
            plug_in_error: self.last_error.clone(),
        }
    }
}

impl PlugInRenewal {
    pub fn new(exec: ExecConfig, user: &str, identity: Arc<ClientIdentity>) -> Self {
        let (now, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(PlugInRenewalState {
            exec,
            user: user.to_owned(),
            identity,
            state: now,
            run_lock: turn,
        }))
    }

    /// The first run.
    pub async fn first_run(&self) -> Result<(), String> {
        self.clone().run(0).await;
        match self.0.state.lock().last_error.clone() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    /// The header and the number of the credential; runs the plug-in if due.
    pub async fn header(&self) -> Result<(Option<HeaderValue>, u64), String> {
        let (need, runs) = self.need();
        match need {
            // A run is in progress.
            RenewalNeed::Soon if self.0.run_lock.try_lock().is_err() => {}
            RenewalNeed::Soon => drop(tokio::spawn(self.clone().run(runs))),
            RenewalNeed::Nothing => {}
            RenewalNeed::Wait => {
                self.run_and_wait(runs).await;
                if let (RenewalNeed::Trouble(trouble), _) = self.need() {
                    return Err(trouble);
                }
            }
            RenewalNeed::Trouble(trouble) => return Err(trouble),
        }
        let now = self.0.state.lock();
        Ok((now.header.clone(), now.credential_number))
    }

    /// Runs the plug-in if due, and waits for it.
    pub async fn renew_if_due(&self) {
        let (need, runs) = self.need();
        if matches!(need, RenewalNeed::Soon | RenewalNeed::Wait) {
            self.run_and_wait(runs).await;
        }
    }

    pub fn note_answer(&self, brought: u64, is_refused: bool) {
        self.0.state.lock().note_answer(brought, is_refused, Timestamp::now());
    }

    pub fn credential(&self) -> Credential {
        let now = self.0.state.lock();
        let what = if now.is_certificate { "client certificate" } else { "token" };
        now.credential(format!(
            "{what} of the plug-in {} for user {}",
            plug_in::name_of(&self.0.exec),
            self.0.user
        ))
    }

    fn need(&self) -> (RenewalNeed, u64) {
        let now = self.0.state.lock();
        (now.need(Timestamp::now()), now.runs)
    }

    async fn run_and_wait(&self, runs: u64) {
        // It fails only when the process ends.
        let _ = tokio::spawn(self.clone().run(runs)).await;
    }

    /// One run, unless another caller ran it meanwhile.
    async fn run(self, runs: u64) {
        let it = &self.0;
        let _turn = it.run_lock.lock().await;
        if it.state.lock().runs != runs {
            return;
        }
        let brought = plug_in::run_plug_in(&it.exec).await.and_then(|brought| {
            let header = brought.token.as_ref().map(bearer_header).transpose()?;
            if let Some(certificate) = &brought.certificate {
                it.identity.set(Arc::clone(certificate));
            }
            Ok((brought, header))
        });
        it.state.lock().note_run(brought, Timestamp::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
    }

    /// Received at second `from`, valid until second `until`.
    fn brings(now: &mut RenewalState, from: i64, until: i64) {
        let brought = PlugInCredential {
            token: None,
            certificate: None,
            issued: Some(at(0)),
            expires: Some(at(until)),
        };
        now.note_run(Ok((brought, None)), at(from));
    }

    #[test]
    fn plug_in_runs_at_a_tenth_of_lifetime() {
        let mut now = RenewalState::default();
        brings(&mut now, 0, 900);
        let needs = |now: &RenewalState, seconds: &[i64]| -> Vec<RenewalNeed> {
            seconds.iter().map(|second| now.need(at(*second))).collect()
        };
        assert_eq!(
            needs(&now, &[0, 809, 810, 889, 890, 1000]),
            [
                RenewalNeed::Nothing,
                RenewalNeed::Nothing,
                RenewalNeed::Soon,
                RenewalNeed::Soon,
                RenewalNeed::Wait,
                RenewalNeed::Wait
            ]
        );
        // The same credential again: the next run is after half of its remaining lifetime, at least 15 s later.
        brings(&mut now, 810, 900);
        assert_eq!(
            needs(&now, &[811, 854, 855]),
            [RenewalNeed::Nothing, RenewalNeed::Nothing, RenewalNeed::Soon]
        );
        brings(&mut now, 895, 900);
        assert_eq!(
            needs(&now, &[896, 909, 910]),
            [RenewalNeed::Nothing, RenewalNeed::Nothing, RenewalNeed::Wait]
        );
        brings(&mut now, 910, 1800);
        assert_eq!(needs(&now, &[911]), [RenewalNeed::Nothing]);
    }

    #[test]
    fn one_that_fails_is_run_again_with_pauses() {
        let mut now = RenewalState::default();
        brings(&mut now, 0, 900);
        now.note_run(Err("it fails".to_owned()), at(810));
        assert_eq!(now.need(at(811)), RenewalNeed::Nothing, "what it brought is good still");
        assert_eq!(now.need(at(855)), RenewalNeed::Soon);
        now.note_run(Err("it fails".to_owned()), at(900));
        assert_eq!(now.need(at(901)), RenewalNeed::Trouble("it fails".to_owned()));
        assert_eq!(now.need(at(915)), RenewalNeed::Wait);
        let told = now.credential("token".to_owned()).warning(at(901));
        assert_eq!(told.as_deref(), Some("it fails"));
    }

    #[test]
    fn refused_credential_is_renewed_once() {
        let mut now = RenewalState::default();
        brings(&mut now, 0, 900);
        now.note_answer(0, true, at(1));
        assert_eq!(now.need(at(1)), RenewalNeed::Nothing, "what was shown before says nothing");
        now.note_answer(1, true, at(20));
        assert_eq!(now.need(at(20)), RenewalNeed::Wait);
        brings(&mut now, 20, 900);
        now.note_answer(2, true, at(21));
        assert_eq!(now.need(at(100)), RenewalNeed::Nothing, "it brings what is refused");
        now.note_answer(2, false, at(101));
        now.note_answer(2, true, at(102));
        assert_eq!(now.need(at(102)), RenewalNeed::Wait);
    }

    #[test]
    fn one_refusal_keeps_a_valid_credential() {
        let mut now = RenewalState::default();
        brings(&mut now, 0, 900);
        now.note_answer(1, true, at(100));
        now.note_run(Err("it fails".to_owned()), at(100));
        assert_eq!(now.need(at(101)), RenewalNeed::Nothing, "one API may refuse what all others take");
        now.note_answer(1, true, at(102));
        assert_eq!(now.need(at(114)), RenewalNeed::Nothing);
        assert_eq!(now.need(at(115)), RenewalNeed::Soon);
        now.note_run(Err("it fails".to_owned()), at(115));
        assert_eq!(now.need(at(130)), RenewalNeed::Soon, "nobody has taken it since");
        now.note_run(Err("it fails".to_owned()), at(895));
        assert_eq!(now.need(at(896)), RenewalNeed::Trouble("it fails".to_owned()));
    }

    #[test]
    fn working_plug_in_runs_not_for_each_refusal() {
        let mut now = RenewalState::default();
        brings(&mut now, 0, 900);
        for second in 1..=60 {
            now.note_answer(now.credential_number, false, at(second));
            now.note_answer(now.credential_number, true, at(second));
            match now.need(at(second)) {
                RenewalNeed::Wait => brings(&mut now, second, 900),
                other => assert_eq!(other, RenewalNeed::Nothing, "what it brought is shown"),
            }
        }
        assert_eq!(now.runs, 5);
    }
}
