//! The time of an install by the number of installed apps: the program with one embedded cluster inside.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::goals::{at_most, figure};
use crate::support::manifests::{INSTANCE, cluster, component, config_map, objects_app};
use crate::support::repository::{FileTextChange, TestRepository};

const FEW_APPS: usize = 10_000;
const MANY_APPS: usize = 100_000;
/// All in one namespace, with a workload and its pods each; each step is twice the one before.
const COMPONENTS: [usize; 3] = [400, 800, 1_600];

pub fn growth() {
    let [few, many] = [FEW_APPS, MANY_APPS].map(|count| {
        let seconds = install(count, |number| {
            let name = format!("app-{number:06}");
            vec![
                (format!("apps/{name}/app.yaml"), objects_app("default", &name)),
                (format!("apps/{name}/objects/all.yaml"), config_map("default", &name, "1")),
            ]
        });
        figure(&format!("install_{count}_apps_s"), seconds, "s");
        seconds
    });
    at_most("install_of_ten_times_the_apps", many / few, "times", 12.0);
    let seconds = COMPONENTS.map(|count| {
        let seconds = install(count, |number| {
            let name = format!("app-{number:04}");
            let image = format!("registry.example.com/{name}:1");
            vec![(format!("apps/{name}/app.yaml"), component(&name, &image))]
        });
        figure(&format!("settle_{count}_components_s"), seconds, "s");
        seconds
    });
    at_most("settle_1600_components", seconds[2], "s", 30.0);
    for (count, pair) in COMPONENTS[1..].iter().zip(seconds.windows(2)) {
        at_most(&format!("settle_{count}_components_to_half"), pair[1] / pair[0], "times", 2.5);
    }
}

/// Seconds until all is healthy, from the start of the process.
fn install(count: usize, app: impl Fn(usize) -> Vec<(String, String)>) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = vec![
        ("tutti.yaml".to_owned(), INSTANCE.to_owned()),
        ("clusters/one.yaml".to_owned(), cluster("one")),
    ];
    files.extend((0..count).flat_map(app));
    let repository = TestRepository::at(&folder.path().join("config"));
    let changes: Vec<FileTextChange<'_>> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    repository.commit("Begin", &changes);
    let mut program = Command::new(env!("CARGO_BIN_EXE_tutti"));
    program.args(["run", "--once", "--timeout", "900", "--cluster", "one=sandbox", "--repo"]);
    program.arg(repository.path()).arg("--state").arg(folder.path().join("state"));
    program.env_remove("KUBECONFIG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = program.status().expect("the program starts");
    assert!(status.success(), "it ended with {status}");
    start.elapsed().as_secs_f64()
}
