//! Module layers: a module names only modules on earlier lines of the table; a pure module names only pure modules and
//! does no IO; each heavy library has one module that uses it; no two files import each other, except for declared units.

mod file_cycles;
mod path_scanner;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use file_cycles::CrateFiles;
use path_scanner::{NamedPath, named_paths};

/// The table of the architecture, line by line: layer, purity, module. Modules of one layer do not name each other,
/// except for [`ALLOWED_NEIGHBOURS`].
const MODULE_LAYERS: [(u8, ModulePurity, &str); 33] = [
    (0, ModulePurity::Pure, "model"),
    (1, ModulePurity::Pure, "cel"),
    (1, ModulePurity::Io, "child"),
    (1, ModulePurity::Io, "source"),
    (1, ModulePurity::Io, "forge"),
    (1, ModulePurity::Io, "cluster"),
    (1, ModulePurity::Io, "telemetry"),
    (1, ModulePurity::Pure, "window"),
    (2, ModulePurity::Io, "leader"),
    (2, ModulePurity::Pure, "manifest"),
    (2, ModulePurity::Pure, "health"),
    (2, ModulePurity::Pure, "policy"),
    (3, ModulePurity::Io, "chart"),
    (3, ModulePurity::Pure, "fleet"),
    (3, ModulePurity::Pure, "sops"),
    (4, ModulePurity::Pure, "schedule"),
    (5, ModulePurity::Pure, "render"),
    (6, ModulePurity::Pure, "rollout"),
    (6, ModulePurity::Io, "worker"),
    (7, ModulePurity::Pure, "plan"),
    (7, ModulePurity::Pure, "access"),
    (7, ModulePurity::Pure, "compare"),
    (8, ModulePurity::Pure, "promotion"),
    (9, ModulePurity::Io, "apply"),
    (9, ModulePurity::Pure, "trigger"),
    (10, ModulePurity::Io, "report"),
    (11, ModulePurity::Io, "metrics"),
    (11, ModulePurity::Io, "reconcile"),
    (12, ModulePurity::Io, "controller"),
    (13, ModulePurity::Io, "analysis"),
    (13, ModulePurity::Io, "api"),
    (13, ModulePurity::Io, "notification"),
    (14, ModulePurity::Io, "pulls"),
    // Layer 15, `cli`, wires everything; its only rule is to be last.
];

const WIRING_MODULE: &str = "cli";

/// Pairs of modules in one layer: the first may name the second.
const ALLOWED_NEIGHBOURS: [(&str, &str); 0] = [];

/// Paths that a pure module does not name, including everything below them.
const IO_NAMES: [&str; 25] = [
    "axum",
    "git2",
    "hyper",
    "hyper_util",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "kube",
    "notify",
    "rand::random",
    "rand::rng",
    "reqwest",
    "std::env",
    "std::fs",
    // Writing to memory (`std::io::Write`) is no IO.
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::process",
    // Scoped threads (`scope`) do not change the result.
    "std::thread::current",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
    "tower",
];

/// Libraries that only these modules and the wiring use.
const LIBRARY_HOMES: [(&str, &[&str]); 14] = [
    ("git2", &["source"]),
    ("kube", &["cluster"]),
    ("axum", &["api"]),
    ("jsonschema", &["chart"]),
    ("kube_cel", &["cel", "health"]),
    ("lettre", &["notification"]),
    ("mlua", &["health"]),
    ("opentelemetry", &["telemetry"]),
    ("opentelemetry_otlp", &["telemetry"]),
    ("opentelemetry_sdk", &["telemetry"]),
    ("prometheus_client", &["metrics"]),
    ("reqwest", &["analysis", "chart", "forge", "notification", "source"]),
    ("tracing_opentelemetry", &["telemetry"]),
    // Errors keep their types until they are printed.
    ("anyhow", &[]),
];

/// The crates whose files are looked at for circles.
const CRATE_SOURCES: [&str; 4] = ["src", "crates/sandbox/src", "crates/live/src", "xtask/src"];

/// The API simulator: tests and the wiring use it, and it does not depend on this program.
const SANDBOX_CRATE: &str = "sandbox";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ModulePurity {
    Pure,
    Io,
}

struct LayerViolation {
    file: String,
    line: u32,
    words: String,
}

impl fmt::Display for LayerViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.words)
    }
}

#[test]
fn architecture_md_has_the_same_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let layer = cells.next().filter(|layer| layer.ends_with(" pure") || layer.ends_with(" IO"))?;
        Some(format!("{layer} {}", cells.next()?))
    };
    let listed: BTreeSet<String> = page.lines().filter_map(row).collect();
    let word = |purity: ModulePurity| if purity == ModulePurity::Pure { "pure" } else { "IO" };
    let known =
        MODULE_LAYERS.iter().map(|(layer, purity, name)| format!("{layer} {} `{name}`", word(*purity)));
    // The commands wire everything.
    assert_eq!(listed, known.chain(["15 IO `cli`".to_owned()]).collect());
    let folders = fs::read_dir(root.join("src"))
        .expect("src")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()));
    assert_eq!(folders.count(), MODULE_LAYERS.len() + 1);
}

#[test]
fn modules_respect_their_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut violations = Vec::new();
    for path in rust_files(&root.join("src")) {
        let text = fs::read_to_string(&path).expect("a readable file");
        violations.extend(check_file(&relative_path(root, &path), &text));
    }
    for path in rust_files(&root.join("crates/sandbox")) {
        let text = fs::read_to_string(&path).expect("a readable file");
        violations.extend(check_sandbox_file(&relative_path(root, &path), &text));
    }
    let list: Vec<String> = violations.iter().map(LayerViolation::to_string).collect();
    assert!(list.is_empty(), "{} violations of the layers:\n{}", list.len(), list.join("\n"));
}

/// A unit is declared in the module docs of a file or of its folder: "`a`, `b` and `c` are one unit: …".
#[test]
fn only_declared_units_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = String::new();
    for source in CRATE_SOURCES {
        let folder = root.join(source);
        let read = |path: PathBuf| {
            let file = relative_path(&folder, &path);
            (file, fs::read_to_string(path).expect("a readable file"))
        };
        let is_test =
            |file: &str| file == "tests.rs" || file.ends_with("/tests.rs") || file.contains("tests/");
        let files = rust_files(&folder).into_iter().map(read).filter(|(file, _)| !is_test(file));
        let files = files.map(|(file, text)| (module_path(&file), file, text));
        let files = CrateFiles::new(files.collect());
        let circles = files.circles();
        for circle in circles.iter().filter(|circle| !files.is_declared(circle)) {
            found += &format!("{source}:\n{circle}");
        }
        for paragraph in files.needless_declarations(&circles) {
            found += &format!("{source}: no such circle: {paragraph}\n");
        }
    }
    assert!(found.is_empty(), "files that import each other:\n{found}");
}

/// A file of the main crate, by its path from the root of the checkout.
fn check_file(file: &str, text: &str) -> Vec<LayerViolation> {
    let path = module_path(file);
    let Some(module) = path.first() else {
        // lib.rs and main.rs: declarations and wiring.
        return Vec::new();
    };
    let mut found = BTreeSet::new();
    if module_position(module).is_none() && module != WIRING_MODULE {
        found.insert((1, format!("module {module} is not in the table of layers")));
    }
    for name in named_paths(text, file) {
        if let Some(words) = name_violation(module, &path, &name) {
            found.insert((name.line, words));
        }
    }
    found.into_iter().map(|(line, words)| LayerViolation { file: file.to_owned(), line, words }).collect()
}

fn check_sandbox_file(file: &str, text: &str) -> Vec<LayerViolation> {
    let knows_us = |name: &NamedPath| name.path.first().is_some_and(|first| first == "tutti");
    named_paths(text, file)
        .into_iter()
        .filter(knows_us)
        .map(|name| LayerViolation {
            file: file.to_owned(),
            line: name.line,
            words: "the sandbox knows nothing of tutti".to_owned(),
        })
        .collect()
}

fn name_violation(module: &str, path: &[String], name: &NamedPath) -> Option<String> {
    if let Some(other) = named_module(path, name) {
        return module_violation(module, &other);
    }
    if module == WIRING_MODULE {
        return None;
    }
    if matches!(module_position(module), Some((_, _, ModulePurity::Pure)))
        && let Some(io) = IO_NAMES.iter().find(|io| name.starts_with(io))
    {
        return Some(format!("{module} is pure and names {io}"));
    }
    // Tests may fake a peer with any library.
    if name.in_test {
        return None;
    }
    let first = name.path.first()?;
    if first == SANDBOX_CRATE {
        return Some(format!("{module} names {SANDBOX_CRATE}, which only {WIRING_MODULE} and tests know"));
    }
    let (library, homes) = LIBRARY_HOMES.iter().find(|(library, _)| first == library)?;
    let at_home = homes.contains(&module);
    (!at_home).then(|| {
        format!("{module} names {library}, whose home is {}", [*homes, &[WIRING_MODULE]].concat().join(", "))
    })
}

fn module_violation(module: &str, other: &str) -> Option<String> {
    // A macro or item of the crate's root is no module.
    if module == other || module == WIRING_MODULE {
        return None;
    }
    if other == WIRING_MODULE {
        return Some(format!("{module} names {other}, which comes later"));
    }
    let (line, layer, purity) = module_position(module)?;
    let (other_line, other_layer, other_purity) = module_position(other)?;
    if purity == ModulePurity::Pure && other_purity == ModulePurity::Io {
        return Some(format!("{module} is pure and names {other}, which is not"));
    }
    if other_layer == layer && !ALLOWED_NEIGHBOURS.contains(&(module, other)) {
        return Some(format!("{module} names {other} of its own layer"));
    }
    (other_line > line).then(|| format!("{module} names {other}, which comes later"))
}

fn module_position(module: &str) -> Option<(usize, u8, ModulePurity)> {
    let line = MODULE_LAYERS.iter().position(|(_, _, name)| *name == module)?;
    let (layer, purity, _) = MODULE_LAYERS[line];
    Some((line, layer, purity))
}

/// The top-level module of a path that starts with `crate`, `tutti`, or enough `super`.
fn named_module(path: &[String], name: &NamedPath) -> Option<String> {
    let supers = name.path.iter().take_while(|part| *part == "super").count();
    let depth = path.len() + usize::from(name.in_inline_module);
    let rest = match name.path.first().map(String::as_str) {
        Some("crate" | "tutti") => &name.path[1..],
        Some("super") if supers == depth => &name.path[supers..],
        _ => return None,
    };
    rest.first().cloned()
}

/// `src/plan/tests/prune.rs` is `plan::tests::prune`; `src/lib.rs` is the root.
fn module_path(file: &str) -> Vec<String> {
    let inside = file.trim_start_matches("src/").trim_end_matches(".rs");
    let mut path: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

fn relative_path(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).expect("a path inside the checkout");
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Tests of the check: invented files with the expected violations.
mod checked {
    use super::file_cycles::CrateFiles;
    use super::{MODULE_LAYERS, check_file, check_sandbox_file, module_path};

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files =
            files.iter().map(|(file, text)| (module_path(file), (*file).to_owned(), (*text).to_owned()));
        let files = CrateFiles::new(files.collect());
        let circles = files.circles();
        circles.iter().filter(|circle| !files.is_declared(circle)).map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_import_each_other_are_reported() {
        let parent = ("plan/mod.rs", "mod step;\npub struct Action;\npub fn plan() { step::run() }");
        let child = ("plan/step.rs", "use super::Action;\npub fn run() {}");
        let found = "  plan/mod.rs imports plan/step.rs: step::run\n  plan/step.rs imports plan/mod.rs: super::Action\n";
        assert_eq!(circles(&[parent, child]), [found]);
        let three = |a: &str, b: &str, c: &str| circles(&[("a.rs", a), ("b.rs", b), ("c.rs", c)]).len();
        assert_eq!(three("use crate::b::B;", "use crate::c::C;", "use crate::a::A;"), 1);
        assert_eq!(three("use crate::b::B;", "use crate::c::C;", ""), 0);
        let only_in_test = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        assert_eq!(three("use crate::b::B;", only_in_test, ""), 0);
    }

    #[test]
    fn exported_name_belongs_to_its_file() {
        let parent =
            ("plan/mod.rs", "mod action;\nmod step;\npub(crate) use action::Action;\npub use step::run;");
        let child = ("plan/step.rs", "use super::Action;\npub fn run() {}");
        assert!(circles(&[parent, child, ("plan/action.rs", "pub struct Action;")]).is_empty());
        let other = ("plan/action.rs", "pub struct Action;\nfn f() { crate::plan::run() }");
        assert_eq!(circles(&[parent, child, other]).len(), 1);
        // The parent uses what it exports, and the child imports the parent.
        let parent = ("plan/mod.rs", "mod step;\npub use step::run;\npub struct Action;\nfn f() { run() }");
        assert_eq!(circles(&[parent, child]).len(), 1);
    }

    #[test]
    fn declared_unit_may_import_each_other() {
        let value = ("check/value.rs", "use super::junctors::any;");
        let junctors = ("check/junctors.rs", "use super::value::check;");
        let story = |docs| circles(&[value, junctors, ("check/mod.rs", docs)]).len();
        assert_eq!(
            story("//! Checks.\n//!\n//! `value` and\n//! `junctors` are one unit: they recurse.\n"),
            0
        );
        assert_eq!(story("//! `value` and `numbers` are one unit: they recurse.\n"), 1);
        assert_eq!(story("//! `value` and `junctors` are one unit.\n"), 1);
    }

    #[track_caller]
    fn check(file: &str, text: &str, expected: &[&str]) {
        let found: Vec<String> = check_file(file, text).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn downward_uses_are_allowed() {
        check("src/plan/compute.rs", "use crate::{health, model::{AppId, Kind}};\nuse super::Action;\n", &[]);
        check("src/cli/run.rs", "use crate::{api, plan};\nuse kube::Client;\nuse sandbox::Fleet;\n", &[]);
        check("src/main.rs", "fn main() { tutti::cli::main() }", &[]);
    }

    #[test]
    fn upward_and_sideways_uses_are_reported() {
        check(
            "src/plan/compute.rs",
            "//! A story.\n\nuse crate::model::Kind;\nuse crate::promotion::Gate;\n",
            &["src/plan/compute.rs:4: plan names promotion, which comes later"],
        );
        check(
            "src/plan/compute.rs",
            "use crate::{\n    model,\n    apply::{self, Receipt},\n};\n",
            &["src/plan/compute.rs:3: plan is pure and names apply, which is not"],
        );
        check(
            "src/source/git.rs",
            "fn f() { crate::forge::post() }",
            &["src/source/git.rs:1: source names forge of its own layer"],
        );
        check(
            "src/apply/mod.rs",
            "use super::cli::Exit;",
            &["src/apply/mod.rs:1: apply names cli, which comes later"],
        );
        check(
            "src/apply/run.rs",
            "use super::super::report;",
            &["src/apply/run.rs:1: apply names report, which comes later"],
        );
        check("src/apply/run.rs", "use super::report;", &[]);
        check(
            "src/apply.rs",
            "#[cfg(test)]\nmod tests {\n    use super::super::report;\n    use super::run;\n}\n",
            &["src/apply.rs:3: apply names report, which comes later"],
        );
        check(
            "src/apply/run.rs",
            "fn f(x: tutti::controller::Event) {}",
            &["src/apply/run.rs:1: apply names controller, which comes later"],
        );
    }

    #[test]
    fn pure_modules_do_no_io() {
        check(
            "src/render/mod.rs",
            "use std::{collections::BTreeMap, fs};\nuse std::time::Duration;\n",
            &["src/render/mod.rs:1: render is pure and names std::fs"],
        );
        check(
            "src/render/mod.rs",
            "fn f() { let now = std::time::Instant::now(); }",
            &["src/render/mod.rs:1: render is pure and names std::time::Instant"],
        );
        check(
            "src/plan/mod.rs",
            "async fn f() { tokio::spawn(g()); }",
            &["src/plan/mod.rs:1: plan is pure and names tokio"],
        );
        check("src/fleet/mod.rs", "use kube;", &["src/fleet/mod.rs:1: fleet is pure and names kube"]);
        check("src/apply/mod.rs", "use tokio::time::sleep;\nuse std::fs;\n", &[]);
    }

    #[test]
    fn libraries_have_one_home() {
        check(
            "src/apply/mod.rs",
            "use kube::Client;",
            &["src/apply/mod.rs:1: apply names kube, whose home is cluster, cli"],
        );
        check("src/cluster/mod.rs", "use kube::Client;", &[]);
        check(
            "src/forge/mod.rs",
            "use git2::Repository;",
            &["src/forge/mod.rs:1: forge names git2, whose home is source, cli"],
        );
        check(
            "src/forge/mod.rs",
            "fn f() -> anyhow::Result<()> { Ok(()) }",
            &["src/forge/mod.rs:1: forge names anyhow, whose home is cli"],
        );
        check(
            "src/cluster/mod.rs",
            "use sandbox::Cluster;",
            &["src/cluster/mod.rs:1: cluster names sandbox, which only cli and tests know"],
        );
        check("src/cluster/mod.rs", "#[cfg(test)]\nmod tests {\n    use sandbox::Cluster;\n}\n", &[]);
        check("src/cluster/tests.rs", "use sandbox::Cluster;", &[]);
        check("src/source/tests/errors.rs", "use axum::Router;", &[]);
        check(
            "src/plan/tests.rs",
            "use axum::Router;",
            &["src/plan/tests.rs:1: plan is pure and names axum"],
        );
        let found = check_sandbox_file("crates/sandbox/src/lib.rs", "use tutti::model;");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn unknown_modules_are_errors() {
        check(
            "src/helpers/mod.rs",
            "",
            &["src/helpers/mod.rs:1: module helpers is not in the table of layers"],
        );
        check("src/utils.rs", "", &["src/utils.rs:1: module utils is not in the table of layers"]);
    }

    #[test]
    fn comments_and_texts_name_nothing() {
        let text = "// crate::cli::x\n/* kube::a /* nested */ git2::b */\n/// [`crate::report::Words`]\n\
                    const A: &str = \"crate::cli::run \\\" tokio::spawn\";\nconst B: &str = r#\"std::fs::read(\"x\")\"#;\n\
                    const C: char = '\"';\nfn f<'a>(x: &'a str) {}\n";
        check("src/plan/mod.rs", text, &[]);
        check(
            "src/plan/mod.rs",
            &format!("{text}use crate::cli;\n"),
            &["src/plan/mod.rs:8: plan names cli, which comes later"],
        );
    }

    #[test]
    fn module_table_is_sorted() {
        assert!(MODULE_LAYERS.is_sorted_by_key(|(layer, _, _)| *layer));
    }
}
