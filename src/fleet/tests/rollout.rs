//! Waves, canary clusters, `after` and rollout approvals within a whole fleet.

use super::{app_set, check, component, fleet, rings};

/// An AppSet with canary and blue podSets on bj, and a blue one on gz.
fn paid(strategy: &str) -> String {
    app_set(
        "pay",
        &format!("updateStrategy: {strategy}"),
        "{name: bj, podSets: [{name: pay-canary}, {name: pay-blue}]}, {name: gz, podSets: [{name: pay-blue}]}",
    )
}

fn check_app(app: &str, expected: &[(&str, &str)]) {
    check(&[("apps/a/app.yaml", app)], expected);
}

#[test]
fn canary_clusters_must_fit_the_app() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("[bj]", &[]),
        (
            "[gz]",
            &[(
                "E2101",
                "AppSet default/pay has no canary podSet on its canary cluster gz at apps/a/app.yaml:5",
            )],
        ),
        ("[bj, gz]", &[("E2101", "canary cluster gz")]),
        ("[bk]", &[("E2002", "AppSet default/pay names canary cluster bk, which is not registered")]),
        ("[bj, bk]", &[("E2002", "canary cluster bk")]),
    ];
    for (canaries, expected) in cases {
        check_app(&paid(&format!("{{upgradeType: canary, canaryClusters: {canaries}}}")), expected);
    }
    let elsewhere =
        app_set("pay", "updateStrategy: {canaryClusters: [gz]}", "{name: bj, podSets: [{name: pay-canary}]}");
    check_app(
        &elsewhere,
        &[("E2102", "warning[E2102]: AppSet default/pay runs on none of its canary clusters")],
    );
}

#[test]
fn wave_must_select_a_part_of_the_app() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("{name: one, clusters: {names: [bj]}}, {name: two, clusters: {names: [gz]}}", &[]),
        ("{name: one, groups: [canary]}", &[]),
        (
            "{name: one, clusters: {names: [gz]}, groups: [canary]}",
            &[(
                "E2103",
                "warning[E2103]: wave one of AppSet default/pay selects nothing of it at apps/a/app.yaml:5",
            )],
        ),
        ("{name: one, clusters: {matchLabels: {zone: sh}}}", &[("E2103", "wave one")]),
        (
            "{name: one, clusters: {names: [bk]}}",
            &[("E2002", "wave one of AppSet default/pay names cluster bk")],
        ),
        ("{name: one, clusters: {ring: prod}}", &[("E2003", "ring prod, which does not exist")]),
        ("{name: one, groups: [canari]}", &[("E2105", "group canari, and none of its podSets is in it")]),
    ];
    for (waves, expected) in cases {
        check_app(&paid(&format!("{{waves: [{waves}]}}")), expected);
    }
}

#[test]
fn upgrade_type_group_must_select_a_pod_set() {
    check_app(&paid("{upgradeType: canary|blue}"), &[]);
    let empty = "warning[E2103]: wave green of AppSet default/pay selects nothing: no podSet is of that group \
                 at apps/a/app.yaml:5";
    check_app(&paid("{upgradeType: canary|blue|green}"), &[("E2103", empty)]);
    check_app(&paid("{upgradeType: [canary, blue, green]}"), &[("E2103", empty)]);
    let fleet = fleet(&[("a.yaml", &paid("{upgradeType: green}"))]);
    let help = "its podSets are of: blue, canary. Write one of these, remove the group, or end the name of a podSet in -green";
    assert_eq!(fleet.diagnostics[0].help.as_deref(), Some(help));
}

#[test]
fn unknown_group_suggests_the_nearest_name() {
    let fleet = fleet(&[("a.yaml", &paid("{waves: [{name: one, groups: [canari]}]}"))]);
    let help = fleet.diagnostics[0].help.as_deref();
    assert_eq!(help, Some("did you mean `canary`? valid: blue, canary"));
}

#[test]
fn pod_set_is_in_one_wave() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("{name: one, groups: [canary]}, {name: two, groups: [blue]}", &[]),
        ("{name: one, groups: [blue], clusters: {names: [bj]}}, {name: two, clusters: {names: [gz]}}", &[]),
        (
            "{name: one, groups: [canary]}, {name: two}",
            &[("E2104", "waves one and two of AppSet default/pay both select group canary on cluster bj")],
        ),
        (
            "{name: one, groups: [blue]}, {name: two, groups: [blue]}, {name: three, clusters: {names: [gz]}}",
            &[("E2104", "waves one and two"), ("E2104", "waves one and three")],
        ),
    ];
    for (waves, expected) in cases {
        check_app(&paid(&format!("{{waves: [{waves}]}}")), expected);
    }
    let both = component("web", ", updateStrategy: {waves: [{name: one}, {name: two}]}");
    check_app(&both, &[("E2104", "waves one and two of Component default/web both select cluster bj")]);
}

#[test]
fn waves_may_name_rings() {
    let rings = rings("{name: test, clusters: {names: [bj]}}, {name: prod, clusters: {names: [gz]}}");
    let web = component(
        "web",
        ", updateStrategy: {waves: [{name: a, clusters: {ring: test}}, {name: b, clusters: {ring: prod}}]}",
    );
    check(&[("rings.yaml", &rings), ("a.yaml", &web)], &[]);
}

fn after(name: &str, others: &str) -> String {
    component(name, &format!(", updateStrategy: {{after: [{others}]}}"))
}

fn check_after(apps: &[(&str, &str)], expected: &[(&str, &str)]) {
    let texts: Vec<String> = apps.iter().map(|(name, others)| after(name, others)).collect();
    check(&[("apps.yaml", &texts.join("---\n"))], expected);
}

#[test]
fn no_app_waits_for_itself() {
    check_after(&[("a", "b"), ("b", "c"), ("c", "")], &[]);
    check_after(&[("a", "a")], &[("E2106", "Component default/a waits for itself: default/a → default/a")]);
    check_after(
        &[("lead", "a"), ("a", "b"), ("b", "c"), ("c", "a, end"), ("end", "")],
        &[
            ("E2106", "default/a → default/b → default/c → default/a at apps.yaml:9"),
            ("E2106", "default/b → default/c → default/a → default/b"),
            ("E2106", "default/c → default/a → default/b → default/c"),
        ],
    );
    // Between two cycles, and on none.
    check_after(
        &[("a", "b"), ("b", "a, c"), ("c", "d"), ("d", "e"), ("e", "d")],
        &[("E2106", "/a"), ("E2106", "/b"), ("E2106", "/d"), ("E2106", "/e")],
    );
}

#[test]
fn long_cycle_is_shortened_in_the_message() {
    let names: Vec<String> = (0..500).map(|index| format!("a{index}")).collect();
    let texts: Vec<String> =
        names.iter().zip(names.iter().cycle().skip(1)).map(|(name, next)| after(name, next)).collect();
    let fleet = fleet(&[("apps.yaml", &texts.join("---\n"))]);
    assert_eq!(fleet.diagnostics.len(), 500);
    assert!(fleet.diagnostics.iter().all(|it| it.message.len() < 200 && it.message.contains("…")));
}

#[test]
fn unknown_app_in_after_is_a_warning() {
    check_after(
        &[("a", "b, databse"), ("b", ""), ("database", "")],
        &[(
            "E2107",
            "warning[E2107]: Component default/a names default/databse under `after`, an app that does not \
             exist",
        )],
    );
    // An app with mistakes exists.
    let broken = component("b", ", nonsense: true");
    check(&[("a.yaml", &after("a", "b")), ("b.yaml", &broken)], &[("E1201", "nonsense")]);
}

fn approval(app: &str, action: &str) -> String {
    let digest = "91c2".repeat(16);
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: go}}\nspec: {{app: {app}, digest: {digest}, action: \
         {action}}}\n"
    )
}

fn check_approval(app: &str, approved: &str, action: &str, expected: &[(&str, &str)]) {
    let approval = approval(approved, action);
    check(&[("apps/a/app.yaml", app), ("apps/a/go.yaml", &approval)], expected);
}

#[test]
fn rollout_approval_needs_an_app_and_a_wave() {
    let groups = paid("{upgradeType: canary|blue}");
    for wave in ["first", "canary", "blue", "rest"] {
        check_approval(&groups, "default/pay", &format!("rollout, through: {wave}"), &[]);
    }
    let no_wave = "warning[E2108]: Approval go opens wave green, which AppSet default/pay does not have";
    check_approval(&groups, "default/pay", "rollout, through: green", &[("E2108", no_wave)]);
    check_approval(&groups, "default/pay", "retry", &[]);
    let no_app = "Approval go is of default/pya, which does not exist at apps/a/go.yaml:4";
    check_approval(&groups, "default/pya", "retry", &[("E2108", no_app)]);
    let named = component("web", ", updateStrategy: {waves: [{name: one}]}");
    check_approval(&named, "default/web", "rollout, through: one", &[]);
    let plain = component("web", "");
    check_approval(&plain, "default/web", "rollout, through: one", &[("E2108", "has no waves")]);
}

#[test]
fn approval_without_rollout_has_the_field_place() {
    let groups = paid("{upgradeType: canary|blue}");
    let found = |approved: &str, action: &str| {
        let approval = approval(approved, action);
        let fleet = fleet(&[("apps/a/app.yaml", &groups), ("apps/a/go.yaml", &approval)]);
        let mistake = fleet.diagnostics.into_iter().next().expect("an error");
        let start = mistake.location.expect("a place").start;
        let line = approval.lines().nth(start.line as usize - 1).unwrap_or_default();
        (line[start.column as usize - 1..].to_owned(), mistake.help.unwrap_or_default())
    };
    let (marked, help) = found("default/pya", "retry");
    assert!(marked.starts_with("default/pya"), "{marked}");
    assert_eq!(help, "did you mean `default/pay`? Else delete the file");
    let (marked, help) = found("default/pay", "rollout, through: geen");
    assert!(marked.starts_with("geen"), "{marked}");
    assert!(help.contains("valid: blue, canary, first, rest"), "{help}");
}

#[test]
fn rings_are_waves_of_plain_apps() {
    let rings =
        rings("{name: test, clusters: {names: [bj]}, soak: 5m}, {name: prod, clusters: {names: [gz]}}");
    let approval = approval("default/web", "rollout, through: test");
    let web = component("web", "");
    let mut files = vec![("rings.yaml", rings.as_str()), ("web.yaml", &web), ("go.yaml", &approval)];
    check(&files, &[]);
    assert_eq!(fleet(&files).rollout_approvals.values().flatten().count(), 1);
    let together = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {defaults: {rollout: together}}\n";
    files.push(("tutti.yaml", together));
    check(&files, &[("E2108", "has no waves")]);
}

#[test]
fn approvals_of_one_name_are_duplicates() {
    let web = component("web", ", updateStrategy: {waves: [{name: one}]}");
    let approval = approval("default/web", "retry");
    let files = [("apps/a/app.yaml", web.as_str()), ("one.yaml", &approval), ("two.yaml", &approval)];
    check(&files, &[("E2001", "Approval go has the identity of Approval go")]);
}

#[test]
fn override_must_name_an_existing_window() {
    let web = component("web", "");
    let window = "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {name: freeze}\nspec: {action: deny, from: 2026-12-24T00:00, to: 2027-01-02T00:00, timeZone: UTC}\n";
    let of = |named: &str| approval("default/web", &format!("override, window: {named}"));
    let (right, wrong) = (of("freeze"), of("freze"));
    let mut files = vec![
        ("apps/a/app.yaml", web.as_str()),
        ("policies/freeze.yaml", window),
        ("approvals/go.yaml", &right),
    ];
    check(&files, &[]);
    files[2].1 = &wrong;
    check(&files, &[("E2108", "Approval go is for window freze, which does not exist")]);
    files[2] = ("apps/a/go.yaml", &right);
    check(&files, &[("E1206", "an override must be below approvals/")]);
}

#[test]
fn unknown_analyses_of_waves_are_errors() {
    let forge = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {forge: {type: gitea, url: 'https://git.example.com', repository: a/b, credentials: {token: {env: TUTTI_SECRET_A}}}}\n";
    let analysis =
        "apiVersion: tutti.dev/v1alpha1\nkind: Analysis\nmetadata: {name: errors}\nspec: {health: 'true'}\n";
    let of =
        |limits: &str| component("web", &format!(", updateStrategy: {{waves: [{{name: one, {limits}}}]}}"));
    let told = |limits: &str, expected: &[(&'static str, &str)]| {
        let web = of(limits);
        check(
            &[("apps/a/app.yaml", web.as_str()), ("policies/a.yaml", analysis), ("tutti.yaml", forge)],
            expected,
        );
    };
    told("analysis: [errors], statuses: [ci/smoke]", &[]);
    told(
        "analysis: [erors]",
        &[("E2161", "wave one of Component default/web names analysis erors, which does not exist")],
    );
    told("statuses: [tutti/deploy/test]", &[("E2163", "which tutti writes itself")]);
    let web = of("statuses: [ci/smoke]");
    let nowhere = forge.replace(
        "forge: {type: gitea, url: 'https://git.example.com', repository: a/b, credentials: {token: {env: TUTTI_SECRET_A}}}",
        "",
    );
    check(
        &[("apps/a/app.yaml", web.as_str()), ("tutti.yaml", &nowhere)],
        &[("E2163", "tutti.yaml names no forge")],
    );
    // An analysis with a mistake exists, and only its own mistake is reported.
    let broken = analysis.replace("'true'", "'tru'");
    let web = of("analysis: [errors]");
    check(&[("apps/a/app.yaml", web.as_str()), ("policies/a.yaml", &broken)], &[("E2162", "`tru`")]);
}
