//! Template layers compiled into the binary: the lowest layer of templates and values.

/// Path in a config repository, and text; sorted by path.
pub const SHIPPED_LAYERS: &[(&str, &str)] = &[
    ("templates/base/_replicas.j2", include_str!("../render/shipped/base/_replicas.j2")),
    ("templates/base/_workload.j2", include_str!("../render/shipped/base/_workload.j2")),
    ("templates/base/autoscale.yaml.j2", include_str!("../render/shipped/base/autoscale.yaml.j2")),
    ("templates/base/config.yaml.j2", include_str!("../render/shipped/base/config.yaml.j2")),
    ("templates/base/disruption.yaml.j2", include_str!("../render/shipped/base/disruption.yaml.j2")),
    ("templates/base/service.yaml.j2", include_str!("../render/shipped/base/service.yaml.j2")),
    ("templates/base/values.yaml", include_str!("../render/shipped/base/values.yaml")),
    (
        "templates/language/generic/values.yaml",
        include_str!("../render/shipped/language/generic/values.yaml"),
    ),
    ("templates/language/go/values.yaml", include_str!("../render/shipped/language/go/values.yaml")),
    ("templates/language/java/values.yaml", include_str!("../render/shipped/language/java/values.yaml")),
    ("templates/language/node/values.yaml", include_str!("../render/shipped/language/node/values.yaml")),
    ("templates/language/php/values.yaml", include_str!("../render/shipped/language/php/values.yaml")),
    ("templates/language/python/values.yaml", include_str!("../render/shipped/language/python/values.yaml")),
    ("templates/runType/server/values.yaml", include_str!("../render/shipped/runType/server/values.yaml")),
    ("templates/runType/task/values.yaml", include_str!("../render/shipped/runType/task/values.yaml")),
    ("templates/runType/worker/values.yaml", include_str!("../render/shipped/runType/worker/values.yaml")),
    ("templates/workload/cronjob/_job.j2", include_str!("../render/shipped/workload/cronjob/_job.j2")),
    (
        "templates/workload/cronjob/cronjob.yaml.j2",
        include_str!("../render/shipped/workload/cronjob/cronjob.yaml.j2"),
    ),
    (
        "templates/workload/cronjob/values.yaml",
        include_str!("../render/shipped/workload/cronjob/values.yaml"),
    ),
    (
        "templates/workload/daemonset/daemonset.yaml.j2",
        include_str!("../render/shipped/workload/daemonset/daemonset.yaml.j2"),
    ),
    (
        "templates/workload/daemonset/values.yaml",
        include_str!("../render/shipped/workload/daemonset/values.yaml"),
    ),
    (
        "templates/workload/deployment/deployment.yaml.j2",
        include_str!("../render/shipped/workload/deployment/deployment.yaml.j2"),
    ),
    (
        "templates/workload/deployment/values.yaml",
        include_str!("../render/shipped/workload/deployment/values.yaml"),
    ),
    ("templates/workload/helm/values.yaml", include_str!("../render/shipped/workload/helm/values.yaml")),
    (
        "templates/workload/inplaceset/inplaceset.yaml.j2",
        include_str!("../render/shipped/workload/inplaceset/inplaceset.yaml.j2"),
    ),
    (
        "templates/workload/inplaceset/values.yaml",
        include_str!("../render/shipped/workload/inplaceset/values.yaml"),
    ),
    ("templates/workload/job/_job.j2", include_str!("../render/shipped/workload/job/_job.j2")),
    ("templates/workload/job/job.yaml.j2", include_str!("../render/shipped/workload/job/job.yaml.j2")),
    ("templates/workload/job/values.yaml", include_str!("../render/shipped/workload/job/values.yaml")),
    (
        "templates/workload/statefulset/headless.yaml.j2",
        include_str!("../render/shipped/workload/statefulset/headless.yaml.j2"),
    ),
    (
        "templates/workload/statefulset/statefulset.yaml.j2",
        include_str!("../render/shipped/workload/statefulset/statefulset.yaml.j2"),
    ),
    (
        "templates/workload/statefulset/values.yaml",
        include_str!("../render/shipped/workload/statefulset/values.yaml"),
    ),
];
