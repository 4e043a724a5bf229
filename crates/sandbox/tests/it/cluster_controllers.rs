//! Controllers beside workloads: endpoints, budgets, autoscalers, claims, quotas, namespaces, nodes.
//!
//! Only the sandbox. The contract covers endpoints, deletion of namespaces and garbage collection; the rest follows
//! the source of kube-controller-manager 1.36 and is not compared.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment, deployments, refusal_status};
use crate::watch_log::WatchLog;

fn instant_options() -> SandboxOptions {
    SandboxOptions {
        pod_start: (Duration::from_secs(1), Duration::from_secs(1)),
        ..SandboxOptions::default()
    }
}

async fn wait_seconds(number: u64) {
    tokio::time::sleep(Duration::from_secs(number)).await;
}

fn from_json<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// `ready serving terminating` of each endpoint.
fn endpoint_states(object: &Value) -> String {
    let endpoints = object["endpoints"].as_array().cloned().unwrap_or_default();
    let one = |endpoint: &Value| {
        ["ready", "serving", "terminating"].map(|field| endpoint["conditions"][field].to_string()).join(" ")
    };
    format!(
        "{}: {}",
        object["metadata"]["generation"],
        endpoints.iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_readiness() {
    let (_sandbox, client) = cluster_with(instant_options());
    let seen = WatchLog::of(&client, "discovery.k8s.io", "EndpointSlice", endpoint_states).await;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    apply(&services, "a", &service).await.unwrap();
    apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    wait_seconds(9).await;
    apply(&deployments(&client), "a", &deployment("web", 1, "web:1")).await.unwrap();
    wait_seconds(9).await;
    // the service without pods exists from the start
    let lines: Vec<String> = seen.take_lines().into_iter().filter(|line| line != "1: ").collect();
    assert_eq!(
        lines,
        ["2: true true false, true true false", "3: true true false, false true true", "4: true true false"]
    );
    let older: Api<Endpoints> = Api::default_namespaced(client);
    let endpoints = serde_json::to_value(older.get("web").await.unwrap()).unwrap();
    assert_eq!(endpoints["subsets"][0]["addresses"].as_array().unwrap().len(), 1);
    services.delete("web", &DeleteParams::default()).await.unwrap();
    wait_seconds(1).await;
    assert!(older.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn eviction_respects_the_disruption_budget() {
    let (_sandbox, client) = cluster_with(instant_options());
    apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    apply(&budgets, "a", &budget).await.unwrap();
    wait_seconds(9).await;
    let status = budgets.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (status.disruptions_allowed, status.current_healthy, status.desired_healthy),
        (Some(1), Some(2), Some(1))
    );
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let names: Vec<String> =
        pods.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect();
    pods.evict(&names[0], &Default::default()).await.unwrap();
    let status = refusal_status(pods.evict(&names[1], &Default::default()).await);
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = status.details.unwrap().causes.remove(0);
    assert_eq!(cause.message, "The disruption budget web needs 1 healthy pods and has 1 currently");
    wait_seconds(9).await;
    pods.evict(&names[1], &Default::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unhealthy_pod_may_be_evicted() {
    let (_sandbox, client) = cluster_with(instant_options());
    let mut ill = deployment("web", 2, "web:1");
    ill["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": "readiness"});
    apply(&deployments(&client), "a", &ill).await.unwrap();
    let once = json!({"metadata": {"name": "once", "labels": {"app": "web"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "web:1"}]}});
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &from_json(once)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = |policy: Value| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "unhealthyPodEvictionPolicy": policy,
                "selector": {"matchLabels": {"app": "web"}}}})
    };
    apply(&budgets, "a", &budget(json!("IfHealthyBudget"))).await.unwrap();
    wait_seconds(30).await;
    // the eviction of a pod that has ended is no disruption
    pods.evict("once", &Default::default()).await.unwrap();
    let names = pod_names(&client).await;
    let status = refusal_status(pods.evict(&names[0], &Default::default()).await);
    assert_eq!(status.code, 429);
    apply(&budgets, "a", &budget(json!("AlwaysAllow"))).await.unwrap();
    wait_seconds(1).await;
    pods.evict(&names[0], &Default::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn empty_disruption_budget_allows_no_eviction() {
    let (_sandbox, client) = cluster_with(instant_options());
    apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    apply(&budgets, "a", &budget).await.unwrap();
    wait_seconds(9).await;
    let status = budgets.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (status.expected_pods, status.desired_healthy, status.disruptions_allowed),
        (Some(0), Some(0), Some(0))
    );
}

#[tokio::test(start_paused = true)]
async fn selectorless_services_have_no_endpoints() {
    let (_sandbox, client) = cluster_with(instant_options());
    apply(&deployments(&client), "a", &deployment("web", 1, "web:1")).await.unwrap();
    let services: Api<Service> = Api::default_namespaced(client.clone());
    for (name, spec) in [
        (
            "elsewhere",
            json!({"type": "ExternalName", "externalName": "a.example", "selector": {"app": "web"}}),
        ),
        ("empty", json!({"selector": {}, "ports": [{"port": 80}]})),
    ] {
        let service = json!({"metadata": {"name": name}, "spec": spec});
        services.create(&PostParams::default(), &from_json(service)).await.unwrap();
    }
    wait_seconds(9).await;
    let endpoints: Api<Endpoints> = Api::default_namespaced(client);
    for name in ["elsewhere", "empty"] {
        assert!(endpoints.get_opt(name).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn former_load_balancer_service_loses_its_address() {
    let (_sandbox, client) = cluster_with(instant_options());
    let services: Api<Service> = Api::default_namespaced(client);
    let service = |kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80}]}})
    };
    for (kind, addresses) in [("LoadBalancer", 1), ("ClusterIP", 0), ("LoadBalancer", 1)] {
        apply(&services, "a", &service(kind)).await.unwrap();
        wait_seconds(9).await;
        let balancer = services.get("web").await.unwrap().status.unwrap().load_balancer.unwrap_or_default();
        assert_eq!(balancer.ingress.unwrap_or_default().len(), addresses, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn node_changes_are_noticed() {
    let (_sandbox, client) = cluster_with(SandboxOptions { nodes: 1, ..instant_options() });
    let nodes: Api<Node> = Api::all(client.clone());
    let name = nodes.list(&ListParams::default()).await.unwrap().items[0].name_any();
    let mut agent = deployment("agent", 1, "agent:1");
    agent["kind"] = json!("DaemonSet");
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    let agents: Api<DaemonSet> = Api::default_namespaced(client.clone());
    apply(&agents, "a", &agent).await.unwrap();
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch(&name, &PatchParams::default(), &cordon).await.unwrap();
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 1, "web:1")).await.unwrap();
    wait_seconds(9).await;
    let ready = || async { api.get("web").await.unwrap().status.unwrap().ready_replicas };
    assert_eq!(ready().await, None);
    let uncordon = Patch::Merge(json!({"spec": {"unschedulable": null}}));
    nodes.patch(&name, &PatchParams::default(), &uncordon).await.unwrap();
    wait_seconds(9).await;
    assert_eq!(ready().await, Some(1));
    let second = json!({"metadata": {"name": "second"}});
    nodes.create(&PostParams::default(), &from_json(second)).await.unwrap();
    wait_seconds(9).await;
    assert_eq!(agents.get("agent").await.unwrap().status.unwrap().number_ready, 2);
    nodes.delete(&name, &DeleteParams::default()).await.unwrap();
    wait_seconds(90).await;
    assert_eq!(ready().await, Some(1));
    let pods: Api<Pod> = Api::default_namespaced(client);
    let places = pods.list(&ListParams::default()).await.unwrap().items;
    assert!(places.iter().all(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some("second")));
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_writes_the_scale() {
    let (_sandbox, client) = cluster_with(instant_options());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 1, "web:1")).await.unwrap();
    let scalers: Api<HorizontalPodAutoscaler> = Api::default_namespaced(client.clone());
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2, "maxReplicas": 4}});
    apply(&scalers, "a", &scaler).await.unwrap();
    wait_seconds(1).await;
    assert_eq!(api.get("web").await.unwrap().spec.replicas, Some(2));
    for (wished, replicas, limited) in [("3", 3, "DesiredWithinRange"), ("9", 4, "TooManyReplicas")] {
        let wish = Patch::Merge(json!({"metadata": {"annotations": {"sim.tutti.dev/replicas": wished}}}));
        scalers.patch("web", &PatchParams::default(), &wish).await.unwrap();
        wait_seconds(31).await;
        let web = api.get("web").await.unwrap();
        assert_eq!(web.spec.replicas, Some(replicas));
        let entries = web.managed_fields();
        assert!(entries.iter().any(|entry| entry.subresource.as_deref() == Some("scale")
            && entry.manager.as_deref() == Some("kube-controller-manager")));
        let status = serde_json::to_value(scalers.get("web").await.unwrap()).unwrap();
        let reasons: Vec<&str> = status["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["reason"].as_str().unwrap())
            .collect();
        assert_eq!(reasons, ["ReadyForNewScale", "ValidMetricFound", limited]);
    }
}

/// Reasons of an autoscaler's conditions, and its desired replicas.
async fn autoscaler_conditions(scalers: &Api<HorizontalPodAutoscaler>, name: &str) -> String {
    let scaler = serde_json::to_value(scalers.get(name).await.unwrap()).unwrap();
    let conditions = scaler["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let reasons: Vec<&str> = conditions.iter().map(|one| one["reason"].as_str().unwrap()).collect();
    format!("{} {}", reasons.join(" "), scaler["status"]["desiredReplicas"])
}

#[tokio::test(start_paused = true)]
async fn autoscaler_ignores_targets_at_zero_replicas() {
    let (_sandbox, client) = cluster_with(instant_options());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 0, "web:1")).await.unwrap();
    let scalers: Api<HorizontalPodAutoscaler> = Api::default_namespaced(client.clone());
    for (name, kind, target, expected) in [
        ("web", "Deployment", "web", "SucceededGetScale ScalingDisabled 0"),
        ("gone", "Deployment", "gone", "FailedGetScale 0"),
        ("odd", "Widget", "web", "FailedGetScale 0"),
    ] {
        let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target},
                "minReplicas": 2, "maxReplicas": 4}});
        apply(&scalers, "a", &scaler).await.unwrap();
        wait_seconds(60).await;
        assert_eq!(autoscaler_conditions(&scalers, name).await, expected, "{name}");
    }
    assert_eq!(api.get("web").await.unwrap().spec.replicas, Some(0));
    let wake = Patch::Merge(json!({"spec": {"replicas": 1}}));
    api.patch("web", &PatchParams::default(), &wake).await.unwrap();
    wait_seconds(31).await;
    assert_eq!(api.get("web").await.unwrap().spec.replicas, Some(2));
    assert_eq!(autoscaler_conditions(&scalers, "web").await, "SucceededGetScale FailedGetResourceMetric 2");
}

#[tokio::test(start_paused = true)]
async fn quota_rejection_sets_a_replica_set_condition() {
    let (_sandbox, client) = cluster_with(instant_options());
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {"pods": "2"}}});
    quotas.create(&PostParams::default(), &from_json(quota)).await.unwrap();
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 3, "web:1")).await.unwrap();
    wait_seconds(9).await;
    let web = serde_json::to_value(api.get("web").await.unwrap()).unwrap();
    let failure =
        web["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "ReplicaFailure");
    let message = failure.unwrap()["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
        )
    );
    let used = quotas.get("small").await.unwrap().status.unwrap().used.unwrap();
    assert_eq!(used["pods"].0, "2");
    quotas.delete("small", &DeleteParams::default()).await.unwrap();
    wait_seconds(600).await;
    let ready = api.get("web").await.unwrap().status.unwrap().ready_replicas;
    assert_eq!(ready, Some(3));
}

#[tokio::test(start_paused = true)]
async fn limit_range_defaults_and_rejects() {
    let (_sandbox, client) = cluster_with(instant_options());
    let ranges: Api<LimitRange> = Api::default_namespaced(client.clone());
    let range = json!({"metadata": {"name": "bounds"}, "spec": {"limits": [{"type": "Container",
        "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}}]}});
    ranges.create(&PostParams::default(), &from_json(range)).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = |cpu: Option<&str>| {
        let resources = cpu.map_or_else(|| json!({}), |cpu| json!({"limits": {"cpu": cpu}}));
        from_json(json!({"metadata": {"name": "one"},
            "spec": {"containers": [{"name": "main", "image": "web:1", "resources": resources}]}}))
    };
    let status = refusal_status(pods.create(&PostParams::default(), &pod(Some("2"))).await);
    assert_eq!(
        status.message,
        "pods \"one\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
    let made = pods.create(&PostParams::default(), &pod(None)).await.unwrap();
    assert_eq!(
        made.annotations()["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    );
    assert_eq!(made.status.unwrap().qos_class.as_deref(), Some("Burstable"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_use_waits() {
    let (_sandbox, client) = cluster_with(instant_options());
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    claims.create(&PostParams::default(), &from_json(claim)).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"metadata": {"name": "one"}, "spec": {"containers": [{"name": "main", "image": "web:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    pods.create(&PostParams::default(), &from_json(pod)).await.unwrap();
    wait_seconds(5).await;
    assert_eq!(claims.get("data").await.unwrap().status.unwrap().phase.as_deref(), Some("Bound"));
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    wait_seconds(5).await;
    assert_eq!(claims.get("data").await.unwrap().finalizers(), ["kubernetes.io/pvc-protection"]);
    pods.delete("one", &DeleteParams::default()).await.unwrap();
    wait_seconds(5).await;
    assert!(claims.get_opt("data").await.unwrap().is_none());
}

/// Reasons of the conditions, and the remaining content.
fn namespace_conditions(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said: Vec<&str> = conditions
        .iter()
        .filter(|one| one["status"] == "True")
        .map(|one| one["message"].as_str().unwrap())
        .collect();
    format!("{} {}", object["status"]["phase"].as_str().unwrap(), said.join("; ")).trim_end().to_owned()
}

#[tokio::test(start_paused = true)]
async fn namespace_conditions_name_remaining_content() {
    let (_sandbox, client) = cluster_with(instant_options());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &from_json(json!({"metadata": {"name": "shop"}})))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    let held = json!({"metadata": {"name": "held", "finalizers": ["a.b/c"]}});
    maps.create(&PostParams::default(), &from_json(held)).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    let slow = json!({"metadata": {"name": "slow", "annotations": {"sim.tutti.dev/slow-terminate": "true"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
    pods.create(&PostParams::default(), &from_json(slow)).await.unwrap();
    wait_seconds(5).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    let mut lines = Vec::new();
    for second in 0..60 {
        let Some(namespace) = namespaces.get_opt("shop").await.unwrap() else { break };
        let line = namespace_conditions(&serde_json::to_value(namespace).unwrap());
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if second == 45 {
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            maps.patch("held", &PatchParams::default(), &free).await.unwrap();
        }
        wait_seconds(1).await;
    }
    assert_eq!(
        lines,
        [
            "Terminating",
            "Terminating Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods",
            "Terminating Some resources are remaining: configmaps. has 1 resource instances; Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances"
        ]
    );
    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
}

async fn owned_deployment(client: &Client) -> Api<Deployment> {
    let api = deployments(client);
    apply(&api, "a", &deployment("web", 1, "web:1")).await.unwrap();
    wait_seconds(5).await;
    api
}

#[tokio::test(start_paused = true)]
async fn orphaned_objects_are_adopted_again() {
    let (_sandbox, client) = cluster_with(instant_options());
    let api = owned_deployment(&client).await;
    let before: Vec<String> = pod_names(&client).await;
    let orphan = DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    api.delete("web", &orphan).await.unwrap();
    wait_seconds(5).await;
    let api = owned_deployment(&client).await;
    assert_eq!(pod_names(&client).await, before);
    assert_eq!(api.get("web").await.unwrap().status.unwrap().available_replicas, Some(1));
}

async fn pod_names(client: &Client) -> Vec<String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}
