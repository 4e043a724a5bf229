//! Applied objects with nulls cause no further requests.

use std::time::Duration;

use serde_json::json;

use crate::support::fleet::TestFleet;
use crate::support::live_objects;
use crate::support::manifests::{config_map, objects_app};

const TILL_DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.shop.example.com, labels: }
spec:
  group: shop.example.com
  scope: Namespaced
  conversion:
  names: {kind: Till, plural: tills, singular: till}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            default: {open: null}
            properties: {color: {type: string, nullable: true}}
";

const TILL: &str = "\
apiVersion: shop.example.com/v1
kind: Till
metadata: {name: one, annotations: , creationTimestamp: null}
spec: {color: , open: [null, {a: null}], map: {b: }}
top:
";

#[tokio::test(start_paused = true)]
async fn objects_with_nulls_cause_no_requests() {
    let (shop, kinds) = (objects_app("default", "shop"), objects_app("default", "kinds"));
    let map = config_map("default", "one", "first");
    let fleet = TestFleet::new(
        &["bj1"],
        &[
            ("apps/kinds/app.yaml", &kinds),
            ("apps/kinds/objects/tills.yaml", TILL_DEFINITION),
            ("apps/shop/app.yaml", &shop),
            ("apps/shop/objects/till.yaml", TILL),
            ("apps/shop/objects/map.yaml", &map),
        ],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let till = live_objects::get(fleet.cluster("bj1"), "Till", "default", "one").await.expect("it is there");
    assert_eq!(till["spec"], json!({"color": null, "open": [null, {"a": null}], "map": {"b": null}}));
    assert_eq!(till.get("top"), Some(&json!(null)));
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    // Served kinds are read now and then.
    let of_objects = |it: &String| !it.contains("get /api");
    assert_eq!(
        fleet.request_counts().into_iter().filter(of_objects).collect::<Vec<_>>(),
        Vec::<String>::new()
    );

    // A new commit with another object writes only that one; a new process writes nothing.
    let second = config_map("default", "one", "second");
    let revision =
        fleet.push(&running, "Another value", &[("apps/shop/objects/map.yaml", Some(&second))]).await;
    running.until_converged(&revision).await;
    let is_write = |it: &String| ["apply", "patch", "update", "create"].iter().any(|verb| it.contains(verb));
    let writes = || fleet.request_counts().into_iter().filter(is_write).collect::<Vec<_>>();
    assert_eq!(writes(), ["1 apply configmaps"]);
    running.stop().await;
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(writes(), Vec::<String>::new());
    running.stop().await;
}
