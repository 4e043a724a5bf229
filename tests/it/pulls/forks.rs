//! Pull requests from forks, which anybody may send.

use super::fixture::{CONTEXTS, PAY, PullRequestFixture, pay};

const LABEL: &str = "tutti/ok-to-plan";

#[tokio::test(start_paused = true)]
async fn a_labelled_fork_is_rendered() {
    let scene = PullRequestFixture::two_clusters().await;
    let number = scene.simulator.pull_from_fork("eve", "Bump", &[(PAY, Some(&pay("v2")))]);
    let head = scene.simulator.pulls()[0].head.clone();
    scene.until("a word", |now| !now.last_status(&head, CONTEXTS[1]).is_empty()).await;
    scene.assert_no_requests(120).await;
    for context in &CONTEXTS[..2] {
        let said = scene.simulator.statuses_of(&head, context);
        assert!(
            said.len() == 1 && said[0].starts_with("pending from a fork") && said[0].contains(LABEL),
            "{said:?}"
        );
    }
    assert_eq!(scene.simulator.comments(number), []);

    scene.label(number, LABEL).await;
    scene.until_settled(&head).await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
    assert!(scene.simulator.last_status(&head, CONTEXTS[0]).starts_with("success "));
}

#[tokio::test(start_paused = true)]
async fn a_closed_fork_ends_and_restarts_on_reopening() {
    let scene = PullRequestFixture::two_clusters().await;
    let number = scene.simulator.pull_from_fork("eve", "Bump", &[(PAY, Some(&pay("v2")))]);
    let head = scene.simulator.pulls()[0].head.clone();
    let is_fork = |text: &str| text.starts_with("pending from a fork");
    scene.until("a word", |now| is_fork(&now.last_status(&head, CONTEXTS[0]))).await;
    scene.simulator.set_open("li", number, false);
    let ended = "skipped closed before there was a result";
    scene
        .until("an end", |now| CONTEXTS[..2].iter().all(|context| now.last_status(&head, context) == ended))
        .await;
    scene.simulator.set_open("li", number, true);
    scene.until("a beginning", |now| is_fork(&now.last_status(&head, CONTEXTS[0]))).await;
    scene.label(number, LABEL).await;
    scene.until_settled(&head).await;
    // The earlier end is not reported again.
    scene.simulator.set_open("li", number, false);
    scene.assert_no_requests(60).await;
    assert!(scene.simulator.last_status(&head, CONTEXTS[0]).starts_with("success "), "{}", scene.describe());
}

#[cfg(feature = "sops")]
#[tokio::test(start_paused = true)]
async fn nothing_that_is_secret_is_told() {
    use tutti::model::DecryptionKeys;
    use tutti::sops::identities;

    use super::fixture::is_pending;
    use crate::sops_secrets::{ENCRYPTED_SECRET, IDENTITY, assert_shows_no_secret};
    use crate::support::manifests::{namespace, objects_app};

    const PLAIN: &str = "plain-canary-77c1";
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: token, namespace: shop}}\nstringData: {{token: {value}}}\n"
        )
    };
    let files = [
        ("apps/shop/app.yaml", &*objects_app("shop", "shop")),
        ("apps/shop/objects/namespace.yaml", &*namespace("shop")),
        ("apps/shop/objects/secret.yaml", ENCRYPTED_SECRET),
        ("apps/plain/app.yaml", &*objects_app("shop", "plain")),
        ("apps/plain/objects/token.yaml", &*secret(PLAIN)),
    ];
    let mut scene = PullRequestFixture::new_without_process(".", &["c1"], &files).await;
    scene.keys = DecryptionKeys::new(identities::read(IDENTITY).expect("an identity"));
    let scene = scene.start_process().await;
    // The encrypted file moves to a path where it would be shown; the other one changes; an app takes over both.
    let stolen = ENCRYPTED_SECRET.replace("kind: Secret", "kind: ConfigMap");
    let changes = [
        ("apps/shop/objects/copy.yaml", Some(stolen.as_str())),
        ("apps/shop/objects/secret.yaml", None),
        ("apps/plain/objects/token.yaml", Some(&*secret("plain-canary-77c2"))),
    ];
    let number = scene.simulator.pull_from_fork("eve", "Bump", &changes);
    scene.label(number, LABEL).await;
    let own = scene.push("own", &changes);
    let of_own = scene.open("own").await;
    let head = scene.simulator.pulls()[0].head.clone();
    for (number, head) in [(number, &head), (of_own, &own)] {
        scene.until_settled(head).await;
        scene.until("a comment", |now| now.comments(number).len() == 1).await;
        let comment = scene.simulator.comments(number)[0].1.clone();
        assert!(comment.contains("shop/plain") && comment.contains("token"), "{comment}");
        // Nobody decrypted it.
        assert!(comment.contains("no age identity was given"), "{comment}");
        let words = CONTEXTS.map(|context| scene.simulator.statuses_of(head, context).join("\n")).join("\n");
        let all = format!("{comment}\n{words}");
        assert_shows_no_secret("a pull request", &all);
        assert!(!all.contains("plain-canary"), "{all}");
        assert!(!CONTEXTS.iter().any(|context| is_pending(&scene.simulator.last_status(head, context))));
    }
}
