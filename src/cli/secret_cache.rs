//! Cache of secrets that the repository names, for as long as it names them.
//!
//! While the home cluster does not answer, or refuses the login, the last value of a reference stays valid. A secret that is gone
//! or forbidden is dropped. No reference ever gets another one's value. `hook_secrets` and `trigger_tokens` use it.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;

use crate::cluster::HomeCluster;
use crate::controller::{RepositoryGrants, SecretError};
use crate::model::SecretRef;

/// Last values from the home cluster; other sources have no outages.
#[derive(Debug, Default)]
pub struct SecretCache(BTreeMap<SecretRef, SecretString>);

/// Result of one reference. With an error: its last value, if still valid.
pub type SecretReadResult = Result<SecretString, (SecretError, Option<SecretString>)>;

impl SecretCache {
    /// Reads each reference once; also returns whether none needs another read.
    pub async fn read<'r>(
        &mut self,
        wanted: impl IntoIterator<Item = &'r SecretRef>,
        home: &HomeCluster,
        grants: &RepositoryGrants,
    ) -> (BTreeMap<&'r SecretRef, SecretReadResult>, bool) {
        let mut before = std::mem::take(&mut self.0);
        let (mut all, mut are_settled) = (BTreeMap::new(), true);
        for reference in wanted.into_iter().collect::<BTreeSet<_>>() {
            let found = grants.resolve(reference, home).await.map_err(|error| {
                are_settled &= !error.is_retryable();
                let kept = before.remove(reference).filter(|_| error.is_unavailable());
                (error, kept)
            });
            let good = found.as_ref().map_or_else(|(_, kept)| kept.as_ref(), Some);
            if let (SecretRef::Secret(_), Some(good)) = (reference, good) {
                self.0.insert(reference.clone(), good.clone());
            }
            all.insert(reference, found);
        }
        (all, are_settled)
    }
}
