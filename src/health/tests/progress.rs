use serde_json::{Value, json};

use crate::health::{ProgressChange, RolloutProgress};

fn deployment(generation: i64, status: Value) -> RolloutProgress {
    RolloutProgress::of(
        &json!({"kind": "Deployment", "metadata": {"uid": "u", "generation": generation}, "status": status}),
    )
}

#[test]
fn only_new_maxima_are_progress() {
    use ProgressChange::{Changed, Forward, None};
    let rows = [
        (
            "the controller has seen it",
            2,
            json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3}),
            Changed,
        ),
        ("nothing", 2, json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3}), None),
        (
            "words alone",
            2,
            json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "conditions": [{}]}),
            None,
        ),
        (
            "a new pod",
            2,
            json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 1, "readyReplicas": 3}),
            None,
        ),
        (
            "an old pod less",
            2,
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2}),
            Forward,
        ),
        (
            "ready again",
            2,
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3}),
            Changed,
        ),
        (
            "not ready again",
            2,
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2}),
            Changed,
        ),
        (
            "another spec",
            3,
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2}),
            Forward,
        ),
    ];
    let mut progress = deployment(2, json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3}));
    for (what, generation, status, expected) in rows {
        assert_eq!(progress.update(deployment(generation, status)), expected, "{what}");
    }
}

#[test]
fn each_kind_reports_progress() {
    for count in [
        "availableReplicas",
        "updatedReadyReplicas",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
        "succeeded",
        "ready",
    ] {
        let mut progress = deployment(1, json!({count: 1}));
        assert_eq!(progress.update(deployment(1, json!({count: 2}))), ProgressChange::Forward, "{count}");
    }
    // A Job whose pods fail makes no progress.
    let mut progress = deployment(1, json!({"active": 1, "failed": 1}));
    assert_eq!(progress.update(deployment(1, json!({"active": 1, "failed": 2}))), ProgressChange::None);
}
