//! Routes: from a Component to its Ingress.

use serde_json::json;

use crate::support::fleet::TestFleet;
use crate::support::live_objects;
use crate::support::manifests::{RINGS, component};

#[tokio::test(start_paused = true)]
async fn component_ingress_is_created_changed_and_deleted() {
    let plain = component("web", "registry.example.com/web:1");
    let routed =
        format!("{plain}  routes: [{{host: web.example.com, class: nginx, tls: {{secret: cert}}}}]\n");
    let fleet = TestFleet::new(&["bj1", "gz1"], &[("apps/web/app.yaml", &routed), ("rings.yaml", RINGS)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let bj1 = fleet.cluster("bj1");
    for sandbox in fleet.clusters.values() {
        let ingress = live_objects::get(sandbox, "Ingress", "default", "web").await.expect("an Ingress");
        let backend = json!({"service": {"name": "web", "port": {"number": 8080}}});
        let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
        assert_eq!(
            ingress["spec"],
            json!({
                "ingressClassName": "nginx",
                "rules": [{"host": "web.example.com", "http": {"paths": [path]}}],
                "tls": [{"hosts": ["web.example.com"], "secretName": "cert"}],
            })
        );
    }

    // A manifest beside the app, with another host in one ring and a patch on one cluster.
    let beside = "apiVersion: tutti.dev/v1alpha1\nkind: Route\nmetadata: {name: web}\nspec: {host: web.example.com, \
                  clusters: {names: [bj1]}, rings: {prod: {host: prod.example.com}}}\n";
    let changes = [("apps/web/app.yaml", Some(plain.as_str())), ("apps/web/route.yaml", Some(beside))];
    let revision = fleet.push(&running, "A route of its own", &changes).await;
    running.until_converged(&revision).await;
    let ingress = live_objects::get(bj1, "Ingress", "default", "web").await.expect("an Ingress");
    assert_eq!(ingress.pointer("/spec/rules/0/host"), Some(&json!("prod.example.com")));
    assert_eq!(ingress.pointer("/spec/tls"), None);
    assert_eq!(live_objects::get(fleet.cluster("gz1"), "Ingress", "default", "web").await, None);

    let revision = fleet.push(&running, "Without it", &[("apps/web/route.yaml", None)]).await;
    running.until_converged(&revision).await;
    assert_eq!(live_objects::get(bj1, "Ingress", "default", "web").await, None);
}
