//! Charts and templates see the version and kinds of real clusters, also kinds that are installed later.

use super::support::LiveFixture;
use crate::support::manifests::definition;

const APP_SET: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: charted, namespace: capabilities}
spec:
  podSpec: {deployType: helm, chart: {chartUrl: {url: charts/charted, chartVersion: 1.0.0}}}
  clusterTopology: {clusters: [{name: CLUSTER, podSets: [{name: charted}]}]}
";
const CHART: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-chart}
data: {version: {{ .Capabilities.KubeVersion.Version }}}
{{- if .Capabilities.APIVersions.Has \"capabilities.example.com/v1/Monitor\" }}
---
apiVersion: capabilities.example.com/v1
kind: Monitor
metadata: {name: of-chart, namespace: {{ .Release.Namespace }}}
{{- end }}
";
const OBJECTS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Objects
metadata: {name: templated, namespace: capabilities}
spec: {files: [objects/*]}
";
const TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-template}
data: {version: {{ cluster.version.gitVersion }}}
---
{% if cluster.capabilities is has('capabilities.example.com/v1/Monitor') %}
apiVersion: capabilities.example.com/v1
kind: Monitor
metadata: {name: of-template, namespace: capabilities}
{% endif %}
";

#[tokio::test]
async fn charts_and_templates_see_cluster_capabilities() {
    let Some(scene) = LiveFixture::new("capabilities", 1).await else { return };
    let cluster = scene.cluster(0);
    let charts = matches!(live::HelmPrograms::from_env(), Ok(Ok(_)));
    let names: &[&str] = if charts { &["of-chart", "of-template"] } else { &["of-template"] };
    if charts {
        let files = [
            ("apps/charted/app.yaml", APP_SET.replace("CLUSTER", cluster.name())),
            ("charts/charted/Chart.yaml", "apiVersion: v2\nname: charted\nversion: 1.0.0\n".to_owned()),
            ("charts/charted/templates/all.yaml", CHART.to_owned()),
        ];
        files.iter().for_each(|(path, text)| scene.worktree.write(path, text));
    }
    scene.worktree.write("apps/templated/app.yaml", OBJECTS);
    scene.worktree.write("apps/templated/objects/all.yaml.j2", TEMPLATE);
    let commit = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    for name in names {
        let map = scene.object(cluster, "configmaps", name).await.expect("a map");
        assert_eq!(map["data"]["version"], cluster.version(), "{name}");
    }

    let definition = definition("capabilities.example.com", "v1", "Monitor");
    cluster.kubectl_with_input(&["apply", "-f", "-"], &definition).await.expect("a definition");
    let list = ["get", "monitors.capabilities.example.com", "-n", "capabilities", "-o", "name"];
    scene
        .eventually("what the definition is for is there", async || {
            let found = cluster.kubectl(&list).await.map_err(|error| error.to_string())?;
            let all = names.iter().all(|name| found.contains(&format!("/{name}\n")));
            if all { Ok(()) } else { Err(found) }
        })
        .await;
    let gone = ["delete", "crd", "monitors.capabilities.example.com", "--wait=false"];
    cluster.kubectl(&gone).await.expect("deleted");
}
