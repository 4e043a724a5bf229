//! Tests of the chart: manifests, value schema, names of metrics and settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{by_template, manifests, render, root};

/// `helm`, or nothing after a loud line.
fn helm() -> Option<PathBuf> {
    match live::HelmPrograms::from_env().expect("the programs of charts") {
        Ok(helm) => Some(helm.helm),
        Err(why) => {
            eprintln!("{why}");
            None
        }
    }
}

pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(super) fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn objects(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(yaml).collect()
}

/// The files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, text)| (format!("{name}/{below}"), text)));
        } else {
            found.insert(name, fs::read_to_string(&path).expect("a file"));
        }
    }
    found
}

#[test]
fn manifests_are_what_the_chart_renders() {
    let Some(helm) = helm() else { return };
    let (found, expected) = (files(&root().join("deploy")), manifests(&helm).expect("a render"));
    let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let others: Vec<_> = names.into_iter().filter(|name| found.get(*name) != expected.get(*name)).collect();
    assert!(others.is_empty(), "run `cargo xtask deploy`: the chart makes others of {others:?}");
}

#[test]
fn default_render_is_the_manifests_but_for_two() {
    let Some(helm) = helm() else { return };
    let of_chart = by_template(&render(&helm, &[]).expect("a render")).expect("documents");
    let mut plain = files(&root().join("deploy"));
    plain.retain(|name, _| name != "00-namespace.yaml" && !name.starts_with("monitoring/"));
    let parsed = |files: &BTreeMap<String, String>| -> BTreeMap<String, Vec<Value>> {
        files.iter().map(|(name, text)| (name.clone(), objects(text))).collect()
    };
    assert_eq!(parsed(&of_chart), parsed(&plain));
    assert_eq!(plain.len(), 8);
}

#[test]
fn chart_has_no_lint() {
    let Some(helm) = helm() else { return };
    let output = Command::new(helm).args(["lint", "--strict"]).arg(root().join("charts/tutti")).output();
    let output = output.expect("helm runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn schema_refuses_wrong_values() {
    let Some(helm) = helm() else { return };
    let check = |values: &[&str], words: &str| {
        let error = render(&helm, values).expect_err("a refusal").to_string();
        assert!(error.contains(words), "{values:?}: no {words:?} in {error}");
    };
    check(&["replica=3"], "additional properties 'replica' not allowed");
    check(&["image.tagg=x"], "additional properties 'tagg' not allowed");
    check(&["settings.listen=x"], "additional properties 'listen' not allowed");
    check(&["replicas=many"], "/replicas");
    check(&["replicas=-1"], "/replicas");
    check(&["repository.url=config.git"], "/repository/url");
    check(&["repository.auth=basic"], "/repository/auth");
    check(&["repository.existingSecret="], "/repository/existingSecret");
    check(&["image.pullPolicy=Sometimes"], "/image/pullPolicy");
    check(&["service.type=ExternalName"], "/service/type");
    check(&["networkPolicy.egressPorts={70000}"], "/networkPolicy/egressPorts/0");
    check(&["monitoring.interval=often"], "/monitoring/interval");
    check(&["state.sizeLimit=much"], "/state/sizeLimit");
    check(&["settings.ageIdentities[0].file=a,settings.ageIdentities[0].env=b"], "/settings/ageIdentities/0");
    check(&["podLabels.a=1"], "/podLabels/a");
    check(&["listenAddress=localhost"], "/listenAddress");
    // Not the schema but a template.
    check(&["monitoring.enabled=true", "resources.limits.memory=1500M"], "write it in whole Mi or Gi");
}

#[test]
fn every_chart_value_has_schema_and_comment() {
    let values = read("charts/tutti/values.yaml");
    let schema = serde_json::from_str(&read("charts/tutti/values.schema.json")).expect("JSON");
    let mut known = BTreeSet::new();
    compare("", &yaml(&values), &schema, &mut known);
    assert!(known.contains("/networkPolicy/egressPorts"), "{known:?}");

    let lines: Vec<&str> = values.lines().collect();
    let is_key = |line: &str| {
        let text = line.trim_start();
        line.len() - text.len() <= 2
            && text.split_once(':').is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric))
    };
    let of_keys = lines.iter().enumerate().filter(|(_, line)| is_key(line));
    let bare: Vec<&str> = of_keys
        // The one value of a map may have its comment above the map.
        .filter(|(at, _)| {
            *at == 0 || !lines[at - 1].trim_start().starts_with('#') && lines[at - 1] != "namespace:"
        })
        .map(|(_, line)| *line)
        .collect();
    assert_eq!(bare, Vec::<&str>::new(), "values without a comment");
}

/// The same names in values and schema, and nothing beside them.
fn compare(path: &str, values: &Value, schema: &Value, known: &mut BTreeSet<String>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    assert_eq!(schema["additionalProperties"], false, "{path}");
    let values = values.as_object().unwrap_or_else(|| panic!("{path} is no map"));
    // What a chart gets that is part of another.
    let ours = properties.keys().filter(|key| *key != "global").collect::<BTreeSet<_>>();
    let expected = values.keys().collect::<BTreeSet<_>>();
    if path == "/resources" {
        assert!(ours.is_superset(&expected), "{path}");
        return;
    }
    assert_eq!(ours, expected, "{path}");
    for (key, value) in values {
        let path = format!("{path}/{key}");
        compare(&path, value, &properties[key], known);
        known.insert(path);
    }
}

#[test]
fn value_sets_render() {
    let Some(helm) = helm() else { return };
    let check = |values: &[&str], expected: &[&str]| -> BTreeMap<String, Value> {
        let rendered = by_template(&render(&helm, values).expect("a render")).expect("documents");
        let mut found = BTreeMap::new();
        for object in rendered.values().flat_map(|text| objects(text)) {
            let text =
                |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned();
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            text("/apiVersion");
            if kind != "Namespace" {
                assert_eq!(text("/metadata/namespace"), "tutti-system", "{kind} {name}");
            }
            assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "tutti", "{kind} {name}");
            assert_eq!(object["metadata"]["labels"].get("helm.sh/chart"), None);
            let double = found.insert(format!("{kind} {name}"), object);
            assert_eq!(double, None);
        }
        let basic = [
            "ConfigMap tutti",
            "Deployment tutti",
            "NetworkPolicy tutti",
            "PodDisruptionBudget tutti",
            "Role tutti",
            "RoleBinding tutti",
            "Service tutti",
            "Service tutti-hooks",
            "ServiceAccount tutti",
        ];
        let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, basic.iter().chain(expected).copied().collect(), "{values:?}");
        found
    };
    let settings = |found: &BTreeMap<String, Value>| {
        yaml(found["ConfigMap tutti"]["data"]["settings.yaml"].as_str().expect("a text"))
    };
    let pod = |found: &BTreeMap<String, Value>| found["Deployment tutti"]["spec"]["template"]["spec"].clone();

    check(&["replicas=1"], &[]);
    let found = check(&["listenAddress=[::]"], &[]);
    let env = pod(&found)["containers"][0]["env"].to_string();
    assert!(env.contains("\"[::]:8480\"") && env.contains("\"[::]:8481\""), "{env}");
    check(
        &["monitoring.enabled=true"],
        &["ConfigMap tutti-dashboard", "PrometheusRule tutti", "ServiceMonitor tutti"],
    );

    let found = check(
        &["ingress.enabled=true", "ingress.host=a.example.com", "ingress.tlsSecret=1e3"],
        &["Ingress tutti-hooks"],
    );
    let ingress = &found["Ingress tutti-hooks"]["spec"];
    assert_eq!(ingress["tls"][0]["secretName"], "1e3");
    assert_eq!(ingress["rules"][0]["host"], "a.example.com");

    let found = check(
        &["repository.auth=ssh", "repository.url=git@example.com:a/b.git", "repository.branch=main"],
        &[],
    );
    let repository = &settings(&found)["repository"];
    assert_eq!(repository["credentials"]["sshKey"], "/etc/tutti/secrets/ssh-key");
    assert_eq!(
        (&repository["url"], &repository["branch"]),
        (&"git@example.com:a/b.git".into(), &"main".into())
    );

    let found = check(&["repository.auth=none", "repository.existingSecret="], &[]);
    assert_eq!(settings(&found)["repository"].get("credentials"), None);
    assert_eq!(settings(&found).get("secrets"), None);
    let mounts: Vec<Value> =
        pod(&found)["containers"][0]["volumeMounts"].as_array().cloned().unwrap_or_default();
    assert!(mounts.iter().all(|mount| mount["name"] != "secrets"), "{mounts:?}");

    let values = [
        // Readers of YAML may take such a name for a number.
        "kubeconfigs.existingSecret=1e3",
        "settings.chartHost={charts.svc}",
        "env[0].name=HTTPS_PROXY,env[0].value=http://proxy:3128",
        "volumes[0].name=ca",
        "volumeMounts[0].name=ca,volumeMounts[0].mountPath=/ca",
        "imagePullSecrets={1e3}",
        "networkPolicy.hooksFrom[0].ipBlock.cidr=10.0.0.0/8",
        "podLabels.team=platform",
        "nodeSelector.pool=infra",
        "tolerations[0].operator=Exists",
        "affinity.nodeAffinity.x=y",
        "priorityClassName=1e3",
    ];
    let found = check(&values, &[]);
    let pod = pod(&found);
    let named = |list: &str| -> Vec<String> {
        let list = pod.pointer(list).and_then(Value::as_array).expect("a list");
        list.iter().map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(named("/volumes"), ["settings", "secrets", "kubeconfigs", "state", "tmp", "ca"]);
    assert_eq!(named("/containers/0/volumeMounts"), named("/volumes"));
    assert!(named("/containers/0/env").contains(&"HTTPS_PROXY".to_owned()));
    assert_eq!(pod["volumes"][2]["secret"]["secretName"], "1e3");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "1e3");
    assert_eq!(pod["priorityClassName"], "1e3");
    assert_eq!(pod["affinity"].as_object().expect("a map").len(), 1);
    assert_eq!(settings(&found)["chartHost"][0], "charts.svc");
    let ingress = &found["NetworkPolicy tutti"]["spec"]["ingress"][0]["from"];
    assert_eq!(*ingress, serde_json::json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]));
    assert_eq!(found["Deployment tutti"]["spec"]["template"]["metadata"]["labels"]["team"], "platform");
}

#[test]
fn settings_that_change_start_the_pods_anew() {
    let Some(helm) = helm() else { return };
    let checksum = |values: &[&str]| {
        let files = by_template(&render(&helm, values).expect("a render")).expect("documents");
        let deployment = yaml(&files["deployment.yaml"]);
        deployment["spec"]["template"]["metadata"]["annotations"]["checksum/settings"].clone()
    };
    assert_eq!(checksum(&[]), checksum(&["replicas=1"]));
    assert_ne!(checksum(&[]), checksum(&["repository.branch=main"]));
}

#[test]
fn versions_are_those_of_the_workspace() {
    let chart = yaml(&read("charts/tutti/Chart.yaml"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((&chart["version"], &chart["appVersion"]), (&version.into(), &version.into()));
    let deployment = yaml(&read("deploy/deployment.yaml"));
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, &format!("ghcr.io/tutti-dev/tutti:{version}"));
}

#[test]
fn pods_run_with_the_least() {
    let deployment = yaml(&read("deploy/deployment.yaml"));
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    let rules = &yaml(&read("deploy/role.yaml"))["rules"];
    for rule in rules.as_array().expect("rules") {
        assert_eq!(
            rule["resources"],
            serde_json::json!(["leases"]),
            "what else it may do, `tutti cluster rbac` says"
        );
        let is_create = rule["verbs"] == serde_json::json!(["create"]);
        assert!(is_create || rule["resourceNames"] == serde_json::json!(["tutti"]), "{rule}");
    }
}
