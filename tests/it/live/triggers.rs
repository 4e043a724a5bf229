//! From a build to running pods, on the real Gitea and real clusters. A stand-in of Drone's server signs its deliveries, and a
//! pipeline step has Drone's variables.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::hooks::http_client;
use super::support::{ForgeUsers, HOOK_SECRET, LiveFixture, RELEASE_TOKEN, component};
use crate::support::ci::CiBuild;

const TRIGGERS: &str = r#"apiVersion: tutti.dev/v1alpha1
kind: Trigger
metadata: {name: of-drone}
spec:
  receiver: drone
  match: {event: build, action: updated, build.status: success, build.event: tag, repo.slug: shop/*}
  set: {app: "{{ repo.name }}", version: "{{ build.ref | strip_ref }}", ring: test}
---
apiVersion: tutti.dev/v1alpha1
kind: Trigger
metadata: {name: release}
spec:
  token: {secretRef: {env: TUTTI_SECRET_RELEASE}}
  set: {app: "{{ app }}", version: "{{ version }}", ring: "{{ ring }}"}
"#;
const PIN: &str = "apps/web/pins/test.yaml";
const PINNED: &str = "# What test runs.\nversion: '1.0' # by the pipeline\n";
const OF_DRONE: &str = "tutti/trigger/of-drone/triggers.web.test";
const OF_RELEASE: &str = "tutti/trigger/release/triggers.web.test";

async fn started_fixture(name: &'static str) -> Option<LiveFixture> {
    let scene = LiveFixture::new(name, 4).await?;
    scene.write_instance("poll: 1s");
    let instance = scene.worktree.folder().join("tutti.yaml");
    let instance = std::fs::read_to_string(instance).expect("a file");
    let drone = "receivers: [{name: drone, type: drone, secrets: [{env: TUTTI_SECRET_HOOK}]}, ";
    scene.worktree.write("tutti.yaml", &instance.replace("receivers: [", drone));
    scene.worktree.write("triggers/ci.yaml", TRIGGERS);
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    scene.worktree.write(PIN, PINNED);
    let first = scene.worktree.publish("first");
    scene.start(&["--api-token-env", "TUTTI_SECRET_API"]).await;
    scene.until_succeeded(&first).await;
    ForgeUsers::of(&scene).create_webhook().await;
    Some(scene)
}

type SignedDelivery = (Vec<(&'static str, String)>, String);

/// Status and body of the answer.
async fn deliver(scene: &LiveFixture, (headers, body): &SignedDelivery) -> (u16, Value) {
    let mut request = http_client().post(scene.hook_url_of("drone")).body(body.clone());
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or_default())
}

/// The same delivery with another header.
fn with_header(delivery: &SignedDelivery, name: &str, value: &str) -> SignedDelivery {
    let (headers, body) = delivery.clone();
    let one = |(key, old)| if key == name { (key, value.to_owned()) } else { (key, old) };
    (headers.into_iter().map(one).collect(), body)
}

#[tokio::test]
async fn a_build_becomes_a_pull_request_and_runs() {
    let Some(scene) = started_fixture("triggers").await else { return };
    let people = ForgeUsers::of(&scene);

    // Drone reports the build of a tag: one line changes, and the rest of the file stays.
    let tag = CiBuild::of_tag("shop/web", 12, "1.1");
    let delivery = tag.drone("updated", HOOK_SECRET);
    let (status, answer) = deliver(&scene, &delivery).await;
    assert_eq!((status, &answer["accepted"]), (202, &json!(true)), "{answer}");
    let (number, head) = people.until_opened(OF_DRONE).await;
    let files = people.request("GET", &format!("/pulls/{number}/files"), None).await;
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    assert_eq!((&files[0]["additions"], &files[0]["deletions"]), (&json!(1), &json!(1)));
    let content = people.request("GET", &format!("/raw/{PIN}?ref={head}"), None).await;
    assert_eq!(content.as_str(), Some(&*PINNED.replace("1.0", "1.1")));
    people.until_plan_contains(number, &["shop/web:1.1"]).await;

    // Repeated, late and modified deliveries are handled as the page says.
    let (status, answer) = deliver(&scene, &delivery).await;
    println!("the same delivery again: {status} {answer}");
    assert_eq!((status, answer["result"].as_str()), (200, Some("duplicate")), "{answer}");
    let next = CiBuild::of_tag("shop/web", 13, "6.6").drone("updated", HOOK_SECRET);
    let forged = CiBuild::of_tag("shop/web", 13, "6.6").drone("updated", "another secret");
    let six_minutes_ago = Timestamp::now() - SignedDuration::from_mins(6);
    let stale = CiBuild::of_tag("shop/web", 13, "6.6").drone_at("updated", HOOK_SECRET, six_minutes_ago);
    let swapped = (next.0.clone(), tag.drone_body("updated").to_string());
    let large = (next.0.clone(), "x".repeat(6 << 20));
    for (what, delivery, expected) in [
        ("a date of six minutes ago", stale, 401),
        (
            "another date than the signed one",
            with_header(&next, "date", "Tue, 07 Jun 2022 20:51:35 GMT"),
            401,
        ),
        ("another digest than that of the body", swapped, 401),
        ("a digest that was not signed", with_header(&next, "digest", "SHA-256=AAAA"), 401),
        ("a signature with another secret", forged, 401),
        ("a body of 6 MiB", large, 413),
    ] {
        let (status, answer) = deliver(&scene, &delivery).await;
        println!("{what}: {status} {answer}");
        assert_eq!(status, expected, "{what}: {answer}");
    }
    people.merge(number, &head).await;
    let merged = people.until_merged(number).await;
    scene.until_status(&merged, "deploy/test", "success", &[]).await;
    let pulls = people.request("GET", "/pulls?state=all", None).await;
    assert_eq!(pulls.as_array().map(Vec::len), Some(1), "{pulls}");
    for (cluster, image) in
        [(0, "shop/web:1.1"), (1, "shop/web:1.1"), (2, "shop/web:1.0"), (3, "shop/web:1.0")]
    {
        scene.until_ready(scene.cluster(cluster), "web", image, 2).await;
    }

    // A person runs the next promotion from a checkout: the running process leaves this pull request alone.
    let forge = scene.gitea().url().trim_start_matches("http://").to_owned();
    let of_forge = ["--forge-host", forge.as_str()];
    let promote = scene.local_arguments(&["promote", "web", "--to", "prod", "--open"], &of_forge);
    let ended = scene.run(&promote).await;
    println!("tutti promote --open: exit code {:?}\n{}{}", ended.code, ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.starts_with("#2: promote(web): 1.1 on prod\nhttp://"), "{}", ended.stdout);
    let (asked, head) = people.until_opened("tutti/promote/triggers.web/prod").await;
    let comment = people.until_plan_contains(asked, &["shop/web:1.1"]).await;
    scene.until_status(&head, "gate/ring", "success", &[]).await;
    let body = people.request("GET", &format!("/pulls/{asked}"), None).await["body"].to_string();
    assert!(body.contains("Requested with `tutti promote`"), "{body}");
    // The same text as the comment, by hand.
    let plan = ["plan", "--pr", &asked.to_string(), "-o", "markdown"];
    let ended = scene.run(&scene.local_arguments(&plan, &of_forge)).await;
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), comment.trim_end()), "{}", ended.stderr);
    people.request("PATCH", &format!("/pulls/{asked}"), Some(&json!({"state": "closed"}))).await;

    // The pipeline step of a tag calls the trigger; another one waits for the merge commit.
    let merged = release_by_pipeline(&scene, &people, 14, "1.2").await;
    let ended = run_wait(&scene, &["--commit", &merged, "--timeout", "90s"]).await;
    assert_eq!(ended.0, Some(0), "{}", ended.1);

    // An image that cannot be pulled.
    let merged = release_by_pipeline(&scene, &people, 15, "broken-1").await;
    let ended = run_wait(&scene, &["--commit", &merged, "--timeout", "90s"]).await;
    assert_eq!(ended.0, Some(3), "{}", ended.1);

    // A version without a release.
    let ended = run_wait(&scene, &["--app", "triggers/web", "--version", "9.9", "--timeout", "1s"]).await;
    assert_eq!(ended.0, Some(4), "{}", ended.1);

    // A step that waits itself, and nobody merges.
    let (code, said) =
        run_ci_step(&scene, 16, "1.3", &[("PLUGIN_WAIT", "healthy"), ("PLUGIN_TIMEOUT", "3s")]).await;
    assert_eq!(code, Some(4), "{said}");
    let (code, said) = run_ci_step(&scene, 17, "no version", &[]).await;
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = run_ci_step(&scene, 18, "1.4", &[("PLUGIN_TOKEN", "another-token-of-nobody")]).await;
    assert_eq!(code, Some(5), "{said}");
    let nowhere = [("PLUGIN_SERVER", "http://127.0.0.1:9"), ("PLUGIN_TIMEOUT", "1s")];
    let (code, said) = run_ci_step(&scene, 19, "1.4", &nowhere).await;
    assert_eq!(code, Some(6), "{said}");
}

/// Runs `tutti ci` as Drone does for a build of a tag; exit code and output.
async fn run_ci_step(
    scene: &LiveFixture,
    number: u64,
    tag: &str,
    settings: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut variables = CiBuild::of_tag("shop/web", number, tag).drone_step();
    let server = scene.api_url();
    let usual = [
        ("PLUGIN_SERVER", server.as_str()),
        ("PLUGIN_TOKEN", RELEASE_TOKEN),
        ("PLUGIN_TRIGGER", "release"),
        ("PLUGIN_APP", "triggers/web"),
        ("PLUGIN_RING", "test"),
    ];
    let own = usual.iter().chain(settings).map(|(name, value)| (*name, (*value).to_owned()));
    variables.extend(own);
    let variables: Vec<(String, String)> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let ended = scene.run_step(&["ci"], &variables).await;
    let said = format!("{}{}", ended.stdout, ended.stderr);
    println!("tutti ci, tag {tag}, {settings:?}: exit code {:?}\n{said}", ended.code);
    (ended.code, said)
}

/// A pipeline calls the trigger, and somebody merges; returns the merge commit.
async fn release_by_pipeline(scene: &LiveFixture, people: &ForgeUsers<'_>, number: u64, tag: &str) -> String {
    let (code, said) = run_ci_step(scene, number, tag, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let (pull, head) = people.until_opened(OF_RELEASE).await;
    people.merge(pull, &head).await;
    people.until_merged(pull).await
}

/// `tutti wait` in the pipeline of the config repository.
async fn run_wait(scene: &LiveFixture, question: &[&str]) -> (Option<i32>, String) {
    let variables = [
        ("TUTTI_SERVER".to_owned(), scene.api_url()),
        ("TUTTI_API_TOKEN".to_owned(), RELEASE_TOKEN.to_owned()),
    ];
    let ended = scene.run_step(&[&["wait"], question].concat(), &variables).await;
    let said = format!("{}{}", ended.stdout, ended.stderr);
    println!("tutti wait {}: exit code {:?}\n{said}", question.join(" "), ended.code);
    (ended.code, said)
}

/// Accepted deliveries that are not done.
fn pending_deliveries(scene: &LiveFixture) -> usize {
    let folders = std::fs::read_dir(scene.folder().join("state/deliveries")).into_iter().flatten().flatten();
    folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok()).map(Iterator::count).sum()
}

/// Drone sends once: a delivery answered with 202 is written, even if the process is killed at that moment.
#[tokio::test]
async fn accepted_delivery_outlives_a_kill() {
    let Some(scene) = started_fixture("killed").await else { return };
    let (people, branch) = (ForgeUsers::of(&scene), "tutti/trigger/of-drone/killed.web.test");
    let mut was_left = false;
    for number in 1..=5 {
        let version = format!("2.{number}");
        let (status, answer) =
            deliver(&scene, &CiBuild::of_tag("shop/web", number, &version).drone("updated", HOOK_SECRET))
                .await;
        assert_eq!(status, 202, "{answer}");
        scene.kill();
        let left = pending_deliveries(&scene);
        println!("{version}: {left} left by the kill");
        was_left |= left == 1;
        scene.start(&["--api-token-env", "TUTTI_SECRET_API"]).await;
        scene
            .eventually(&format!("a pull request of {version}"), async || {
                let (_, head) = people.until_opened(branch).await;
                let content = people.request("GET", &format!("/raw/{PIN}?ref={head}"), None).await;
                let expected = PINNED.replace("1.0", &version);
                if content.as_str() == Some(&*expected) && pending_deliveries(&scene) == 0 {
                    Ok(())
                } else {
                    Err(format!("{content}"))
                }
            })
            .await;
    }
    assert!(was_left, "no kill came in time");
    let pulls = people.request("GET", "/pulls?state=all", None).await;
    assert_eq!(pulls.as_array().map(Vec::len), Some(1), "{pulls}");
}
