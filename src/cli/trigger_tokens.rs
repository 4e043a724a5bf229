//! Tokens of triggers, for calls of the API.

use secrecy::{ExposeSecret as _, SecretString};

use super::secret_cache::SecretCache;
use crate::api::SHORTEST_TOKEN;
use crate::cluster::HomeCluster;
use crate::controller::RepositoryGrants;
use crate::fleet::Fleet;

#[derive(Debug, Default)]
pub struct TriggerTokens(SecretCache);

impl TriggerTokens {
    /// The tokens by trigger, and whether none needs another read.
    pub async fn read(
        &mut self,
        fleet: &Fleet,
        home: &HomeCluster,
        grants: &RepositoryGrants,
    ) -> (Vec<(String, SecretString)>, bool) {
        let wanted = fleet.triggers.values().filter_map(|trigger| trigger.token.as_ref());
        let (found, are_settled) = self.0.read(wanted, home, grants).await;
        let mut tokens = Vec::new();
        for trigger in fleet.triggers.values() {
            let (name, at) = (&trigger.name, &trigger.location);
            let Some(found) = trigger.token.as_ref().and_then(|reference| found.get(reference)) else {
                continue;
            };
            let token = match found {
                Ok(token) => token,
                Err((error, Some(kept))) => {
                    tracing::warn!(trigger = name, %error, "the token of a trigger cannot be read again; the \
                                                            previous one is used");
                    kept
                }
                Err((error, None)) => {
                    tracing::error!(trigger = name, %error, %at, "the token of a trigger is missing");
                    continue;
                }
            };
            if token.expose_secret().len() < SHORTEST_TOKEN {
                tracing::error!(trigger = name, %at, "the token of a trigger has less than {SHORTEST_TOKEN} bytes and is not used");
                continue;
            }
            tokens.push((name.clone(), token.clone()));
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
    async fn tokens_must_be_granted_and_long() {
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
        let grants =
            RepositoryGrants { folder: Some(folder.path().to_owned()), ..RepositoryGrants::default() };
        let (tokens, are_settled) =
            TriggerTokens::default().read(&fleet, &HomeCluster::default(), &grants).await;
        let found: Vec<_> =
            tokens.iter().map(|(name, token)| (name.as_str(), token.expose_secret())).collect();
        assert_eq!((found, are_settled), (vec![("a", "0123456789abcdef")], true));
    }
}
