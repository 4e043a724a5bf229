//! Golden pages with all texts in each language, and hostile texts. `UPDATE_GOLDEN=1` rewrites the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::routes::{PromotionPull, route_thread_states};
use super::*;
use crate::fleet::{Fleet, assemble};
use crate::manifest;
use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope, Revision, Snapshot};
use crate::report::notices::next_notice;
use crate::report::{
    ClusterReport, DeletionReport, Overview, RolloutReport, TargetPhase, TargetReport, UnitReport,
};
use crate::rollout::UnitId;

const HEAD: &str = "3f9c2d1a7b3e4d5f60718293a4b5c6d7e8f90a1b";
const ROUTE: &str = "apiVersion: tutti.dev/v1alpha1
kind: Notification
metadata: {name: all}
spec: {service: feishu, url: {env: TUTTI_SECRET_URL}}
";
const SERVER: &str = "apiVersion: tutti.dev/v1alpha1
kind: Server
metadata: {name: ecs-7}
spec: {address: 192.0.2.7, provider: aliyun, expiresAt: 2026-12-01}
";

fn now() -> Timestamp {
    "2026-11-27T08:00:00Z".parse().expect("a time")
}

fn fleet() -> Fleet {
    let files = [("notifications/all.yaml", ROUTE), ("servers/ecs-7.yaml", SERVER)];
    let snapshot = Snapshot::of_texts(files);
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    assert_eq!((fleet.notifications.len(), fleet.servers.len()), (1, 1), "{:#?}", fleet.diagnostics);
    fleet
}

fn target(app: &str, cluster: &str, phase: TargetPhase, detail: &str) -> TargetReport {
    TargetReport {
        revision: Revision::from(HEAD),
        ring: Some("prod".to_owned()),
        version: "1.5.0".to_owned(),
        detail: detail.to_owned(),
        ..TargetReport::of_test(AppId::new("shop", app), cluster, phase)
    }
}

fn deletion(object: &str, approval: Option<&str>) -> DeletionReport {
    DeletionReport {
        cluster: ClusterName::from("p1"),
        app: AppId::new("shop", "web"),
        object: object.to_owned(),
        revision: Revision::from(HEAD),
        action: crate::plan::PlanAction::Delete,
        waits: approval.is_some(),
        approval: approval.map(ToOwned::to_owned),
        cause: None,
        reason: String::new(),
    }
}

fn overview(targets: Vec<TargetReport>) -> Overview {
    Overview {
        revision: Some(Revision::from(HEAD)),
        is_rendered: true,
        page_url: Some("https://tutti.example.com".to_owned()),
        tracked_commits: vec![Revision::from(HEAD)],
        clusters: ["p1", "p2"].map(|name| ClusterReport::of_test(name, Some("prod"))).to_vec(),
        targets,
        ..Overview::default()
    }
}

/// The current state, and the last message.
struct Case {
    title: &'static str,
    happened: NotificationPhase,
    before: Option<NotificationPhase>,
    overview: Overview,
    is_reverted: bool,
}

impl Case {
    fn of(title: &'static str, happened: NotificationPhase, overview: Overview) -> Self {
        Self { title, happened, before: None, overview, is_reverted: false }
    }

    fn after(mut self, before: NotificationPhase) -> Self {
        self.before = Some(before);
        self
    }

    fn message(&self, fleet: &Fleet, commit: &CommitText, language: MessageLanguage) -> Message {
        let promotion = PromotionPull {
            number: 12,
            title: "promote(web): 1.4.2 → 1.5.0 on prod".to_owned(),
            url: "https://git.example.com/platform/config/pulls/12".to_owned(),
            apps: vec![AppId::new("shop", "web")],
            ring: "prod".to_owned(),
            happened: self.happened,
        };
        let of_pulls = matches!(
            self.happened,
            NotificationPhase::Opened | NotificationPhase::Held | NotificationPhase::Merged
        );
        let promotions = if of_pulls { vec![promotion] } else { Vec::new() };
        let reverted: BTreeSet<Revision> =
            self.is_reverted.then(|| Revision::from(HEAD)).into_iter().collect();
        let seen = route_thread_states(
            &fleet.notifications,
            fleet,
            (&self.overview, &BTreeSet::new()),
            &promotions,
            &reverted,
            now(),
        );
        let (_, threads) = seen.expect("it is known").0.remove(0);
        let told = ThreadHistory { last: self.before, ..ThreadHistory::default() };
        // An offline event belongs to a cluster and no ring.
        let is_told_of = |thread: &NotificationThread| {
            self.before != Some(NotificationPhase::Offline)
                || matches!(thread, NotificationThread::Cluster(_))
        };
        let (thread, seen, step) = threads
            .iter()
            .filter(|(thread, _)| is_told_of(thread))
            .find_map(|(thread, seen)| {
                let step = next_notice(&told, &seen.condition)?;
                (step.happened == self.happened).then_some((thread, seen, step))
            })
            .unwrap_or_else(|| panic!("{}: {threads:#?}", self.title));
        let notice = Notice {
            instance: "main",
            thread,
            happened: step.happened,
            history: &step.history,
            facts: &seen.facts,
            commit: thread.commit().map(|_| commit),
            started_at: now(),
            at: now(),
        };
        notice.message(language)
    }
}

fn failing() -> Vec<TargetReport> {
    let cause = "ImagePullBackOff web-6d9f8c5b7d-x2x7k (registry.example.com/web:1.5.0)";
    vec![target("web", "p1", TargetPhase::Degraded, cause), target("web", "p2", TargetPhase::Degraded, cause)]
}

fn cases() -> Vec<Case> {
    use NotificationPhase::{
        CredentialEnds, Degraded, DeleteWaits, Done, Failed, Held, Merged, Offline, Online, Opened,
        Recovered, Reverted, ServerEnds, Started, Waiting,
    };
    let web = || AppId::new("shop", "web");
    let on = |cluster: &str, phase, detail: &str| target("web", cluster, phase, detail);
    let well = || overview(vec![on("p1", TargetPhase::Running, ""), on("p2", TargetPhase::Running, "")]);
    let mut waiting =
        overview(vec![on("p1", TargetPhase::Running, ""), on("p2", TargetPhase::Waiting, "wave prod waits")]);
    let asks = RolloutReport::with_confirmation(web(), &["p2"], "canary", "prod");
    waiting.rollouts = vec![asks];
    let mut stopped = overview(failing());
    let unit = UnitId { cluster: ClusterName::from("p1"), pod_set: "".into() };
    let mut of_waves = RolloutReport::of_test(web(), Vec::new(), vec![UnitReport::of_test(unit, "prod")]);
    of_waves.units[0].failure = Some("ImagePullBackOff".to_owned());
    of_waves.commit = Some(Revision::from(HEAD));
    stopped.rollouts = vec![of_waves];
    let many = ["api", "cart", "pay", "search", "web"].map(|app| {
        target(
            app,
            "p1",
            if app == "pay" { TargetPhase::Degraded } else { TargetPhase::Running },
            "CrashLoopBackOff pay-0 (exit 1)",
        )
    });
    let mut without_ring = overview(vec![on("p1", TargetPhase::Progressing, "")]);
    without_ring.targets[0].ring = None;
    without_ring.clusters[0].ring = None;
    let mut wrong = overview(Vec::new());
    let error = Diagnostic::error("E1201", "unknown field `colour`", DiagnosticScope::Instance)
        .at(crate::model::Location::new("rings.yaml", 5, 1));
    wrong.errors_by_commit = vec![(Revision::from(HEAD), error)];
    let mut gone = overview(Vec::new());
    gone.deleted_counts.insert((Revision::from(HEAD), ClusterName::from("p1")), 3);
    let mut deletes = overview(Vec::new());
    deletes.deletions = vec![
        deletion("ConfigMap shop/web-settings", Some("3f9a1c02")),
        deletion("Service shop/web", Some("3f9a1c02")),
    ];
    let mut offline = overview(Vec::new());
    offline.clusters[0].state = "Offline";
    offline.clusters[0].detail = "connection refused".to_owned();
    let mut ending = overview(Vec::new());
    ending.clusters[0].credential_expires = Some("2026-12-05T08:00:00Z".to_owned());
    vec![
        Case::of(
            "a commit in a ring",
            Started,
            overview(vec![on("p1", TargetPhase::Progressing, ""), on("p2", TargetPhase::Running, "")]),
        ),
        Case::of("outside of rings", Started, without_ring),
        Case::of("a wave that is to be confirmed", Waiting, waiting),
        Case::of("all is well", Done, well()),
        Case::of("objects that went", Done, gone),
        Case::of("an app on all clusters", Failed, overview(failing())),
        Case::of("an app in waves", Failed, stopped),
        Case::of("one of many apps", Failed, overview(many.to_vec())),
        Case::of("a file with an error", Failed, wrong),
        Case::of("after it was done", Degraded, overview(failing())).after(Done),
        Case::of("well again", Recovered, well()).after(Degraded),
        Case { is_reverted: true, ..Case::of("taken back", Reverted, overview(failing())).after(Failed) },
        Case::of("of a promotion", Opened, overview(Vec::new())),
        Case::of("of a promotion", Held, overview(Vec::new())),
        Case::of("of a promotion", Merged, overview(Vec::new())),
        Case::of("of a cluster", Offline, offline),
        Case::of("of a cluster", Online, overview(Vec::new())).after(Offline),
        Case::of("of objects of an app", DeleteWaits, deletes),
        Case::of("of a cluster", CredentialEnds, ending),
        Case::of("of the inventory", ServerEnds, overview(Vec::new())),
    ]
}

fn commit() -> CommitText {
    CommitText {
        subject: "Web 1.5.0: faster search".to_owned(),
        author: "Li Na".to_owned(),
        time: None,
        url: Some(format!("https://git.example.com/platform/config/commit/{HEAD}")),
    }
}

fn shown(message: &Message) -> String {
    let links = message.links.iter().map(|link| format!("[{}]({})", link.text, link.url));
    let links = links.collect::<Vec<_>>().join(" · ");
    let lines = [&message.title, &message.place, &message.cause, &links];
    lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

#[test]
fn texts_equal_the_golden_pages() {
    let fleet = fleet();
    let covered: BTreeSet<NotificationPhase> = cases().iter().map(|case| case.happened).collect();
    assert_eq!(covered.len(), NotificationPhase::ALL.len());
    for (language, suffix) in [(MessageLanguage::En, "en"), (MessageLanguage::Zh, "zh")] {
        let page = cases().iter().fold(String::new(), |page, case| {
            let message = case.message(&fleet, &commit(), language);
            page + &format!("== {}: {}\n{}\n", case.happened.as_str(), case.title, shown(&message))
        });
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/fixtures/notifications/words.{suffix}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &page).expect("written");
        }
        let expected = fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
        assert_eq!(page, expected, "{}", path.display());
    }
}

/// Foreign names and texts.
const PIECES: [&str; 20] = [
    "web",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{200b}",
    "\u{2028}",
    "\u{85}",
    "`",
    "<!channel>",
    "@all",
    "[x](https://evil.example)",
    "日志错误",
    "🙂",
    "\"",
    "\\",
    "e\u{301}",
];

fn hostile(random: &mut StdRng) -> String {
    let most = [1, 5, 400][random.random_range(0..3)];
    (0..most).map(|_| PIECES[random.random_range(0..PIECES.len())]).collect()
}

/// Puts foreign texts wherever they can occur.
fn spoilt(case: &mut Case, random: &mut StdRng) {
    let app = AppId::new(hostile(random).as_str(), &hostile(random));
    for target in &mut case.overview.targets {
        target.app = app.clone();
        (target.detail, target.version) = (hostile(random), hostile(random));
    }
    for rollout in &mut case.overview.rollouts {
        rollout.app = app.clone();
    }
    for deletion in &mut case.overview.deletions {
        (deletion.app, deletion.object) = (app.clone(), hostile(random));
    }
    for (_, error) in &mut case.overview.errors_by_commit {
        error.message = hostile(random);
    }
    for cluster in &mut case.overview.clusters {
        cluster.detail = hostile(random);
    }
}

#[test]
fn foreign_texts_stay_within_their_lines() {
    let fleet = fleet();
    let mut random = StdRng::seed_from_u64(32);
    for _ in 0..20 {
        for mut case in cases() {
            spoilt(&mut case, &mut random);
            let commit = CommitText {
                subject: hostile(&mut random),
                author: hostile(&mut random),
                time: None,
                url: Some(
                    ["https://git.example.com/c", "javascript:alert(1)"][random.random_range(0..2)]
                        .to_owned(),
                ),
            };
            for language in [MessageLanguage::En, MessageLanguage::Zh] {
                let message = case.message(&fleet, &commit, language);
                assert!(!message.title.is_empty());
                assert_eq!(
                    (message.title.lines().count(), message.place.lines().count().min(1)),
                    (1, message.place.lines().count())
                );
                assert!(message.cause.lines().count() <= 3, "{message:#?}");
                for line in [&message.title, &message.place]
                    .into_iter()
                    .map(String::as_str)
                    .chain(message.cause.lines())
                {
                    assert!(line.chars().count() <= LONGEST_LINE + 1, "{message:#?}");
                    let is_hidden = |letter: char| {
                        letter.is_control()
                            || matches!(letter, '\u{200b}' | '\u{202e}' | '\u{2028}' | '\u{feff}')
                    };
                    assert!(!line.contains(is_hidden), "{line:?}");
                }
                assert!(message.links.len() <= 2 && message.links.iter().all(|link| is_web_url(&link.url)));
                super::super::service::tests::check_all(&message);
            }
        }
    }
}
