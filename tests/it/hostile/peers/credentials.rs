//! A push names variables, files and Secrets that do not belong to the repository, and hosts that should get them.

use std::process::Command;

use super::super::fixture::HostileFixture;
use super::server::{HostilePeer, endless_answer};

/// A token that must not leak.
const TOKEN: &str = "of-the-operator";

fn instance(url: &str, reference: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  \
         forge: {{type: gitea, url: \"{url}\", repository: a/b, credentials: {{token: {reference}}}}}\n  \
         receivers: [{{name: door, type: gitea, secrets: [{reference}]}}]\n"
    )
}

fn set_environment(command: &mut Command) {
    command.env("OPERATOR_TOKEN", TOKEN).env("TUTTI_SECRET_TOKEN", TOKEN);
}

/// Pushes an instance; the healthy cluster continues, the log has these words, and no server got a request.
async fn check_reference(arguments: &[&str], url: Option<&str>, reference: &str, says: &[&str]) {
    let thief = HostilePeer::start(|_, _| endless_answer("200 OK")).await;
    let mut arena = HostileFixture::new().await;
    arena.start_process(arguments, set_environment);
    arena.check_healthy_app().await;
    let text = instance(url.unwrap_or(&thief.url()), reference);
    arena.repository.commit("Ask", &[("tutti.yaml", Some(&text))]);
    arena.check_healthy_app().await;
    for words in says {
        arena.until_logged(&words.replace("PORT", &thief.address.port().to_string())).await;
    }
    arena.check_healthy_app().await;
    assert_eq!(thief.request_heads(), Vec::<String>::new());
    assert!(!arena.log().contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn variable_of_the_operator_stays() {
    let says = ["--secret-env OPERATOR_TOKEN", "tutti.yaml:5:10", "tutti.yaml:6:15"];
    check_reference(&["--forge-host", "127.0.0.1"], None, "{env: OPERATOR_TOKEN}", &says).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_goes_to_no_host_that_nobody_named() {
    check_reference(
        &[],
        None,
        "{env: TUTTI_SECRET_TOKEN}",
        &["--forge-host 127.0.0.1:PORT", "tutti.yaml:5:10"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_not_sent_without_tls() {
    let arguments = ["--forge-host", "forge.invalid", "--secret-env", "OPERATOR_TOKEN"];
    let says = ["--allow-http forge.invalid"];
    check_reference(&arguments, Some("http://forge.invalid"), "{env: OPERATOR_TOKEN}", &says).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_of_the_operator_stays() {
    check_reference(&["--forge-host", "127.0.0.1"], None, "{file: /etc/passwd}", &["--secrets DIR"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn device_without_end_is_not_read() {
    check_reference(&["--forge-host", "127.0.0.1"], None, "{file: /dev/zero}", &["--secrets DIR"]).await;
    let arguments = ["--forge-host", "127.0.0.1", "--secrets", "/dev"];
    check_reference(&arguments, None, "{file: zero}", &["not a regular file"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipe_that_nobody_writes_to_holds_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reference = format!("{{file: {}}}", pipe.display());
    check_reference(&["--forge-host", "127.0.0.1"], None, &reference, &["--secrets DIR"]).await;
    let secrets = folder.path().display().to_string();
    let arguments = ["--forge-host", "127.0.0.1", "--secrets", &secrets];
    check_reference(&arguments, None, "{file: pipe}", &["not a regular file"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_of_another_namespace_stays() {
    let arguments = ["--forge-host", "127.0.0.1", "--home-kubeconfig", "good.kubeconfig"];
    let reference = "{secret: {namespace: kube-system, name: admin, key: token}}";
    check_reference(&arguments, None, reference, &["--secret-namespace kube-system"]).await;
}

/// The opposite: a token that the operator grants, to a host that the operator names.
#[tokio::test(flavor = "multi_thread")]
async fn named_forge_gets_the_token() {
    let forge = HostilePeer::start(|_, _| super::server::whole_answer("404 Not Found", "", b"{}")).await;
    let mut arena = HostileFixture::new().await;
    let text = instance(&forge.url(), "{env: TUTTI_SECRET_TOKEN}");
    arena.repository.commit("Ask", &[("tutti.yaml", Some(&text))]);
    arena.start_process(&["--forge-host", "127.0.0.1"], set_environment);
    forge.until_asked().await;
    assert!(
        forge.request_heads()[0].contains(&format!("authorization: token {TOKEN}")),
        "{:?}",
        forge.request_heads()
    );
    arena.check_healthy_app().await;
}
