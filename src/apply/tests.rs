//! Cancelled steps stop before their next write, and another object of the name is never written.

use std::time::Duration;

use sandbox::{Sandbox, SandboxOptions};
use serde_json::json;

use super::*;
use crate::cluster::{ClusterLink, WritePermit};
use crate::model::{ClusterName, GroupVersionKind, labels};

const LATENCY: Duration = Duration::from_secs(1);

/// A cluster with one ConfigMap.
struct Case {
    sandbox: Sandbox,
    client: Client,
    resource: Resource,
    id: ObjectId,
    live: Value,
}

fn config_map(value: &str) -> Value {
    let metadata = json!({"name": "web", "namespace": "default", "labels": {(labels::MANAGED_BY): "main", "app": "web"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "metadata": metadata, "data": {"value": value}})
}

impl Case {
    async fn new(is_ours: bool) -> Self {
        let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
        let link = ClusterLink::in_process(sandbox.service());
        let client = Client::connect(ClusterName::from("bj1"), &link).await.expect("a connection");
        let catalog = client.discover().await.expect("a catalog");
        let resource =
            catalog.get(&GroupVersionKind::new("", "v1", "ConfigMap")).expect("ConfigMaps").clone();
        let id = ObjectId::new("", "ConfigMap", Some("default"), "web");
        let body = config_map("one");
        let live = if is_ours {
            client.apply(&resource, &id, &body, "tutti-main").await
        } else {
            client.create(&resource, &id, &body, "kubectl-create", false).await
        };
        let live = live.expect("written");
        sandbox.reset_requests();
        sandbox.set_latency(LATENCY);
        Self { sandbox, client, resource, id, live }
    }

    /// Cancelled while the request of this number is in flight.
    fn cancelled_at(&self, request: u32) -> CancellationToken {
        let token = CancellationToken::new();
        let later = token.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATENCY * (request - 1) + LATENCY / 2).await;
            later.cancel();
        });
        token
    }

    fn requests(&self) -> Vec<String> {
        let words = |dry_run: bool| if dry_run { "try to " } else { "" };
        self.sandbox.requests().iter().map(|it| format!("{}{}", words(it.dry_run), it.verb)).collect()
    }

    async fn replaced(&self, cancelled: &CancellationToken) -> Result<DeleteOutcome, Error> {
        let (body, uid) = (config_map("two"), self.live["metadata"]["uid"].as_str().expect("a uid"));
        replace::delete_for_replacement(
            &self.client,
            &self.resource,
            "tutti-main",
            &self.id,
            &body,
            uid,
            cancelled,
        )
        .await
    }

    async fn taken(&self, cancelled: &CancellationToken) -> Result<Value, Error> {
        let (manager, body) = ("tutti-main", &config_map("one"));
        let Self { client, resource, id, .. } = self;
        Adoption { client, resource, manager, id, body }.run(cancelled).await
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_replacement_deletes_nothing() {
    for request in [1, 2] {
        let case = Case::new(true).await;
        let result = case.replaced(&case.cancelled_at(request)).await;
        assert!(matches!(result, Err(Error::Superseded { .. })), "{result:?}");
        assert_eq!(case.requests(), ["get", "try to create"]);
    }
    let case = Case::new(true).await;
    let result = case.replaced(&CancellationToken::new()).await;
    assert!(matches!(result, Ok(DeleteOutcome::Accepted)), "{result:?}");
    assert_eq!(case.requests(), ["get", "try to create", "delete"]);
}

#[tokio::test(start_paused = true)]
async fn recreated_object_is_a_conflict() {
    let case = Case::new(true).await;
    let Case { client, resource, id, .. } = &case;
    let uid = "00000000-0000-0000-0000-000000000009";
    let mut body = config_map("one");
    body["metadata"]["uid"] = uid.into();
    body["metadata"]["labels"]["app"] = "other".into();
    let applied = client.apply(resource, id, &body, "tutti-main").await;
    let metadata = json!({"uid": uid, "labels": {"app": "other"}});
    let merged = client.set_metadata(resource, id, &metadata, "tutti-main").await;
    for result in [applied, merged] {
        assert!(matches!(result, Err(Error::Rejected { code: 409, .. })), "{result:?}");
    }
    assert_eq!(client.get(resource, id).await.expect("an answer"), Some(case.live));
}

#[tokio::test(start_paused = true)]
async fn cancelled_takeover_is_completed_by_the_next() {
    const WHOLE: [&str; 3] = ["get", "patch", "apply"];
    for request in [1, 2] {
        let case = Case::new(false).await;
        let result = case.taken(&case.cancelled_at(request)).await;
        assert!(matches!(result, Err(Error::Superseded { .. })), "{result:?}");
        assert_eq!(case.requests(), WHOLE[..request as usize]);
        let live = case.taken(&CancellationToken::new()).await.expect("taken over");
        let managers: Vec<&str> = managed_fields::managed_entries(&live)
            .iter()
            .map(|it| managed_fields::entry_text(it, "manager"))
            .collect();
        assert_eq!(managers, ["tutti-main"]);
    }
    let case = Case::new(false).await;
    case.taken(&CancellationToken::new()).await.expect("taken over");
    assert_eq!(case.requests(), WHOLE);
}

#[tokio::test(start_paused = true)]
async fn object_without_entries_is_dry_run_first() {
    const WHOLE: [&str; 4] = ["get", "try to apply", "patch", "apply"];
    let untracked = async || {
        let case = Case::new(false).await;
        case.sandbox.set_latency(Duration::ZERO);
        let nobody = json!({"managedFields": [{}]});
        case.client.set_metadata(&case.resource, &case.id, &nobody, "kubectl-edit").await.expect("written");
        case.sandbox.set_latency(LATENCY);
        case.sandbox.reset_requests();
        case
    };
    for request in [1, 2, 3] {
        let case = untracked().await;
        let result = case.taken(&case.cancelled_at(request)).await;
        assert!(matches!(result, Err(Error::Superseded { .. })), "{result:?}");
        let expected = WHOLE.iter().take(if request == 3 { 3 } else { 2 });
        assert_eq!(case.requests(), expected.copied().collect::<Vec<_>>());
        let live = case.taken(&CancellationToken::new()).await.expect("taken over");
        let managers: Vec<&str> = managed_fields::managed_entries(&live)
            .iter()
            .map(|it| managed_fields::entry_text(it, "manager"))
            .collect();
        assert_eq!(managers, ["tutti-main"]);
    }
    let case = untracked().await;
    case.taken(&CancellationToken::new()).await.expect("taken over");
    assert_eq!(case.requests(), WHOLE);
}

#[tokio::test(start_paused = true)]
async fn revoked_permit_sends_no_write() {
    let case = Case::new(true).await;
    let Case { client, live, .. } = &case;
    let catalog = client.discover().await.expect("a catalog");
    let text = |field: &str| live["metadata"][field].as_str().expect("text").to_owned();
    let candidate = PruneCandidate {
        app: crate::model::AppId::new("default", "web"),
        cluster: ClusterName::from("bj1"),
        object: case.id.clone(),
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        keep: false,
        wave: Default::default(),
        is_ended_run: false,
        claims_go_along: false,
        contents: Vec::new(),
    };
    case.sandbox.reset_requests();
    let permit = WritePermit::default();
    let task = permit.child().task_token();
    permit.revoke();
    let results = [
        case.taken(&task).await.map(|_| ()),
        case.replaced(&task).await.map(|_| ()),
        delete_candidate(client, &catalog, &candidate, &task).await.map(|_| ()),
        release::release_object(client, &catalog, "tutti-main", &candidate, live, &task).await,
    ];
    for result in results {
        assert!(matches!(result, Err(Error::Superseded { .. })), "{result:?}");
    }
    let written = case.sandbox.requests().into_iter().find(sandbox::RequestRecord::is_write);
    assert_eq!(written, None);
    let task = WritePermit::default().task_token();
    let deleted = delete_candidate(client, &catalog, &candidate, &task).await;
    assert!(matches!(deleted, Ok(DeleteOutcome::Accepted)), "{deleted:?}");
}
