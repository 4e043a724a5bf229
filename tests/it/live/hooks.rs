//! Who may knock, and with what.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::support::{SECRET, Scene, configmap};

#[tokio::test]
async fn only_signed_and_small_deliveries_do_anything() {
    let Some(scene) = Scene::new("hooks", 1).await else { return };
    scene.write_instance("poll: 2h");
    scene.write_app("settings", &[configmap("settings", "level", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    scene.write_objects("settings", &[configmap("settings", "level", "2")]);
    let second = scene.worktree.publish("nobody was told of this push");
    let body = json!({"ref": "refs/heads/main", "after": second, "repository": {"full_name": "tutti/hooks"}});
    let body = body.to_string().into_bytes();
    let right = signature(&body, SECRET);
    let check = async |signature: Option<&str>, body: &[u8], expected: u16| {
        assert_eq!(deliver(&scene.hook_url(), signature, body).await, expected, "{signature:?}");
    };
    check(None, &body, 401).await;
    check(Some(""), &body, 401).await;
    check(Some("not hexadecimal"), &body, 401).await;
    check(Some(&signature(&body, "another secret")), &body, 401).await;
    check(Some(&right), b"another body", 401).await;
    let large = vec![b' '; 5 * 1024 * 1024 + 1];
    check(Some(&signature(&large, SECRET)), &large, 413).await;
    assert_eq!(deliver(&format!("{}x", scene.hook_url()), Some(&right), &body).await, 404);

    check(Some(&right), &body, 202).await;
    scene.succeeded(&second).await;
    let reads = scene.running(|tutti| tutti.log().matches("read the config repository").count());
    assert_eq!(reads, 2, "only the last delivery made tutti look");
}

pub(super) fn signature(body: &[u8], secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

pub(super) async fn deliver(url: &str, signature: Option<&str>, body: &[u8]) -> u16 {
    let mut request = client().post(url).header("content-type", "application/json").body(body.to_vec());
    request = request.header("x-gitea-event", "push");
    if let Some(signature) = signature {
        request = request.header("x-gitea-signature", signature);
    }
    request.send().await.expect("an answer").status().as_u16()
}

pub(super) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}
