//! The home cluster: the one that tutti runs in, or that is configured. It stores Secrets and ConfigMaps for tutti,
//! and the leader's Lease (`lease.rs`), which is the only object that is written here.
//!
//! All requests share one connection. The next request opens a new one if the kubeconfig changed, or if the server
//! rejects the old login and accepts a new one. While it accepts neither, the old connection stays. Callers that wait
//! for a new connection have the timeout of a request; the attempt continues without them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::Api;
use kube::core::ApiResource;
use secrecy::SecretString;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::error::{clean, innermost};
use super::object::WholeObject;
use super::response_bounds::with_reservation;
use super::watch_loop::{self, WatchConfig};
use super::{AccessQuestion, Client, ClusterLink, Error, WatchChange};
use crate::model::{ClusterName, ConfigMapRegistry, DataKeyRef};

/// Set by the kubelet in a pod.
const IN_CLUSTER: &str = "KUBERNETES_SERVICE_HOST";
/// Its name in errors.
const NAME: &str = "home";
/// The timeout of reading a key.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a watcher checks its connection; that costs a look at a file. It is also the shortest time between two
/// new logins after a refusal, because a login may run a plug-in.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The kind of object that holds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyObjectKind {
    Secret,
    ConfigMap,
}

impl KeyObjectKind {
    fn kind(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum HomeError {
    #[error(
        "failed to read {what}: there is no home cluster: tutti does not run in one; name one by --home-kubeconfig FILE"
    )]
    NotConfigured { what: String },
    #[error(
        "failed to read {what}, in the home cluster: the config repository may not use the secrets of this \
         namespace (help: \
         --secret-namespace {namespace})"
    )]
    Withheld { what: String, namespace: String },
    /// It does not answer, or rejects our login: nothing is known about the object.
    #[error("failed to {action} {what}, in the home cluster: {detail}")]
    Failed {
        action: &'static str,
        what: String,
        detail: String,
        /// A retry may succeed.
        is_transient: bool,
    },
    /// It answered: there is nothing usable, or nothing that we may read.
    #[error("failed to read {what}, in the home cluster: {detail}")]
    Absent { what: String, detail: String },
}

impl HomeError {
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Failed { is_transient: true, .. })
    }
}

/// Clones share the connection. The default is none.
#[derive(Clone, Debug, Default)]
pub struct HomeCluster {
    connection: Option<Arc<HomeConnection>>,
    open: ReadableNamespaces,
}

/// The namespaces whose Secrets may be read.
#[derive(Clone, Debug, Default)]
enum ReadableNamespaces {
    /// The namespace that tutti runs in, or that the kubeconfig names.
    #[default]
    Own,
    Named(Arc<BTreeSet<String>>),
    /// All, for references by the operator.
    All,
}

#[derive(Debug)]
struct HomeConnection {
    link: ClusterLink,
    check_interval: Duration,
    /// Locked during a connect.
    known: Arc<Mutex<HomeConnectionState>>,
}

#[derive(Debug, Default)]
struct HomeConnectionState {
    client: Option<Client>,
    /// The last new login after a refusal.
    relogin_at: Option<Instant>,
    /// Why the next connection failed: logged once.
    logged_error: Option<String>,
}

impl HomeCluster {
    pub fn at(link: ClusterLink) -> Self {
        Self::looking_every(LOOK_EVERY, link)
    }

    /// Like [`HomeCluster::at`]; watchers check the connection at this interval.
    pub fn looking_every(look_every: Duration, link: ClusterLink) -> Self {
        let way = HomeConnection { link, check_interval: look_every, known: Arc::default() };
        Self { connection: Some(Arc::new(way)), open: ReadableNamespaces::default() }
    }

    /// The same home, limited to Secrets of these namespaces; without any, of its own.
    pub fn limited_to(&self, namespaces: &[String]) -> Self {
        let open = match namespaces {
            [] => ReadableNamespaces::Own,
            named => ReadableNamespaces::Named(Arc::new(named.iter().cloned().collect())),
        };
        Self { connection: self.connection.clone(), open }
    }

    /// The same home, for references by the operator.
    pub fn of_operator(&self) -> Self {
        Self { connection: self.connection.clone(), open: ReadableNamespaces::All }
    }

    /// The cluster that this process runs in; otherwise none.
    pub fn here() -> Self {
        let is_pod = std::env::var_os(IN_CLUSTER).is_some_and(|host| !host.is_empty());
        if is_pod { Self::at(ClusterLink::InCluster) } else { Self::default() }
    }

    pub fn is_none(&self) -> bool {
        self.connection.is_none()
    }

    /// The value of one key as text. No error contains it.
    pub async fn read(&self, keeper: KeyObjectKind, at: &DataKeyRef) -> Result<SecretString, HomeError> {
        let what = format!("{} {at}", keeper.kind());
        let asked = async {
            let client = self.client(&what).await?;
            let is_open = match &self.open {
                ReadableNamespaces::Own => client.kube().default_namespace() == at.namespace,
                ReadableNamespaces::Named(named) => named.contains(&at.namespace),
                ReadableNamespaces::All => true,
            };
            if keeper == KeyObjectKind::Secret && !is_open {
                let namespace = at.namespace.clone();
                return Err(HomeError::Withheld { what: what.clone(), namespace });
            }
            Ok(match keeper {
                KeyObjectKind::Secret => secret(&client, at).await,
                KeyObjectKind::ConfigMap => config_map(&client, at).await,
            })
        };
        let answer = match with_reservation(tokio::time::timeout(READ_TIMEOUT, asked)).await.0 {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => return Err(error),
            Err(late) => Err(late),
        };
        let (detail, is_transient) = match answer {
            Ok(Ok(Some(keys))) => {
                let value = value_of(keys, &at.key).map(SecretString::from);
                return value.map_err(|detail| HomeError::Absent { what, detail });
            }
            Ok(Ok(None)) => {
                let detail = format!("there is no such {}", keeper.kind());
                return Err(HomeError::Absent { what, detail });
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                return Err(HomeError::Absent { what, detail: clean(&status.message) });
            }
            Ok(Err(error)) => explain(&error),
            Err(_) => ("it did not answer in time".to_owned(), true),
        };
        Err(HomeError::Failed { action: "read", what, detail, is_transient })
    }

    /// The ConfigMaps of a registry and their changes. The stream ends when another connection takes over.
    pub async fn watch_registry(
        &self,
        registry: &ConfigMapRegistry,
    ) -> Result<BoxStream<'static, WatchChange>, HomeError> {
        let client = self.client(&describe_registry(registry)).await?;
        let labels: Vec<String> =
            registry.match_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: KeyObjectKind::ConfigMap.kind().to_owned(),
            plural: "configmaps".to_owned(),
        };
        let objects: Api<WholeObject> =
            Api::namespaced_with(client.kube().clone(), &registry.namespace, &resource);
        let wanted = WatchConfig {
            cluster: client.name().clone(),
            labels: Some(labels.join(",")),
            page: watch_loop::PAGE,
            longest_pause: watch_loop::LONGEST_PAUSE,
        };
        let changes = watch_loop::watch_changes(objects, resource, wanted, client.streams());
        Ok(changes.take_until(self.clone().until_another(client)).boxed())
    }

    /// Returns when the connection was replaced.
    async fn until_another(self, than: Client) {
        let Some(way) = &self.connection else { return };
        loop {
            tokio::time::sleep(way.check_interval).await;
            // After an error the loop tries again.
            if way.client().await.is_ok_and(|now| !now.is_same_connection(&than)) {
                return;
            }
        }
    }

    /// Whether we have this right there.
    pub async fn is_allowed(&self, question: AccessQuestion<'_>) -> Result<bool, HomeError> {
        let what = "our rights".to_owned();
        let client = self.client(&what).await?;
        client.is_allowed(question).await.map_err(|error| HomeError::Failed {
            action: "read",
            what,
            is_transient: error.is_transient(),
            detail: error.to_string(),
        })
    }

    /// Drops the connection, because a request on it got no answer: it may be dead without an error.
    pub(super) fn reconnect(&self) {
        if let Some(way) = &self.connection
            && let Ok(mut known) = way.known.try_lock()
        {
            known.client = None;
        }
    }

    pub(super) async fn client(&self, what: &str) -> Result<Client, HomeError> {
        let Some(way) = &self.connection else {
            return Err(HomeError::NotConfigured { what: what.to_owned() });
        };
        way.client().await.map_err(|error| HomeError::Failed {
            action: "read",
            what: what.to_owned(),
            is_transient: error.is_transient(),
            detail: error.to_string(),
        })
    }
}

impl HomeConnection {
    /// The connection, or the next one if it is over. A home kubeconfig is never stored in a home cluster, which
    /// would be a loop: no such link is created.
    async fn client(self: &Arc<Self>) -> Result<Client, Error> {
        let known = Arc::clone(&self.known).lock_owned().await;
        // Spawned, so that a slow plug-in ends even if all callers have timed out.
        match tokio::spawn(Arc::clone(self).found(known)).await {
            Ok(found) => found,
            Err(error) => {
                Err(Error::Unreachable { cluster: ClusterName::from(NAME), detail: error.to_string() })
            }
        }
    }

    /// Boxed, because a connection may need a home, whose connection would be part of the type.
    fn found(
        self: Arc<Self>,
        known: OwnedMutexGuard<HomeConnectionState>,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        self.next(known).boxed()
    }

    async fn next(self: Arc<Self>, mut known: OwnedMutexGuard<HomeConnectionState>) -> Result<Client, Error> {
        let Some(before) = known.client.clone() else {
            let client = self.connect().await?;
            *known = HomeConnectionState { client: Some(client.clone()), ..HomeConnectionState::default() };
            return Ok(client);
        };
        let rests = known.relogin_at.is_some_and(|anew| anew.elapsed() < self.check_interval);
        let is_unknown = before.is_unauthorized() && !rests;
        if !is_unknown {
            match Box::pin(before.is_outdated(&self.link)).await {
                Ok(true) => {}
                Ok(false) => {
                    known.logged_error = None;
                    return Ok(before);
                }
                Err(error) => return Ok(known.keep_client(before, &error)),
            }
        }
        let connected = self.connect().await;
        if is_unknown {
            known.relogin_at = Some(Instant::now());
        }
        let client = match connected {
            Ok(client) => client,
            // The file may be incomplete or wrong. The old connection stays valid as long as the home cluster accepts
            // it.
            Err(error) if !is_unknown => return Ok(known.keep_client(before, &error)),
            Err(error) => return Err(error),
        };
        if !client.has_same_kubeconfig(&before) {
            tracing::info!("the kubeconfig of the home cluster has changed: reconnected");
        } else {
            // Its credential may be in separate files.
            match client.probe().await {
                Ok(_) | Err(Error::Denied { forbidden: true, .. }) => {
                    tracing::info!("the home cluster accepts the login again: reconnected");
                }
                Err(error) => {
                    // A watcher on the old connection continues with its backoff.
                    tracing::debug!(%error, "the home cluster does not accept the login yet");
                    known.logged_error = None;
                    return Ok(before);
                }
            }
        }
        *known = HomeConnectionState {
            client: Some(client.clone()),
            relogin_at: known.relogin_at,
            logged_error: None,
        };
        Ok(client)
    }

    async fn connect(&self) -> Result<Client, Error> {
        Box::pin(Client::connect(ClusterName::from(NAME), &self.link)).await
    }
}

impl HomeConnectionState {
    fn keep_client(&mut self, client: Client, error: &Error) -> Client {
        let trouble = error.to_string();
        if self.logged_error.as_ref() != Some(&trouble) {
            tracing::warn!(
                error = trouble,
                "the kubeconfig of the home cluster cannot be read again; the connection stays"
            );
            self.logged_error = Some(trouble);
        }
        client
    }
}

/// A registry as text.
pub fn describe_registry(registry: &ConfigMapRegistry) -> String {
    format!("the cluster registry, ConfigMaps of namespace {}", registry.namespace)
}

type KeyValues = BTreeMap<String, Vec<u8>>;

async fn secret(client: &Client, at: &DataKeyRef) -> Result<Option<KeyValues>, kube::Error> {
    let api: Api<Secret> = Api::namespaced(client.kube().clone(), &at.namespace);
    let found = api.get_opt(&at.name).await?;
    Ok(found.map(|secret| {
        secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
    }))
}

async fn config_map(client: &Client, at: &DataKeyRef) -> Result<Option<KeyValues>, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.kube().clone(), &at.namespace);
    let found = api.get_opt(&at.name).await?;
    let text = |(key, value): (String, String)| (key, value.into_bytes());
    Ok(found.map(|map| map.data.unwrap_or_default().into_iter().map(text).collect()))
}

fn value_of(mut keys: KeyValues, key: &str) -> Result<String, String> {
    let Some(value) = keys.remove(key) else {
        let known: Vec<&str> = keys.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("it has no key {key}; its keys: {known}"));
    };
    match String::from_utf8(value) {
        Ok(text) if text.trim().is_empty() => Err(format!("its key {key} is empty")),
        Ok(text) => Ok(text),
        Err(_) => Err(format!("its key {key} is not text")),
    }
}

/// The error without quotes: a response that cannot be parsed contains the Secret.
pub(super) fn explain(error: &kube::Error) -> (String, bool) {
    match error {
        kube::Error::Api(status) if status.code == 401 => (clean(&status.message), false),
        kube::Error::Api(status) => {
            (clean(&format!("{} ({})", status.reason, status.code)), status.code == 429 || status.code >= 500)
        }
        kube::Error::SerdeError(_) => ("an answer that cannot be read".to_owned(), true),
        other => (clean(&innermost(other)), true),
    }
}

#[cfg(test)]
mod tests {
    use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};
    use serde_json::json;

    use super::*;

    fn home() -> (Sandbox, HomeCluster) {
        let sandbox = Sandbox::new(SandboxOptions::instant("home"));
        let home = HomeCluster::at(ClusterLink::in_process(sandbox.service()));
        (sandbox, home)
    }

    #[tokio::test(start_paused = true)]
    async fn connection_stays_until_a_new_login_works() {
        let (sandbox, home) = home();
        let at = DataKeyRef { namespace: "default".into(), name: "one".into(), key: "key".into() };
        let first = home.client("one").await.expect("a connection");
        sandbox.fail_next(RequestMatch::any(), 4, Fault::unauthorized());
        home.read(KeyObjectKind::Secret, &at).await.expect_err("nobody knows us");
        for _ in 0..3 {
            tokio::time::advance(LOOK_EVERY).await;
            assert!(home.client("one").await.expect("a connection").is_same_connection(&first));
        }
        tokio::time::advance(LOOK_EVERY).await;
        let second = home.client("one").await.expect("a connection");
        assert!(!second.is_same_connection(&first));
        assert!(home.client("one").await.expect("a connection").is_same_connection(&second));
        assert_eq!(sandbox.requests().len(), 5, "{:?}", sandbox.requests());
    }

    #[tokio::test(start_paused = true)]
    async fn refused_reads_do_not_log_in_each_time() {
        let (sandbox, home) = home();
        let at = DataKeyRef { namespace: "default".into(), name: "one".into(), key: "key".into() };
        sandbox.fail_next(RequestMatch::any(), 1_000_000, Fault::unauthorized());
        for round in 0..3 {
            for _ in 0..10 {
                home.read(KeyObjectKind::Secret, &at).await.expect_err("nobody knows us");
            }
            // Each new login sends a probe.
            let probes = sandbox.count_requests(&RequestMatch::any().resource("/version"));
            assert_eq!(probes, round + 1, "{:?}", sandbox.requests());
            tokio::time::advance(LOOK_EVERY).await;
        }
    }

    /// On the real clock, as the plug-in runs by it.
    #[tokio::test]
    async fn slow_plug_in_times_out_callers_and_completes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, runs) = (folder.path().join("config"), folder.path().join("runs"));
        let end = folder.path().join("end");
        let script = format!(
            "echo one >> {}; while [ ! -e {} ]; do sleep 0.1; done; echo 'status: {{token: x}}'",
            runs.display(),
            end.display()
        );
        let exec =
            json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]});
        let text = json!({
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "admin"}}],
            "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "admin", "user": {"exec": exec}}],
        });
        std::fs::write(&path, text.to_string()).expect("a file");
        let home = HomeCluster::at(ClusterLink::Kubeconfig { path, context: None });
        let at = DataKeyRef { namespace: "default".into(), name: "one".into(), key: "key".into() };
        let read = async || home.read(KeyObjectKind::Secret, &at).await.expect_err("nobody is there");
        let errors = tokio::join!(read(), read(), read());
        let in_time = "it did not answer in time";
        for error in <[HomeError; 3]>::from(errors) {
            assert!(error.is_transient() && error.to_string().ends_with(in_time), "{error}");
        }
        // They did not wait for its end, which is not before this.
        std::fs::write(end, "").expect("a file");
        let error = read().await;
        assert!(!error.to_string().ends_with(in_time), "its connection is refused: {error}");
        assert_eq!(std::fs::read_to_string(&runs).expect("it was run"), "one\n");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_watch_backs_off() {
        let (sandbox, home) = home();
        sandbox.fail_next(RequestMatch::any(), 1_000_000, Fault::unauthorized());
        let changes = home.watch_registry(&ConfigMapRegistry::default()).await.expect("a connection");
        let ten_minutes = Duration::from_secs(600);
        tokio::time::timeout(ten_minutes, changes.for_each(async |_| {})).await.expect_err("it goes on");
        // After a second, two, four and so on, and then every 30 s.
        let tried = sandbox.count_requests(&RequestMatch::any().resource("configmaps"));
        assert!((20..=30).contains(&tried), "{tried}");
    }
}
