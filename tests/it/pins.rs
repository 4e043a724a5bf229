//! A pin changes the version in one ring; other rings do not change.

use sandbox::RequestMatch;

use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::component;
use crate::support::program;

const RINGS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec: {rings: [{name: test, clusters: {names: [bj1]}}, {name: prod, clusters: {names: [gz1]}}]}
";

async fn live_image(fleet: &TestFleet, cluster: &str) -> String {
    let web = live_objects::get(fleet.cluster(cluster), "Deployment", "default", "web")
        .await
        .expect("a deployment");
    web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().expect("an image").to_owned()
}

#[tokio::test(start_paused = true)]
async fn pin_rolls_out_only_in_its_ring() {
    let web = component("web", "registry.example.com/web:1");
    let pin = "# What runs in prod.\nversion: '1'\n";
    let files =
        [("rings.yaml", RINGS), ("apps/web/app.yaml", web.as_str()), ("apps/web/pins/prod.yaml", pin)];
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    // A new version of the app reaches test; prod stays at its pin.
    let newer = component("web", "registry.example.com/web:2");
    let second = fleet.push(&running, "Second", &[("apps/web/app.yaml", Some(&newer))]).await;
    running.until_converged(&second).await;
    assert_eq!(live_image(&fleet, "bj1").await, "registry.example.com/web:2");
    assert_eq!(live_image(&fleet, "gz1").await, "registry.example.com/web:1");

    // The promotion changes one scalar.
    fleet.clear_requests();
    let promoted = pin.replace("'1'", "'2'");
    let third = fleet.push(&running, "Promote", &[("apps/web/pins/prod.yaml", Some(&promoted))]).await;
    let now = running.until_converged(&third).await;
    assert_eq!(live_image(&fleet, "gz1").await, "registry.example.com/web:2");
    assert_eq!(fleet.cluster("bj1").count_requests(&RequestMatch::writes()), 0);
    assert_eq!(fleet.cluster("gz1").count_requests(&RequestMatch::writes()), 1);
    let plan =
        |cluster: &str| target(&now, cluster, "default/web").plan.clone().expect("a plan").revision.clone();
    assert_eq!(plan("bj1"), second, "the pin of prod is no input of test");
    assert_eq!(plan("gz1"), third);

    let revision = third.to_string();
    let explain = [
        "render",
        "web",
        "--repo",
        ".",
        "--revision",
        &revision,
        "--cluster",
        "gz1",
        "--object",
        "Deployment",
        "--explain",
    ];
    let path = "spec.template.spec.containers[0].image";
    let (output, errors, code) = program::run(fleet.repository.path(), &[&explain[..], &[path]].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(output.contains("apps/web/pins/prod.yaml:2"), "{output}");
}
