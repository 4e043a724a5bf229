//! Prints progress on standard error: one line for each changed target.
//!
//! Lines stay, on terminals too, so that they can be read later and copied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use console::{Style, style};
use tokio::sync::watch;

use super::output::tell;
use crate::model::{AppId, ClusterName, Diagnostic};
use crate::report::status_text::count_noun;
use crate::report::{Overview, RolloutReport, TargetPhase, TargetReport, UNREGISTERED};
use crate::rollout::RolloutHold;

/// Prints changes until the run ends.
pub async fn print_progress(mut overview: watch::Receiver<Arc<Overview>>) {
    let mut shown = PrintedProgress::default();
    while overview.changed().await.is_ok() {
        let now = Arc::clone(&overview.borrow_and_update());
        shown.show(&now);
    }
}

#[derive(Default)]
struct PrintedProgress {
    revision: Option<String>,
    /// When the revision appeared; `None` after "done" was printed.
    since: Option<Instant>,
    targets: BTreeMap<(AppId, ClusterName), (TargetPhase, String)>,
    clusters: BTreeMap<ClusterName, (&'static str, String)>,
    source_error: Option<String>,
    approvals: BTreeSet<String>,
}

impl PrintedProgress {
    fn show(&mut self, now: &Overview) {
        if let Some(revision) = now.revision.as_ref().map(|revision| revision.short().to_owned())
            && self.revision.as_ref() != Some(&revision)
        {
            let errors = now.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
            let errors = if errors > 0 {
                format!(", {} (tutti lint)", count_noun(errors, "error"))
            } else {
                String::new()
            };
            tell!("{} revision {revision}{errors}", style("»").cyan().for_stderr());
            self.revision = Some(revision);
            self.since = Some(Instant::now());
        }
        if self.source_error != now.source_error {
            if let Some(error) = &now.source_error {
                tell!("{} {error}", style("!").red().for_stderr());
            }
            self.source_error.clone_from(&now.source_error);
        }
        for cluster in &now.clusters {
            let state = (cluster.state, cluster.detail.clone());
            let known = self.clusters.insert(cluster.name.clone(), state.clone());
            let word = match cluster.state {
                "Offline" => "offline",
                UNREGISTERED => "dropped",
                _ => continue,
            };
            let is_same = known.is_some_and(|(word, detail)| {
                // Each attempt of an outage may have another error.
                word == state.0 && (word == "Offline" || detail == state.1)
            });
            if !is_same {
                let (sign, name) = (style("!").red().for_stderr(), &cluster.name);
                tell!("{sign} {name} {word}: {}", cluster.detail);
            }
        }
        // An offline cluster is one line, not one per app.
        for target in now.targets.iter().filter(|target| target.phase != TargetPhase::Unreachable) {
            let detail = match target.phase {
                // Pod counts suffice; events of objects would be too much.
                TargetPhase::Progressing | TargetPhase::Running if target.pods.desired > 0 => {
                    let pods = format!("{}/{} available", target.pods.available, target.pods.desired);
                    match target.phase {
                        TargetPhase::Running if !target.detail.is_empty() => {
                            format!("{pods}; {}", target.detail)
                        }
                        _ => pods,
                    }
                }
                TargetPhase::Pending if target.detail == "applying" || target.detail == "observing" => {
                    String::new()
                }
                _ => target.detail.clone(),
            };
            let (phase, key) = (target.phase, (target.app.clone(), target.cluster.clone()));
            let state = (phase, waiting_summary(now, target).unwrap_or_else(|| detail.clone()));
            if self.targets.get(&key) != Some(&state) {
                let (mark, look) = phase_mark(phase);
                tell!(
                    "{} {:<12} {:<22} {:<12} {}",
                    look.apply_to(mark),
                    target.cluster,
                    target.app.to_string(),
                    phase.as_str(),
                    detail.trim_end()
                );
                self.targets.insert(key, state);
            }
        }
        let approvals = now.approvals_wanted.iter().map(|approval| {
            let deletes = count_noun(approval.objects.len(), "delete");
            let digest = approval.digest();
            format!("{deletes} of {} wait for approval: tutti approve {}", approval.app, digest.short())
        });
        let steps = now.rollouts.iter().filter_map(RolloutReport::next_step).map(|step| step.to_string());
        let approvals: BTreeSet<String> = approvals.chain(steps).collect();
        for approval in approvals.difference(&self.approvals) {
            tell!("{} {approval}", style("…").yellow().for_stderr());
        }
        self.approvals = approvals;
        let is_done = now.is_rendered
            // Manifests with mistakes are not applied.
            && !now.diagnostics.iter().any(Diagnostic::is_error)
            && now.targets.iter().all(|it| it.phase.is_done() || it.phase == TargetPhase::OutOfSync);
        if let Some(since) = self.since.take_if(|_| is_done && now.deletions.is_empty()) {
            let (revision, took) =
                (self.revision.as_deref().unwrap_or_default(), since.elapsed().as_secs_f64());
            tell!(
                "{} {revision} done in {took:.1} s: {}",
                style("»").cyan().for_stderr(),
                now.writes.summary()
            );
        }
    }
}

/// The key of a waiting target's line. It ignores the progress of other units: otherwise each pod would print a line for each of
/// a hundred waiting clusters.
fn waiting_summary(now: &Overview, target: &TargetReport) -> Option<String> {
    if target.phase != TargetPhase::Waiting {
        return None;
    }
    Some(match now.rollout_of(&target.app)?.hold_of(target)?.gate() {
        RolloutHold::Wave { wave, .. } => format!("wave {wave}"),
        RolloutHold::WaveLeftOut { wave, .. } => format!("wave {wave} is left out"),
        RolloutHold::Stopped { .. } => "stopped".to_owned(),
        RolloutHold::After { app, .. } => format!("after {app}"),
        RolloutHold::LeftOut { .. } => "left out".to_owned(),
        RolloutHold::Analysis { analysis, standing, .. } => {
            format!("analysis {analysis} {}", standing.as_str())
        }
        hold => hold.to_string(),
    })
}

/// A sign and a colour; the colour alone carries no information.
pub fn phase_mark(phase: TargetPhase) -> (&'static str, Style) {
    let look = Style::new().for_stderr();
    match phase {
        TargetPhase::Running => ("✓", look.green()),
        TargetPhase::Unmanaged | TargetPhase::KeptOut | TargetPhase::Paused | TargetPhase::OutOfSync => {
            ("·", look.dim())
        }
        TargetPhase::Progressing | TargetPhase::Pending => ("↻", look.yellow()),
        TargetPhase::Waiting => ("…", look.yellow()),
        TargetPhase::Unreachable => ("?", look.red()),
        TargetPhase::Degraded | TargetPhase::Refused | TargetPhase::Invalid => ("✗", look.red()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::report::UnitReport;
    use crate::rollout::UnitId;

    fn waiting(hold: RolloutHold) -> Overview {
        let app = AppId::new("shop", "pay");
        let phase = if hold.is_failure() { TargetPhase::Degraded } else { TargetPhase::Waiting };
        let target =
            TargetReport { detail: hold.to_string(), ..TargetReport::of_test(app.clone(), "bj5", phase) };
        let unit = UnitReport { hold: Some(hold), ..UnitReport::of_test(UnitId::new("bj5", ""), "prod") };
        let rollout = RolloutReport::of_test(app, Vec::new(), vec![unit]);
        Overview { targets: vec![target], rollouts: vec![rollout], ..Overview::default() }
    }

    #[test]
    fn progress_of_another_unit_prints_nothing() {
        let waits = |done: usize, because: &str| {
            let unit = UnitId::new("bj4", "");
            waiting(RolloutHold::Wave {
                wave: "test".to_owned(),
                done,
                of: 2,
                unit,
                because: Arc::from(because),
            })
        };
        let line = |now: &Overview| waiting_summary(now, &now.targets[0]);
        let (first, later) = (waits(0, "1/2 replicas updated"), waits(1, "2/2 replicas updated"));
        assert_ne!(first.targets[0].detail, later.targets[0].detail);
        assert!(line(&first).is_some());
        assert_eq!(line(&first), line(&later));
        let unit = UnitId::new("bj4", "");
        let stopped =
            |because: &str| waiting(RolloutHold::Stopped { unit: unit.clone(), because: Arc::from(because) });
        assert_eq!(line(&stopped("no image")), line(&stopped("no image at all")));
        assert_ne!(line(&stopped("no image")), line(&later));
    }
}
