//! The contract with kube-apiserver.
//!
//! Each check is one function that sends requests through a [`Probe`](probe::Probe), which writes down what was asked
//! and answered, with everything that differs from run to run (uids, times, resource versions, addresses) replaced.
//! What a real server answered is kept in `tests/contract/observed/`; the sandbox must answer the same, line by line,
//! but for what `tests/contract/ledger.yaml` names with its reason.
//!
//! - Every test run: each check on the sandbox, under a paused clock.
//! - With the live tier: all checks on a real server as well; the observations must still be true.
//!   `TUTTI_CONTRACT=write` writes them anew (`TUTTI_CONTRACT_SERVER=<kubeconfig>` uses a server that already runs,
//!   `TUTTI_CONTRACT_ONLY=<text>` only the checks whose name has the text).

mod ledger;
mod normal;
mod observed;
mod probe;
mod run;
mod watching;

mod rest;

use futures::future::BoxFuture;
use probe::Probe;

/// One question to an API server.
pub struct Check {
    /// Its number in the list of proposed checks; several functions may share one.
    pub number: u32,
    pub name: &'static str,
    pub run: for<'p> fn(&'p mut Probe) -> BoxFuture<'p, ()>,
}

/// Declares the checks: each becomes a test on the sandbox, and one of the list for real servers.
macro_rules! checks {
    ($($number:literal $module:ident::$name:ident,)*) => {
        pub const CHECKS: &[Check] = &[$(
            Check { number: $number, name: stringify!($name), run: |probe| Box::pin($module::$name(probe)) },
        )*];

        mod on_the_sandbox {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::run::on_the_sandbox(stringify!($name)).await;
                }
            )*
        }
    };
}

checks! {
    1 rest::a_created_object_is_answered_whole,
    2 rest::a_second_create_already_exists,
    3 rest::a_missing_object_is_not_found,
}

#[tokio::test(flavor = "multi_thread")]
async fn on_real_servers() {
    run::on_real_servers().await;
}

#[tokio::test]
async fn every_observation_belongs_to_a_check() {
    observed::check_files(CHECKS);
    ledger::check_entries(CHECKS);
}
