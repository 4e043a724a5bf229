//! An oracle over the write logs of API servers: no write of a rollout comes before what it has to wait for.
//!
//! It knows nothing of the controller. [`record`] keeps what was committed and, at each write, how the objects of all clusters are;
//! [`judge`] goes through that record afterwards and names every write that a page of the design forbids: new content before the
//! earlier waves are done or before the Approval is in Git, content of no commit that the unit may have, two tasks of one target,
//! deletes and falling numbers of pods while a rollout is open. [`commit`] renders a commit, which is not under test here.

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
