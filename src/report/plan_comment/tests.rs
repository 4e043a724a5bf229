//! Golden comments of the example repository, and comments of hostile content.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{MOST_BYTES, PlanCommentContext, plan_comment, plan_failure};
use crate::compare::{
    AppChange, AppPresence, ClusterColumn, ClusterPresence, ComparedRevision, Comparison, ComparisonCache,
    ComparisonTotals, FieldChange, FieldGroup, ObjectChange, ObjectChangeAction, ObjectCounts,
    PlacementChange, PlacementTransition, RemovalOutcome, VersionChange, WaveStep, compare, fleet_after,
};
use crate::forge::{CommitStatusState, LONGEST_DESCRIPTION};
use crate::manifest;
use crate::model::{
    AppId, ClusterName, Diagnostic, DiagnosticScope, GroupVersionKind, Location, NoCharts, ObjectId,
    Revision, Snapshot,
};
use crate::render::DiscoveredCapabilities;
use crate::report::plan_statuses;

type Texts = BTreeMap<String, String>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn example() -> Texts {
    let folder = root().join("examples/repo");
    let (mut texts, mut folders) = (Texts::new(), vec![folder.clone()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(&folder).expect("below it").display().to_string();
                    texts.insert(name, fs::read_to_string(&path).expect("a text"));
                }
            }
        }
    }
    texts
}

fn compared(base: &Texts, head: &Texts) -> Comparison {
    let snapshot = |texts: &Texts, revision: &str| Snapshot {
        revision: Revision::from(revision),
        ..Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    };
    let (base, head) = (snapshot(base, "ba5eba5eba5e"), snapshot(head, "4ead4ead4ead"));
    let mut reading = manifest::ManifestCache::default();
    let before = fleet_after(&base, &mut reading, None);
    let after = fleet_after(&head, &mut reading, Some(&before));
    let side = |fleet, snapshot| ComparedRevision {
        fleet,
        snapshot,
        charts: &NoCharts,
        discovered: DiscoveredCapabilities::new(),
    };
    compare(&side(&before, &base), &side(&after, &head), &mut ComparisonCache::default(), None)
}

fn names() -> PlanCommentContext {
    PlanCommentContext {
        prefix: "tutti".to_owned(),
        base: "main".to_owned(),
        head: "feature".to_owned(),
        url: Some("https://tutti.example.com/p/812".to_owned()),
    }
}

/// The comment equals the golden file; `UPDATE_GOLDEN=1` rewrites it. Also checks the texts of the statuses.
#[track_caller]
fn check(file: &str, change: impl FnOnce(&mut Texts), statuses: [(CommitStatusState, &str); 2]) {
    let base = example();
    let mut head = base.clone();
    change(&mut head);
    assert_ne!(base, head, "the change changes nothing");
    let plan = compared(&base, &head);
    let comment = plan_comment(&plan, &names());
    assert_whole(&comment);
    let (validate, of_plan) = plan_statuses(&plan);
    let told = [(validate.0, validate.1.as_str()), (of_plan.0, of_plan.1.as_str())];
    assert_eq!(told, statuses);
    let path = root().join("tests/fixtures/plan-comments").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, &comment).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert_eq!(comment, expected, "{}", path.display());
}

#[track_caller]
fn replace(texts: &mut Texts, path: &str, from: &str, to: &str) {
    let text = texts.get_mut(path).expect("a file");
    assert!(text.contains(from), "{path} has no {from}");
    *text = text.replace(from, to);
}

const VALID: (CommitStatusState, &str) =
    (CommitStatusState::Success, "4 apps × 4 clusters valid, 0 warnings");

#[test]
fn image_of_one_app() {
    let change = |head: &mut Texts| replace(head, "apps/shop-web/app.yaml", "web:1.4.2", "web:1.5.0");
    check("image.md", change, [VALID, (CommitStatusState::Success, "1 app, 4 clusters: ~4")]);
}

#[test]
fn new_app() {
    let change = |head: &mut Texts| {
        let text = head["apps/order-worker/app.yaml"].replace("name: order-worker", "name: mailer");
        head.insert("apps/mailer/app.yaml".to_owned(), text);
    };
    let valid = (CommitStatusState::Success, "5 apps × 4 clusters valid, 0 warnings");
    check("new-app.md", change, [valid, (CommitStatusState::Success, "1 app, 2 clusters: +2")]);
}

#[test]
fn deleted_app() {
    let change = |head: &mut Texts| {
        head.remove("apps/platform/app.yaml").expect("a file");
        head.retain(|path, _| !path.starts_with("apps/platform/"));
    };
    let valid = (CommitStatusState::Success, "3 apps × 4 clusters valid, 0 warnings");
    check(
        "removed-app.md",
        change,
        [valid, (CommitStatusState::Success, "1 app, 4 clusters: -16 (16 deletes)")],
    );
}

#[test]
fn layer_of_one_zone() {
    let change = |head: &mut Texts| {
        replace(
            head,
            "templates/cluster/gz/values.yaml",
            "http://proxy.gz.example.com:3128",
            "http://proxy2.gz.example.com:3128",
        );
    };
    check("layer.md", change, [VALID, (CommitStatusState::Success, "2 apps, 2 clusters: ~5")]);
}

#[test]
fn error() {
    let change = |head: &mut Texts| {
        replace(head, "apps/shop-web/app.yaml", "  image: registry.example.com/shop/web:1.4.2\n", "");
        replace(head, "apps/order-worker/app.yaml", "replicas: 3", "replicas: 4");
    };
    let failed = |text| (CommitStatusState::Failure, text);
    check(
        "error.md",
        change,
        [
            failed("apps/shop-web: `image` is missing (apps/shop-web/app.yaml:6)"),
            failed("1 error: 1 app not rendered"),
        ],
    );
}

#[test]
fn secrets_are_in_no_comment() {
    let base = example();
    let mut head = base.clone();
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: db, namespace: platform}}\nstringData: {{password: {value}}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: db, namespace: platform}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
             template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: db, image: db:1, env: [{{name: P, value: {value}}}]}}]}}}}\n"
        )
    };
    let mut before = base;
    before.insert("apps/platform/objects/secret.yaml".to_owned(), secret("canary-one"));
    head.insert("apps/platform/objects/secret.yaml".to_owned(), secret("canary-two"));
    for (before, after) in [(&before, &head), (&example(), &head), (&head, &example())] {
        let comment = plan_comment(&compared(before, after), &names());
        assert!(comment.contains("Secret platform/db"), "{comment}");
        assert!(!comment.contains("canary") && !comment.contains("Y2FuYXJ5"), "{comment}");
    }
}

/// The comment is short enough, and only markup of tutti has an effect.
#[track_caller]
fn assert_whole(comment: &str) {
    assert!(comment.len() <= MOST_BYTES, "{} bytes", comment.len());
    assert!(comment.starts_with("<!-- tutti:plan v1 prefix="), "no marker");
    let mut fence: Option<usize> = None;
    let mut columns = None;
    let mut folds = 0_i32;
    for (number, line) in comment.lines().enumerate() {
        let is_harmful = |letter: char| {
            letter.is_control()
                || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!line.contains(is_harmful), "line {number}: {line:?}");
        let run = line.trim_start().chars().take_while(|letter| *letter == '`').count();
        let is_indented = line.len() - line.trim_start().len() > 3;
        match fence {
            Some(open) => {
                if !is_indented && run >= open && line.trim().chars().all(|letter| letter == '`') {
                    fence = None;
                }
                continue;
            }
            None if run >= 3 => {
                fence = Some(run);
                continue;
            }
            None => {}
        }
        assert!(!line.trim_start().starts_with("~~~"), "line {number} opens a fence: {line}");
        let plain = outside_code(line);
        if number > 0 {
            folds += plain.matches("<details>").count() as i32 - plain.matches("</details>").count() as i32;
            let mut rest = plain.clone();
            for own in ["<details>", "</details>", "<summary>", "</summary>", "<b>", "</b>"] {
                rest = rest.replace(own, "");
            }
            assert!(!rest.contains('<'), "line {number} has HTML: {line}");
        }
        let mut letters = plain.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_mention = letter == '@' && letters.peek().is_some_and(|next| next.is_alphanumeric());
            assert!(!is_mention, "line {number} mentions somebody: {line}");
        }
        assert!(!plain.contains("]("), "line {number} has a link: {line}");
        match (line.starts_with('|'), columns) {
            (true, None) => columns = Some(bars(&plain)),
            (true, Some(known)) => assert_eq!(bars(&plain), known, "line {number}: {line}"),
            (false, _) => columns = None,
        }
    }
    assert_eq!(fence, None, "a fence does not end");
    assert_eq!(folds, 0, "a fold does not end");
}

/// A line without code spans, links of tutti and escaped characters.
#[track_caller]
fn outside_code(line: &str) -> String {
    let line = line.replace("](https://tutti.example.com/p/812)", "]");
    let (mut plain, mut in_code) = (String::new(), false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !in_code => _ = letters.next(),
            '`' => in_code = !in_code,
            letter if !in_code => plain.push(letter),
            _ => {}
        }
    }
    assert!(!in_code, "a code span does not end: {line}");
    plain
}

fn bars(plain: &str) -> usize {
    plain.matches('|').count()
}

/// The same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        // Steele and Vigna, "Computationally easy, spectrally good multipliers".
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 36] = [
            "```",
            "````\n",
            "\n```\n",
            "`",
            "``",
            "~~~",
            "\n~~~\n",
            "@all",
            " @li ",
            "<script>alert(1)</script>",
            "<!-- ",
            " -->",
            "</details>",
            "<details>",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{1b}[31m",
            "\0",
            "\u{85}",
            "\u{2028}",
            "|",
            "\\",
            "\\|",
            "[x](http://evil.example.com)",
            "![x](http://evil.example.com/x.png)",
            "\r\n",
            "#1",
            "$$x$$",
            "**",
            "> ",
            "\n---\n",
            "日本語",
            "&lt;",
            "https://evil.example.com",
            "plain",
        ];
        let pieces = self.below(5);
        let mut text: String = (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect();
        if self.below(40) == 0 {
            text = text.repeat(500);
        }
        text
    }

    fn list<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    fn maybe<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| one(self))
    }

    fn cluster(&mut self) -> ClusterName {
        ClusterName::from(self.text().as_str())
    }

    fn object_id(&mut self) -> ObjectId {
        let (kind, namespace, name) = (self.text(), self.text(), self.text());
        ObjectId::new("", &kind, Some(&namespace), &name)
    }

    fn field(&mut self) -> FieldChange {
        let path = self.text();
        let lines = match self.below(3) {
            0 => self.list(6, |it| format!("{}{}", ["-", "+", " ", "@@"][it.below(4)], it.text())),
            _ => Vec::new(),
        };
        let (before, after) = (self.maybe(Self::text), self.maybe(Self::text));
        FieldChange { place: path.clone(), path, before, after, lines, set_by: self.maybe(Self::text) }
    }

    fn object(&mut self, most: usize) -> ObjectChange {
        const ACTIONS: [ObjectChangeAction; 6] = [
            ObjectChangeAction::Delete,
            ObjectChangeAction::Create,
            ObjectChangeAction::Rename,
            ObjectChangeAction::Move,
            ObjectChangeAction::Change,
            ObjectChangeAction::Orphan,
        ];
        let action = ACTIONS[self.below(ACTIONS.len())];
        ObjectChange {
            object: self.object_id(),
            kind: GroupVersionKind::new(&self.text(), &self.text(), &self.text()),
            action,
            was: self.maybe(Self::object_id),
            from: self.maybe(|it| AppId::new(&it.text(), &it.text())),
            fate: self.maybe(|it| match it.below(3) {
                0 => RemovalOutcome::Deleted,
                1 => RemovalOutcome::WaitsForApproval(it.text()),
                _ => RemovalOutcome::Kept(it.text()),
            }),
            clusters: self.list(most, Self::cluster),
            fields: self.list(3, |it| FieldGroup {
                clusters: it.list(3, Self::cluster),
                fields: it.list(most, Self::field),
            }),
            more: self.below(3),
            body: self.maybe(Self::text),
        }
    }

    fn app(&mut self, most: usize) -> AppChange {
        let on = self.list(most, |it| {
            let counts = ObjectCounts { created: it.below(3), changed: it.below(3), deleted: it.below(3) };
            (it.cluster(), counts)
        });
        AppChange {
            app: AppId::new(&self.text(), &self.text()),
            state: [AppPresence::New, AppPresence::Removed, AppPresence::Changed][self.below(3)],
            held: self.maybe(|_| "paused"),
            on: on.into_iter().collect(),
            unchanged: self.list(2, Self::cluster),
            broken: self.list(2, Self::cluster),
            mended: self.list(2, Self::cluster),
            remaining: self.list(2, Self::cluster),
            versions: self.list(3, |it| VersionChange {
                before: it.maybe(Self::text),
                after: it.maybe(Self::text),
                clusters: it.list(3, Self::cluster),
            }),
            runs: BTreeMap::new(),
            placement: self.list(3, |it| PlacementChange {
                cluster: it.cluster(),
                before: it.maybe(|_| 1),
                after: it.maybe(|_| 2),
                kind: [PlacementTransition::Comes, PlacementTransition::Stays, PlacementTransition::Goes]
                    [it.below(3)],
                why: it.text(),
            }),
            objects: self.list(most, |it| it.object(most)),
            waves: self.list(4, |it| WaveStep {
                name: it.text(),
                clusters: it.list(3, Self::cluster),
                confirm: it.below(2) == 0,
                soak: it.maybe(|it| it.below(10_000) as u64),
            }),
        }
    }

    fn mistake(&mut self) -> Diagnostic {
        let scope = DiagnosticScope::Target(AppId::new(&self.text(), &self.text()), self.cluster());
        Diagnostic::error("E1203", self.text(), scope).at(Location::new(&self.text(), 1, 2)).help(self.text())
    }

    /// `most`: the bound of each list.
    fn plan(&mut self, most: usize) -> Comparison {
        let apps = self.list(most, |it| it.app(most.min(8)));
        let mut clusters: Vec<ClusterName> = apps.iter().flat_map(|app| app.on.keys().cloned()).collect();
        clusters.dedup();
        let column = |name: ClusterName| ClusterColumn {
            name,
            ring: self.maybe(Self::text),
            state: [ClusterPresence::Same, ClusterPresence::New, ClusterPresence::Gone][self.below(3)],
        };
        let clusters = clusters.into_iter().map(column).collect();
        Comparison {
            base: Revision::from(self.text().as_str()),
            head: Revision::from(self.text().as_str()),
            clusters,
            apps,
            errors: self.list(most, Self::mistake),
            known_errors: self.list(most, Self::mistake),
            warnings: self.list(most, Self::mistake),
            totals: ComparisonTotals::default(),
            renders: 0,
            awaited: self.below(2),
        }
    }
}

#[test]
fn hostile_comment_stays_well_formed() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let most = [3, 12, 60][random.below(3)];
        let plan = random.plan(most);
        let names =
            PlanCommentContext { prefix: random.text(), base: random.text(), head: random.text(), ..names() };
        let comment = plan_comment(&plan, &names);
        assert_whole(&comment);
        assert_eq!(comment, plan_comment(&plan, &names), "seed {seed}");
        let failure = plan_failure(&names, &plan.head, &random.text(), Some(&random.text()));
        assert_whole(&failure);
        let (validate, of_plan) = plan_statuses(&plan);
        for (_, text) in [validate, of_plan] {
            assert!(text.chars().count() <= LONGEST_DESCRIPTION, "{text}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}

/// 5,000 apps with ten deletes and long names each, and 3,000 errors: the required sections stay.
#[test]
fn large_plan_keeps_summary_deletes_and_errors() {
    let mut random = Random(7);
    let name = |prefix: &str, number: usize| format!("{prefix}-{number}-{}", "x".repeat(100));
    let app = |number: usize| {
        let clusters: Vec<ClusterName> =
            (0..10).map(|cluster| ClusterName::from(name("cluster", cluster).as_str())).collect();
        let object = |number: usize| ObjectChange {
            object: ObjectId::new("", "ConfigMap", Some(&name("namespace", number)), &name("map", number)),
            action: ObjectChangeAction::Delete,
            fate: Some(RemovalOutcome::Deleted),
            clusters: clusters.clone(),
            ..Random(number as u64).object(3)
        };
        AppChange {
            app: AppId::new(&name("namespace", number), &name("app", number)),
            on: clusters
                .iter()
                .map(|name| (name.clone(), ObjectCounts { created: 0, changed: 0, deleted: 10 }))
                .collect(),
            objects: (0..10).map(object).collect(),
            ..Random(number as u64).app(1)
        }
    };
    let mut plan = random.plan(1);
    plan.apps = (0..5000).map(app).collect();
    plan.errors = (0..3000)
        .map(|number| {
            let scope = DiagnosticScope::App(AppId::new("shop", &name("app", number)));
            Diagnostic::error("E1203", "image is required ".repeat(50) + &number.to_string(), scope)
                .at(Location::new(&name("apps", number), 1, 1))
                .help("write one ".repeat(50))
        })
        .collect();
    let comment = plan_comment(&plan, &names());
    assert_whole(&comment);
    for words in [
        "**3000 errors**",
        "500000 to delete",
        "**500000 deletes**",
        " more objects: ",
        "#### 3000 errors",
        "Left out",
    ] {
        assert!(comment.contains(words), "no {words}");
    }
}

#[test]
fn marker_depends_on_the_prefix_only() {
    let check = |prefix: &str, expected: &str| {
        let names = PlanCommentContext { prefix: prefix.to_owned(), ..PlanCommentContext::default() };
        assert_eq!(names.marker(), expected);
    };
    check("tutti", "<!-- tutti:plan v1 prefix=tutti -->");
    check("team/b", "<!-- tutti:plan v1 prefix=team/b -->");
    check("x --> y", "<!-- tutti:plan v1 prefix=x-y -->");
}

#[test]
fn every_golden_comment_is_checked() {
    let folder = root().join("tests/fixtures/plan-comments");
    let mut files: Vec<String> = fs::read_dir(Path::new(&folder))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, ["error.md", "image.md", "layer.md", "new-app.md", "removed-app.md"]);
}
