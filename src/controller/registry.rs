//! Clusters that are registered in the home cluster. The watch starts when Git configures such a registry.
//!
//! A load waits for the first answer, so that a new process knows its clusters at once. The last answer stays while the home
//! cluster does not answer: an unreachable registry is not an empty one.
//!
//! Registered clusters are an input of the fleet like files (`Snapshot::registry`). While the registry was never read, the
//! revision has an error, so nothing is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;

use super::event::Event;
use crate::cluster::{HomeCluster, WatchChange, describe_registry};
use crate::model::{ConfigMapRegistry, Digest, RegisteredCluster, RegistryContents};

/// How long a load waits for the first answer.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Owns the watch of the registry that Git configures.
#[derive(Debug)]
pub struct ClusterRegistry {
    home: HomeCluster,
    watch: Mutex<Option<RegistryWatchHandle>>,
}

#[derive(Debug)]
struct RegistryWatchHandle {
    config: ConfigMapRegistry,
    latest: watch::Receiver<Option<Arc<RegistryContents>>>,
    task: JoinHandle<()>,
}

impl Drop for RegistryWatchHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClusterRegistry {
    pub fn new(home: HomeCluster) -> Self {
        Self { home, watch: Mutex::default() }
    }

    /// The last answer, if a registry is configured.
    pub async fn latest(&self) -> Option<Arc<RegistryContents>> {
        self.watch.lock().await.as_ref().and_then(|kept| kept.latest.borrow().clone())
    }

    /// The answer of this registry. The first call waits for it; after that each change is an event.
    pub async fn watch_registry(
        &self,
        wanted: Option<&ConfigMapRegistry>,
        events: Option<&mpsc::Sender<Event>>,
    ) -> Option<Arc<RegistryContents>> {
        let mut kept = self.watch.lock().await;
        let Some(wanted) = wanted else {
            *kept = None;
            return None;
        };
        if kept.as_ref().is_none_or(|kept| kept.config != *wanted) {
            let (sender, said) = watch::channel(None);
            let follow = RegistryWatch {
                home: self.home.clone(),
                config: wanted.clone(),
                latest: sender,
                events: events.cloned(),
            };
            *kept = Some(RegistryWatchHandle {
                config: wanted.clone(),
                latest: said,
                task: tokio::spawn(follow.run()),
            });
        }
        let mut said = kept.as_ref()?.latest.clone();
        drop(kept);
        let first = tokio::time::timeout(FIRST_ANSWER_TIMEOUT, said.wait_for(Option::is_some)).await;
        let silent = || Arc::new(unread_registry(unread_message(wanted, "it did not answer in time")));
        Some(first.ok().and_then(|said| said.ok()?.clone()).unwrap_or_else(silent))
    }
}

/// The answer of a registry, for a caller that reads it once.
pub async fn read_registered_clusters(
    home: &HomeCluster,
    wanted: Option<&ConfigMapRegistry>,
) -> Option<Arc<RegistryContents>> {
    ClusterRegistry::new(home.clone()).watch_registry(wanted, None).await
}

fn unread_registry(problem: String) -> RegistryContents {
    RegistryContents { clusters: Vec::new(), problem: Some(problem) }
}

fn unread_message(wanted: &ConfigMapRegistry, detail: &str) -> String {
    format!("failed to read {}, in the home cluster: {detail}", describe_registry(wanted))
}

/// One watch. It runs as long as Git configures its registry.
struct RegistryWatch {
    home: HomeCluster,
    config: ConfigMapRegistry,
    latest: watch::Sender<Option<Arc<RegistryContents>>>,
    events: Option<mpsc::Sender<Event>>,
}

impl RegistryWatch {
    async fn run(self) {
        let (mut known, mut pause) = (BTreeMap::new(), FIRST_PAUSE);
        loop {
            let is_heard = match self.home.watch_registry(&self.config).await {
                Ok(changes) => self.follow_changes(changes, &mut known).await,
                Err(error) => {
                    self.report_unavailable(&error.to_string(), || error.to_string()).await;
                    false
                }
            };
            if is_heard {
                // Another connection continues where this one ended.
                pause = FIRST_PAUSE;
                continue;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Runs as long as the connection works. Returns whether a full list was read.
    async fn follow_changes(
        &self,
        mut changes: BoxStream<'static, WatchChange>,
        known: &mut BTreeMap<String, RegisteredCluster>,
    ) -> bool {
        let (mut listed, mut is_listing, mut is_heard) = (BTreeMap::new(), false, false);
        while let Some(change) = changes.next().await {
            match change {
                WatchChange::ListStarted => {
                    listed.clear();
                    is_listing = true;
                    continue;
                }
                WatchChange::Updated(object) => {
                    let Some(one) = parse_registered_cluster(&object, &self.config) else { continue };
                    if is_listing {
                        listed.insert(one.name.clone(), one);
                        continue;
                    }
                    known.insert(one.name.clone(), one);
                }
                WatchChange::Removed(object) => {
                    let Some(one) = parse_registered_cluster(&object, &self.config) else { continue };
                    listed.remove(&one.name);
                    // An incomplete list is not an answer.
                    if is_listing {
                        continue;
                    }
                    known.remove(&one.name);
                }
                WatchChange::ListEnded { .. } => {
                    *known = std::mem::take(&mut listed);
                    (is_listing, is_heard) = (false, true);
                }
                WatchChange::WatchRestored => continue,
                WatchChange::Disconnected(detail) | WatchChange::WatchLost { why: detail, .. } => {
                    self.report_unavailable(&detail, || unread_message(&self.config, &detail)).await;
                    continue;
                }
            }
            self.publish(RegistryContents { clusters: known.values().cloned().collect(), problem: None })
                .await;
        }
        is_heard
    }

    /// The registry does not answer: the last answer stays. If there is none, the error is published.
    async fn report_unavailable(&self, detail: &str, problem: impl FnOnce() -> String) {
        let was_heard = self.latest.borrow().as_ref().is_some_and(|said| said.problem.is_none());
        if was_heard {
            tracing::warn!(detail, "the cluster registry does not answer; its last answer stays in use");
        } else {
            self.publish(unread_registry(problem())).await;
        }
    }

    async fn publish(&self, registered: RegistryContents) {
        let is_news = self.latest.send_if_modified(|said| {
            let is_other = said.as_deref() != Some(&registered);
            if is_other {
                *said = Some(Arc::new(registered));
            }
            is_other
        });
        if let (true, Some(events)) = (is_news, &self.events) {
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::Registered).await;
        }
    }
}

fn parse_registered_cluster(object: &Value, wanted: &ConfigMapRegistry) -> Option<RegisteredCluster> {
    let metadata = &object["metadata"];
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let text = |key: &str| object["data"][key].as_str().filter(|text| !text.trim().is_empty());
    Some(RegisteredCluster {
        name: metadata["name"].as_str()?.to_owned(),
        labels: labels.collect(),
        status: text("status").map(|status| status.trim().to_owned()),
        kubeconfig: text(&wanted.key).map(|text| Digest::of(text.as_bytes())),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::api::{Api, PostParams};
    use sandbox::{Sandbox, SandboxListener, SandboxOptions};
    use secrecy::ExposeSecret as _;
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::cluster::{ClusterLink, KeyObjectKind};
    use crate::model::DataKeyRef;

    const LOOK_EVERY: Duration = Duration::from_millis(100);

    /// Uses the clock of the machine, because the kubeconfig points at a socket.
    struct Case {
        folder: TempDir,
        sandbox: Sandbox,
        home: HomeCluster,
        wanted: ConfigMapRegistry,
    }

    impl Case {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let link = ClusterLink::Kubeconfig { path: folder.path().join("home.yaml"), context: None };
            Self {
                folder,
                sandbox: Sandbox::new(SandboxOptions::instant("home")),
                home: HomeCluster::looking_every(LOOK_EVERY, link),
                wanted: ConfigMapRegistry { namespace: "default".to_owned(), ..ConfigMapRegistry::default() },
            }
        }

        /// Another listener of the same cluster with another token, and a kubeconfig for it.
        async fn door(&self) -> SandboxListener {
            let listener = self.sandbox.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
            self.write(&listener.kubeconfig());
            listener
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("home.yaml")
        }

        fn write(&self, text: &str) {
            fs::write(self.path(), text).expect("a file");
        }

        async fn register(&self, name: &str) {
            let labels = &self.wanted.match_labels;
            let map =
                json!({"metadata": {"name": name, "labels": labels}, "data": {"kubeconfig.yaml": name}});
            let client = kube::Client::new(self.sandbox.service(), "default");
            let maps: Api<ConfigMap> = Api::namespaced(client, "default");
            let map = serde_json::from_value(map).expect("a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
    }

    fn names(said: Option<&RegistryContents>) -> Vec<&str> {
        let said = said.expect("it was asked");
        assert_eq!(said.problem, None);
        said.clusters.iter().map(|it| it.name.as_str()).collect()
    }

    #[tokio::test]
    async fn replaced_kubeconfig_resumes_watch() {
        let case = Case::new();
        let first = case.door().await;
        case.register("bj1").await;
        case.register("bj2").await;
        let (sender, mut events) = mpsc::channel(8);
        let registry = ClusterRegistry::new(case.home.clone());
        let said = registry.watch_registry(Some(&case.wanted), Some(&sender)).await;
        assert_eq!(names(said.as_deref()), ["bj1", "bj2"]);
        assert!(matches!(events.recv().await, Some(Event::Registered)));

        // A half-written file, one with an unknown token, and no file: the last answer stays.
        let wrong = first.kubeconfig().replace(first.token(), "hunter2");
        for text in ["", "apiVersion: v1\nkind: Config\n", &wrong] {
            case.write(text);
            tokio::time::sleep(LOOK_EVERY * 5).await;
            assert_eq!(names(registry.latest().await.as_deref()), ["bj1", "bj2"], "{text}");
        }
        fs::remove_file(case.path()).expect("removed");
        tokio::time::sleep(LOOK_EVERY * 5).await;
        assert_eq!(names(registry.latest().await.as_deref()), ["bj1", "bj2"]);
        assert!(events.try_recv().is_err(), "nothing is new");

        // The first listener is closed, and requests go to the second one.
        let _second = case.door().await;
        drop(first);
        case.register("bj3").await;
        assert!(matches!(events.recv().await, Some(Event::Registered)));
        assert_eq!(names(registry.latest().await.as_deref()), ["bj1", "bj2", "bj3"]);

        // A kubeconfig without a change keeps its watch.
        case.sandbox.reset_requests();
        tokio::time::sleep(LOOK_EVERY * 5).await;
        assert_eq!(case.sandbox.requests().len(), 0, "{:?}", case.sandbox.requests());
    }

    #[tokio::test]
    async fn secret_is_read_with_current_kubeconfig() {
        let case = Case::new();
        let client = kube::Client::new(case.sandbox.service(), "default");
        let secret = json!({"metadata": {"name": "forge"}, "stringData": {"token": "one"}});
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        Api::namespaced(client, "default").create(&PostParams::default(), &secret).await.expect("created");
        let at = DataKeyRef { namespace: "default".into(), name: "forge".into(), key: "token".into() };
        let read = async || {
            let found = case.home.read(KeyObjectKind::Secret, &at).await;
            found.map(|text| text.expose_secret().to_owned()).map_err(|error| error.to_string())
        };
        let first = case.door().await;
        assert_eq!(read().await.as_deref(), Ok("one"));
        let second = case.door().await;
        drop(first);
        assert_eq!(read().await.as_deref(), Ok("one"));
        // A working connection is not replaced by a broken kubeconfig.
        case.write("");
        assert_eq!(read().await.as_deref(), Ok("one"));
        case.write(&second.kubeconfig().replace(second.token(), "hunter2"));
        let error = read().await.expect_err("nobody knows it");
        assert!(error.ends_with("Unauthorized"), "{error}");
        // The token is in a separate file and has changed; only the refusal shows that.
        let file = case.folder.path().join("token");
        let token = format!("token: {}", second.token());
        case.write(&second.kubeconfig().replace(&token, &format!("tokenFile: {}", file.display())));
        fs::write(&file, "hunter2").expect("a file");
        read().await.expect_err("nobody knows it");
        fs::write(&file, second.token()).expect("a file");
        assert_eq!(read().await.as_deref(), Ok("one"));
    }
}
