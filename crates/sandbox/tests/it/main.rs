//! The simulator as its clients see it: through `kube::Client`, and through kubectl.

mod apply;
mod discovery;
mod faults;
mod objects;
mod rollout;
mod support;
mod watching;
