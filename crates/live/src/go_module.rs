//! The Go modules in `tools/live/`, and the one that renders charts, and how each is built. Versions stand in their `go.mod` alone.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Error;

pub(crate) struct GoProgram {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

/// One Go module: its programs share one set of dependencies.
pub(crate) struct GoModule {
    pub(crate) name: &'static str,
    /// From `tools/`.
    folder: &'static str,
    pub(crate) programs: &'static [GoProgram],
    /// The dependency whose version is the module's, as its `require` line names it.
    pub(crate) dependency: &'static str,
    pub(crate) cgo: bool,
    pub(crate) tags: &'static str,
    /// `-ldflags`, with `{version}`, `{major}` and `{minor}` of the dependency.
    link: &'static str,
}

// Without the stamps a client refuses the API server's version string.
pub(crate) const KUBERNETES: GoModule = GoModule {
    name: "k8s",
    folder: "live/k8s",
    programs: &[
        GoProgram { name: "etcd", package: "go.etcd.io/etcd/server/v3" },
        GoProgram { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
        GoProgram {
            name: "kube-controller-manager",
            package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        },
        GoProgram { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
        GoProgram { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
    ],
    dependency: "k8s.io/kubernetes",
    cgo: false,
    tags: "",
    link: "-s -w -X k8s.io/component-base/version.gitVersion=v{version} \
           -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}",
};

/// The oldest Kubernetes that the tier runs. It works with the etcd, kubectl and kwok of the newest.
pub(crate) const OLD_KUBERNETES: GoModule = GoModule {
    name: "k8s-1.30",
    folder: "live/k8s-1.30",
    programs: &[
        GoProgram { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
        GoProgram {
            name: "kube-controller-manager",
            package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        },
        GoProgram { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
    ],
    ..KUBERNETES
};

pub(crate) const KWOK: GoModule = GoModule {
    name: "kwok",
    folder: "live/kwok",
    programs: &[GoProgram { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" }],
    dependency: "sigs.k8s.io/kwok",
    cgo: false,
    tags: "",
    link: "-s -w",
};

pub(crate) const GITEA: GoModule = GoModule {
    name: "gitea",
    folder: "live/gitea",
    programs: &[GoProgram { name: "gitea", package: "code.gitea.io/gitea" }],
    dependency: "code.gitea.io/gitea",
    cgo: true,
    tags: "sqlite sqlite_unlock_notify",
    link: "-s -w -X main.Version={version}",
};

/// The renderer of charts, which `tutti` starts.
pub(crate) const HELM_RENDER: GoModule = GoModule {
    name: "helm-render",
    folder: "helm-render",
    programs: &[GoProgram { name: "helm-render", package: "." }],
    dependency: "helm.sh/helm/v4",
    cgo: false,
    tags: "",
    link: "-s -w",
};

/// The command of the same Helm, which the renderer is compared with.
pub(crate) const HELM: GoModule = GoModule {
    name: "helm",
    folder: "helm-render",
    programs: &[GoProgram { name: "helm", package: "helm.sh/helm/v4/cmd/helm" }],
    dependency: "helm.sh/helm/v4",
    cgo: false,
    tags: "",
    link: "-s -w -X helm.sh/helm/v4/internal/version.version=v{version}",
};

/// The command that overlays are compared with, and a program that runs its library.
pub(crate) const KUSTOMIZE: GoModule = GoModule {
    name: "kustomize",
    folder: "live/kustomize",
    programs: &[
        GoProgram { name: "kustomize", package: "sigs.k8s.io/kustomize/kustomize/v5" },
        GoProgram { name: "overlays", package: "." },
    ],
    dependency: "sigs.k8s.io/kustomize/kustomize/v5",
    cgo: false,
    tags: "",
    link: "-s -w",
};

/// The controller of Flux 2 that the benchmark of a fleet compares with.
pub(crate) const FLUX: GoModule = GoModule {
    name: "flux",
    folder: "live/flux",
    programs: &[GoProgram {
        name: "kustomize-controller",
        package: "github.com/fluxcd/kustomize-controller",
    }],
    dependency: "github.com/fluxcd/kustomize-controller",
    cgo: false,
    tags: "",
    link: "-s -w",
};

impl GoModule {
    pub(crate) fn source(&self) -> PathBuf {
        tools_folder().join(self.folder)
    }

    /// The version without its `v`, from the module's own `go.mod`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        let path = self.source().join("go.mod");
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        required_version(&text, self.dependency)
            .map(str::to_owned)
            .ok_or_else(|| Error::ModuleFile { path, wanted: self.dependency.to_owned() })
    }

    /// The oldest Go that the module accepts.
    pub(crate) fn go(&self) -> Result<String, Error> {
        let path = self.source().join("go.mod");
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let line =
            text.lines().find_map(|line| line.strip_prefix("go ")).map(|version| version.trim().to_owned());
        line.ok_or_else(|| Error::ModuleFile { path, wanted: "go".to_owned() })
    }

    /// The flags of `go build`, without `-o` and the package.
    pub(crate) fn flags(&self) -> Result<Vec<String>, Error> {
        let version = self.version()?;
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let link =
            self.link.replace("{version}", &version).replace("{major}", major).replace("{minor}", minor);
        let mut flags = vec![
            "-mod=readonly".into(),
            "-trimpath".into(),
            "-buildvcs=false".into(),
            "-ldflags".into(),
            link,
        ];
        if !self.tags.is_empty() {
            flags.extend(["-tags".into(), self.tags.into()]);
        }
        Ok(flags)
    }

    /// Where the built programs belong: the name changes with everything that goes into them.
    pub(crate) fn home(&self, cache: &Path) -> Result<PathBuf, Error> {
        let mut digest = Sha256::new();
        for path in self.inputs()? {
            digest.update(fs::read(&path).map_err(Error::file("read", &path))?);
        }
        let packages = self.programs.iter().map(|program| program.package.to_owned());
        for word in self.flags()?.into_iter().chain(packages).chain([self.cgo.to_string()]) {
            digest.update(word);
            digest.update([0]);
        }
        let key = hex::encode(digest.finalize());
        Ok(cache.join(format!("{}-{}-{}", self.name, self.version()?, &key[..16])))
    }

    /// The module's own files and profile, sorted. Go code counts only where a program is made of it.
    fn inputs(&self) -> Result<Vec<PathBuf>, Error> {
        let source = self.source();
        let of_ours = self.programs.iter().any(|program| program.package == ".");
        let entries = fs::read_dir(&source).map_err(Error::file("read", &source))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            matches!(name, "go.mod" | "go.sum" | "default.pgo")
                || of_ours && name.ends_with(".go") && !name.ends_with("_test.go")
        });
        paths.sort();
        Ok(paths)
    }
}

/// `tools` of this checkout.
pub(crate) fn tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools")
}

/// The version of a dependency in the text of a `go.mod`.
fn required_version<'text>(text: &'text str, dependency: &str) -> Option<&'text str> {
    text.lines()
        .filter_map(|line| line.trim().trim_start_matches("require ").strip_prefix(dependency))
        .find_map(|rest| rest.strip_prefix(" v"))
        .and_then(|rest| rest.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_dependency() {
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(required_version(text, "example.org/program"), expected, "{text}");
        }
        check("require (\n\texample.org/program v1.2.3 // indirect\n)", Some("1.2.3"));
        check("require example.org/program v1.2.3\n", Some("1.2.3"));
        check("require example.org/program/v2 v2.0.0\n", None);
        check("tool example.org/program\n", None);
    }

    #[test]
    fn every_module_names_its_version_and_home() {
        for module in [&KUBERNETES, &OLD_KUBERNETES, &KWOK, &GITEA, &HELM_RENDER, &HELM, &KUSTOMIZE, &FLUX] {
            let home = module.home(Path::new("/cache")).unwrap();
            let name = home.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(name.starts_with(&format!("{}-{}-", module.name, module.version().unwrap())), "{name}");
        }
    }

    #[test]
    fn kubernetes_carries_its_version_stamps() {
        for module in [&KUBERNETES, &OLD_KUBERNETES] {
            let flags = module.flags().unwrap().join(" ");
            let version = module.version().unwrap();
            assert!(flags.contains(&format!("gitVersion=v{version} ")), "{flags}");
            assert!(!flags.contains('{'), "{flags}");
        }
    }
}
