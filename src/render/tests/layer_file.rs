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
