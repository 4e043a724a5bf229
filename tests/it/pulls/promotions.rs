//! Pull requests that tutti opens, updates, closes and merges: a version moves from ring to ring.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch};
use tutti::forge::{CommitStatus, CommitStatusState};
use tutti::model::Revision;

use super::fixture::{PAY, PIN, PullRequestFixture, pay};
use crate::support::forge::simulator::{BOT, ForgeSimulator, PullRequestView};
use crate::support::manifests::component;

pub const BRANCH: &str = "tutti/promote/default.pay/prod";
pub const PINNED: &str = "# The version of prod.\nversion: v1  # by tutti\n";
const CART: &str = "apps/cart/app.yaml";
const CART_PIN: &str = "apps/cart/pins/prod.yaml";

/// `test` on c1 with a soak, `prod` on c2.
pub fn rings(promotion: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {{name: rings}}\nspec:\n  rings:\n    - {{name: test, clusters: {{names: [c1]}}, soak: 1m}}\n    \
         - {{name: prod, clusters: {{names: [c2]}}, promotion: {promotion}}}\n"
    )
}

const REQUIRES_STATUS: &str = "{mode: auto, statuses: [drone/e2e]}";

async fn pinned_fixture(promotion: &str) -> PullRequestFixture {
    let files = [("rings.yaml", &*rings(promotion)), (PAY, &*pay("v1")), (PIN, PINNED)];
    PullRequestFixture::new_started(&["c1", "c2"], &files).await
}

/// The status of CI.
async fn set_ci_status(scene: &PullRequestFixture, head: &Revision, state: CommitStatusState) {
    let status =
        CommitStatus { context: "drone/e2e".to_owned(), state, description: String::new(), target_url: None };
    scene.simulator.client("ci").post_status(head, &status).await.expect("a status");
}

/// The open promotion with this version.
pub async fn promotion(scene: &PullRequestFixture, version: &str) -> PullRequestView {
    let brings = |now: &ForgeSimulator| {
        let text = now.file_text(BRANCH, PIN).unwrap_or_default();
        let title = format!("→ {version} on prod");
        text.contains(&format!("version: {version} "))
            && now.pulls().iter().any(|it| it.is_open && it.title.ends_with(&title))
    };
    scene.until(&format!("a promotion of {version}"), brings).await;
    scene.open_of(BRANCH).expect("it is open")
}

fn merges(scene: &PullRequestFixture) -> usize {
    scene.simulator.requests().iter().filter(|line| line.ends_with("/merge")).count()
}

pub async fn until_merged(scene: &PullRequestFixture, number: u64) -> Revision {
    let merged = |now: &ForgeSimulator| {
        now.pulls().into_iter().find(|it| it.number == number).and_then(|it| it.merged)
    };
    scene.until(&format!("the merge of #{number}"), |now| merged(now).is_some()).await;
    merged(&scene.simulator).expect("merged")
}

#[tokio::test(start_paused = true)]
async fn a_version_is_promoted_after_soak_and_test() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    let pushed = scene.push("main", &[(PAY, Some(&pay("v2")))]);
    scene.running().until("v2 on test", |now| now.revision.as_ref() == Some(&pushed)).await;
    scene.assert_no_requests(40).await;
    assert_eq!((scene.version("c1").await.as_str(), scene.simulator.pulls()), ("v2", vec![]));
    let pull = promotion(&scene, "v2").await;
    assert_eq!(scene.simulator.file_text(BRANCH, PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    let said = |context: &str| scene.simulator.statuses_of(&pull.head, context);
    scene.until_planned(&pull.head).await;
    scene
        .until("gates", |now| now.last_status(&pull.head, "tutti/gate/drone/e2e").starts_with("pending "))
        .await;
    scene.assert_no_requests(60).await;
    assert!(
        said("tutti/gate/ring").last().is_some_and(|word| word.starts_with("success 1/1 done on test")),
        "{}",
        scene.describe()
    );
    assert!(said("tutti/gate/soak").last().is_some_and(|word| word.starts_with("success ")));
    // The status never looks as if nothing was left to wait for.
    assert!(said("tutti/gate").iter().all(|word| word.starts_with("pending ")), "{:?}", said("tutti/gate"));
    assert_eq!((merges(&scene), scene.simulator.comments(pull.number).len()), (0, 1));

    set_ci_status(&scene, &pull.head, CommitStatusState::Failure).await;
    scene
        .until("a failed gate", |now| now.last_status(&pull.head, "tutti/gate").starts_with("failure "))
        .await;
    assert_eq!(merges(&scene), 0);
    let base = scene.simulator.tip("main").expect("a tip");
    set_ci_status(&scene, &pull.head, CommitStatusState::Success).await;
    let merged = until_merged(&scene, pull.number).await;
    assert_eq!(scene.simulator.parents(&merged), [base.as_str(), pull.head.as_str()]);
    scene.running().until_converged(&merged).await;
    assert_eq!(scene.version("c2").await, "v2");
    scene
        .until("the last gate", |now| now.last_status(&pull.head, "tutti/gate") == "success 3/3 gates")
        .await;
    scene.assert_no_requests(120).await;
    assert_eq!(scene.simulator.pulls().len(), 1);
}

// It has another prefix, and may have the same user.
#[tokio::test(start_paused = true)]
async fn pull_requests_of_another_instance_are_left_alone() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    let open = |branch: &str| {
        scene.simulator.push(BOT, branch, "Change", &[("notes", Some(branch))]);
        scene.simulator.open_pull(BOT, branch)
    };
    let (theirs, ours) = (open("staging/promote/default.gone/prod"), open("tutti/promote/default.gone/prod"));
    let is_open =
        |now: &ForgeSimulator, number| now.pulls().iter().any(|it| it.number == number && it.is_open);
    scene.until("the end of ours", |now| !is_open(now, ours)).await;
    scene.assert_no_requests(180).await;
    assert!(is_open(&scene.simulator, theirs), "{}", scene.describe());
    assert!(scene.simulator.tip("staging/promote/default.gone/prod").is_some());
    let head = scene.simulator.pulls().into_iter().find(|it| it.number == theirs).expect("it").head;
    assert_eq!(scene.simulator.last_status(&head, "tutti/gate"), "success no promotion");
}

#[tokio::test(start_paused = true)]
async fn promotion_is_merged_once_its_window_opens() {
    let scene = pinned_fixture("{mode: auto}").await;
    let at = |hours: i64| {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
        at.strftime("%Y-%m-%dT%H:%M").to_string()
    };
    let window = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {{name: freeze}}\nspec: {{action: deny, select: {{rings: [prod]}}, from: {}, to: {}, timeZone: UTC}}\n",
        at(-24),
        at(2)
    );
    scene.push("main", &[("policies/freeze.yaml", Some(&window)), (PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    let gate = |now: &ForgeSimulator| now.last_status(&pull.head, "tutti/gate/window");
    scene.until("its gate", |now| gate(now).starts_with("pending pay: window freeze is shut until ")).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!((merges(&scene), scene.version("c2").await.as_str()), (0, "v1"), "{}", scene.describe());
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let merged = until_merged(&scene, pull.number).await;
    assert_eq!(gate(&scene.simulator), "success open for pay on prod");
    scene.running().until("v2 on prod", |now| now.revision.as_ref() == Some(&merged)).await;
}

#[tokio::test(start_paused = true)]
async fn a_merge_that_is_refused_is_tried_again() {
    let scene = pinned_fixture("{mode: auto}").await;
    scene.simulator.set_quirks(|quirks| quirks.late_merge_checks = 3);
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    until_merged(&scene, pull.number).await;
    assert!(merges(&scene) > 1, "{}", merges(&scene));
}

#[tokio::test(start_paused = true)]
async fn a_refused_merge_is_shown_on_its_pull() {
    let scene = pinned_fixture("{mode: auto}").await;
    // A status of another program, which the rings do not name.
    let root = scene.simulator.client("root");
    root.create_protection("main", &["security".to_owned()]).await.expect("a rule");
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    let says = |now: &ForgeSimulator| {
        let body = now.pulls().into_iter().find(|it| it.number == pull.number).map(|it| it.body);
        body.is_some_and(|body| {
            body.contains("The forge refuses the merge")
                && body.contains("Not all required status checks successful")
        })
    };
    scene.until("the reason", says).await;
    assert!(merges(&scene) >= 3, "{}", merges(&scene));
    let before = scene.simulator.requests().len();
    scene.assert_no_requests(120).await;
    let edits = scene.writes_since(before).into_iter().filter(|line| line.starts_with("PATCH ")).count();
    assert_eq!(edits, 0, "it is told once");
    let status = CommitStatus {
        context: "security".to_owned(),
        state: CommitStatusState::Success,
        description: String::new(),
        target_url: None,
    };
    scene.simulator.client("ci").post_status(&pull.head, &status).await.expect("a status");
    until_merged(&scene, pull.number).await;
}

#[tokio::test(start_paused = true)]
async fn promotions_merged_at_the_same_time_all_arrive() {
    let cart = |version: &str| component("cart", &format!("registry.example.com/cart:{version}"));
    let files = [
        ("rings.yaml", &*rings("{mode: auto}")),
        (PAY, &*pay("v1")),
        (PIN, PINNED),
        (CART, &*cart("v1")),
        (CART_PIN, "version: v1\n"),
    ];
    let scene = PullRequestFixture::new_started(&["c1", "c2"], &files).await;
    scene.simulator.set_quirks(|quirks| quirks.late_merge_checks = 2);
    scene.push("main", &[(PAY, Some(&pay("v2"))), (CART, Some(&cart("v2")))]);
    scene
        .until("both merges", |now| now.pulls().iter().filter(|pull| pull.merged.is_some()).count() == 2)
        .await;
    let tip = scene.simulator.tip("main").expect("a tip");
    scene.running().until_converged(&tip).await;
    assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    assert_eq!(scene.simulator.file_text("main", CART_PIN).as_deref(), Some("version: v2\n"));
    scene.assert_no_requests(180).await;
    assert_eq!(scene.simulator.pulls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_newer_head_needs_its_own_gates() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let first = promotion(&scene, "v2").await;
    scene.until_planned(&first.head).await;
    scene.push("main", &[(PAY, Some(&pay("v3")))]);
    let second = promotion(&scene, "v3").await;
    assert_eq!(first.number, second.number, "it is updated");
    assert_ne!(first.head, second.head);
    set_ci_status(&scene, &first.head, CommitStatusState::Success).await;
    scene.assert_no_requests(300).await;
    assert_eq!(merges(&scene), 0);
    assert!(scene.simulator.last_status(&second.head, "tutti/gate").starts_with("pending "));
    assert!(
        scene.simulator.last_status(&first.head, "tutti/gate").starts_with("skipped superseded by "),
        "{}",
        scene.describe()
    );
    set_ci_status(&scene, &second.head, CommitStatusState::Success).await;
    until_merged(&scene, second.number).await;
    assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(&*PINNED.replace("v1", "v3")));
}

#[tokio::test(start_paused = true)]
async fn a_promotion_with_foreign_commits_is_left_alone() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    scene.until_planned(&pull.head).await;
    let theirs = scene.push(BRANCH, &[("apps/pay/notes.txt", Some("mine"))]);
    set_ci_status(&scene, &theirs, CommitStatusState::Success).await;
    scene.push("main", &[(PAY, Some(&pay("v3")))]);
    scene.assert_no_requests(240).await;
    let now = scene.open_of(BRANCH).expect("it is open");
    assert_eq!((&now.head, &now.title, &now.body), (&theirs, &pull.title, &now.body));
    assert_eq!((merges(&scene), scene.simulator.pulls().len()), (0, 1));
    // Somebody may merge it: nothing else is proposed until then.
    assert!(scene.simulator.last_status(&theirs, "tutti/validate").starts_with("success "));
    assert_eq!(scene.version("c2").await, "v1");
}

#[tokio::test(start_paused = true)]
async fn a_closed_promotion_holds_until_the_next_version() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    scene.simulator.set_open("li", pull.number, false);
    scene.assert_no_requests(180).await;
    assert_eq!((scene.open_of(BRANCH), scene.simulator.pulls().len()), (None, 1));
    scene.push("main", &[(PAY, Some(&pay("v3")))]);
    let next = promotion(&scene, "v3").await;
    assert_ne!(next.number, pull.number);
}

#[tokio::test(start_paused = true)]
async fn a_conflicting_base_gets_a_new_promotion() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    scene.until_planned(&pull.head).await;
    let words = "# The version of prod.\nversion: v1  # by hand\n";
    scene.push("main", &[(PIN, Some(words))]);
    scene.until("another one", |now| now.pulls().len() == 2).await;
    let next = promotion(&scene, "v2").await;
    assert_eq!(scene.simulator.file_text(BRANCH, PIN).as_deref(), Some(&*words.replace("v1", "v2")));
    set_ci_status(&scene, &next.head, CommitStatusState::Success).await;
    until_merged(&scene, next.number).await;
    assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(&*words.replace("v1", "v2")));
    // No pull request is left open.
    scene
        .until("ends", |now| {
            let mut last = std::collections::BTreeMap::new();
            let words = now.status_writes();
            words
                .iter()
                .filter(|it| it.context != "drone/e2e")
                .for_each(|it| _ = last.insert((&it.commit, &it.context), it.state()));
            last.values().all(|state| *state != "pending")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_base_that_moves_elsewhere_keeps_a_promotion() {
    let scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    scene.until_planned(&pull.head).await;
    scene.push("main", &[("README.md", Some("x"))]);
    scene.assert_no_requests(120).await;
    assert_eq!(scene.open_of(BRANCH).map(|it| it.head), Some(pull.head.clone()));
    set_ci_status(&scene, &pull.head, CommitStatusState::Success).await;
    until_merged(&scene, pull.number).await;
}

// A missing right on the cluster, for example.
#[tokio::test(start_paused = true)]
async fn the_gate_names_an_unlisted_cluster() {
    let mut scene = pinned_fixture(REQUIRES_STATUS).await;
    scene.push("main", &[(PAY, Some(&pay("v2")))]);
    let pull = promotion(&scene, "v2").await;
    scene.until("a gate", |now| now.last_status(&pull.head, "tutti/gate/ring").starts_with("success ")).await;
    scene.kill().await;
    let rule = FaultRule::failing(RequestMatch::any().resource("services"), Fault::internal_error());
    scene.fleet.cluster("c1").set_faults(&FaultPlan::new(1).rule(rule));
    scene.start().await;
    scene.assert_no_requests(60).await;
    let ring = |now: &ForgeSimulator| now.last_status(&pull.head, "tutti/gate/ring");
    assert!(ring(&scene.simulator).starts_with("success "), "it may be a server that starts");
    let why = "pending pay: 0/1 done on test: c1 is not read: v1/Service cannot be ";
    scene.until("the reason", |now| ring(now).starts_with(why)).await;
    assert!(scene.open_of(BRANCH).is_some(), "{}", scene.describe());
    scene.fleet.cluster("c1").set_faults(&FaultPlan::new(1));
    scene.until("the gate again", |now| ring(now).starts_with("success ")).await;
}

// An earlier process died before the pull request was opened, or the answer was lost.
#[tokio::test(start_paused = true)]
async fn a_matching_branch_is_reused_and_others_recreated() {
    for (text, is_used) in [(PINNED.replace("v1", "v2"), true), (PINNED.replace("v1", "v0"), false)] {
        let scene = pinned_fixture(REQUIRES_STATUS).await;
        let left = scene.simulator.push(BOT, BRANCH, "An attempt", &[(PIN, Some(&text))]);
        scene.push("main", &[(PAY, Some(&pay("v2")))]);
        let pull = promotion(&scene, "v2").await;
        assert_eq!(pull.head == left, is_used, "{}", scene.describe());
        let deletes = scene.simulator.requests().iter().filter(|line| line.starts_with("DELETE ")).count();
        assert_eq!(deletes, usize::from(!is_used));
    }
}

// After each write between a finished version and its merge.
#[tokio::test(start_paused = true)]
async fn the_next_process_continues_a_promotion() {
    for writes in 0.. {
        let mut scene = pinned_fixture("{mode: auto}").await;
        scene.push("main", &[(PAY, Some(&pay("v2")))]);
        scene.running().until("v2 on test", |now| now.targets.iter().any(|it| it.version == "v2")).await;
        scene.assert_no_requests(40).await;
        scene.simulator.stop_after_writes(writes);
        scene
            .until("the end of the process, or of its work", |now| {
                now.is_unresponsive() || now.pulls().iter().any(|pull| pull.merged.is_some())
            })
            .await;
        let was_still = scene.simulator.is_unresponsive();
        scene.kill().await;
        scene.simulator.clear_faults();
        scene.start().await;
        scene.until("a merge", |now| now.pulls().iter().any(|pull| pull.merged.is_some())).await;
        let tip = scene.simulator.tip("main").expect("a tip");
        scene.running().until_converged(&tip).await;
        scene.assert_no_requests(80).await;
        let pulls = scene.simulator.pulls();
        assert_eq!(pulls.len(), 1, "after {writes}: {}", scene.describe());
        assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
        assert!(scene.simulator.comments(1).len() <= 1, "after {writes}");
        let authors: BTreeSet<String> =
            scene.simulator.comments(1).into_iter().map(|(author, _)| author).collect();
        assert!(authors.iter().all(|author| author == BOT));
        if !was_still {
            assert!(writes > 12, "only {writes} writes");
            return;
        }
    }
}

impl PullRequestFixture {
    /// Waits for all statuses of a promotion except the gate.
    pub(super) async fn until_planned(&self, head: &Revision) {
        let ended = |text: String| text.starts_with("success ");
        self.until(&format!("an end of {}", head.short()), |now| {
            ended(now.last_status(head, "tutti/validate")) && ended(now.last_status(head, "tutti/plan"))
        })
        .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
