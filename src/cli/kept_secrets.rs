//! Secrets that the repository refers to, as long as it names them.
//!
//! A home cluster that does not answer, or does not take our login, takes nothing away: what was read under a reference is good for as
//! long as the reference is named. A secret that is not there any more, or that we may not read any more, is no secret, and no
//! reference is given what another one brought.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;

use crate::cluster::Home;
use crate::controller::{Grants, SecretError};
use crate::model::SecretRef;

/// Those that the home cluster keeps, as they were read last: nobody else is silent.
#[derive(Debug, Default)]
pub struct KeptSecrets(BTreeMap<SecretRef, SecretString>);

/// What came of one reference. Beside an error: what was read under it before, where that is still good.
pub type Found = Result<SecretString, (SecretError, Option<SecretString>)>;

impl KeptSecrets {
    /// Each reference once, and whether none of them is to be asked for again.
    pub async fn read<'r>(
        &mut self,
        wanted: impl IntoIterator<Item = &'r SecretRef>,
        home: &Home,
        grants: &Grants,
    ) -> (BTreeMap<&'r SecretRef, Found>, bool) {
        let mut before = std::mem::take(&mut self.0);
        let (mut all, mut are_settled) = (BTreeMap::new(), true);
        for reference in wanted.into_iter().collect::<BTreeSet<_>>() {
            let found = grants.resolve(reference, home).await.map_err(|error| {
                are_settled &= !error.may_come();
                let kept = before.remove(reference).filter(|_| error.is_silence());
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
