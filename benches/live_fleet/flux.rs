//! The same fleet carried by kustomize-controller of Flux 2: a Kustomization for each app, and one that brings these, all of one
//! source.
//!
//! Its source-controller is not here: we make the archive of each revision, serve it, and say so in the source's status. So what
//! Flux does from Git to the archive is not counted, and a step begins with the archive in place. Its kinds are defined without
//! their schemas, which spares it the server's validation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, pin};

use axum::Router;
use axum::extract::{self, State};
use axum::http::StatusCode;
use axum::routing::get;
use futures::TryStreamExt as _;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use live::{FluxController, LiveCluster, LiveEnvironment};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::measure::{LIMIT, MeasuredProcess, StepCost, measure_step, objects};

/// As the comparison has it; Flux begins with 4.
const CONCURRENCY: usize = 20;
const SYSTEM: &str = "flux-system";
const APPS: &str = "flux-apps";
const SOURCES: &str = "source.toolkit.fluxcd.io";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
/// The kinds that the controller watches.
const KINDS: [(&str, &str); 4] = [
    (SOURCES, "GitRepository"),
    (SOURCES, "OCIRepository"),
    (SOURCES, "Bucket"),
    (KUSTOMIZE, "Kustomization"),
];
const SOURCE: &str = "fleet";
/// The Kustomization that brings all others.
const PARENT: &str = "fleet";

/// Answers with what each step took.
pub async fn fleet(live: &LiveEnvironment, program: &Path, size: usize) -> BTreeMap<&'static str, StepCost> {
    let cluster = live.cluster(0);
    let client = crate::client(cluster).await;
    define(cluster).await;
    for namespace in [SYSTEM, APPS] {
        cluster.create_namespace(namespace).await.expect("a namespace");
    }
    let folder = live.folder().join("flux");
    let bench = FluxBench { client, source: ArchiveSource::serve(folder).await };
    bench.begin().await;
    let kubeconfig = bench.source.folder.join("kubeconfig.yaml");
    let user = cluster.create_account(SYSTEM, "flux", &kubeconfig).await.expect("an account");
    let flux = FluxController::start(program, &kubeconfig, CONCURRENCY).expect("a controller");
    let who = MeasuredProcess { name: "flux", process: flux.id().expect("a process"), user };
    if tokio::time::timeout(LIMIT, bench.wait_until_ready("empty", 0)).await.is_err() {
        panic!("it does not begin:\n{}", flux.log_tail(40));
    }
    let all = |image: usize, host: usize| (0..size).for_each(|app| bench.write(app, image, host));
    let steps: [(&'static str, &dyn Fn()); 5] = [
        ("install", &|| all(1, 1)),
        ("change_all", &|| all(2, 1)),
        ("change_all_hosts", &|| all(2, 2)),
        ("change_one", &|| bench.write(size / 2, 3, 2)),
        ("nothing", &|| bench.source.write("README.md", "Nothing that is built.")),
    ];
    let mut taken = BTreeMap::new();
    for (what, change) in steps {
        change();
        let archive = bench.source.pack(what);
        let step = async || {
            bench.publish(&archive).await;
            if tokio::time::timeout(LIMIT, bench.wait_until_ready(what, size)).await.is_err() {
                panic!("{what} does not end:\n{}", flux.log_tail(40));
            }
        };
        taken.insert(what, measure_step(cluster, &who, &format!("flux_{size}_{what}"), step).await);
    }
    taken
}

struct FluxBench {
    client: kube::Client,
    source: ArchiveSource,
}

impl FluxBench {
    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.client.clone(), SYSTEM, &kind)
    }

    /// A source without apps, and the Kustomization that will bring theirs.
    async fn begin(&self) {
        // A folder has to hold something.
        let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nothing"}});
        self.source.write("fleet/nothing.yaml", &nothing.to_string());
        let source = json!({
            "apiVersion": format!("{SOURCES}/v1"), "kind": "GitRepository", "metadata": {"name": SOURCE},
            "spec": {"url": "https://example.org/fleet.git", "interval": "2h"},
        });
        create(&self.api(SOURCES, "GitRepository"), source).await;
        self.publish(&self.source.pack("empty")).await;
        create(&self.api(KUSTOMIZE, "Kustomization"), kustomization(PARENT, "fleet", SYSTEM)).await;
    }

    /// With these numbers in the image and in the host.
    fn write(&self, app: usize, image: usize, host: usize) {
        let name = format!("app-{app:04}");
        self.source.write(
            &format!("fleet/{name}.yaml"),
            &kustomization(&name, &format!("apps/{name}"), APPS).to_string(),
        );
        let objects: Vec<String> = objects(&name, image, host).iter().map(Value::to_string).collect();
        self.source.write(&format!("apps/{name}/all.yaml"), &objects.join("\n---\n"));
    }

    async fn publish(&self, archive: &SourceArchive) {
        let status = json!({"status": {
            "observedGeneration": 1,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
            }],
            "artifact": {
                "path": archive.revision, "url": archive.url, "revision": archive.revision,
                "digest": archive.digest, "size": archive.size, "lastUpdateTime": "2026-01-01T00:00:00Z",
            },
        }});
        let sources = self.api(SOURCES, "GitRepository");
        sources
            .patch_status(SOURCE, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .expect("a status");
    }

    /// Waits until those of the apps are ready at that revision, which is when their objects are healthy; without apps, until
    /// the parent is.
    async fn wait_until_ready(&self, revision: &str, apps: usize) {
        let all = watcher(self.api(KUSTOMIZE, "Kustomization"), watcher::Config::default());
        let mut all = pin::pin!(all.applied_objects());
        let mut ready = BTreeSet::new();
        while ready.len() < apps.max(1) {
            let one = all.try_next().await.expect("a watch").expect("an endless watch");
            let name = one.metadata.name.clone().unwrap_or_default();
            if apps > 0 && name == PARENT {
                continue;
            }
            if is_ready(&one, revision) {
                ready.insert(name)
            } else {
                ready.remove(&name)
            };
        }
    }
}

fn is_ready(kustomization: &DynamicObject, revision: &str) -> bool {
    let status = &kustomization.data["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    status["lastAppliedRevision"] == revision
        && conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn kustomization(name: &str, path: &str, target: &str) -> Value {
    json!({
        "apiVersion": format!("{KUSTOMIZE}/v1"), "kind": "Kustomization",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {
            // The parent waits for no other: that would take one of the workers, and tell nothing that we do not see.
            "interval": "2h", "path": path, "prune": true, "wait": name != PARENT, "timeout": "5m",
            "targetNamespace": target, "sourceRef": {"kind": "GitRepository", "name": SOURCE},
        },
    })
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

/// Defines the kinds, and waits until they are served.
async fn define(cluster: &LiveCluster) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for (group, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let name = format!("{}.{group}", resource.plural);
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": resource.plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": any},
                }],
            },
        });
        cluster
            .kubectl_with_input(&["apply", "-f", "-"], &definition.to_string())
            .await
            .expect("a definition");
        let definition = format!("crd/{name}");
        cluster.kubectl(&["wait", "--for=condition=Established", &definition]).await.expect("it is served");
    }
}

// ---- the source ----

/// Files, and a server of the archives that were made of them.
struct ArchiveSource {
    folder: PathBuf,
    address: String,
}

struct SourceArchive {
    revision: String,
    url: String,
    digest: String,
    size: usize,
}

impl ArchiveSource {
    async fn serve(folder: PathBuf) -> Self {
        fs::create_dir_all(folder.join("archives")).expect("a folder");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().route("/{name}", get(answer)).with_state(folder.join("archives"));
        tokio::spawn(async { axum::serve(listener, router).await });
        Self { folder, address }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.join("tree").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn pack(&self, revision: &str) -> SourceArchive {
        let name = format!("{revision}.tar.gz");
        let path = self.folder.join("archives").join(&name);
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&path).arg("-C").arg(self.folder.join("tree")).arg(".");
        assert!(tar.status().expect("tar").success(), "an archive");
        let bytes = fs::read(&path).expect("an archive");
        SourceArchive {
            revision: revision.to_owned(),
            url: format!("{}/{name}", self.address),
            digest: format!("sha256:{}", hex::encode(Sha256::digest(&bytes))),
            size: bytes.len(),
        }
    }
}

async fn answer(
    State(archives): State<PathBuf>,
    extract::Path(name): extract::Path<String>,
) -> Result<Vec<u8>, StatusCode> {
    tokio::fs::read(archives.join(name)).await.map_err(|_| StatusCode::NOT_FOUND)
}
