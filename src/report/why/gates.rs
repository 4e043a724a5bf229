//! Rules of a rollout: gates of waves, pins and waiting deletes.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::cluster_links::removals;
use super::holds::{APPROVALS_FOLDER, rule_kind, wave_place};
use super::rules::RuleList;
use super::writers::who_may_write;
use super::{RuleEffect, RuleKind};
use crate::fleet::Waves;
use crate::model::{App, Pin, PromotionMode, WaveLimits};
use crate::plan::PlanAction;
use crate::report::status_text::count_noun;
use crate::report::{DeletionReport, RolloutReport};
use crate::rollout::RolloutHold;

impl RuleList<'_> {
    pub fn add_gates(&mut self, app: &App) {
        let look = self.at.context;
        let Some(rollout) = self.at.rollout_report() else { return };
        let waves = Waves::of(look.fleet, app);
        let limits_of =
            |name: &str| waves.list().iter().find(|wave| wave.name == name).map(|wave| &wave.limits);
        let mut before: Option<&str> = None;
        for wave in &rollout.waves {
            let limits = limits_of(&wave.name);
            let side_by_side = limits.is_some_and(|it| it.max_concurrency.is_some());
            let held = wave.waits.as_ref().filter(|hold| rule_kind(hold) == Some(RuleKind::Gate));
            let mut text = match before {
                Some(before) => {
                    let of = |name: &str| limits_of(name).cloned().unwrap_or_default();
                    gate_text(before, &of(before))
                }
                None if side_by_side => "opens first".to_owned(),
                None => String::new(),
            };
            if side_by_side {
                text += ", with `maxConcurrency`";
            }
            let place =
                before.map_or_else(|| wave_place(self.at, &wave.name), |name| wave_place(self.at, name));
            before = Some(wave.name.as_str());
            if text.is_empty() && held.is_none() {
                continue;
            }
            let standing = if held.is_some() { RuleEffect::Holds } else { RuleEffect::WouldHold };
            let text = held.map_or(text, ToString::to_string);
            let confirms = [APPROVALS_FOLDER.to_owned(), self.at.folder()];
            let rule = self.add_at((RuleKind::Gate, &wave.name), standing, text, place);
            if held.is_some_and(|hold| matches!(hold.gate(), RolloutHold::Confirmation { .. })) {
                rule.who = Some(who_may_write(&confirms));
                rule.command = RolloutReport::commands(rollout).into_iter().next();
            }
        }
        let holding = self.holds(RuleKind::After);
        for after in &app.rollout.after {
            let held = holding
                .iter()
                .find(|hold| matches!(hold, RolloutHold::After { app, .. } if *app == after.app));
            let standing = if held.is_some() { RuleEffect::Holds } else { RuleEffect::WouldHold };
            let text = held.map_or_else(|| "must be done before it".to_owned(), |hold| hold.to_string());
            let place = Some(after.location.clone());
            self.add_at((RuleKind::After, &after.app.to_string()), standing, text, place);
        }
    }

    pub fn add_pins(&mut self, app: &App) {
        let fleet = self.at.context.fleet;
        let mut rings: BTreeMap<&str, &Pin> = BTreeMap::new();
        for (cluster, pin) in app.pins.iter().filter(|(cluster, _)| self.on.is_none_or(|on| on == *cluster)) {
            rings.entry(fleet.ring_of(cluster).unwrap_or("-")).or_insert(pin);
        }
        let holding = self.holds(RuleKind::Pin);
        for (ring, pin) in rings {
            let held = holding
                .iter()
                .find(|hold| matches!(hold, RolloutHold::Pin { through, .. } if through == ring));
            let mode = fleet.rings.iter().find(|it| it.name == ring).map(|ring| ring.promotion.mode);
            let comes = match mode.unwrap_or_default() {
                PromotionMode::Auto => "tutti merges the next promotion",
                PromotionMode::Propose => "a person merges the next promotion",
                PromotionMode::Manual => "the next version comes by tutti promote",
            };
            let standing = if held.is_some() { RuleEffect::Holds } else { RuleEffect::WouldHold };
            let waits = held.map_or_else(|| comes.to_owned(), ToString::to_string);
            let text = format!("pinned to {}; {waits}", pin.version);
            let place = Some(pin.location.clone());
            self.add_at((RuleKind::Pin, ring), standing, text, place);
        }
    }

    /// Deletes with one reason are one rule.
    pub fn add_deletes(&mut self) {
        let mut waiting: BTreeMap<(Option<&String>, &String), Vec<&DeletionReport>> = BTreeMap::new();
        for it in removals(self.at.context.overview, self.at.app) {
            let is_asked = self.on.is_none_or(|on| *on == it.cluster);
            if is_asked && (it.waits || it.action == PlanAction::Wait) {
                waiting.entry((it.approval.as_ref(), &it.reason)).or_default().push(it);
            }
        }
        for ((approval, reason), objects) in waiting {
            let Some(DeletionReport { cluster, object: first, .. }) = objects.first() else { continue };
            let more = match objects.len() {
                1 => String::new(),
                number => format!(" and {} more", number - 1),
            };
            let text = format!("{first} on {cluster}{more}: {reason}");
            let rule =
                self.add(RuleKind::Delete, count_noun(objects.len(), "object"), RuleEffect::Holds, text);
            if let Some(digest) = approval {
                rule.who = Some(who_may_write(&[APPROVALS_FOLDER.to_owned()]));
                rule.command = Some(format!("tutti approve {digest}"));
            }
        }
    }
}

fn gate_text(before: &str, limits: &WaveLimits) -> String {
    let soak =
        limits.soak.map(|soak| format!(" for {:#}", SignedDuration::try_from(soak).unwrap_or_default()));
    let confirm = if limits.confirm { " and a person confirms" } else { "" };
    let analyses = limits.analysis.iter().map(|name| format!(", analysis {name} succeeds"));
    let measured: String =
        analyses.chain(limits.statuses.iter().map(|name| format!(", status {name} is success"))).collect();
    format!("opens when wave {before} is done{}{measured}{confirm}", soak.unwrap_or_default())
}
