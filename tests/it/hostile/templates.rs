//! Templates that use too much of something.

use super::fixture::HostileFixture;
use crate::support::manifests::INSTANCE;
use crate::support::program;

/// What the template does, its text, and the code and line of its error.
struct HostileTemplate(&'static str, &'static str, &'static str, u32);

const DOUBLES_A_TEXT: HostileTemplate = HostileTemplate(
    "doubles-a-text",
    "{% set ns = namespace(t='a') %}\n{% for i in range(40) %}\n{% set ns.t = ns.t ~ ns.t %}\n{% endfor %}\n",
    "E3008",
    3,
);
const ADDS_A_TEXT: HostileTemplate = HostileTemplate(
    "adds-a-text",
    "{% set ns = namespace(t='a') %}\n{% for i in range(40) %}\n{% set ns.t = ns.t + ns.t %}\n{% endfor %}\n",
    "E3008",
    3,
);
const DOUBLES_A_LIST: HostileTemplate = HostileTemplate(
    "doubles-a-list",
    "{% set ns = namespace(t=range(100000) | list) %}\n{% for i in range(40) %}\n{% set ns.t = (ns.t + ns.t) | list %}\n{% endfor %}\n",
    "E3008",
    3,
);
const KEEPS_TEXTS: HostileTemplate = HostileTemplate(
    "keeps-texts",
    "{% set ns = namespace(t=[]) %}\n{% for i in range(40) %}\n{% set ns.t = ns.t + [('a' * 90000000) ~ i] %}\n{% endfor %}\n",
    "E3008",
    3,
);
const NESTS_LISTS: HostileTemplate = HostileTemplate(
    "nests-lists",
    "{% set ns = namespace(t=1) %}\n{% for i in range(50000) %}{% set ns.t = [ns.t] %}{% endfor %}\n\n{{ ns.t }}\n",
    "E3009",
    4,
);
const NESTS_MAPS: HostileTemplate = HostileTemplate(
    "nests-maps",
    "{% set ns = namespace(t=1) %}\n{% for i in range(50000) %}{% set ns.t = {'a': ns.t} %}{% endfor %}\n\n{{ ns.t }}\n",
    "E3009",
    4,
);
const FILTERS_LONG_TEXTS: HostileTemplate = HostileTemplate(
    "filters-long-texts",
    "a: 1\n{% for i in range(90000) %}\n{% set x = ('a' * 9000000) | upper %}\n{% endfor %}\n",
    "E3007",
    3,
);
const SORTS_LONG_LISTS: HostileTemplate = HostileTemplate(
    "sorts-long-lists",
    "{% for i in range(90000) %}\n\n{% set x = range(100000) | sort(reverse=true) | length %}\n{% endfor %}\n",
    "E3007",
    3,
);
const FORMATS_WIDELY: HostileTemplate =
    HostileTemplate("formats-widely", "a: 1\nb: {{ '%999999999d' | format(1) }}\n", "E30", 2);
const COLLECTS_TEXT: HostileTemplate = HostileTemplate(
    "collects-text",
    "{% set line %}\n{% for i in range(90000) %}\n{% for j in range(10) %}TEXT{% endfor %}\n{% endfor %}\n{% endset %}\n",
    "E3008",
    3,
);
const MACRO_COLLECTS_TEXT: HostileTemplate = HostileTemplate(
    "macro-collects-text",
    "{% macro more(n) %}\n{% if n %}{{ more(n - 1) ~ more(n - 1) }}TEXT{% endif %}\n{% endmacro %}\n{% set x = more(50) %}\n",
    "E3",
    2,
);
const MACRO_CALLS_ITSELF: HostileTemplate = HostileTemplate(
    "macro-calls-itself",
    "{% macro more(n) %}\n{{ more(n + 1) }}\n{% endmacro %}\n{{ more(1) }}\n",
    "E3003",
    2,
);
const COMPUTES_WHAT_IS_CONSTANT: HostileTemplate = HostileTemplate(
    "computes-what-is-constant",
    "ring: {{ 'a' * 90000000 ~ 'b' * 90000000 ~ 'c' * 90000000 ~ 'd' * 90000000 ~ 'ring' }}\n",
    "E3008",
    1,
);
const WRITES_MANY_VALUES: HostileTemplate =
    HostileTemplate("writes-many-values", "a:\n{{ '- 1\\n' * 2500000 }}\n", "E3006", 2);
const ALL: [HostileTemplate; 14] = [
    DOUBLES_A_TEXT,
    ADDS_A_TEXT,
    DOUBLES_A_LIST,
    KEEPS_TEXTS,
    NESTS_LISTS,
    NESTS_MAPS,
    FILTERS_LONG_TEXTS,
    SORTS_LONG_LISTS,
    FORMATS_WIDELY,
    COLLECTS_TEXT,
    MACRO_COLLECTS_TEXT,
    MACRO_CALLS_ITSELF,
    COMPUTES_WHAT_IS_CONSTANT,
    WRITES_MANY_VALUES,
];

impl HostileTemplate {
    fn template(&self) -> String {
        self.1.replace("TEXT", &"text ".repeat(1000))
    }

    /// An app with the template as its only file.
    fn files(&self) -> [(String, String); 2] {
        let name = self.0;
        let manifest = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}, namespace: evil}}\n\
             spec: {{files: [objects/*]}}\n"
        );
        [
            (format!("apps/{name}/app.yaml"), manifest),
            (format!("apps/{name}/objects/x.yaml.j2"), self.template()),
        ]
    }

    fn path(&self) -> String {
        format!("apps/{}/objects/x.yaml.j2:", self.0)
    }

    /// A line of the text has its error and place.
    fn check(&self, text: &str, place: &str) {
        // On a busy machine the time limit comes before the memory limit.
        let is_told =
            |line: &str| [self.2, "E3007"].iter().any(|code| line.contains(code)) && line.contains(place);
        assert!(text.lines().any(is_told), "{} at {place} is not told:\n{text}", self.2);
    }

    /// Its path and line.
    fn place(&self) -> String {
        format!("{}{}", self.path(), self.3)
    }
}

fn push_templates(arena: &HostileFixture, rows: &[&HostileTemplate]) {
    let files: Vec<(String, String)> = rows.iter().flat_map(|row| row.files()).collect();
    let changes: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    arena.repository.commit("Add something hostile", &changes);
}

async fn check_templates(rows: &[&HostileTemplate]) {
    let mut arena = HostileFixture::start(&[]).await;
    push_templates(&arena, rows);
    // Beside many others the time limit may come at an earlier line.
    let is_busy = rows.len() > 3 || arena.is_busy();
    let place = |row: &&HostileTemplate| if is_busy { row.path() } else { row.place() };
    for row in rows {
        arena.until_logged(&place(row)).await;
    }
    arena.check_healthy_app().await;
    let log = arena.log();
    for row in rows {
        row.check(&log, &place(row));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_doubled_ends_its_app_alone() {
    check_templates(&[&DOUBLES_A_TEXT, &ADDS_A_TEXT]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_lists_and_texts_end_their_apps_alone() {
    check_templates(&[&DOUBLES_A_LIST, &KEEPS_TEXTS, &COMPUTES_WHAT_IS_CONSTANT]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_values_end_their_apps_alone() {
    check_templates(&[&NESTS_LISTS, &NESTS_MAPS]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_filters_end_their_app_alone() {
    check_templates(&[&FILTERS_LONG_TEXTS]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_sorts_end_their_app_alone() {
    check_templates(&[&SORTS_LONG_LISTS]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_formats_end_their_app_alone() {
    check_templates(&[&FORMATS_WIDELY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collected_text_ends_its_app_alone() {
    check_templates(&[&COLLECTS_TEXT, &MACRO_COLLECTS_TEXT, &MACRO_CALLS_ITSELF]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_at_once_end_their_apps_alone() {
    check_templates(&ALL.iter().collect::<Vec<_>>()).await;
}

/// A new process does not know which templates are slow.
#[tokio::test(flavor = "multi_thread")]
async fn restart_beside_many_slow_templates_holds_up_nobody() {
    let mut arena = HostileFixture::start(&[]).await;
    let files: Vec<(String, String)> = (0..20)
        .flat_map(|number| {
            FILTERS_LONG_TEXTS.files().map(|(path, text)| {
                let name = format!("aaa-{number}");
                (path.replace(FILTERS_LONG_TEXTS.0, &name), text.replace(FILTERS_LONG_TEXTS.0, &name))
            })
        })
        .collect();
    let changes: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    arena.repository.commit("Add many slow templates", &changes);
    arena.until_logged("evil/aaa-19").await;
    arena.restart(&[]);
    arena.check_healthy_app().await;
}

/// Shipped templates are rendered in the main process; a repository may have a folder of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn folder_named_like_shipped_templates_is_limited_too() {
    let mut arena = HostileFixture::start(&[]).await;
    let [(_, manifest), (_, template)] = DOUBLES_A_TEXT.files();
    let manifest = manifest.replace("objects/*", "x.yaml.j2");
    let files =
        [("shipped/app.yaml", Some(manifest.as_str())), ("shipped/x.yaml.j2", Some(template.as_str()))];
    arena.repository.commit("Add a folder", &files);
    arena.until_logged("shipped/x.yaml.j2:3").await;
    arena.check_healthy_app().await;
}

/// Its output would be parsed in the main process.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_values_end_their_app_alone() {
    check_templates(&[&WRITES_MANY_VALUES]).await;
}

/// A corrected commit is rendered at once.
#[tokio::test(flavor = "multi_thread")]
async fn mended_template_is_applied() {
    let mut arena = HostileFixture::start(&[]).await;
    push_templates(&arena, &[&FILTERS_LONG_TEXTS]);
    arena.until_logged(&FILTERS_LONG_TEXTS.path()).await;
    let [_, (path, _)] = FILTERS_LONG_TEXTS.files();
    let mended = "apiVersion: v1\nkind: Namespace\nmetadata: {name: mended-{{ cluster.name }}}\n";
    arena.repository.commit("Mend", &[(&path, Some(mended))]);
    arena.until_object_exists("Namespace", "mended-good").await;
}

/// Lint of a checkout.
#[test]
fn lint_of_hostile_checkout_names_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = crate::support::manifests::cluster("good");
    let mut files =
        vec![("tutti.yaml".to_owned(), INSTANCE.to_owned()), ("clusters/good.yaml".to_owned(), cluster)];
    files.extend([DOUBLES_A_TEXT, NESTS_LISTS].iter().flat_map(HostileTemplate::files));
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let (_, errors, code) = program::run(folder.path(), &["lint", "."]);
    assert_eq!(code, 2, "{errors}");
    for row in [DOUBLES_A_TEXT, NESTS_LISTS] {
        assert!(errors.contains(&row.path()), "{errors}");
        assert!([row.2, "E3007"].iter().any(|code| errors.contains(code)), "{errors}");
    }
}
