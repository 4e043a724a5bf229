use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::client::Body;
use kube::core::GroupVersionKind;
use parking_lot::Mutex;
use serde_json::{Value, json};

use tower::BoxError;

use super::super::object::MetadataObject;
use super::*;

/// One response of a server.
#[derive(Clone)]
struct Answer {
    code: u16,
    lines: Vec<Value>,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The regular end.
    Clean,
    /// The connection breaks.
    Cut,
    /// It is too large.
    TooLarge,
    /// Other responses leave no room.
    Crowded,
    /// Nothing more arrives.
    Silence,
    /// The regular end, some minutes later.
    Late,
}

fn answer(lines: &[Value], end: End) -> Answer {
    Answer { code: 200, lines: lines.to_vec(), end }
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "reason": "No", "message": message, "code": code})
}

fn refused(code: u16) -> Answer {
    Answer { code, lines: vec![status(code, "no")], end: End::Clean }
}

fn event(kind: &str, name: &str, version: u64) -> Value {
    json!({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version.to_string()}}})
}

fn bookmark(version: u64, is_end: bool) -> Value {
    let mut event = event("BOOKMARK", "", version);
    event["object"]["apiVersion"] = json!("v1");
    event["object"]["kind"] = json!("ConfigMap");
    if is_end {
        event["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event
}

fn page(names: &[&str], version: &str, token: &str) -> Answer {
    let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    let metadata = json!({"resourceVersion": version, "continue": token});
    answer(&[json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items})], End::Clean)
}

/// The page size while no page is too large.
const PAGE_OF_TEST: u32 = 4;

/// A server with these responses in order, and none afterwards.
struct Server {
    answers: Mutex<VecDeque<Answer>>,
    /// Repeated for every page request, once set.
    page: Mutex<Option<Answer>>,
    asked: Mutex<Vec<String>>,
    streams: Arc<StreamSupport>,
}

impl Server {
    fn new(answers: &[Answer]) -> Arc<Self> {
        let answers = Mutex::new(answers.iter().cloned().collect());
        let (asked, page) = (Mutex::default(), Mutex::default());
        Arc::new(Self { answers, page, asked, streams: Arc::default() })
    }

    fn watch(self: &Arc<Self>) -> BoxStream<'static, WatchChange> {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let form = form_of(request.uri().query().unwrap_or_default());
            let page = server.page.lock().clone().filter(|_| form.starts_with("page"));
            server.asked.lock().push(form);
            let answer = page.or_else(|| server.answers.lock().pop_front());
            async move {
                let Some(answer) = answer else { return std::future::pending().await };
                let body = StreamBody::new(body_of(&answer));
                Ok::<_, Infallible>(Response::builder().status(answer.code).body(body).expect("a response"))
            }
        });
        let client = kube::Client::new(service, "default");
        let api = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let objects: Api<MetadataObject> = Api::all_with(client, &api);
        let wanted = WatchConfig {
            cluster: ClusterName::from("bj5"),
            labels: Some("a=b".to_owned()),
            page: PAGE_OF_TEST,
            longest_pause: LONGEST_PAUSE,
        };
        watch_changes(objects, api, wanted, Arc::clone(&self.streams)).boxed()
    }
}

fn body_of(answer: &Answer) -> BoxStream<'static, Result<Frame<Bytes>, BoxError>> {
    let lines: Vec<_> =
        answer.lines.iter().map(|line| Ok(Frame::data(Bytes::from(format!("{line}\n"))))).collect();
    let end = answer.end;
    let last = futures::stream::once(async move {
        match end {
            End::Clean => None,
            End::Cut => Some(Err(BoxError::from(io::Error::other("cut")))),
            End::TooLarge => Some(Err(OverBound::new("too large").into())),
            End::Crowded => Some(Err(OverBound::crowded("no room").into())),
            End::Silence => std::future::pending().await,
            End::Late => {
                tokio::time::sleep(Duration::from_secs(290)).await;
                None
            }
        }
    });
    futures::stream::iter(lines).chain(last.filter_map(std::future::ready)).boxed()
}

/// The kind of a request, by its query.
fn form_of(query: &str) -> String {
    let text = |name: &str| {
        let found = query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default().to_owned()
    };
    assert_eq!(text("labelSelector"), "a%3Db", "{query}");
    match (&*text("watch"), &*text("sendInitialEvents")) {
        ("true", "true") => {
            let asked = ["resourceVersion", "resourceVersionMatch", "allowWatchBookmarks"].map(text);
            assert_eq!(asked, ["", "NotOlderThan", "true"], "{query}");
            "stream".to_owned()
        }
        ("true", _) => format!("watch {}", text("resourceVersion")),
        _ => {
            assert_eq!(text("resourceVersion"), "", "{query}");
            let fewer = if text("limit") == PAGE_OF_TEST.to_string() { "" } else { "of fewer " };
            format!("page {fewer}{}", text("continue")).trim().to_owned()
        }
    }
}

fn told(change: &WatchChange) -> String {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match change {
        WatchChange::ListStarted => "listing".to_owned(),
        WatchChange::Updated(object) => format!("seen {}", name(object)),
        WatchChange::Removed(object) => format!("left {}", name(object)),
        WatchChange::ListEnded { .. } => "listed".to_owned(),
        WatchChange::Disconnected(why) => format!("broken: {why}"),
        WatchChange::WatchLost { why, .. } => format!("blind: {why}"),
        WatchChange::WatchRestored => "sees".to_owned(),
    }
}

/// Checks the changes and the requests for these responses.
async fn check(answers: &[Answer], expected: &[&str], asked: &[&str]) {
    let server = Server::new(answers);
    let mut changes = server.watch();
    let mut found = Vec::new();
    // Longer than any watch.
    while found.len() < expected.len()
        && let Ok(Some(change)) = tokio::time::timeout(Duration::from_secs(600), changes.next()).await
    {
        found.push(told(&change));
    }
    assert_eq!(found, expected);
    // The last request has no response, which is reported later.
    let mut patience = 600;
    while patience > 0 && server.asked.lock().len() < asked.len() {
        let more = tokio::time::timeout(Duration::from_secs(1), changes.next()).await;
        assert!(more.is_err(), "{more:?}");
        patience -= 1;
    }
    let more = tokio::time::timeout(ANSWER / 2, changes.next()).await;
    assert!(more.is_err(), "{more:?}");
    assert_eq!(*server.asked.lock(), asked);
}

const END: u64 = 5;

fn streamed(names: &[&str], rest: &[Value], end: End) -> Answer {
    let mut lines: Vec<Value> = names.iter().map(|name| event("ADDED", name, 3)).collect();
    lines.push(bookmark(END, true));
    lines.extend_from_slice(rest);
    answer(&lines, end)
}

#[tokio::test(start_paused = true)]
async fn streamed_list_continues_as_a_watch() {
    let rest = [event("MODIFIED", "a", 6), event("DELETED", "b", 7), bookmark(9, false)];
    check(
        &[streamed(&["a", "b"], &rest, End::Late), answer(&[event("ADDED", "c", 12)], End::Late)],
        &["listing", "seen a", "seen b", "listed", "seen a", "left b", "seen c"],
        &["stream", "watch 9", "watch 12"],
    )
    .await;
    // An object that is deleted during the list.
    let lines = [event("ADDED", "a", 3), event("DELETED", "a", 4), bookmark(4, false), bookmark(END, true)];
    check(&[answer(&lines, End::Late)], &["listing", "seen a", "left a", "listed"], &["stream", "watch 5"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_breaks_off_is_none() {
    let half = |end| answer(&[event("ADDED", "a", 3)], end);
    let gone = answer(
        &[event("ADDED", "a", 3), json!({"type": "ERROR", "object": status(410, "gone")})],
        End::Clean,
    );
    let all = streamed(&["a", "b"], &[], End::Silence);
    check(
        &[half(End::Cut), half(End::Clean), all.clone()],
        &[
            "listing",
            "seen a",
            "broken: cut",
            "listing",
            "seen a",
            "broken: it ended before it had sent all objects",
            "listing",
            "seen a",
            "seen b",
            "listed",
        ],
        &["stream", "stream", "stream", "watch 5"],
    )
    .await;
    check(
        &[gone, refused(503), all],
        &[
            "listing",
            "seen a",
            "broken: gone",
            "listing",
            "broken: no",
            "listing",
            "seen a",
            "seen b",
            "listed",
        ],
        &["stream", "stream", "stream", "watch 5"],
    )
    .await;
    // After several failures pages are used.
    check(
        &[half(End::Cut), half(End::Cut), half(End::Cut), page(&["a"], "4", "")],
        &[
            "listing",
            "seen a",
            "broken: cut",
            "listing",
            "seen a",
            "broken: cut",
            "listing",
            "seen a",
            "broken: cut",
            "listing",
            "seen a",
            "listed",
        ],
        &["stream", "stream", "stream", "page", "watch 4"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn failing_streamed_lists_fall_back_to_pages() {
    check(
        &[refused(500), refused(500), refused(500), page(&["a"], "4", "")],
        &[
            "listing",
            "broken: no",
            "listing",
            "broken: no",
            "listing",
            "broken: no",
            "listing",
            "seen a",
            "listed",
        ],
        &["stream", "stream", "stream", "page", "watch 4"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_none() {
    let server = Server::new(&[]);
    let start = Instant::now();
    let changes: Vec<String> = server.watch().take(2).map(|change| told(&change)).collect().await;
    assert_eq!(changes, ["listing", "broken: no answer within 120 s"]);
    assert_eq!(start.elapsed(), ANSWER);
}

#[tokio::test(start_paused = true)]
async fn immediately_ended_watch_counts_as_failed() {
    let answers = [streamed(&["a"], &[], End::Late), answer(&[bookmark(END, false)], End::Clean)];
    let expected = ["listing", "seen a", "listed", "broken: the server ended it at once"];
    check(&answers, &expected, &["stream", "watch 5", "watch 5"]).await;
}

#[tokio::test(start_paused = true)]
async fn unsupported_streamed_list_is_requested_once() {
    for code in [400, 422, 501] {
        let pages = [page(&["a", "b"], "4", "more"), page(&["c"], "4", "")];
        let server =
            Server::new(&[&[refused(code)], &pages[..], &[answer(&[], End::Silence)], &pages].concat());
        let expected = ["listing", "seen a", "seen b", "seen c", "listed"];
        for _ in 0..2 {
            let changes: Vec<String> = server.watch().take(5).map(|change| told(&change)).collect().await;
            assert_eq!(changes, expected);
            // The list is followed by a watch.
            server.answers.lock().retain(|answer| answer.end == End::Clean);
        }
        assert_eq!(*server.asked.lock(), ["stream", "page", "page more", "page", "page more"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_end_of_list_falls_back_to_pages() {
    let endless = answer(&[event("ADDED", "a", 3), bookmark(3, false)], End::Silence);
    let server = Server::new(&[endless, page(&["a", "b"], "4", "")]);
    let start = Instant::now();
    let changes: Vec<String> = server.watch().take(7).map(|change| told(&change)).collect().await;
    let broken = "broken: the server did not confirm that it had sent all objects";
    assert_eq!(changes, ["listing", "seen a", broken, "listing", "seen a", "seen b", "listed"]);
    assert!(start.elapsed() < Duration::from_secs(11), "{:?}", start.elapsed());
    assert_eq!(*server.asked.lock(), ["stream", "page"]);
}

#[tokio::test(start_paused = true)]
async fn missing_watch_right_is_reported() {
    let server = Server::new(&[&[refused(403), page(&["a"], "4", "")][..], &vec![refused(403); 7]].concat());
    let changes: Vec<String> = server.watch().take(10).map(|change| told(&change)).collect().await;
    let expected = [&["listing", "seen a", "listed"][..], &["broken: no"; 6], &["blind: no"]].concat();
    assert_eq!(changes, expected);
    assert_eq!(*server.asked.lock(), [&["stream", "page"][..], &["watch 4"; 7]].concat());
    // Neither right.
    check(
        &[refused(403), refused(403)],
        &["listing", "broken: no", "listing"],
        &["stream", "page", "stream"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_replaced_by_lists() {
    let pages = || page(&["a"], "4", "");
    let watches = [&vec![refused(503); 5][..], &[refused(403), answer(&[], End::Cut)]].concat();
    let server = Server::new(&[&[refused(501), pages()][..], &watches].concat());
    let mut changes = server.watch();
    let mut next = async || told(&changes.next().await.expect("it goes on"));
    for expected in [&["listing", "seen a", "listed"][..], &["broken: no"; 6], &["blind: cut"]].concat() {
        assert_eq!(next().await, expected);
    }
    // The next request has no response; it times out when the next list is due.
    *server.page.lock() = Some(pages());
    let start = Instant::now();
    let mut until_listed = async || {
        let mut before = Vec::new();
        loop {
            match next().await {
                told if told == "listed" => break before,
                told => before.push(told),
            }
        }
    };
    let late = "broken: no answer within 120 s";
    assert_eq!(until_listed().await, [late, late, "listing", "seen a"]);
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(300) && took < Duration::from_secs(400), "{took:?}");
    // A silent watch neither.
    let silent = || answer(&[], End::Silence);
    server.answers.lock().extend([silent(), silent()]);
    let start = Instant::now();
    assert_eq!(until_listed().await, ["listing", "seen a"]);
    assert!(start.elapsed() < Duration::from_secs(400), "{:?}", start.elapsed());
    server.answers.lock().clear();
    server.answers.lock().push_back(answer(&[bookmark(9, false)], End::Silence));
    assert_eq!(next().await, "sees");
}

#[tokio::test(start_paused = true)]
async fn crowded_budget_shrinks_pages_only_briefly() {
    let crowded = || answer(&[], End::Crowded);
    let pages = [page(&["a"], "4", "more"), page(&["b"], "4", "last"), page(&["c"], "4", "")];
    let [first, second, third] = pages;
    let all = ["listing", "seen a", "seen b", "seen c", "listed"];
    check(
        &[refused(422), crowded(), first.clone(), second.clone(), crowded(), third.clone()],
        &all,
        &["stream", "page", "page", "page more", "page last", "page last", "watch 4"],
    )
    .await;
    // After repeated failures smaller pages fit sooner.
    check(
        &[refused(422), crowded(), crowded(), first, second, third],
        &all,
        &["stream", "page", "page", "page of fewer", "page more", "page last", "watch 4"],
    )
    .await;
    // One object does not fit either: everything is listed again.
    let again = [&[refused(422)][..], &vec![crowded(); 6], &[page(&["a"], "4", "")]].concat();
    let fewer = "page of fewer";
    check(
        &again,
        &["listing", "broken: no room", "listing", "seen a", "listed"],
        &["stream", "page", "page", fewer, fewer, fewer, fewer, fewer, "watch 4"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn too_large_page_shrinks_until_the_list_ends() {
    let server = Server::new(&[
        refused(422),
        answer(&[], End::TooLarge),
        page(&["a"], "4", "more"),
        page(&["b"], "4", ""),
        refused(410),
        page(&["a"], "6", ""),
    ]);
    let changes: Vec<String> = server.watch().take(8).map(|change| told(&change)).collect().await;
    let first = ["listing", "seen a", "seen b", "listed"];
    assert_eq!(changes, [&first[..], &["broken: no", "listing", "seen a", "listed"]].concat());
    let asked = ["stream", "page", "page of fewer", "page of fewer more", "watch 4", "page"];
    assert_eq!(*server.asked.lock(), asked);
}

#[tokio::test(start_paused = true)]
async fn expired_version_is_listed_again() {
    let gone = json!({"type": "ERROR", "object": status(410, "gone")});
    let all = streamed(&["a"], &[], End::Silence);
    let again = ["listing", "seen a", "listed", "broken: gone", "listing", "seen a", "listed"];
    check(
        &[streamed(&["a"], std::slice::from_ref(&gone), End::Clean), all.clone()],
        &again,
        &["stream", "stream", "watch 5"],
    )
    .await;
    // Before the response begins, and between two pages.
    let server = Server::new(&[
        refused(422),
        page(&["a"], "4", "more"),
        refused(410),
        page(&["a"], "4", ""),
        refused(410),
        page(&["a"], "6", ""),
    ]);
    let changes: Vec<String> = server.watch().take(10).map(|change| told(&change)).collect().await;
    let expected = [
        "listing",
        "seen a",
        "broken: no",
        "listing",
        "seen a",
        "listed",
        "broken: no",
        "listing",
        "seen a",
        "listed",
    ];
    assert_eq!(changes, expected);
    assert_eq!(*server.asked.lock(), ["stream", "page", "page more", "page", "watch 4", "page"]);
}

#[tokio::test(start_paused = true)]
async fn errors_at_one_place_end_in_a_list() {
    let error = answer(&[json!({"type": "ERROR", "object": status(500, "no key")})], End::Clean);
    let answers = [
        streamed(&["a"], &[], End::Late),
        error.clone(),
        error.clone(),
        error,
        streamed(&["a"], &[], End::Silence),
    ];
    let broken = "broken: no key";
    check(
        &answers,
        &["listing", "seen a", "listed", broken, broken, broken, "listing", "seen a", "listed"],
        &["stream", "watch 5", "watch 5", "watch 5", "stream", "watch 5"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn immediately_ended_watch_backs_off() {
    let all = streamed(&["a"], &[], End::Late);
    let empty = answer(&[], End::Clean);
    let server = Server::new(&[&[all], &vec![empty; 40][..]].concat());
    let start = Instant::now();
    let mut changes = server.watch().skip(3);
    for number in 0..8 {
        let what = if number == 6 { "blind" } else { "broken" };
        let told = changes.next().await.as_ref().map(told).expect("a change");
        assert_eq!(told, format!("{what}: the server ended it at once"));
    }
    // 290 s of the first, then 0.5, 1, 2, 4, 8, 16, 30 s.
    assert_eq!(start.elapsed().as_millis(), 290_000 + 61_500);
}

#[tokio::test(start_paused = true)]
async fn interrupted_watch_continues_at_its_version() {
    let rest = [event("MODIFIED", "a", 6)];
    let next = [event("MODIFIED", "a", 7)];
    check(
        &[
            streamed(&["a"], &rest, End::Cut),
            answer(&next, End::Cut),
            refused(500),
            answer(&[], End::Silence),
        ],
        &["listing", "seen a", "listed", "seen a", "broken: cut", "seen a", "broken: cut", "broken: no"],
        &["stream", "watch 6", "watch 7", "watch 7", "watch 7"],
    )
    .await;
}
