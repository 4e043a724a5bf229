//! The messages of a chat and a program about a rollout from its first wave to its revert, by the real binary.
//! `UPDATE_GOLDEN=1` rewrites the transcript.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tutti::notification::service::ResolvedService;

use super::support::LiveFixture;
use super::waves::{APP, confirm};
use crate::support::chat::{ChatServer, ReceivedMessage, SECRET, SIGNING_KEY};

const RINGS: &str = "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {matchLabels: {environment: test}}, confirm: true}
    - {name: prod, clusters: {matchLabels: {environment: prod}}}
";

fn route(name: &str, service: &str, language: &str) -> String {
    let variable = format!("TUTTI_SECRET_{}", service.to_uppercase());
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Notification
metadata: {{name: {name}}}
spec:
  service: {service}
  url: {{env: {variable}_URL}}
  secret: {{env: {variable}_KEY}}
  language: {language}
"
    )
}

fn message_lines(message: &ReceivedMessage) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = Vec::new();
    if message.service == "generic" {
        let data = &message.body["data"];
        lines.push(text(&message.body["type"]));
        lines.extend(["what", "where", "why"].map(|field| text(&data[field])));
        let links = data["links"].as_array().into_iter().flatten();
        lines.extend(links.map(|link| format!("[{}]({})", text(&link["text"]), text(&link["url"]))));
    } else {
        let card = &message.body["card"];
        lines.push(format!(
            "{} ({})",
            text(&card["header"]["title"]["content"]),
            text(&card["header"]["template"])
        ));
        for element in card["elements"].as_array().into_iter().flatten() {
            lines.push(text(&element["text"]["content"]));
            let buttons = element["actions"].as_array().into_iter().flatten();
            lines.extend(
                buttons.map(|it| format!("[{}]({})", text(&it["text"]["content"]), text(&it["url"]))),
            );
        }
    }
    lines.iter().flat_map(|line| line.lines()).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Sorted by service, commit and ring; otherwise in order of arrival.
fn transcript(scene: &LiveFixture, commits: &[String], received: &[ReceivedMessage]) -> String {
    let mut threads: BTreeMap<(&str, usize, &str), Vec<String>> = BTreeMap::new();
    for message in received {
        let (text, lines) = (message.body.to_string(), message_lines(message));
        let of = |commit: &String| text.contains(commit.as_str());
        let commit = commits.iter().position(of).unwrap_or(commits.len());
        let names = |line: &String, ring: &str| {
            line.contains(&format!(" in {ring}")) || line.contains(&format!("（{ring}）"))
        };
        let ring = ["test", "prod"].into_iter().find(|ring| lines.iter().take(2).any(|it| names(it, ring)));
        threads.entry((message.service, commit, ring.unwrap_or("no ring"))).or_default().extend(lines);
    }
    let mut page = String::new();
    for ((service, commit, ring), lines) in threads {
        let commit =
            if commit < commits.len() { format!("COMMIT{}", commit + 1) } else { "no commit".to_owned() };
        page.push_str(&format!("== {service}: {commit}, {ring}\n{}\n\n", lines.join("\n")));
    }
    for (number, commit) in (1..).zip(commits) {
        page = page.replace(commit.as_str(), &format!("COMMIT{number}"));
        page = page.replace(&commit[..7], &format!("COMMIT{number}"));
    }
    let pods = Regex::new(r"\bweb-[a-z0-9]{6,12}-[a-z0-9]{5}\b").expect("an expression");
    pods.replace_all(&page.replace(scene.gitea().url(), "GITEA"), "POD").into_owned()
}

#[tokio::test]
async fn a_failed_rollout_is_notified_line_by_line() {
    let Some(scene) = LiveFixture::new("notify", 4).await else { return };
    let chat = ChatServer::start().await;
    let (ResolvedService::Feishu { url: of_chat, .. }, ResolvedService::Generic { url: of_program, .. }) =
        (chat.feishu(Some(SECRET)), chat.generic(Some(SIGNING_KEY)))
    else {
        unreachable!("as they were asked for")
    };
    scene.add_variable("TUTTI_SECRET_FEISHU_URL", of_chat.expose_secret());
    scene.add_variable("TUTTI_SECRET_FEISHU_KEY", SECRET);
    scene.add_variable("TUTTI_SECRET_GENERIC_URL", of_program.expose_secret());
    scene.add_variable("TUTTI_SECRET_GENERIC_KEY", SIGNING_KEY);
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", RINGS);
    scene.worktree.write("notifications/group.yaml", &route("group", "feishu", "zh"));
    scene.worktree.write("notifications/program.yaml", &route("program", "generic", "en"));
    let write = |version: &str| {
        scene
            .worktree
            .write(APP, &super::support::component(scene.name(), &format!("shop/web:{version}"), ""));
    };
    write("1.0");
    let first = scene.worktree.publish("Web 1.0");
    scene.start(&[]).await;
    let told = async |happened: &str, commit: &str, ring: &str| {
        let kind = format!("dev.tutti.rollout.{happened}.v1");
        let thread = format!("rollout/{commit}/{ring}");
        scene
            .eventually(&format!("{happened} {thread} is told"), async || {
                let received = chat.received();
                let found = received
                    .iter()
                    .any(|it| it.body["type"] == *kind && it.body["data"]["thread"] == *thread);
                found.then_some(()).ok_or_else(|| format!("{:?}", chat.codes()))
            })
            .await;
    };
    told("done", &first, "test").await;
    told("done", &first, "prod").await;

    write("1.1");
    scene.worktree.write("apps/web/pins/prod.yaml", "version: broken-1\n");
    let second = scene.worktree.publish("Web 1.1");
    told("waiting", &second, "prod").await;
    assert_eq!(confirm(&scene, "web").await, "prod");
    let word = scene.worktree.head();
    told("failed", &second, "prod").await;
    // The commit in between, which confirms, stays.
    scene.worktree.git(&["revert", "--no-edit", &second]);
    scene.worktree.push();
    let third = scene.worktree.head();
    told("reverted", &second, "prod").await;
    told("done", &third, "prod").await;
    told("done", &third, "test").await;
    scene
        .eventually("the promotion of what test has is proposed", async || {
            let opened = |it: &ReceivedMessage| it.body["type"] == "dev.tutti.promotion.opened.v1";
            chat.received().iter().any(opened).then_some(()).ok_or_else(|| format!("{:?}", chat.codes()))
        })
        .await;
    let commits = [first, second, word, third];
    let of = |service: &str| chat.received().iter().filter(|it| it.service == service).count();
    scene
        .eventually("the chat knows as much as the program", async || {
            (of("feishu") == of("generic")).then_some(()).ok_or_else(|| format!("{:?}", chat.codes()))
        })
        .await;
    let page = transcript(&scene, &commits, &chat.received());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/notifications/live.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &page).expect("written");
    }
    assert_eq!(page, fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it"));
    // Secrets of services are not in the log.
    let log = scene.running(|tutti| tutti.log());
    for secret in [SECRET, SIGNING_KEY, of_chat.expose_secret(), of_program.expose_secret()] {
        assert!(!log.contains(secret), "{log}");
    }
}
