//! The API server that the definitions come from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Documents by their name in the index, as `apis/apps/v1`.
pub type OpenApiDocuments = BTreeMap<String, Value>;

pub struct SchemaServer {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
}

impl SchemaServer {
    pub fn running(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        let kubectl =
            live::TierPrograms::find()?.map_or_else(|| "kubectl".into(), |programs| programs.kubectl);
        Ok(Self { kubectl, kubeconfig })
    }

    /// Starts a cluster and stops it after `use_server`.
    pub fn with_new(use_server: impl FnOnce(&Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let programs = live::TierPrograms::ensure(&|line| println!("{line}"))?;
        let runtime = tokio::runtime::Runtime::new().context("failed to start a runtime")?;
        let setup = live::LiveSetup::new(1).without_gitea();
        let tier = runtime.block_on(live::LiveEnvironment::start(&programs, &setup))?;
        let kubeconfig = tier.cluster(0).kubeconfig().to_owned();
        use_server(&Self { kubectl: programs.kubectl, kubeconfig })
    }

    pub fn version(&self) -> anyhow::Result<Value> {
        self.get("/version")
    }

    /// The OpenAPI document of every group and version that is the server's own.
    pub fn documents(&self) -> anyhow::Result<OpenApiDocuments> {
        let custom = self.custom_groups()?;
        let index = self.get("/openapi/v3")?;
        let index = index["paths"].as_object().context("failed to read the index of documents")?;
        let mut documents = OpenApiDocuments::new();
        for (name, entry) in index {
            let is_own = match name.split('/').collect::<Vec<_>>()[..] {
                ["api", _] => true,
                ["apis", group, _] => !custom.iter().any(|one| one == group),
                _ => false,
            };
            if let Some(url) = entry["serverRelativeURL"].as_str().filter(|_| is_own) {
                documents.insert(name.clone(), self.get(url)?);
            }
        }
        Ok(documents)
    }

    fn custom_groups(&self) -> anyhow::Result<Vec<String>> {
        let definitions = self.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")?;
        let definitions = definitions["items"].as_array().cloned().unwrap_or_default();
        Ok(definitions
            .iter()
            .filter_map(|definition| definition["spec"]["group"].as_str().map(str::to_owned))
            .collect())
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        let output = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["get", "--raw", path])
            .output()
            .with_context(|| format!("failed to run {}", self.kubectl.display()))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "failed to get {path}: {complaint}");
        serde_json::from_slice(&output.stdout).with_context(|| format!("failed to read {path}"))
    }
}
