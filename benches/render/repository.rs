//! Repositories of any size, as snapshots.

use std::fmt::Write as _;

use tutti::model::Snapshot;

const LANGUAGES: [&str; 6] = ["java", "go", "python", "node", "php", "generic"];
const RUN_TYPES: [&str; 3] = ["server", "worker", "task"];

/// Components on every cluster, from the layers that the program ships.
pub fn of_components(apps: usize, clusters: usize) -> Snapshot {
    let mut files = vec![(
        "tutti.yaml".to_owned(),
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {}\n".to_owned(),
    )];
    files.extend((0..clusters).map(cluster));
    files.extend((0..apps).map(|number| (path_of(number), component(number, "1.0.0"))));
    snapshot(&files)
}

/// Beside them: a layer of each zone, and one of the first cluster by name.
pub fn with_cluster_layers(mut snapshot: Snapshot) -> Snapshot {
    for (folder, clusters, values) in [
        ("a", "{matchLabels: {zone: a}}", "env: {ZONE: a}\n"),
        ("b", "{matchLabels: {zone: b}}", "env: {ZONE: b}\n"),
        ("first", "{names: [cluster-0]}", "env: {FIRST: \"1\"}\n"),
    ] {
        let folder = format!("templates/cluster/{folder}");
        snapshot.put(&format!("{folder}/layer.yaml"), &format!("clusters: {clusters}\n"));
        snapshot.put(&format!("{folder}/values.yaml"), values);
    }
    snapshot
}

/// Beside them: a variable with the cluster's name in every pod, so that no two clusters have a render in common.
pub fn with_names_of_clusters(mut snapshot: Snapshot) -> Snapshot {
    let clusters: Vec<String> = snapshot
        .files
        .keys()
        .filter_map(|path| Some(path.strip_prefix("clusters/")?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    for name in clusters {
        let folder = format!("templates/cluster/{name}");
        snapshot.put(&format!("{folder}/layer.yaml"), &format!("clusters: {{names: [{name}]}}\n"));
        snapshot.put(&format!("{folder}/values.yaml"), &format!("env: {{CLUSTER: {name}}}\n"));
    }
    snapshot
}

pub fn path_of(number: usize) -> String {
    format!("apps/app-{number}/app.yaml")
}

pub fn component(number: usize, tag: &str) -> String {
    let language = LANGUAGES[number % LANGUAGES.len()];
    let run_type = RUN_TYPES[number / LANGUAGES.len() % RUN_TYPES.len()];
    let mut text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: app-{number}, namespace: ns-{}}}\nspec:\n  \
         workloadType: Deployment\n  developLanguage: {language}\n  runType: {run_type}\n  image: registry.example.com/app-{number}:{tag}\n",
        number % 100
    );
    if run_type == "server" {
        let _ = writeln!(text, "  port: 8080");
    }
    text
}

fn cluster(number: usize) -> (String, String) {
    let zone = ["a", "b"][number % 2];
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: cluster-{number}, labels: {{zone: {zone}}}}}\nspec: \
         {{connection: {{kubeconfig: {{path: cluster-{number}.kubeconfig}}}}}}\n"
    );
    (format!("clusters/cluster-{number}.yaml"), text)
}

fn snapshot(files: &[(String, String)]) -> Snapshot {
    Snapshot::of_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}
