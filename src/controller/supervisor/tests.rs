use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};
use serde_json::json;

use super::*;
use crate::cluster::{HomeCluster, KeyObjectKind, StoredKubeconfig};
use crate::model::DataKeyRef;

mod kubeconfigs;

struct Case {
    sandbox: Sandbox,
    rediscover: watch::Sender<u64>,
    events: mpsc::Receiver<Event>,
}

impl Case {
    async fn start() -> Self {
        let sandbox = Sandbox::new(SandboxOptions::instant("bj5"));
        let (rediscover, asked) = watch::channel(0);
        let (sender, events) = mpsc::channel(64);
        let supervisor = ClusterSupervisor {
            cluster: ClusterName::from("bj5"),
            link: ClusterLink::in_process(sandbox.service()),
            instance: "main".to_owned(),
            events: sender,
            rediscover: asked,
            first_epoch: 0,
            kubeconfig_poll_interval: ClusterSupervisor::KUBECONFIG_POLL_INTERVAL,
            permit: WritePermit::default(),
        };
        tokio::spawn(supervisor.run());
        let mut case = Self { sandbox, rediscover, events };
        assert!(matches!(case.next().await, ClusterNews::Up { .. }));
        case
    }

    fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let client = kube::Client::new(self.sandbox.service(), "default");
        Api::all_with(client, &ApiResource::from_gvk(&kind))
    }

    async fn define(&self) {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "menus.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "versions": [version],
                "names": {"plural": "menus", "singular": "menu", "kind": "Menu"},
            },
        });
        let definition: DynamicObject = serde_json::from_value(definition).expect("a definition");
        self.definitions().create(&PostParams::default(), &definition).await.expect("created");
    }

    async fn next(&mut self) -> ClusterNews {
        match self.events.recv().await {
            Some(Event::Cluster { news, .. }) => news,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_repeats_until_complete() {
    let mut case = Case::start().await;
    case.sandbox.set_down(true);
    case.rediscover.send_modify(|count| *count += 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    case.sandbox.set_down(false);
    assert!(matches!(case.next().await, ClusterNews::ApisChanged(_)));
}

#[tokio::test(start_paused = true)]
async fn inventory_finds_objects_of_unwatched_kinds() {
    let mut case = Case::start().await;
    let secrets: Api<Secret> =
        Api::namespaced(kube::Client::new(case.sandbox.service(), "default"), "default");
    let ours = json!({"metadata": {"name": "late", "labels": {"tutti.dev/managed-by": "main"}}});
    let ours: Secret = serde_json::from_value(ours).expect("a secret");
    secrets.create(&PostParams::default(), &ours).await.expect("created");
    let start = Instant::now();
    let ClusterNews::InventoryTaken(looked) = case.next().await else { panic!("no news") };
    assert_eq!(
        (looked.in_use, looked.unlisted),
        (vec![crate::model::GroupVersionKind::new("", "v1", "Secret")], vec![])
    );
    let hours = start.elapsed().as_secs() / 3600;
    assert!((12..15).contains(&hours), "{hours}");
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_is_retried_without_event() {
    let mut case = Case::start().await;
    case.define().await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    // For both requests of a discovery.
    case.sandbox.set_down(true);
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    case.sandbox.set_down(false);
    let news = tokio::time::timeout(Duration::from_secs(20), case.next()).await.expect("news");
    let ClusterNews::ApisChanged(catalog) = news else { panic!("{news:?}") };
    assert!(catalog.serves_definition("menus.example.com"));
}

#[tokio::test(start_paused = true)]
async fn api_is_gone_only_after_second_miss() {
    let mut case = Case::start().await;
    case.define().await;
    let definitions = case.definitions();
    let ClusterNews::ApisChanged(before) = case.next().await else { panic!("not served") };
    let start = Instant::now();
    definitions.delete("menus.example.com", &DeleteParams::default()).await.expect("deleted");
    let ClusterNews::ApisChanged(missing) = case.next().await else { panic!("no news") };
    let expected = ["example.com/v1", "example.com/v1/Menu"];
    assert_eq!(missing.missing().collect::<Vec<_>>(), expected);
    let known = before.capabilities(None);
    assert_eq!(missing.capabilities(Some(&known)), known, "for a moment it counts as there");
    let ClusterNews::ApisChanged(gone) = case.next().await else { panic!("no news") };
    assert!(gone.missing().next().is_none() && !gone.capabilities(None).has("example.com/v1/Menu"));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn returning_cluster_may_serve_fewer_apis_at_first() {
    let mut case = Case::start().await;
    let without = case.sandbox.backup();
    case.define().await;
    assert!(matches!(case.next().await, ClusterNews::ApisChanged(_)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    case.sandbox.set_down(true);
    assert!(matches!(case.next().await, ClusterNews::Down { .. }));
    case.sandbox.restore(&without);
    case.sandbox.set_down(false);
    let catalog = loop {
        if let ClusterNews::Up { catalog, .. } = case.next().await {
            break catalog;
        }
    };
    assert!(catalog.capabilities(None).has("example.com/v1/Menu"), "it was there before");
    let ClusterNews::ApisChanged(gone) = case.next().await else { panic!("no news") };
    assert!(gone.missing().next().is_none() && !gone.capabilities(None).has("example.com/v1/Menu"));
}

/// Uses the clock of the machine, because the kubeconfig points at a socket.
#[tokio::test]
async fn replaced_kubeconfig_in_secret_reconnects() {
    let (home, target) = (Sandbox::new(SandboxOptions::instant("home")), SandboxOptions::instant("bj5"));
    let listener = Sandbox::new(target).listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let secrets: Api<Secret> = Api::namespaced(kube::Client::new(home.service(), "default"), "default");
    let secret = |text: &str| -> Secret {
        let value = json!({"metadata": {"name": "bj5"}, "stringData": {"kubeconfig": text}});
        serde_json::from_value(value).expect("a Secret")
    };
    let wrong = listener.kubeconfig().replace(listener.token(), "hunter2");
    secrets.create(&PostParams::default(), &secret(&wrong)).await.expect("created");
    home.reset_requests();

    let (_rediscover, asked) = watch::channel(0);
    let (sender, mut events) = mpsc::channel(64);
    let at = DataKeyRef { namespace: "default".into(), name: "bj5".into(), key: "kubeconfig".into() };
    let way = HomeCluster::at(ClusterLink::in_process(home.service()));
    let supervisor = ClusterSupervisor {
        cluster: ClusterName::from("bj5"),
        link: ClusterLink::Stored(StoredKubeconfig {
            home: way,
            object_kind: KeyObjectKind::Secret,
            at,
            context: None,
        }),
        instance: "main".to_owned(),
        events: sender,
        rediscover: asked,
        first_epoch: 0,
        kubeconfig_poll_interval: Duration::from_millis(200),
        permit: WritePermit::default(),
    };
    tokio::spawn(supervisor.run());
    let mut next = async || match events.recv().await {
        Some(Event::Cluster { epoch, news, .. }) => (epoch, news),
        other => panic!("{other:?}"),
    };
    let (_, ClusterNews::Down { detail, .. }) = next().await else { panic!("it took a wrong token") };
    assert!(detail.starts_with("not allowed: ") && !detail.contains("hunter2"), "{detail}");

    let right = secret(&listener.kubeconfig());
    secrets.replace("bj5", &PostParams::default(), &right).await.expect("replaced");
    loop {
        match next().await {
            (1, ClusterNews::Up { .. }) => break,
            (1, ClusterNews::Down { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    // A watch for one second sends about five requests, and none of them changes anything.
    home.reset_requests();
    tokio::time::timeout(Duration::from_secs(1), next()).await.expect_err("nothing is new");
    let asked = home.requests();
    assert!((3..=5).contains(&asked.len()), "{asked:?}");
    assert!(asked.iter().all(|it| (it.verb.as_str(), it.name.as_str()) == ("get", "bj5")), "{asked:?}");

    // Other contexts of the kubeconfig do not matter.
    let more = format!("{}- name: other\n  context: {{cluster: other}}\n", listener.kubeconfig());
    let same = secret(&format!("{more}# Renewed.\n"));
    secrets.replace("bj5", &PostParams::default(), &same).await.expect("replaced");
    tokio::time::timeout(Duration::from_secs(1), next()).await.expect_err("nothing is new");

    let other = secret(&listener.kubeconfig().replace("127.0.0.1", "localhost"));
    secrets.replace("bj5", &PostParams::default(), &other).await.expect("replaced");
    assert!(
        matches!(next().await, (1, ClusterNews::KubeconfigChanged)),
        "before anything is asked over the new one"
    );
    assert!(matches!(next().await, (2, ClusterNews::Up { .. })), "without a word of being offline");
}

#[tokio::test(start_paused = true)]
async fn short_refusal_keeps_cluster_online() {
    let half_a_minute = Duration::from_secs(30);
    for fault in [Fault::unauthorized(), Fault::forbidden()] {
        let mut case = Case::start().await;
        let probes = || RequestMatch::any().resource("/version");
        case.sandbox.fail_next(probes(), 2, fault.clone());
        tokio::time::timeout(half_a_minute, case.next()).await.expect_err("it is there");
        case.sandbox.fail_next(probes(), 3, fault);
        let news = tokio::time::timeout(half_a_minute, case.next()).await.expect("news");
        let ClusterNews::Down { detail, attempts, .. } = news else { panic!("{news:?}") };
        assert!(detail.starts_with("not allowed: ") && attempts == 3, "{attempts} {detail}");
        assert!(matches!(case.next().await, ClusterNews::Up { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_requests_do_not_delay_probe() {
    let mut case = Case::start().await;
    case.sandbox.set_down(true);
    let rediscover = case.rediscover.clone();
    let asking = tokio::spawn(async move {
        loop {
            rediscover.send_modify(|count| *count += 1);
            tokio::time::sleep(PROBE_INTERVAL / 2).await;
        }
    });
    let start = Instant::now();
    for expected in 3..6 {
        let ClusterNews::Down { attempts, .. } = case.next().await else { panic!("not down") };
        assert_eq!(attempts, expected, "counted from the last answer");
    }
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    asking.abort();
}
