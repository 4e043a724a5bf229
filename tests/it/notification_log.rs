//! Log lines about routes whose credentials cannot be read.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tutti::cluster::{HomeCluster, WritePermit};
use tutti::controller::{ConfigHead, RepositoryGrants};
use tutti::fleet::assemble;
use tutti::manifest;
use tutti::metrics::Metrics;
use tutti::model::{AppId, NotificationPhase, Snapshot};
use tutti::notification::{self, PromotionPull};
use tutti::report::Overview;

use crate::support::log::CapturedLog;
use crate::support::manifests::INSTANCE;

fn broken_route(name: &str, variable: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Notification\nmetadata: {{name: {name}}}\nspec: {{service: teams, url: {{env: {variable}}}}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn route_without_its_variable_is_disabled() {
    let log = CapturedLog::capture();
    let (unset, withheld) =
        (broken_route("unset", "TUTTI_SECRET_OF_NOBODY"), broken_route("withheld", "PATH"));
    let snapshot = Snapshot::of_texts([
        ("tutti.yaml", INSTANCE),
        ("notifications/unset.yaml", &unset),
        ("notifications/withheld.yaml", &withheld),
    ]);
    let fleet = Arc::new(assemble(manifest::read(&snapshot), &snapshot));
    let revision = Some(snapshot.revision.clone());
    let head = ConfigHead { fleet, snapshot: Arc::new(snapshot), defined: None };
    let opened = PromotionPull {
        number: 7,
        title: "Promote pay".to_owned(),
        url: "https://git.example.com/7".to_owned(),
        apps: vec![AppId::new("shop", "pay")],
        ring: "prod".to_owned(),
        happened: NotificationPhase::Opened,
    };
    let (_head, heads) = watch::channel(Some(Arc::new(head)));
    let overview = Overview { revision, is_rendered: true, ..Overview::default() };
    let (_overview, overviews) = watch::channel(Arc::new(overview));
    let (_promotions, promotions) = watch::channel(Some(Arc::new(vec![opened])));
    let (elected, stop) = (CancellationToken::new(), CancellationToken::new());
    elected.cancel();
    let settings = notification::NotificationSettings {
        repository: None,
        home: HomeCluster::default(),
        grants: Arc::new(RepositoryGrants::default()),
        permit: WritePermit::default(),
        metrics: Metrics::default(),
        folder: None,
        request_rewriter: notification::RequestRewriter::default(),
    };
    let inputs = notification::NotificationInputs {
        head: heads,
        overview: overviews,
        promotions,
        elected,
        stop: stop.clone(),
    };
    let task = tokio::spawn(notification::run(settings, inputs));
    // Each credential is read several times.
    tokio::time::sleep(Duration::from_secs(300)).await;
    stop.cancel();
    task.await.expect("no panic");
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("route")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let has =
        |level: &str, words: &str| lines.iter().any(|line| line.contains(level) && line.contains(words));
    assert!(
        has("INFO", "route unset is off: the environment variable TUTTI_SECRET_OF_NOBODY is not set"),
        "{text}"
    );
    assert!(has("WARN", "--secret-env PATH"), "{text}");
}
