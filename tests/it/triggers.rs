//! From what Drone and Woodpecker send to one changed line of a file.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tower::ServiceExt as _;
use tutti::api::{HooksState, Receiver, hooks_router};
use tutti::fleet::{Fleet, assemble};
use tutti::forge::Hint;
use tutti::manifest;
use tutti::metrics::Metrics;
use tutti::model::{ReceiverKind, Snapshot};
use tutti::trigger::evaluate_delivery;

use crate::support::ci::Build;

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

fn repository() -> (Fleet, Snapshot) {
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

/// What a receiver makes of a delivery.
async fn received(receiver: &str, (headers, body): (Vec<(&'static str, String)>, String)) -> Hint {
    let (sender, mut hints) = mpsc::channel(1);
    let state = HooksState::new(sender, Metrics::default());
    let of = |name: &str, kind| Receiver {
        name: name.to_owned(),
        kind,
        secrets: vec![SecretString::from(SECRET)],
    };
    state.set_receivers([of("drone", ReceiverKind::Drone), of("steps", ReceiverKind::Woodpecker)]);
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
async fn build_of_drone_changes_the_pin_of_a_ring() {
    let (fleet, snapshot) = repository();
    let made = async |build: &Build, action: &str| {
        let hint = received("drone", build.drone(action, SECRET)).await;
        let payload = hint.payload.expect("a payload");
        evaluate_delivery(&hint.receiver, &payload, &fleet, &snapshot)
    };
    let tag = Build::of_tag("shop/pay", 12, "1.8.0");
    let outcome = made(&tag, "updated").await.remove(0).expect("an outcome");
    let edited = outcome.edited(snapshot.text(&outcome.file)).expect("an edit");
    assert_eq!(edited, "# of test\nversion: 1.8.0\n");
    assert_eq!(outcome.reason, "trigger of-drone of receiver drone, for shop/pay at 3f9c2d1");
    let promotion = Build { event: "promote".to_owned(), target: Some("prod".to_owned()), ..tag.clone() };
    let outcome = made(&promotion, "updated").await.remove(0).expect("an outcome");
    assert_eq!((outcome.file.as_str(), outcome.from), ("apps/pay/pins/prod.yaml", None));
    for other in [
        Build { status: "failure".to_owned(), ..tag.clone() },
        Build { event: "push".to_owned(), reference: "refs/heads/main".to_owned(), ..tag.clone() },
        Build { repository: "other/pay".to_owned(), ..tag.clone() },
    ] {
        assert_eq!(made(&other, "updated").await, [], "{other:?}");
    }
    assert_eq!(made(&tag, "created").await, []);
    let unknown = Build { target: Some("../../x".to_owned()), event: "promote".to_owned(), ..tag };
    let error = made(&unknown, "updated").await.remove(0).expect_err("no such ring");
    assert!(error.to_string().contains("`ring` is"), "{error}");
}

#[tokio::test]
async fn step_of_woodpecker_changes_an_image_and_no_other_byte() {
    let (fleet, snapshot) = repository();
    let hint = received("steps", Build::of_tag("shop/pay", 7, "1.8.0").woodpecker(SECRET)).await;
    let payload = hint.payload.expect("a payload");
    let outcome = evaluate_delivery("steps", &payload, &fleet, &snapshot).remove(0).expect("an outcome");
    let edited = outcome.edited(snapshot.text(&outcome.file)).expect("an edit");
    assert_eq!(edited, PAY.replace("pay:1.7.3", "pay:1.8.0"));
    let commit = outcome.commit.expect("a commit");
    assert_eq!((commit.message.as_deref(), commit.author.as_deref()), (Some("Release 1.8.0"), Some("li")));
}
