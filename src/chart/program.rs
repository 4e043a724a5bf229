//! Finds the program that renders charts: `helm-render`, else `helm`.

use std::env;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Searched beside `tutti` and on PATH.
pub const RENDERER_PROGRAM: &str = "helm-render";
/// An explicit path to it; an empty value disables it.
pub const RENDERER_VARIABLE: &str = "TUTTI_HELM_RENDER";
const FALLBACK: &str = "helm";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RendererProgram {
    /// `helm-render`.
    HelmRender(PathBuf),
    /// `helm`, for `helm template`.
    Helm(PathBuf),
    /// Neither, with the mistake in the variable, if it is set.
    Missing(Option<String>),
}

/// Order: the variable, beside this program, the build of `cargo xtask helm-render`, PATH; else `helm` on PATH.
pub fn find() -> RendererProgram {
    find_in(&ProgramLocations {
        named: env::var_os(RENDERER_VARIABLE).map(PathBuf::from),
        beside: env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned)),
        cache: cache(),
        path: env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
    })
}

#[derive(Debug, Default)]
struct ProgramLocations {
    named: Option<PathBuf>,
    beside: Option<PathBuf>,
    cache: Option<PathBuf>,
    path: Vec<PathBuf>,
}

fn find_in(places: &ProgramLocations) -> RendererProgram {
    if let Some(named) = &places.named
        && !named.as_os_str().is_empty()
    {
        return match named.is_file() {
            true => RendererProgram::HelmRender(named.clone()),
            false => RendererProgram::Missing(Some(format!(
                "{RENDERER_VARIABLE} names {}, which is not a file",
                named.display()
            ))),
        };
    }
    let beside = places.beside.iter().map(|folder| folder.join(RENDERER_PROGRAM));
    let on_path = |name: &'static str| places.path.iter().map(move |folder| folder.join(name));
    // An empty variable disables an installed program.
    let wanted = places.named.is_none();
    let engine = beside
        .chain(newest(places.cache.as_deref()))
        .chain(on_path(RENDERER_PROGRAM))
        .find(|path| path.is_file());
    match engine.filter(|_| wanted) {
        Some(engine) => RendererProgram::HelmRender(engine),
        None => on_path(FALLBACK)
            .find(|path| path.is_file())
            .map_or(RendererProgram::Missing(None), RendererProgram::Helm),
    }
}

/// The cache folder of `cargo xtask live`, with programs built from this repository's Go modules.
fn cache() -> Option<PathBuf> {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("TUTTI_LIVE_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("tutti/live")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/tutti/live")))
}

/// The last build; folders are named after their sources.
fn newest(cache: Option<&Path>) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache?).ok()?;
    let built = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let ours = entry.file_name().to_str()?.starts_with(&format!("{RENDERER_PROGRAM}-"));
        let program = entry.path().join("bin").join(RENDERER_PROGRAM);
        let time =
            entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        (ours && program.is_file()).then_some((time, program))
    };
    entries.filter_map(built).max().map(|(_, program)| program)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn renderer_is_found_in_documented_order() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| root.path().join(name);
        let mut places = ProgramLocations {
            named: None,
            beside: Some(folder("beside")),
            cache: Some(folder("cache")),
            path: vec![folder("one"), folder("two")],
        };
        assert_eq!(find_in(&places), RendererProgram::Missing(None));
        let helm = file(&folder("two"), "helm");
        assert_eq!(find_in(&places), RendererProgram::Helm(helm.clone()));
        let on_path = file(&folder("two"), RENDERER_PROGRAM);
        assert_eq!(find_in(&places), RendererProgram::HelmRender(on_path));
        let built = file(&folder("cache"), "helm-render-4.2.4-0011/bin/helm-render");
        assert_eq!(find_in(&places), RendererProgram::HelmRender(built));
        let beside = file(&folder("beside"), RENDERER_PROGRAM);
        assert_eq!(find_in(&places), RendererProgram::HelmRender(beside));
        places.named = Some(PathBuf::new());
        assert_eq!(find_in(&places), RendererProgram::Helm(helm));
        let named = file(&folder("named"), "any");
        places.named = Some(named.clone());
        assert_eq!(find_in(&places), RendererProgram::HelmRender(named));
        places.named = Some(folder("nowhere"));
        assert!(
            matches!(find_in(&places), RendererProgram::Missing(Some(why)) if why.contains("TUTTI_HELM_RENDER"))
        );
    }
}
