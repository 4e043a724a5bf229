//! Files that import each other, directly or over others. A file that only passes a name on (`pub use`) does not import it:
//! who uses the name imports the file that defines it. A call of a method that another file adds to a type is no import here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::path_scanner::{NamedPath, named_paths, used_names};

/// Between the names of the files of a unit and the reason.
const DECLARATION: &str = "are one unit:";

/// The files of one crate that are no tests, by their modules.
pub struct CrateFiles {
    modules: BTreeMap<Vec<String>, ModuleFile>,
}

struct ModuleFile {
    file: String,
    names: Vec<NamedPath>,
    used: BTreeSet<String>,
    /// The paragraphs of the module docs, each in one line.
    docs: Vec<String>,
}

impl ModuleFile {
    /// An export is an import if the file uses the name too.
    fn imports(&self, name: &NamedPath) -> bool {
        !name.is_export || name.path.last().is_some_and(|item| self.used.contains(item))
    }
}

/// Files that import each other, directly or over others.
pub struct FileCircle {
    files: Vec<String>,
    /// A file, the file that it imports, and one of the names.
    imports: Vec<(String, String, String)>,
}

impl fmt::Display for FileCircle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (from, to, name) in &self.imports {
            writeln!(f, "  {from} imports {to}: {name}")?;
        }
        Ok(())
    }
}

impl CrateFiles {
    /// Modules, their files from the crate's source folder, and the texts.
    pub fn new(files: Vec<(Vec<String>, String, String)>) -> Self {
        let modules = files.into_iter().map(|(module, file, text)| {
            let names = named_paths(&text, &file).into_iter().filter(|name| !name.in_test).collect();
            let lines = text.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim);
            let docs = lines
                .collect::<Vec<_>>()
                .split(|line| line.is_empty())
                .map(|lines| lines.join(" "))
                .collect();
            (module, ModuleFile { file, names, used: used_names(&text), docs })
        });
        Self { modules: modules.collect() }
    }

    /// Declarations of units that are no circle.
    pub fn needless_declarations(&self, circles: &[FileCircle]) -> Vec<&String> {
        let fits = |paragraph: &&String| !circles.iter().any(|circle| declares(paragraph, &circle.files));
        let paragraphs = self.modules.values().flat_map(|module| &module.docs);
        paragraphs.filter(|paragraph| paragraph.contains(DECLARATION)).filter(fits).collect()
    }

    /// The module docs of a file or of its folder declare the circle as one unit.
    pub fn is_declared(&self, circle: &FileCircle) -> bool {
        let files = &circle.files;
        let is_near = |module: &ModuleFile| {
            let folder = module.file.strip_suffix("mod.rs");
            files.contains(&module.file)
                || folder.is_some_and(|folder| files.iter().all(|file| file.starts_with(folder)))
        };
        self.modules
            .values()
            .any(|module| is_near(module) && module.docs.iter().any(|paragraph| declares(paragraph, files)))
    }

    pub fn circles(&self) -> Vec<FileCircle> {
        let imports = self.imports();
        let mut next = BTreeMap::<&str, Vec<&str>>::new();
        for (from, to) in imports.keys() {
            next.entry(from).or_default().push(to);
        }
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            next.keys().map(|file| (*file, reachable(file, &next))).collect();
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reach| reach.contains(to));
        let mut circles = BTreeMap::<Vec<String>, Vec<(String, String, String)>>::new();
        for ((from, to), name) in &imports {
            if reaches(to, from) {
                let together = reach[from.as_str()].iter().filter(|other| reaches(other, from));
                let import = (from.clone(), to.clone(), name.clone());
                circles.entry(together.map(|file| (*file).to_owned()).collect()).or_default().push(import);
            }
        }
        circles.into_iter().map(|(files, imports)| FileCircle { files, imports }).collect()
    }

    fn imports(&self) -> BTreeMap<(String, String), String> {
        let mut imports = BTreeMap::new();
        for (module, file) in &self.modules {
            let modules = self.modules_in_use(module, file);
            for name in file.names.iter().filter(|name| file.imports(name)) {
                // `rules::check` after `use crate::rules;` is `crate::rules::check`.
                let first = modules.get(name.path[0].as_str()).filter(|_| name.path.len() > 1);
                let path = first.map(|first| [first, &name.path[1..]].concat());
                let path = path.as_ref().unwrap_or(&name.path);
                if let Some(home) = self.home(module, path, 0).filter(|home| *home != file.file) {
                    imports.entry((file.file.clone(), home.to_owned())).or_insert(path.join("::"));
                }
            }
        }
        imports
    }

    /// The modules that a file names by `use`, by their last part.
    fn modules_in_use<'f>(&self, module: &[String], file: &'f ModuleFile) -> BTreeMap<&'f str, &'f [String]> {
        let in_use = file.names.iter().filter(|name| name.is_use && name.path.len() > 1).filter_map(|name| {
            let (last, before) = name.path.split_last()?;
            let path = if last == "self" { before } else { &name.path[..] };
            let is_module = self.modules.contains_key(&self.module_of(module, path)?);
            is_module.then_some((path.last()?.as_str(), path))
        });
        in_use.collect()
    }

    /// The file that defines what a path names; `None` for another crate.
    fn home(&self, module: &[String], path: &[String], depth: usize) -> Option<&str> {
        let whole = self.module_of(module, path)?;
        let mut at = whole.clone();
        while !self.modules.contains_key(&at) {
            at.pop()?;
        }
        let file = self.modules.get(&at)?;
        // `pub use say;` exports a macro of the file itself.
        let exports = file.names.iter().filter(|name| name.is_export && name.path.len() > 1);
        let exported = whole
            .get(at.len())
            .and_then(|item| exports.into_iter().find(|name| name.path.last() == Some(item)));
        match exported {
            // An export of an export of … ends.
            Some(name) if depth < 8 => self.home(&at, &name.path, depth + 1),
            _ => Some(&file.file),
        }
    }

    /// A path from the root of the crate; `None` for another crate.
    fn module_of(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let (mut at, rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => (module[..module.len().checked_sub(supers)?].to_vec(), &path[supers..]),
            child => {
                let is_child = self.modules.contains_key(&[module, &[child.to_owned()]].concat());
                (is_child.then(|| module.to_vec())?, path)
            }
        };
        at.extend(rest.iter().filter(|part| *part != "self").cloned());
        Some(at)
    }
}

/// The name of the folder for its mod.rs.
fn module_name(file: &str) -> &str {
    let path = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or(file);
    path.rsplit('/').next().unwrap_or(path)
}

/// The files that a file imports, directly or over others.
fn reachable<'n>(file: &'n str, next: &BTreeMap<&'n str, Vec<&'n str>>) -> BTreeSet<&'n str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        open.extend(next.get(file).into_iter().flatten().filter(|to| seen.insert(**to)));
    }
    seen
}

/// The paragraph says that these files are one unit.
fn declares(paragraph: &str, files: &[String]) -> bool {
    let before = paragraph.split_once(DECLARATION).map(|(before, _)| before);
    before.is_some_and(|before| files.iter().all(|file| before.contains(&format!("`{}`", module_name(file)))))
}
