//! What a container wrote.

use std::pin::pin;
use std::time::Duration;

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;

use super::error::{classify, clean, innermost};
use super::{Client, Error};

/// Longer nobody waits for a log: a node that is away keeps its API server waiting.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whose log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOf<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub container: &'a str,
    /// Of the run before the present one.
    pub previous: bool,
}

impl Client {
    /// The last line of a log, but not more than its first `limit` bytes.
    pub async fn end_of_log(&self, of: LogOf<'_>, limit: usize) -> Result<Vec<u8>, Error> {
        let pods: Api<Pod> = Api::namespaced(self.kube().clone(), of.namespace);
        let bytes = u64::try_from(limit).unwrap_or(u64::MAX);
        let parameters = LogParams {
            container: Some(of.container.to_owned()),
            limit_bytes: i64::try_from(limit).ok(),
            previous: of.previous,
            tail_lines: Some(1),
            ..LogParams::default()
        };
        // It need not be UTF-8, and a server need not keep to the limit.
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
            Err(_) => Err(self.no_answer()),
        }
    }
}
