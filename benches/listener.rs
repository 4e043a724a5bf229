//! How long signed webhooks take among strangers: 1,000 deliveries a second that nobody signed, 2,000 idle
//! connections and 70 slow bodies, beside ten signed deliveries a second.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;
#[path = "../tests/it/support/strangers.rs"]
mod strangers;

use std::net::SocketAddr;
use std::time::Duration;

use strangers::{Strangers, deliver};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tutti::api::{self, HooksState, Receiver};
use tutti::metrics::Metrics;

const SECRET: &str = "s3cr3t";
const DELIVERIES: u64 = 200;
const EACH: Duration = Duration::from_millis(100);
/// Of the slowest answer, in milliseconds.
const MOST: f64 = 100.0;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let address = runtime.block_on(serve());
    // The strangers' work is theirs: a runtime of their own.
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure(address));
    goals::check();
}

async fn serve() -> SocketAddr {
    let (sender, mut hints) = mpsc::channel(16);
    let state = HooksState::new(sender, Metrics::default());
    state.set_receivers([Receiver { name: "gitea".to_owned(), secrets: vec![SECRET.into()] }]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { while hints.recv().await.is_some() {} });
    tokio::spawn(api::serve(listener, api::hooks_router(state), std::future::pending()));
    address
}

async fn measure(address: SocketAddr) {
    let _strangers = Strangers::surround(address).await;
    let (mut took, mut each) = (Vec::new(), tokio::time::interval(EACH));
    for number in 0..DELIVERIES {
        each.tick().await;
        let (status, time) = deliver(address, SECRET, number).await.expect("an answer");
        assert_eq!(status, 202, "delivery {number}");
        took.push(time);
    }
    took.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    goals::figure("listener_signed_median", milliseconds(took[took.len() / 2]), "ms");
    goals::at_most("listener_signed_worst", milliseconds(took[took.len() - 1]), "ms", MOST);
}
