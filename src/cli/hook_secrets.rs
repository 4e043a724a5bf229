//! The secrets of the doors for webhooks.
//!
//! A home cluster that does not answer, or does not take our login, shuts no door: what was read under a reference is good for as long
//! as `tutti.yaml` names that reference. A secret that is not there any more, or that we may not read any more, is no secret, and no
//! reference is given what another one brought.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::api::Receiver;
use crate::cluster::Home;
use crate::controller;
use crate::model::{Instance, SecretRef};

/// As they were read last.
#[derive(Debug, Default)]
pub struct HookSecrets(BTreeMap<SecretRef, SecretString>);

impl HookSecrets {
    /// The doors with their secrets, and whether all of them could be read now. A door without any is shut, and that is said.
    pub async fn receivers(&mut self, instance: &Instance, home: &Home) -> (Vec<Receiver>, bool) {
        let before = std::mem::take(&mut self.0);
        let (mut receivers, mut are_all_there) = (Vec::new(), true);
        for receiver in &instance.receivers {
            let mut secrets = Vec::new();
            for reference in &receiver.secrets {
                match controller::resolve_secret(reference, home).await {
                    Ok(secret) => {
                        self.0.insert(reference.clone(), secret.clone());
                        secrets.push(secret);
                    }
                    Err(error) => {
                        are_all_there = false;
                        let known = before.get(reference).filter(|_| error.is_silence());
                        let Some(secret) = known else {
                            tracing::error!(receiver = receiver.name, %error, "a webhook secret is missing");
                            continue;
                        };
                        tracing::warn!(
                            receiver = receiver.name, %error,
                            "a webhook secret cannot be read again; the one from before is used"
                        );
                        self.0.insert(reference.clone(), secret.clone());
                        secrets.push(secret.clone());
                    }
                }
            }
            receivers.push(Receiver { name: receiver.name.clone(), secrets });
        }
        (receivers, are_all_there)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::{Api, DeleteParams, Patch, PatchParams};
    use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};
    use secrecy::ExposeSecret as _;
    use serde_json::json;

    use super::*;
    use crate::cluster::Link;
    use crate::model::{Receiver as Named, StoredKey};

    struct Case {
        sandbox: Sandbox,
        home: Home,
        secrets: HookSecrets,
    }

    impl Case {
        fn new() -> Self {
            let sandbox = Sandbox::new(SandboxOptions::instant("home"));
            let home = Home::at(Link::in_process(sandbox.service()));
            Self { sandbox, home, secrets: HookSecrets::default() }
        }

        fn kept(&self) -> Api<Secret> {
            Api::namespaced(kube::Client::new(self.sandbox.service(), "default"), "default")
        }

        async fn keep(&self, name: &str, value: &str) {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"key": value}});
            let parameters = PatchParams::apply("test");
            self.kept().patch(name, &parameters, &Patch::Apply(secret)).await.expect("applied");
        }

        /// What the door `gitea` opens to when these Secrets are named for it.
        async fn check(&mut self, names: &[&str], expected: &[&str], are_all_there: bool) {
            let reference = |name: &&str| {
                let (namespace, name, key) = ("default".to_owned(), (*name).to_owned(), "key".to_owned());
                SecretRef::Secret(StoredKey { namespace, name, key })
            };
            let named = Named { name: "gitea".to_owned(), secrets: names.iter().map(reference).collect() };
            let instance = Instance { receivers: vec![named], ..Instance::default() };
            let (found, are_all) = self.secrets.receivers(&instance, &self.home).await;
            let found: Vec<&str> = found[0].secrets.iter().map(|it| it.expose_secret()).collect();
            assert_eq!((found.as_slice(), are_all), (expected, are_all_there), "{names:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_home_cluster_that_is_away_shuts_no_door_that_was_open() {
        let mut case = Case::new();
        case.keep("one", "first").await;
        case.keep("two", "second").await;
        case.check(&["one"], &["first"], true).await;
        case.sandbox.set_down(true);
        // What is new stays shut, and is given nothing that is another's.
        case.check(&["one", "two"], &["first"], false).await;
        case.check(&["two"], &[], false).await;
        // What is named no longer is forgotten.
        case.check(&["one"], &[], false).await;
        case.sandbox.set_down(false);
        case.check(&["one", "two"], &["first", "second"], true).await;
        case.keep("one", "third").await;
        case.check(&["one", "two"], &["third", "second"], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_that_is_refused_says_nothing_of_a_secret_and_a_right_that_is_missing_does() {
        let mut case = Case::new();
        case.keep("one", "first").await;
        case.check(&["one"], &["first"], true).await;
        let reads = RequestMatch::any().verb("get").resource("secrets");
        case.sandbox.fail_next(reads.clone(), 1, Fault::unauthorized());
        case.check(&["one"], &["first"], false).await;
        case.sandbox.fail_next(reads, 1, Fault::forbidden());
        case.check(&["one"], &[], false).await;
        // It is forgotten.
        case.sandbox.set_down(true);
        case.check(&["one"], &[], false).await;
        case.sandbox.set_down(false);
        case.check(&["one"], &["first"], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_that_is_gone_opens_no_door() {
        let mut case = Case::new();
        case.keep("one", "first").await;
        case.check(&["one"], &["first"], true).await;
        case.keep("one", "").await;
        case.check(&["one"], &[], false).await;
        case.keep("one", "first").await;
        case.check(&["one"], &["first"], true).await;
        case.kept().delete("one", &DeleteParams::default()).await.expect("deleted");
        case.check(&["one"], &[], false).await;
        case.sandbox.set_down(true);
        case.check(&["one"], &[], false).await;
    }
}
