//! The repository of one app in waves.

use std::collections::{BTreeMap, BTreeSet};

use crate::chaos::random::SeededRandom;
use crate::support::oracle::{ExpectedGate, ExpectedWaves, OracleUnit};

pub const APP: &str = "default/pay";

/// How the app is divided into waves.
#[derive(Clone, Debug)]
pub enum WaveShape {
    /// A Component over the rings test (c1), stage (c2) and prod (all others).
    Rings { confirms: [bool; 2], at_once: Option<usize>, clusters: u64 },
    /// An AppSet with canary, blue and green on two clusters.
    Groups { confirms: bool, at_once: Option<usize> },
}

/// The repository at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WavesRepository {
    pub version: u64,
    pub replicas: u64,
    pub port: u64,
    pub paused: bool,
    /// A version of the group green alone.
    pub green_version: Option<u64>,
    pub in_maintenance: BTreeSet<String>,
    /// Approvals by name.
    pub approvals: BTreeMap<String, String>,
    pub change_counter: u64,
}

#[derive(Clone, Debug)]
pub struct WavesPlan {
    pub shape: WaveShape,
    pub reverts: bool,
}

impl WavesPlan {
    pub fn of(draw: &mut SeededRandom) -> Self {
        let at_once = draw.choose(&[None, None, Some(1)]);
        let shape = if draw.percent_chance(60) {
            let confirms = [draw.percent_chance(60), draw.percent_chance(40)];
            WaveShape::Rings { confirms, at_once, clusters: draw.in_range(3..5) }
        } else {
            WaveShape::Groups { confirms: draw.percent_chance(70), at_once }
        };
        Self { shape, reverts: draw.percent_chance(25) }
    }

    pub fn clusters(&self) -> Vec<String> {
        let number = match &self.shape {
            WaveShape::Rings { clusters, .. } => *clusters,
            WaveShape::Groups { .. } => 2,
        };
        (1..=number).map(|number| format!("c{number}")).collect()
    }

    /// The waves for the oracle.
    pub fn waves(&self) -> ExpectedWaves {
        let gate = |name: &str, confirm: bool, most: Option<usize>| ExpectedGate {
            confirm,
            max_concurrent: most,
            ..ExpectedGate::new(name)
        };
        let (gates, wave_of): (Vec<ExpectedGate>, fn(&OracleUnit) -> usize) = match &self.shape {
            WaveShape::Rings { confirms, at_once, .. } => {
                let gates = vec![
                    gate("test", confirms[0], None),
                    gate("stage", confirms[1], None),
                    gate("prod", false, *at_once),
                    ExpectedGate::new("rest"),
                ];
                let wave_of = |unit: &OracleUnit| match &*unit.cluster {
                    "c1" => 0,
                    "c2" => 1,
                    _ => 2,
                };
                (gates, wave_of)
            }
            WaveShape::Groups { confirms, at_once } => {
                let names = ["first", "canary", "blue", "green"];
                let gates = names.map(|name| gate(name, *confirms, *at_once)).into_iter();
                let wave_of = |unit: &OracleUnit| match unit.pod_set.rsplit('-').next() {
                    Some("canary") if unit.cluster == "c1" => 0,
                    Some("canary") => 1,
                    Some("blue") => 2,
                    _ => 3,
                };
                (gates.chain([ExpectedGate::new("rest")]).collect(), wave_of)
            }
        };
        ExpectedWaves { app: APP.to_owned(), gates, wave_of, reverts: self.reverts, gates_first: false }
    }

    /// All files of the repository.
    pub fn files(&self, said: &WavesRepository) -> BTreeMap<String, String> {
        let head = "apiVersion: tutti.dev/v1alpha1\nkind:";
        let mut files = BTreeMap::from([(
            "tutti.yaml".to_owned(),
            format!("{head} Instance\nmetadata: {{name: main}}\nspec: {{}}\n"),
        )]);
        for cluster in self.clusters() {
            let state = if said.in_maintenance.contains(&cluster) { ", state: Maintaining" } else { "" };
            let text = format!(
                "{head} Cluster\nmetadata: {{name: {cluster}}}\nspec: {{connection: {{kubeconfig: {{path: \
                 {cluster}.kubeconfig}}}}{state}}}\n"
            );
            files.insert(format!("clusters/{cluster}.yaml"), text);
        }
        let on_failure = if self.reverts { "onFailure: revert, " } else { "" };
        match &self.shape {
            WaveShape::Rings { confirms, at_once, clusters } => {
                let prod: Vec<String> = (3..=*clusters).map(|number| format!("c{number}")).collect();
                let most = at_once.map_or(String::new(), |most| format!(", maxConcurrency: {most}"));
                files.insert(
                    "rings.yaml".to_owned(),
                    format!(
                        "{head} Rings\nmetadata: {{name: rings}}\nspec:\n  rings:\n    - {{name: test, clusters: \
                         {{names: [c1]}}, confirm: {}}}\n    - {{name: stage, clusters: {{names: [c2]}}, confirm: \
                         {}}}\n    - {{name: prod, clusters: {{names: [{}]}}{most}}}\n",
                        confirms[0],
                        confirms[1],
                        prod.join(", ")
                    ),
                );
                let strategy = on_failure.trim_end_matches(", ");
                files.insert(
                    "apps/pay/app.yaml".to_owned(),
                    format!(
                        "{head} Component\nmetadata: {{name: pay}}\nspec:\n  workloadType: Deployment\n  \
                         developLanguage: python\n  runType: server\n  image: {}\n  replicas: {}\n  port: 8080\n  \
                         paused: {}\n  updateStrategy: {{{strategy}}}\n",
                        image(said.version),
                        said.replicas,
                        said.paused
                    ),
                );
            }
            WaveShape::Groups { confirms, at_once } => {
                let most = at_once.map_or(String::new(), |most| format!("maxConcurrency: {most}, "));
                let mut text = format!(
                    "apiVersion: workload.dmall.com/v1beta1\nkind: AppSet\nmetadata: {{name: pay, namespace: \
                     default}}\nspec:\n  replicas: {}\n  updateStrategy: {{{on_failure}{most}paused: {}, upgradeType: \
                     canary|blue|green, canaryClusters: [c1], needWaitingForConfirm: {confirms}}}\n  podSpec:\n    \
                     deployType: deployment\n    template: {{spec: {{containers: [{{name: pay, image: pay, ports: \
                     [{{containerPort: 8080}}]}}]}}}}\n  clusterTopology:\n    clusters:\n",
                    6 * said.replicas,
                    said.paused
                );
                for cluster in self.clusters() {
                    text += &format!("      - name: {cluster}\n        podSets:\n");
                    for group in ["canary", "blue", "green"] {
                        let version = said.green_version.filter(|_| group == "green").unwrap_or(said.version);
                        text += &format!(
                            "          - {{name: pay-{cluster}-{group}, replicas: {}, image: '{}'}}\n",
                            said.replicas,
                            image(version)
                        );
                    }
                }
                files.insert("apps/pay/app.yaml".to_owned(), text);
            }
        }
        if said.port != 0 {
            let text = format!("service: {{port: {}}}\n", said.port);
            files.insert("apps/pay/layer/values.yaml".to_owned(), text);
        }
        for (name, word) in &said.approvals {
            files.insert(format!("approvals/{name}.yaml"), word.clone());
        }
        files.insert("README.md".to_owned(), format!("Note {}.\n", said.change_counter));
        files
    }
}

pub fn image(version: u64) -> String {
    format!("registry.example.com/pay:{version}")
}

impl WavesRepository {
    pub fn initial() -> Self {
        Self {
            version: 1,
            replicas: 2,
            port: 0,
            paused: false,
            green_version: None,
            in_maintenance: BTreeSet::new(),
            approvals: BTreeMap::new(),
            change_counter: 0,
        }
    }
}
