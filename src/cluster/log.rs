//! Reads the last line of a container's log.

use std::pin::pin;
use std::time::Duration;

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;

use super::error::{classify, clean, innermost};
use super::{Client, Error};

/// The timeout: for an offline node the API server does not answer.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerLogRef<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub container: &'a str,
    /// The log of the run before the current one.
    pub previous: bool,
}

impl Client {
    /// The last line of a log; at most its first `limit` bytes.
    pub async fn last_log_line(&self, of: ContainerLogRef<'_>, limit: usize) -> Result<Vec<u8>, Error> {
        let pods: Api<Pod> = Api::namespaced(self.kube().clone(), of.namespace);
        let bytes = u64::try_from(limit).unwrap_or(u64::MAX);
        let parameters = LogParams {
            container: Some(of.container.to_owned()),
            limit_bytes: i64::try_from(limit).ok(),
            previous: of.previous,
            tail_lines: Some(1),
            ..LogParams::default()
        };
        // It may be no UTF-8, and a server may exceed the limit.
        let read = async {
            let log = pods.log_stream(of.pod, &parameters).await;
            let log = log.map_err(|error| classify(self.name(), "read a log", None, &error))?;
            let mut told = Vec::new();
            pin!(log).take(bytes).read_to_end(&mut told).await.map_err(|error| Error::Unreachable {
                cluster: self.name().clone(),
                detail: clean(&innermost(&error)),
            })?;
            Ok(told)
        };
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(told) => told,
            Err(_) => Err(self.timeout_error()),
        }
    }
}
