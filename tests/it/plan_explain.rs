//! `tutti plan --explain` for new objects whose kind another app defines.

use crate::support::manifests::{definition, objects_app};
use crate::support::program::CommandFixture;

const TILL_FILE: &str = "apps/shop/objects/till.yaml";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_explains_objects_of_kinds_from_other_apps() {
    let till = "apiVersion: x.io/v1\nkind: Till\nmetadata: {name: a}\nspec: {place: door}\n";
    let (kinds, shop) = (objects_app("default", "kinds"), objects_app("default", "shop"));
    let tills = definition("x.io", "v1", "Till");
    let files = [
        ("apps/kinds/app.yaml", &*kinds),
        ("apps/kinds/objects/tills.yaml", &*tills),
        ("apps/shop/app.yaml", &*shop),
        (TILL_FILE, till),
    ];
    let stage = CommandFixture::new(&files).await;
    let (said, told, code) = stage.run(&["run", "--once"]).await;
    assert_eq!(code, 0, "{said}{told}");
    stage.repository.commit("After", &[(TILL_FILE, Some(&till.replace("door", "wall")))]);
    let (said, told, _) = stage.run(&["plan", "--explain"]).await;
    let expected = format!("spec.place: \"door\" → \"wall\"  {TILL_FILE}:4 (app)");
    assert!(said.contains(&expected), "{said}{told}");
}
