mod approvals;
mod emptied;
mod policies;
mod rollout;
mod windows;

use serde_json::{Value, json};

use super::{ManifestCache, Manifests, approval_to_yaml, read, read_incremental};
use crate::model::{
    App, AppId, AppSpec, Approval, ApprovedAction, ApprovedObject, ClusterName, ClusterState,
    ConfigMapRegistry, Connection, DataKeyRef, DiagnosticScope, Digest, LabelOperator, ObjectId, PruneMode,
    Replicas, RolloutGroup, SecretRef, Snapshot, WaveOrder, WebhookReceiverKind,
};

fn read_texts(texts: &[(&str, &str)]) -> Manifests {
    read(&Snapshot::of_texts(texts.iter().copied()))
}

fn clean(text: &str) -> Manifests {
    let manifests = read_texts(&[("x.yaml", text)]);
    assert_eq!(manifests.diagnostics, [], "{text}");
    manifests
}

/// Every mistake as `code line:column path: message`.
fn check_mistakes(text: &str, expected: &[&str]) {
    let manifests = read_texts(&[("x.yaml", text)]);
    let found: Vec<String> = manifests
        .diagnostics
        .iter()
        .map(|mistake| {
            let start = mistake.location.as_ref().unwrap().start;
            let path = mistake.path.as_deref().unwrap_or("-");
            format!("{} {}:{} {path}: {}", mistake.code, start.line, start.column, mistake.message)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

const COMPONENT: &str = "
apiVersion: component.luojilab.com/v1alpha1
kind: Component
metadata: {name: nginx}
spec:
  workloadType: Deployment
  developLanguage: Python
  runType: server
  image: python-demo:latest
  port: 8080
";

/// A repository whose files come, change and go, one after the other.
#[test]
fn cached_read_equals_fresh_read() {
    let mut files: std::collections::BTreeMap<String, String> = [
        ("apps/a/app.yaml", COMPONENT.replace("name: nginx", "name: a")),
        ("apps/b/app.yaml", COMPONENT.replace("replicas", "replicsa").replace("name: nginx", "name: b, labels: 1")),
        ("clusters/one.yaml", "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {connection: {sandbox: {}}}\n".to_owned()),
        ("plain.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned()),
    ]
    .map(|(path, text)| (path.to_owned(), text))
    .into();
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {defaults: {namespace: shop}}\n";
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}}]}\n";
    let route =
        "apiVersion: tutti.dev/v1alpha1\nkind: Route\nmetadata: {name: r}\nspec: {host: a.example.com}\n";
    let project = "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {name: p}\nspec: {qutoa: {}}\n";
    let conversion = "not a conversion";
    let changes: [(&str, Option<&str>); 16] = [
        ("tutti.yaml", Some(instance)),
        ("apps/a/app.yaml", Some(COMPONENT)),
        ("again.yaml", Some(instance)),
        ("rings.yaml", Some(rings)),
        ("apps/b/app.yaml", None),
        ("apps/a/route.yaml", Some(route)),
        ("tutti.yaml", None),
        ("again.yaml", Some(&instance.replace("shop", "mall"))),
        ("zrings.yaml", Some(rings)),
        ("projects/p.yaml", Some(project)),
        ("plugins/conversion/x/1/rules.yaml", Some(conversion)),
        ("again.yaml", None),
        ("apps/c/app.yaml", Some("a: [")),
        ("plugins/conversion/x/1/rules.yaml", None),
        ("rings.yaml", None),
        ("both.yaml", Some("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\nkind: x\n")),
    ];
    let mut memory = ManifestCache::default();
    for (path, text) in changes {
        match text {
            Some(text) => drop(files.insert(path.to_owned(), text.to_owned())),
            None => drop(files.remove(path)),
        }
        let snapshot = Snapshot::of_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        assert_eq!(read_incremental(&snapshot, &mut memory), read(&snapshot), "after {path}");
        assert_eq!(read_incremental(&snapshot, &mut memory), read(&snapshot), "nothing changed after {path}");
    }
}

fn component(text: &str) -> (App, crate::model::Component) {
    let app = clean(text).apps.remove(0);
    let AppSpec::Component(component) = app.spec.clone() else { panic!("{app:?}") };
    (App::clone(&app), component)
}

#[test]
fn component_in_eight_lines() {
    let (app, component) = component(COMPONENT);
    assert_eq!(app.id, AppId::new("default", "nginx"));
    assert_eq!((component.language.as_str(), component.run_type.as_str()), ("python", "server"));
    assert_eq!(Value::Object(component.values), json!({"image": "python-demo:latest", "port": 8080}));
    assert_eq!((app.location.start.line, app.location.start.column), (4, 18));
    for version in [
        "luojilab.com/v1alpha",
        "luojilab.com/v1beta1",
        "component.luojilab.com/v1beta",
        "tutti.dev/v1alpha1",
    ] {
        clean(&COMPONENT.replace("component.luojilab.com/v1alpha1", version));
    }
}

#[test]
fn component_with_everything() {
    let text = COMPONENT.to_owned()
        + "  replicas: 3
  env: {B: 8080, A: \"x\", C: true, D: }
  resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 2}}
  probes: {liveness: {httpGet: {path: /, port: 8080}}}
  placement: {clusters: {names: [gz*], matchExpressions: [{key: zone, operator: In, values: [gz]}], ring: prod}}
  paused: true
  prune: never
";
    let text = text.replace(
        "{name: nginx}",
        "{name: nginx, namespace: shop, annotations: {component.luojilab.com/unmanaged: true}}",
    );
    let (app, component) = component(&text);
    assert!(app.unmanaged && app.paused);
    assert_eq!((app.prune, app.id), (Some(PruneMode::Never), AppId::new("shop", "nginx")));
    assert_eq!(
        component.values["env"],
        json!([{"name": "A", "value": "x"}, {"name": "B", "value": "8080"}, {"name": "C", "value": "true"},
            {"name": "D", "value": ""}])
    );
    assert_eq!(component.placement.clusters.match_expressions[0].operator, LabelOperator::In);
    assert_eq!(component.placement.clusters.ring.as_deref(), Some("prod"));
    let list = COMPONENT.to_owned() + "  env: [{name: B, value: \"1\"}, {name: A}]\n";
    assert_eq!(
        self::component(&list).1.values["env"],
        json!([{"name": "A", "value": ""}, {"name": "B", "value": "1"}])
    );
}

#[test]
fn component_mistakes() {
    check_mistakes(
        "apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {name: Nginx, labels: {a b: c}}
spec:
  workloadType: Helm
  developLanguage: 7
  runType: server
  imgae: x y
  replicas: three
  env: {A: 0644, B: yes, 1C: x}
  resources: {requests: {cpu: lots}, claims: []}
  autoscale: {max: 3}
  placement: {clusters: {matchExpressions: [{key: zone, operator: Is}]}}
",
        &[
            "E1205 3:18 metadata.name: \"Nginx\" is not a valid name",
            "E1205 3:34 metadata.labels.a b: \"a b\" is not a valid label or annotation key",
            "E1202 4:1 spec.image: `image` is missing",
            "E1202 4:1 spec.port: `port` is missing",
            "E1204 5:17 spec.workloadType: `workloadType` cannot be \"Helm\"",
            "E1203 6:20 spec.developLanguage: `developLanguage` must be a text, not the number 7",
            "E1201 8:3 spec.imgae: unknown field `imgae` in `spec`",
            "E1203 9:13 spec.replicas: `replicas` must be a whole number, not the text \"three\"",
            "E1206 10:12 spec.env.A: the variable `A` could be \"0644\" or \"420\"",
            "E1206 10:21 spec.env.B: the variable `B` could be \"yes\" or \"true\"",
            "E1205 10:26 spec.env.1C: \"1C\" is not the name of a variable",
            "E1206 11:31 spec.resources.requests.cpu: \"lots\" is not a quantity",
            "E1290 11:38 spec.resources.claims: `spec.resources.claims` is not supported yet",
            "E1201 12:15 spec.autoscale.max: unknown field `max` in `spec.autoscale`",
            "E1204 13:67 spec.placement.clusters.matchExpressions[0].operator: `operator` cannot be \"Is\"",
        ],
    );
}

#[test]
fn appset() {
    let manifests = clean(
        "apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: bbcc, labels: {tutti.dev/language: Java, tutti.dev/runType: server}}
spec:
  replicas: 10
  serviceName: inner.bbcc.dmall.com
  podSpec: {deployType: Deployment, template: {spec: {containers: []}}}
  updateStrategy: {minReadySeconds: 10, needWaitingForConfirm: false, paused: true, upgradeType: Blue | canary}
  clusterTopology:
    clusters:
      - name: tcc-bj4-dks-test-01
        meta: {sym-available-zone: bj4}
        podSets:
          - {name: bbcc-gz01b-canary, replicas: 1, version: v4}
          - {name: bbcc-gz01b-blue, replicas: 20%, image: x:1, meta: {sym-group: green}}
          - {name: bbcc-gz01b-rest, nodeSelectorTerm: {matchExpressions: [{key: ldc, operator: In, values: [b]}]}}
",
    );
    let app = &manifests.apps[0];
    assert!(app.paused);
    let AppSpec::AppSet(set) = &app.spec else { panic!("{app:?}") };
    assert_eq!((set.replicas, set.min_ready_seconds), (Some(10), Some(10)));
    assert_eq!((set.language.as_deref(), set.run_type.as_deref()), (Some("java"), Some("server")));
    let replicas: Vec<_> = set.clusters[0].pod_sets.iter().map(|set| set.replicas).collect();
    assert_eq!(replicas, [Some(Replicas::Count(1)), Some(Replicas::Percent(20)), None]);
    assert_eq!(set.clusters[0].pod_sets[1].group(), "green");
    let WaveOrder::Groups(groups) = &app.rollout.order else { panic!("{:?}", app.rollout) };
    assert_eq!(groups.groups, [RolloutGroup::Blue, RolloutGroup::Canary]);
    assert!(!app.rollout.has_no_waves() && !groups.needs_confirmation);
    let term = json!({"matchExpressions": [{"key": "ldc", "operator": "In", "values": ["b"]}]});
    assert_eq!(set.clusters[0].pod_sets[2].node_selector_term, Some(term));
}

#[test]
fn appset_mistakes() {
    check_mistakes(
        "apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: bbcc}
spec:
  podSpec: {deployType: helm, chart: {chartUrl: {}}, template: {specs: {}}}
  updateStrategy: {upgradeType: [canary, gren, canary], canaryClusters: [b, a, a], priorityStrategy: {}, needWaitingForConfirm: 1}
  clusterTopology:
    clusters:
      - name: a
        podSets: [{name: x, version: 1.10}, {name: x, nodeSelectorTerm: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]
      - name: a
        podSets: [{name: w, replicas: 10%, rawValues: z}]
      - podSets: [{name: z, replicas: 110%}]
",
        &[
            "E1202 4:1 spec.replicas: `replicas` is missing, and a podSet has a share of it",
            "E1202 5:39 spec.podSpec.chart.chartUrl.url: `url` is missing",
            "E1201 5:65 spec.podSpec.template.specs: unknown field `specs` in `spec.podSpec.template`",
            "E1204 6:42 spec.updateStrategy.upgradeType[1]: `upgradeType` names no group \"gren\"",
            "E1210 6:48 spec.updateStrategy.upgradeType[2]: `upgradeType` names the group canary twice",
            "E1210 6:80 spec.updateStrategy.canaryClusters[2]: the name `a` is given twice",
            "E1290 6:84 spec.updateStrategy.priorityStrategy: `spec.updateStrategy.priorityStrategy` is not supported yet",
            "E1203 6:129 spec.updateStrategy.needWaitingForConfirm: `needWaitingForConfirm` must be a boolean (true or false), not the number 1",
            "E1203 10:38 spec.clusterTopology.clusters[0].podSets[0].version: `version` must be a text, not the number 1.10",
            "E1210 10:52 spec.clusterTopology.clusters[0].podSets[1].name: the name `x` is given twice",
            "E1206 10:112 spec.clusterTopology.clusters[0].podSets[1].nodeSelectorTerm.matchExpressions[0]: the operator Exists needs no values",
            "E1210 11:15 spec.clusterTopology.clusters[1].name: the name `a` is given twice",
            "E1206 12:55 spec.clusterTopology.clusters[1].podSets[0].rawValues: `rawValues` has an error in its line 1: a map was expected (the text \"z\")",
            "E1202 13:9 spec.clusterTopology.clusters[2].name: `name` is missing",
            "E1206 13:39 spec.clusterTopology.clusters[2].podSets[0].replicas: `replicas` cannot be \"110%\"",
        ],
    );
}

#[test]
fn chart_may_replace_topology_by_placement() {
    let app_set = |more: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: agent}}\nspec:\n  podSpec: {{deployType: helm, chart: \
             {{chartUrl: {{url: charts/agent}}}}}}\n{more}\n"
        )
    };
    let read = read_texts(&[(
        "x.yaml",
        &app_set("  placement: {clusters: {ring: prod}, tolerations: [{operator: Exists}]}"),
    )]);
    assert_eq!(read.diagnostics, []);
    let AppSpec::AppSet(set) = &read.apps[0].spec else { panic!() };
    let ring = set.placement.as_ref().and_then(|placement| placement.clusters.ring.as_deref());
    assert_eq!((ring, set.tolerations.len(), set.clusters.len()), (Some("prod"), 1, 0));
    check_mistakes(
        &app_set("  placement: {clusters: {}}\n  replicas: 2\n  clusterTopology: {clusters: []}"),
        &[
            "E1206 7:13 spec.replicas: `replicas` cannot be used with `placement.clusters`",
            "E1206 8:20 spec.clusterTopology: `clusterTopology` cannot be used with `placement.clusters`",
        ],
    );
    check_mistakes(
        &app_set("  placement: {clusters: }"),
        &["E1202 6:15 spec.placement.clusters: `clusters` has no value"],
    );
    check_mistakes(
        &app_set("  placement: {clusters: {nams: [bj1]}}\n  updateStrategy: {canaryClusters: [bj1]}"),
        &[
            "E1201 6:26 spec.placement.clusters.nams: unknown field `nams` in `spec.placement.clusters`",
            "E1206 7:36 spec.updateStrategy.canaryClusters: `canaryClusters` cannot be used with \
             `placement.clusters`",
        ],
    );
}

#[test]
fn raw_values_are_not_taken_encrypted() {
    for values in [
        "{a: ['ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]']}",
        "{sops: {mac: a}}",
        "\"a: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\"",
    ] {
        check_mistakes(
            &format!(
                "apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {{name: a}}
spec:
  podSpec: {{deployType: helm, chart: {{chartUrl: {{url: charts/a}}}}}}
  clusterTopology: {{clusters: [{{name: a, podSets: [{{name: x, rawValues: {values}}}]}}]}}
"
            ),
            &[
                "E1290 6:62 spec.clusterTopology.clusters[0].podSets[0].rawValues: `rawValues` that are encrypted with SOPS is not supported yet",
            ],
        );
    }
}

#[test]
fn instance() {
    let manifests = clean(
        "apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec:
  mode: observe
  forge: {type: gitea, url: https://gitea.example.com/, repository: platform/config, credentials: {token: {env: GITEA_TOKEN}}}
  receivers: [{name: gitea, type: forgejo, secrets: [{env: HOOK_SECRET}, {file: /run/secrets/old}]}]
  poll: 1m30s
  statusPrefix: deploy
  pageUrl: https://tutti.example.com
  defaults: {namespace: shop, prune: always, force: false}
  caps: {deletes: 5, deletePercent: 10}
  labels: {}
",
    );
    let instance = manifests.instance.unwrap();
    let forge = instance.forge.unwrap();
    assert_eq!(
        (forge.url.as_str(), forge.token),
        ("https://gitea.example.com", Some(SecretRef::Env("GITEA_TOKEN".into())))
    );
    assert_eq!(instance.receivers[0].secrets.len(), 2);
    assert_eq!(instance.receivers[0].kind, WebhookReceiverKind::Forgejo);
    assert_eq!(instance.poll.as_secs(), 90);
    assert_eq!((instance.defaults.prune, instance.caps.deletes), (PruneMode::Always, 5));
    let empty =
        clean("apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec:\n").instance;
    assert_eq!(empty.unwrap().poll.as_secs(), 60);
}

#[test]
fn instance_mistakes() {
    check_mistakes(
        "apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main, namespace: x}
spec:
  forge: {type: github, url: https://me:pass@x, repository: config, credentials: {token: s3cret}}
  receivers: [{name: a, type: gitea, secrets: [{value: s3cret}, {secret: {name: a}}, {}]}, {name: a, type: gitea}]
  poll: 60
  pageUrl: tutti.example.com
  defaults: {force: maybe, drift: forgive}
  caps: {deletePercent: 101, deletes: -1}
  charts: {repositories: [{name: a, url: x}]}
",
        &[
            "E1201 3:24 metadata.namespace: unknown field `namespace` in `metadata`",
            "E1290 5:17 spec.forge.type: `spec.forge.type: github` is not supported yet",
            "E1207 5:30 spec.forge.url: `spec.forge.url` has credentials in it",
            "E1206 5:61 spec.forge.repository: \"config\" is not a repository of a forge",
            "E1207 5:90 spec.forge.credentials.token: `spec.forge.credentials.token` is a value, but it must \
             be a reference",
            "E1206 6:47 spec.receivers[0].secrets: more than two secrets",
            "E1207 6:56 spec.receivers[0].secrets[0].value: `spec.receivers[0].secrets[0].value` is a value, \
             but it must be a reference",
            "E1202 6:66 spec.receivers[0].secrets[1].secret.namespace: `namespace` is missing",
            "E1202 6:66 spec.receivers[0].secrets[1].secret.key: `key` is missing",
            "E1208 6:86 spec.receivers[0].secrets[2]: a reference has exactly one of `env`, `file` and `secret`",
            "E1206 7:9 spec.poll: `poll` must be a duration, not the number 60",
            "E1206 8:12 spec.pageUrl: \"tutti.example.com\" is not an address",
            "E1203 9:21 spec.defaults.force: `force` must be a boolean (true or false), not the text \"maybe\"",
            "E1204 9:35 spec.defaults.drift: `drift` cannot be \"forgive\"",
            "E1206 10:25 spec.caps.deletePercent: `deletePercent` must be from 0 to 100, not 101",
            "E1206 10:39 spec.caps.deletes: `deletes` must be from 0 to 4294967295, not -1",
            "E1206 11:42 spec.charts.repositories[0].url: \"x\" is not an address",
        ],
    );
}

fn cluster(spec: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: bj5, labels: {{zone: bj}}}}\nspec: {spec}\n"
    )
}

#[test]
fn clusters() {
    let manifests = clean(&cluster(
        "{connection: {kubeconfig: {path: a/bj5.kubeconfig, context: admin}}, state: Maintaining, vip: 10.1.2.3,
  meta: {sym-available-zone: bj5, number: 5}, taints: [], weight: 1, capabilities: []}",
    ));
    let found = &manifests.clusters[0];
    assert_eq!((found.state, found.vip.as_deref()), (ClusterState::Maintaining, Some("10.1.2.3")));
    assert_eq!(found.meta["number"], json!(5));
    assert_eq!(clean(&cluster("{connection: {sandbox: {}}}")).clusters[0].connection, Connection::Sandbox);
    let removed = clean(&cluster("{connection: {sandbox: {}}, state: Removed}"));
    assert_eq!(removed.clusters[0].state, ClusterState::Removed);
    assert_eq!(
        clean(&cluster("{connection: {inCluster: {}}}")).clusters[0].connection,
        Connection::InCluster
    );
    let kept =
        "{connection: {kubeconfigSecret: {namespace: tutti, name: bj5, key: kubeconfig, context: admin}}}";
    let at = DataKeyRef { namespace: "tutti".into(), name: "bj5".into(), key: "kubeconfig".into() };
    let expected = Connection::KubeconfigSecret { at, context: Some("admin".into()) };
    assert_eq!(clean(&cluster(kept)).clusters[0].connection, expected);
}

#[test]
fn taints_and_tolerations() {
    let taints = "[{key: dedicated, value: gpu, effect: NoSchedule}, {key: dedicated, effect: NoExecute}]";
    let read = clean(&cluster(&format!("{{connection: {{sandbox: {{}}}}, taints: {taints}}}")));
    let shown: Vec<String> = read.clusters[0].taints.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["dedicated=gpu:NoSchedule", "dedicated:NoExecute"]);
    check_mistakes(
        &cluster(
            "{connection: {sandbox: {}}, taints: [{key: a, effect: PreferNoSchedule}, {effect: NoExecute}, {key: b, effect: NoExecute, timeAdded: now}]}",
        ),
        &[
            "E1290 4:61 spec.taints[0].effect: `spec.taints[0].effect: PreferNoSchedule` is not supported yet",
            "E1202 4:81 spec.taints[1].key: `key` is missing",
            "E1290 4:129 spec.taints[2].timeAdded: `spec.taints[2].timeAdded` is not supported yet",
        ],
    );
    let app = |tolerations: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: a}}\nspec: {{files: [a.yaml], placement: {{clusters: {{}}, tolerations: {tolerations}}}}}\n"
        )
    };
    let read = clean(&app(
        "[{operator: Exists}, {key: dedicated, value: gpu}, {key: old, operator: Exists, effect: NoExecute}]",
    ));
    let tolerations: Vec<_> =
        read.apps[0].tolerations().iter().map(|it| (it.key.as_deref(), it.value.as_deref())).collect();
    assert_eq!(tolerations, [(None, None), (Some("dedicated"), Some("gpu")), (Some("old"), None)]);
    check_mistakes(
        &app("[{value: gpu}, {key: a, operator: Exists, value: b}, {key: a, tolerationSeconds: 60}]"),
        &[
            "E1206 4:65 spec.placement.tolerations[0]: a toleration without a key must have the operator Exists",
            "E1206 4:113 spec.placement.tolerations[1].value: `value` must be empty",
            "E1290 4:126 spec.placement.tolerations[2].tolerationSeconds: `spec.placement.tolerations[2].tolerationSeconds` is not supported yet",
        ],
    );
}

#[test]
fn registries() {
    let instance = |registry: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  clusterRegistry: {registry}\n"
        )
    };
    let read = |registry: &str| clean(&instance(registry)).instance.and_then(|it| it.registry);
    assert_eq!(read("{configMaps: {}}"), Some(ConfigMapRegistry::default()));
    let other = ConfigMapRegistry {
        namespace: "fleet".into(),
        match_labels: [("role".to_owned(), "cluster".to_owned())].into(),
        key: "config".into(),
    };
    assert_eq!(
        read("{configMaps: {namespace: fleet, matchLabels: {role: cluster}, key: config}}"),
        Some(other)
    );
    check_mistakes(
        &instance("{configMaps: {matchLabels: {}, key: a/b}}"),
        &[
            "E1206 5:47 spec.clusterRegistry.configMaps.matchLabels: `matchLabels` selects every ConfigMap",
            "E1206 5:56 spec.clusterRegistry.configMaps.key: \"a/b\" is not a key of a Secret or ConfigMap",
        ],
    );
    check_mistakes(&instance("{}"), &["E1202 5:3 spec.clusterRegistry.configMaps: `configMaps` is missing"]);
}

#[test]
fn cluster_mistakes() {
    let scoped = read_texts(&[("x.yaml", &cluster("{connection: {}}"))]).diagnostics.remove(0);
    assert_eq!(scoped.scope, DiagnosticScope::Cluster(ClusterName::from("bj5")));
    let one = "a connection has exactly one of kubeconfig, kubeconfigSecret, inCluster and sandbox";
    check_mistakes(&cluster("{connection: {}}"), &[&format!("E1208 4:8 spec.connection: {one}")]);
    check_mistakes(
        &cluster("{connection: {sandbox: {}, inCluster: {}}, state: Gone}"),
        &[&format!("E1208 4:8 spec.connection: {one}"), "E1204 4:57 spec.state: `state` cannot be \"Gone\""],
    );
    check_mistakes(
        &cluster("{connection: {agent: {}}, state: Removed, weight: 2}"),
        &[
            "E1290 4:21 spec.connection.agent: `spec.connection.agent` is not supported yet",
            "E1290 4:49 spec.weight: `spec.weight: 2` is not supported yet",
        ],
    );
    check_mistakes(
        &cluster("{connection: {kubeconfig: {path: ../x}}}"),
        &["E1206 4:40 spec.connection.kubeconfig.path: the path \"../x\" leaves the folder of kubeconfigs"],
    );
    check_mistakes(
        &cluster("{connection: {sandbox: {scenario: a.yaml}}}"),
        &[
            "E1290 4:31 spec.connection.sandbox.scenario: `spec.connection.sandbox.scenario` is not supported yet",
        ],
    );
}

#[test]
fn rings() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {matchLabels: {environment: test}}}, {name: prod, clusters: {}}]}\n";
    let rings = clean(text).rings.unwrap();
    assert_eq!(rings.rings.iter().map(|ring| ring.name.as_str()).collect::<Vec<_>>(), ["test", "prod"]);
    let wrong = text.replace("{name: prod, clusters: {}}", "{name: test, clusters: {ring: test}, gates: []}");
    check_mistakes(
        &wrong,
        &[
            "E1210 4:83 spec.rings[1].name: the name `test` is given twice",
            "E1201 4:100 spec.rings[1].clusters.ring: unknown field `ring` in `spec.rings[1].clusters`",
            "E1201 4:113 spec.rings[1].gates: unknown field `gates` in `spec.rings[1]`",
        ],
    );
}

#[test]
fn objects() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: platform-config, namespace: infra}\nspec: {placement: {clusters: {}}, files: [objects/*.yaml, ../shared/a.yaml.j2]}\n";
    let manifests = read_texts(&[("apps/infra/app.yaml", text)]);
    assert_eq!(manifests.diagnostics, []);
    let AppSpec::Objects(objects) = &manifests.apps[0].spec else { panic!() };
    let files: Vec<_> = objects.files.iter().map(|(path, at)| (path.as_str(), at.start.column)).collect();
    assert_eq!(files, [("apps/infra/objects/*.yaml", 43), ("apps/shared/a.yaml.j2", 59)]);
    check_mistakes(
        &text.replace("[objects/*.yaml, ../shared/a.yaml.j2]", "[../../x, 'a[', /etc]"),
        &[
            "E1209 4:52 spec.files[1]: \"a[\" is not a pattern: unclosed character class; missing ']'",
            "E1209 4:58 spec.files[2]: the pattern \"/etc\" is not a path relative to this manifest",
        ],
    );
    let of = |pattern: &str, count: usize| {
        let patterns: Vec<String> = (0..count).map(|number| format!("{pattern}{number:03}")).collect();
        text.replace("objects/*.yaml, ../shared/a.yaml.j2", &patterns.join(", "))
    };
    clean(&of("a/*", 256));
    check_mistakes(&of("a/*", 257), &["E1206 4:42 spec.files: `files` has more than 256 patterns"]);
    let long = format!("a/*{}", "a".repeat(250));
    clean(&of(&long, 64));
    check_mistakes(&of(&long, 65), &["E1206 4:42 spec.files: `files` has patterns of more than 16384 bytes"]);
    clean(&of(&long.replace('*', ""), 65));
    // One that is too long by itself is named.
    let too_long = of(&"a/*".repeat(6000), 1);
    let codes: Vec<&str> =
        read_texts(&[("x.yaml", &too_long)]).diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, ["E1209"]);
}

#[test]
fn approvals_are_written_and_read_back() {
    let object = |cluster: &str, group, kind, namespace, name| ApprovedObject {
        cluster: ClusterName::from(cluster),
        id: ObjectId::new(group, kind, namespace, name),
        uid: "12e34567".to_owned(),
    };
    let mut objects = vec![
        object("bj5", "", "ConfigMap", Some("infra"), "old"),
        object("bj5", "", "Namespace", None, "shop"),
        object("gz1", "apps", "Deployment", Some("shop"), "pay"),
        object("gz1", "rbac.authorization.k8s.io", "ClusterRole", None, "system:x"),
    ];
    objects.sort();
    for objects in [objects, Vec::new()] {
        let approval = Approval {
            action: ApprovedAction::Delete,
            name: "drop-old-config".to_owned(),
            app: AppId::new("infra", "platform-config"),
            rendered: Digest::of(b"x"),
            objects,
            location: None,
            is_alone: true,
        };
        let read = clean(&approval_to_yaml(&approval)).approvals.remove(0);
        assert_eq!(read.digest(), approval.digest());
        assert_eq!(Approval { location: None, ..read }, approval);
    }
    let digest = Digest::of(b"x");
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: a}}\nspec:\n  app: infra/platform-config\n  action: delete\n  rendered: {digest}\n  objects: [{{cluster: bj5, id: IDENTIFIER, uid: 1f0c}}]\n"
    );
    for (id, expected) in [
        ("v1/ConfigMap/infra/old", "/ConfigMap/infra/old"),
        ("apps/v1/Deployment/ns/name", "apps/Deployment/ns/name"),
        ("v1/Namespace//name", "/Namespace//name"),
        ("v1/Namespace/name", "/Namespace//name"),
        ("rbac.authorization.k8s.io/v1/ClusterRole/name", "rbac.authorization.k8s.io/ClusterRole//name"),
    ] {
        let approvals = clean(&text.replace("IDENTIFIER", id)).approvals;
        assert_eq!(approvals[0].objects[0].id.origin(), expected, "{id}");
    }
    check_mistakes(
        &text.replace("IDENTIFIER", "configmap/old").replace("delete", "create"),
        &[
            "E1204 6:11 spec.action: `action` cannot be \"create\"",
            "E1206 8:32 spec.objects[0].id: \"configmap/old\" is not an object",
        ],
    );
}

#[test]
fn identity() {
    let meta = "metadata: {name: a}\n";
    check_mistakes(
        &format!("apiVersion: tutti.dev/v1alpha1\nkind: Componet\n{meta}"),
        &["E1111 2:7 kind: unknown kind `Componet` of tutti.dev/v1alpha1"],
    );
    check_mistakes(
        &format!("apiVersion: tuti.dev/v1alpha1\nkind: Component\n{meta}"),
        &["E1112 1:13 apiVersion: unknown apiVersion `tuti.dev/v1alpha1`"],
    );
    check_mistakes(
        &format!("apiVersion: tutti.dev/v1alpha1\nkind: Application\n{meta}"),
        &["E1290 2:1 kind: the kind Application is not supported yet"],
    );
    check_mistakes(
        "a: 1\n",
        &[
            "E1110 1:1 apiVersion: `apiVersion` is missing: this is not a manifest",
            "E1110 1:1 kind: `kind` is missing: this is not a manifest",
        ],
    );
    check_mistakes("- a\n", &["E1110 1:1 -: a manifest is a map, not a list"]);
    let plain = clean(&format!("apiVersion: apps/v1\nkind: Deployment\n{meta}")).plain_objects;
    assert_eq!(plain[0].kind.to_string(), "apps/v1/Deployment");
    let check = |kind: &str, not_yet: Option<&str>| {
        let plain = clean(&format!("apiVersion: core.oam.dev/v1beta1\nkind: {kind}\n{meta}")).plain_objects;
        assert_eq!(plain[0].not_yet.as_ref().map(|it| it.message.as_str()), not_yet, "{kind}");
    };
    check("Application", Some("the kind Application is not supported yet"));
    check("WorkloadDefinition", None);
}

#[test]
fn scopes_and_neighbours() {
    let wrong = COMPONENT.replace("port: 8080", "port: 8080\n  port: 1");
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {defaults: {namespace: shop}}\n";
    let later = "apiVersion: tutti.dev/v1alpha1\nkind: Middleware\nmetadata: {name: db, namespace: data}\n";
    let manifests = read_texts(&[
        ("apps/a.yaml", &COMPONENT.replace("nginx", "good")),
        ("apps/b.yaml", &wrong),
        ("apps/c.yaml", later),
        ("apps/x/pins/prod.yaml", "version: v1"),
        ("broken.yaml", "a: b: c"),
        ("tutti.yaml", instance),
        ("zz.yaml", &instance.replace("main", "other")),
        (".hidden.yaml", "a: b: c"),
        ("templates/base/values.yaml", "a: 1"),
    ]);
    assert_eq!(manifests.apps.iter().map(|app| app.id.to_string()).collect::<Vec<_>>(), ["shop/good"]);
    let scopes: Vec<_> =
        manifests.diagnostics.iter().map(|mistake| (mistake.code, mistake.scope.clone())).collect();
    assert_eq!(
        scopes,
        [
            ("E1104", DiagnosticScope::App(AppId::new("shop", "nginx"))),
            ("E1290", DiagnosticScope::App(AppId::new("data", "db"))),
            ("E1102", DiagnosticScope::File("broken.yaml".to_owned())),
            ("E1113", DiagnosticScope::File("zz.yaml".to_owned())),
        ]
    );
    assert_eq!(manifests.instance.unwrap().name, "main");
}
