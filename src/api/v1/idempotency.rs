//! Idempotency of trigger calls: a repeated call with its key gets the first answer and writes nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::Digest;

/// A few hundred bytes each; the oldest drops first.
pub(super) const MAX_CALLS: usize = 1000;

type IdempotencyKey = (String, String);

#[derive(Debug, Default)]
pub(super) struct IdempotencyCache {
    calls: HashMap<IdempotencyKey, CachedCall>,
    order: VecDeque<IdempotencyKey>,
}

#[derive(Debug)]
struct CachedCall {
    /// Digest of the payload.
    payload: Digest,
    /// `None` while the call runs.
    answer: Option<String>,
}

/// State of a key when a call arrives.
#[derive(Debug)]
pub(super) enum CallStart {
    New(CallClaim),
    InProgress,
    Answered(String),
    /// The key was used with another payload.
    DifferentPayload,
}

/// A running call. Dropped without an answer, its key is free again.
#[derive(Debug)]
pub(super) struct CallClaim {
    answers: Arc<Mutex<IdempotencyCache>>,
    key: Option<IdempotencyKey>,
}

impl IdempotencyCache {
    pub(super) fn begin(this: &Arc<Mutex<Self>>, trigger: &str, key: &str, payload: Digest) -> CallStart {
        let key = (trigger.to_owned(), key.to_owned());
        let mut answers = this.lock();
        match answers.calls.get(&key) {
            Some(known) if known.payload != payload => return CallStart::DifferentPayload,
            Some(CachedCall { answer: Some(answer), .. }) => return CallStart::Answered(answer.clone()),
            Some(_) => return CallStart::InProgress,
            None => {}
        }
        answers.calls.insert(key.clone(), CachedCall { payload, answer: None });
        answers.order.push_back(key.clone());
        if answers.order.len() > MAX_CALLS
            && let Some(oldest) = answers.order.pop_front()
        {
            answers.calls.remove(&oldest);
        }
        CallStart::New(CallClaim { answers: Arc::clone(this), key: Some(key) })
    }
}

impl CallClaim {
    pub(super) fn complete(mut self, body: &str) {
        let Some(key) = self.key.take() else { return };
        if let Some(known) = self.answers.lock().calls.get_mut(&key) {
            known.answer = Some(body.to_owned());
        }
    }
}

impl Drop for CallClaim {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut answers = self.answers.lock();
        answers.calls.remove(&key);
        answers.order.retain(|known| *known != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_free_after_failure() {
        let (answers, payload) = (Arc::<Mutex<IdempotencyCache>>::default(), Digest::of(b"a"));
        let begin = |key: &str| IdempotencyCache::begin(&answers, "release", key, payload);
        drop(begin("0"));
        let CallStart::New(claim) = begin("0") else { panic!("it may come again") };
        assert!(matches!(begin("0"), CallStart::InProgress));
        claim.complete("done");
        assert!(matches!(begin("0"), CallStart::Answered(answer) if answer == "done"));
        assert!(matches!(
            IdempotencyCache::begin(&answers, "release", "0", Digest::of(b"b")),
            CallStart::DifferentPayload
        ));
        assert!(matches!(IdempotencyCache::begin(&answers, "other", "0", payload), CallStart::New(_)));
        for number in 1..=MAX_CALLS {
            let CallStart::New(claim) = begin(&number.to_string()) else { panic!("new") };
            claim.complete("done");
        }
        assert!(matches!(begin("0"), CallStart::New(_)), "the oldest is dropped");
        assert!(answers.lock().calls.len() <= MAX_CALLS && answers.lock().order.len() <= MAX_CALLS);
    }
}
