//! Hostile charts are refused, or killed at a limit, while other renders continue.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tutti::chart::ChartRenderLimits;
use tutti::model::{ChartFailure, ChartFailureKind};

use super::support::{chart_of_template, helm_programs, library_renderer, request};

fn small_limits() -> ChartRenderLimits {
    ChartRenderLimits {
        deadline: Duration::from_secs(3),
        memory: 400 << 20,
        children: 2,
        ..ChartRenderLimits::default()
    }
}

const VALID_TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n";

fn check_failure(text: &str, fault: ChartFailureKind, words: &str) {
    check_failure_within(small_limits(), text, fault, words);
}

#[track_caller]
fn check_failure_within(limits: ChartRenderLimits, text: &str, fault: ChartFailureKind, words: &str) {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, limits);
    let started = Instant::now();
    let failure = renderer.render(&request(&chart_of_template(text), json!({}))).expect_err("a refusal");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!((failure.fault, failure.message.contains(words)), (fault, true), "{failure}");
    // The next request gets a new child.
    let good = renderer.render(&request(&chart_of_template(VALID_TEMPLATE), json!({}))).expect("a render");
    assert_eq!(good.objects.len(), 1);
}

#[test]
fn endless_loops_end() {
    check_failure(
        "{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}",
        ChartFailureKind::Limit,
        "longer than 3 s",
    );
}

#[test]
fn memory_bombs_end() {
    // A busy machine needs time to fill the memory.
    let check = |text: &str, fault, words: &str| {
        check_failure_within(
            ChartRenderLimits { deadline: Duration::from_secs(30), ..small_limits() },
            text,
            fault,
            words,
        );
    };
    check(
        "{{ $x := \"xxxxxxxxxxxxxxxx\" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}",
        ChartFailureKind::Limit,
        "memory",
    );
    check("{{ repeat 100000000000 \"x\" }}", ChartFailureKind::Limit, "memory");
}

#[test]
fn recursions_end() {
    check_failure(
        "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        ChartFailureKind::Template,
        "nested reference name",
    );
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, small_limits());
    let endless =
        chart_of_template("{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}");
    let failure = renderer.render(&request(&endless, json!({}))).expect_err("a refusal");
    assert!(matches!(failure.fault, ChartFailureKind::Template | ChartFailureKind::Limit), "{failure}");
    let endless = chart_of_template("{{ tpl .Values.x . }}");
    let failure =
        renderer.render(&request(&endless, json!({"x": "{{ tpl .Values.x . }}"}))).expect_err("a refusal");
    assert!(matches!(failure.fault, ChartFailureKind::Template | ChartFailureKind::Limit), "{failure}");
}

#[test]
fn values_and_outputs_have_limits() {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, ChartRenderLimits { answer: 1 << 20, ..small_limits() });
    let huge = json!({"x": "y".repeat(100 << 20)});
    let failure = renderer.render(&request(&chart_of_template(VALID_TEMPLATE), huge)).expect_err("a refusal");
    assert_eq!(
        (failure.fault, failure.message.contains("more than the limit of 4194304")),
        (ChartFailureKind::Limit, true)
    );
    let wide = chart_of_template(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ repeat 2000000 \"x\" }}}\n",
    );
    let failure = renderer.render(&request(&wide, json!({}))).expect_err("a refusal");
    assert_eq!(
        failure,
        ChartFailure::new(ChartFailureKind::Limit, "the chart makes more than 1048576 bytes")
    );
    assert!(renderer.render(&request(&chart_of_template(VALID_TEMPLATE), json!({}))).is_ok());
}

/// The output of a chart is parsed outside of the child.
#[test]
fn hostile_yaml_is_refused_by_the_parser() {
    let aliases: String = (1..40)
        .map(|n| {
            format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1)
        })
        .collect();
    check_failure(&format!("a0: &a0 [x, x]\n{aliases}"), ChartFailureKind::Output, "");
    check_failure(
        &format!("a: {}{}\n", "[".repeat(200_000), "]".repeat(200_000)),
        ChartFailureKind::Output,
        "",
    );
    check_failure(&"- ".repeat(200_000), ChartFailureKind::Output, "");
}

#[test]
fn nothing_of_the_machine_is_seen() {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, small_limits());
    let fails =
        |text: &str| renderer.render(&request(&chart_of_template(text), json!({}))).expect_err("a refusal");
    assert!(fails("{{ env \"HOME\" }}").message.contains("function \"env\" not defined"));
    assert!(fails("{{ expandenv \"$HOME\" }}").message.contains("function \"expandenv\" not defined"));
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ .Files.Get \"/etc/hostname\" | quote }}, \
                b: {{ .Files.Get \"../../etc/hostname\" | quote }}, c: {{ getHostByName \"localhost\" | quote }}}\n";
    let output = renderer.render(&request(&chart_of_template(text), json!({}))).unwrap();
    assert_eq!(output.objects[0].object["data"], json!({"a": "", "b": "", "c": ""}));
}

#[test]
fn other_renders_go_on_while_one_hangs() {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, small_limits());
    let endless =
        "{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}";
    thread::scope(|scope| {
        let hanging = scope.spawn(|| renderer.render(&request(&chart_of_template(endless), json!({}))));
        let mut rendered = 0;
        while !hanging.is_finished() {
            assert!(
                renderer.render(&request(&chart_of_template(VALID_TEMPLATE), json!({"n": rendered}))).is_ok()
            );
            rendered += 1;
        }
        assert!(rendered > 20, "only {rendered}");
        assert_eq!(hanging.join().unwrap().unwrap_err().fault, ChartFailureKind::Limit);
    });
}

#[test]
fn a_failure_says_template_line_and_value() {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, small_limits());
    let said = |text: &str| {
        let failure = renderer.render(&request(&chart_of_template(text), json!({}))).expect_err("a refusal");
        failure.to_string()
    };
    assert_eq!(
        said("a: 1\nb: {{ .Values.image.tag }}\n"),
        "nil pointer evaluating interface {}.tag (.Values.image.tag) at templates/a.yaml:2:14"
    );
    assert_eq!(
        said("{{ required \"say which image\" .Values.image }}"),
        "say which image at templates/a.yaml:1:4"
    );
    assert_eq!(said("{{ if }}"), "missing value for if at templates/a.yaml:1:1");
    assert!(said("a: b: c\n").starts_with("the output is not YAML: "), "{}", said("a: b: c\n"));
}
