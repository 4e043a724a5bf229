//! A hostile API server beside a healthy cluster.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::api_server::{
    ApiAnswer, ApiRequest, ApiServer, CHUNK, bookmark, config_map, list, resource, status, version,
};
use super::fixture::HostileFixture;
use crate::support::manifests::cluster;

/// How long the attack lasts before the healthy cluster is checked again.
const ATTACK_TIME: Duration = Duration::from_secs(5);

/// A process with a healthy and a hostile cluster.
async fn with_hostile_cluster(server: &ApiServer) -> HostileFixture {
    let mut arena = HostileFixture::new().await;
    arena.kubeconfig("hostile", &server.address);
    arena.repository.commit("Add a cluster", &[("clusters/hostile.yaml", Some(&cluster("hostile")))]);
    arena.start_process(&["-v"], |_| {});
    arena
}

/// The log names the hostile cluster with these words, and the healthy one gets a commit before and after.
async fn check_answers(
    says: impl Fn(&ApiRequest) -> Option<ApiAnswer> + Send + Sync + 'static,
    words: &[&str],
) -> HostileFixture {
    let server = ApiServer::start(says).await;
    check_server(&server, words).await
}

async fn check_server(server: &ApiServer, words: &[&str]) -> HostileFixture {
    let mut arena = with_hostile_cluster(server).await;
    arena.check_healthy_app().await;
    for words in words {
        arena.until_logged(words).await;
    }
    tokio::time::sleep(ATTACK_TIME).await;
    arena.check_healthy_app().await;
    assert!(arena.log().contains("cluster=hostile"), "{}", arena.log());
    arena
}

fn answer_when(
    path: &'static str,
    answer: impl Fn() -> ApiAnswer + Send + Sync + 'static,
) -> impl Fn(&ApiRequest) -> Option<ApiAnswer> {
    move |asked| (asked.path == path).then(&answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn version_without_end_is_cut() {
    check_answers(
        answer_when("/version", || ApiAnswer::endless(200, r#"{"major":"1"#, [b'0'; CHUNK])),
        &["its answer to GET /version is longer than 64 KiB"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_that_drips_is_given_up() {
    let drip = || ApiAnswer::endless(200, r#"{"major":"1"#, [b'0']).pause(Duration::from_millis(100));
    check_answers(answer_when("/version", drip), &["it did not answer in time"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_without_end_is_cut() {
    check_answers(
        answer_when("/api/v1", || {
            let first = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":""#;
            ApiAnswer::endless(200, first, [b'a'; CHUNK])
        }),
        &["its answer to GET /api/v1 is longer than 8 MiB"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_number_are_not_searched() {
    let kinds: Vec<Value> =
        (0..12_000).map(|number| resource(&format!("k{number}"), &format!("K{number}"), true)).collect();
    let document = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds}).to_string();
    check_answers(
        move |asked| match asked.path.as_str() {
            "/api/v1" => Some(ApiAnswer::whole(200, document.clone().into_bytes())),
            path if path.starts_with("/api/v1/k") => {
                Some(ApiAnswer::json(&list(&[config_map("x", 1, "")], "", "1")))
            }
            _ => None,
        },
        &["it serves more than 10000 kinds"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn group_lists_without_end_are_cut() {
    let group =
        r#"{"name":"a.example.com","versions":[{"groupVersion":"a.example.com/v1","version":"v1"}]},"#;
    let many = group.repeat(CHUNK / group.len());
    check_answers(
        answer_when("/apis", move || {
            ApiAnswer::endless(200, r#"{"kind":"APIGroupList","groups":["#, many.clone())
        }),
        &["its answer to GET /apis would take more than 32 MiB of memory"],
    )
    .await;
}

/// Answers with pages, for servers that stream no lists.
fn page_answer(asked: &ApiRequest) -> Option<ApiAnswer> {
    asked.is_streamed_list().then(|| ApiAnswer::whole(422, status(422, "Invalid", "no such parameter")))
}

#[tokio::test(flavor = "multi_thread")]
async fn page_without_end_is_cut() {
    let item = format!("{},", config_map("x", 1, &"a".repeat(1000)));
    let many = item.repeat(CHUNK / item.len());
    check_answers(
        move |asked| {
            let first = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":["#;
            let endless = || ApiAnswer::endless(200, first, many.clone());
            page_answer(asked).or_else(|| asked.is_list("configmaps").then(endless))
        },
        &["its answer to GET /api/v1/configmaps is longer than 16 MiB"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_without_end_are_given_up() {
    let server = ApiServer::start(|asked| {
        let page = |number: usize| ApiAnswer::json(&list(&[], &format!("next-{number}"), "1"));
        page_answer(asked).or_else(|| asked.is_list("configmaps").then(|| page(asked.query.len())))
    })
    .await;
    check_server(&server, &["pages without an object"]).await;
    let pages = server.count(|asked| asked.is_list("configmaps"));
    assert!(pages < 3000, "{pages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_versions_and_names_are_refused() {
    let long = "9".repeat(1024 * 1024);
    let name = format!("{}\n", json!({"type": "ADDED", "object": config_map(&long, 2, "")}));
    check_answers(
        move |asked| {
            let version = || ApiAnswer::json(&list(&[], "", &long));
            let events = || ApiAnswer::endless(200, &name, name.clone());
            let is_events = asked.is_watch_of("configmaps").then(events);
            is_events.or_else(|| page_answer(asked)).or_else(|| asked.is_list("namespaces").then(version))
        },
        &["a name or resourceVersion longer than 512 bytes"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_go_in_a_circle_are_given_up() {
    // Unmanaged objects: nothing of these is stored.
    let item = |number: usize| json!({"metadata": {"name": format!("x{number}"), "resourceVersion": "1"}});
    let items: Vec<Value> = (0..100).map(item).collect();
    let page = list(&items, "again", "1").to_string().into_bytes();
    check_answers(
        move |asked| {
            let again = || ApiAnswer::whole(200, page.clone());
            page_answer(asked).or_else(|| asked.is_list("configmaps").then(again))
        },
        &["more than 100000 objects"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_line_without_end_is_cut() {
    check_answers(
        |asked| {
            let line = || ApiAnswer::endless(200, r#"{"type":"ADDED","object":{"x":""#, [b'a'; CHUNK]);
            asked.is_watch_of("configmaps").then(line)
        },
        &["an event of its watch /api/v1/configmaps is longer than 4 MiB"],
    )
    .await;
}

/// All events fit, and each has the largest size.
#[tokio::test(flavor = "multi_thread")]
async fn large_events_do_not_fill_the_memory() {
    let note = "a".repeat(1024 * 1024);
    check_answers(
        move |asked| {
            let note = note.clone();
            let event = move |number: usize| {
                let object = config_map(&format!("x{number}"), number + 2, &note);
                (number < 200_000)
                    .then(|| format!("{}\n", json!({"type": "ADDED", "object": object})).into_bytes())
            };
            asked.is_watch_of("configmaps").then(|| ApiAnswer::pieces(200, event))
        },
        &[],
    )
    .await;
}

/// Little on the wire, much in memory.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_many_small_values_are_cut() {
    let values = r#"{"a":1},"#.repeat(4 * 1024 * 1024 / 9);
    let event = format!(
        "{}\n",
        config_map("x", 2, "").to_string().replace(r#""note":"""#, &format!(r#""note":"","x":[{values}1]"#))
    );
    let event = format!(r#"{{"type":"ADDED","object":{}}}"#, event.trim_end()) + "\n";
    check_answers(
        move |asked| asked.is_watch_of("configmaps").then(|| ApiAnswer::endless(200, &event, event.clone())),
        &["would take more than 32 MiB of memory"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_number_are_not_kept() {
    let padding = "a".repeat(100);
    check_answers(
        move |asked| {
            let padding = padding.clone();
            let events = move |number: usize| {
                let object = |it: usize| config_map(&format!("x{it}"), it + 2, &padding);
                let line = |it: usize| format!("{}\n", json!({"type": "ADDED", "object": object(it)}));
                Some((number * 100..(number + 1) * 100).map(line).collect::<String>().into_bytes())
            };
            asked.is_watch_of("configmaps").then(|| ApiAnswer::pieces(200, events))
        },
        &["more than 100000 objects"],
    )
    .await;
}

/// One object that changes all the time, and bookmarks.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_events_holds_up_nobody() {
    check_answers(
        |asked| {
            let events = |number: usize| {
                let line = |it: usize| {
                    let object = config_map("hello", it + 2, "");
                    format!(
                        "{}\n{}\n",
                        json!({"type": "MODIFIED", "object": object}),
                        bookmark(&it.to_string())
                    )
                };
                Some((number * 100..(number + 1) * 100).map(line).collect::<String>().into_bytes())
            };
            let is_next = asked.is_watch_of("configmaps") && !asked.is_streamed_list();
            page_answer(asked).or_else(|| is_next.then(|| ApiAnswer::pieces(200, events)))
        },
        &[],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_without_end_are_cut() {
    let answer = || ApiAnswer::endless(500, r#"{"kind":"Status","message":""#, [b'a'; CHUNK]);
    check_answers(answer_when("/version", answer), &["its answer 500 to GET /version is longer than 64 KiB"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_count_unpacked() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b'0'; 1024 * 1024];
    encoder.write_all(br#"{"major":"1"#).expect("memory");
    for _ in 0..512 {
        encoder.write_all(&zeros).expect("memory");
    }
    let bomb = encoder.finish().expect("memory");
    check_answers(
        move |asked| {
            let is_meant = ["/version", "/apis"].contains(&asked.path.as_str());
            is_meant.then(|| ApiAnswer::whole(200, bomb.clone()).header("content-encoding: gzip"))
        },
        &["its answer to GET /version is longer than 64 KiB"],
    )
    .await;
}

/// For every request that is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_drip_hold_up_nobody() {
    check_answers(
        |asked| {
            let drip = || ApiAnswer::endless(200, "{", [b' ']).pause(Duration::from_millis(200));
            (asked.is_watch() || asked.is_list("configmaps")).then(drip)
        },
        &["it did not answer in time"],
    )
    .await;
}

/// For every answer that is parsed.
#[tokio::test(flavor = "multi_thread")]
async fn deep_answers_are_refused() {
    let deep = "[".repeat(1_000_000);
    check_answers(
        move |asked| {
            let object = format!(r#"{{"type":"ADDED","object":{{"metadata":{deep}"#) + "\n";
            match asked.path.as_str() {
                _ if asked.is_watch_of("configmaps") => {
                    Some(ApiAnswer::endless(200, &object, object.clone()))
                }
                _ if asked.is_list("secrets") => {
                    Some(ApiAnswer::whole(200, format!(r#"{{"items":{deep}"#).into_bytes()))
                }
                "/apis" => Some(ApiAnswer::whole(200, deep.clone().into_bytes())),
                _ => None,
            }
        },
        &["is nested more than 128 deep"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_told_without_control_characters() {
    let message = format!("\u{1b}[2J\u{1b}]0;owned\u{7}gone\r\nfaked line {}", "m".repeat(20_000));
    let arena = check_answers(
        answer_when("/version", move || ApiAnswer::whole(403, status(403, "Forbidden", &message))),
        &["faked line"],
    )
    .await;
    let log = arena.log();
    assert!(!log.contains(['\u{1b}', '\u{7}', '\r']), "{log}");
    assert!(!log.contains("\\u{1b}") && !log.contains("\\x1b"), "{log}");
    assert!(log.lines().all(|line| !line.starts_with("faked line") && line.len() < 4096), "{log}");
}

/// The other host would get the credentials.
#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let other = ApiServer::start(|_| None).await;
    let place = other.address.clone();
    check_answers(
        move |_| Some(ApiAnswer::whole(307, Vec::new()).header(format!("location: {place}/version"))),
        &["its answer 307 to GET /version is a redirect, which is not followed"],
    )
    .await;
    assert_eq!(other.count(|_| true), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_without_end_are_cut() {
    let header = format!("x-long: {}", "a".repeat(10_000_000));
    check_answers(
        answer_when("/version", move || ApiAnswer::json(&version()).header(header.clone())),
        &["message head is too large"],
    )
    .await;
}

/// An error of the server may quote the Secret.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_secrets_are_told_without_values() {
    let server = ApiServer::start(|asked| {
        let text =
            "Secret \"s\" is invalid: data[password]: Invalid value: \"aHVudGVyMg==\": hunter2 cannot change";
        let cause = json!({"reason": "FieldValueInvalid", "field": "data[password]", "message": text});
        let said = json!({"kind": "Status", "status": "Failure", "reason": "hunter2 is Invalid", "code": 422,
            "message": text, "details": {"causes": [cause]}});
        let is_write = asked.method == "PATCH" && asked.path.contains("/secrets/");
        is_write.then(|| ApiAnswer::whole(422, said.to_string().into_bytes()))
    })
    .await;
    let mut arena = with_hostile_cluster(&server).await;
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {password: hunter2}\n";
    arena.repository.commit("Add a secret", &[("apps/hello/objects/secret.yaml", Some(secret))]);
    arena.check_healthy_app().await;
    let begun = Instant::now();
    while server.count(|asked| asked.method == "PATCH" && asked.path.contains("/secrets/")) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", arena.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    arena.check_healthy_app().await;
    let log = arena.log();
    assert!(
        log.contains("Secret shop/s") && !log.contains("hunter2") && !log.contains("aHVudGVyMg"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_that_is_mended_comes_back() {
    let is_hostile = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_hostile);
    let server = ApiServer::start(move |asked| {
        let is_meant = flag.load(Ordering::Relaxed) && (asked.path == "/version" || asked.is_watch());
        is_meant.then(|| ApiAnswer::endless(200, "{\"", [b'a'; CHUNK]))
    })
    .await;
    let mut arena = with_hostile_cluster(&server).await;
    arena.check_healthy_app().await;
    arena.until_logged("is longer than 64 KiB").await;
    is_hostile.store(false, Ordering::Relaxed);
    arena.until_logged("connected cluster=hostile").await;
}
