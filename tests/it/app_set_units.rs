//! The podSets of an AppSet are units: each has its own rollout on a cluster.

use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch};

use crate::support::fleet::TestFleet;
use crate::support::live_objects;

const PAY_APP_SET: &str = "\
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: pay, namespace: default}
spec:
  replicas: 2
  podSpec: {deployType: deployment, template: {spec: {containers: [{name: pay, image: 'registry.example.com/pay:1'}]}}}
  clusterTopology:
    clusters:
      - name: bj1
        podSets: [{name: pay-blue, replicas: 1}, {name: pay-green, replicas: 1}]
";

/// Each podSet mounts it.
const SETTINGS_TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ podSet.name }}-settings'}
data: {level: info}
";

/// Both podSets render it equally.
const SHARED_OBJECT: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: pay-shared}
data: {level: info}
";

#[tokio::test(start_paused = true)]
async fn refusal_of_a_unit_stops_no_other_unit() {
    let fleet = TestFleet::new(
        &["bj1"],
        &[
            ("apps/pay/app.yaml", PAY_APP_SET),
            ("apps/pay/layer/settings.yaml.j2", SETTINGS_TEMPLATE),
            ("apps/pay/layer/shared.yaml.j2", SHARED_OBJECT),
        ],
    );
    let bj1 = fleet.cluster("bj1");
    let settings = RequestMatch::writes().resource("configmaps").name("pay-blue-settings");
    bj1.set_faults(&FaultPlan::new(1).rule(FaultRule::failing(settings, Fault::invalid("too long"))));
    let running = fleet.start().await;
    running
        .until("a refusal", |now| now.targets.iter().any(|it| it.detail.contains("pay-blue-settings")))
        .await;
    assert_eq!(live_objects::names(bj1, "Deployment").await, ["pay-green"]);
    bj1.set_faults(&FaultPlan::new(1));
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(live_objects::names(bj1, "Deployment").await, ["pay-blue", "pay-green"]);
}
