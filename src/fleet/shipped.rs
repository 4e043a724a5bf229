//! The layers that the program brings along: the lowest source of templates and values.

/// Path in a config repository, and text; sorted by path.
pub const SHIPPED: &[(&str, &str)] = &[
    ("templates/base/values.yaml", include_str!("../render/shipped/base/values.yaml")),
    (
        "templates/language/generic/values.yaml",
        include_str!("../render/shipped/language/generic/values.yaml"),
    ),
    ("templates/language/go/values.yaml", include_str!("../render/shipped/language/go/values.yaml")),
    ("templates/language/java/values.yaml", include_str!("../render/shipped/language/java/values.yaml")),
    ("templates/language/python/values.yaml", include_str!("../render/shipped/language/python/values.yaml")),
    ("templates/runType/server/values.yaml", include_str!("../render/shipped/runType/server/values.yaml")),
    ("templates/runType/worker/values.yaml", include_str!("../render/shipped/runType/worker/values.yaml")),
    (
        "templates/workload/deployment/deployment.yaml.j2",
        include_str!("../render/shipped/workload/deployment/deployment.yaml.j2"),
    ),
    (
        "templates/workload/deployment/service.yaml.j2",
        include_str!("../render/shipped/workload/deployment/service.yaml.j2"),
    ),
    (
        "templates/workload/deployment/values.yaml",
        include_str!("../render/shipped/workload/deployment/values.yaml"),
    ),
    ("templates/workload/helm/values.yaml", include_str!("../render/shipped/workload/helm/values.yaml")),
];
