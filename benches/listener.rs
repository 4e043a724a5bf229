//! How long webhooks take: 1,000 signed deliveries a second beside 10,000 apps, and ten a second among strangers, who send 1,000
//! deliveries a second that nobody signed and hold 2,000 idle connections and 70 slow bodies.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "listener/fleet.rs"]
mod fleet;
#[path = "shared/goals.rs"]
mod goals;
#[path = "shared/program.rs"]
mod program;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::time::Duration;

use support::hostile_clients::{HostileClients, deliver_signed_push};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tutti::api::{self, HookReceiver, HooksState};
use tutti::metrics::Metrics;
use tutti::model::WebhookReceiverKind;

const SECRET: &str = "s3cr3t";
const DELIVERIES: u64 = 200;
const EACH: Duration = Duration::from_millis(100);
/// Of the slowest answer, in milliseconds.
const MOST: f64 = 100.0;

fn main() {
    fleet::measure();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let address = runtime.block_on(serve());
    // The strangers' work is theirs: a runtime of their own.
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure(address));
    goals::check();
}

async fn serve() -> SocketAddr {
    let (sender, mut hints) = mpsc::channel(16);
    let state = HooksState::new(sender, Metrics::default());
    let (name, kind) = ("gitea".to_owned(), WebhookReceiverKind::Gitea);
    state.set_receivers([HookReceiver { name, kind, secrets: vec![SECRET.into()] }]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { while hints.recv().await.is_some() {} });
    tokio::spawn(api::serve(listener, api::hooks_router(state), std::future::pending()));
    address
}

async fn measure(address: SocketAddr) {
    let _strangers = HostileClients::start(address).await;
    let (mut took, mut each) = (Vec::new(), tokio::time::interval(EACH));
    for number in 0..DELIVERIES {
        each.tick().await;
        let (status, time) = deliver_signed_push(address, SECRET, number).await.expect("an answer");
        assert_eq!(status, 202, "delivery {number}");
        took.push(time);
    }
    took.sort_unstable();
    goals::figure("listener_signed_median", milliseconds(took[took.len() / 2]), "ms");
    goals::at_most("listener_signed_worst", milliseconds(took[took.len() - 1]), "ms", MOST);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
