//! Secrets of webhook receivers.

use secrecy::SecretString;

use super::secret_cache::SecretCache;
use crate::api::HookReceiver;
use crate::cluster::HomeCluster;
use crate::controller::RepositoryGrants;
use crate::model::{self, Instance, SecretRef};

#[derive(Debug, Default)]
pub struct HookSecrets(SecretCache);

impl HookSecrets {
    /// The receivers with their secrets, and whether no secret needs another read. A receiver without secrets is disabled, and
    /// the log says so.
    pub async fn receivers(
        &mut self,
        instance: &Instance,
        home: &HomeCluster,
        grants: &RepositoryGrants,
    ) -> (Vec<HookReceiver>, bool) {
        // One read for all receivers, so that they agree.
        let wanted = instance.receivers.iter().flat_map(|it| &it.secrets);
        let (found, are_settled) = self.0.read(wanted, home, grants).await;
        let secrets_of = |receiver: &model::WebhookReceiver| {
            let name = &receiver.name;
            let secret = |reference: &SecretRef| -> Option<SecretString> {
                match found.get(reference)? {
                    Ok(secret) => Some(secret.clone()),
                    Err((error, Some(kept))) => {
                        tracing::warn!(
                            receiver = name, %error,
                            "a webhook secret cannot be read again; the previous one is used"
                        );
                        Some(kept.clone())
                    }
                    Err((error, None)) => {
                        let at = &receiver.written;
                        tracing::error!(receiver = name, %error, %at, "a webhook secret is missing");
                        None
                    }
                }
            };
            let secrets = receiver.secrets.iter().filter_map(secret).collect();
            HookReceiver { name: name.clone(), kind: receiver.kind, secrets }
        };
        (instance.receivers.iter().map(secrets_of).collect(), are_settled)
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
    use crate::cluster::ClusterLink;
    use crate::model::{DataKeyRef, UncomparedLocation, WebhookReceiver as Named, WebhookReceiverKind};

    struct Case {
        sandbox: Sandbox,
        home: HomeCluster,
        secrets: HookSecrets,
    }

    impl Case {
        fn new() -> Self {
            let sandbox = Sandbox::new(SandboxOptions::instant("home"));
            let home = HomeCluster::at(ClusterLink::in_process(sandbox.service()));
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

        /// Checks the secrets of receiver `gitea` when it names these Secrets.
        async fn check(&mut self, names: &[&str], expected: &[&str], are_settled: bool) {
            self.check_in("default", names, expected, are_settled).await;
        }

        async fn check_in(&mut self, namespace: &str, names: &[&str], expected: &[&str], are_settled: bool) {
            let reference = |name: &&str| {
                let (namespace, name, key) = (namespace.to_owned(), (*name).to_owned(), "key".to_owned());
                SecretRef::Secret(DataKeyRef { namespace, name, key })
            };
            let secrets = names.iter().map(reference).collect();
            let (name, kind, written) =
                ("gitea".to_owned(), WebhookReceiverKind::Gitea, UncomparedLocation::default());
            let named = Named { name, kind, secrets, written };
            let instance = Instance { receivers: vec![named], ..Instance::default() };
            let (found, settled) =
                self.secrets.receivers(&instance, &self.home, &RepositoryGrants::default()).await;
            let found: Vec<&str> = found[0].secrets.iter().map(|it| it.expose_secret()).collect();
            assert_eq!((found.as_slice(), settled), (expected, are_settled), "{names:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn outage_keeps_known_secrets() {
        let mut case = Case::new();
        case.keep("one", "first").await;
        case.keep("two", "second").await;
        case.check(&["one"], &["first"], true).await;
        case.sandbox.set_down(true);
        // New references have no secret, and never get another's.
        case.check(&["one", "two"], &["first"], false).await;
        case.check(&["two"], &[], false).await;
        // A secret that is not named any more is dropped.
        case.check(&["one"], &[], false).await;
        case.sandbox.set_down(false);
        case.check(&["one", "two"], &["first", "second"], true).await;
        case.keep("one", "third").await;
        case.check(&["one", "two"], &["third", "second"], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn denied_secret_is_not_read_again() {
        let mut case = Case::new();
        case.check_in("other", &["one"], &[], true).await;
        case.check(&["one"], &[], false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn shared_secret_is_read_once() {
        let mut case = Case::new();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "of a file").expect("a file");
        let (namespace, name, key) = ("default".to_owned(), "one".to_owned(), "key".to_owned());
        let file = SecretRef::File(path.display().to_string());
        let grants =
            RepositoryGrants { folder: path.parent().map(Into::into), ..RepositoryGrants::default() };
        let secrets = vec![SecretRef::Secret(DataKeyRef { namespace, name, key }), file];
        let door = |name: &str| Named {
            name: name.to_owned(),
            kind: WebhookReceiverKind::Gitea,
            secrets: secrets.clone(),
            written: UncomparedLocation::default(),
        };
        let instance = Instance { receivers: vec![door("gitea"), door("github")], ..Instance::default() };
        let check = async |case: &mut Case, expected: &[&str]| {
            let (found, _) = case.secrets.receivers(&instance, &case.home, &grants).await;
            for receiver in found {
                let found: Vec<&str> = receiver.secrets.iter().map(|it| it.expose_secret()).collect();
                assert_eq!(found, expected, "{}", receiver.name);
            }
        };
        case.keep("one", "first").await;
        check(&mut case, &["first", "of a file"]).await;
        case.keep("one", "second").await;
        // The first read succeeds, a second one would fail.
        case.sandbox.reset_requests();
        let reads = RequestMatch::any().verb("get").resource("secrets");
        case.sandbox.fail_nth(reads.clone(), 1, Fault::unavailable());
        check(&mut case, &["second", "of a file"]).await;
        assert_eq!(case.sandbox.count_requests(&reads), 1);
        // A file that is gone is no outage.
        std::fs::remove_file(&path).expect("removed");
        case.sandbox.set_down(true);
        check(&mut case, &["second"]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_missing_right_drops_a_secret() {
        let mut case = Case::new();
        case.keep("one", "first").await;
        case.check(&["one"], &["first"], true).await;
        let reads = RequestMatch::any().verb("get").resource("secrets");
        case.sandbox.fail_next(reads.clone(), 1, Fault::unauthorized());
        case.check(&["one"], &["first"], false).await;
        case.sandbox.fail_next(reads, 1, Fault::forbidden());
        case.check(&["one"], &[], false).await;
        // It was dropped.
        case.sandbox.set_down(true);
        case.check(&["one"], &[], false).await;
        case.sandbox.set_down(false);
        case.check(&["one"], &["first"], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn deleted_secret_disables_the_receiver() {
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
