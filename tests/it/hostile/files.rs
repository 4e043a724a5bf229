//! Files of the team `a` beside the healthy app: what is wrong with one is an error of that file, and of what only it can say.

use std::fs;
use std::time::{Duration, Instant};

use super::arena::Arena;
use crate::support::manifests::{INSTANCE, RINGS, cluster, config_map, objects};
use crate::support::program;

/// `tutti lint` ends within this.
const LINT: Duration = Duration::from_secs(5);

/// Pushes files; the healthy app goes on, the process lives, and its log names this. `tutti lint` ends soon and names it too.
async fn check(files: &[(&str, &str)], named: &[&str]) {
    let mut arena = Arena::start(&[]).await;
    push(&mut arena, files, named).await;
}

async fn push(arena: &mut Arena, files: &[(&str, &str)], named: &[&str]) {
    let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
    arena.repository.commit("Attack", &changes);
    arena.converges().await;
    for name in named {
        arena.says(name).await;
    }
    lint(arena, named);
}

fn lint(arena: &Arena, named: &[&str]) {
    let folder = arena.folder.path().join("checkout");
    for (path, text) in arena.repository.texts(&arena.repository.tip()) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let begun = Instant::now();
    let (out, told, code) = program::run(&folder, &["lint", "."]);
    assert!(begun.elapsed() < LINT, "{:?}", begun.elapsed());
    assert_eq!(code, 2, "{told}");
    for name in named {
        assert!(told.contains(name), "{name:?} in {out}{told}");
    }
}

const OTHER_INSTANCE: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: other}\nspec: {mode: observe}\n";

#[tokio::test(flavor = "multi_thread")]
async fn second_instance() {
    check(&[("apps/a/x.yaml", OTHER_INSTANCE)], &["E1113", "apps/a/x.yaml:2:1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_instance_that_cannot_be_read() {
    check(&[("apps/a/x.yaml", &format!("{OTHER_INSTANCE}<<<<<<<\n"))], &["apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_rings() {
    let other = RINGS.replace("name: prod", "name: other");
    check(
        &[("rings.yaml", RINGS), ("apps/a/rings.yaml", &other), ("apps/a/x.yaml", "kind: Rings\nspec: [")],
        &["E1113", "apps/a/rings.yaml", "apps/a/x.yaml"],
    )
    .await;
}

/// Where there are no rings: nobody else waits for what an app's folder may say of them.
#[tokio::test(flavor = "multi_thread")]
async fn first_rings_that_cannot_be_read() {
    check(&[("apps/a/x.yaml", "kind: Rings\nspec: [")], &["apps/a/x.yaml"]).await;
    check(&[("apps/a/x.yaml", &RINGS.replace("spec: {rings", "spec: {ring"))], &["apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn project_that_cannot_be_read() {
    check(&[("apps/a/x.yaml", "kind: Project\nspec: [")], &["apps/a/x.yaml"]).await;
    let shop = "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec: {no: 1}\n";
    let projects = [("projects/shop.yaml", &*shop.replace("no: 1", "")), ("apps/a/x.yaml", shop)];
    check(&projects, &["apps/a/x.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_is_too_large() {
    let comment = format!("# {}\n", "x".repeat(1_100_000));
    let (app, instance) = (objects("team-a", "a") + &comment, OTHER_INSTANCE.to_owned() + &comment);
    check(&[("apps/a/app.yaml", &app)], &["E1101", "apps/a/app.yaml"]).await;
    check(&[("apps/a/x.yaml", &comment)], &["E1101", "apps/a/x.yaml"]).await;
    check(&[("apps/a/x.yaml", &instance)], &["E1101", "apps/a/x.yaml"]).await;
    check(&[("apps/a/app.yaml", &"# x\n".repeat(5_000_000))], &["E1101", "apps/a/app.yaml"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn link_in_the_place_of_a_file_or_folder() {
    for (path, target) in [
        ("apps/a/app.yaml", "../hello/app.yaml"),
        ("apps/a", "hello"),
        ("apps/a/x.yaml", "/etc/passwd"),
        ("apps/a/objects", "../../clusters"),
    ] {
        let mut arena = Arena::start(&[]).await;
        arena.repository.link(path, target);
        arena.converges().await;
        arena.says("E1101").await;
        arena.says(path).await;
    }
}

/// Under the name of the healthy app, with mistakes and without, before it and after it in the order of files.
#[tokio::test(flavor = "multi_thread")]
async fn app_of_the_same_name() {
    let app = objects("shop", "hello");
    for path in ["apps/a/app.yaml", "apps/team/app.yaml"] {
        for text in [&app, &app.replace("spec: {", "spec: {no: 1, ")] {
            let objects = config_map("shop", "other", "1");
            let object = path.replace("app.yaml", "objects/x.yaml");
            check(&[(path, text), (&object, &objects)], &["E2001", path, "apps/hello/app.yaml"]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_of_the_same_name() {
    let other = cluster("good").replace("good.kubeconfig", "other.kubeconfig");
    for text in [&other, &other.replace("spec: {", "spec: {no: 1, ")] {
        check(&[("apps/a/c.yaml", text)], &["E2001", "apps/a/c.yaml", "clusters/good.yaml"]).await;
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
        check(&files, &["apps/a/project.yaml", "projects/shop.yaml"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_of_another_app() {
    let other = config_map("shop", "hello", "hostile");
    for folder in ["apps/a", "apps/team"] {
        let (app, object) = (format!("{folder}/app.yaml"), format!("{folder}/objects/x.yaml"));
        check(&[(&app, &objects("team-a", "a")), (&object, &other)], &["E3091", "shop/hello", "team-a/a"])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifest_that_is_ignored() {
    let instance = INSTANCE.replace("spec: {}", "spec: {ignore: ['apps/old-*']}");
    let files = [("tutti.yaml", &*instance), ("apps/old-a/app.yaml", &*objects("team-a", "a"))];
    check(&files, &["E1209", "apps/old-a/app.yaml"]).await;
}
