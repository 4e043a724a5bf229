//! One base and many overlays: by `kustomize build`, by kustomize's library in one process, and by tutti; the same objects.
//!
//! For kustomize a base and a folder of each overlay with one file of patches; for tutti an app of the same objects and a
//! cluster with a layer of the same patches for each overlay. All begin at files on the disk and end at objects in memory
//! (kustomize: at text). `kustomize build` runs once for each overlay, one after the other, as a script does; the library
//! builds all in one process, as Flux does. The fastest of three rounds; what is short is timed three times in each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tutti::model::NoCharts;
use tutti::render::{FleetRenderer, RenderCache};
use tutti::{fleet, manifest, source};

const TIMES: usize = 3;

/// What is patched is first in its list: there kustomize puts it, and kubectl and tutti leave it where it is.
const BASE: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
        - name: web
          image: registry.example.com/shop/web:1.0.0
          ports: [{name: http, containerPort: 8080}]
          env: [{name: REGION, value: none}, {name: LOG_LEVEL, value: info}]
          readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
          resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
          volumeMounts: [{name: settings, mountPath: /etc/web}]
      volumes: [{name: settings, configMap: {name: web}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {application.yaml: \"server: {port: 8080}\", region: none}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]
";

/// Kind and strategic merge patch.
fn patches(number: usize) -> [(&'static str, String); 2] {
    let deployment = format!(
        "{{spec: {{replicas: {}, template: {{spec: {{containers: [{{name: web, image: \"registry.example.com/shop/web:1.{number}.0\", \
         env: [{{name: REGION, value: region-{number}}}]}}]}}}}}}}}",
        number % 9 + 1
    );
    [("Deployment", deployment), ("ConfigMap", format!("{{data: {{region: region-{number}}}}}"))]
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn for_kustomize(folder: &Path, overlays: usize) {
    write(folder, "base/kustomization.yaml", "resources: [all.yaml]\n");
    write(folder, "base/all.yaml", BASE);
    for number in 0..overlays {
        let overlay = format!("overlays/{}", name(number));
        write(
            folder,
            &format!("{overlay}/kustomization.yaml"),
            "resources: [../../base]\npatches: [{path: patches.yaml}]\n",
        );
        let documents: Vec<String> = patches(number)
            .iter()
            .map(|(kind, patch)| {
                let api = if *kind == "Deployment" { "apps/v1" } else { "v1" };
                let rest = patch.trim_start_matches('{').trim_end_matches('}');
                let closing = "}".repeat(patch.len() - patch.trim_end_matches('}').len());
                format!("{{apiVersion: {api}, kind: {kind}, metadata: {{name: web, namespace: shop}}, {rest}{closing}\n")
            })
            .collect();
        write(folder, &format!("{overlay}/patches.yaml"), &documents.join("---\n"));
    }
}

fn for_tutti(folder: &Path, overlays: usize) {
    let app = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: web, namespace: shop}\nspec: {files: [objects/*.yaml]}\n";
    write(folder, "apps/web/app.yaml", app);
    write(folder, "apps/web/objects/all.yaml", BASE);
    for number in 0..overlays {
        let name = name(number);
        let cluster = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{connection: {{inCluster: {{}}}}}}\n"
        );
        write(folder, &format!("clusters/{name}.yaml"), &cluster);
        let layer = format!("templates/cluster/{name}");
        write(folder, &format!("{layer}/layer.yaml"), &format!("clusters: {{names: [{name}]}}\n"));
        let documents: Vec<String> = patches(number)
            .iter()
            .map(|(kind, patch)| format!("target: {{kind: {kind}}}\nmerge: {patch}\n"))
            .collect();
        write(folder, &format!("{layer}/patches/patches.yaml"), &documents.join("---\n"));
    }
}

fn name(number: usize) -> String {
    format!("overlay-{number:04}")
}

/// Objects by kind and name, without what makes them ours.
type ObjectsByName = BTreeMap<String, Value>;

fn objects(documents: impl Iterator<Item = Value>) -> ObjectsByName {
    let one = |mut object: Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned();
        let key = format!("{} {}", text("/kind"), text("/metadata/name"));
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for marks in ["labels", "annotations"] {
                if let Some(all) = metadata.get_mut(marks).and_then(Value::as_object_mut) {
                    all.retain(|key, _| !key.starts_with("tutti.dev/"));
                    if all.is_empty() {
                        metadata.remove(marks);
                    }
                }
            }
        }
        (key, object)
    };
    documents.map(one).collect()
}

/// The objects of each overlay, and the total time.
fn by_tutti(folder: &Path) -> (BTreeMap<String, ObjectsByName>, Duration) {
    let start = Instant::now();
    let snapshot = source::read_folder(folder, manifest::listed_beside).expect("a folder");
    let fleet = fleet::assemble(manifest::read(&snapshot), &snapshot);
    let renders = FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
    let took = start.elapsed();
    assert!(fleet.is_valid(), "{:?}", fleet.diagnostics.first());
    let of_target = renders.iter().map(|(target, (_, render))| {
        let rendered = render.as_ref().unwrap_or_else(|mistakes| panic!("{target}: {mistakes:#?}"));
        (target.cluster.to_string(), objects(rendered.objects.iter().map(|object| object.body.fields())))
    });
    (of_target.collect(), took)
}

fn by_command(command: &Path, folder: &Path, overlays: usize) -> (BTreeMap<String, ObjectsByName>, Duration) {
    let start = Instant::now();
    let texts: Vec<(String, Vec<u8>)> = (0..overlays)
        .map(|number| {
            let overlay = folder.join("overlays").join(name(number));
            let output = Command::new(command).arg("build").arg(overlay).output().expect("kustomize");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            (name(number), output.stdout)
        })
        .collect();
    let took = start.elapsed();
    let read = |text: &[u8]| {
        let documents = serde_yaml::Deserializer::from_slice(text);
        objects(documents.map(|document| serde::Deserialize::deserialize(document).expect("an object")))
    };
    (texts.iter().map(|(name, text)| (name.clone(), read(text))).collect(), took)
}

fn in_process(program: &Path, folder: &Path) -> Duration {
    let output = Command::new(program).arg(folder.join("overlays")).output().expect("overlays");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds = said.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs_f64(seconds.expect("seconds"))
}

pub fn run(kustomize: &live::KustomizePrograms, overlays: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (theirs, ours) = (folder.path().join("kustomize"), folder.path().join("tutti"));
    for_kustomize(&theirs, overlays);
    for_tutti(&ours, overlays);
    let mut best = [Duration::MAX; 3];
    for _ in 0..TIMES {
        let (made, took) = by_tutti(&ours);
        best[0] = best[0].min(took).min(by_tutti(&ours).1).min(by_tutti(&ours).1);
        let (expected, took) = by_command(&kustomize.kustomize, &theirs, overlays);
        best[1] = best[1].min(took);
        for _ in 0..TIMES {
            best[2] = best[2].min(in_process(&kustomize.library_runner, &theirs));
        }
        assert_eq!(made.len(), overlays);
        for (name, expected) in &expected {
            assert_eq!(made.get(name), Some(expected), "{name}");
        }
    }
    let millis = best.map(|time| time.as_secs_f64() * 1000.0);
    println!(
        "{overlays} overlays of 5 objects, the same objects: tutti {:.0} ms, kustomize build {:.0} ms, its library in one \
         process {:.0} ms",
        millis[0], millis[1], millis[2]
    );
    println!("figure kustomize_ratio {:.1}", millis[1] / millis[0]);
    println!("figure kustomize_ratio_in_process {:.1}", millis[2] / millis[0]);
}
