use std::collections::BTreeMap;

use super::{empty, lines, parse, plan_with, rendered, with_absent};
use crate::plan::{ApplyPhase, PlanAction};

#[test]
fn phases_of_kinds() {
    let check =
        |text: &str, expected: ApplyPhase| assert_eq!(ApplyPhase::of(&parse(text).1), expected, "{text}");
    check("v1/Namespace//shop", ApplyPhase::Namespace);
    check("apiextensions.k8s.io/v1/CustomResourceDefinition//menus", ApplyPhase::Definition);
    for text in [
        "v1/ServiceAccount/shop/pay",
        "v1/ConfigMap/shop/pay",
        "v1/Secret/shop/pay",
        "v1/ResourceQuota/shop/pay",
        "rbac.authorization.k8s.io/v1/ClusterRole//pay",
        "networking.k8s.io/v1/NetworkPolicy/shop/pay",
        "scheduling.k8s.io/v1/PriorityClass//high",
    ] {
        check(text, ApplyPhase::Config);
    }
    check("v1/PersistentVolumeClaim/shop/pay", ApplyPhase::Storage);
    check("storage.k8s.io/v1/StorageClass//fast", ApplyPhase::Storage);
    check("v1/Service/shop/pay", ApplyPhase::Service);
    check("apps.kruise.io/v1alpha1/CloneSet/shop/pay", ApplyPhase::Workload);
    check("coordination.k8s.io/v1/Lease/shop/pay", ApplyPhase::Workload);
    check("serving.knative.dev/v1/Service/shop/pay", ApplyPhase::Custom);
    check("apps/v1/Deployment/shop/pay", ApplyPhase::Workload);
    check("batch/v1/Job/shop/pay", ApplyPhase::Workload);
    check("example.com/v1/Database/shop/pay", ApplyPhase::Custom);
    check("snapshot.storage.k8s.io/v1/VolumeSnapshot/shop/pay", ApplyPhase::Custom);
    check("networking.k8s.io/v1/Ingress/shop/pay", ApplyPhase::Route);
    check("gateway.networking.k8s.io/v1/HTTPRoute/shop/pay", ApplyPhase::Route);
    check("autoscaling/v2/HorizontalPodAutoscaler/shop/pay", ApplyPhase::Scaling);
    check("policy/v1/PodDisruptionBudget/shop/pay", ApplyPhase::Scaling);
    check("admissionregistration.k8s.io/v1/MutatingWebhookConfiguration//pay", ApplyPhase::Webhook);
    check("apiregistration.k8s.io/v1/APIService//v1.x", ApplyPhase::Webhook);
    assert!(ApplyPhase::ALL.is_sorted());
}

#[test]
fn steps_come_by_phase_then_by_name() {
    let texts = [
        "policy/v1/PodDisruptionBudget/shop/pay",
        "apps/v1/Deployment/shop/web",
        "apps/v1/Deployment/shop/pay",
        "v1/Service/shop/pay",
        "v1/ConfigMap/shop/pay",
        "v1/Namespace//shop",
    ];
    let plan = plan_with(&rendered("pay", &texts), &with_absent(empty(), &texts), |_| {});
    assert_eq!(
        lines(&plan),
        [
            "create Namespace shop: new",
            "create ConfigMap shop/pay: new",
            "create Service shop/pay: new",
            "create Deployment shop/pay: new",
            "create Deployment shop/web: new",
            "create PodDisruptionBudget shop/pay: new",
        ]
    );
    assert_eq!(plan.summary(), BTreeMap::from([(PlanAction::Create, 6)]));
    assert_eq!(plan.writes().count(), 6);
}
