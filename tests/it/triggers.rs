//! From deliveries of Drone and Woodpecker to one changed line of a file, and pipeline steps that call a trigger.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tower::ServiceExt as _;
use tutti::api::{HookReceiver, HooksState, hooks_router, serve};
use tutti::fleet::{Fleet, assemble};
use tutti::forge::WebhookHint;
use tutti::manifest;
use tutti::metrics::Metrics;
use tutti::model::{Snapshot, WebhookReceiverKind};
use tutti::trigger::evaluate_delivery;

use crate::support::ci::CiBuild;
use crate::support::program::{output_text, tutti};

const SECRET: &str = "GMEuUHQfmrMRsseWxi9YlIeBtn9lm6im";
const INSTANCE: &str = "apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec:
  receivers:
  - {name: drone, type: drone, secrets: [{env: TUTTI_SECRET_DRONE}]}
  - {name: steps, type: woodpecker, secrets: [{env: TUTTI_SECRET_STEPS}]}
";
const RINGS: &str = "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec: {rings: [{name: test, clusters: {names: [bj1]}}, {name: prod, clusters: {names: [sh1]}}]}
";
const PAY: &str = "apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {name: pay, namespace: shop}
spec:
  workloadType: deployment
  developLanguage: python
  runType: worker
  # By CI, do not touch.
  image: registry.example.com/shop/pay:1.7.3  # of the shop
";
const TRIGGERS: &str = r#"apiVersion: tutti.dev/v1alpha1
kind: Trigger
metadata: {name: of-drone}
spec:
  receiver: drone
  match: {event: build, action: updated, build.status: success, build.event: [tag, promote], repo.slug: shop/*}
  set: {app: "{{ repo.name }}", version: "{{ build.ref | strip_ref }}", ring: "{{ build.deploy_to | default('test') }}"}
---
apiVersion: tutti.dev/v1alpha1
kind: Trigger
metadata: {name: of-steps}
spec:
  receiver: steps
  match: {CI_PIPELINE_STATUS: success, CI_COMMIT_TAG: "*"}
  set: {app: shop/pay, image: "registry.example.com/{{ CI_REPO }}:{{ CI_COMMIT_TAG }}", file: app.yaml, field: spec.image}
"#;

fn trigger_repository() -> (Fleet, Snapshot) {
    let snapshot = Snapshot::of_texts([
        ("tutti.yaml", INSTANCE),
        ("rings.yaml", RINGS),
        ("apps/pay/app.yaml", PAY),
        ("apps/pay/pins/test.yaml", "# of test\nversion: 1.7.3\n"),
        ("triggers/ci.yaml", TRIGGERS),
    ]);
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    assert_eq!(fleet.triggers.len(), 2, "{:?}", fleet.diagnostics);
    (fleet, snapshot)
}

/// The hint that a receiver reads from a delivery.
async fn receive_delivery(
    receiver: &str,
    (headers, body): (Vec<(&'static str, String)>, String),
) -> WebhookHint {
    let (sender, mut hints) = mpsc::channel(1);
    let state = HooksState::new(sender, Metrics::default());
    let of = |name: &str, kind| HookReceiver {
        name: name.to_owned(),
        kind,
        secrets: vec![SecretString::from(SECRET)],
    };
    state.set_receivers([
        of("drone", WebhookReceiverKind::Drone),
        of("steps", WebhookReceiverKind::Woodpecker),
    ]);
    let mut request = Request::post(format!("/hooks/v1/{receiver}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Body::from(body)).expect("a request");
    let response = hooks_router(state).oneshot(request).await.expect("infallible");
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    hints.try_recv().expect("a hint")
}

#[tokio::test]
async fn drone_build_changes_the_pin_of_a_ring() {
    let (fleet, snapshot) = trigger_repository();
    let made = async |build: &CiBuild, action: &str| {
        let hint = receive_delivery("drone", build.drone(action, SECRET)).await;
        let payload = hint.payload.expect("a payload");
        evaluate_delivery(&hint.receiver, &payload, &fleet, &snapshot)
    };
    let tag = CiBuild::of_tag("shop/pay", 12, "1.8.0");
    let outcome = made(&tag, "updated").await.remove(0).expect("an outcome");
    let edited = outcome.edited_file(snapshot.text(&outcome.file)).expect("an edit");
    assert_eq!(edited, "# of test\nversion: 1.8.0\n");
    assert_eq!(outcome.reason, "trigger of-drone of receiver drone, for shop/pay at 3f9c2d1");
    let promotion = CiBuild { event: "promote".to_owned(), target: Some("prod".to_owned()), ..tag.clone() };
    let outcome = made(&promotion, "updated").await.remove(0).expect("an outcome");
    assert_eq!((outcome.file.as_str(), outcome.from), ("apps/pay/pins/prod.yaml", None));
    for other in [
        CiBuild { status: "failure".to_owned(), ..tag.clone() },
        CiBuild { event: "push".to_owned(), reference: "refs/heads/main".to_owned(), ..tag.clone() },
        CiBuild { repository: "other/pay".to_owned(), ..tag.clone() },
    ] {
        assert_eq!(made(&other, "updated").await, [], "{other:?}");
    }
    assert_eq!(made(&tag, "created").await, []);
    let unknown = CiBuild { target: Some("../../x".to_owned()), event: "promote".to_owned(), ..tag };
    let error = made(&unknown, "updated").await.remove(0).expect_err("no such ring");
    assert!(error.to_string().contains("`ring` is"), "{error}");
}

#[tokio::test]
async fn woodpecker_step_changes_one_image_only() {
    let (fleet, snapshot) = trigger_repository();
    let hint = receive_delivery("steps", CiBuild::of_tag("shop/pay", 7, "1.8.0").woodpecker(SECRET)).await;
    let payload = hint.payload.expect("a payload");
    let outcome = evaluate_delivery("steps", &payload, &fleet, &snapshot).remove(0).expect("an outcome");
    let edited = outcome.edited_file(snapshot.text(&outcome.file)).expect("an edit");
    assert_eq!(edited, PAY.replace("pay:1.7.3", "pay:1.8.0"));
    let commit = outcome.commit.expect("a commit");
    assert_eq!((commit.message.as_deref(), commit.author.as_deref()), (Some("Release 1.8.0"), Some("li")));
}

/// Request and result of a pipeline step.
async fn run_pipeline_step(variables: BTreeMap<&'static str, String>) -> (Value, (String, String, i32)) {
    let (sender, mut sent) = mpsc::channel::<Bytes>(1);
    let answer = async move |body: Bytes| {
        sender.send(body).await.expect("somebody listens");
        json!({"result": "unchanged", "app": "shop/pay", "version": "1.8.0", "from": "1.8.0", "to": "1.8.0", "file": "f"})
            .to_string()
    };
    let router = Router::new().route("/api/v1/triggers/release", axum::routing::post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(serve(listener, router, std::future::pending()));
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tutti(folder.path());
    let ours =
        |name: &str| ["DRONE_", "CI_", "GITHUB_", "PLUGIN_", "INPUT_"].iter().any(|it| name.starts_with(it));
    std::env::vars().filter(|(name, _)| ours(name)).for_each(|(name, _)| _ = command.env_remove(name));
    command.arg("ci").envs(variables).env("PLUGIN_SERVER", address).env("PLUGIN_TOKEN", "0123456789abcdef");
    command.env("PLUGIN_TRIGGER", "release").env("PLUGIN_APP", "shop/pay");
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    server.abort();
    let body = sent.try_recv().expect("a call");
    (serde_json::from_slice(&body).expect("JSON"), output_text(&output.expect("no panic").expect("it runs")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_drone_and_woodpecker_call_a_trigger() {
    let build = CiBuild::of_tag("shop/pay", 12, "1.8.0");
    for variables in [build.drone_step(), build.woodpecker_step()] {
        let (payload, (said, told, code)) = run_pipeline_step(variables).await;
        assert_eq!((said.as_str(), code), ("unchanged: shop/pay 1.8.0 → 1.8.0 (f)\n", 0), "{told}");
        assert_eq!((&payload["version"], &payload["tag"]), (&json!("1.8.0"), &json!("1.8.0")));
        assert_eq!(payload["commit"]["sha"], build.commit);
        assert_eq!(payload["build"]["number"], "12");
    }
}
