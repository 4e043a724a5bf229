mod identity_conflicts;
mod rollout;

use super::{Fleet, assemble};
use crate::manifest;
use crate::model::{AppId, Snapshot};

const BJ: (&str, &str) = (
    "clusters/bj.yaml",
    "apiVersion: tutti.dev/v1alpha1
kind: Cluster
metadata: {name: bj, labels: {zone: bj}}
spec: {connection: {sandbox: {}}}
",
);
const GZ: (&str, &str) = (
    "clusters/gz.yaml",
    "apiVersion: tutti.dev/v1alpha1
kind: Cluster
metadata: {name: gz, labels: {zone: gz}}
spec: {connection: {sandbox: {}}}
",
);

fn fleet(files: &[(&str, &str)]) -> Fleet {
    let snapshot = Snapshot::of_texts([BJ, GZ].into_iter().chain(files.iter().copied()));
    assemble(manifest::read(&snapshot), &snapshot)
}

/// Code, place and a part of the message of every mistake, in order.
fn check(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let fleet = fleet(files);
    let told: Vec<String> = fleet.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (code, part)) in told.iter().zip(expected) {
        assert!(told.contains(code) && told.contains(part), "{told} has not {code} {part}");
    }
    let errors = told.iter().any(|told| told.starts_with("error"));
    assert_eq!(fleet.is_valid(), !errors);
}

fn component(name: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}}}\nspec: {{workloadType: Deployment, \
         developLanguage: go, runType: server, image: 'web:1', port: 8080{more}}}\n"
    )
}

fn app_set(name: &str, replicas: &str, clusters: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: {name}}}\nspec:\n  {replicas}\n  clusterTopology: \
         {{clusters: [{clusters}]}}\n"
    )
}

fn rings(rings: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {{name: rings}}\nspec: {{rings: [{rings}]}}\n"
    )
}

fn objects(name: &str, files: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}}}\nspec: {{files: [{files}]}}\n"
    )
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";

#[test]
fn good_fleet_has_every_target() {
    let fleet = fleet(&[("apps/web/app.yaml", &component("web", ""))]);
    assert!(fleet.is_valid());
    let targets: Vec<String> = fleet.targets().iter().map(ToString::to_string).collect();
    assert_eq!(targets, ["default/web on bj", "default/web on gz"]);
}

#[test]
fn duplicate_app_is_an_error_and_neighbours_stay() {
    let (web, pay) = (component("web", ""), component("pay", ""));
    let files = [("a.yaml", web.as_str()), ("b.yaml", &objects("web", "x.yaml")), ("c.yaml", &pay)];
    check(&files, &[("E2001", "the app default/web has a manifest already, at a.yaml:3")]);
    let fleet = fleet(&files);
    assert_eq!(fleet.apps.keys().map(|id| &*id.name).collect::<Vec<_>>(), ["pay", "web"]);
    assert_eq!(fleet.apps[&AppId::new("default", "web")].location.file, "a.yaml");
}

#[test]
fn first_of_two_cluster_manifests_is_used() {
    let files = [("clusters/other.yaml", BJ.1), ("a.yaml", &component("web", ""))];
    check(&files, &[("E2001", "the cluster bj has a manifest already, at clusters/bj.yaml")]);
    let targets: Vec<String> = fleet(&files).targets().iter().map(ToString::to_string).collect();
    assert_eq!(targets, ["default/web on bj", "default/web on gz"]);
}

#[test]
fn unknown_clusters_and_rings_are_errors() {
    let set = app_set("set", "", "{name: bg, podSets: [{name: one, replicas: 1}]}");
    check(
        &[("a.yaml", &set)],
        &[("E2002", "AppSet default/set names cluster bg, which is not registered at a.yaml:6")],
    );
    let web = component("web", ", placement: {clusters: {names: [gz1, g*]}}");
    check(&[("a.yaml", &web)], &[("E2002", "names cluster gz1")]);
    let web = component("web", ", placement: {clusters: {ring: prod}}");
    check(&[("a.yaml", &web)], &[("E2003", "ring prod, which does not exist")]);
}

#[test]
fn rings_have_clusters_and_clusters_one_ring() {
    let two = rings("{name: test, clusters: {names: [bj]}}, {name: prod, clusters: {}}");
    check(&[("rings.yaml", &two)], &[("E2004", "cluster bj is in more than one ring: test, prod")]);
    let empty =
        rings("{name: test, clusters: {matchLabels: {zone: sh}}}, {name: prod, clusters: {names: [gz]}}");
    check(
        &[("rings.yaml", &empty)],
        &[("E2006", "cluster bj is in no ring"), ("E2005", "ring test selects no cluster")],
    );
    let good = rings("{name: test, clusters: {names: [bj]}}, {name: prod, clusters: {names: [gz]}}");
    let fleet = fleet(&[
        ("rings.yaml", &good),
        ("a.yaml", &component("web", ", placement: {clusters: {ring: prod}}")),
    ]);
    assert!(fleet.is_valid());
    assert_eq!(fleet.ring_of(&"gz".into()), Some("prod"));
    assert_eq!(fleet.targets().len(), 1);
}

#[test]
fn replicas_must_match_the_sum() {
    let set = app_set(
        "set",
        "replicas: 5",
        "{name: bj, podSets: [{name: one, replicas: 2}, {name: two, replicas: 2}]}",
    );
    check(
        &[("a.yaml", &set)],
        &[("E2011", "AppSet default/set has 5 replicas, but its podSets add up to 4 at a.yaml:5")],
    );
}

#[test]
fn pod_set_name_is_unique_in_a_namespace() {
    let set = app_set("set", "", "{name: gz, podSets: [{name: web, replicas: 1}]}");
    check(
        &[("a.yaml", &component("web", "")), ("b.yaml", &set)],
        &[("E2013", "podSet web of default/set is also a podSet of default/web")],
    );
    let elsewhere = component("web", ", placement: {clusters: {names: [bj]}}");
    check(&[("a.yaml", &elsewhere), ("b.yaml", &set)], &[]);
}

#[test]
fn raw_values_must_have_the_pod_set_tag() {
    let with = |pod_set: &str| {
        let pod_sets = format!("{{name: bj, podSets: [{{name: a, {pod_set}}}]}}");
        let chart =
            "podSpec: {deployType: helm, chart: {chartUrl: {url: 'oci://r.io/web', chartVersion: '1'}}}";
        app_set("web", chart, &pod_sets)
    };
    check(&[("apps/a.yaml", &with("version: v2, rawValues: {image: {tag: v2}}"))], &[]);
    let told = "podSet a has version v2, and rawValues.image.tag is v1";
    check(&[("apps/a.yaml", &with("version: v2, rawValues: {image: {tag: v1}}"))], &[("E2014", told)]);
    let told = "podSet a has an image with the tag v2, and rawValues.imageTag is empty";
    check(&[("apps/a.yaml", &with("image: 'web:v2', rawValues: {imageTag: ''}"))], &[("E2014", told)]);
}

#[test]
fn unknown_layers_are_errors() {
    let web = component("web", "").replace("go", "pyton");
    check(
        &[("a.yaml", &web)],
        &[("E2031", "Component default/web names language pyton, and there is no such layer")],
    );
    let help = fleet(&[("a.yaml", &web)]).diagnostics[0].help.clone().unwrap_or_default();
    assert!(help.starts_with("did you mean `python`?"), "{help}");
    check(&[("a.yaml", &web), ("templates/language/pyton/values.yaml", "{}")], &[]);
}

#[test]
fn files_and_apps_fit_each_other() {
    check(
        &[("apps/a/app.yaml", &objects("a", "x/*.yaml, y.yaml")), ("apps/a/y.yaml", CONFIG_MAP)],
        &[("E2021", "Objects default/a lists apps/a/x/*.yaml, and no file fits it")],
    );
    check(&[("stray.yaml", CONFIG_MAP)], &[("E2022", "v1/ConfigMap in stray.yaml belongs to no app")]);
    check(&[("apps/a/app.yaml", &objects("a", "'x/**/*.yaml'")), ("apps/a/x/z/y.yaml", CONFIG_MAP)], &[]);
}

#[test]
fn broken_instance_has_no_targets() {
    let files = [
        (
            "tutti.yaml",
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {mode: fast}\n",
        ),
        ("a.yaml", &component("web", "")),
    ];
    let fleet = fleet(&files);
    assert!(!fleet.is_usable());
    assert_eq!(fleet.targets(), []);
}

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

fn in_shop(name: &str, more: &str) -> String {
    component(name, more).replace("metadata: {", "metadata: {namespace: shop, ")
}

fn targets(files: &[(&str, &str)]) -> Vec<String> {
    fleet(files).targets().iter().map(ToString::to_string).collect()
}

#[test]
fn apps_inherit_the_placement_of_their_project() {
    let (everywhere, bj) = (project("shop", ""), project("shop", "clusters: {names: [bj]}"));
    let (web, gz) = (in_shop("shop", ""), in_shop("gz", ", placement: {clusters: {names: [gz]}}"));
    let apps = [("a.yaml", web.as_str()), ("b.yaml", gz.as_str())];
    let on_all =
        ["project/shop on bj", "project/shop on gz", "shop/gz on gz", "shop/shop on bj", "shop/shop on gz"];
    assert_eq!(targets(&[&[("p.yaml", everywhere.as_str())], &apps[..]].concat()), on_all);
    let on_bj = ["project/shop on bj", "shop/gz on gz", "shop/shop on bj"];
    assert_eq!(targets(&[&[("p.yaml", bj.as_str())], &apps[..]].concat()), on_bj);
}

#[test]
fn namespace_has_one_project() {
    let (one, other) = (project("shop", ""), project("store", "namespace: shop"));
    let files = [("a.yaml", one.as_str()), ("b.yaml", &other), ("c.yaml", &in_shop("web", ""))];
    check(&files, &[("E2051", "Project store has the namespace shop of Project shop, at a.yaml:3")]);
    let expected = ["shop/web on bj", "shop/web on gz"];
    assert_eq!(targets(&files).iter().filter(|it| it.contains("/web ")).collect::<Vec<_>>(), expected);
}

#[test]
fn apps_obey_the_allow_list_of_their_project() {
    let shop = project("shop", "allow: {kinds: [AppSet, Deployment], clusters: {names: [bj]}}");
    let elsewhere = component("web", "");
    let files = [("a.yaml", shop.as_str()), ("b.yaml", &in_shop("web", "")), ("c.yaml", &elsewhere)];
    check(
        &files,
        &[
            (
                "E2052",
                "Component shop/web is of kind Component, and Project shop does not allow it at b.yaml:3",
            ),
            ("E2052", "Component shop/web runs on gz, and Project shop does not allow it at b.yaml:3"),
        ],
    );
    let shop =
        project("shop", "clusters: {names: [bj]}, allow: {kinds: [Component], clusters: {names: [bj]}}");
    check(&[("a.yaml", &shop), ("b.yaml", &in_shop("web", ""))], &[]);
}

#[test]
fn apps_wait_while_their_project_is_unknown() {
    let wrong = project("shop", "cluster: {names: [bj]}");
    let (web, other) = (in_shop("web", ""), component("web", ""));
    let files = [("a.yaml", wrong.as_str()), ("b.yaml", &web), ("c.yaml", &other)];
    check(&files, &[("E1201", "unknown field `cluster`"), ("E2053", "Component shop/web waits")]);
    assert_eq!(targets(&files), ["default/web on bj", "default/web on gz"]);

    let placed = in_shop("placed", ", placement: {clusters: {names: [bj]}}");
    let files = [("projects/a.yaml", "kind: [\n"), ("b.yaml", &web), ("c.yaml", &placed)];
    let waits = "a file that cannot be read may be the project of its namespace shop";
    let (web_waits, placed_waits) =
        (format!("Component shop/web waits: {waits}"), format!("Component shop/placed waits: {waits}"));
    check(&files, &[("E2053", &web_waits), ("E2053", &placed_waits), ("E1102", "projects/a.yaml")]);
    // An app whose project is known is not held.
    let mall = (project("mall", ""), component("mall", ""));
    let files = [
        ("projects/b.yaml", "kind: [\n"),
        ("a.yaml", &*mall.0),
        ("c.yaml", &*mall.1.replace("{name: mall", "{name: mall, namespace: mall")),
    ];
    assert_eq!(
        targets(&files),
        ["mall/mall on bj", "mall/mall on gz", "project/mall on bj", "project/mall on gz"]
    );
}

const OBSERVE: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {mode: observe}\n";
const ONE_RING: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: all, clusters: {}}]}\n";

#[derive(Debug, PartialEq)]
enum Waits {
    Everybody,
    WithoutProject,
    Nobody,
}

/// Which apps wait beside these files: one without a project, or one with a project.
fn who_waits(files: &[(&str, &str)]) -> Waits {
    let (web, pay, mart) = (
        component("web", ""),
        component("pay", "").replace("name: pay", "name: pay, namespace: mart"),
        project("mart", ""),
    );
    let fleet = fleet(&[&[("a.yaml", &*web), ("b.yaml", &pay), ("c.yaml", &mart)], files].concat());
    assert!(!fleet.is_valid(), "{files:?}: nothing may be deleted");
    let targets = fleet.targets();
    let runs = |app: AppId| targets.iter().any(|target| target.app == app);
    match [runs(AppId::new("default", "web")), runs(AppId::new("mart", "pay"))] {
        [false, false] => Waits::Everybody,
        [false, true] => Waits::WithoutProject,
        [true, true] => Waits::Nobody,
        [true, false] => panic!("{files:?}: {:?}", fleet.diagnostics),
    }
}

/// A broken file may be the instance, the rings or a project, so it must not count as absent.
#[test]
fn unreadable_instance_rings_or_project_hold_every_app() {
    for (manifest, kind) in [(OBSERVE, "Instance"), (ONE_RING, "Rings"), (&project("shop", ""), "Project")] {
        for broken in [
            format!("{manifest}<<<<<<< HEAD\n"),
            format!("{manifest}  poll: [60s\n"),
            manifest.replace(kind, &kind[..kind.len() - 1]),
            manifest.replace("v1alpha1", "v1alpha2"),
            manifest.replace("tutti.dev/v1alpha1", "v1alpha1"),
            manifest.replace("tutti.dev", "tutti.io"),
            manifest.replace(&format!("kind: {kind}\n"), ""),
            manifest.replace(&format!("kind: {kind}\n"), "kind: Widget\n"),
            manifest.replace("tutti.dev/v1alpha1", "[]"),
            manifest.replace("kind:", "kind"),
            manifest.replace(kind, &format!("[{kind}")),
            format!("{manifest}# \u{ffff}\n"),
            format!("- {}", manifest.trim_end().replace('\n', "\n  ")),
            // A `---` was forgotten.
            component("other", "") + manifest,
            format!("{CONFIG_MAP}{manifest}"),
        ] {
            let waits = who_waits(&[("somewhere.yaml", &broken)]);
            assert_ne!(waits, Waits::Nobody, "{broken}");
            assert!(waits == Waits::Everybody || kind == "Project", "{broken}");
        }
    }
    for path in ["tutti.yaml", "rings.yaml", "projects/shop.yaml"] {
        for broken in [
            "",
            "# nothing\n",
            "kind: Instance\n",
            "apiVersion: v1\nkind: Rings\n",
            "a",
            "apiVersion: example.com/v1\nkind: Project\n",
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: rings}\nspec: {rings: []}\n",
            "apiVersion: tutti.dev/v1alpha1\nkind: Policy\nmetadata: {name: main}\n",
            "apiVersion: tutti.dev/v1alpha1\nkind: HealthRule\nmetadata: {name: main}\n",
            "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: shop}\n",
        ] {
            let waits = who_waits(&[(path, broken)]);
            assert_ne!(waits, Waits::Nobody, "{path} {broken}");
            assert!(waits == Waits::Everybody || path.starts_with("projects/"), "{path} {broken}");
            // A mistake in a second file does not identify the first one.
            let beside = (&*path.replace(".yaml", "-2.yaml"), &*project("other", "x: 1"));
            assert_eq!(who_waits(&[(path, broken), beside]), waits, "{path} {broken}");
        }
    }
    check(&[("apps/web/app.yaml", "")], &[("E1110", "there is no manifest in apps/web/app.yaml")]);
}

#[test]
fn other_unreadable_files_hold_no_app() {
    let beside = |instance: &str, rings: &str, broken: &str| {
        who_waits(&[("tutti.yaml", instance), ("rings.yaml", rings), ("apps/other/x.yaml", broken)])
    };
    for broken in [
        "apiVersion: tutti.dev/v1alpha1\nkind: Componet\n",
        "kind: [\n",
        "{{ x }}: {\n",
        "kind: AppProject\nspec: [",
        "kind: Instance\nspec: [",
        "apiVersion: rds.services.k8s.aws/v1alpha1\nkind: DBInstance\nspec: [",
        "apiVersion: project.openshift.io/v1\nkind: Project\n",
        "apiVersion: project.openshift.io/v1\nkind: Project\nspec: [",
        "apiVersion: studio.dev/v1\nkind: Project\n",
    ] {
        assert_eq!(beside(OBSERVE, ONE_RING, broken), Waits::Nobody, "{broken}");
    }
    // One of the two projects is unknown.
    assert_eq!(beside(OBSERVE, ONE_RING, "kind: Project\nspec: ["), Waits::Nobody);
    assert_eq!(
        who_waits(&[("rings.yaml", ONE_RING), ("x.yaml", "kind: Project\nspec: [")]),
        Waits::WithoutProject
    );
    assert_eq!(who_waits(&[("tutti.yaml", OBSERVE), ("apps/x.yaml", "kind: Rings\nspec: [")]), Waits::Nobody);
    // A file in another place does not replace the missing one.
    for path in ["apps/a/x.yaml", "x.yaml"] {
        let files = [("tutti.yaml", "kind: Instance\nspec: ["), (path, OBSERVE)];
        assert_eq!(who_waits(&files), Waits::Everybody, "{path}");
    }
    let (instance, rings) = ("kind: Instance\nspec: [", "kind: Rings\nspec: [");
    assert_eq!(who_waits(&[("rings.yaml", ONE_RING), ("x.yaml", instance)]), Waits::Everybody);
    assert_eq!(who_waits(&[("tutti.yaml", OBSERVE), ("x.yaml", rings)]), Waits::Everybody);
    // All in one file: a mistake of one app affects that app alone.
    let other = component("other", ", prot: 1");
    assert_eq!(who_waits(&[("tutti.yaml", &[OBSERVE, ONE_RING, &other].join("---\n"))]), Waits::Nobody);
    let shop = project("shop", "");
    for other in [&*other, CONFIG_MAP, "kind: Component\nspec: [\n"] {
        assert_eq!(
            who_waits(&[("projects/shop.yaml", &[&*shop, other].join("---\n"))]),
            Waits::Nobody,
            "{other}"
        );
    }
    assert_eq!(
        who_waits(&[("projects/shop/app.yaml", &other), ("projects/shop/objects/a.yaml", CONFIG_MAP)]),
        Waits::Nobody
    );
    let crossplane = "apiVersion: ec2.aws.upbound.io/v1beta1\nkind: Instance\nspec: [";
    assert_eq!(who_waits(&[("apps/other/x.yaml", crossplane)]), Waits::Nobody);
}

/// A project without a name may be the project of any namespace.
#[test]
fn project_without_a_name_holds_every_app() {
    for broken in [
        project("shop", "").replace("name:", "nme:"),
        project("Shop", "namespace: shop"),
        project("shop", "namespace: Shop"),
        project("shop", "namepsace: default"),
        project("shop", "") + &project("store", ""),
    ] {
        assert_eq!(who_waits(&[("x.yaml", &broken)]), Waits::WithoutProject, "{broken}");
    }
}

/// The files of an app with a mistake are unknown.
#[test]
fn documents_of_a_broken_app_are_no_strays() {
    let app = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: a, namespace: shop}\nspec: {files: [objects/*.yaml], placment: {}}\n";
    let files = [("apps/a/app.yaml", app), ("apps/a/objects/b.yaml", CONFIG_MAP)];
    check(&files, &[("E1201", "unknown field `placment`")]);
    check(&[("apps/a/app.yaml", "kind: ["), files[1]], &[("E1102", "apps/a/app.yaml")]);
    check(&[("apps/a/app.yaml", ""), files[1]], &[("E1110", "apps/a/app.yaml")]);
}

fn route(name: &str, spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Route\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

#[test]
fn cluster_host_and_path_have_one_route() {
    let web = component("web", ", routes: [{host: a.io, paths: [{path: /api/}]}]");
    let pay = component("pay", "");
    let files = [("apps/web/a.yaml", web.as_str()), ("apps/pay/a.yaml", &pay)];
    let beside = |spec: &str| route("more", spec);
    let same = beside("host: a.io, paths: [{path: /}, {path: /api}]");
    // The app whose manifest is first by path keeps the host and path.
    let told = "route web of Component default/web has a.io/api on cluster bj, which route more of Component default/pay already has";
    check(&[&files[..], &[("apps/pay/r.yaml", &same)]].concat(), &[("E2061", told)]);
    let free = beside("host: a.io, paths: [{path: /}]");
    check(&[&files[..], &[("apps/pay/r.yaml", &free)]].concat(), &[]);
    let elsewhere = component("web", ", routes: [{host: a.io, clusters: {names: [gz]}}]");
    let bj = beside("host: a.io, clusters: {names: [bj]}");
    check(&[("apps/web/a.yaml", &elsewhere), ("apps/pay/a.yaml", &pay), ("apps/pay/r.yaml", &bj)], &[]);
}

#[test]
fn route_needs_an_app_and_existing_rings() {
    let web = component("web", ", routes: [{host: a.io, rings: {prod: {host: b.io}}}]");
    check(&[("a.yaml", &web)], &[("E2003", "route web of Component default/web names ring prod")]);
    let lost = route("lost", "host: a.io");
    check(
        &[("r/r.yaml", &lost), ("a.yaml", &component("web", ""))],
        &[("E2062", "Route lost belongs to no app")],
    );
    let (web, pay) = (component("web", ""), component("pay", ""));
    check(
        &[("a.yaml", &web), ("b.yaml", &pay), ("r.yaml", &lost)],
        &[("E2062", "Route lost belongs to several apps")],
    );
    check(&[("a.yaml", &web), ("b.yaml", &pay), ("r.yaml", &route("r", "host: a.io, app: pay"))], &[]);
}

#[test]
fn pin_applies_to_the_clusters_of_its_ring() {
    let two = rings("{name: test, clusters: {names: [bj]}}, {name: prod, clusters: {names: [gz]}}");
    let web = component("web", "");
    let set =
        app_set("set", "", "{name: bj, podSets: [{name: a, version: v1}]}, {name: gz, podSets: [{name: b}]}");
    let fleet = fleet(&[
        ("rings.yaml", &two),
        ("apps/web/app.yaml", &web),
        ("apps/web/pins/prod.yaml", "# The newest.\nversion: v2\n"),
        ("apps/set/app.yaml", &set),
        ("apps/set/pins/prod.yaml", "version: v7\n"),
    ]);
    assert_eq!(fleet.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    let pins = |name: &str| -> Vec<String> {
        let app = &fleet.apps[&AppId::new("default", name)];
        app.pins.iter().map(|(cluster, pin)| format!("{cluster} {} {}", pin.version, pin.location)).collect()
    };
    assert_eq!(pins("web"), ["gz v2 apps/web/pins/prod.yaml:2:10"]);
    assert_eq!(pins("set"), ["gz v7 apps/set/pins/prod.yaml:1:10"]);
}

#[test]
fn wrong_pins_are_errors() {
    let prod = rings("{name: prod, clusters: {}}");
    let web = component("web", "");
    let pinned = |pin: (&str, &str), app: &str, expected: &[(&str, &str)]| {
        check(&[("rings.yaml", &prod), ("apps/web/app.yaml", app), pin], expected);
    };
    let of = "Component default/web";
    pinned(("apps/web/pins/prod.yaml", "version: v2"), &web, &[]);
    pinned(("apps/web/pins/pord.yaml", "version: v2"), &web, &[("E2003", "is pinned for ring pord")]);
    pinned(("apps/wbe/pins/prod.yaml", "version: v2"), &web, &[("E2071", "no app in apps/wbe/")]);
    let waits = format!("{of} waits: its pin for prod has errors");
    for (text, code) in
        [("version: 1.10", "E1203"), ("", "E1202"), ("verison: v2", "E1202"), ("- a", "E1203")]
    {
        let snapshot =
            [("rings.yaml", prod.as_str()), ("apps/web/app.yaml", &web), ("apps/web/pins/prod.yaml", text)];
        let told: Vec<String> = fleet(&snapshot).diagnostics.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|told| told.contains(code)), "{text:?}: {told:#?}");
        assert!(
            told.iter().any(|told| told.contains("E2071") && told.contains(&waits)),
            "{text:?}: {told:#?}"
        );
        assert!(fleet(&snapshot).apps.is_empty(), "{text:?}");
    }
    let own = app_set("web", "", "{name: gz, podSets: [{name: b, version: v1}]}");
    pinned(
        ("apps/web/pins/prod.yaml", "version: v2"),
        &own,
        &[("E2071", "podSet b has a version of its own")],
    );
    let several = [web.as_str(), &component("pay", "")].join("---\n");
    let told = [
        ("E2071", "Component default/web is not the only one"),
        ("E2071", "Component default/pay is not the only one"),
    ];
    pinned(("apps/web/pins/prod.yaml", "version: v2"), &several, &told);
    check(
        &[
            ("rings.yaml", &prod),
            ("apps/web/app.yaml", &web),
            ("apps/web/pins/prod.yaml", "version: v1"),
            ("apps/web/pins/prod.yml", "version: v2"),
        ],
        &[("E2001", "a second pin of Component default/web for ring prod")],
    );
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn kustomization_is_reported_once_with_its_neighbours() {
    let all = [
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", MAP),
        ("web/patch.yaml", "- {op: remove}\n"),
        ("web/prod/kustomization.yml", "kind: Kustomization\n"),
        ("web/prod/map.yaml", MAP),
    ];
    check(&all, &[("E2023", "2 files are not used: tutti does not run kustomize")]);
    let listed = objects("a", "'[km]*.yaml'");
    let app = ("web/app.yaml", listed.as_str());
    check(&[app, all[0], all[1]], &[("E2023", "web/kustomization.yaml is not used")]);
    let instance = |ignore: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{ignore: {ignore}}}\n"
        )
    };
    let ignoring = instance("['**/kustomization.yaml']");
    check(&[("tutti.yaml", &ignoring), app, all[0], all[1]], &[]);
    let ignoring = instance("[web/]");
    check(&[("tutti.yaml", &ignoring), all[0], all[1], all[2]], &[]);
    let leaving = instance("[../a, '[']");
    check(&[("tutti.yaml", &leaving)], &[("E1209", "leaves"), ("E1209", "is not a pattern")]);
    check(
        &[("main.yaml", &ignoring), ("x/a.yaml", MAP)],
        &[("E1206", "read from tutti.yaml"), ("E2022", "x/a.yaml")],
    );
}

#[test]
fn file_is_read_when_no_longer_ignored() {
    let instance =
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {ignore: [more/a]}\n";
    let app = component("a", "");
    let mut snapshot = Snapshot::of_texts([("tutti.yaml", instance), ("more/a/app.yaml", app.as_str())]);
    let mut memory = manifest::ManifestCache::default();
    assert_eq!(manifest::read_incremental(&snapshot, &mut memory).apps.len(), 0);
    snapshot.put("tutti.yaml", &instance.replace("more/a", "more/b"));
    assert_eq!(manifest::read_incremental(&snapshot, &mut memory).apps.len(), 1);
    snapshot.put("tutti.yaml", instance);
    assert_eq!(manifest::read_incremental(&snapshot, &mut memory).apps.len(), 0);
}

#[test]
fn only_charts_take_a_placement_without_clusters() {
    let app_set = |pod_spec: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: agent}}\nspec: {{podSpec: {pod_spec}, placement: {{clusters: \
             {{}}}}}}\n"
        )
    };
    check(
        &[("a.yaml", &app_set("{deployType: Deployment}"))],
        &[("E2043", "has placement.clusters, and its deployType is not helm")],
    );
    check(&[("a.yaml", &app_set("{deployType: helm}"))], &[("E2043", "has no chart")]);
}
