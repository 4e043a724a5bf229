//! Evaluation and counting of measurements, requests of probes.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{Sandbox, SandboxOptions};
use serde_json::{Value as Json, json};

use super::evaluation::{
    AnalysisExpressions, MeasurementAnswer, MeasurementTally, MeasurementVerdict, prometheus_values,
};
use super::probe::{Prober, checked_address};
use super::run::{MeasuredWave, commit_of, safe_value};
use super::statuses;
use crate::cluster::{ClusterLink, HomeCluster};
use crate::controller::RepositoryGrants;
use crate::forge::CommitStatusState;
use crate::manifest;
use crate::model::{AnalysisSpec, AppId, Hosts, PodCount, Revision, Snapshot};
use crate::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport, UnitReport};
use crate::rollout::{MeasurementOutcome, RolloutHold, UnitId};

fn spec(text: &str) -> AnalysisSpec {
    let manifest =
        format!("apiVersion: tutti.dev/v1alpha1\nkind: Analysis\nmetadata: {{name: a}}\nspec: {text}\n");
    let read = manifest::read(&Snapshot::of_texts([("policies/a.yaml", manifest.as_str())]));
    let [analysis] = &read.analyses[..] else { panic!("{read:?}") };
    analysis.spec.clone().unwrap_or_else(|| panic!("{:?}", read.diagnostics))
}

fn prometheus(more: &str) -> AnalysisSpec {
    spec(&format!("{{prometheus: {{url: 'https://p', query: up, {more}}}}}"))
}

#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn check(spec: &AnalysisSpec, answer: &MeasurementAnswer, expected: MeasurementVerdict) {
    assert_eq!(AnalysisExpressions::of(spec).expect("expressions").evaluate(answer), expected, "{answer:?}");
}

#[test]
fn query_values_are_good_bad_or_unclear() {
    let one = prometheus("success: 'result[0] < 0.05'");
    let two = prometheus("success: 'result[0] < 0.05', failure: 'result[0] > 0.5'");
    let good = |text: &str| MeasurementVerdict::Good(text.to_owned());
    let bad = |text: &str| MeasurementVerdict::Bad(text.to_owned());
    let unclear = |text: &str| MeasurementVerdict::Unclear(text.to_owned());
    let values = |values: &[f64]| MeasurementAnswer::Values(values.to_vec());
    check(&one, &values(&[0.01]), good("result [0.01]"));
    check(&one, &values(&[0.3]), bad("result [0.3]"));
    check(&one, &values(&[f64::INFINITY]), bad("result [inf]"));
    check(&two, &values(&[0.01, 1.0, 2.0, 3.0]), good("result [0.01, 1, 2, …]"));
    check(&two, &values(&[0.3]), unclear("neither success nor failure: result [0.3]"));
    check(&two, &values(&[0.7]), bad("result [0.7]"));
    for spec in [&one, &two] {
        check(spec, &values(&[]), unclear("the query returned no data"));
        check(
            spec,
            &values(&[0.01, f64::NAN]),
            unclear("the query result is not a number: result [0.01, NaN]"),
        );
    }
    // A failed evaluation, or a result that is no boolean.
    let wrong = prometheus("success: 'result[1] < 0.05'");
    let said = AnalysisExpressions::of(&wrong).expect("an expression").evaluate(&values(&[1.0]));
    assert!(
        matches!(&said, MeasurementVerdict::Unclear(why) if why.starts_with("success cannot be evaluated: ")),
        "{said:?}"
    );
    let number = prometheus("success: 'result[0]'");
    check(
        &number,
        &values(&[1.0]),
        unclear("success cannot be evaluated: it is a double, not true or false, with result [1]"),
    );
    let endless = prometheus("success: 'result.all(a, result.all(b, result.all(c, a + b + c >= 0.0)))'");
    let said = AnalysisExpressions::of(&endless).expect("an expression").evaluate(&values(&[1.0; 1000]));
    assert!(matches!(&said, MeasurementVerdict::Unclear(why) if why.contains("takes too long")), "{said:?}");
    // Query values compare with whole numbers.
    check(
        &prometheus("success: 'result.all(value, value == 1)'"),
        &values(&[1.0, 1.0]),
        good("result [1, 1]"),
    );
    check(&prometheus("success: 'true', failure: 'true'"), &values(&[1.0]), bad("result [1]"));
}

#[test]
fn http_and_health_answers_are_judged() {
    let http = |expect: &str| spec(&format!("{{http: {{url: 'https://p'{expect}}}}}"));
    let answer = |status: u16, body: Json| MeasurementAnswer::Http { status, body };
    check(&http(""), &answer(204, json!("")), MeasurementVerdict::Good("status 204".to_owned()));
    check(&http(""), &answer(503, json!("")), MeasurementVerdict::Bad("status 503".to_owned()));
    let body = http(", expect: 'status == 200 && body.ok'");
    check(&body, &answer(200, json!({"ok": true})), MeasurementVerdict::Good("status 200".to_owned()));
    check(&body, &answer(200, json!({"ok": false})), MeasurementVerdict::Bad("status 200".to_owned()));
    let said =
        AnalysisExpressions::of(&body).expect("an expression").evaluate(&answer(200, json!("no JSON")));
    assert!(matches!(said, MeasurementVerdict::Unclear(_)), "{said:?}");
    let health = spec("{health: 'units.all(unit, unit.available >= unit.desired)'}");
    let units = |available: u32| MeasurementAnswer::Units(json!([{"desired": 2, "available": available}]));
    check(&health, &units(2), MeasurementVerdict::Good("2/2 available".to_owned()));
    check(&health, &units(1), MeasurementVerdict::Bad("1/2 available".to_owned()));
}

#[test]
fn query_result_must_be_vector_or_scalar() {
    let read = |answer: Json| prometheus_values(answer.to_string().as_bytes());
    let of = |kind: &str, result: Json| {
        read(json!({"status": "success", "data": {"resultType": kind, "result": result}}))
    };
    let series = |value: &str| json!({"metric": {}, "value": [1.5, value]});
    assert_eq!(of("vector", json!([series("0.5"), series("2")])), Ok(vec![0.5, 2.0]));
    assert_eq!(of("vector", json!([])), Ok(Vec::new()));
    assert_eq!(of("scalar", json!([1.5, "7"])), Ok(vec![7.0]));
    assert!(of("vector", json!([series("NaN")])).is_ok_and(|it| it[0].is_nan()));
    assert_eq!(of("vector", json!([series("+Inf")])), Ok(vec![f64::INFINITY]));
    let many = Json::Array(vec![series("1"); 1001]);
    for (found, expected) in [
        (of("matrix", json!([])), "the result is a matrix: a query gives a vector or a scalar"),
        (of("string", json!([1.5, "a"])), "the result is a string: a query gives a vector or a scalar"),
        (of("vector", json!([{"value": 1}])), "a value of the result is not a number"),
        (of("vector", json!([series("a")])), "a value of the result is not a number"),
        (of("vector", many), "the result has 1001 series; 1000 are the most"),
        (of("vector", json!({})), "the result is a vector: a query gives a vector or a scalar"),
        (read(json!({"status": "error", "error": "parse error"})), "the query failed: parse error"),
        (read(json!([])), "the answer is not a Prometheus response"),
        (read(json!({"status": "success"})), "the answer is not a Prometheus response"),
        (prometheus_values(b"<html>"), "the answer is not JSON"),
    ] {
        assert_eq!(found, Err(expected.to_owned()));
    }
}

#[test]
fn measurements_are_counted() {
    let of = |more: &str| spec(&format!("{{health: 'true'{more}}}"));
    let (good, bad, unclear) = (
        || MeasurementVerdict::Good("a".to_owned()),
        || MeasurementVerdict::Bad("b".to_owned()),
        || MeasurementVerdict::Unclear("c".to_owned()),
    );
    let run = |spec: &AnalysisSpec, verdicts: Vec<MeasurementVerdict>| {
        let mut tally = MeasurementTally::default();
        verdicts.into_iter().map(|verdict| tally.add(spec, &verdict)).collect::<Vec<_>>()
    };
    let outcome = |of: fn(Arc<str>) -> MeasurementOutcome, text: &str| of(text.into());
    assert_eq!(run(&of(""), vec![good()]), [outcome(MeasurementOutcome::Success, "a")]);
    assert_eq!(run(&of(""), vec![bad()]), [outcome(MeasurementOutcome::Failure, "b")]);
    // One unclear measurement is pending; four in a row need a person.
    let one = |number: u32| outcome(MeasurementOutcome::Pending, &format!("{number}/4 unclear, c"));
    assert_eq!(run(&of(""), vec![unclear(), good()]), [one(1), outcome(MeasurementOutcome::Success, "a")]);
    assert_eq!(
        run(&of(", count: 2"), vec![unclear(), unclear(), unclear(), good(), unclear()]),
        [one(1), one(2), one(3), outcome(MeasurementOutcome::Pending, "1/2 good, a"), one(1)]
    );
    // A request that cannot be sent needs a person at once.
    let not_asked = || MeasurementVerdict::NotAsked("d".to_owned());
    assert_eq!(
        run(&of(""), vec![unclear(), not_asked(), good()]),
        [one(1), outcome(MeasurementOutcome::Inconclusive, "d"), outcome(MeasurementOutcome::Success, "a")]
    );
    let four = || vec![unclear(), unclear(), unclear(), unclear()];
    assert_eq!(
        run(&of(""), [four(), vec![unclear(), good()]].concat())[2..],
        [
            one(3),
            outcome(MeasurementOutcome::Inconclusive, "c"),
            outcome(MeasurementOutcome::Inconclusive, "c"),
            outcome(MeasurementOutcome::Success, "a")
        ]
    );
    assert_eq!(
        run(&of(""), [four(), vec![bad()]].concat()).last(),
        Some(&outcome(MeasurementOutcome::Failure, "b"))
    );
    assert_eq!(
        run(&of(", count: 2, failureLimit: 1"), vec![good(), bad(), unclear(), good()]),
        [
            outcome(MeasurementOutcome::Pending, "1/2 good, a"),
            outcome(MeasurementOutcome::Pending, "1 bad (1 allowed), b"),
            one(1),
            outcome(MeasurementOutcome::Success, "2/2 good, a"),
        ]
    );
    assert_eq!(
        run(&of(", count: 9, failureLimit: 1"), vec![bad(), bad()]).last(),
        Some(&outcome(MeasurementOutcome::Failure, "2 bad (1 allowed), b"))
    );
    let usual = of("");
    assert_eq!(
        (usual.interval, usual.timeout, usual.initial_delay),
        (Duration::from_secs(60), Duration::from_secs(10), Duration::ZERO)
    );
}

#[test]
fn values_that_could_be_more_than_a_word_are_not_put_in() {
    for text in ["", "shop", "web-1", "v1.2.3_4", "bj1|bj5.example.com"] {
        assert_eq!(safe_value(text), json!(text));
    }
    for text in ["1.0\"} or up{a=\"", "a b", "../admin", "a/b", "a?b", "a%2e", "发", "v1/v2", "a\n"] {
        assert_eq!(safe_value(text), Json::Null, "{text:?}");
    }
}

/// The author of the manifest decides neither who receives a credential nor which private host is asked.
#[test]
fn credentials_and_private_addresses_need_a_named_host() {
    let grants = RepositoryGrants {
        allow_http: Hosts::new(["prometheus.monitoring.svc"]),
        analysis_hosts: Hosts::new(["prometheus.example.com", "10.0.0.1:9090", "localhost"]),
        ..RepositoryGrants::default()
    };
    let check = |url: &str, has_credential: bool, expected: Result<(), &str>| {
        let found = checked_address(url, &grants, has_credential).map(|_| ());
        assert_eq!(found, expected.map_err(ToOwned::to_owned), "{url} {has_credential}");
    };
    for has_credential in [false, true] {
        check("https://prometheus.example.com/a", has_credential, Ok(()));
        check(
            "http://10.0.0.1:9090/",
            has_credential,
            Err("http:// only on this machine, or with --allow-http 10.0.0.1"),
        );
        check("https://10.0.0.1:9090/", has_credential, Ok(()));
        check("http://localhost:9090/", has_credential, Ok(()));
    }
    check("https://other.example.com/", false, Ok(()));
    let no_credential =
        |host: &str| format!("no credential is sent to this host without --analysis-host {host}");
    for (url, host) in [
        ("https://other.example.com/", "other.example.com"),
        ("https://prometheus.example.com.evil.com:1/", "prometheus.example.com.evil.com:1"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("http://prometheus.monitoring.svc:9090/", "prometheus.monitoring.svc:9090"),
    ] {
        check(url, true, Err(&no_credential(host)));
    }
    let private =
        |host: &str| format!("no request is sent to a private address without --analysis-host {host}");
    for (url, host) in [
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://169.254.169.254/latest", "169.254.169.254"),
        ("http://127.0.0.1:8480/", "127.0.0.1:8480"),
        ("https://[::1]/", "[::1]"),
        ("https://[::ffff:10.0.0.1]/", "[::ffff:a00:1]"),
        ("https://2852039166/", "169.254.169.254"),
    ] {
        check(url, false, Err(&private(host)));
    }
}

/// A header is plain text in Git, so it is no secret.
#[tokio::test]
async fn header_needs_no_named_host() {
    let prober =
        Prober::new(Arc::new(RepositoryGrants::default()), HomeCluster::default()).expect("a client");
    let spec = spec("{http: {url: 'https://example.com:1', headers: {X-Author: a, Idempotency-Key: a}}}");
    assert!(prober.prepare(&spec.probe, &json!({})).await.is_ok());
}

/// The cluster names of a large fleet make a long query.
#[tokio::test]
async fn long_queries_are_posted() {
    let grants =
        RepositoryGrants { analysis_hosts: Hosts::new(["127.0.0.1"]), ..RepositoryGrants::default() };
    let prober = Prober::new(Arc::new(grants), HomeCluster::default()).expect("a client");
    let spec = spec(
        "{prometheus: {url: 'http://127.0.0.1:1', query: 'up{cluster=~\"{{ clusters }}\"}', success: 'true'}}",
    );
    for (length, method) in [(100, "GET"), (60_000, "POST")] {
        let values = json!({"clusters": "c".repeat(length)});
        let ready = prober.prepare(&spec.probe, &values).await.expect("a request").expect("a request");
        let request = ready.request.build().expect("a request");
        assert_eq!(request.method(), method);
        let shown = match method {
            "GET" => request.url().query().unwrap_or_default().to_owned(),
            _ => String::from_utf8_lossy(request.body().and_then(|it| it.as_bytes()).unwrap_or_default())
                .into_owned(),
        };
        assert!(shown.starts_with("query=up%7Bcluster%3D%7E%22ccc"), "{shown:.40}");
        assert_eq!(request.url().path(), "/api/v1/query");
    }
    let values = json!({"clusters": "c".repeat(70_000)});
    let refused = prober.prepare(&spec.probe, &values).await.expect_err("it is too long");
    assert_eq!(refused, MeasurementVerdict::NotAsked("it becomes longer than 65536 bytes".to_owned()));
}

/// A confirmation in advance passes an inconclusive gate, so an unreadable credential is measured again first.
#[tokio::test(start_paused = true)]
async fn unreadable_credential_is_unclear() {
    let sandbox = Sandbox::new(SandboxOptions::instant("home"));
    let home = HomeCluster::at(ClusterLink::in_process(sandbox.service()));
    let grants =
        RepositoryGrants { analysis_hosts: Hosts::new(["example.com"]), ..RepositoryGrants::default() };
    let prober = Prober::new(Arc::new(grants), home).expect("a client");
    let check = async |token: &str, is_unclear: bool| {
        let spec = spec(&format!("{{http: {{url: 'https://example.com', token: {token}}}}}"));
        let verdict = prober.prepare(&spec.probe, &json!({})).await.expect_err("no credential");
        assert_eq!(matches!(verdict, MeasurementVerdict::Unclear(_)), is_unclear, "{token}: {verdict:?}");
    };
    let of = |namespace: &str| format!("{{secret: {{namespace: {namespace}, name: one, key: key}}}}");
    check("{env: PATH}", false).await;
    check(&of("default"), true).await;
    check(&of("other"), false).await;
    sandbox.set_down(true);
    check(&of("default"), true).await;
}

#[test]
fn commit_status_gives_outcome() {
    let commit = Revision::from("0123456789");
    let of = |status: Option<(CommitStatusState, &str)>, is_late: bool| {
        let status = status.map(|(state, text)| ("ci/smoke".to_owned(), (state, text.to_owned())));
        statuses::status_outcome(&status.into_iter().collect(), "ci/smoke", &commit, is_late)
    };
    for is_late in [false, true] {
        assert_eq!(
            of(Some((CommitStatusState::Pending, "")), is_late),
            MeasurementOutcome::Pending("it is pending on 0123456".into())
        );
        let good = MeasurementOutcome::Success("it is success on 0123456: all".into());
        assert_eq!(of(Some((CommitStatusState::Success, "all")), is_late), good);
        for state in [CommitStatusState::Failure, CommitStatusState::Error] {
            let failed = MeasurementOutcome::Inconclusive("it has failed on 0123456: 3 of 7".into());
            assert_eq!(of(Some((state, "3 of 7")), is_late), failed);
        }
    }
    // Possibly no program will set it.
    for (status, words) in [
        (None, "no such commit status on 0123456"),
        (Some((CommitStatusState::Skipped, "")), "it is skipped on 0123456"),
    ] {
        assert_eq!(of(status, false), MeasurementOutcome::Pending(words.into()));
        assert_eq!(of(status, true), MeasurementOutcome::Inconclusive(words.into()));
    }
}

/// A unit has its content from an earlier commit: the newest counts. A later pin of another ring does not.
#[test]
fn status_is_read_of_wave_commit() {
    let unit = |cluster: &str, wave: &str, revision: &str, since: i64| UnitReport {
        is_at_head: true,
        revision: Some(Revision::from(revision)),
        since: jiff::Timestamp::from_second(since).ok(),
        ..UnitReport::of_test(UnitId::new(cluster, ""), wave)
    };
    let units =
        vec![unit("c1", "test", "1111", 10), unit("c2", "test", "2222", 20), unit("c3", "prod", "3333", 30)];
    let rollout = RolloutReport {
        commit: Some(Revision::from("4444")),
        ..RolloutReport::of_test(AppId::new("shop", "pay"), Vec::new(), units)
    };
    assert_eq!(commit_of(&rollout, "test"), Some(Revision::from("2222")));
    assert_eq!(commit_of(&rollout, "other"), Some(Revision::from("4444")));
}

/// A cluster that went offline with the version says nothing about it.
#[test]
fn unreachable_clusters_are_not_measured() {
    let app = AppId::new("shop", "pay");
    let at_head = |cluster: &str| UnitReport {
        is_at_head: true,
        ..UnitReport::of_test(UnitId::new(cluster, ""), "test")
    };
    let target = |cluster: &str, available: u32| TargetReport {
        pods: PodCount { desired: 2, available },
        ..TargetReport::of_test(app.clone(), cluster, TargetPhase::Running)
    };
    let spec = spec("{health: 'units.all(unit, unit.available >= unit.desired)'}");
    let judge = AnalysisExpressions::of(&spec).expect("expressions");
    for (state, hold) in
        [("Offline", None), ("Connecting", None), ("Maintaining", None), ("Ready", Some(RolloutHold::Unread))]
    {
        let lost = UnitReport { hold, ..at_head("c2") };
        let rollout = RolloutReport::of_test(app.clone(), Vec::new(), vec![at_head("c1"), lost]);
        let overview = Overview {
            targets: vec![target("c1", 2), target("c2", 0)],
            clusters: vec![
                ClusterReport::of_test("c1", None),
                ClusterReport { state, ..ClusterReport::of_test("c2", None) },
            ],
            ..Overview::default()
        };
        let subject = MeasuredWave::of(&overview, &rollout, "test");
        assert_eq!(subject.values()["clusters"], "c1", "{state}");
        let verdict = judge.evaluate(&MeasurementAnswer::Units(subject.units()));
        assert_eq!(verdict, MeasurementVerdict::Good("2/2 available".to_owned()), "{state}");
    }
}
