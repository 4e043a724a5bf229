//! One cluster: five processes on loopback, its files in one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::certificates::{self, Certificates};
use crate::client::JsonClient;
use crate::process::{TierProcess, wait_until_ready};
use crate::{AuditedRequest, ControlPlane, Error, TierPrograms, audit, go_module, kubeconfig, node, ports};

/// Generous: four clusters share two cores with a compiler at times.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running cluster. Dropping it stops its processes.
#[derive(Debug)]
pub struct LiveCluster {
    name: String,
    server: String,
    version: String,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    client: JsonClient,
    apiserver: TierProcess,
    /// In the order they started: etcd, controller manager, scheduler, kwok.
    others: Vec<TierProcess>,
}

impl LiveCluster {
    /// Starts the processes and waits until pods can be scheduled.
    pub(crate) async fn start(
        name: &str,
        folder: &Path,
        programs: &TierPrograms,
        control_plane: &ControlPlane,
    ) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        let certificates = certificates::write(folder)?;
        let (etcd_port, peer_port, server_port) = (ports::free()?, ports::free()?, ports::free()?);
        let server = format!("https://127.0.0.1:{server_port}");
        let kubeconfig = write_kubeconfig(name, &server, folder, &certificates)?;
        let config = text(&kubeconfig);

        let etcd = TierProcess::new("etcd", &programs.etcd, folder, etcd_arguments(etcd_port, peer_port));
        let apiserver = TierProcess::new(
            "kube-apiserver",
            &control_plane.apiserver,
            folder,
            [
                apiserver_arguments(folder, etcd_port, server_port, &server),
                audit::apiserver_arguments(folder)?,
            ]
            .concat(),
        );
        let arguments = controller_manager_arguments(folder, &config);
        let controller_manager =
            TierProcess::new("kube-controller-manager", &control_plane.controller_manager, folder, arguments);
        let arguments =
            ["--kubeconfig", &config, "--leader-elect=false", "--secure-port=0"].map(str::to_owned).to_vec();
        let scheduler = TierProcess::new("kube-scheduler", &control_plane.scheduler, folder, arguments);
        let kwok = TierProcess::new("kwok", &programs.kwok, folder, kwok_arguments(&config)?);

        let mut cluster = Self {
            name: name.to_owned(),
            client: JsonClient::with_certificates(&server, &certificates)?,
            server,
            version: String::new(),
            kubeconfig,
            kubectl: programs.kubectl.clone(),
            apiserver,
            others: vec![etcd, controller_manager, scheduler, kwok],
        };
        cluster.start_processes().await?;
        Ok(cluster)
    }

    async fn start_processes(&mut self) -> Result<(), Error> {
        let [etcd, clients @ ..] = self.others.as_slice() else { return Ok(()) };
        etcd.start()?;
        self.apiserver.start()?;
        self.ready(&[&self.apiserver, etcd]).await?;
        for process in clients {
            process.start()?;
        }
        for number in 1..=node::NODE_COUNT {
            self.client.post("/api/v1/nodes", &node::node_object(number)).await?;
        }
        let processes: Vec<_> = self.processes().collect();
        wait_until_ready(&format!("usable nodes of {}", self.name), START_TIMEOUT, &processes, async || {
            self.nodes_usable().await
        })
        .await?;
        self.service_account("default").await?;
        let version = self.client.get("/version").await?;
        self.version = version["gitVersion"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    async fn ready(&self, processes: &[&TierProcess]) -> Result<(), Error> {
        let probe = async || self.client.get("/readyz").await.map(drop).map_err(|error| error.to_string());
        wait_until_ready(&format!("/readyz of {}", self.name), START_TIMEOUT, processes, probe).await
    }

    async fn nodes_usable(&self) -> Result<(), String> {
        let list = self.client.get("/api/v1/nodes").await.map_err(|error| error.to_string())?;
        let nodes = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match nodes.iter().filter(|node| node::is_usable(node)).count() {
            node::NODE_COUNT => Ok(()),
            count => Err(format!("{count} of {} nodes", node::NODE_COUNT)),
        }
    }

    /// The controller manager makes it a moment after the namespace; a bare pod is refused before.
    async fn service_account(&self, namespace: &str) -> Result<(), Error> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let probe = async || self.client.get(&path).await.map(drop).map_err(|error| error.to_string());
        wait_until_ready(
            &format!("the service account of {namespace} in {}", self.name),
            START_TIMEOUT,
            &[],
            probe,
        )
        .await
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `https://127.0.0.1:<port>`, the same port for the cluster's whole life.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// As the API server reports it: `v1.36.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The administrator's kubeconfig file, certificates embedded; its context is called `admin`.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program `kubectl` of this cluster.
    pub fn kubectl_program(&self) -> &Path {
        &self.kubectl
    }

    /// The process of the API server, while it runs.
    pub fn server_id(&self) -> Option<u32> {
        self.apiserver.id()
    }

    /// Kills kube-apiserver; etcd and the rest stay. Connections break, new ones are refused.
    pub fn stop_server(&self) {
        self.apiserver.stop();
    }

    /// Starts kube-apiserver again, on the same port with the same data, and waits until it is ready; does nothing when
    /// it runs. The controllers are started anew with it: by themselves they come back after a back-off that grows with
    /// every outage, up to a minute. kwok is not: another one would wait until the leases of its nodes run out.
    pub async fn start_server(&self) -> Result<(), Error> {
        if self.apiserver.id().is_some() {
            return Ok(());
        }
        self.apiserver.start()?;
        self.ready(&[&self.apiserver]).await?;
        for controller in self.others.iter().skip(1).take(2) {
            controller.stop();
            controller.start()?;
        }
        Ok(())
    }

    /// Makes a namespace and waits until pods may be created in it.
    pub async fn create_namespace(&self, name: &str) -> Result<(), Error> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.client.post("/api/v1/namespaces", &namespace).await?;
        self.service_account(name).await
    }

    /// Makes a service account that may do everything, and writes its kubeconfig. Answers with its user, for
    /// [`LiveCluster::requests_of`]: what administrators ask is in no log.
    pub async fn create_account(
        &self,
        namespace: &str,
        name: &str,
        kubeconfig: &Path,
    ) -> Result<String, Error> {
        let account = format!("{namespace}:{name}");
        let role =
            ["create", "clusterrolebinding", &format!("{namespace}-{name}"), "--clusterrole=cluster-admin"];
        self.kubectl(&["create", "serviceaccount", name, "-n", namespace]).await?;
        self.kubectl(&[&role[..], &["--serviceaccount", &account]].concat()).await?;
        let token = self.kubectl(&["create", "token", name, "-n", namespace, "--duration=24h"]).await?;
        let text = fs::read_to_string(&self.kubeconfig).map_err(Error::file("read", &self.kubeconfig))?;
        let text = kubeconfig::token_kubeconfig(&text, token.trim());
        fs::write(kubeconfig, text).map_err(Error::file("write", kubeconfig))?;
        Ok(format!("system:serviceaccount:{account}"))
    }

    /// The JSON response of the API server to a GET.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.client.get(path).await
    }

    /// Everything that a service account (`system:serviceaccount:<namespace>:<name>`) has asked, oldest first.
    pub fn requests_of(&self, user: &str) -> Result<Vec<AuditedRequest>, Error> {
        let folder = self.kubeconfig.parent().unwrap_or(Path::new("."));
        audit::read(folder, user)
    }

    /// Runs kubectl as the administrator and answers with its standard output; an error carries its standard error.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.kubectl_with_input(arguments, "").await
    }

    /// The same with something on standard input, for `-f -`.
    pub async fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        let failed = |output: String| Error::Command {
            command: format!("kubectl {} on {}", arguments.join(" "), self.name),
            output,
        };
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).env_remove("KUBECONFIG");
        // The discovery cache is the cluster's, not the user's.
        command.env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A kubectl that fails early does not read to the end; what it says about it comes below.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &TierProcess> {
        self.others.iter().chain([&self.apiserver])
    }
}

fn write_kubeconfig(name: &str, server: &str, folder: &Path, made: &Certificates) -> Result<PathBuf, Error> {
    let path = folder.join("kubeconfig.yaml");
    let config =
        kubeconfig::admin_kubeconfig(name, server, &made.authority, &made.admin_certificate, &made.admin_key);
    fs::write(&path, config).map_err(Error::file("write", &path))?;
    Ok(path)
}

fn etcd_arguments(port: u16, peer_port: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    vec![
        "--name=etcd".into(),
        "--data-dir=etcd".into(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=etcd={peer}"),
        // The data is thrown away: no need to wait for the disk.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

fn apiserver_arguments(folder: &Path, etcd_port: u16, port: u16, server: &str) -> Vec<String> {
    let file = |name: &str| text(&folder.join(name));
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--authorization-mode=RBAC".into(),
        "--allow-privileged=true".into(),
        "--endpoint-reconciler-type=none".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        format!("--service-account-issuer={server}"),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--profiling=false".into(),
    ]
}

fn controller_manager_arguments(folder: &Path, kubeconfig: &str) -> Vec<String> {
    let file = |name: &str| text(&folder.join(name));
    vec![
        format!("--kubeconfig={kubeconfig}"),
        // The node lifecycle controller among them: without it nodes keep their taint and nothing is scheduled.
        "--controllers=*".into(),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
        "--use-service-account-credentials=false".into(),
        // Out of the box it asks for 20 things a second: a hundred Deployments would take it 20 s.
        "--kube-api-qps=1000".into(),
        "--kube-api-burst=2000".into(),
        format!("--service-account-private-key-file={}", file("sa.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
    ]
}

fn kwok_arguments(kubeconfig: &str) -> Result<Vec<String>, Error> {
    let mut arguments = vec![
        format!("--kubeconfig={kubeconfig}"),
        "--manage-all-nodes".into(),
        "--node-lease-duration-seconds=40".into(),
        "--cidr=10.244.0.0/16".into(),
    ];
    let folder = go_module::tools_folder().join("live/stages");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(Error::file("read", &folder))?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    arguments.extend(files.iter().map(|path| format!("--config={}", text(path))));
    Ok(arguments)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
