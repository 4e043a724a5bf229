//! Bounds of response bodies.

use std::convert::Infallible;
use std::pin::pin;

use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::json;
use tower::ServiceExt as _;

use super::super::{Client, ClusterLink};
use super::*;

/// The length of a response in these pieces, or the error.
async fn read(path: &str, status: u16, pieces: Vec<Vec<u8>>) -> Result<usize, String> {
    let bounds = ResponseBounds::new(ClusterName::from("one"));
    let pieces = Mutex::new(Some(pieces));
    let server = tower::service_fn(move |_: Request<Body>| {
        let pieces = pieces.lock().take().unwrap_or_default();
        let frames = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let mut answer = Response::new(StreamBody::new(futures::stream::iter(frames)));
        *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
        async { Ok::<_, Infallible>(answer) }
    });
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = bounds.layer(server).oneshot(request).await.expect("an answer");
    answer.into_body().collect().await.map(|body| body.to_bytes().len()).map_err(|error| error.to_string())
}

async fn check(path: &str, status: u16, bytes: usize, expected: &str) {
    let whole = vec![b'0'; bytes / 2];
    assert_eq!(read(path, status, vec![whole.clone(), whole.clone()]).await, Ok(bytes), "{path}");
    let error = read(path, status, vec![whole.clone(), whole, b"0".to_vec()]).await;
    assert_eq!(error, Err(expected.to_owned()));
}

#[tokio::test]
async fn response_bound_depends_on_the_request() {
    check("/version", 200, VERSION, "its answer to GET /version is longer than 64 KiB").await;
    check("/apis", 200, DISCOVERY, "its answer to GET /apis is longer than 8 MiB").await;
    check("/api/v1", 200, DISCOVERY, "its answer to GET /api/v1 is longer than 8 MiB").await;
    check("/api/v1/pods?limit=5", 200, PAGE, "its answer to GET /api/v1/pods is longer than 16 MiB").await;
    let path = "/apis/apps/v1/namespaces/a/deployments";
    check(path, 200, PAGE, &format!("its answer to GET {path} is longer than 16 MiB")).await;
    check(path, 500, ERROR, &format!("its answer 500 to GET {path} is longer than 64 KiB")).await;
    let path = "/api/v1/namespaces/a";
    check(path, 200, OBJECT, &format!("its answer to GET {path} is longer than 4 MiB")).await;
}

#[tokio::test]
async fn watch_is_unbounded_and_its_events_are_bounded() {
    let path = "/api/v1/pods?limit=5&watch=true";
    let line = [vec![b'0'; OBJECT - 1], vec![b'\n']].concat();
    let all = OBJECT * 9;
    assert_eq!(read(path, 200, vec![line; 9]).await, Ok(all));
    let error = read(path, 200, vec![vec![b'0'; OBJECT], b"0".to_vec()]).await;
    assert_eq!(error, Err("an event of its watch /api/v1/pods is longer than 4 MiB".to_owned()));
}

/// A response holds its room while another waits.
#[tokio::test(start_paused = true)]
async fn response_without_room_waits_and_fails() {
    let bounds = ResponseBounds::new(ClusterName::from("one"));
    // Parsed, half of what one cluster may take.
    let page = [b"[".as_slice(), &b"{\"a\":1},".repeat(OF_ONE_CLUSTER / 2 / 549)].concat();
    let server = tower::service_fn(move |_: Request<Body>| {
        let body = Full::new(Bytes::from(page.clone()));
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let ask = async || {
        let request = Request::get("/api/v1/pods").body(Body::empty()).expect("a request");
        bounds.layer(server.clone()).oneshot(request).await.expect("an answer").into_body()
    };
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut body = ask().await;
        body.frame().await.expect("a frame").expect("room");
        held.push(body);
    }
    let start = Instant::now();
    let error = ask().await.collect().await.expect_err("no room").to_string();
    assert_eq!(
        error,
        "its answer to GET /api/v1/pods does not fit in memory: its answers under way take 128 MiB"
    );
    assert_eq!(start.elapsed().as_secs(), ROOM_TIMEOUT.as_secs());
    let waiting = ask().await;
    let mut waiting = pin!(waiting.collect());
    let soon = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
    soon.expect_err("it waits");
    held.pop();
    waiting.await.expect("room");
}

#[tokio::test]
async fn answer_keeps_its_room_until_it_was_read() {
    let memory = 16 * MIB;
    let object = Bytes::from([b"[".as_slice(), &b"{\"a\":1},".repeat(memory / 500)].concat());
    let server = tower::service_fn(move |_: Request<Body>| {
        let body = Full::new(object.clone());
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let client =
        Client::connect(ClusterName::from("one"), &ClusterLink::in_process(server)).await.expect("a client");
    let read = async {
        let request = Request::get("/api/v1/namespaces/a/configmaps/b").body(Vec::new()).expect("a request");
        client.kube().request_text(request).await?;
        // The text has arrived and is not parsed yet.
        Ok(BUDGET.taken())
    };
    let taken = client.with_timeout("read", read).await.expect("an answer");
    assert!(taken >= memory, "{taken}");
}

/// As many as one request lists, each with the size of those in a service mesh.
#[tokio::test]
async fn usual_pods_fit_into_a_page() {
    let fields: serde_json::Map<_, _> = (0..250).map(|it| (format!("f:field-{it}"), json!({}))).collect();
    let entry = json!({"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": fields}});
    let env: Vec<_> =
        (0..60).map(|it| json!({"name": format!("VARIABLE_{it}"), "value": "a value of it"})).collect();
    let container = json!({"name": "web", "image": "registry.example.com/web:1.2.3", "env": env});
    let pod = json!({"metadata": {"name": "web", "managedFields": [entry]}, "spec": {"containers": [container, container]}});
    let list = json!({"kind": "PodList", "items": vec![pod; 500]}).to_string().into_bytes();
    assert!(list.len() > 4 * MIB, "{}", list.len());
    read("/api/v1/namespaces/shop/pods?limit=500", 200, vec![list]).await.expect("a page");
}

#[test]
fn bound_is_found_below_other_errors() {
    let error = kube::Error::Service(Box::new(OverBound::new("too much")));
    let error = kube::Error::ReadEvents(std::io::Error::other(error));
    assert_eq!(OverBound::find_in(&error), Some(&OverBound::new("too much")));
    assert_eq!(OverBound::find_in(&std::io::Error::other("else")), None);
}
