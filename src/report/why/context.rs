//! The known facts about the apps at one moment.

use jiff::Timestamp;

use crate::fleet::Fleet;
use crate::render::TargetPolicyVerdict;
use crate::report::Overview;

#[derive(Clone, Copy, Debug)]
pub struct WhyContext<'a> {
    pub overview: &'a Overview,
    pub fleet: &'a Fleet,
    /// Verdicts of policies on the app.
    pub verdicts: &'a [TargetPolicyVerdict],
    pub now: Timestamp,
}
