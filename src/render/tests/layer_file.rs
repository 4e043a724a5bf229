use super::*;

#[test]
fn layer_file_without_effect_is_refused() {
    let (base, own) = ("templates/base/layer.yaml", "apps/web/layer/layer.yaml");
    let check = |file: &str, text: &str, line: &str| check_mistake(web(&[(file, text)]), line, "");
    check(base, "charts: true\n---\ncharts: false\n", "one document was expected, this is another");
    check(base, &"#".repeat(5_000_000), "templates/base/layer.yaml has 5000000 bytes, more than the limit");
    check(own, "charts: false", "the values of an app's own layer reach all charts of the app");
    check(own, "charts: [web]", "the values of an app's own layer reach all charts of the app");
    assert!(web(&[(own, "charts: true")]).is_ok());

    let mut snapshot = snapshot(&[("apps/web/app.yaml", WEB), (base, "")]);
    Arc::make_mut(&mut snapshot.files).get_mut(base).expect("it").content = [0xff][..].into();
    let target = Target { app: AppId::new("default", "web"), cluster: "bj1".into() };
    let result = render(&fleet(&snapshot), &snapshot, &NoCharts, &target);
    check_mistake(result, "templates/base/layer.yaml is not UTF-8 text", "");
}

#[test]
fn chart_values_in_layer_are_map() {
    let base = "templates/base/layer.yaml";
    let check = |text: &str, line: &str| check_mistake(web(&[(base, text)]), line, "");
    check("charts: {redis: false}", "must be a map of values for this chart, or true");
    check("charts: {redis: [1]}", "must be a map of values for this chart, or true");
    assert!(web(&[(base, "charts: {redis: {}, kafka: true}")]).is_ok());
    assert!(web(&[("apps/web/layer/layer.yaml", "charts: {redis: {a: 1}}")]).is_ok());
}

#[test]
fn equal_cluster_layers_may_not_share_chart_values() {
    let one = "clusters: {matchLabels: {zone: bj}}\n";
    let two = "clusters: {matchLabels: {environment: test}}\n";
    let result = |charts: [&str; 2], values: &str| {
        let [one, two] = [format!("{one}charts: {}", charts[0]), format!("{two}charts: {}", charts[1])];
        web(&[
            ("templates/cluster/one/layer.yaml", &one),
            ("templates/cluster/two/layer.yaml", &two),
            ("templates/cluster/two/values.yaml", values),
        ])
    };
    let check = |charts: [&str; 2], values: &str, told: &str| {
        check_mistake(result(charts, values), told, "more specific")
    };
    let redis = "{redis: {replica: {count: 2}}}";
    check([redis, "{redis: {replica: {count: 3}}}"], "", "both set charts.redis.replica.count");
    check([redis, "{redis: true}"], "replica: {count: 3}", "both set charts.redis.replica.count");
    check([redis, "true"], "replica: {count: 3}", "both set charts.redis.replica.count");
    for charts in ["{redis: {replica: {name: a}}}", "{kafka: {replica: {count: 2}}}", "false", "[kafka]"] {
        assert!(result([redis, charts], "replica: {count: 3}").is_ok(), "{charts}");
    }
}
