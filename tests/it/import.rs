//! `tutti import`: live workloads become manifests and are adopted, and no pod restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tutti::cli::import::{ImportRequest, ImportResult, ManifestForm, import};
use tutti::cluster::ClusterLink;
use tutti::model::{ClusterName, NoCharts, Snapshot};

use crate::support::fleet::TestFleet;
use crate::support::live_objects;
use crate::support::manifests::INSTANCE;

const FOREIGN_MANAGER: &str = "kubectl-client-side-apply";

/// Manifests as people write them: own labels, sidecars, texts that look like templates.
const WEB_DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {team: shop}, annotations: {note: 'on'}}
spec:
  replicas: 2
  selector: {matchLabels: {run: web, tier: front}}
  template:
    metadata: {labels: {run: web, tier: front, build: '1e3'}}
    spec:
      volumes: [{name: settings, configMap: {name: settings}}]
      containers:
        - name: main
          image: registry.example.com/web:1
          env: [{name: ON, value: 'yes'}, {name: FORMAT, value: '{{ name }} {% raw %} {# no #}'}]
          envFrom: [{secretRef: {name: db}}]
          ports: [{containerPort: 8080}]
          volumeMounts: [{name: settings, mountPath: /etc/web}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 3}
        - {name: proxy, image: 'registry.example.com/proxy:7', imagePullPolicy: Always}
";
const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web-public, namespace: default}
spec: {type: LoadBalancer, selector: {run: web}, ports: [{port: 80, targetPort: 8080}]}
";
const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {web.conf: \"listen {{ port }};\\n{% if x %}\\n\", n: '0644'}
";
const DATABASE: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {run: db}}
  template:
    metadata: {labels: {run: db}}
    spec: {containers: [{name: db, image: 'registry.example.com/db:9'}]}
";

async fn import_all(fleet: &TestFleet, form: ManifestForm) -> ImportResult {
    let base = [("tutti.yaml", INSTANCE)];
    let clusters: Vec<(String, String)> = fleet
        .clusters
        .keys()
        .map(|name| (format!("clusters/{name}.yaml"), crate::support::manifests::cluster(name)))
        .collect();
    let texts = clusters.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<(&str, &str)> = base.into_iter().chain(texts).collect();
    import_into(fleet, form, &files).await.expect("an import")
}

/// Result of an import into a repository with these files.
async fn import_into(
    fleet: &TestFleet,
    form: ManifestForm,
    files: &[(&str, &str)],
) -> Result<ImportResult, String> {
    let link = |name: &String| {
        (ClusterName::from(name.as_str()), ClusterLink::in_process(fleet.cluster(name).service()))
    };
    let request = ImportRequest {
        clusters: fleet.clusters.keys().map(link).collect(),
        namespace: "default".to_owned(),
        names: Vec::new(),
        form,
        kubeconfigs: ".".into(),
    };
    let base = Snapshot::of_texts(files.iter().copied());
    import(&request, &base, &NoCharts).await.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn missing_cluster_file_is_written_once() {
    let fleet = fleet_with_workloads(&["bj1"]).await;
    let imported =
        import_into(&fleet, ManifestForm::AppSet, &[("tutti.yaml", INSTANCE)]).await.expect("an import");
    assert_eq!(imported.apps.iter().flat_map(|app| &app.refused).collect::<Vec<_>>(), [""; 0]);
    let files: Vec<(&str, &str)> =
        imported.new_clusters.iter().map(|(name, file)| (name.as_str(), file.as_str())).collect();
    assert_eq!(files, [("bj1", "clusters/bj1.yaml")]);
    assert!(imported.files.contains_key("clusters/bj1.yaml"));
    let written = imported.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let all: Vec<(&str, &str)> = [("tutti.yaml", INSTANCE)].into_iter().chain(written).collect();
    // The second import finds the file.
    let again = import_into(&fleet, ManifestForm::AppSet, &all).await.expect("an import");
    assert!(again.new_clusters.is_empty(), "{:?}", again.new_clusters);
}

#[tokio::test(start_paused = true)]
async fn broken_cluster_file_is_reported_once() {
    let fleet = fleet_with_workloads(&["bj1"]).await;
    let broken = crate::support::manifests::cluster("bj1").replace("connection", "conection");
    for (file, text) in
        [("clusters/bj1.yaml", &*broken), ("clusters/other.yaml", &broken), ("clusters/bj1.yaml", "[")]
    {
        let error = import_into(&fleet, ManifestForm::AppSet, &[("tutti.yaml", INSTANCE), (file, text)])
            .await
            .expect_err("an error");
        assert!(error.starts_with("fix this error before the import: "), "{error}");
        assert!(error.contains(file), "{error}");
    }
}

async fn fleet_with_workloads(clusters: &[&str]) -> TestFleet {
    let fleet = TestFleet::new(clusters, &[]);
    for sandbox in fleet.clusters.values() {
        for manifest in [
            WEB_DEPLOYMENT,
            SERVICE,
            SETTINGS,
            DATABASE,
            &SERVICE
                .replace("web-public", "db")
                .replace("run: web", "run: db")
                .replace("type: LoadBalancer", "clusterIP: None"),
        ] {
            live_objects::create_as(sandbox, FOREIGN_MANAGER, manifest).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet
}

/// State that adoption must not change.
async fn live_state(fleet: &TestFleet) -> BTreeMap<String, Vec<Value>> {
    let mut found = BTreeMap::new();
    for (name, sandbox) in &fleet.clusters {
        for kind in ["Pod", "ReplicaSet"] {
            let list = live_objects::api(sandbox, kind, Some("default"))
                .list(&Default::default())
                .await
                .expect("a list");
            let ids = list.items.iter().map(|it| Value::from(it.metadata.uid.clone())).collect();
            found.insert(format!("{name} {kind}"), ids);
        }
        for (kind, object) in
            [("Deployment", "web"), ("StatefulSet", "db"), ("Service", "web-public"), ("Service", "db")]
        {
            let live = live_objects::get(sandbox, kind, "default", object).await.expect("an object");
            found.insert(
                format!("{name} {kind} {object}"),
                vec![live["spec"].clone(), live["metadata"]["uid"].clone()],
            );
        }
    }
    found
}

async fn check_adoption(fleet: &TestFleet, imported: &ImportResult) {
    let changes: Vec<(&str, Option<&str>)> =
        imported.files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let before = live_state(fleet).await;
    let revision = fleet.repository.commit("Import", &changes);
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    assert_eq!(live_state(fleet).await, before);
    for sandbox in fleet.clusters.values() {
        let managed: Vec<String> = live_objects::managed_objects(sandbox).await.into_keys().collect();
        let names = [
            "ConfigMap default/settings",
            "Deployment default/web",
            "Service default/db",
            "Service default/web-public",
        ];
        assert_eq!(managed, names);
    }
}

#[tokio::test(start_paused = true)]
async fn every_form_is_adopted_without_pod_restarts() {
    for form in [ManifestForm::AppSet, ManifestForm::Component, ManifestForm::Objects] {
        let fleet = fleet_with_workloads(&["bj1"]).await;
        let imported = import_all(&fleet, form).await;
        let refused: Vec<&String> = imported.apps.iter().flat_map(|app| &app.refused).collect();
        assert!(refused.is_empty(), "{form:?}: {refused:#?}\n{:#?}", imported.files);
        let apps: Vec<String> = imported.apps.iter().map(|app| app.app.to_string()).collect();
        assert_eq!(apps, ["default/db", "default/web"]);
        let needs: Vec<&str> = imported.apps[1].needs.iter().map(String::as_str).collect();
        assert_eq!(needs, ["Secret db"]);
        assert_eq!(
            imported.apps[1].same,
            [
                "bj1 ConfigMap default/settings: the same",
                "bj1 Service default/web-public: the same",
                "bj1 Deployment default/web: the same, its pods stay",
            ]
        );
        check_adoption(&fleet, &imported).await;
    }
}

#[tokio::test(start_paused = true)]
async fn clusters_may_differ_in_image_and_replicas_alone() {
    let fleet = fleet_with_workloads(&["bj1", "gz1"]).await;
    let other = WEB_DEPLOYMENT.replace("replicas: 2", "replicas: 3").replace("web:1", "web:2");
    live_objects::apply_as(fleet.cluster("gz1"), FOREIGN_MANAGER, &other).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let imported = import_all(&fleet, ManifestForm::AppSet).await;
    assert_eq!(imported.apps.iter().flat_map(|app| &app.refused).collect::<Vec<_>>(), [""; 0]);
    let manifest = &imported.files["apps/web/app.yaml"];
    let expected = "\
# Imported from Deployment default/web on bj1, gz1.
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: web, namespace: default}
spec:
  # Takes over existing objects; remove this line when that is done.
  adopt: true
  # layer/ defines the Deployment; images and replicas are set here.
  podSpec: {deployType: deployment}
  clusterTopology:
    clusters:
      - name: bj1
        podSets: [{name: web, replicas: 2, image: \"registry.example.com/web:1\"}]
      - name: gz1
        podSets: [{name: web, replicas: 3, image: \"registry.example.com/web:2\"}]
";
    assert_eq!(manifest, expected);
    check_adoption(&fleet, &imported).await;

    let imported = import_all(&fleet_of_other_objects().await, ManifestForm::Component).await;
    let refused: Vec<&String> = imported.apps.iter().flat_map(|app| &app.refused).collect();
    assert_eq!(
        refused,
        [
            "Deployment web: spec.replicas is not the same on bj1 and on gz1",
            "Deployment web: spec.template.spec.containers[0].env[0].value is not the same on bj1 and on gz1",
        ]
    );
    assert!(!imported.files.contains_key("apps/web/app.yaml"));
    assert!(imported.files.contains_key("apps/db/app.yaml"), "the other app goes on");
}

async fn fleet_of_other_objects() -> TestFleet {
    let fleet = fleet_with_workloads(&["bj1", "gz1"]).await;
    let other = WEB_DEPLOYMENT.replace("replicas: 2", "replicas: 3").replace("value: 'yes'", "value: 'no'");
    live_objects::apply_as(fleet.cluster("gz1"), FOREIGN_MANAGER, &other).await;
    fleet
}
