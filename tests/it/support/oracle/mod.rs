//! An oracle over the write logs of API servers: it finds writes of a rollout that come before their conditions.
//!
//! It is independent of the controller. [`record`] stores commits and, at each write, the objects of all clusters.
//! [`judge`] then finds every forbidden write: new content before the earlier waves are done or the Approval is in Git,
//! content of a commit that the unit may not have, two tasks of one target, and deletes or falling replicas during a
//! rollout. [`commit`] renders a commit, which is not under test here.

mod commit;
mod judge;
mod record;
mod story;
mod world;

#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use commit::Commit;
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use judge::judge;
pub use record::Oracle;
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use story::{Content, Event, Gate, Story, Unit, Waves, Write};
#[allow(unused_imports, reason = "the chaos example uses some of it")]
pub use world::{Seen, World};
