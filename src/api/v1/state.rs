//! State of `/api/v1`: tokens, the config repository, calls of triggers, long polls.

use std::sync::Arc;

use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{Semaphore, mpsc, watch};

use super::access::ApiTokens;
use super::idempotency::IdempotencyCache;
use super::trigger_call::TriggerCall;
use crate::controller::ConfigHead;

/// Long polls at once; others are answered immediately.
const MAX_LONG_POLLS: usize = 64;

/// Clones share it.
#[derive(Clone, Debug)]
pub struct ApiV1 {
    pub(super) access: Arc<ApiTokens>,
    pub(super) heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub(super) calls: mpsc::Sender<TriggerCall>,
    pub(super) idempotency: Arc<Mutex<IdempotencyCache>>,
    pub(super) long_polls: Arc<Semaphore>,
}

impl ApiV1 {
    /// `token`: the operator's; without it the API is closed. `heads`: the config repository as last read. `calls`:
    /// changes for `pulls` to write.
    pub fn new(
        token: Option<&SecretString>,
        heads: watch::Receiver<Option<Arc<ConfigHead>>>,
        calls: mpsc::Sender<TriggerCall>,
    ) -> Self {
        Self {
            access: Arc::new(ApiTokens::new(token)),
            heads,
            calls,
            idempotency: Arc::default(),
            long_polls: Arc::new(Semaphore::new(MAX_LONG_POLLS)),
        }
    }

    pub fn set_trigger_tokens(&self, tokens: impl IntoIterator<Item = (String, SecretString)>) {
        self.access.set_triggers(tokens);
    }
}
