//! The cache folder: built programs, run folders and locks, outside the checkout.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::Error;

/// `$TUTTI_LIVE_CACHE`, else `tutti/live` in the XDG cache folder. Created when missing.
pub fn folder() -> Result<PathBuf, Error> {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("TUTTI_LIVE_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("tutti/live")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/tutti/live")))
        .ok_or(Error::NoCacheFolder)?;
    fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
    fs::canonicalize(&folder).map_err(Error::file("resolve", &folder))
}

/// Holds the lock for as long as the file lives; the system frees it when the process ends, however it ends.
pub(crate) fn lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::file("create", path))?;
    file.lock().map_err(Error::file("lock", path))?;
    Ok(file)
}
