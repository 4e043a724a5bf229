//! A checkout whose kubeconfig names a program: no command may run it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::fixture::HostileFixture;
use crate::support::manifests::{INSTANCE, config_map, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

/// A checkout, and the file that its program would create.
struct HostileCheckout {
    _folder: TempDir,
    repository: TestRepository,
    executed_marker: PathBuf,
    home: PathBuf,
}

impl HostileCheckout {
    /// `path` is the value in the Cluster file; `PLACE` is the checkout.
    fn new(path: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (trace, home) = (folder.path().join("ran"), folder.path().join("home"));
        fs::create_dir(&home).expect("a folder");
        let repository = TestRepository::in_subfolder(folder.path());
        let place = repository.path().display().to_string();
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
             clusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:1'}}}}]\nusers:\n- name: x\n  user:\n    exec:\n      \
             apiVersion: client.authentication.k8s.io/v1\n      command: touch\n      args: ['{}']\n      \
             interactiveMode: Never\n",
            trace.display()
        );
        let cluster = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: x}}\n\
             spec: {{connection: {{kubeconfig: {{path: '{}'}}}}}}\n",
            path.replace("PLACE", &place)
        );
        let (app, map) = (objects_app("default", "hello"), config_map("default", "hello", "1"));
        let files = [
            ("tutti.yaml", INSTANCE),
            ("clusters/x.yaml", &*cluster),
            ("clusters/x.kubeconfig", &*kubeconfig),
            ("apps/hello/app.yaml", &*app),
            ("apps/hello/objects/hello.yaml", &*map),
        ];
        repository.commit("Begin", &files.map(|(path, text)| (path, Some(text))));
        for (path, text) in files {
            repository.write(path, text);
        }
        Self { _folder: folder, repository, executed_marker: trace, home }
    }

    /// The output of a command in the checkout.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = program::tutti(self.repository.path());
        command.env("HOME", &self.home).env_remove("XDG_CONFIG_HOME").args(arguments);
        let (output, errors, _) = program::output_text(&command.output().expect("the binary runs"));
        assert!(!self.executed_marker.exists(), "{arguments:?} ran the program of the checkout");
        output + &errors
    }
}

const READ_COMMANDS: [&[&str]; 6] = [
    &["plan", "--worktree"],
    &["diff", "--worktree"],
    &["plan"],
    &["doctor", "x"],
    &["get", "clusters"],
    &["run", "--once", "--repo", "."],
];

fn check(path: &str, expected: &str) {
    let checkout = HostileCheckout::new(path);
    for command in READ_COMMANDS {
        let said = checkout.run(command).replace(['\n', '│'], " ");
        let words: Vec<&str> = said.split_whitespace().collect();
        // Naming a cluster with a broken file reports that it does not exist.
        let is_told = words.join(" ").contains(expected) || said.contains("no cluster x");
        assert!(is_told, "{command:?}: {said}");
    }
}

#[test]
fn checkout_is_not_where_kubeconfigs_are_read() {
    check("clusters/x.kubeconfig", "home/.config/tutti/clusters/clusters/x.kubeconfig");
}

#[test]
fn absolute_path_of_cluster_file_is_refused() {
    check("PLACE/clusters/x.kubeconfig", "leaves the folder of kubeconfigs");
}

#[test]
fn path_out_of_the_folder_is_refused() {
    check("../../../../../../../../../PLACE/clusters/x.kubeconfig", "leaves the folder of kubeconfigs");
}

#[test]
fn folder_inside_the_checkout_is_refused() {
    let checkout = HostileCheckout::new("clusters/x.kubeconfig");
    let outside = checkout.home.join("link");
    symlink(checkout.repository.path(), &outside).expect("a link");
    let folders = [Path::new("."), checkout.repository.path(), &outside];
    for folder in folders.map(|it| it.display().to_string()) {
        for command in READ_COMMANDS {
            let said = checkout.run(&[command, &["--kubeconfigs", &folder]].concat());
            assert!(said.contains("is inside of the config repository"), "{command:?} {folder}: {said}");
        }
    }
}

#[test]
fn a_link_into_the_checkout_is_refused() {
    let checkout = HostileCheckout::new("x.kubeconfig");
    let folder = checkout.home.join(".config/tutti/clusters");
    fs::create_dir_all(&folder).expect("a folder");
    symlink(checkout.repository.path().join("clusters/x.kubeconfig"), folder.join("x.kubeconfig"))
        .expect("a link");
    let said = checkout.run(&["plan"]);
    assert!(said.contains("is inside of the config repository"), "{said}");
}

/// The same file in the operator's folder is trusted.
#[test]
fn program_of_the_operator_runs() {
    let checkout = HostileCheckout::new("x.kubeconfig");
    let folder = checkout.home.join(".config/tutti/clusters");
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(checkout.repository.path().join("clusters/x.kubeconfig"), folder.join("x.kubeconfig"))
        .expect("a copy");
    let mut command = program::tutti(checkout.repository.path());
    command.env("HOME", &checkout.home).env_remove("XDG_CONFIG_HOME").args(["plan", "--timeout", "20"]);
    command.output().expect("the binary runs");
    assert!(checkout.executed_marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_file_alone_starts_no_embedded_cluster() {
    let mut arena = HostileFixture::start(&[]).await;
    let toy = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: toy}\nspec: {connection: {sandbox: {}}}\n";
    arena.repository.commit("Toy", &[("clusters/toy.yaml", Some(toy))]);
    arena.until_logged("`tutti run` starts only with --cluster toy=sandbox").await;
    arena.check_healthy_app().await;
}
