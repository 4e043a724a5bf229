//! Flux 2's kustomize-controller, for the fleet benchmark.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::go_module::FLUX;
use crate::process::TierProcess;
use crate::{Error, cache, compile};

/// The namespace of its own objects.
const NAMESPACE: &str = "flux-system";

/// A running controller. Dropping it stops it.
#[derive(Debug)]
pub struct FluxController {
    process: TierProcess,
    /// Goes with it.
    _unpacked: TempDir,
}

impl FluxController {
    /// Builds what is missing, and answers with the path of the controller.
    pub fn ensure(progress: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        let home = compile::ensure(&FLUX, &cache::folder()?, progress)?;
        Ok(home.join("bin/kustomize-controller"))
    }

    /// With all else as it is out of the box; its log goes beside the kubeconfig. It unpacks a whole archive for each Kustomization,
    /// which it does in memory here where there is such a place, as no disk is what is compared. The kinds that it watches must be
    /// served.
    pub fn start(program: &Path, kubeconfig: &Path, concurrency: usize) -> Result<Self, Error> {
        let folder = kubeconfig.parent().unwrap_or(Path::new("."));
        let memory = Path::new("/dev/shm");
        let home = if memory.is_dir() { memory } else { folder };
        let unpacked = tempfile::tempdir_in(home).map_err(Error::file("create a folder in", home))?;
        let arguments = vec![
            format!("--concurrent={concurrency}"),
            "--metrics-addr=0".to_owned(),
            "--health-addr=0".to_owned(),
            "--log-level=error".to_owned(),
        ];
        let process = TierProcess::new("kustomize-controller", program, folder, arguments)
            .variable("KUBECONFIG", &kubeconfig.to_string_lossy())
            .variable("TMPDIR", &unpacked.path().to_string_lossy())
            .variable("RUNTIME_NAMESPACE", NAMESPACE);
        process.start()?;
        Ok(Self { process, _unpacked: unpacked })
    }

    /// Of its process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }
}
