//! The change that an open pull request of this instance proposes, from its description. It is used while it is unknown whether
//! the pull request is needed.

use super::next::{pin_of, rings_of};
use super::{
    DescriptionBlock, PinChange, PromotionInput, ProposedChange, PullRequestApp, group_of, rollout_approval,
};
use crate::model::{Digest, Revision, RolloutAction};

/// `None`: another kind, or apps, rings or pins that do not exist any more.
pub fn proposed_change(input: &PromotionInput<'_>, block: &DescriptionBlock) -> Option<ProposedChange> {
    match block.kind.as_str() {
        _ if block.is_withdrawn => None,
        "promotion" => promotion(input, block),
        "approval" => approvals(block),
        _ => None,
    }
}

fn promotion(input: &PromotionInput<'_>, block: &DescriptionBlock) -> Option<ProposedChange> {
    let ring = block.ring.clone()?;
    let mut pins = Vec::new();
    for item in &block.items {
        let app = input.fleet.apps.get(&item.app)?;
        let file = pin_of(input, app, &ring).map(|(_, file)| file.to_owned());
        let file = file.unwrap_or_else(|| format!("{}pins/{ring}.yaml", app.folder()));
        pins.push(PinChange { app: item.app.clone(), file, from: item.from.clone(), to: item.to.clone() });
    }
    let app = input.fleet.apps.get(&block.items.first()?.app)?;
    let rings = rings_of(input, app);
    let at = rings.iter().position(|it| it.name == ring)?;
    let before = at.checked_sub(1).and_then(|at| rings.get(at)).map(|it| it.name.clone()).unwrap_or_default();
    Some(ProposedChange::Promote {
        group: group_of(app),
        ring,
        before,
        pins,
        is_requested: block.is_requested,
    })
}

fn approvals(block: &DescriptionBlock) -> Option<ProposedChange> {
    let (commit, wave) = (Revision::from(block.commit.as_deref()?), block.ring.clone()?);
    let open = |item: &PullRequestApp| {
        let through = RolloutAction::Open { through: wave.clone() };
        Some(rollout_approval(&item.app, Digest::parse(&item.to)?, through))
    };
    let approvals = block.items.iter().map(open).collect::<Option<Vec<_>>>()?;
    Some(ProposedChange::Approve { commit, wave, approvals })
}
