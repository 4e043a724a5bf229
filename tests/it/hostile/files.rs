//! Files of the team `a` beside the healthy app: a mistake is an error of its file, and of what depends on that file alone.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use git2::{Oid, Repository, Signature, Time};

use super::fixture::HostileFixture;
use crate::support::manifests::{INSTANCE, RINGS, cluster, config_map, objects_app};
use crate::support::program;

/// `tutti lint` ends within this time.
const LINT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pushes files; the healthy app continues, the process runs, and its log has these words. `tutti lint` ends soon and reports them too.
async fn check_files(files: &[(&str, &str)], named: &[&str]) {
    let mut arena = HostileFixture::start(&[]).await;
    push_files(&mut arena, files, named).await;
}

async fn push_files(arena: &mut HostileFixture, files: &[(&str, &str)], named: &[&str]) {
    let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
    arena.repository.commit("Attack", &changes);
    arena.check_healthy_app().await;
    for name in named {
        arena.until_logged(name).await;
    }
    lint(arena, named);
}

fn lint(arena: &HostileFixture, named: &[&str]) {
    let folder = arena.folder.path().join("checkout");
    for (path, text) in arena.repository.texts(&arena.repository.tip()) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let begun = Instant::now();
    let (out, told, code) = program::run(&folder, &["lint", "."]);
    assert!(begun.elapsed() < LINT_TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(code, 2, "{told}");
    for name in named {
        assert!(told.contains(name), "{name:?} in {out}{told}");
    }
}

const OTHER_INSTANCE: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: other}\nspec: {mode: observe}\n";

#[tokio::test(flavor = "multi_thread")]
async fn second_instance() {
    check_files(&[("apps/a/x.yaml", OTHER_INSTANCE)], &["E1113", "apps/a/x.yaml:2:1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_instance_that_cannot_be_read() {
    check_files(&[("apps/a/x.yaml", &format!("{OTHER_INSTANCE}<<<<<<<\n"))], &["apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_rings() {
    let other = RINGS.replace("name: prod", "name: other");
    check_files(
        &[("rings.yaml", RINGS), ("apps/a/rings.yaml", &other), ("apps/a/x.yaml", "kind: Rings\nspec: [")],
        &["E1113", "apps/a/rings.yaml", "apps/a/x.yaml"],
    )
    .await;
}

/// Without rings no other app depends on this file.
#[tokio::test(flavor = "multi_thread")]
async fn first_rings_that_cannot_be_read() {
    check_files(&[("apps/a/x.yaml", "kind: Rings\nspec: [")], &["apps/a/x.yaml"]).await;
    check_files(&[("apps/a/x.yaml", &RINGS.replace("spec: {rings", "spec: {ring"))], &["apps/a/x.yaml"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn project_that_cannot_be_read() {
    check_files(&[("apps/a/x.yaml", "kind: Project\nspec: [")], &["apps/a/x.yaml"]).await;
    let shop = "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec: {no: 1}\n";
    let projects = [("projects/shop.yaml", &*shop.replace("no: 1", "")), ("apps/a/x.yaml", shop)];
    check_files(&projects, &["apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_is_too_large() {
    let comment = format!("# {}\n", "x".repeat(1_100_000));
    let (app, instance) = (objects_app("team-a", "a") + &comment, OTHER_INSTANCE.to_owned() + &comment);
    check_files(&[("apps/a/app.yaml", &app)], &["E1101", "apps/a/app.yaml"]).await;
    check_files(&[("apps/a/x.yaml", &comment)], &["E1101", "apps/a/x.yaml"]).await;
    check_files(&[("apps/a/x.yaml", &instance)], &["E1101", "apps/a/x.yaml"]).await;
    check_files(&[("apps/a/app.yaml", &"# x\n".repeat(5_000_000))], &["E1101", "apps/a/app.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn link_instead_of_a_file_or_folder() {
    for (path, target) in [
        ("apps/a/app.yaml", "../hello/app.yaml"),
        ("apps/a", "hello"),
        ("apps/a/x.yaml", "/etc/passwd"),
        ("apps/a/objects", "../../clusters"),
    ] {
        let mut arena = HostileFixture::start(&[]).await;
        arena.repository.commit_link(path, target);
        arena.check_healthy_app().await;
        arena.until_logged("E1101").await;
        arena.until_logged(path).await;
    }
}

/// With the name of the healthy app, with and without mistakes, earlier and later in the order of files.
#[tokio::test(flavor = "multi_thread")]
async fn app_of_the_same_name() {
    let app = objects_app("shop", "hello");
    for path in ["apps/a/app.yaml", "apps/team/app.yaml"] {
        for text in [&app, &app.replace("spec: {", "spec: {no: 1, ")] {
            let objects = config_map("shop", "other", "1");
            let object = path.replace("app.yaml", "objects/x.yaml");
            check_files(&[(path, text), (&object, &objects)], &["E2001", path, "apps/hello/app.yaml"]).await;
        }
    }
}

/// A new process with both asks history, whatever the order of files.
#[tokio::test(flavor = "multi_thread")]
async fn app_of_the_same_name_before_a_start() {
    let mut arena = HostileFixture::new().await;
    let (app, object) = (objects_app("shop", "hello"), config_map("shop", "other", "1"));
    let changes = [("apps/a/app.yaml", Some(&*app)), ("apps/a/objects/x.yaml", Some(&*object))];
    arena.repository.commit("Attack", &changes);
    arena.start_process(&[], |_| {});
    arena.check_healthy_app().await;
    arena.until_logged("apps/a/app.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_of_the_same_name() {
    let other = cluster("good").replace("good.kubeconfig", "other.kubeconfig");
    for text in [&other, &other.replace("spec: {", "spec: {no: 1, ")] {
        check_files(&[("apps/a/c.yaml", text)], &["E2001", "apps/a/c.yaml", "clusters/good.yaml"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn project_of_the_same_name_or_namespace() {
    let project = |name: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {{namespace: shop}}\n"
        )
    };
    for name in ["shop", "a"] {
        let newcomer = project(name).replace("spec: {", "spec: {allow: {kinds: [Component]}, ");
        let files = [("projects/shop.yaml", &*project("shop")), ("apps/a/project.yaml", &*newcomer)];
        check_files(&files, &["apps/a/project.yaml", "projects/shop.yaml"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_of_another_app() {
    let other = config_map("shop", "hello", "hostile");
    for folder in ["apps/a", "apps/team"] {
        let (app, object) = (format!("{folder}/app.yaml"), format!("{folder}/objects/x.yaml"));
        let mut arena = HostileFixture::start(&[]).await;
        let changes = [(&*app, Some(objects_app("team-a", "a"))), (&*object, Some(other.clone()))];
        let changes = changes.each_ref().map(|(path, text)| (*path, text.as_deref()));
        arena.repository.commit("Attack", &changes);
        arena.check_healthy_app().await;
        arena.until_logged("team-a/a").await;
        arena.until_logged("app shop/hello already manages this object").await;
        lint(&arena, &["E3091", "shop/hello", "team-a/a"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifest_that_is_ignored() {
    let instance = INSTANCE.replace("spec: {}", "spec: {ignore: ['apps/old-*']}");
    let files = [("tutti.yaml", &*instance), ("apps/old-a/app.yaml", &*objects_app("team-a", "a"))];
    check_files(&files, &["E1209", "apps/old-a/app.yaml"]).await;
}

/// Files that are slow to parse delay nobody.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_stand_twice() {
    let keys = "a: b\n".repeat(190_000);
    check_files(&[("apps/a/x.yaml", &keys)], &["E1104", "apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_nobody_knows() {
    let fields: String = (0..60_000).map(|number| format!("  image{number}: a\n")).collect();
    let head = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: a}\nspec:\n";
    check_files(&[("apps/a/app.yaml", &(head.to_owned() + &fields))], &["E1201", "apps/a/app.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pattern_with_nested_braces() {
    let app = |pattern: &str| objects_app("team-a", "a").replace("objects/*.yaml", &format!("'{pattern}'"));
    for pattern in ["{a,".repeat(5_000), "{a,".repeat(5_000) + &"}".repeat(5_000), "**/".repeat(2_000)] {
        check_files(&[("apps/a/app.yaml", &app(&pattern))], &["E1209", "apps/a/app.yaml"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_without_end() {
    let names: String = (0..90_000).map(|number| format!("'a?{number}', ")).collect();
    let app = objects_app("team-a", "a")
        .replace("spec: {", &format!("spec: {{placement: {{clusters: {{names: [{names}]}}}}, "));
    check_files(&[("apps/a/app.yaml", &app)], &["E1108", "apps/a/app.yaml"]).await;
    let rings: String =
        (0..20_000).map(|number| format!("  - {{name: r{number}, clusters: {{}}}}\n")).collect();
    let head = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec:\n  rings:\n";
    check_files(&[("apps/a/rings.yaml", &(head.to_owned() + &rings))], &["E1108", "apps/a/rings.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anchors_and_nesting() {
    let open: String = (0..60).map(|number| format!("&a{number} [")).collect();
    let nested = format!("{open}{}{}", "x,".repeat(190_000), "]".repeat(60));
    let laughs: String =
        (1..60).map(|number| format!("- &a{number} [*a{0}, *a{0}, *a{0}]\n", number - 1)).collect();
    for text in [&nested, &format!("- &a0 [x, x]\n{laughs}"), &"[".repeat(900_000), &"- ".repeat(450_000)] {
        check_files(&[("apps/a/x.yaml", text)], &["E1108", "apps/a/x.yaml"]).await;
    }
}

/// Each step copies the result of all steps before it.
#[tokio::test(flavor = "multi_thread")]
async fn patch_that_doubles_its_object() {
    let app = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: a, namespace: team-a}\nspec:\n  workloadType: \
               Deployment\n  developLanguage: generic\n  runType: worker\n  image: 'registry.example.com/a:1'\n";
    let steps: String =
        (0..60).map(|number| format!("- {{op: copy, from: /spec, path: /spec/a{number}}}\n")).collect();
    let patch = format!("target: {{kind: Deployment}}\njson:\n{steps}");
    check_files(
        &[("apps/a/app.yaml", app), ("apps/a/layer/patches/double.yaml", &patch)],
        &["E3061", "apps/a/layer/patches/double.yaml"],
    )
    .await;
}

/// Modes of Git.
const FILE: i32 = 0o100_644;
const LINK: i32 = 0o120_000;
const FOLDER: i32 = 0o040_000;

fn folder(repository: &Repository, names: &[&str], id: Oid, mode: i32) -> Oid {
    let mut folder = repository.treebuilder(None).expect("a folder");
    for name in names {
        folder.insert(name, id, mode).expect("an entry");
    }
    folder.write().expect("written")
}

/// Commits a folder below `apps` without checking its content.
fn commit(repository: &Repository, name: &str, id: Oid) {
    let tip = repository.find_reference("refs/heads/main").and_then(|main| main.peel_to_commit());
    let tip = tip.expect("a tip");
    let root = tip.tree().expect("a tree");
    let apps = root.get_name("apps").expect("it is there").id();
    let apps = repository.find_tree(apps).expect("a tree");
    let mut apps = repository.treebuilder(Some(&apps)).expect("a folder");
    apps.insert(name, id, FOLDER).expect("an entry");
    let mut root = repository.treebuilder(Some(&root)).expect("a folder");
    root.insert("apps", apps.write().expect("written"), FOLDER).expect("an entry");
    let root = repository.find_tree(root.write().expect("written")).expect("a tree");
    let who = Signature::new("Test", "test@example.com", &Time::new(1_790_000_000, 0)).expect("a signature");
    repository.commit(Some("refs/heads/main"), &who, &who, "Attack", &root, &[&tip]).expect("a commit");
}

/// A few KiB that expand to 10^10 files. The revision is refused; running apps continue, and so does the next revision without them.
#[tokio::test(flavor = "multi_thread")]
async fn files_without_number_in_one_commit() {
    let mut arena = HostileFixture::start(&[]).await;
    let before = arena.repository.tip();
    let repository = Repository::open(arena.repository.path()).expect("it is there");
    let names: Vec<String> = (0..10).map(|number| format!("{number}.yaml")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let blob = repository.blob(b"a: 1\n").expect("a blob");
    let innermost = folder(&repository, &names, blob, FILE);
    let bomb = (0..9).fold(innermost, |id, _| folder(&repository, &names, id, FOLDER));
    commit(&repository, "bomb", bomb);
    arena.until_logged("more than 200000 files; the limit was reached in folder `apps/bomb/").await;
    arena.assert_running();
    arena.repository.reset(&before);
    arena.check_healthy_app().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn link_with_a_target_without_end() {
    let mut arena = HostileFixture::start(&[]).await;
    let repository = Repository::open(arena.repository.path()).expect("it is there");
    let mut target = repository.blob_writer(None).expect("a blob");
    let part = vec![b'/'; 1024 * 1024];
    (0..700).for_each(|_| target.write_all(&part).expect("written"));
    let link = target.commit().expect("a blob");
    commit(&repository, "a", folder(&repository, &["x.yaml", "x"], link, LINK));
    arena.check_healthy_app().await;
    arena.until_logged("E1101").await;
    arena.until_logged("apps/a/x.yaml").await;
}
