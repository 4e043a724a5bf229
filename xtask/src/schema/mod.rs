//! `cargo xtask schema`: writes the OpenAPI definitions of a real API server for the sandbox.
//!
//! The command reads all documents of a live kube-apiserver and merges their definitions, which every document
//! repeats. It drops prose and custom kinds and writes one compressed file. The same server gives the same bytes.

mod merge;
mod server;
mod write;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use server::SchemaServer;

#[derive(Args)]
pub struct SchemaOptions {
    /// Kubeconfig of the API server to read; default: a new server is started
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub fn run(options: SchemaOptions) -> anyhow::Result<()> {
    match options.kubeconfig {
        Some(kubeconfig) => generate(&SchemaServer::running(kubeconfig)?),
        None => SchemaServer::with_new(generate),
    }
}

fn generate(server: &SchemaServer) -> anyhow::Result<()> {
    let version = server.version()?;
    let documents = server.documents()?;
    let merged = merge::definitions(&documents)?;
    let parameters = merge::parameters(&documents).context("failed to read the parameters of requests")?;
    let (major, minor) = (&version["major"], &version["minor"]);
    let file = write::folder().join(format!("kubernetes-{}.{}.json.gz", text(major)?, text(minor)?));
    let definitions = merged.len();
    let bytes = write::compressed(&file, &version, &merged, &parameters)?;
    println!("{}: {definitions} definitions, {bytes} bytes", file.display());
    Ok(())
}

fn text(value: &serde_json::Value) -> anyhow::Result<&str> {
    value.as_str().context("failed to read the version of the server")
}
