//! The checks of one cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};

use super::finding::{Check, Finding, Missing};
use crate::access::{self, Needs, Right, Why};
use crate::chart;
use crate::cli::cluster::{is_leaving, renders_of};
use crate::cli::exit::Exit;
use crate::cluster::{Catalog, Client, Error, Link, Question};
use crate::fleet::Fleet;
use crate::model::{App, Cluster, Kind, ObjectId, Rendered, RenderedObject, Snapshot};
use crate::render::{Discovered, Renderer};
use crate::report::words::count;

/// With a larger skew tokens are refused too early or too late.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(30);
/// Parallel requests about rights.
const SIDE_BY_SIDE: usize = 8;

pub struct Examination<'a> {
    pub fleet: &'a Fleet,
    pub snapshot: &'a Snapshot,
    pub charts: &'a chart::Service,
    pub cluster: &'a Cluster,
    pub link: Link,
}

impl Examination<'_> {
    pub async fn run(&self) -> Vec<Finding> {
        let opened = Client::connect(self.cluster.name.clone(), &self.link).await;
        let mut findings = vec![self.credential(&opened).await];
        let connected = match opened {
            Ok(client) => client.discover().await.map(|catalog| (client, catalog)),
            Err(error) => Err(error),
        };
        let (client, catalog) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                // The credential's error is not repeated.
                if findings.iter().all(|finding| finding.message != error.to_string()) {
                    findings.push(unreachable(&error));
                }
                return findings;
            }
        };
        let version = catalog.version();
        findings.push(Finding::good(Check::Connection, format!("it answers, Kubernetes {version}")));
        findings.extend(clock(&client).await);
        findings.extend(apis(&catalog));

        let facts = Arc::new(catalog.capabilities(None));
        let discovered = Discovered::from([(self.cluster.name.clone(), facts)]);
        let is_leaving = self.is_leaving();
        let before = is_leaving.then(|| self.fleet.before_removal(&self.cluster.name));
        let fleet = before.as_ref().unwrap_or(self.fleet);
        let renderer = Renderer::knowing(fleet, self.snapshot, self.charts, discovered);
        let (renders, mistakes) = renders_of(fleet, &renderer, &self.cluster.name);
        if let Some(first) = mistakes.first() {
            let apps = count(mistakes.len(), "mistake");
            let message = format!("{apps} in what is rendered for it, first: {first}");
            findings.push(Finding::bad(Check::Renders, Exit::Failed, message));
        }
        if !is_leaving {
            findings.push(kinds(&catalog, &renders));
        }
        findings.push(self.rights(&client, &catalog, &renders).await);
        findings
    }

    fn is_leaving(&self) -> bool {
        is_leaving(self.fleet, &self.cluster.name)
    }

    async fn credential(&self, opened: &Result<Client, Error>) -> Finding {
        let now = Timestamp::now();
        let credential = match opened {
            Ok(client) => Ok(client.credential()),
            Err(error) => match self.link.credential(&self.cluster.name).await {
                // Only a connection runs the plug-in.
                Ok(credential) if credential.of_plug_in => Err(error.to_string()),
                found => found.map_err(|error| error.to_string()),
            },
        };
        match credential {
            Err(error) => Finding::bad(Check::Credential, Exit::Unreachable, error),
            Ok(credential) => match (credential.warning(now), credential.expires) {
                (Some(warning), Some(expires)) if expires <= now => {
                    Finding::bad(Check::Credential, Exit::Denied, warning)
                }
                (Some(warning), _) => Finding::doubtful(Check::Credential, warning),
                (None, Some(expires)) => {
                    let left = crate::cluster::Credential::left(expires, now);
                    Finding::good(Check::Credential, format!("{}, good for {left}", credential.way))
                }
                (None, None) => Finding::good(Check::Credential, credential.way),
            },
        }
    }

    async fn rights(&self, client: &Client, catalog: &Catalog, renders: &[(&App, Rendered)]) -> Finding {
        let needs = access::needs(&access::Input {
            instance: &self.fleet.instance,
            renders,
            known: &|kind| catalog.get(kind).map(|resource| resource.plural().to_owned()),
            // Rights are checked in each namespace: a cluster-wide grant includes it.
            namespaces_exist: true,
            leaving: self.is_leaving().then_some(&self.fleet.approvals),
        });
        match missing(client, &needs).await {
            Err(error) => {
                Finding::bad(Check::Rights, exit_of(&error), format!("rights cannot be asked for: {error}"))
            }
            Ok(missing) => told(&missing, &needs, &self.fleet.instance.name, &self.cluster.name),
        }
    }
}

fn unreachable(error: &Error) -> Finding {
    Finding::bad(Check::Connection, exit_of(error), error.to_string())
}

fn exit_of(error: &Error) -> Exit {
    match error {
        Error::Denied { .. } => Exit::Denied,
        _ => Exit::Unreachable,
    }
}

async fn clock(client: &Client) -> Option<Finding> {
    let ahead = client.clock_ahead().await.ok()??;
    let (apart, word) = if ahead.is_negative() { (-ahead, "behind") } else { (ahead, "ahead of") };
    Some(if apart > CLOCKS_APART {
        Finding::doubtful(Check::Clock, format!("its clock is {} s {word} ours", apart.as_secs()))
            .help("synchronise both: tokens and certificates are refused too early or too late")
    } else {
        Finding::good(Check::Clock, "its clock and ours agree")
    })
}

/// Aggregated APIs whose server does not answer.
fn apis(catalog: &Catalog) -> Option<Finding> {
    let down: Vec<&str> = catalog.stale().collect();
    (!down.is_empty()).then(|| {
        Finding::doubtful(Check::Apis, format!("no server answers for {}", down.join(", ")))
            .help("`kubectl get apiservices` says why; while its kinds are unknown, nothing is deleted on this cluster")
    })
}

/// Rendered kinds that the cluster does not serve, and that no rendered object defines.
fn kinds(catalog: &Catalog, renders: &[(&App, Rendered)]) -> Finding {
    let objects = || renders.iter().flat_map(|(_, rendered)| rendered.objects.iter());
    let defined: BTreeSet<(&str, &str)> = objects().filter_map(RenderedObject::defines).collect();
    let mut lacking: BTreeMap<&Kind, &ObjectId> = BTreeMap::new();
    let mut served = BTreeSet::new();
    for object in objects() {
        let comes = || defined.contains(&(&*object.kind.group, &*object.kind.kind));
        if catalog.get(&object.kind).is_some_and(|resource| resource.manageable) || comes() {
            served.insert(&object.kind);
        } else {
            lacking.entry(&object.kind).or_insert(&object.id);
        }
    }
    if lacking.is_empty() {
        return Finding::good(
            Check::Kinds,
            format!("it serves {}, all that are rendered", count(served.len(), "kind")),
        );
    }
    let names: Vec<String> = lacking.iter().map(|(kind, id)| format!("{kind} (for {id})")).collect();
    Finding::bad(Check::Kinds, Exit::Failed, format!("it does not serve {}", names.join(", ")))
        .help("install the definitions, or choose other clusters for these apps")
}

async fn missing<'n>(client: &Client, needs: &'n Needs) -> Result<Vec<&'n Right>, Error> {
    let all: Vec<&Right> = needs.rights.keys().collect();
    // A right in several namespaces may be granted everywhere: one request instead of many.
    let mut spread: BTreeMap<Right, usize> = BTreeMap::new();
    for right in all.iter().filter(|right| right.name.is_none() && right.namespace.is_some()) {
        *spread.entry(everywhere(right)).or_default() += 1;
    }
    let spread: Vec<Right> = spread.into_iter().filter(|(_, places)| *places > 1).map(|it| it.0).collect();
    let refused: BTreeSet<&Right> = refused(client, spread.iter().collect()).await?.into_iter().collect();
    let granted: BTreeSet<&Right> = spread.iter().filter(|right| !refused.contains(right)).collect();
    let open = all.into_iter().filter(|right| {
        right.name.is_some() || right.namespace.is_none() || !granted.contains(&everywhere(right))
    });
    self::refused(client, open.collect()).await
}

fn everywhere(right: &Right) -> Right {
    Right { namespace: None, ..right.clone() }
}

/// The denied ones of some rights, in order.
async fn refused<'n>(client: &Client, rights: Vec<&'n Right>) -> Result<Vec<&'n Right>, Error> {
    let asked = rights.into_iter().map(|right| async move {
        let question = Question {
            verb: right.verb.as_str(),
            group: &right.group,
            resource: &right.resource,
            namespace: right.namespace.as_deref(),
            name: right.name.as_deref(),
        };
        client.may(question).await.map(|may| (!may).then_some(right))
    });
    let answers: Vec<_> = futures::stream::iter(asked).buffered(SIDE_BY_SIDE).collect().await;
    let refused: Result<Vec<_>, Error> = answers.into_iter().collect();
    Ok(refused?.into_iter().flatten().collect())
}

fn told(missing: &[&Right], needs: &Needs, instance: &str, cluster: &crate::model::ClusterName) -> Finding {
    let all = count(needs.rights.len(), "right");
    if missing.is_empty() {
        return Finding::good(Check::Rights, format!("all {all} that the repository needs are there"));
    }
    let message = format!("{} of {all} missing", missing.len());
    // Without these tutti works with less detail, or with delay.
    let is_vital = |right: &&Right| {
        !matches!(
            needs.rights.get(*right),
            Some(Why::Serving | Why::Causes | Why::LastLines | Why::StorageClasses) | None
        )
    };
    let mut finding = if missing.iter().any(is_vital) {
        Finding::bad(Check::Rights, Exit::Denied, message)
    } else {
        Finding::doubtful(Check::Rights, format!("{message}; tutti works without, and tells less"))
    };
    let mut by_role: BTreeMap<Option<&Arc<str>>, Vec<&Right>> = BTreeMap::new();
    for right in missing {
        by_role.entry(right.namespace.as_ref()).or_default().push(right);
    }
    let name = access::role_name(instance);
    finding.missing = by_role
        .into_iter()
        .map(|(namespace, rights)| Missing {
            role: match namespace {
                Some(namespace) => format!("Role {name} in namespace {namespace}"),
                None => format!("ClusterRole {name}"),
            },
            rights: rights.iter().map(ToString::to_string).collect(),
            rules: access::rule_of(rights),
        })
        .collect();
    finding.help(format!("`tutti cluster rbac {cluster}` prints all that it needs"))
}
