//! One Gitea on loopback, with an administrator and a token.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::JsonClient;
use crate::process::{TierProcess, wait_until_ready};
use crate::{Error, TierPrograms, ports};

const START_TIMEOUT: Duration = Duration::from_secs(120);
const USER: &str = "tutti";
const PASSWORD: &str = "only-on-loopback";

/// A running Gitea. Dropping it stops its process.
#[derive(Debug)]
pub struct GiteaServer {
    url: String,
    token: String,
    version: String,
    client: JsonClient,
    process: TierProcess,
}

impl GiteaServer {
    /// Prepares a database, an administrator and a token, then starts the server and waits until it answers.
    pub(crate) async fn start(folder: &Path, programs: &TierPrograms) -> Result<Self, Error> {
        let port = ports::free()?;
        let url = format!("http://127.0.0.1:{port}");
        // Where Gitea looks for it without being told, with every subcommand.
        let home = folder.join("custom/conf");
        fs::create_dir_all(&home).map_err(Error::file("create", &home))?;
        let config = home.join("app.ini");
        let text = configuration(folder, programs.gitea_static.as_deref(), port);
        fs::write(&config, text).map_err(Error::file("write", &config))?;

        let token = {
            let (folder, programs) = (folder.to_owned(), programs.clone());
            let prepared = tokio::task::spawn_blocking(move || prepare(&folder, &programs)).await;
            prepared
                .map_err(|error| Error::Start { process: "gitea".into(), reason: error.to_string() })??
        };
        let process = gitea_process("gitea", folder, programs, &["web"]);
        process.start()?;
        let client = JsonClient::with_token(&url, Some(&token))?;
        let probe = async || client.get("/api/v1/version").await.map_err(|error| error.to_string());
        let version = wait_until_ready("Gitea's API", START_TIMEOUT, &[&process], probe).await?;
        let version = version["version"].as_str().unwrap_or_default().to_owned();
        Ok(Self { url, token, version, client, process })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator, owner of the repositories that [`GiteaServer::create_repository`] makes.
    pub fn user(&self) -> &'static str {
        USER
    }

    /// Allows everything.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// As the API reports it: `1.26.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// An empty repository of the administrator, with the default branch `main`.
    pub async fn create_repository(&self, name: &str) -> Result<(), Error> {
        let body = json!({"name": name, "default_branch": "main", "private": true});
        self.client.post("/api/v1/user/repos", &body).await.map(drop)
    }

    /// Where Git pushes to and fetches from; the token is inside.
    pub fn remote(&self, repository: &str) -> String {
        let address = self.url.trim_start_matches("http://");
        format!("http://{USER}:{}@{address}/{USER}/{repository}.git", self.token)
    }

    /// The same without the token, for programs that bring their own.
    pub fn clone_url(&self, repository: &str) -> String {
        format!("{}/{USER}/{repository}.git", self.url)
    }

    /// A hook that posts `events` (`push`, `pull_request`, `status`, …) to `target`, signed with `secret`. Targets must be on loopback.
    pub async fn create_hook(
        &self,
        repository: &str,
        target: &str,
        secret: &str,
        events: &[&str],
    ) -> Result<(), Error> {
        let config = json!({"url": target, "secret": secret, "content_type": "json"});
        let body = json!({"type": "gitea", "active": true, "events": events, "config": config});
        self.client.post(&format!("{}/hooks", repository_path(repository)), &body).await.map(drop)
    }

    /// The combined status of a commit: `state`, and `statuses` with the newest of each context.
    pub async fn combined_status(&self, repository: &str, commit: &str) -> Result<Value, Error> {
        self.client.get(&format!("{}/commits/{commit}/status", repository_path(repository))).await
    }

    /// Every status ever set on a commit, newest first.
    pub async fn statuses(&self, repository: &str, commit: &str) -> Result<Vec<Value>, Error> {
        let path =
            format!("{}/commits/{commit}/statuses?sort=recentupdate&limit=50", repository_path(repository));
        let answer = self.client.get(&path).await?;
        Ok(answer.as_array().cloned().unwrap_or_default())
    }

    /// Any call of the API: `path` begins with `/api/v1`.
    pub async fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
        self.client.send(method, path, body).await
    }

    /// Kills the server; the data stays.
    pub fn stop_server(&self) {
        self.process.stop();
    }

    /// Starts it again, on the same port with the same data.
    pub async fn start_server(&self) -> Result<(), Error> {
        self.process.start()?;
        let probe =
            async || self.client.get("/api/v1/version").await.map(drop).map_err(|error| error.to_string());
        wait_until_ready("Gitea's API", START_TIMEOUT, &[&self.process], probe).await
    }

    pub(crate) fn process(&self) -> &TierProcess {
        &self.process
    }
}

fn repository_path(repository: &str) -> String {
    format!("/api/v1/repos/{USER}/{repository}")
}

fn prepare(folder: &Path, programs: &TierPrograms) -> Result<String, Error> {
    gitea_process("gitea migrate", folder, programs, &["migrate"]).run()?;
    let user = ["admin", "user", "create", "--admin", "--username", USER, "--password", PASSWORD];
    let user = [&user[..], &["--email", "tutti@localhost", "--must-change-password=false"]].concat();
    gitea_process("gitea admin user create", folder, programs, &user).run()?;
    let token = ["admin", "user", "generate-access-token", "--username", USER, "--token-name", "live"];
    let token = [&token[..], &["--scopes", "all", "--raw"]].concat();
    let output = gitea_process("gitea admin user generate-access-token", folder, programs, &token).run()?;
    let is_token = |line: &&str| line.len() == 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Warnings stand around it.
    let token = output.lines().map(str::trim).find(is_token).map(str::to_owned);
    let command = "gitea admin user generate-access-token".to_owned();
    token.ok_or_else(|| Error::Command { command, output: format!("no token in {output:?}") })
}

fn gitea_process(name: &str, folder: &Path, programs: &TierPrograms, arguments: &[&str]) -> TierProcess {
    let work = folder.to_string_lossy();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    TierProcess::new(name, &programs.gitea, folder, arguments)
        .variable("GITEA_WORK_DIR", &work)
        .variable("GITEA_CUSTOM", &folder.join("custom").to_string_lossy())
        // Gitea asks for both this and the line in its configuration, when it is root.
        .variable("GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT", "true")
}

/// Queues in memory, one item at a time: the queues on disk are polled every two seconds, and a push passes two of them
/// before its hook is called.
fn configuration(folder: &Path, static_files: Option<&Path>, port: u16) -> String {
    let folder = folder.display();
    let static_files =
        static_files.map(|path| format!("STATIC_ROOT_PATH = {}\n", path.display())).unwrap_or_default();
    format!(
        "APP_NAME = live tier
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
{static_files}HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
DISABLE_SSH = true
OFFLINE_MODE = true
APP_DATA_PATH = {folder}/data

[repository]
ROOT = {folder}/repositories
DEFAULT_BRANCH = main

[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db

[security]
INSTALL_LOCK = true

[webhook]
ALLOWED_HOST_LIST = loopback

[queue]
TYPE = channel
BATCH_LENGTH = 1

[indexer]
ISSUE_INDEXER_TYPE = db

[actions]
ENABLED = false

[log]
MODE = console
LEVEL = info
"
    )
}
