//! Seeded random fault plans for chaos tests.

use std::time::Duration;

use super::{
    Fault, FaultEffect, FaultPlan, FaultRule, MutatingWebhook, PlannedClusterEvent, RequestMatch,
    WebhookMutation,
};
use crate::seed::Seed;

impl FaultPlan {
    /// Everything that a client must survive, until `lasting` has passed: the seed chooses what, when
    /// and how often, the intensity (0 to 100) how much. Restores are not part of it: after one, a
    /// client that trusts its revision is lost, on real servers too.
    pub fn random(seed: u64, intensity: u8, lasting: Duration) -> Self {
        let mut draw = Seed::new(seed ^ 0xFA17);
        let strength = u64::from(intensity.min(100));
        let mut plan = Self::new(draw.next());
        for trouble in all_effects() {
            let wanted = draw.below(100) < 20 + strength / 2;
            let per_mille = draw.below(1 + strength * 3).min(400);
            let (from, to) = window(&mut draw, lasting);
            if wanted && per_mille > 0 {
                let matching = matching_requests(&mut draw, &trouble);
                let rule = FaultRule::new(matching, trouble);
                plan.rules.push(rule.per_mille(u16::try_from(per_mille).unwrap_or(400)).within(from..to));
            }
        }
        if draw.below(100) < strength {
            let (from, _) = window(&mut draw, lasting);
            let to = (from + Duration::from_secs(5)).min(lasting);
            let expired = FaultRule::failing(RequestMatch::any(), Fault::unauthorized());
            plan.rules.push(expired.within(from..to));
        }
        plan.add_events(&mut draw, strength, lasting);
        if draw.below(200) < strength {
            let mutation = WebhookMutation::Annotation {
                key: "webhook.example.com/seen".to_owned(),
                value: "yes".to_owned(),
            };
            plan.webhooks.push(MutatingWebhook { resource: "pods".to_owned(), mutation });
        }
        plan
    }

    fn add_events(&mut self, draw: &mut Seed, strength: u64, lasting: Duration) {
        for _ in 0..draw.below(1 + strength / 20) {
            let at = draw.duration(Duration::ZERO, lasting);
            match draw.below(4) {
                0 => {
                    let up =
                        (at + draw.duration(Duration::from_secs(1), Duration::from_secs(20))).min(lasting);
                    self.events.extend([(at, PlannedClusterEvent::Down), (up, PlannedClusterEvent::Up)]);
                }
                1 => self.events.push((at, PlannedClusterEvent::CutWatches)),
                2 => self.events.push((at, PlannedClusterEvent::Compact)),
                _ => {
                    let seconds = i64::try_from(draw.below(7200)).unwrap_or_default() - 3600;
                    self.events.extend([
                        (at, PlannedClusterEvent::Skew(seconds)),
                        (lasting, PlannedClusterEvent::Skew(0)),
                    ]);
                }
            }
        }
    }
}

fn all_effects() -> Vec<FaultEffect> {
    let seconds = Duration::from_secs;
    let mut troubles: Vec<FaultEffect> = [
        Fault::too_many_requests(1),
        Fault::internal_error(),
        Fault::unavailable(),
        Fault::DropBefore,
        Fault::DropAfter,
        Fault::quota(),
        Fault::conflict(),
        Fault::invalid("denied by the rules of the sandbox"),
    ]
    .into_iter()
    .map(FaultEffect::Request)
    .collect();
    troubles.extend([
        FaultEffect::Latency { shortest: Duration::from_millis(1), longest: seconds(3) },
        FaultEffect::StaleList { lag: 20 },
        FaultEffect::WatchCut { shortest: Duration::ZERO, longest: seconds(30) },
        FaultEffect::WatchSilent { shortest: Duration::ZERO, longest: seconds(30) },
        FaultEffect::WatchExpired { shortest: Duration::ZERO, longest: seconds(30) },
        FaultEffect::DuplicateEvents { per_mille: 200 },
        FaultEffect::LateBookmarks { by: seconds(45) },
    ]);
    troubles
}

/// Refusals of content are for writes only; the rest is for all.
fn matching_requests(draw: &mut Seed, trouble: &FaultEffect) -> RequestMatch {
    match trouble {
        FaultEffect::Request(Fault::Refusal { .. }) => RequestMatch::writes(),
        FaultEffect::Request(_) if draw.below(2) == 0 => RequestMatch::writes(),
        _ => RequestMatch::any(),
    }
}

fn window(draw: &mut Seed, lasting: Duration) -> (Duration, Duration) {
    let (one, other) = (draw.duration(Duration::ZERO, lasting), draw.duration(Duration::ZERO, lasting));
    (one.min(other), one.max(other))
}
