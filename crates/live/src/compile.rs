//! Builds a module's programs into the cache. One build runs at a time on the machine; a complete build is moved into
//! place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Instant;

use crate::go_module::{GITEA, GoModule};
use crate::{Error, cache};

/// Builds `module` unless its home is already there, and answers with that home. `progress` gets a line per program.
pub(crate) fn ensure(module: &GoModule, cache: &Path, progress: &dyn Fn(&str)) -> Result<PathBuf, Error> {
    let home = module.home(cache)?;
    if home.is_dir() {
        return Ok(home);
    }
    // Two builds at once only slow each other; a second process waits here and then finds the home.
    let _lock = cache::lock(&cache.join("build.lock"))?;
    if home.is_dir() {
        return Ok(home);
    }
    check_tools(module)?;
    let partial = cache.join(format!(".{}-{}.partial", module.name, process::id()));
    let _ = fs::remove_dir_all(&partial);
    let folder = partial.join("bin");
    fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
    for program in module.programs {
        progress(&format!("building {} ({} {})", program.name, module.name, module.version()?));
        let start = Instant::now();
        build(module, program.package, &folder.join(program.name))?;
        progress(&format!("built {} in {:.0} s", program.name, start.elapsed().as_secs_f64()));
    }
    if module.name == GITEA.name {
        copy_static_files(module, &partial.join("static"))?;
    }
    fs::rename(&partial, &home).map_err(Error::file("move into place", &home))?;
    Ok(home)
}

fn build(module: &GoModule, package: &str, output: &Path) -> Result<(), Error> {
    let mut command = go(module);
    command.arg("build").args(module.flags()?).arg("-o").arg(output).arg(package);
    run(command, package).map(drop)
}

/// Gitea reads its templates and options from files: its module's folder in Go's cache has them, but may be cleaned.
fn copy_static_files(module: &GoModule, target: &Path) -> Result<(), Error> {
    let mut command = go(module);
    command.args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.dependency]);
    let source = PathBuf::from(run(command, module.dependency)?.trim());
    for folder in ["options", "templates"] {
        copy(&source.join(folder), &target.join(folder))?;
    }
    Ok(())
}

fn copy(source: &Path, target: &Path) -> Result<(), Error> {
    fs::create_dir_all(target).map_err(Error::file("create", target))?;
    for entry in fs::read_dir(source).map_err(Error::file("read", source))? {
        let entry = entry.map_err(Error::file("read", source))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            // Read and write, not a copy: files of Go's cache are read-only and could not be removed again.
            let bytes = fs::read(&from).map_err(Error::file("read", &from))?;
            fs::write(&to, bytes).map_err(Error::file("write", &to))?;
        }
    }
    Ok(())
}

fn check_tools(module: &GoModule) -> Result<(), Error> {
    let needed = module.go()?;
    let missing = |tool, reason| Error::Tool { tool, needed_by: module.name, reason };
    let mut version = go(module);
    version.args(["env", "GOVERSION"]);
    let found = run(version, "go env").map_err(|error| missing("go", error.to_string()))?;
    let found = found.trim().trim_start_matches("go");
    if numbers(found) < numbers(&needed) {
        return Err(missing("go", format!("go {needed} or newer is needed, this is {found}")));
    }
    if module.cgo {
        let compiler =
            std::env::var("CC").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "gcc".to_owned());
        let mut version = Command::new(&compiler);
        version.arg("--version");
        run(version, &compiler).map_err(|error| missing("gcc", error.to_string()))?;
    }
    Ok(())
}

fn go(module: &GoModule) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(module.source())
        .env("CGO_ENABLED", if module.cgo { "1" } else { "0" })
        .env("GOWORK", "off");
    command
}

fn run(mut command: Command, about: &str) -> Result<String, Error> {
    let failed = |output: String| Error::Build { program: about.to_owned(), output };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn numbers(version: &str) -> Vec<u32> {
    let digits =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    version.split('.').map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        fn check(older: &str, newer: &str) {
            assert!(numbers(older) < numbers(newer), "{older} {newer}");
        }
        check("1.9.9", "1.26.0");
        check("1.26.3", "1.26.10");
        check("1.26", "1.26.3");
        check("1.26.2-rc1", "1.26.3");
    }
}
