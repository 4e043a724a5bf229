//! Projects: a namespace on every cluster, in either order of creation, and never deleted by accident.

use sandbox::{RequestMatch, Sandbox};
use tutti::manifest::approval_to_yaml;

use crate::support::fleet::{RunningController, TestFleet, phases, target, wait_for_effects};
use crate::support::live_objects;
use crate::support::manifests::{self, component};

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

/// A project with every field.
fn shop_project() -> String {
    project(
        "shop",
        "members: [{group: developers, role: edit}], quota: {pods: 20, requests.cpu: 4}, \
         limits: {default: {cpu: 500m}}, networkPolicy: isolate",
    )
}

fn shop_app(name: &str) -> String {
    component(name, "registry.example.com/web:1").replace("name:", "namespace: shop, name:")
}

async fn managed_namespaces(sandbox: &Sandbox) -> Vec<String> {
    let managed = live_objects::managed_objects(sandbox).await.into_keys();
    managed.filter_map(|name| name.strip_prefix("Namespace /").map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn added_project_reaches_all_clusters() {
    let fleet = TestFleet::new(&["bj1", "gz1"], &[("projects/pay.yaml", &project("pay", ""))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let (shop, web) = (shop_project(), shop_app("web"));
    // Both in one commit: the app waits for its namespace and its pod limits.
    let changes = [("projects/shop.yaml", Some(shop.as_str())), ("apps/web/app.yaml", Some(web.as_str()))];
    let revision = fleet.push(&running, "A project and its app", &changes).await;
    running.until_converged(&revision).await;
    for sandbox in fleet.clusters.values() {
        assert_eq!(managed_namespaces(sandbox).await, ["pay", "shop"]);
        let managed: Vec<String> = live_objects::managed_objects(sandbox).await.into_keys().collect();
        assert_eq!(
            managed,
            [
                "Deployment shop/web",
                "LimitRange shop/project",
                "Namespace /pay",
                "Namespace /shop",
                "NetworkPolicy shop/project",
                "ResourceQuota shop/project",
                "RoleBinding shop/project-edit",
                "Service shop/web",
            ]
        );
        let applied: Vec<String> = sandbox
            .requests()
            .into_iter()
            .filter(|record| record.verb == "apply" && record.namespace == "shop")
            .map(|record| record.resource)
            .collect();
        let first = |resource: &str| applied.iter().position(|it| it.starts_with(resource));
        for limit in ["resourcequotas", "limitranges", "networkpolicies"] {
            assert!(first(limit) < first("deployments"), "{limit}: {applied:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn added_cluster_gets_all_projects() {
    let (shop, pay, web) = (shop_project(), project("pay", "clusters: {names: [bj*]}"), shop_app("web"));
    let files =
        [("projects/shop.yaml", shop.as_str()), ("projects/pay.yaml", &pay), ("apps/web/app.yaml", &web)];
    let mut fleet = TestFleet::new(&["bj1"], &files);
    fleet.clusters.insert("gz1".to_owned(), Sandbox::new(sandbox::SandboxOptions::instant("gz1")));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(managed_namespaces(fleet.cluster("bj1")).await, ["pay", "shop"]);
    let cluster = manifests::cluster("gz1");
    let revision = fleet.push(&running, "A cluster", &[("clusters/gz1.yaml", Some(&cluster))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(
        phases(&now),
        [
            "bj1 project/pay Running",
            "bj1 project/shop Running",
            "gz1 project/shop Running",
            "bj1 shop/web Running",
            "gz1 shop/web Running",
        ]
    );
    assert_eq!(managed_namespaces(fleet.cluster("gz1")).await, ["shop"]);
}

fn deleted_resources(fleet: &TestFleet) -> Vec<String> {
    let of = |sandbox: &Sandbox| sandbox.requests().into_iter().filter(|record| record.verb == "delete");
    fleet.clusters.values().flat_map(of).map(|record| record.resource).collect()
}

async fn wait_for_approval_request(running: &RunningController) -> tutti::model::Approval {
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let [approval] = now.approvals_wanted.as_slice() else { panic!("{:?}", now.approvals_wanted) };
    approval.clone()
}

#[tokio::test(start_paused = true)]
async fn removed_project_keeps_its_namespace_until_approved() {
    let (shop, instance) =
        (shop_project(), manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}"));
    let files = [("projects/shop.yaml", shop.as_str()), ("tutti.yaml", &instance)];
    let fleet = TestFleet::new(
        &["bj1", "gz1"],
        &[&files[..], &[("apps/o/app.yaml", &component("o", "o:1"))]].concat(),
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    fleet.push(&running, "Without the project", &[("projects/shop.yaml", None)]).await;
    let approval = wait_for_approval_request(&running).await;
    wait_for_effects().await;
    // Objects of the project are below the cap and are deleted; the namespaces stay.
    assert!(
        !deleted_resources(&fleet).iter().any(|resource| resource == "namespaces"),
        "{:?}",
        deleted_resources(&fleet)
    );
    let now = running.overview.borrow().clone();
    let waiting: Vec<String> =
        now.deletions.iter().map(|it| format!("{} {}", it.cluster, it.object)).collect();
    assert_eq!(waiting, ["bj1 Namespace shop", "gz1 Namespace shop"]);
    assert!(now.deletions.iter().all(|it| it.waits && it.approval.is_some()), "{:?}", now.deletions);

    let approval = approval_to_yaml(&approval);
    let revision = fleet.push(&running, "Approve", &[("approvals/shop.yaml", Some(&approval))]).await;
    running.until_converged(&revision).await;
    for sandbox in fleet.clusters.values() {
        assert_eq!(managed_namespaces(sandbox).await, Vec::<String>::new());
        assert_eq!(sandbox.count_requests(&RequestMatch::any().verb("delete").resource("namespaces")), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_project_holds_only_its_own_apps() {
    let (shop, web, other) = (shop_project(), shop_app("web"), component("other", "o:1"));
    let files =
        [("projects/shop.yaml", shop.as_str()), ("apps/web/app.yaml", &web), ("apps/other/app.yaml", &other)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = live_objects::managed_objects(fleet.cluster("bj1")).await;
    let (wrong, web, other) = (
        shop.replace("spec: {", "spec: {cluster: {names: [gz1]}, "),
        web.replace("web:1", "web:2"),
        other.replace("o:1", "o:2"),
    );
    let changes = [
        ("projects/shop.yaml", Some(wrong.as_str())),
        ("apps/web/app.yaml", Some(&web)),
        ("apps/other/app.yaml", Some(&other)),
    ];
    let revision = fleet.push(&running, "An error", &changes).await;
    let now = running
        .until("the new version of the other app", |now| {
            now.revision.as_ref() == Some(&revision)
                && target(now, "bj1", "default/other").revision == revision
                && target(now, "bj1", "default/other").phase.is_done()
        })
        .await;
    wait_for_effects().await;
    assert!(target(&now, "bj1", "shop/web").phase.is_failure());
    let after = live_objects::managed_objects(fleet.cluster("bj1")).await;
    let changed: Vec<&String> = after
        .iter()
        .filter(|(name, object)| before.get(*name) != Some(object))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(changed, ["Deployment default/other"]);
    assert_eq!(after.len(), before.len());
}
