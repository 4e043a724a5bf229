//! The program with 10,000 apps on an embedded cluster, and 1,000 signed deliveries a second to receivers of every kind.
//!
//! A receiver takes 50 deliveries a second, so there are five of each kind, and each gets 33 a second. A third of the deliveries are
//! pushes that make the controller ask Git.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tutti::model::WebhookReceiverKind;

use crate::goals::{at_most, figure};
use crate::program::{TuttiProcess, all_run, free_port};
use crate::support::hostile_clients::exchange;
use crate::support::manifests::{cluster, config_map, objects_app};
use crate::support::repository::{FileTextChange, TestRepository};
use crate::support::senders::delivery;
use crate::{SECRET, milliseconds};

const APPS: usize = 10_000;
const RECEIVERS_OF_A_KIND: usize = 5;
const A_SECOND: u64 = 1000;
const SECONDS: u64 = 10;
/// The first deliveries warm up; they are not counted.
const WARM_UP: u64 = 500;
/// Of 99 in 100 answers, in milliseconds.
const MOST: f64 = 50.0;

pub fn measure() {
    let folder = tempfile::tempdir().expect("a folder");
    let repository = TestRepository::at(&folder.path().join("config"));
    let mut files =
        vec![("tutti.yaml".to_owned(), instance()), ("clusters/one.yaml".to_owned(), cluster("one"))];
    for number in 0..APPS {
        let name = format!("app-{number:06}");
        files.push((format!("apps/{name}/app.yaml"), objects_app("default", &name)));
        files.push((format!("apps/{name}/objects/all.yaml"), config_map("default", &name, "1")));
    }
    let changes: Vec<FileTextChange<'_>> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    repository.commit("Begin", &changes);
    let [status, hooks] = [free_port(), free_port()];
    let mut program = Command::new(env!("CARGO_BIN_EXE_tutti"));
    program.args(["run", "--cluster", "one=sandbox", "--repo"]).arg(repository.path());
    program.arg("--state").arg(folder.path().join("state"));
    program.args(["--listen", &status.to_string(), "--hooks-listen", &hooks.to_string()]);
    let _program = TuttiProcess::start(program.env("TUTTI_SECRET_HOOK", SECRET));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        all_run(status, APPS).await;
        let mut took = deliver_all(hooks).await;
        took.sort_unstable();
        let at = |part: usize| milliseconds(took[took.len() * part / 100]);
        figure("webhook_median", at(50), "ms");
        at_most("webhook_p99", at(99), "ms", MOST);
    });
}

fn receivers() -> Vec<(String, WebhookReceiverKind)> {
    let of_kind =
        |(name, kind)| (0..RECEIVERS_OF_A_KIND).map(move |number| (format!("{name}-{number}"), kind));
    WebhookReceiverKind::NAMES.into_iter().flat_map(of_kind).collect()
}

fn instance() -> String {
    let lines: Vec<String> = receivers()
        .into_iter()
        .map(|(name, kind)| {
            format!("  - {{name: {name}, type: {}, secrets: [{{env: TUTTI_SECRET_HOOK}}]}}\n", kind.as_str())
        })
        .collect();
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  receivers:\n{}",
        lines.concat()
    )
}

/// How long each answer took, from the first byte of its connection on. None waits for another.
async fn deliver_all(hooks: SocketAddr) -> Vec<Duration> {
    let (receivers, mut sending) = (receivers(), JoinSet::new());
    let mut each = tokio::time::interval(Duration::from_micros(1_000_000 / A_SECOND));
    for number in 0..WARM_UP + A_SECOND * SECONDS {
        each.tick().await;
        let (name, kind) = receivers[number as usize % receivers.len()].clone();
        sending.spawn(async move {
            let (headers, body) = delivery(kind, SECRET, number);
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!(
                "POST /hooks/v1/{name} HTTP/1.1\r\nhost: tutti\r\n{headers}content-length: {}\r\n\r\n",
                body.len()
            );
            let start = Instant::now();
            let status = exchange(hooks, &head, &body).await.expect("an answer");
            assert_eq!(status, 202, "{name}, delivery {number}");
            (number >= WARM_UP).then(|| start.elapsed())
        });
    }
    let took = sending.join_all().await;
    took.into_iter().flatten().collect()
}
