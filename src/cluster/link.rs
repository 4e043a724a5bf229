//! How a cluster is reached.

use std::fmt;
use std::path::PathBuf;

use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::error::{innermost, words_of_login};
use super::standing::Standing;
use super::{Credential, Error, HomeError, Keeper, Stored, plug_in, transport};
use crate::model::{ClusterName, Digest};
use tower::Layer as _;

/// One way to reach a cluster.
#[derive(Clone, Debug)]
pub enum Link {
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
    /// The service account of the pod that tutti runs in.
    InCluster,
    /// A kubeconfig that the home cluster keeps.
    Stored(Stored),
    /// A service in this process that answers as an API server.
    InProcess(InProcess),
}

/// A connection that stays in this process.
#[derive(Clone)]
pub struct InProcess(kube::Client, Standing);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl Link {
    /// A link to a service in this process.
    pub fn in_process<S, B>(service: S) -> Self
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let standing = Standing::default();
        Self::InProcess(InProcess(kube::Client::new(standing.layer(service), "default"), standing))
    }

    /// Reads what it takes to connect; asks the cluster nothing.
    pub(super) async fn open(&self, cluster: &ClusterName) -> Result<Opened, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        let held = self.held(cluster).await?;
        // Whoever connects finds out when it cannot be read.
        let credential = held.credential().unwrap_or_default();
        let mark = held.mark();
        let config = match held {
            Held::Client(kube, standing) => return Ok(Opened { kube, standing, credential, mark }),
            Held::Pod => kube::Config::incluster().map_err(|error| fail(error.to_string()))?,
            Held::Kubeconfig { config, context, place, .. } => {
                let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
                kube::Config::from_custom_kubeconfig(*config, &options)
                    .await
                    .map_err(|error| fail(format!("{place}: {}", innermost(&error))))?
            }
        };
        let standing = Standing::default();
        let kube = transport::connect(config, &standing).map_err(|error| match error {
            // The address may hold a password.
            kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. } => {
                fail("a proxy (`proxy-url`, HTTPS_PROXY) is http://, https:// or socks5://".to_owned())
            }
            kube::Error::Auth(auth) => fail(words_of_login(&auth)),
            error => fail(error.to_string()),
        })?;
        Ok(Opened { kube, standing, credential, mark })
    }

    /// With what it logs in now, read again. Asks the home cluster where that keeps it, and nobody else.
    pub async fn credential(&self, cluster: &ClusterName) -> Result<Credential, Error> {
        let found = self.held(cluster).await?.credential();
        found.map_err(|detail| Error::Connection { cluster: cluster.clone(), detail })
    }

    /// The same, and runs a plug-in where one says until when that is good.
    pub async fn learned_credential(&self, cluster: &ClusterName) -> Result<Credential, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        let held = self.held(cluster).await?;
        let credential = held.credential().map_err(fail)?;
        let plug_in = match &held {
            Held::Kubeconfig { config, context, .. } => Credential::plug_in(config, context.as_deref()),
            Held::Client(..) | Held::Pod => None,
        };
        match plug_in {
            Some((exec, of)) => {
                let brought = plug_in::run(&exec, of.as_ref()).await.map_err(fail)?;
                Ok(credential.with(&brought))
            }
            None => Ok(credential),
        }
    }

    /// What it holds now: its mark, and with what it logs in. `None` of what is told otherwise: a ConfigMap is watched, and its
    /// change is another connection of the cluster.
    pub(super) async fn look(&self, cluster: &ClusterName) -> Result<Option<Look>, Error> {
        if matches!(self, Self::Stored(Stored { keeper: Keeper::ConfigMap, .. })) {
            return Ok(None);
        }
        let held = self.held(cluster).await?;
        Ok(Some(Look { mark: held.mark(), credential: held.credential().ok() }))
    }

    async fn held(&self, cluster: &ClusterName) -> Result<Held, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        match self {
            Self::InProcess(InProcess(client, standing)) => {
                Ok(Held::Client(client.clone(), standing.clone()))
            }
            Self::InCluster => Ok(Held::Pod),
            Self::Kubeconfig { path, context } => {
                let place = format!("kubeconfig {}", path.display());
                let at = |error: &dyn std::error::Error| fail(format!("{place}: {}", innermost(error)));
                // Before what is used of it: a file that is replaced meanwhile is read once more, not never.
                let mark = Digest::of(&std::fs::read(path).map_err(|error| at(&error))?);
                let config = Kubeconfig::read_from(path).map_err(|error| match error {
                    // Its lines would be quoted.
                    KubeconfigError::Parse(_) => fail(format!("{place}: it cannot be read as a kubeconfig")),
                    error => at(&error),
                })?;
                let config = Box::new(config);
                Ok(Held::Kubeconfig { config, context: context.clone(), place, mark })
            }
            Self::Stored(stored) => {
                let text = stored.text().await.map_err(|error| match &error {
                    HomeError::Failed { is_transient: true, .. } => {
                        Error::Unreachable { cluster: cluster.clone(), detail: error.to_string() }
                    }
                    _ => fail(error.to_string()),
                })?;
                let place = stored.place();
                let config = stored.parse(&text).map_err(|detail| fail(format!("{place}: {detail}")))?;
                let (config, context) = (Box::new(config), stored.context.clone());
                Ok(Held::Kubeconfig { config, context, place, mark: Stored::mark(&text) })
            }
        }
    }
}

/// A connection that has not asked anything yet.
pub(super) struct Opened {
    pub kube: kube::Client,
    /// What the server asks of it.
    pub standing: Standing,
    pub credential: Credential,
    /// Of the kubeconfig that it was made of.
    pub mark: Option<Digest>,
}

/// What a link holds.
pub(super) struct Look {
    pub mark: Option<Digest>,
    pub credential: Option<Credential>,
}

/// What a link leads to.
enum Held {
    Client(kube::Client, Standing),
    Pod,
    Kubeconfig { config: Box<Kubeconfig>, context: Option<String>, place: String, mark: Digest },
}

impl Held {
    fn credential(&self) -> Result<Credential, String> {
        match self {
            Self::Client(..) => Ok(Credential::new("connection to an embedded cluster")),
            Self::Pod => Credential::of_pod(),
            Self::Kubeconfig { config, context, place, .. } => {
                Credential::of(config, context.as_deref()).map_err(|detail| format!("{place}: {detail}"))
            }
        }
    }

    fn mark(&self) -> Option<Digest> {
        match self {
            Self::Client(..) | Self::Pod => None,
            Self::Kubeconfig { mark, .. } => Some(*mark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_of_an_unknown_kind_is_refused_without_telling_the_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let cluster = "server: 'https://127.0.0.1:1', proxy-url: 'ftp://me:hunter2@proxy.example.com:3128'";
        let text = format!(
            "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
             clusters: [{{name: one, cluster: {{{cluster}}}}}]\nusers: [{{name: admin, user: {{}}}}]\n"
        );
        std::fs::write(&path, text).expect("a file");
        let link = Link::Kubeconfig { path, context: None };
        let error = link.open(&ClusterName::from("one")).await.err().expect("refused").to_string();
        assert!(error.contains("socks5://") && !error.contains("hunter2"), "{error}");
    }
}
