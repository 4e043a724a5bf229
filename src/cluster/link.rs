//! How a cluster is reached.

use std::fmt;
use std::path::PathBuf;

use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::Error;
use super::error::innermost;
use crate::model::ClusterName;

/// One way to reach a cluster.
#[derive(Clone, Debug)]
pub enum Link {
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
    /// The service account of the pod that tutti runs in.
    InCluster,
    /// A service in this process that answers as an API server.
    InProcess(InProcess),
}

/// A connection that stays in this process.
#[derive(Clone)]
pub struct InProcess(kube::Client);

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
        Self::InProcess(InProcess(kube::Client::new(service, "default")))
    }

    pub(super) async fn client(&self, cluster: &ClusterName) -> Result<kube::Client, Error> {
        let fail = |detail: String| Error::Connection { cluster: cluster.clone(), detail };
        let config = match self {
            Self::InProcess(InProcess(client)) => return Ok(client.clone()),
            Self::InCluster => kube::Config::incluster().map_err(|error| fail(error.to_string()))?,
            Self::Kubeconfig { path, context } => {
                let at = |error: &dyn std::error::Error| {
                    fail(format!("kubeconfig {}: {}", path.display(), innermost(error)))
                };
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| at(&error))?;
                let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(|error| at(&error))?
            }
        };
        kube::Client::try_from(config).map_err(|error| match error {
            // The address may hold a password.
            kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. } => {
                fail("a proxy (`proxy-url`, HTTPS_PROXY) is http://, https:// or socks5://".to_owned())
            }
            error => fail(error.to_string()),
        })
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
        let error = link.client(&ClusterName::from("one")).await.err().expect("refused").to_string();
        assert!(error.contains("socks5://") && !error.contains("hunter2"), "{error}");
    }
}
