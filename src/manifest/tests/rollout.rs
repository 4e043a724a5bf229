//! Waves, limits of rings, and approvals of rollouts.

use std::time::Duration;

use super::{COMPONENT, check_mistakes, clean, read_texts};
use crate::manifest::rollout_approval_to_yaml;
use crate::model::{
    App, AppId, ClusterName, ClusterSelector, DefaultRollout, Digest, GroupOrder, OnFailure, RolloutAction,
    RolloutApproval, RolloutApprovalLocations, RolloutGroup, UnitShare, UpdateStrategy, WaveLimits,
    WaveOrder,
};

fn app_set(strategy: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: pay, namespace: shop}}\nspec:\n  updateStrategy: \
         {strategy}\n  clusterTopology: {{clusters: [{{name: a, podSets: [{{name: pay-canary}}]}}]}}\n"
    )
}

fn component(strategy: &str) -> String {
    format!("{COMPONENT}  updateStrategy: {strategy}\n")
}

fn objects(strategy: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: config, namespace: shop}}\nspec: {{files: [a.yaml], \
         updateStrategy: {strategy}}}\n"
    )
}

fn app(text: &str) -> App {
    App::clone(&clean(text).apps[0])
}

fn of_groups(text: &str) -> GroupOrder {
    match app(text).rollout.order {
        WaveOrder::Groups(order) => order,
        other => panic!("{text}: {other:?}"),
    }
}

fn limits(of: &str) -> WaveLimits {
    of_groups(&app_set(&format!("{{upgradeType: canary, {of}}}"))).limits
}

#[test]
fn limits_are_read() {
    let none = WaveLimits::default();
    let cases = [
        ("maxConcurrency: 3", WaveLimits { max_concurrency: Some(UnitShare::Count(3)), ..none.clone() }),
        ("maxConcurrency: 25%", WaveLimits { max_concurrency: Some(UnitShare::Percent(25)), ..none.clone() }),
        (
            "maxConcurrency: '100%'",
            WaveLimits { max_concurrency: Some(UnitShare::Percent(100)), ..none.clone() },
        ),
        ("maxFailures: 2", WaveLimits { max_failures: 2, ..none.clone() }),
        ("maxFailures: 0", none.clone()),
        ("soak: 1h30m", WaveLimits { soak: Some(Duration::from_secs(5400)), ..none.clone() }),
        ("analysis: [errors]", WaveLimits { analysis: vec!["errors".to_owned()], ..none.clone() }),
        ("statuses: [ci/e2e]", WaveLimits { statuses: vec!["ci/e2e".to_owned()], ..none.clone() }),
        ("confirm: false", none),
    ];
    for (text, expected) in cases {
        assert_eq!(limits(text), expected, "{text}");
    }
}

#[test]
fn confirm_beside_groups_means_every_wave() {
    for text in
        ["needWaitingForConfirm: true", "confirm: true", "confirm: true, needWaitingForConfirm: false"]
    {
        let order = of_groups(&app_set(&format!("{{upgradeType: canary, {text}}}")));
        assert!(order.needs_confirmation && order.limits.are_none(), "{text}: {order:?}");
    }
}

#[test]
fn canary_clusters_alone_are_an_order() {
    let order = of_groups(&app_set("{canaryClusters: [a, elsewhere], maxConcurrency: 1}"));
    assert_eq!(order.canary_clusters, [ClusterName::from("a"), ClusterName::from("elsewhere")]);
    assert_eq!(order.groups, Vec::<RolloutGroup>::new());
}

#[test]
fn waves_are_read() {
    let waves = "[{name: one, clusters: {names: [a], ring: test}, groups: [canary, default], maxConcurrency: 1, soak: 10m}, \
                 {name: two, maxFailures: 1, confirm: true}]";
    let app = app(&app_set(&format!("{{waves: {waves}, minReadySeconds: 5}}")));
    assert!(!app.rollout.has_no_waves());
    let WaveOrder::Waves(waves) = &app.rollout.order else { panic!("{:?}", app.rollout) };
    let [one, two] = waves.as_slice() else { panic!("{waves:?}") };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("one", "two"));
    assert_eq!(one.clusters.names.as_deref(), Some(&["a".to_owned()][..]));
    assert_eq!(one.clusters.ring.as_deref(), Some("test"));
    assert_eq!(one.groups, ["canary", "default"]);
    let limits = WaveLimits {
        max_concurrency: Some(UnitShare::Count(1)),
        soak: Some(Duration::from_secs(600)),
        ..WaveLimits::default()
    };
    assert_eq!(one.limits, limits);
    assert_eq!((&two.clusters, two.groups.len()), (&ClusterSelector::default(), 0));
    assert_eq!(two.limits, WaveLimits { max_failures: 1, confirm: true, ..WaveLimits::default() });
    assert_eq!((one.location.start.line, one.location.start.column), (5, 35));
}

#[test]
fn every_kind_of_app_takes_waves() {
    let strategy = "{paused: true, waves: [{name: one}], after: [database, infra/dns], onFailure: revert, progressDeadline: 10s, \
                    gateFirst: true}";
    for text in [app_set(strategy), component(strategy), objects(strategy)] {
        let app = app(&text);
        assert!(app.paused && !app.rollout.has_no_waves(), "{text}");
        let UpdateStrategy { after, on_failure, progress_deadline, gate_first, .. } = &app.rollout;
        let after: Vec<&AppId> = after.iter().map(|after| &after.app).collect();
        let own = AppId::new(&app.id.namespace, "database");
        assert_eq!(after, [&own, &AppId::new("infra", "dns")], "{text}");
        assert_eq!((*on_failure, *gate_first), (OnFailure::Revert, true), "{text}");
        assert_eq!(*progress_deadline, Some(Duration::from_secs(10)), "{text}");
    }
}

#[test]
fn strategy_without_waves_is_plain() {
    for strategy in ["{}", "{paused: false}", "{upgradeType: [], canaryClusters: []}", "{after: [other]}"] {
        let app = app(&app_set(strategy));
        assert_eq!(app.rollout.order, WaveOrder::Default, "{strategy}");
        assert!(
            app.rollout.has_no_waves() && app.rollout.deadline() == UpdateStrategy::DEFAULT_DEADLINE,
            "{strategy}"
        );
    }
    assert_eq!(app(COMPONENT).rollout, UpdateStrategy::default());
}

#[test]
fn chart_on_selected_clusters_takes_waves() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {name: agent}\nspec:\n  podSpec: {deployType: helm, chart: \
                {chartUrl: {url: charts/agent}}}\n  placement: {clusters: {}}\n  updateStrategy: {waves: [{name: one}]}\n";
    assert!(!app(text).rollout.has_no_waves());
}

#[test]
fn two_orders_are_a_mistake() {
    let both = "`waves` cannot be used with";
    for (other, expected) in [
        ("upgradeType: canary", format!("E1208 5:20 spec.updateStrategy.waves: {both} `upgradeType`")),
        ("canaryClusters: [a]", format!("E1208 5:20 spec.updateStrategy.waves: {both} `canaryClusters`")),
        (
            "needWaitingForConfirm: true",
            format!("E1208 5:20 spec.updateStrategy.waves: {both} `needWaitingForConfirm`"),
        ),
        ("soak: 5m", "E1208 5:42 spec.updateStrategy.soak: `soak` cannot be used with `waves`".to_owned()),
    ] {
        check_mistakes(&app_set(&format!("{{waves: [{{name: one}}], {other}}}")), &[&expected]);
    }
}

#[test]
fn limits_without_groups_are_a_mistake() {
    check_mistakes(
        &app_set("{maxConcurrency: 1, needWaitingForConfirm: true}"),
        &["E1202 5:20 spec.updateStrategy.maxConcurrency: `maxConcurrency` is a limit of the waves of \
           `upgradeType`, which is missing"],
    );
}

#[test]
fn wave_mistakes() {
    let path = "spec.updateStrategy.waves";
    let cases: &[(&str, &[&str])] = &[
        ("[]", &["E1206 5:27 PATH: `waves` is empty"]),
        ("", &["E1202 5:20 PATH: `waves` has no value"]),
        ("{}", &["E1203 5:27 PATH: `waves` must be a list, not a map"]),
        ("[{soak: 1m}]", &["E1202 5:29 PATH[0].name: `name` is missing"]),
        ("[{name: One}]", &["E1205 5:35 PATH[0].name: \"One\" is not a valid name"]),
        ("[{name: rest}]", &["E1206 5:35 PATH[0].name: a wave cannot be called `rest`"]),
        ("[{name: a}, {name: a}]", &["E1210 5:46 PATH[1].name: the name `a` is given twice"]),
        ("[{name: a, clusters: }]", &["E1202 5:38 PATH[0].clusters: `clusters` has no value"]),
        ("[{name: a, groups: []}]", &["E1206 5:46 PATH[0].groups: `groups` is empty"]),
        ("[{name: a, groups: [b, b]}]", &["E1210 5:50 PATH[0].groups[1]: `groups` names the group b twice"]),
        (
            "[{name: a, maxConcurrency: 0}]",
            &["E1206 5:54 PATH[0].maxConcurrency: `maxConcurrency` must be from 1 to 1000000, not 0"],
        ),
        (
            "[{name: a, maxConcurrency: 0%}]",
            &["E1206 5:54 PATH[0].maxConcurrency: `maxConcurrency` cannot be \"0%\""],
        ),
        (
            "[{name: a, maxConcurrency: half}]",
            &["E1206 5:54 PATH[0].maxConcurrency: `maxConcurrency` cannot be \"half\""],
        ),
        (
            "[{name: a, maxFailures: -1}]",
            &["E1206 5:51 PATH[0].maxFailures: `maxFailures` must be from 0 to 1000000, not -1"],
        ),
        ("[{name: a, soak: 10}]", &["E1206 5:44 PATH[0].soak: `soak` must be a duration, not the number 10"]),
        (
            "[{name: a, confirm: sure}]",
            &[
                "E1203 5:47 PATH[0].confirm: `confirm` must be a boolean (true or false), not the text \"sure\"",
            ],
        ),
    ];
    for (waves, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|it| it.replace("PATH", path)).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_mistakes(&app_set(&format!("{{waves: {waves}}}")), &expected);
    }
}

#[test]
fn strategy_mistakes() {
    let path = "spec.updateStrategy";
    let cases: &[(&str, &[&str])] = &[
        ("{after: [a b]}", &["E1206 5:28 PATH.after[0]: \"a b\" is not an app"]),
        ("{after: [a/b/c]}", &["E1206 5:28 PATH.after[0]: \"a/b/c\" is not an app"]),
        ("{after: [db, shop/db]}", &["E1210 5:32 PATH.after[1]: the name `shop/db` is given twice"]),
        ("{onFailure: retry}", &["E1204 5:31 PATH.onFailure: `onFailure` cannot be \"retry\""]),
        (
            "{progressDeadline: 9s}",
            &["E1206 5:38 PATH.progressDeadline: `progressDeadline` is shorter than 10s"],
        ),
        (
            "{gateFirst: 1}",
            &["E1203 5:31 PATH.gateFirst: `gateFirst` must be a boolean (true or false), not the number 1"],
        ),
    ];
    for (strategy, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|it| it.replace("PATH", path)).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_mistakes(&app_set(strategy), &expected);
    }
}

#[test]
fn groups_are_of_app_sets_alone() {
    for name in ["upgradeType", "canaryClusters", "needWaitingForConfirm", "minReadySeconds", "soak"] {
        let read = read_texts(&[("x.yaml", &component(&format!("{{{name}: 1}}")))]);
        let told: Vec<_> = read.diagnostics.iter().map(|it| (it.code, it.message.clone())).collect();
        assert_eq!(told, [("E1201", format!("unknown field `{name}` in `spec.updateStrategy`"))]);
    }
    let waves = component("{waves: [{name: a, groups: [b]}]}");
    let read = read_texts(&[("x.yaml", &waves)]);
    assert_eq!(read.diagnostics.len(), 1);
    assert!(read.diagnostics[0].message.contains("unknown field `groups`"), "{:?}", read.diagnostics);
}

#[test]
fn rings_have_limits() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}, soak: \
                10m, maxFailures: 1}, {name: prod, clusters: {}, maxConcurrency: 25%, confirm: true}]}\n";
    let rings = clean(text).rings.unwrap().rings;
    let test = WaveLimits { soak: Some(Duration::from_secs(600)), max_failures: 1, ..WaveLimits::default() };
    let prod =
        WaveLimits { max_concurrency: Some(UnitShare::Percent(25)), confirm: true, ..WaveLimits::default() };
    assert_eq!((&rings[0].limits, &rings[1].limits), (&test, &prod));
    let elsewhere = text.replace("soak: 10m", "window: {}, gates: [], analysis: {}, statuses: []");
    let told: Vec<_> = read_texts(&[("x.yaml", &elsewhere)]).diagnostics;
    let told: Vec<_> = told.iter().map(|it| (it.code, it.help.as_deref().unwrap_or_default())).collect();
    let codes: Vec<_> = told.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["E1201", "E1201", "E1206", "E1206"]);
    assert!(
        told[0].1.contains("select: {rings: [NAME]}") && told[1].1.contains("analysis and statuses"),
        "{told:?}"
    );
}

#[test]
fn default_rollout_is_read() {
    let instance = |defaults: &str| {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{defaults: {{{defaults}}}}}\n"
        );
        clean(&text).instance.unwrap().defaults.rollout
    };
    assert_eq!(instance(""), DefaultRollout::Rings);
    assert_eq!(instance("rollout: rings"), DefaultRollout::Rings);
    assert_eq!(instance("rollout: together"), DefaultRollout::Together);
}

#[test]
fn rollout_approvals_are_written_and_read_back() {
    for action in [
        RolloutAction::Open { through: "canary".to_owned() },
        RolloutAction::Retry,
        RolloutAction::Override { window: "year-end".to_owned() },
    ] {
        let approval = RolloutApproval {
            name: "pay-v4".to_owned(),
            app: AppId::new("shop", "pay"),
            action,
            digest: Digest::of(b"v4"),
            location: None,
            is_alone: true,
            places: RolloutApprovalLocations::default(),
        };
        // Beside the app, too; who may write there may pass no window.
        let may_be_beside = !matches!(approval.action, RolloutAction::Override { .. });
        for path in ["approvals/pay.yaml", "apps/pay/pay-v4.yaml"] {
            let mut read = read_texts(&[(path, &rollout_approval_to_yaml(&approval))]);
            if path.starts_with("apps/") && !may_be_beside {
                let [mistake] = &read.diagnostics[..] else { panic!("{read:?}") };
                assert_eq!(mistake.message, "an override must be below approvals/");
                assert_eq!(read.rollout_approvals, []);
                continue;
            }
            assert_eq!((read.diagnostics.len(), read.approvals.len()), (0, 0), "{read:?}");
            let read = read.rollout_approvals.remove(0);
            assert_eq!(read.location.as_ref().unwrap().file, path);
            assert_eq!(
                RolloutApproval { location: None, places: RolloutApprovalLocations::default(), ..read },
                approval
            );
        }
    }
}

#[test]
fn rollout_approval_mistakes() {
    let digest = Digest::of(b"v4");
    let cases: &[(&str, &[&str])] = &[
        (
            "action: rollout",
            &["E1202 4:1 spec.digest: `digest` is missing", "E1202 4:1 spec.through: `through` is missing"],
        ),
        ("action: retry, digest: 91c2", &["E1206 4:46 spec.digest: \"91c2\" is not a digest"]),
        (
            "action: retry, digest: DIGEST, through: canary",
            &["E1201 4:112 spec.through: unknown field `through` in `spec`"],
        ),
        (
            "action: rollout, digest: DIGEST, through: Canary",
            &["E1205 4:123 spec.through: \"Canary\" is not a valid name"],
        ),
        (
            "action: rollout, digest: DIGEST, through: a, objects: []",
            &["E1201 4:126 spec.objects: unknown field `objects` in `spec`"],
        ),
        ("action: roll", &["E1204 4:31 spec.action: `action` cannot be \"roll\""]),
    ];
    for (spec, expected) in cases {
        let spec = spec.replace("DIGEST", &digest.to_string());
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: a}}\nspec: {{app: shop/pay, {spec}}}\n"
        );
        check_mistakes(&text, expected);
    }
    let short = "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {name: a}\nspec: {app: shop/pay, action: retry, \
                 digest: 91c2}\n";
    let help = "64 hexadecimal digits: let `tutti approve rollout shop/pay` write the file";
    assert_eq!(read_texts(&[("x.yaml", short)]).diagnostics[0].help.as_deref(), Some(help));
}
