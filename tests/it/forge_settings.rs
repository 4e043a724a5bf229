//! The forge client against the simulator: permissions, branch rules and webhooks.

use tutti::forge::{ForgeErrorKind, NewHook, Permission};

use crate::support::forge::simulator::{BOT, ForgePermission, ForgeSimulator, signature, success};

async fn start_simulator() -> ForgeSimulator {
    let simulator = ForgeSimulator::start(&[("other.yaml", Some("a: 1\n"))]).await;
    simulator.add_user("li", ForgePermission::Write);
    simulator.add_user("root", ForgePermission::Admin);
    simulator
}

#[tokio::test]
async fn only_administrators_read_permissions() {
    let simulator = start_simulator().await;
    simulator.add_user("reader", ForgePermission::Read);
    simulator.add_user("stranger", ForgePermission::None);
    let (bot, root) = (simulator.client(BOT), simulator.client("root"));
    for (login, expected) in [
        ("li", Permission::Write),
        ("root", Permission::Admin),
        ("reader", Permission::Read),
        ("stranger", Permission::None),
        ("nobody", Permission::None),
    ] {
        assert_eq!(root.permission(login).await, Ok(expected), "{login}");
    }
    assert_eq!(bot.permission(BOT).await, Ok(Permission::Write));
    let refused = bot.permission("li").await.expect_err("no administrator");
    assert_eq!(refused.kind(), ForgeErrorKind::Authentication, "{refused}");
    assert_eq!(bot.repository_facts().await.expect("facts").permission, Permission::Write);
    let hidden = simulator.client("stranger").pulls_open().await.expect_err("nothing to see");
    assert_eq!(hidden.kind(), ForgeErrorKind::RepositoryNotFound, "{hidden}");

    assert!(bot.protection("main").await.expect("an answer").is_none());
    root.create_protection("main", &["ci".to_owned()]).await.expect("a rule");
    let refused = bot.protection("main").await.expect_err("not for writers");
    assert!(refused.to_string().contains("only an administrator"), "{refused}");
    root.edit_protection("main", &["ci".to_owned(), "tutti/gate".to_owned()]).await.expect("edited");
    let rule = root.protection("main").await.expect("an answer").expect("a rule");
    assert_eq!(
        (rule.required_contexts.as_slice(), rule.allows_push),
        (&["ci".to_owned(), "tutti/gate".to_owned()][..], true)
    );
}

#[tokio::test]
async fn webhooks_are_created_and_signed() {
    let simulator = start_simulator().await;
    let (bot, root) = (simulator.client(BOT), simulator.client("root"));
    let (url, mut arrived) = start_hook_receiver().await;
    let hook = NewHook { url, secret: "s3cr3t".into(), events: vec!["push".to_owned()] };
    root.create_hook(&hook).await.expect("a hook");
    let created = root.hooks().await.expect("hooks").remove(0);
    assert!(created.is_active && created.is_json && created.events == ["push"], "{created:?}");
    let wanted = ["push", "pull_request"].map(str::to_owned);
    root.edit_hook(&created, &wanted).await.expect("edited");
    let edited = root.hooks().await.expect("hooks").remove(0);
    assert!(edited.events.iter().any(|event| event == "pull_request_sync"), "{edited:?}");
    assert!(edited.events.is_sorted(), "{edited:?}");

    simulator.set_quirks(|quirks| quirks.max_listed_commits = 1);
    let head = simulator.push("li", "two", "one", &[("other.yaml", Some("a: 2\n"))]);
    let (event, body) = arrived.recv().await.expect("a delivery");
    assert_eq!((event.as_str(), body["after"].as_str()), ("push", Some(head.as_str())));
    let total = body["total_commits"].as_u64().expect("a number");
    assert!(total > 1 && body["commits"].as_array().map(Vec::len) == Some(1), "{body}");
    let number = simulator.pull_from_fork("li", "Mine", &[("other.yaml", Some("a: 3\n"))]);
    let (event, body) = arrived.recv().await.expect("a delivery");
    assert_eq!((event.as_str(), body["action"].as_str()), ("pull_request", Some("opened")));
    simulator.review("root", number, "APPROVED");
    let (event, body) = arrived.recv().await.expect("a delivery");
    assert_eq!((event.as_str(), body["commit_id"].as_str()), ("pull_request_approved", Some("")));

    // A status event is sent to nobody, or to all receivers of pushes.
    bot.post_status(&head, &success("tutti/gate")).await.expect("a status");
    simulator.set_quirks(|quirks| quirks.statuses_loop_back = true);
    bot.post_status(&head, &success("tutti/validate")).await.expect("a status");
    let (event, body) = arrived.recv().await.expect("a delivery");
    assert_eq!((event.as_str(), body["context"].as_str()), ("", Some("tutti/validate")));
    root.delete_hook(created.id).await.expect("deleted");
    simulator.push("li", "two", "two", &[("other.yaml", Some("a: 3\n"))]);
    assert!(root.hooks().await.expect("hooks").is_empty());
    assert!(simulator.deliveries().iter().all(|it| it.code == Some(202)), "signed");
}

/// A receiver that accepts deliveries signed with `s3cr3t`, and returns event name and body.
async fn start_hook_receiver() -> (String, tokio::sync::mpsc::UnboundedReceiver<(String, serde_json::Value)>)
{
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;

    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let router = axum::Router::new().route(
        "/hook",
        post(async move |headers: HeaderMap, body: axum::body::Bytes| {
            let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
            if text("x-gitea-signature") != signature(&body, "s3cr3t") {
                return StatusCode::UNAUTHORIZED;
            }
            let body = serde_json::from_slice(&body).expect("JSON");
            let _ = sender.send((text("x-gitea-event").to_owned(), body));
            StatusCode::ACCEPTED
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, receiver)
}
