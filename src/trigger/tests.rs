//! Payloads and the resulting outcomes or errors.

use serde_json::{Value, json};

use super::{TriggerOutcome, evaluate, evaluate_delivery, image_mistake, version_mistake};
use crate::fleet::{Fleet, assemble};
use crate::manifest;
use crate::model::Snapshot;

const INSTANCE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec:\n  defaults: {namespace: shop}\n  receivers: [{name: drone, type: gitea, secrets: [{env: TUTTI_SECRET_DRONE}]}]\n";
const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec:\n  rings: [{name: test, clusters: {}}, {name: prod, clusters: {names: [bj9]}}]\n";
const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
const APPROVAL: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {name: go}\nspec: {app: shop/pay, action: orphan}\n";

fn component(name: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}}}\nspec:\n  workloadType: deployment\n  developLanguage: python\n  runType: server\n  # of the shop\n  image: registry.example.com/shop/{name}:1.7.3 # pinned\n  port: 8080\n"
    )
}

fn trigger(spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: release}}\nspec:\n  {spec}\n")
}

const TOKEN: &str = "token: {secretRef: {env: TUTTI_SECRET_A}}";
const PIN: &str = "set: {app: '{{ app }}', version: '{{ version }}', ring: \"{{ ring | default('test') }}\"}";
const IMAGE: &str = "set: {app: '{{ app }}', image: '{{ image }}', ring: test}";
const FIELD: &str =
    "set: {app: pay, image: '{{ image }}', file: '{{ file | default(\"app.yaml\") }}', field: spec.image}";

fn repository(spec: &str) -> (Fleet, Snapshot) {
    let (pay, web, trigger) = (component("pay"), component("web"), trigger(spec));
    let snapshot = Snapshot::of_texts([
        ("tutti.yaml", INSTANCE),
        ("rings.yaml", RINGS),
        ("clusters/bj1.yaml", CLUSTER),
        ("apps/pay/app.yaml", &*pay),
        ("apps/pay/go.yaml", APPROVAL),
        ("apps/pay/pins/test.yaml", "# by CI\nversion: 1.7.3  # of test\n"),
        ("apps/pay/layer/values.yaml", "spec: {image: other}\n"),
        ("apps/web/app.yaml", &*web),
        ("apps/pay/web/app.yaml", &*component("inner")),
        ("triggers/release.yaml", &*trigger),
    ]);
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    assert_eq!(fleet.triggers.len(), 1, "{:?}", fleet.diagnostics);
    (fleet, snapshot)
}

fn run(spec: &str, payload: &Value) -> Result<Option<TriggerOutcome>, String> {
    let (fleet, snapshot) = repository(spec);
    evaluate(&fleet.triggers["release"], payload, &fleet, &snapshot).map_err(|error| error.to_string())
}

#[test]
fn payloads_match_by_value_list_and_pattern() {
    let drone = json!({
        "event": "build", "build": {"status": "success", "event": "tag", "number": 12, "ref": "refs/tags/1.8.0"},
        "repo": {"slug": "shop/pay", "active": true, "labels": ["a", "b"]},
    });
    let check = |rules: &str, expected: bool| {
        let spec = format!("receiver: drone\n  match: {rules}\n  set: {{app: pay, version: v2, ring: test}}");
        assert_eq!(run(&spec, &drone).expect("no error").is_some(), expected, "{rules}");
    };
    check("{event: build, build.status: success}", true);
    check("{event: build, build.status: failure}", false);
    check("{build.event: [promote, tag]}", true);
    check("{build.event: [promote]}", false);
    check("{repo.slug: shop/*}", true);
    check("{repo.slug: '*'}", false);
    check("{repo.slug: '**'}", true);
    check("{repo.slug: 'shop/{pay,web}'}", true);
    check("{repo.active: true, build.number: 12}", true);
    check("{repo.active: 'true', build.number: '1?'}", true);
    check("{repo.labels.1: b}", true);
    check("{repo.labels: '*'}", false);
    check("{repo.missing: '*'}", false);
    check("{repo: '*'}", false);
}

#[test]
fn version_goes_into_the_pin_of_a_ring() {
    let spec = format!("{TOKEN}\n  {PIN}");
    let payload = json!({
        "app": "shop/pay", "version": "1.8.0",
        "commit": {"sha": "0123456789abcdef0123456789abcdef01234567", "repo": "shop/pay", "author": "li\n@all", "message": "Pay\nmore", "url": "https://git.example.com/shop/pay/commit/1"},
    });
    let outcome = run(&spec, &payload).unwrap().unwrap();
    assert_eq!(
        (outcome.file.as_str(), outcome.field.as_str(), outcome.from.as_deref(), outcome.to.as_str()),
        ("apps/pay/pins/test.yaml", "version", Some("1.7.3"), "1.8.0")
    );
    assert!(outcome.is_change());
    assert_eq!(outcome.branch("tutti"), "tutti/trigger/release/shop.pay.test");
    assert_eq!(outcome.title(), "shop/pay in test: 1.7.3 → 1.8.0");
    assert_eq!(
        outcome.edited_file(Some("# by CI\nversion: 1.7.3  # of test\n")).unwrap(),
        "# by CI\nversion: 1.8.0  # of test\n"
    );
    assert_eq!(
        outcome.message(),
        "shop/pay in test: 1.7.3 → 1.8.0\n\nversion of apps/pay/pins/test.yaml.\ntrigger release, for shop/pay at 0123456.\nRepository: shop/pay\nCommit: 0123456789abcdef0123456789abcdef01234567\nAuthor: li\nMessage: Pay\nLink: https://git.example.com/shop/pay/commit/1\n"
    );
    assert!(outcome.body().contains("- `Author: li`\n- `Message: Pay`\n"), "{}", outcome.body());
    // A ring without a pin gets a new file, in which no version is parsed as a number.
    let payload = json!({"app": "pay", "version": "1.10", "ring": "prod"});
    let outcome = run(&spec, &payload).unwrap().unwrap();
    assert_eq!((outcome.file.as_str(), outcome.from.as_deref()), ("apps/pay/pins/prod.yaml", None));
    assert_eq!(
        (outcome.title(), outcome.edited_file(None).unwrap()),
        ("shop/pay in prod: 1.10".to_owned(), "version: \"1.10\"\n".to_owned())
    );
    // The same payload again changes nothing.
    let outcome = run(&spec, &json!({"app": "pay", "version": "1.7.3"})).unwrap().unwrap();
    assert!(!outcome.is_change());
}

#[test]
fn image_sets_field_and_its_tag_sets_pin() {
    let payload = json!({"app": "pay", "image": "registry.example.com/shop/pay:1.8.0"});
    let outcome =
        run(&format!("{TOKEN}\n  {FIELD}\n  action: {{write: commit}}"), &payload).unwrap().unwrap();
    assert_eq!((outcome.file.as_str(), outcome.version.as_deref()), ("apps/pay/app.yaml", Some("1.8.0")));
    assert_eq!(outcome.branch("tutti"), "tutti/trigger/release/shop.pay");
    let (before, after) =
        (component("pay"), component("pay").replace("pay:1.7.3 # pinned", "pay:1.8.0 # pinned"));
    assert_eq!(outcome.edited_file(Some(&before)).unwrap(), after);
    let outcome = run(&format!("{TOKEN}\n  {IMAGE}"), &payload).unwrap().unwrap();
    assert_eq!((outcome.file.as_str(), outcome.to.as_str()), ("apps/pay/pins/test.yaml", "1.8.0"));
}

#[test]
fn what_a_payload_says_is_checked_before_it_is_used() {
    let check = |set: &str, payload: Value, expected: &str| {
        let error = run(&format!("{TOKEN}\n  {set}"), &payload).expect_err(&payload.to_string());
        assert!(error.starts_with("failed to run trigger release at triggers/release.yaml:6:"), "{error}");
        assert!(error.contains(expected) && error.contains("(help: "), "{payload}: {error}");
        assert!(error.len() < 600 && !error.contains('\n'), "{error}");
    };
    let version = |version: &str| json!({"app": "pay", "version": version});
    for bad in [
        "",
        " ",
        "1.8.0\nspec: x",
        "1 8",
        "../x",
        "a/b",
        "v1: {a: b}",
        "'",
        "\"",
        "{{ app }}",
        "v1 #",
        "-v1",
        "é",
        "v1\u{202e}",
        &"1".repeat(64),
    ] {
        check(PIN, version(bad), "which is not a version");
    }
    check(PIN, json!({"app": "pay"}), "`version`: the payload has no value at `version`");
    check(PIN, json!({"app": "pay", "version": ["1"]}), "the payload has no value at `version`");
    check(PIN, json!({"app": "pay", "version": "1".repeat(5000)}), "longer than 1024 bytes");
    for bad in ["../web", "shop/../pay", "shop/pay/x", "*", "", "project/shop", "pa"] {
        check(PIN, json!({"app": bad, "version": "v2"}), "`app` is");
    }
    for bad in ["../../rings", "prod/../test", "staging", "", "prod\n"] {
        let expected = if bad.is_empty() { "" } else { "`ring` is" };
        if !expected.is_empty() {
            check(PIN, json!({"app": "pay", "version": "v2", "ring": bad}), expected);
        }
    }
    let image = |image: &str| json!({"app": "pay", "image": image});
    check(IMAGE, image("registry.example.com/shop/web:1"), "which is none of Component shop/pay");
    check(IMAGE, image("registry.example.com/shop/pay"), "`image` has no tag");
    check(IMAGE, image("registry.example.com/shop/pay:a_"), "which is not a version of a pin");
    for bad in [
        "",
        "a b",
        "pay:1\nb: c",
        "PAY:1",
        "pay:-1",
        "http://a/b",
        "pay@sha256:0",
        "pay:1:2",
        "a//b",
        "../pay:1",
        "pay:{{ x }}",
        "pay:1#",
        "reg:99999/pay:1",
    ] {
        check(FIELD, image(bad), "which is not an image");
    }
    let file = |file: &str| json!({"image": "pay:1", "file": file});
    for bad in [
        "../web/app.yaml",
        "../../tutti.yaml",
        "/etc/passwd.yaml",
        "a//b.yaml",
        "./app.yaml",
        "app.yaml\n",
        ".hidden.yaml",
        "app.yaml/../go.yaml",
        "app.txt",
        "a\\b.yaml",
        "%2e%2e/web/app.yaml",
    ] {
        check(FIELD, file(bad), "which is not the path of a YAML file");
    }
    check(FIELD, file("none.yaml"), "which does not exist");
    check(FIELD, file("web/app.yaml"), "which may be a file of another app");
    check(FIELD, file("go.yaml"), "which has a manifest of kind Approval in it");
}

#[test]
fn missing_field_error_names_its_file() {
    let set = "set: {app: pay, image: '{{ image }}', file: app.yaml, field: spec.picture}";
    let error = run(&format!("{TOKEN}\n  {set}"), &json!({"image": "pay:1"})).expect_err("no such field");
    assert!(
        error.contains("at apps/pay/app.yaml:5:") && error.contains("no `picture` in this map"),
        "{error}"
    );
}

#[test]
fn delivery_reaches_triggers_of_its_receiver() {
    let (fleet, snapshot) =
        repository("receiver: drone\n  match: {event: tag}\n  set: {app: pay, version: v2, ring: test}");
    let made = |receiver: &str, event: &str| {
        evaluate_delivery(receiver, &json!({"event": event}), &fleet, &snapshot).len()
    };
    assert_eq!((made("drone", "tag"), made("drone", "push"), made("gitea", "tag")), (1, 0, 0));
}

#[test]
fn values_follow_a_grammar() {
    for good in ["1.8.0", "v3", "a", "1.8.0-rc.1_2", &"a".repeat(63)] {
        assert_eq!(version_mistake(good), None, "{good}");
    }
    for good in [
        "pay",
        "pay:1",
        "shop/pay:v1.8.0",
        "localhost:5000/a/b__c-d.e:x",
        "reg.example.com/a@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ] {
        assert_eq!(image_mistake(good), None, "{good}");
    }
    for bad in
        ["a_-b:1", "a..b", "a-", "-a", "a:", "a@", ":1", "@sha256:", "re g.io/a", "reg.io:x/a", "a___b"]
    {
        assert!(image_mistake(bad).is_some(), "{bad}");
    }
}
