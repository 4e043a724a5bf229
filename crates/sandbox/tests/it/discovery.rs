//! Discovery, legacy and aggregated, gives the same kinds.

use kube::discovery::{Discovery, Scope};

use crate::support::{instant, with};

#[tokio::test]
async fn both_forms_name_the_same_kinds() {
    let (_sandbox, client) = instant();
    let kinds = |discovery: &Discovery| {
        let mut kinds: Vec<String> = discovery
            .groups()
            .flat_map(|group| group.resources_by_stability())
            .map(|(resource, capabilities)| {
                format!(
                    "{}/{} {:?}",
                    resource.api_version,
                    resource.kind,
                    capabilities.scope == Scope::Namespaced
                )
            })
            .collect();
        kinds.sort();
        kinds
    };
    let legacy = kinds(&Discovery::new(client.clone()).run().await.unwrap());
    let aggregated = kinds(&Discovery::new(client).run_aggregated().await.unwrap());
    assert!(legacy.contains(&"apps/v1/Deployment true".to_owned()), "{legacy:?}");
    assert!(legacy.contains(&"v1/Namespace false".to_owned()), "{legacy:?}");
    assert_eq!(legacy, aggregated);
}

#[tokio::test]
async fn an_old_server_has_no_aggregated_discovery() {
    let options =
        sandbox::SandboxOptions { aggregated_discovery: false, ..sandbox::SandboxOptions::instant("old") };
    let (_sandbox, client) = with(options);
    let found = Discovery::new(client).run_aggregated().await;
    assert!(found.is_err() || found.unwrap().groups().count() == 0);
}

#[tokio::test]
async fn the_version_is_the_one_asked_for() {
    let (_sandbox, client) = instant();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}

#[tokio::test]
async fn health_is_ok() {
    let (_sandbox, client) = instant();
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "ok");
}
