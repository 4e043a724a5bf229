//! One schedule: all steps, drawn from a seed before the run.

use std::time::Duration;

use super::fleet::Plan;
use crate::chaos::draw::Draw;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Version,
    /// An earlier version, as after a revert.
    Back(u64),
    /// A new version of the group green, if the app has groups.
    Green,
    Replicas(u64),
    Port,
    Note,
    Pause,
    Resume,
    Maintain(u64),
    EndMaintenance,
    /// A person confirms the wave that waits.
    Confirm,
    /// A person confirms an outdated or later wave.
    StaleConfirm(u64),
    /// A failed version may start again.
    Retry,
    /// Pods of the newest version fail on a cluster.
    Break(u64),
    Mend,
    Down(u64),
    Up,
    /// The process dies now, or after this many more writes.
    Kill(usize),
    /// The process dies, and its disk is lost.
    Wipe,
    Delete(u64),
    /// Somebody changes an image.
    Edit(u64),
    /// A long time passes.
    Jump,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    pub seed: u64,
    pub plan: Plan,
    /// Seconds until pods are ready.
    pub slow: u64,
    /// Each with the time that passes before it.
    pub steps: Vec<(Duration, Step)>,
}

impl Schedule {
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let plan = Plan::of(&mut draw);
        let slow = draw.of(&[0, 0, 3, 20]);
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
            (draw.within(0..12), "break"),
            (8, "mend"),
            (draw.within(0..6), "down"),
            (7, "up"),
            (draw.within(0..8), "kill"),
            (draw.within(0..5), "wipe"),
            (4, "delete"),
            (3, "edit"),
            (2, "jump"),
        ];
        let number = draw.within(10..50);
        let steps = (0..number).map(|_| {
            let gap = match draw.within(0..10) {
                0..3 => draw.milliseconds(1..100),
                3..7 => draw.milliseconds(1..10_000),
                _ => draw.milliseconds(1..90_000),
            };
            let step = match draw.weighed(&weights) {
                "version" => Step::Version,
                "back" => Step::Back(draw.within(1..4)),
                "green" => Step::Green,
                "replicas" => Step::Replicas(draw.within(1..5)),
                "port" => Step::Port,
                "note" => Step::Note,
                "pause" => Step::Pause,
                "resume" => Step::Resume,
                "maintain" => Step::Maintain(draw.next()),
                "end" => Step::EndMaintenance,
                "confirm" => Step::Confirm,
                "stale" => Step::StaleConfirm(draw.next()),
                "retry" => Step::Retry,
                "break" => Step::Break(draw.next()),
                "mend" => Step::Mend,
                "down" => Step::Down(draw.next()),
                "up" => Step::Up,
                "kill" => Step::Kill(draw.of(&[0, 0, 1, 2, 3])),
                "wipe" => Step::Wipe,
                "delete" => Step::Delete(draw.next()),
                "edit" => Step::Edit(draw.next()),
                _ => Step::Jump,
            };
            (gap, step)
        });
        let steps = steps.collect();
        Self { seed, plan, slow, steps }
    }
}
