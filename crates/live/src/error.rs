//! Errors of building, starting and using the live tier.

use std::io;
use std::path::PathBuf;

/// One variant per step. Every message names the thing it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to find a cache folder: set TUTTI_LIVE_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    #[error("failed to {action} {}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the value of {variable}={value:?} is not valid: {reason}")]
    Variable { variable: &'static str, value: String, reason: String },
    #[error("failed to find {} in {variable}={}", missing.join(", "), folder.display())]
    MissingPrograms { variable: &'static str, folder: PathBuf, missing: Vec<String> },
    #[error("failed to read {}: no line for {wanted}", path.display())]
    ModuleFile { path: PathBuf, wanted: String },
    #[error("failed to find {tool}, which {needed_by} needs: {reason}")]
    Tool { tool: &'static str, needed_by: &'static str, reason: String },
    #[error("failed to build {program}: {output}")]
    Build { program: String, output: String },
    #[error("failed to choose a free port on 127.0.0.1")]
    NoPort,
    #[error("failed to create the certificate of {subject}")]
    Certificate { subject: String, source: rcgen::Error },
    #[error("failed to start {process}: {reason}")]
    Start { process: String, reason: String },
    #[error("{process} ended with {status}; the end of its log:\n{log}")]
    Ended { process: String, status: String, log: String },
    #[error("{what} was not reached within {seconds} s; the last answer: {last}")]
    NotReady { what: String, seconds: u64, last: String },
    #[error("failed to create an HTTP client for {server}")]
    Client { server: String, source: reqwest::Error },
    #[error("failed to send {method} {url}")]
    Request { method: String, url: String, source: reqwest::Error },
    #[error("{method} {url} failed with {status}: {body}")]
    Refused { method: String, url: String, status: u16, body: String },
    #[error("failed to run {command}: {output}")]
    Command { command: String, output: String },
}

impl Error {
    /// For `map_err` on a file operation.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
