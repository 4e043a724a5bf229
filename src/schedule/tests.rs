use super::assign;
use crate::fleet::{ReplicaDivision, divide_replicas};
use crate::model::{
    App, AppId, AppSet, AppSpec, ClusterName, DeployType, Location, Pin, PodSet, Replicas, TopologyCluster,
};

fn test_location() -> Location {
    Location::new("app.yaml", 1, 1)
}

/// One cluster for each list.
fn app_set(total: Option<u32>, clusters: &[&[Option<Replicas>]]) -> AppSet {
    let pod_set = |cluster: usize, index: usize, replicas: &Option<Replicas>| PodSet {
        name: format!("set-{cluster}-{index}"),
        replicas: *replicas,
        version: Some("v1".to_owned()),
        image: None,
        chart: None,
        raw_values: None,
        node_selector_term: None,
        meta: [("b".to_owned(), "podSet".to_owned())].into(),
        location: test_location(),
    };
    let topology = |(cluster, sets): (usize, &&[Option<Replicas>])| TopologyCluster {
        name: ClusterName::from(format!("c{cluster}").as_str()),
        meta: [("a".to_owned(), "cluster".to_owned()), ("b".to_owned(), "cluster".to_owned())].into(),
        pod_sets: sets
            .iter()
            .enumerate()
            .map(|(index, replicas)| pod_set(cluster, index, replicas))
            .collect(),
        location: test_location(),
    };
    AppSet {
        replicas: total,
        replicas_location: None,
        deploy_type: DeployType::Deployment,
        language: None,
        run_type: None,
        service_name: None,
        labels: [].into(),
        meta: [("a".to_owned(), "app".to_owned()), ("c".to_owned(), "app".to_owned())].into(),
        min_ready_seconds: None,
        template: None,
        chart: None,
        placement: None,
        tolerations: Vec::new(),
        clusters: clusters.iter().enumerate().map(topology).collect(),
    }
}

fn count(count: u32) -> Option<Replicas> {
    Some(Replicas::Count(count))
}

fn percent(percent: u32) -> Option<Replicas> {
    Some(Replicas::Percent(percent))
}

fn check(total: Option<u32>, pod_sets: &[Option<Replicas>], expected: &[Option<u32>]) {
    assert_eq!(
        divide_replicas(&app_set(total, &[pod_sets])),
        ReplicaDivision::Divided(expected.to_vec()),
        "{total:?} {pod_sets:?}"
    );
}

#[test]
fn counts_percents_and_shares() {
    check(Some(10), &[count(1), count(2), count(7)], &[Some(1), Some(2), Some(7)]);
    check(Some(10), &[percent(50), percent(50)], &[Some(5), Some(5)]);
    // 3.3, 3.3, 3.4: the remaining one goes to the first.
    check(Some(10), &[percent(33), percent(33), percent(34)], &[Some(4), Some(3), Some(3)]);
    check(Some(10), &[count(5), percent(25), percent(25)], &[Some(5), Some(3), Some(2)]);
    // The rest is shared by those without a number; the first gets more.
    check(Some(10), &[percent(25), None, None, None], &[Some(2), Some(3), Some(3), Some(2)]);
    check(Some(3), &[count(3), None], &[Some(3), Some(0)]);
    check(Some(0), &[percent(50), percent(50)], &[Some(0), Some(0)]);
    // Without a total, the layers give the missing numbers.
    check(None, &[count(2), None], &[Some(2), None]);
}

#[test]
fn wrong_sums_are_reported() {
    let mismatch = |pod_sets: &[Option<Replicas>], sum| {
        assert_eq!(
            divide_replicas(&app_set(Some(10), &[pod_sets])),
            ReplicaDivision::Mismatch { total: 10, sum },
            "{pod_sets:?}"
        );
    };
    mismatch(&[count(4)], 4);
    mismatch(&[count(11), None], 11);
    // Exact percentages take nothing of the rest.
    mismatch(&[percent(10), percent(10)], 2);
    assert_eq!(
        divide_replicas(&app_set(None, &[&[count(1), percent(10)]])),
        ReplicaDivision::PercentWithoutTotal(1)
    );
}

/// In namespace default.
fn app(app_set: AppSet) -> App {
    App {
        id: AppId::new("default", "app"),
        labels: [].into(),
        annotations: [].into(),
        unmanaged: false,
        adopt: false,
        pins: [].into(),
        paused: false,
        prune: None,
        drift: None,
        force: None,
        create_namespace: None,
        replace: false,
        ignore: Vec::new(),
        rollout: Default::default(),
        promotion_group: None,
        spec: AppSpec::AppSet(app_set),
        routes: Vec::new(),
        location: test_location(),
    }
}

#[test]
fn shares_span_clusters_and_near_meta_wins() {
    let app_set = app_set(Some(10), &[&[percent(20), None], &[None, count(1)]]);
    let app = app(app_set);
    let replicas = |cluster: &str| {
        let pod_sets = assign(&app, &ClusterName::from(cluster));
        pod_sets.iter().map(|pod_set| (pod_set.name.clone(), pod_set.replicas)).collect::<Vec<_>>()
    };
    assert_eq!(replicas("c0"), [("set-0-0".to_owned(), Some(2)), ("set-0-1".to_owned(), Some(4))]);
    assert_eq!(replicas("c1"), [("set-1-0".to_owned(), Some(3)), ("set-1-1".to_owned(), Some(1))]);
    let first = &assign(&app, &ClusterName::from("c0"))[0];
    let meta: Vec<(&str, &str)> =
        first.meta.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(meta, [("a", "cluster"), ("b", "podSet"), ("c", "app")]);
}

#[test]
fn pin_sets_version_and_image_tag() {
    let mut app = app(app_set(Some(2), &[&[None, None]]));
    if let AppSpec::AppSet(app_set) = &mut app.spec {
        app_set.clusters[0].pod_sets[0].image = Some("registry.example.com:5000/web:v1".to_owned());
    }
    app.pins.insert(ClusterName::from("c0"), Pin { version: "v9".to_owned(), location: test_location() });
    let pinned = assign(&app, &ClusterName::from("c0"));
    let told: Vec<_> = pinned.iter().map(|set| (set.version.as_deref(), set.image.as_deref())).collect();
    assert_eq!(told, [(Some("v9"), Some("registry.example.com:5000/web:v9")), (Some("v9"), None)]);
}
