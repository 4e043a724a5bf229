use super::{App, Case, at, id, pin};
use crate::model::{Digest, Revision};
use crate::promotion::{
    AppRolloutState, ChangedFile, CommitUndo, ProposedChange, PullRequestAction, PullRequestState,
    commit_undo, pin_version, pull_request_body, withdrawn_body,
};

const PROD: &str = "tutti/promote/default.pay/prod";

/// Each action as `branch #number action: title or reason`.
fn shown(case: &Case) -> Vec<String> {
    let line = |it: &crate::promotion::DesiredPullRequest| {
        let number = it.number.map(|number| format!(" #{number}")).unwrap_or_default();
        let title = || it.change.as_ref().map(ProposedChange::title).unwrap_or_default();
        let action = match &it.action {
            PullRequestAction::Open => format!("open: {}", title()),
            PullRequestAction::Update => format!("update: {}", title()),
            PullRequestAction::Keep => "keep".to_owned(),
            PullRequestAction::Close { why } => format!("close: {why}"),
            PullRequestAction::Held { why } => format!("held: {why}"),
        };
        format!("{}{number} {action}", it.branch)
    };
    case.decide().pull_requests.iter().map(line).collect()
}

#[track_caller]
fn check(case: &Case, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|line| line.replace("PROD", PROD)).collect();
    assert_eq!(shown(case), expected);
}

/// Test runs v2, prod is pinned at v1.
fn pay() -> Case {
    Case::new("test; prod", &[("pay", "", &[("prod", "v1")])])
        .runs("pay", "test", "v2")
        .runs("pay", "prod", "v1")
}

/// The description of a promotion of pay to prod.
fn promoted(from: &str, to: &str) -> String {
    let change = ProposedChange::Promote {
        group: id("pay"),
        ring: "prod".to_owned(),
        before: "test".to_owned(),
        pins: vec![pin("pay", "prod", from, to)],
        is_requested: false,
    };
    pull_request_body(&change, &[])
}

#[test]
fn finished_version_of_previous_ring_is_proposed() {
    check(&pay(), &["PROD open: promote(pay): v1 → v2 on prod"]);
    check(&pay().runs("pay", "test", "v1"), &[]);
    let mut undone = pay();
    undone.state("pay", "test").done = 1;
    undone.state("pay", "test").wait_reason = "c1: no image".to_owned();
    check(&undone, &["PROD held: 1/2 done on test: c1: no image"]);
    undone.state("pay", "test").units = 0;
    check(&undone, &["PROD held: every cluster of ring test is left out"]);
    check(&pay().runs("pay", "test", "v1/v2"), &["PROD held: test runs several versions: v1/v2"]);
    check(&pay().runs("pay", "test", ""), &["PROD held: no version is known on test"]);
    check(&pay().runs("pay", "test", "a b"), &["PROD held: \"a b\" on test cannot be a pin"]);
    let mut unknown = pay();
    unknown.rings.clear();
    check(&unknown, &["PROD held: the state of ring test is not known"]);
}

#[test]
fn ring_without_pin_or_manual_is_not_proposed() {
    check(&Case::new("test; prod", &[("pay", "", &[])]).runs("pay", "test", "v2"), &[]);
    let manual = Case::new("test; prod: promotion: {mode: manual}", &[("pay", "", &[("prod", "v1")])]);
    check(&manual.runs("pay", "test", "v2"), &["PROD held: ring prod is promoted by hand: tutti promote"]);
}

#[test]
fn each_ring_follows_the_one_before() {
    let apps: &[App<'_>] = &[("pay", "", &[("pre", "v2"), ("prod", "v1")])];
    let case = Case::new("test; pre; prod", apps);
    let case = case.runs("pay", "test", "v3").runs("pay", "pre", "v2").runs("pay", "prod", "v1");
    check(
        &case,
        &[
            "tutti/promote/default.pay/pre open: promote(pay): v2 → v3 on pre",
            "PROD open: promote(pay): v1 → v2 on prod",
        ],
    );
    // A pin that moved does not count before the ring runs its version.
    let mut case = case;
    case.state("pay", "pre").done = 0;
    check(
        &case,
        &["tutti/promote/default.pay/pre open: promote(pay): v2 → v3 on pre", "PROD held: 0/2 done on pre"],
    );
}

#[test]
fn soak_comes_before_the_proposal() {
    let case = Case::new("test: soak: 1h; prod", &[("pay", "", &[("prod", "v1")])]).runs("pay", "test", "v2");
    check(&case, &["PROD open: promote(pay): v1 → v2 on prod"]);
    let mut case = case;
    case.state("pay", "test").done_since = Some(at(1_000_000 - 60));
    check(&case, &["PROD held: soak of test ends at 1970-01-12 14:45:40 UTC"]);
    assert_eq!(case.decide().recheck_at, Some(at(1_000_000 - 60 + 3600)));
    case.state("pay", "test").done_since = None;
    assert_eq!(case.decide().recheck_at, Some(at(1_000_000 + 3600)));
}

#[test]
fn open_pull_request_follows_desired_version() {
    let open = |body: &str| {
        let mut case = pay();
        case.request(7, PROD, PullRequestState::Open, body);
        case
    };
    check(&open(&promoted("v1", "v2")), &["PROD #7 keep"]);
    check(&open(&promoted("v1", "v1.9")), &["PROD #7 update: promote(pay): v1 → v2 on prod"]);
    check(&open("a person wrote this anew"), &["PROD #7 update: promote(pay): v1 → v2 on prod"]);
    let mut conflict = open(&promoted("v1", "v2"));
    conflict.requests[0].has_conflicts = true;
    check(&conflict, &["PROD #7 update: promote(pay): v1 → v2 on prod"]);
    let mut undone = open(&promoted("v1", "v1.9"));
    undone.state("pay", "test").done = 0;
    check(&undone, &["PROD #7 keep"]);
    check(&open(&promoted("v0", "v1")), &["PROD #7 close: the pins already have these versions"]);
    let back = open(&promoted("v1", "v2")).runs("pay", "test", "v1");
    check(&back, &["PROD #7 close: prod has the versions of test"]);
    let mut foreign = open(&promoted("v1", "v1.9"));
    foreign.requests[0].has_foreign_commits = true;
    check(
        &foreign,
        &["PROD #7 held: this branch has a commit that tutti did not make: merge or close it by hand"],
    );
    let mut second = open(&promoted("v1", "v2"));
    second.request(9, PROD, PullRequestState::Open, &promoted("v1", "v2"));
    check(&second, &["PROD #7 keep", "PROD #9 close: #7 is of the same branch"]);
}

#[test]
fn closed_or_reverted_version_is_not_proposed_again() {
    let with = |state: PullRequestState, body: &str| {
        let mut case = pay();
        case.request(3, PROD, state, body);
        case
    };
    let closed = with(PullRequestState::Closed, &promoted("v1", "v2"));
    check(&closed, &["PROD held: #3 was closed without a merge; reopen it to continue"]);
    check(&closed.runs("pay", "test", "v3"), &["PROD open: promote(pay): v1 → v3 on prod"]);
    let withdrawn = withdrawn_body(&promoted("v1", "v2"), "test went back");
    check(&with(PullRequestState::Closed, &withdrawn), &["PROD open: promote(pay): v1 → v2 on prod"]);
    let merged = with(PullRequestState::Merged, &promoted("v1", "v2"));
    check(&merged, &["PROD held: #3 set it before, and it was reverted; `tutti promote` sets it again"]);
    let mut later = merged;
    later.request(4, PROD, PullRequestState::Merged, &promoted("v2", "v3"));
    check(&later, &["PROD open: promote(pay): v1 → v2 on prod"]);
    // An older one that was closed blocks later ones.
    later.request(5, PROD, PullRequestState::Open, &promoted("v1", "v4"));
    later.requests[0].state = PullRequestState::Closed;
    check(&later, &["PROD #5 close: #3 was closed without a merge; reopen it to continue"]);
}

#[test]
fn requested_promotion_stays() {
    let mut case = pay();
    let mut change = match case.decide().pull_requests.remove(0).change {
        Some(change @ ProposedChange::Promote { .. }) => change,
        other => panic!("{other:?}"),
    };
    if let ProposedChange::Promote { is_requested, pins, .. } = &mut change {
        *is_requested = true;
        pins[0].to = "v0.9".to_owned();
    }
    case.request(7, PROD, PullRequestState::Open, &pull_request_body(&change, &[]));
    check(&case, &["PROD #7 keep"]);
    check(&case.runs("pay", "test", "v1"), &["PROD #7 keep"]);
}

#[test]
fn group_goes_together() {
    let group = "promotion: {group: shop}";
    let apps: &[App<'_>] =
        &[("pay", group, &[("prod", "v1")]), ("web", group, &[("prod", "v1")]), ("api", group, &[])];
    let case = || Case::new("test; prod", apps).runs("pay", "test", "v2").runs("web", "test", "v5");
    let branch = "tutti/promote/default.shop/prod";
    let check = |case: &Case, expected: &str| assert_eq!(shown(case), [format!("{branch} {expected}")]);
    check(&case(), "open: promote(shop): 2 apps on prod");
    check(&case().runs("web", "test", "v1"), "open: promote(pay): v1 → v2 on prod");
    let mut undone = case();
    undone.state("web", "test").done = 1;
    check(&undone, "held: web: 1/2 done on test");
    let change = case().decide().pull_requests.remove(0).change.expect("a change");
    let mut closed = case();
    closed.request(3, branch, PullRequestState::Closed, &pull_request_body(&change, &[]));
    check(&closed, "held: #3 was closed without a merge; reopen it to continue");
    let held = "held: #3 was closed without a merge; reopen it to continue";
    check(&closed.runs("pay", "test", "v1"), held);
    let broken: &[App<'_>] = &[
        ("pay", group, &[("prod", "v1")]),
        ("web", "promotion: {group: shop}, placement: {clusters: {names: [nowhere]}}", &[("prod", "v1")]),
    ];
    let case = Case::new("test; prod", broken).runs("pay", "test", "v2");
    check(&case, "held: default/web of this group has errors");
}

#[test]
fn at_most_ten_are_open() {
    let names: Vec<String> = (0..14).map(|number| format!("a{number:02}")).collect();
    let apps: Vec<App<'_>> = names.iter().map(|name| (name.as_str(), "", &[("prod", "v1")][..])).collect();
    let mut case = Case::new("test; prod", &apps);
    for name in &names {
        case = case.runs(name, "test", "v2");
    }
    case.request(1, "tutti/promote/default.gone/prod", PullRequestState::Open, "");
    case.request(2, "feature/x", PullRequestState::Open, "");
    let found = shown(&case);
    assert_eq!(found.iter().filter(|line| line.contains("prod open: ")).count(), 9);
    let above = "tutti/promote/default.a09/prod held: 10 pull requests of tutti are open: merge or close one";
    assert!(found.iter().any(|line| line == above), "{found:#?}");
    let gone = "tutti/promote/default.gone/prod #1 close: its rollout or promotion is no longer there";
    assert!(found.iter().any(|line| line == gone), "{found:#?}");
    case.limit = 0;
    assert!(!shown(&case).iter().any(|line| line.contains("prod open: ")));
}

#[test]
fn nothing_is_closed_while_repository_has_errors() {
    let apps: &[App<'_>] = &[("pay", "x: 1", &[("prod", "v1")])];
    let mut case = Case::new("test; prod", apps);
    assert!(!case.fleet.is_valid());
    case.request(7, PROD, PullRequestState::Open, &promoted("v1", "v2"));
    check(&case, &["PROD #7 keep"]);
}

#[test]
fn nothing_is_closed_while_cluster_is_unread() {
    let mut case = Case::new("test; prod", &[]);
    let branch = "tutti/revert/0123456";
    case.request(7, branch, PullRequestState::Open, "");
    case.unread = Some("c2 is not read: forbidden");
    check(&case, &["tutti/revert/0123456 #7 keep"]);
    case.unread = None;
    check(&case, &["tutti/revert/0123456 #7 close: its rollout or promotion is no longer there"]);
}

fn rollout(app: &str, commit: &str, is_settled: bool, asks: Option<&str>) -> AppRolloutState {
    AppRolloutState {
        app: id(app),
        commit: Some(Revision::from(commit)),
        is_settled,
        pending_confirmation: asks.map(|wave| (wave.to_owned(), Digest::of(app.as_bytes()))),
        missing_approvals: Vec::new(),
        opened_clusters: std::collections::BTreeSet::new(),
        is_reading: false,
        is_refused: false,
    }
}

#[test]
fn waiting_waves_share_one_pull_request() {
    let mut case = Case::new("test; prod", &[]);
    case.rollouts = vec![
        rollout("api", "0123456789", true, Some("blue")),
        rollout("pay", "0123456789", true, Some("canary")),
        rollout("web", "0123456789", true, Some("canary")),
        rollout("old", "9876543210", false, None),
    ];
    let (blue, canary) = ("tutti/approve/0123456/blue", "tutti/approve/0123456/canary");
    check(
        &case,
        &[
            &format!("{blue} open: approve(api): wave blue of 0123456"),
            &format!("{canary} open: approve: wave canary of 0123456 for 2 apps"),
        ],
    );
    let change = case.decide().pull_requests[1].change.clone().expect("a change");
    let files = change.files(&Revision::from("0123456789"), &|_| None).expect("files");
    assert_eq!(files[0].0, "approvals/default.pay.canary.yaml");
    assert!(files[0].1.starts_with("# Asked for at commit 0123456.\n"), "{}", files[0].1);
    // An app of the commit still changes: it may wait there too.
    case.rollouts[0].is_settled = false;
    case.rollouts[0].pending_confirmation = None;
    check(&case, &[&format!("{canary} held: default/api of 0123456 still changes")]);
    case.rollouts[0].is_settled = true;
    case.request(4, canary, PullRequestState::Open, &pull_request_body(&change, &[]));
    check(&case, &[&format!("{canary} #4 keep")]);
    case.rollouts.push(rollout("zoo", "0123456789", true, Some("canary")));
    check(&case, &[&format!("{canary} #4 update: approve: wave canary of 0123456 for 3 apps")]);
    // An agreement is being read: nobody is asked now, and may be asked later.
    for rollout in &mut case.rollouts {
        (rollout.pending_confirmation, rollout.is_reading) = (None, rollout.app == id("pay"));
    }
    check(&case, &[&format!("{canary} #4 keep")]);
    case.rollouts.clear();
    check(&case, &[&format!("{canary} #4 close: its rollout or promotion is no longer there")]);
}

#[test]
fn refused_version_is_reverted_in_git() {
    let mut case = Case::new("test; prod", &[("pay", "", &[("prod", "v2")])]);
    let commit = Revision::from("0123456789");
    case.rollouts = vec![AppRolloutState { is_refused: true, ..rollout("pay", "0123456789", true, None) }];
    let branch = "tutti/revert/0123456";
    check(
        &case,
        &[&format!("{branch} held: 0123456 is being read"), "PROD held: the state of ring test is not known"],
    );
    let mut with = |undo: CommitUndo, expected: &str| {
        case.undo.insert(commit.clone(), undo);
        assert_eq!(shown(&case)[0], format!("{branch} {expected}"));
        case.decide().pull_requests.remove(0).change
    };
    with(CommitUndo::Whole, "open: revert(pay): 0123456");
    let conflict = "held: 0123456 cannot be reverted cleanly: apps/pay/app.yaml; revert it by hand";
    with(CommitUndo::Conflicts("apps/pay/app.yaml".to_owned()), conflict);
    let pins = vec![pin("pay", "prod", "v2", "v1")];
    let change = with(CommitUndo::Pins(pins), "open: revert(pay): v2 → v1").expect("a change");
    let text =
        |path: &str| (path == "apps/pay/pins/prod.yaml").then(|| "# by us\nversion: 'v2'\n".to_owned());
    let files = change.files(&commit, &text).expect("files");
    assert_eq!(files, [("apps/pay/pins/prod.yaml".to_owned(), "# by us\nversion: 'v1'\n".to_owned())]);
    // It stays while the version is refused, whichever commit brought the version.
    case.request(4, branch, PullRequestState::Open, &pull_request_body(&change, &[]));
    assert_eq!(shown(&case)[0], format!("{branch} #4 keep"));
    case.rollouts[0].commit = None;
    assert!(shown(&case).contains(&format!("{branch} #4 keep")));
    case.rollouts[0].is_refused = false;
    assert!(
        shown(&case).contains(&format!("{branch} #4 close: its rollout or promotion is no longer there"))
    );
}

#[test]
fn commit_of_pins_is_reverted_by_pin() {
    let pins: &[(&str, &str)] = &[("prod", "v2")];
    let case = Case::new("test; prod", &[("pay", "", pins), ("web", "", pins)]);
    let file = |path: &str, before: Option<&str>, after: &str, now: &str| ChangedFile {
        path: path.to_owned(),
        before: before.map(ToOwned::to_owned),
        after: Some(after.to_owned()),
        now: Some(now.to_owned()),
    };
    let of_pin = |app: &str| {
        file(&format!("apps/{app}/pins/prod.yaml"), Some("version: v1\n"), "version: v2\n", "version: v2\n")
    };
    let check = |changed: &[ChangedFile], expected: CommitUndo| {
        assert_eq!(commit_undo(&case.fleet, changed), expected)
    };
    let back = |app: &str| pin(app, "prod", "v2", "v1");
    check(&[of_pin("pay"), of_pin("web")], CommitUndo::Pins(vec![back("pay"), back("web")]));
    check(&[of_pin("pay"), file("apps/pay/app.yaml", Some("a"), "b", "b")], CommitUndo::Whole);
    check(&[ChangedFile { before: None, ..of_pin("pay") }], CommitUndo::Whole);
    check(&[], CommitUndo::Whole);
    let later = |path: &str| file(path, Some("a"), "b", "c");
    check(&[of_pin("pay"), later("x")], CommitUndo::Conflicts("x".to_owned()));
    let many: Vec<ChangedFile> = ["a", "b", "c", "d", "e"].map(later).to_vec();
    check(&many, CommitUndo::Conflicts("a, b, c and 2 more".to_owned()));
    assert_eq!(pin_version("# x\nversion: 1.10 # y\n").as_deref(), Some("1.10"));
    assert_eq!(pin_version("version: [a]"), None);
    assert_eq!(pin_version("version: ["), None);
}
