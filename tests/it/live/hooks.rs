//! Which webhook deliveries are accepted.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::support::{HOOK_SECRET, LiveFixture, configmap};

#[tokio::test]
async fn only_signed_and_small_deliveries_do_anything() {
    let Some(scene) = LiveFixture::new("hooks", 1).await else { return };
    scene.write_instance("poll: 2h");
    scene.write_app("settings", &[configmap("settings", "level", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    scene.write_objects("settings", &[configmap("settings", "level", "2")]);
    let second = scene.worktree.publish("nobody was told of this push");
    let body = json!({"ref": "refs/heads/main", "after": second, "repository": {"full_name": "tutti/hooks"}});
    let body = body.to_string().into_bytes();
    let right = hook_signature(&body, HOOK_SECRET);
    let check = async |signature: Option<&str>, body: &[u8], expected: u16| {
        assert_eq!(deliver_hook(&scene.hook_url(), signature, body).await, expected, "{signature:?}");
    };
    check(None, &body, 401).await;
    check(Some(""), &body, 401).await;
    check(Some("not hexadecimal"), &body, 401).await;
    check(Some(&hook_signature(&body, "another secret")), &body, 401).await;
    check(Some(&right), b"another body", 401).await;
    let large = vec![b' '; 5 * 1024 * 1024 + 1];
    check(Some(&hook_signature(&large, HOOK_SECRET)), &large, 413).await;
    assert_eq!(deliver_hook(&format!("{}x", scene.hook_url()), Some(&right), &body).await, 404);

    check(Some(&right), &body, 202).await;
    scene.until_succeeded(&second).await;
    let reads = scene.running(|tutti| tutti.log().matches("read the config repository").count());
    assert_eq!(reads, 2, "only the last delivery made tutti look");
}

pub(super) fn hook_signature(body: &[u8], secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

pub(super) async fn deliver_hook(url: &str, signature: Option<&str>, body: &[u8]) -> u16 {
    let mut request = http_client().post(url).header("content-type", "application/json").body(body.to_vec());
    request = request.header("x-gitea-event", "push");
    if let Some(signature) = signature {
        request = request.header("x-gitea-signature", signature);
    }
    request.send().await.expect("an answer").status().as_u16()
}

pub(super) fn http_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// Events as the forge sends them: those about pull requests cause no fetch.
#[tokio::test]
async fn pull_requests_become_hints_with_their_number() {
    let Some(scene) = LiveFixture::new("pulls", 1).await else { return };
    scene.write_instance("poll: 2h");
    scene.write_app("settings", &[configmap("settings", "level", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let gitea = scene.gitea();
    let events = [
        "pull_request",
        "pull_request_assign",
        "pull_request_comment",
        "pull_request_label",
        "pull_request_review_comment",
        "pull_request_sync",
        "status",
    ];
    gitea.create_hook(scene.name(), &scene.hook_url(), HOOK_SECRET, &events).await.expect("a hook");
    let repository = format!("/api/v1/repos/{}/{}", gitea.user(), scene.name());
    let ask = async |method: &str, path: &str, body: Value| {
        let path = format!("{repository}{path}");
        gitea.request(method, &path, Some(&body)).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let reads = || scene.running(|tutti| tutti.log().matches("read the config repository").count());
    let before = reads();
    let seen = async |count: usize, words: &[&str]| {
        let log = || scene.running(|tutti| tutti.log());
        let is_it = |line: &&str| line.contains("webhook") && words.iter().all(|word| line.contains(word));
        scene
            .eventually(&words.join(" "), async || {
                let found = log().lines().filter(is_it).count();
                if found >= count { Ok(()) } else { Err(format!("{found} of {count}")) }
            })
            .await;
    };
    let file = json!({"content": "YQ==", "message": "a file", "new_branch": "feature"});
    ask("POST", "/contents/a.txt", file).await;
    ask("POST", "/pulls", json!({"head": "feature", "base": "main", "title": "a change"})).await;
    seen(1, &["accepted", "kind=Pull", "pull=1"]).await;
    let file = json!({"content": "YQ==", "message": "another", "branch": "feature"});
    ask("POST", "/contents/b.txt", file).await;
    seen(2, &["accepted", "kind=Pull", "pull=1"]).await;
    ask("PATCH", "/pulls/1", json!({"title": "another change"})).await;
    seen(3, &["accepted", "kind=Pull", "pull=1"]).await;
    let label = ask("POST", "/labels", json!({"name": "a", "color": "#aabbcc"})).await;
    ask("POST", "/issues/1/labels", json!({"labels": [label["id"]]})).await;
    seen(1, &["accepted", "kind=Label", "pull=1"]).await;
    ask("POST", "/issues/1/comments", json!({"body": "/tutti plan"})).await;
    seen(1, &["accepted", "kind=Comment", "pull=1"]).await;
    // Tutti's own writes to the pull request.
    seen(1, &["ignored", "tutti itself"]).await;
    seen(3, &["ignored", "`status`"]).await;
    ask("POST", "/pulls/1/reviews", json!({"event": "COMMENT", "body": "well"})).await;
    seen(1, &["accepted", "kind=Review", "pull=1"]).await;
    ask("PATCH", "/pulls/1", json!({"state": "closed"})).await;
    seen(4, &["accepted", "kind=Pull", "pull=1"]).await;
    assert_eq!(reads(), before, "no branch that is read has moved");
}
