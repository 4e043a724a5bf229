//! Table of apps by clusters. If it is too wide, by rings, followed by the targets with problems.

use std::collections::BTreeMap;

use super::super::output::{say, table};
use super::super::progress;
use super::super::width::{self, first_names};
use super::super::wrapped_line::say_wrapped;
use super::approvals::write_approvals;
use crate::model::AppId;
use crate::report::{ClusterReport, Overview, TargetPhase, TargetReport, version};

const MAX_NAMED_CLUSTERS: usize = 4;

/// Prints phases of apps by clusters. `is_wide`: without a limit of width.
pub fn write_matrix(overview: &Overview, is_wide: bool) {
    lines(overview, if is_wide { None } else { Some(width::terminal_columns()) }).iter().for_each(|line| {
        match line {
            MatrixLine::Row(text) => say!("{text}"),
            MatrixLine::Problem(text) => say_wrapped(text),
        }
    });
    write_approvals(overview);
}

#[derive(Debug, PartialEq)]
enum MatrixLine {
    Row(String),
    Problem(String),
}

fn lines(overview: &Overview, width: Option<usize>) -> Vec<MatrixLine> {
    let fits =
        |rows: &[String]| width.is_none_or(|width| rows.iter().all(|row| row.chars().count() <= width));
    let by_cluster = rows(overview, &cluster_columns(overview));
    if fits(&by_cluster) {
        let troubles = unfinished_targets(overview).filter(|target| !target.detail.is_empty());
        let troubles = troubles.map(|target| {
            MatrixLine::Problem(format!("{} {}: {}", target.cluster, target.app, target.detail))
        });
        return by_cluster.into_iter().map(MatrixLine::Row).chain(troubles).collect();
    }
    let by_ring = rows(overview, &ring_columns(overview));
    let folded = if fits(&by_ring) { by_ring } else { rows(overview, &[all_clusters_column(overview)]) };
    folded.into_iter().map(MatrixLine::Row).chain(problem_lines(overview)).collect()
}

/// A column: its heading and its clusters.
type MatrixColumn<'o> = (String, Vec<&'o str>);

fn known_clusters(overview: &Overview) -> impl Iterator<Item = &ClusterReport> {
    overview.clusters.iter().filter(|cluster| !cluster.is_unregistered())
}

fn cluster_columns(overview: &Overview) -> Vec<MatrixColumn<'_>> {
    let name = |cluster: &ClusterReport| cluster.name.as_str().to_uppercase();
    known_clusters(overview).map(|cluster| (name(cluster), vec![cluster.name.as_str()])).collect()
}

/// In ring order; clusters without a ring last.
fn ring_columns(overview: &Overview) -> Vec<MatrixColumn<'_>> {
    let of_ring = |ring: Option<&str>| -> Vec<&str> {
        known_clusters(overview).filter(|it| it.ring.as_deref() == ring).map(|it| it.name.as_str()).collect()
    };
    let rings = overview.rings.iter().map(|ring| (ring.to_uppercase(), of_ring(Some(ring.as_str()))));
    let rest = if overview.rings.is_empty() { "CLUSTERS" } else { "NO RING" };
    let all = rings.chain([(rest.to_owned(), of_ring(None))]).filter(|(_, clusters)| !clusters.is_empty());
    all.map(|(name, clusters)| (format!("{name} ({})", clusters.len()), clusters)).collect()
}

fn all_clusters_column(overview: &Overview) -> MatrixColumn<'_> {
    let clusters: Vec<&str> = known_clusters(overview).map(|cluster| cluster.name.as_str()).collect();
    (format!("CLUSTERS ({})", clusters.len()), clusters)
}

fn rows(overview: &Overview, columns: &[MatrixColumn<'_>]) -> Vec<String> {
    let headings: Vec<&str> =
        std::iter::once("APP").chain(columns.iter().map(|(name, _)| name.as_str())).collect();
    let mut lines = table(&headings);
    let mut grouped: BTreeMap<&AppId, BTreeMap<&str, &TargetReport>> = BTreeMap::new();
    for target in &overview.targets {
        grouped.entry(&target.app).or_default().insert(target.cluster.as_str(), target);
    }
    for (app, targets) in &grouped {
        let mut row = vec![app.to_string()];
        row.extend(columns.iter().map(|(_, clusters)| {
            let of_column: Vec<&TargetReport> =
                clusters.iter().filter_map(|cluster| targets.get(cluster).copied()).collect();
            match of_column[..] {
                [] => "-".to_owned(),
                [target] if clusters.len() == 1 => cell(target),
                _ => folded_cell(&of_column),
            }
        }));
        lines.add_row(row);
    }
    lines.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn cell(target: &TargetReport) -> String {
    let (sign, _) = progress::phase_mark(target.phase);
    let pods = target.pods;
    match target.phase {
        TargetPhase::Running if pods.desired > 0 => {
            format!("{sign} {}/{} {}", pods.available, pods.desired, target.version)
        }
        TargetPhase::Running => format!("{sign} {}", target.phase.as_str()),
        phase => format!("{sign} {}", phase.as_str()),
    }
}

/// `✗ 38/40 Running v3/v4`, with the sign of the worst target.
fn folded_cell(targets: &[&TargetReport]) -> String {
    let worst = targets.iter().map(|target| target.phase).max().unwrap_or(TargetPhase::Running);
    let running = targets.iter().filter(|target| target.phase == TargetPhase::Running).count();
    let version = version::merge_versions(targets.iter().map(|target| target.version.as_str()));
    let (sign, _) = progress::phase_mark(worst);
    format!("{sign} {running}/{} Running {version}", targets.len()).trim_end().to_owned()
}

fn unfinished_targets(overview: &Overview) -> impl Iterator<Item = &TargetReport> {
    overview.targets.iter().filter(|target| !target.phase.is_done())
}

fn problem_lines(overview: &Overview) -> Vec<MatrixLine> {
    let mut grouped: BTreeMap<(&AppId, TargetPhase, &str), Vec<String>> = BTreeMap::new();
    for target in unfinished_targets(overview) {
        let key = (&target.app, target.phase, target.detail.as_str());
        grouped.entry(key).or_default().push(target.cluster.to_string());
    }
    let line = |((app, phase, detail), clusters): ((&AppId, TargetPhase, &str), Vec<String>)| {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let clusters = first_names(&clusters, MAX_NAMED_CLUSTERS);
        MatrixLine::Problem(format!("{app} is {} on {clusters}{detail}", phase.as_str()))
    };
    grouped.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClusterName, PodCount, Revision};

    /// 20 clusters in ring test, 80 in prod; the last five have problems.
    fn overview() -> Overview {
        let ring = |number: usize| Some(if number < 20 { "test" } else { "prod" }.to_owned());
        let name = |number: usize| ClusterName::from(format!("cluster-{number:03}").as_str());
        let cluster = |number| ClusterReport {
            ring: ring(number),
            ..ClusterReport::of_test(name(number).as_str(), None)
        };
        let target = |number| TargetReport {
            app: AppId::new("shop", "web"),
            kind: "Component",
            cluster: name(number),
            ring: ring(number),
            revision: Revision::from("abc"),
            phase: match number {
                ..95 => TargetPhase::Running,
                95 => TargetPhase::Degraded,
                _ => TargetPhase::Waiting,
            },
            detail: match number {
                ..95 => String::new(),
                95 => "no image".to_owned(),
                _ => "waits for wave test".to_owned(),
            },
            pods: PodCount { desired: 1, available: 1 },
            version: if number < 95 { "v2" } else { "v1" }.to_owned(),
            pod_sets: Vec::new(),
            created: None,
            plan: None,
            differences: None,
        };
        Overview {
            rings: vec!["test".to_owned(), "prod".to_owned()],
            clusters: (0..100).map(cluster).collect(),
            targets: (0..100).map(target).collect(),
            ..Overview::default()
        }
    }

    fn text(overview: &Overview, width: Option<usize>) -> Vec<String> {
        let text = |line| match line {
            MatrixLine::Row(text) | MatrixLine::Problem(text) => text,
        };
        lines(overview, width).into_iter().map(text).collect()
    }

    #[test]
    fn many_clusters_fold_to_rings_and_problems() {
        let expected = [
            "APP       TEST (20)            PROD (80)",
            "shop/web  ✓ 20/20 Running v2  ✗ 75/80 Running v1/v2",
            "shop/web is Waiting on cluster-096, cluster-097, cluster-098, cluster-099: waits for wave test",
            "shop/web is Degraded on cluster-095: no image",
        ];
        let found = text(&overview(), Some(100));
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let (found, expected) = (found.iter().map(|it| squeezed(it)), expected.iter().map(|it| squeezed(it)));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn rings_too_wide_fold_to_one_column() {
        assert_eq!(text(&overview(), Some(45))[0], "APP       CLUSTERS (100)");
    }

    #[test]
    fn wide_shows_each_cluster() {
        let wide = text(&overview(), None);
        assert!(wide[0].contains("CLUSTER-000") && wide[0].contains("CLUSTER-099"), "{}", wide[0]);
        assert!(wide.contains(&"cluster-095 shop/web: no image".to_owned()), "{wide:?}");
    }
}
