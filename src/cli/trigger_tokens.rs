//! The tokens of triggers, which the API takes calls by.
//!
//! As with the secrets of webhooks: a home cluster that is silent takes away no token that was read before.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use crate::api::SHORTEST_TOKEN;
use crate::cluster::Home;
use crate::controller::Grants;
use crate::fleet::Fleet;
use crate::model::SecretRef;

/// As they were read last.
#[derive(Debug, Default)]
pub struct TriggerTokens(BTreeMap<SecretRef, SecretString>);

impl TriggerTokens {
    /// By trigger, and whether none of them is to be asked for again.
    pub async fn read(
        &mut self,
        fleet: &Fleet,
        home: &Home,
        grants: &Grants,
    ) -> (Vec<(String, SecretString)>, bool) {
        let mut before = std::mem::take(&mut self.0);
        let (mut tokens, mut are_settled) = (Vec::new(), true);
        for trigger in fleet.triggers.values() {
            let (Some(reference), name, at) = (&trigger.token, &trigger.name, &trigger.location) else {
                continue;
            };
            let token = match grants.resolve(reference, home).await {
                Ok(token) => token,
                Err(error) => {
                    are_settled &= !error.may_come();
                    let kept = before.remove(reference).or_else(|| self.0.get(reference).cloned());
                    let Some(kept) = kept.filter(|_| error.is_silence()) else {
                        tracing::error!(trigger = name, %error, %at, "the token of a trigger is missing");
                        continue;
                    };
                    tracing::warn!(trigger = name, %error, "the token of a trigger cannot be read again; the one from before is used");
                    kept
                }
            };
            if token.expose_secret().len() < SHORTEST_TOKEN {
                tracing::error!(trigger = name, %at, "the token of a trigger has less than {SHORTEST_TOKEN} bytes and is not used");
                continue;
            }
            self.0.insert(reference.clone(), token.clone());
            tokens.push((name.clone(), token));
        }
        (tokens, are_settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::Snapshot;

    #[tokio::test]
    async fn tokens_are_handed_out_and_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("long", "0123456789abcdef\n");
        write("short", "0123456789abcde");
        let trigger = |name: &str, token: &str| {
            format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: {name}}}\nspec:\n  token: {{secretRef: {{{token}}}}}\n  set: {{app: '{{{{ app }}}}', version: v1, ring: '{{{{ ring }}}}'}}\n---\n"
            )
        };
        let all = [
            trigger("a", "file: long"),
            trigger("b", "file: short"),
            trigger("c", "file: ../long"),
            trigger("d", "env: PATH"),
        ];
        let snapshot = Snapshot::of_texts([("triggers/all.yaml", all.concat().as_str())]);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        assert_eq!(fleet.triggers.len(), 4, "{:?}", fleet.diagnostics);
        let grants = Grants { folder: Some(folder.path().to_owned()), ..Grants::default() };
        let (tokens, are_settled) = TriggerTokens::default().read(&fleet, &Home::default(), &grants).await;
        let found: Vec<_> =
            tokens.iter().map(|(name, token)| (name.as_str(), token.expose_secret())).collect();
        assert_eq!((found, are_settled), (vec![("a", "0123456789abcdef")], true));
    }
}
