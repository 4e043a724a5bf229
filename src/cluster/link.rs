//! How a cluster is reached: a kubeconfig in a file or in the home cluster, the pod's service account, or a service
//! in this process. Opening a link yields the client, its login and a digest of its kubeconfig.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use kube::client::Body;
use kube::config::{AuthInfo, Kubeconfig, KubeconfigError};

use super::client::OpenedConnection;
use super::error::innermost;
use super::kubeconfig::KubeconfigContext;
use super::login::Login;
use super::response_bounds::ResponseBounds;
use super::server_state::ServerState;
use super::{
    Client, Credential, Error, HomeError, KeyObjectKind, StoredKubeconfig, WritePermit, proxy, transport,
};
use crate::model::{ClusterName, Digest};
use tower::Layer as _;

/// The token of a pod's service account.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

#[derive(Clone, Debug)]
pub enum ClusterLink {
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
    /// The service account of the pod that tutti runs in.
    InCluster,
    /// A kubeconfig in the home cluster.
    Stored(StoredKubeconfig),
    /// A service in this process that answers as an API server.
    InProcess(InProcess),
    /// Unusable, for this reason.
    Invalid(Arc<str>),
}

/// A connection that stays in this process.
#[derive(Clone)]
pub struct InProcess(kube::Client, ServerState);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl ClusterLink {
    /// A link to a service in this process.
    pub fn in_process<S, B>(service: S) -> Self
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let standing = ServerState::default();
        let bounds = ResponseBounds::new(ClusterName::from("in this process"));
        Self::InProcess(InProcess(
            kube::Client::new(standing.layer(bounds.layer(service)), "default"),
            standing,
        ))
    }

    /// Reads everything that a connection needs, and runs a plug-in. Sends no request to the cluster.
    pub(super) async fn open(
        &self,
        cluster: &ClusterName,
        permit: &WritePermit,
    ) -> Result<OpenedConnection, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        let held = self.held(cluster).await?;
        let (mark, login) = (held.kubeconfig_digest(), held.login().map_err(fail)?);
        let (config, proxy) = match &held {
            ResolvedLink::Client(kube, standing) => {
                return Ok(OpenedConnection {
                    kube: kube.clone(),
                    server_state: standing.clone(),
                    login,
                    kubeconfig_digest: mark,
                });
            }
            // A pod needs no proxy to the server of its own cluster.
            ResolvedLink::Pod => {
                let mut config = kube::Config::incluster().map_err(|error| fail(error.to_string()))?;
                config.auth_info = AuthInfo::default();
                (config, None)
            }
            ResolvedLink::Kubeconfig { chosen, place } => {
                let at = |detail: String| fail(format!("{place}: {detail}"));
                let config = chosen.config().map_err(at)?;
                let proxy =
                    proxy::proxy_for(&config.cluster_url, chosen.cluster.proxy_url.as_deref()).map_err(at)?;
                (config, proxy)
            }
        };
        login.run_plug_in_once().await.map_err(fail)?;
        let (standing, bounds) = (ServerState::default(), ResponseBounds::new(cluster.clone()));
        let kube = transport::connect(&config, proxy.as_ref(), &login, &standing, &bounds, permit);
        let kube = kube.map_err(fail)?;
        Ok(OpenedConnection { kube, server_state: standing, login, kubeconfig_digest: mark })
    }

    /// The credential, read again. It may be read from the home cluster. A plug-in is not run, so its end is unknown.
    pub async fn credential(&self, cluster: &ClusterName) -> Result<Credential, Error> {
        let login = self.held(cluster).await?.login();
        login
            .map(|login| login.credential())
            .map_err(|detail| Error::Connection { cluster: cluster.clone(), detail })
    }

    /// The digest of the kubeconfig now. `None` if changes are reported otherwise: a ConfigMap is watched, and its
    /// change creates a new connection.
    pub(super) async fn look(&self, cluster: &ClusterName) -> Result<Option<LinkFingerprint>, Error> {
        if matches!(self, Self::Stored(StoredKubeconfig { object_kind: KeyObjectKind::ConfigMap, .. })) {
            return Ok(None);
        }
        Ok(Some(LinkFingerprint { kubeconfig_digest: self.held(cluster).await?.kubeconfig_digest() }))
    }

    async fn held(&self, cluster: &ClusterName) -> Result<ResolvedLink, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        match self {
            Self::InProcess(InProcess(client, standing)) => {
                Ok(ResolvedLink::Client(client.clone(), standing.clone()))
            }
            Self::InCluster => Ok(ResolvedLink::Pod),
            Self::Invalid(because) => Err(fail(because.to_string())),
            Self::Kubeconfig { path, context } => {
                let place = format!("kubeconfig {}", path.display());
                let at = |detail: String| fail(format!("{place}: {detail}"));
                let config = Kubeconfig::read_from(path).map_err(|error| match error {
                    // The error would quote lines of the file.
                    KubeconfigError::Parse(_) => at("it cannot be read as a kubeconfig".to_owned()),
                    error => at(innermost(&error)),
                })?;
                let chosen =
                    Box::new(KubeconfigContext::of(config, context.as_deref(), path.parent()).map_err(at)?);
                Ok(ResolvedLink::Kubeconfig { chosen, place })
            }
            Self::Stored(stored) => {
                let text = stored.text().await.map_err(|error| match &error {
                    HomeError::Failed { is_transient: true, .. } => {
                        Error::Unreachable { cluster: cluster.clone(), detail: error.to_string() }
                    }
                    _ => fail(error.to_string()),
                })?;
                let place = stored.describe();
                let chosen = stored.parse(&text).map_err(|detail| fail(format!("{place}: {detail}")))?;
                Ok(ResolvedLink::Kubeconfig { chosen: Box::new(chosen), place })
            }
        }
    }
}

impl Client {
    /// Reads the files of the connection, or its kubeconfig in the home cluster, and runs its plug-in. Sends no
    /// request to the cluster.
    pub async fn connect(name: ClusterName, link: &ClusterLink) -> Result<Self, Error> {
        Self::connect_under(name, link, WritePermit::default()).await
    }

    /// Like [`Client::connect`], with writes under this permit.
    pub async fn connect_under(
        name: ClusterName,
        link: &ClusterLink,
        permit: WritePermit,
    ) -> Result<Self, Error> {
        let opened = link.open(&name, &permit).await?;
        Ok(Self::new(name, opened, permit))
    }

    /// Reads the connection again. Returns whether it has another server or user by now.
    pub async fn is_outdated(&self, link: &ClusterLink) -> Result<bool, Error> {
        let look = link.look(self.name()).await?;
        Ok(look.is_some_and(|look| look.kubeconfig_digest != self.kubeconfig_digest))
    }
}

pub(super) struct LinkFingerprint {
    pub kubeconfig_digest: Option<Digest>,
}

enum ResolvedLink {
    Client(kube::Client, ServerState),
    Pod,
    Kubeconfig { chosen: Box<KubeconfigContext>, place: String },
}

impl ResolvedLink {
    fn login(&self) -> Result<Login, String> {
        match self {
            Self::Client(..) => Ok(Login::embedded()),
            Self::Pod => Login::of_pod(SERVICE_ACCOUNT_TOKEN),
            Self::Kubeconfig { chosen, place } => {
                chosen.login().map_err(|detail| format!("{place}: {detail}"))
            }
        }
    }

    fn kubeconfig_digest(&self) -> Option<Digest> {
        match self {
            Self::Client(..) | Self::Pod => None,
            Self::Kubeconfig { chosen, .. } => Some(chosen.digest()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unknown_proxy_kind_is_refused_without_quoting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let cluster = "server: 'https://127.0.0.1:1', proxy-url: 'ftp://me:hunter2@proxy.example.com:3128'";
        let text = format!(
            "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
             clusters: [{{name: one, cluster: {{{cluster}}}}}]\nusers: [{{name: admin, user: {{}}}}]\n"
        );
        std::fs::write(&path, text).expect("a file");
        let link = ClusterLink::Kubeconfig { path, context: None };
        let error = link
            .open(&ClusterName::from("one"), &WritePermit::default())
            .await
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("socks5://") && !error.contains("hunter2"), "{error}");
    }

    /// Relative paths of a kubeconfig begin in its folder. An empty one names nothing.
    #[tokio::test]
    async fn empty_path_in_kubeconfig_is_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let text = "current-context: one\ncontexts: [{name: one, context: {cluster: one, user: admin}}]\n\
             clusters: [{name: one, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ''}}]\n\
             users: [{name: admin, user: {token: hunter2, tokenFile: '', client-certificate: '', client-key: ''}}]\n";
        std::fs::write(&path, text).expect("a file");
        let link = ClusterLink::Kubeconfig { path, context: None };
        let opened =
            link.open(&ClusterName::from("one"), &WritePermit::default()).await.expect("a connection");
        assert_eq!(opened.login.credential().description, "token of user admin");
    }
}
