//! Values encrypted in Git, or in a Secret, are in no message.

use tutti::model::DecryptionKeys;
use tutti::sops::identities;

use super::fixture::NotificationFixture;
use crate::sops_secrets::{ENCRYPTED_SECRET, IDENTITY, REFUSED_OBJECTS, assert_shows_no_secret};
use crate::support::manifests::{namespace, objects_app};

const PLAIN: &str = "plain-canary-77c1";

#[tokio::test(start_paused = true)]
async fn nothing_that_is_secret_is_in_a_message() {
    let services = ["generic", "feishu", "dingtalk", "slack"];
    let routes = services.map(|service| (service, service, ""));
    let files = [
        ("apps/shop/app.yaml", &*objects_app("shop", "shop")),
        ("apps/shop/objects/namespace.yaml", &*namespace("shop")),
        ("apps/shop/objects/secret.yaml", ENCRYPTED_SECRET),
    ];
    let keys = DecryptionKeys::new(identities::read(IDENTITY).expect("an identity"));
    let scene = NotificationFixture::with_keys(&["p1"], &routes, &files, keys).await;
    // A cluster refuses the values of both, and quotes them.
    let plain = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: plain, namespace: shop}}\ndata: {{token: '{PLAIN}'}}\n"
    );
    let changes = [
        ("apps/shop/objects/refused.yaml", Some(REFUSED_OBJECTS)),
        ("apps/plain/app.yaml", Some(&*objects_app("shop", "plain"))),
        ("apps/plain/objects/secret.yaml", Some(&*plain)),
    ];
    scene.push("refused", &changes).await;
    scene
        .until("failures", |_| {
            let received = scene.chat.received();
            let failed = |service: &str| {
                received.iter().any(|it| it.service == service && it.body.to_string().contains("✗"))
            };
            services.iter().all(|service| failed(service))
        })
        .await;
    scene.sleep_seconds(120).await;
    let all: String = scene.chat.received().iter().map(|it| format!("{}\n", it.body)).collect();
    assert_shows_no_secret("a message", &all);
    assert!(!all.contains("plain-canary"), "{all}");
    assert!(!scene.route_state("generic").to_string().contains("canary"));
}
