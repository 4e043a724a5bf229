//! Clusters with a kubeconfig file. These tests use the clock of the machine, because they use sockets and programs.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

struct Case {
    folder: TempDir,
    news: mpsc::Receiver<Event>,
    _rediscover: watch::Sender<u64>,
}

impl Case {
    /// `kubeconfig`: its text, given its folder.
    fn start(kubeconfig: impl FnOnce(&TempDir) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("config"), kubeconfig(&folder)).expect("a file");
        let (_rediscover, asked) = watch::channel(0);
        let (events, news) = mpsc::channel(64);
        let path = folder.path().join("config");
        let supervisor = ClusterSupervisor {
            cluster: ClusterName::from("bj1"),
            link: ClusterLink::Kubeconfig { path, context: None },
            instance: "main".to_owned(),
            events,
            rediscover: asked,
            first_epoch: 0,
            kubeconfig_poll_interval: ClusterSupervisor::KUBECONFIG_POLL_INTERVAL,
            permit: WritePermit::default(),
        };
        tokio::spawn(supervisor.run());
        Self { folder, news, _rediscover }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn next(&mut self) -> ClusterNews {
        match self.news.recv().await {
            Some(Event::Cluster { news, .. }) => news,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn kubeconfig_is_read_again_after_first_refusal() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
    let listener = sandbox.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let mut case = Case::start(|_| listener.kubeconfig());
    assert!(matches!(case.next().await, ClusterNews::Up { .. }));
    let by_name = listener.kubeconfig().replace("127.0.0.1", "localhost");
    std::fs::write(case.file("config"), by_name).expect("a file");
    sandbox.fail_next(RequestMatch::any().resource("/version"), 1, Fault::unauthorized());
    assert!(matches!(case.next().await, ClusterNews::KubeconfigChanged));
    assert!(matches!(case.next().await, ClusterNews::Up { .. }));
}

#[tokio::test]
async fn previous_kubeconfig_is_used_without_home_cluster() {
    let home = Sandbox::new(SandboxOptions::instant("home"));
    let target = Sandbox::new(SandboxOptions::instant("bj5"));
    let listener = target.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let secrets: Api<Secret> = Api::namespaced(kube::Client::new(home.service(), "default"), "default");
    let value = json!({"metadata": {"name": "bj5"}, "stringData": {"kubeconfig": listener.kubeconfig()}});
    let secret = serde_json::from_value(value).expect("a Secret");
    secrets.create(&PostParams::default(), &secret).await.expect("created");
    let (_rediscover, asked) = watch::channel(0);
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
        events: mpsc::channel(1).0,
        rediscover: asked,
        first_epoch: 0,
        kubeconfig_poll_interval: ClusterSupervisor::KUBECONFIG_POLL_INTERVAL,
        permit: WritePermit::default(),
    };
    let before = supervisor.open(None, None).await.expect("a client");
    home.set_down(true);
    assert!(supervisor.open(None, None).await.is_err(), "nobody says how it is reached");
    for unanswered in [None, Some(before.clone())] {
        let again = supervisor.open(unanswered, Some(&before)).await.expect("a client");
        again.probe().await.expect("the cluster itself answers");
    }
}

#[tokio::test]
async fn unreachable_cluster_runs_its_plug_in_once() {
    let mut case = Case::start(|folder| {
        let runs = folder.path().join("runs");
        let script = format!("echo run >> {}; echo 'status: {{token: opaque}}'", runs.display());
        let version = "client.authentication.k8s.io/v1";
        let exec = json!({"apiVersion": version, "command": "sh", "args": ["-c", script]});
        let context = json!({"name": "one", "context": {"cluster": "one", "user": "me"}});
        let text = json!({
            "current-context": "one", "contexts": [context],
            "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "me", "user": {"exec": exec}}],
        });
        text.to_string()
    });
    for expected in 1..=3 {
        let ClusterNews::Down { attempts, .. } = case.next().await else { panic!("nobody is there") };
        assert_eq!(attempts, expected);
    }
    assert_eq!(std::fs::read_to_string(case.file("runs")).expect("it has run"), "run\n");
}
