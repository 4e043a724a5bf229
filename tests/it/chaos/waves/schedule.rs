//! One schedule: all steps, drawn from a seed before the run.

use std::time::Duration;

use super::repository::WavesPlan;
use crate::chaos::random::SeededRandom;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WavesStep {
    NewVersion,
    /// An earlier version, as after a revert.
    Revert(u64),
    /// A new version of the group green, if the app has groups.
    NewGreenVersion,
    Replicas(u64),
    ChangePort,
    ChangeNothingRendered,
    Pause,
    Resume,
    StartMaintenance(u64),
    EndMaintenance,
    /// A person confirms the wave that waits.
    Confirm,
    /// A person confirms an outdated or later wave.
    StaleConfirm(u64),
    /// A failed version may start again.
    Retry,
    /// Pods of the newest version fail on a cluster.
    FailPods(u64),
    ClearPodFaults,
    ClusterDown(u64),
    AllClustersUp,
    /// The process dies now, or after this many more writes.
    Kill(usize),
    /// The process dies, and its disk is lost.
    KillAndWipe,
    DeleteWorkload(u64),
    /// Somebody changes an image.
    EditImage(u64),
    /// A long time passes.
    LongPause,
}

#[derive(Clone, Debug)]
pub struct WavesSchedule {
    pub seed: u64,
    pub plan: WavesPlan,
    /// Seconds until pods are ready.
    pub pod_start_seconds: u64,
    /// Each with the time that passes before it.
    pub steps: Vec<(Duration, WavesStep)>,
}

impl WavesSchedule {
    pub fn of(seed: u64) -> Self {
        let mut draw = SeededRandom::new(seed);
        let plan = WavesPlan::of(&mut draw);
        let slow = draw.choose(&[0, 0, 3, 20]);
        let weights = [
            (22, "version"),
            (9, "back"),
            (3, "green"),
            (6, "replicas"),
            (3, "port"),
            (3, "note"),
            (2, "pause"),
            (4, "resume"),
            (2, "maintain"),
            (4, "end"),
            (26, "confirm"),
            (5, "stale"),
            (3, "retry"),
            (draw.in_range(0..12), "break"),
            (8, "mend"),
            (draw.in_range(0..6), "down"),
            (7, "up"),
            (draw.in_range(0..8), "kill"),
            (draw.in_range(0..5), "wipe"),
            (4, "delete"),
            (3, "edit"),
            (2, "jump"),
        ];
        let number = draw.in_range(10..50);
        let steps = (0..number).map(|_| {
            let gap = match draw.in_range(0..10) {
                0..3 => draw.milliseconds(1..100),
                3..7 => draw.milliseconds(1..10_000),
                _ => draw.milliseconds(1..90_000),
            };
            let step = match draw.choose_weighted(&weights) {
                "version" => WavesStep::NewVersion,
                "back" => WavesStep::Revert(draw.in_range(1..4)),
                "green" => WavesStep::NewGreenVersion,
                "replicas" => WavesStep::Replicas(draw.in_range(1..5)),
                "port" => WavesStep::ChangePort,
                "note" => WavesStep::ChangeNothingRendered,
                "pause" => WavesStep::Pause,
                "resume" => WavesStep::Resume,
                "maintain" => WavesStep::StartMaintenance(draw.next()),
                "end" => WavesStep::EndMaintenance,
                "confirm" => WavesStep::Confirm,
                "stale" => WavesStep::StaleConfirm(draw.next()),
                "retry" => WavesStep::Retry,
                "break" => WavesStep::FailPods(draw.next()),
                "mend" => WavesStep::ClearPodFaults,
                "down" => WavesStep::ClusterDown(draw.next()),
                "up" => WavesStep::AllClustersUp,
                "kill" => WavesStep::Kill(draw.choose(&[0, 0, 1, 2, 3])),
                "wipe" => WavesStep::KillAndWipe,
                "delete" => WavesStep::DeleteWorkload(draw.next()),
                "edit" => WavesStep::EditImage(draw.next()),
                _ => WavesStep::LongPause,
            };
            (gap, step)
        });
        let steps = steps.collect();
        Self { seed, plan, pod_start_seconds: slow, steps }
    }
}
