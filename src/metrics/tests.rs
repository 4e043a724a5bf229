//! The whole of `/metrics`: documentation, bounds and format.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;

use super::{DeliveryResult, Metrics, WriteResult};
use crate::cluster::WritePermit;
use crate::forge::{ForgeObserver as _, ForgeOperation};
use crate::model::{AppId, Revision};
use crate::report::{ClusterReport, Overview, TargetPhase, TargetReport};

/// Type and labels of each metric.
type Shape = BTreeMap<String, (String, BTreeSet<String>)>;

/// Each counter was incremented.
fn busy() -> Metrics {
    let metrics = Metrics::default();
    metrics.publish(&fleet(2));
    metrics.record_delivery(Some("gitea"), DeliveryResult::Accepted);
    metrics.request_finished(ForgeOperation::PostStatus, Some(StatusCode::CREATED));
    metrics.record_notification("feishu", "sent");
    metrics
}

fn fleet(clusters: usize) -> Overview {
    let cluster = |number: usize| ClusterReport {
        objects: 0,
        ..ClusterReport::of_test(&format!("cluster-{number}"), None)
    };
    Overview {
        revision: Some(Revision::from("0123456789")),
        clusters: (0..clusters).map(cluster).collect(),
        ..Overview::default()
    }
}

/// The name of a series, and the names of its labels.
fn series(line: &str) -> (&str, Vec<&str>) {
    let name = line.split(['{', ' ']).next().expect("a name");
    let labels = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('{'));
    let labels = labels.and_then(|rest| rest.split_once('}')).map_or("", |(labels, _)| labels);
    (name, labels.split(',').filter_map(|label| Some(label.split_once('=')?.0)).collect())
}

fn exposed(text: &str) -> Shape {
    let mut shape = Shape::new();
    let mut of_name: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a type");
        let shown = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        of_name.extend(suffixes.iter().map(|suffix| (format!("{name}{suffix}"), shown.clone())));
        assert!(shape.insert(shown, (kind.to_owned(), BTreeSet::new())).is_none(), "{name} twice");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = series(line);
        let of = of_name.get(name).unwrap_or_else(|| panic!("no type: {line}"));
        let known = shape.get_mut(of).expect("it has a type");
        known.1.extend(labels.into_iter().filter(|label| *label != "le").map(str::to_owned));
    }
    shape
}

fn documented(page: &str) -> Shape {
    let table = page.split("| metric | type | labels | unit | meaning |").nth(1).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let names =
            |cell: &str| cell.split(", ").filter(|it| *it != "none").map(|it| it.replace('`', "")).collect();
        (cells[0].replace('`', ""), (cells[1].to_owned(), names(cells[2])))
    };
    rows.map(row).collect()
}

#[test]
fn documentation_lists_what_is_exposed() {
    let page = include_str!("../../docs/reference/metrics.md");
    let text = busy().encode().expect("text");
    assert_eq!(documented(page), exposed(&text));
}

#[test]
fn documentation_lists_each_label_value() {
    let page = include_str!("../../docs/reference/metrics.md");
    let results = WriteResult::ALL.map(WriteResult::as_str);
    let verdicts = DeliveryResult::ALL.map(DeliveryResult::as_str);
    let operations = ForgeOperation::ALL.map(ForgeOperation::as_str);
    let phases = TargetPhase::ALL.map(TargetPhase::as_str);
    let all = [&results[..], &verdicts, &operations, &phases, &ClusterReport::STATES].concat();
    let missing: Vec<&str> = all.into_iter().filter(|value| !page.contains(&format!("`{value}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn text_is_open_metrics() {
    let text = busy().encode().expect("text");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    for line in [
        "# TYPE tutti_apply counter",
        "# UNIT tutti_render_seconds seconds",
        "# TYPE tutti_render_seconds histogram",
        "tutti_render_seconds_count 0",
        "tutti_apply_total{result=\"created\"} 0",
        "tutti_cluster_up{cluster=\"cluster-1\"} 1",
        "tutti_clusters{state=\"Ready\"} 2",
        "tutti_rollouts{phase=\"Failed\"} 0",
        "tutti_forge_requests_total{op=\"post_status\",code=\"201\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// As many of everything as Git, the forge and strangers can create.
#[test]
fn no_name_has_more_than_a_thousand_series() {
    for clusters in [1000, 1001] {
        let metrics = busy();
        metrics.publish(&fleet(clusters));
        for receiver in (0..2000).map(|number| format!("receiver-{number}")) {
            DeliveryResult::ALL
                .into_iter()
                .for_each(|verdict| metrics.record_delivery(Some(&receiver), verdict));
        }
        DeliveryResult::ALL.into_iter().for_each(|verdict| metrics.record_delivery(None, verdict));
        for code in (100..1000).filter_map(|code| StatusCode::from_u16(code).ok()) {
            ForgeOperation::ALL
                .into_iter()
                .for_each(|operation| metrics.request_finished(operation, Some(code)));
        }
        let text = metrics.encode().expect("text");
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            *counts.entry(series(line).0).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(_, count)| **count).expect("series");
        assert!(*most.1 <= 1000, "{most:?}");
        let up = counts.get("tutti_cluster_up").copied().unwrap_or_default();
        assert_eq!(up, if clusters == 1000 { 1000 } else { 0 });
        let omitted = format!("tutti_cluster_up_omitted {}", u8::from(clusters > 1000));
        assert!(text.lines().any(|line| line == omitted), "{omitted}");
    }
}

/// Series exist before their first event, so that `rate` counts it.
#[test]
fn fleet_series_exist_before_the_first_overview() {
    let text = Metrics::default().encode().expect("text");
    for line in [
        "tutti_targets{phase=\"Degraded\"} 0",
        "tutti_clusters{state=\"Offline\"} 0",
        "tutti_queue_depth 0",
        "tutti_leader 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn process_without_permit_is_not_leader() {
    let (metrics, permit) = (Metrics::default(), WritePermit::default());
    metrics.watch_permit(permit.clone());
    assert!(metrics.encode().expect("text").contains("\ntutti_leader 1\n"));
    permit.revoke();
    assert!(metrics.encode().expect("text").contains("\ntutti_leader 0\n"));
}

#[test]
fn queue_is_read_at_the_scrape() {
    let metrics = Metrics::default();
    metrics.watch_queue(|| 7);
    assert!(metrics.encode().expect("text").contains("\ntutti_queue_depth 7\n"));
}

#[tokio::test(start_paused = true)]
async fn lag_grows_until_the_repository_answers() {
    let metrics = Metrics::default();
    let lag = || {
        let text = metrics.encode().expect("text");
        let value = text.lines().find_map(|line| line.strip_prefix("tutti_source_lag_seconds "));
        value.expect("a value").parse::<f64>().expect("a number")
    };
    tokio::time::advance(std::time::Duration::from_secs(90)).await;
    assert!((lag() - 90.0).abs() < 1.0, "{}", lag());
    metrics.record_source_read(tokio::time::Instant::now());
    assert!(lag() < 1.0, "{}", lag());
}

#[tokio::test(start_paused = true)]
async fn converged_commit_is_observed_once() {
    let metrics = Metrics::default();
    let commit = Revision::from("two");
    metrics.record_commit(&commit, tokio::time::Instant::now());
    let overview = |phase| Overview {
        revision: Some(commit.clone()),
        is_rendered: true,
        tracked_commits: vec![commit.clone()],
        targets: vec![TargetReport {
            revision: commit.clone(),
            ..TargetReport::of_test(AppId::new("shop", "pay"), "bj1", phase)
        }],
        ..Overview::default()
    };
    metrics.publish(&overview(TargetPhase::Progressing));
    tokio::time::advance(std::time::Duration::from_secs(42)).await;
    metrics.publish(&overview(TargetPhase::Running));
    metrics.publish(&overview(TargetPhase::Running));
    let text = metrics.encode().expect("text");
    let bucket = |le: &str| format!("tutti_commit_to_converged_seconds_bucket{{le=\"{le}\"}}");
    for line in [bucket("30.0") + " 0", bucket("60.0") + " 1", bucket("+Inf") + " 1"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}
