use super::{App, Case, Dice, id, pin};
use crate::model::{Digest, Revision, RolloutAction};
use crate::promotion::{
    PromotionGate, PromotionGateState, PromotionRowState, ProposedChange, PullRequestState, RequestRefusal,
    parse_body, promotion_rows, pull_request_body, refused_merge_note, requested_promotion, rollout_approval,
    withdrawn_body,
};

fn promotion(to: &str) -> ProposedChange {
    ProposedChange::Promote {
        group: id("pay"),
        ring: "prod".to_owned(),
        before: "test".to_owned(),
        pins: vec![pin("pay", "prod", "1.7.3", to)],
        is_requested: false,
    }
}

#[test]
fn description_is_for_people_and_for_programs() {
    let gate = PromotionGate {
        name: "soak".to_owned(),
        state: PromotionGateState::Pending,
        text: "until | 3".to_owned(),
    };
    let change = promotion("1.8.0");
    let digest = change.block().digest();
    let expected = format!(
        "<!-- tutti\nkind: \"promotion\"\nring: \"prod\"\napps:\n  - {{app: \"default/pay\", from: \"1.7.3\", to: \"1.8.0\"}}\n\
         digest: {digest}\n-->\n\n\
         Ring `test` has finished these versions; this pull request sets them in `prod`.\n\n\
         - `default/pay`: `1.7.3 → 1.8.0` in `apps/pay/pins/prod.yaml`\n\n\
         To hold the version, close this pull request: tutti opens a new one with the next version only. If \
         another person pushes to its branch, tutti no longer changes it.\n\n\
         | gate | | |\n|---|---|---|\n| `soak` | … pending | `until \\| 3` |\n"
    );
    assert_eq!(pull_request_body(&change, &[gate]), expected);
    assert_eq!(change.title(), "promote(pay): 1.7.3 → 1.8.0 on prod");
}

#[test]
fn refused_merge_is_noted_below_description() {
    let change = promotion("1.8.0");
    let text = pull_request_body(&change, &[])
        + &refused_merge_note("it cannot be merged now (`x` --> <!-- tutti @all)");
    assert_eq!(parse_body(&text), Some(change.block()));
    let end = "All gates have passed. The forge refuses the merge, which is tried again: \
               ``it cannot be merged now (`x` --> <!-- tutti @all)``\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn block_is_read_back() {
    let commit = Revision::from("0123456789");
    let open = RolloutAction::Open { through: "canary".to_owned() };
    let approvals = vec![rollout_approval(&id("pay"), Digest::of(b"v2"), open)];
    let requested = match promotion("yes") {
        ProposedChange::Promote { group, ring, before, pins, .. } => {
            ProposedChange::Promote { group, ring, before, pins, is_requested: true }
        }
        other => other,
    };
    for change in [
        promotion("1.10"),
        promotion("--> <!-- tutti"),
        requested,
        ProposedChange::Approve { commit: commit.clone(), wave: "canary".to_owned(), approvals },
        ProposedChange::Revert { commit: commit.clone(), apps: vec![id("pay")], pins: Vec::new() },
        ProposedChange::Revert {
            commit,
            apps: vec![id("pay"), id("web")],
            pins: vec![pin("pay", "prod", "2", "1")],
        },
    ] {
        let text = pull_request_body(&change, &[]);
        assert_eq!(parse_body(&text), Some(change.block()), "{text}");
        assert_eq!(parse_body(&text.replace('\n', "\r\n")), Some(change.block()));
        assert_eq!(parse_body(&format!("Please look.\n{text}")), Some(change.block()));
        let withdrawn = withdrawn_body(&text, "test went back");
        let block = parse_body(&withdrawn).expect("a block");
        assert!(block.is_withdrawn && block.digest() == change.block().digest());
        assert!(
            withdrawn.contains("Closed by tutti: test went back.")
                && withdrawn.matches("<!-- tutti\n").count() == 1
        );
    }
}

#[test]
fn edited_block_is_read_as_far_as_possible() {
    let check = |text: &str, expected: Option<&str>| {
        let found = parse_body(text).map(|block| {
            let items = block.items.iter().map(|item| format!("{} {}", item.app, item.to));
            items.collect::<Vec<_>>().join(", ")
        });
        assert_eq!(found.as_deref(), expected, "{text}");
    };
    check("", None);
    check("<!-- tutti\n", None);
    check("<!-- tutti\n-->", None);
    check("<!-- tutti\nkind: [\n-->", None);
    check("<!-- tutti\nkind: promotion\napps: {}\n-->", Some(""));
    check(
        "<!-- tutti\nkind: promotion\nlater: {a: 1}\napps: [{app: a/b, to: 1.10}, {app: x, to: 1}, 3]\n-->",
        Some("a/b 1.10"),
    );
}

#[test]
fn untrusted_text_cannot_panic_or_end_comment() {
    let mut dice = Dice(7);
    let parts = [
        "-->",
        "<!-- tutti\n",
        "`",
        "|",
        "\n",
        "\u{1b}",
        "发",
        "kind: x\n",
        "{",
        "\"",
        "- ",
        "*a",
        "&a ",
        "\u{0}",
        "apps: [",
    ];
    for _ in 0..3_000 {
        let text: String = (0..dice.below(12)).map(|_| dice.pick(&parts)).collect();
        parse_body(&text);
        withdrawn_body(&text, "x");
        let gate =
            PromotionGate { name: text.clone(), state: PromotionGateState::Pending, text: text.clone() };
        let change = promotion(&text);
        let made = pull_request_body(&change, &vec![gate; 40]);
        assert_eq!(parse_body(&made), Some(change.block()), "{text:?}");
        assert!(made.len() < 60_000, "{}", made.len());
    }
}

#[test]
fn new_pin_is_a_new_file() {
    let ProposedChange::Promote { pins, .. } = promotion("1.10") else { panic!("a promotion") };
    let new = |to: &str| {
        let pins = vec![super::PinChange { from: None, to: to.to_owned(), ..pins[0].clone() }];
        let change = ProposedChange::Revert { commit: Revision::from("abc"), apps: Vec::new(), pins };
        change.files(&Revision::from("abc"), &|_| None).expect("files").remove(0).1
    };
    assert_eq!(new("1.10"), "version: \"1.10\"\n");
    assert_eq!(new("1.8.0"), "version: 1.8.0\n");
    let broken = promotion("2").files(&Revision::from("abc"), &|_| Some("version: |\n  1\n".to_owned()));
    let error = broken.expect_err("it is refused");
    assert!(error.starts_with("apps/pay/pins/prod.yaml:1:10: `version` is a block scalar; "), "{error}");
}

#[test]
fn person_may_request_any_version() {
    let apps: &[App<'_>] = &[("pay", "", &[("prod", "v1")])];
    let mut case = Case::new("test; pre; prod", apps).runs("pay", "test", "v3").runs("pay", "pre", "v2");
    let ask = |case: &Case, before: Option<&str>, ring: &str, version: Option<&str>| {
        requested_promotion(&case.input(), &id("pay"), before, ring, version).map(|change| change.title())
    };
    let fine = |title: &str| Ok(format!("promote(pay): {title}"));
    assert_eq!(ask(&case, None, "prod", None), fine("v1 → v2 on prod"));
    assert_eq!(ask(&case, Some("test"), "prod", None), fine("v1 → v3 on prod"));
    assert_eq!(ask(&case, None, "prod", Some("v0")), fine("v1 → v0 on prod"));
    assert_eq!(ask(&case, None, "pre", None), fine("v3 on pre"));
    let refused = |found: Result<String, RequestRefusal>, expected: &str| {
        let why = found.expect_err("it is refused").to_string();
        assert!(why.contains(expected), "{why}");
    };
    refused(ask(&case, None, "test", None), "test is the first ring of default/pay: give --version");
    refused(
        ask(&case, None, "live", None),
        "default/pay does not run in ring live; its rings: test, pre, prod",
    );
    refused(ask(&case, Some("x"), "prod", None), "does not run in ring x");
    refused(ask(&case, Some("prod"), "prod", None), "--from and --to are both prod");
    refused(ask(&case, None, "prod", Some("a b")), "cannot be a version");
    case.state("pay", "pre").done = 0;
    refused(ask(&case, None, "prod", None), "default/pay: 0/2 done on pre; --version sets one anyway");
}

#[test]
fn table_shows_all_rings_of_pinned_app() {
    let apps: &[App<'_>] = &[("pay", "", &[("pre", "v2"), ("prod", "v2")]), ("web", "", &[])];
    let case = Case::new("test; pre; prod", apps).runs("pay", "test", "v3").runs("pay", "pre", "v2");
    let mut case = case.runs("pay", "prod", "v2").runs("web", "test", "v1");
    let shown = |case: &Case| {
        let line = |it: &crate::promotion::PromotionRow| {
            let number = it.pull_request.map(|number| format!(" #{number}")).unwrap_or_default();
            let next = it.next.as_deref().unwrap_or("-");
            let text = format!(
                "{} {} {} {next} {:?}{number} {}",
                it.app.name, it.ring, it.version, it.state, it.because
            );
            text.trim_end().to_owned()
        };
        promotion_rows(&case.input()).iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(shown(&case), ["pay test v3 - First", "pay pre v2 v3 Ready", "pay prod v2 - UpToDate"]);
    let change = case.decide().pull_requests.remove(0).change.expect("a change");
    let text = pull_request_body(&change, &[]);
    case.request(4, "tutti/promote/default.pay/pre", PullRequestState::Open, &text);
    assert_eq!(shown(&case)[1], "pay pre v2 v3 Open #4");
    case.requests[0].state = PullRequestState::Closed;
    assert_eq!(shown(&case)[1], "pay pre v2 v3 Held #4 was closed without a merge; reopen it to continue");
    case.state("pay", "test").done = 0;
    assert_eq!(
        shown(&case)[..2],
        ["pay test v3 - First 0/2 done on test", "pay pre v2 - Waiting 0/2 done on test"]
    );
    assert_eq!(PromotionRowState::UpToDate.as_str(), "UpToDate");
}
