//! Idempotency of trigger calls: a repeated call with its key gets the first answer and writes nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::Digest;

/// A few hundred bytes each; the oldest drops first.
pub(super) const MOST: usize = 1000;

type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Answers {
    known: HashMap<Key, Known>,
    order: VecDeque<Key>,
}

#[derive(Debug)]
struct Known {
    /// Digest of the payload.
    payload: Digest,
    /// `None` while the call runs.
    answer: Option<String>,
}

/// State of a key when a call arrives.
#[derive(Debug)]
pub(super) enum Begun {
    New(Claim),
    UnderWay,
    Answered(String),
    /// The key was used with another payload.
    OtherPayload,
}

/// A running call. Dropped without an answer, its key is free again.
#[derive(Debug)]
pub(super) struct Claim {
    answers: Arc<Mutex<Answers>>,
    key: Option<Key>,
}

impl Answers {
    pub(super) fn begin(this: &Arc<Mutex<Self>>, trigger: &str, key: &str, payload: Digest) -> Begun {
        let key = (trigger.to_owned(), key.to_owned());
        let mut answers = this.lock();
        match answers.known.get(&key) {
            Some(known) if known.payload != payload => return Begun::OtherPayload,
            Some(Known { answer: Some(answer), .. }) => return Begun::Answered(answer.clone()),
            Some(_) => return Begun::UnderWay,
            None => {}
        }
        answers.known.insert(key.clone(), Known { payload, answer: None });
        answers.order.push_back(key.clone());
        if answers.order.len() > MOST
            && let Some(oldest) = answers.order.pop_front()
        {
            answers.known.remove(&oldest);
        }
        Begun::New(Claim { answers: Arc::clone(this), key: Some(key) })
    }
}

impl Claim {
    pub(super) fn answer(mut self, body: &str) {
        let Some(key) = self.key.take() else { return };
        if let Some(known) = self.answers.lock().known.get_mut(&key) {
            known.answer = Some(body.to_owned());
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut answers = self.answers.lock();
        answers.known.remove(&key);
        answers.order.retain(|known| *known != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_free_after_failure() {
        let (answers, payload) = (Arc::<Mutex<Answers>>::default(), Digest::of(b"a"));
        let begin = |key: &str| Answers::begin(&answers, "release", key, payload);
        drop(begin("0"));
        let Begun::New(claim) = begin("0") else { panic!("it may come again") };
        assert!(matches!(begin("0"), Begun::UnderWay));
        claim.answer("done");
        assert!(matches!(begin("0"), Begun::Answered(answer) if answer == "done"));
        assert!(matches!(Answers::begin(&answers, "release", "0", Digest::of(b"b")), Begun::OtherPayload));
        assert!(matches!(Answers::begin(&answers, "other", "0", payload), Begun::New(_)));
        for number in 1..=MOST {
            let Begun::New(claim) = begin(&number.to_string()) else { panic!("new") };
            claim.answer("done");
        }
        assert!(matches!(begin("0"), Begun::New(_)), "the oldest is dropped");
        assert!(answers.lock().known.len() <= MOST && answers.lock().order.len() <= MOST);
    }
}
