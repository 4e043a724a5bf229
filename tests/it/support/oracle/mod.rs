//! An oracle over the write logs of API servers: it finds writes of a rollout that come before their conditions.
//!
//! It is independent of the controller. [`recorder`] stores commits and, at each write, the objects of all clusters.
//! [`judge`] then finds every forbidden write: new content before the earlier waves are done or the Approval is in Git,
//! content of a commit that the unit may not have, two tasks of one target, and deletes or falling replicas during a
//! rollout. [`commit`] renders a commit, which is not under test here.

mod commit;
mod history;
mod live_state;
mod recorder;
mod verdict;

#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use commit::OracleCommit;
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use history::{
    ControllerWrite, ExpectedGate, ExpectedWaves, OracleEvent, OracleUnit, RolloutHistory, UnitContent,
};
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use live_state::{LiveObjectState, LiveState};
pub use recorder::Oracle;
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use verdict::find_violations;
