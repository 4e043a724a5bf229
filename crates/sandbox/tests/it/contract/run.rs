//! Runs checks on the sandbox and on real servers, and compares the results.

use std::io::Write;

use futures::StreamExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use sandbox::{Sandbox, SandboxOptions};
use similar::{ChangeTag, TextDiff};

use super::probe::ContractProbe;
use super::{CHECKS, Check, known_differences, observation_files};

/// A running server, for authors of checks. It was restarted once since its etcd was empty, so that old resource
/// versions are compacted.
const SERVER_VARIABLE: &str = "TUTTI_CONTRACT_SERVER";
const MODE_VARIABLE: &str = "TUTTI_CONTRACT";
const ONLY_VARIABLE: &str = "TUTTI_CONTRACT_ONLY";

/// Checks that run in parallel on a real server.
const PARALLEL_CHECKS: usize = 4;

async fn run_check(check: &Check, client: Client, suffix: &str, sandbox: Option<Sandbox>) -> Vec<String> {
    let mut probe = ContractProbe::new(client, check.name, suffix).await;
    probe.sandbox = sandbox;
    (check.run)(&mut probe).await;
    probe.finish().await
}

async fn run_on_sandbox(check: &Check) -> Vec<String> {
    let sandbox = Sandbox::new(SandboxOptions { nodes: 2, ..SandboxOptions::instant("contract") });
    run_check(check, Client::new(sandbox.service(), "default"), "s1", Some(sandbox)).await
}

pub async fn on_the_sandbox(name: &str) {
    let check = CHECKS.iter().find(|check| check.name == name).unwrap();
    let answered = run_on_sandbox(check).await;
    let left = known_differences::unknown_differences(
        name,
        differing_lines(&observation_files::read_observation(name).unwrap_or_default(), &answered),
    );
    assert!(
        left.is_empty(),
        "{} differences from the observation of a real server:\n{}\n",
        left.len(),
        left.join("\n")
    );
}

/// Lines that differ, as (real, sandbox); a missing line is empty.
fn differing_lines(real: &[String], sandbox: &[String]) -> Vec<(String, String)> {
    let (real, sandbox) = (real.join("\n"), sandbox.join("\n"));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for change in TextDiff::from_lines(&real, &sandbox).iter_all_changes() {
        let line = change.value().trim_end_matches('\n').to_owned();
        match change.tag() {
            ChangeTag::Equal => {}
            ChangeTag::Delete => pairs.push((line, String::new())),
            ChangeTag::Insert => {
                match pairs
                    .iter_mut()
                    .find(|(real, own)| own.is_empty() && leaf_path(real) == leaf_path(&line))
                {
                    Some(pair) => pair.1 = line,
                    None => pairs.push((String::new(), line)),
                }
            }
        }
    }
    pairs
}

/// The path of a leaf's line, which pairs the two responses to one request.
fn leaf_path(line: &str) -> &str {
    let text = line.trim_start();
    text.split(' ').next().unwrap_or(text)
}

/// A real server returns several errors, and simultaneous events, in a random order. A check whose result differs from
/// the observation is repeated this often.
const MAX_REPEATS: usize = 3;

pub async fn on_real_servers() {
    let Some((client, version, _tier)) = real_server().await else { return };
    let only = std::env::var(ONLY_VARIABLE).unwrap_or_default();
    let write = std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "write");
    let suffix = format!("{:x}", std::process::id());
    let mut failures = Vec::new();
    let chosen: Vec<&Check> = CHECKS.iter().filter(|check| check.name.contains(&only)).collect();
    let asked = chosen.iter().map(|check| run_check(check, client.clone(), &suffix, None));
    let mut answers = futures::stream::iter(asked).buffered(PARALLEL_CHECKS);
    for check in &chosen {
        let Some(answered) = answers.next().await else { break };
        if write {
            observation_files::write_observation(check.name, &version, &answered);
            continue;
        }
        let before = observation_files::read_observation(check.name).unwrap_or_default();
        let mut different = differing_lines(&before, &answered);
        for again in 1..=MAX_REPEATS {
            if !different.is_empty() {
                let answered = run_check(check, client.clone(), &format!("{suffix}-{again}"), None).await;
                different = differing_lines(&before, &answered);
            }
        }
        for (before, now) in different {
            failures.push(format!("{}: observed {before:?}, now {now:?}", check.name));
        }
    }
    print_report(&chosen, &version);
    assert!(failures.is_empty(), "the real server answers otherwise than observed:\n{}", failures.join("\n"));
}

/// Printed past the test harness, which hides the output of passing tests.
fn print_report(checks: &[&Check], version: &str) {
    let entries = known_differences::read_entries();
    let numbers = |checks: &mut dyn Iterator<Item = &Check>| {
        checks.map(|check| check.number).collect::<std::collections::BTreeSet<u32>>()
    };
    let all = numbers(&mut checks.iter().copied());
    let differing = numbers(
        &mut checks.iter().copied().filter(|check| entries.iter().any(|entry| entry.check == check.name)),
    );
    let mut text = format!(
        "\ncontract: {}/75 checks asked, {} identical on the sandbox and on kube-apiserver {version} ({} questions)\n",
        all.len(),
        all.len() - differing.len(),
        checks.len(),
    );
    for entry in entries {
        text.push_str(&format!(
            "  known difference in {}: real {:?}, sandbox {:?}: {}\n",
            entry.check, entry.real, entry.sandbox, entry.reason
        ));
    }
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// The live tier's cluster, which lives as long as the third value.
async fn real_server() -> Option<(Client, String, Option<live::LiveEnvironment>)> {
    if let Ok(path) = std::env::var(SERVER_VARIABLE) {
        let (client, version) = connect(path.as_ref()).await;
        return Some((client, version, None));
    }
    let programs = match live::Tier::from_env().unwrap() {
        live::Tier::Ready(programs) => programs,
        live::Tier::Absent(why) => {
            std::io::stderr().write_all(format!("{why}\n").as_bytes()).unwrap();
            return None;
        }
    };
    let tier =
        live::LiveEnvironment::start(&programs, &live::LiveSetup::new(1).without_gitea()).await.unwrap();
    let cluster = tier.cluster(0);
    // Its watch caches then start at the current revision: a watch of the first one is told that it is too old.
    cluster.stop_server();
    cluster.start_server().await.unwrap();
    let (client, version) = connect(cluster.kubeconfig()).await;
    Some((client, version, Some(tier)))
}

async fn connect(kubeconfig: &std::path::Path) -> (Client, String) {
    // fails if a provider is installed already, which works as well
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // a check needs the first response
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let version = client.apiserver_version().await.unwrap().git_version;
    (client, version)
}
