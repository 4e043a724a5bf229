//! The checks of one cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};

use super::finding::{DoctorCheck, DoctorFinding, MissingRights};
use crate::access::{self, RequiredRights, Right};
use crate::chart;
use crate::cli::cluster::{is_removed, render_cluster};
use crate::cli::exit::Exit;
use crate::cluster::{AccessQuestion, Catalog, Client, ClusterLink, Error};
use crate::fleet::Fleet;
use crate::model::{App, Cluster, GroupVersionKind, ObjectId, RenderedObject, RenderedTarget, Snapshot};
use crate::render::{DiscoveredCapabilities, FleetRenderer};
use crate::report::status_text::count_noun;

/// With a larger skew tokens are refused too early or too late.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);
/// Parallel requests about rights.
const MAX_PARALLEL_REVIEWS: usize = 8;

pub struct ClusterExamination<'a> {
    pub fleet: &'a Fleet,
    pub snapshot: &'a Snapshot,
    pub charts: &'a chart::ChartService,
    pub cluster: &'a Cluster,
    pub link: ClusterLink,
}

impl ClusterExamination<'_> {
    pub async fn run(&self) -> Vec<DoctorFinding> {
        let opened = Client::connect(self.cluster.name.clone(), &self.link).await;
        let mut findings = vec![self.check_credential(&opened).await];
        let connected = match opened {
            Ok(client) => client.discover().await.map(|catalog| (client, catalog)),
            Err(error) => Err(error),
        };
        let (client, catalog) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                // The credential's error is not repeated.
                if findings.iter().all(|finding| finding.message != error.to_string()) {
                    findings.push(connection_finding(&error));
                }
                return findings;
            }
        };
        let version = catalog.version();
        findings.push(DoctorFinding::passed(
            DoctorCheck::Connection,
            format!("it answers, Kubernetes {version}"),
        ));
        findings.extend(check_clock(&client).await);
        findings.extend(check_apis(&catalog));

        let facts = Arc::new(catalog.capabilities(None));
        let discovered = DiscoveredCapabilities::from([(self.cluster.name.clone(), facts)]);
        let is_leaving = self.is_removed();
        let before = is_leaving.then(|| self.fleet.before_removal(&self.cluster.name));
        let fleet = before.as_ref().unwrap_or(self.fleet);
        let renderer = FleetRenderer::with_capabilities(fleet, self.snapshot, self.charts, discovered);
        let (renders, mistakes) = render_cluster(fleet, &renderer, &self.cluster.name);
        if let Some(first) = mistakes.first() {
            let apps = count_noun(mistakes.len(), "error");
            let message = format!("{apps} in its rendered objects, first: {first}");
            findings.push(DoctorFinding::failed(DoctorCheck::Renders, Exit::Failed, message));
        }
        if !is_leaving {
            findings.push(check_kinds(&catalog, &renders));
        }
        findings.push(self.check_rights(&client, &catalog, &renders).await);
        findings
    }

    fn is_removed(&self) -> bool {
        is_removed(self.fleet, &self.cluster.name)
    }

    async fn check_credential(&self, opened: &Result<Client, Error>) -> DoctorFinding {
        let now = Timestamp::now();
        let credential = match opened {
            Ok(client) => Ok(client.credential()),
            Err(error) => match self.link.credential(&self.cluster.name).await {
                // Only a connection runs the plug-in.
                Ok(credential) if credential.is_from_plug_in => Err(error.to_string()),
                found => found.map_err(|error| error.to_string()),
            },
        };
        match credential {
            Err(error) => DoctorFinding::failed(DoctorCheck::Credential, Exit::Unreachable, error),
            Ok(credential) => match (credential.warning(now), credential.expires) {
                (Some(warning), Some(expires)) if expires <= now => {
                    DoctorFinding::failed(DoctorCheck::Credential, Exit::Denied, warning)
                }
                (Some(warning), _) => DoctorFinding::warning(DoctorCheck::Credential, warning),
                (None, Some(expires)) => {
                    let left = crate::cluster::Credential::time_left(expires, now);
                    DoctorFinding::passed(
                        DoctorCheck::Credential,
                        format!("{}, good for {left}", credential.description),
                    )
                }
                (None, None) => DoctorFinding::passed(DoctorCheck::Credential, credential.description),
            },
        }
    }

    async fn check_rights(
        &self,
        client: &Client,
        catalog: &Catalog,
        renders: &[(&App, RenderedTarget)],
    ) -> DoctorFinding {
        let needs = access::required_rights(&access::AccessInput {
            instance: &self.fleet.instance,
            renders,
            known_plural: &|kind| catalog.get(kind).map(|resource| resource.plural().to_owned()),
            // Rights are checked in each namespace: a cluster-wide grant includes it.
            namespaces_exist: true,
            removal_approvals: self.is_removed().then_some(&self.fleet.approvals),
        });
        match missing_rights(client, &needs).await {
            Err(error) => DoctorFinding::failed(
                DoctorCheck::Rights,
                exit_of(&error),
                format!("failed to check the rights: {error}"),
            ),
            Ok(missing) => rights_finding(&missing, &needs, &self.fleet.instance.name, &self.cluster.name),
        }
    }
}

fn connection_finding(error: &Error) -> DoctorFinding {
    DoctorFinding::failed(DoctorCheck::Connection, exit_of(error), error.to_string())
}

fn exit_of(error: &Error) -> Exit {
    match error {
        Error::Denied { .. } => Exit::Denied,
        _ => Exit::Unreachable,
    }
}

async fn check_clock(client: &Client) -> Option<DoctorFinding> {
    let ahead = client.clock_ahead().await.ok()??;
    let (apart, word) = if ahead.is_negative() { (-ahead, "behind") } else { (ahead, "ahead of") };
    Some(if apart > MAX_CLOCK_SKEW {
        DoctorFinding::warning(
            DoctorCheck::Clock,
            format!("its clock is {} s {word} the clock of this machine", apart.as_secs()),
        )
        .help("synchronise both: tokens and certificates are refused too early or too late")
    } else {
        DoctorFinding::passed(DoctorCheck::Clock, "its clock agrees with the clock of this machine")
    })
}

/// Aggregated APIs whose server does not answer.
fn check_apis(catalog: &Catalog) -> Option<DoctorFinding> {
    let down: Vec<&str> = catalog.stale().collect();
    (!down.is_empty()).then(|| {
        DoctorFinding::warning(DoctorCheck::Apis, format!("no server answers for {}", down.join(", ")))
            .help("`kubectl get apiservices` shows why; while its kinds are unknown, nothing is deleted on this cluster")
    })
}

/// Rendered kinds that the cluster does not serve, and that no rendered object defines.
fn check_kinds(catalog: &Catalog, renders: &[(&App, RenderedTarget)]) -> DoctorFinding {
    let objects = || renders.iter().flat_map(|(_, rendered)| rendered.objects.iter());
    let defined: BTreeSet<(&str, &str)> = objects().filter_map(RenderedObject::defines).collect();
    let mut lacking: BTreeMap<&GroupVersionKind, &ObjectId> = BTreeMap::new();
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
        return DoctorFinding::passed(
            DoctorCheck::Kinds,
            format!("it serves {}, all that are rendered", count_noun(served.len(), "kind")),
        );
    }
    let names: Vec<String> = lacking.iter().map(|(kind, id)| format!("{kind} (for {id})")).collect();
    DoctorFinding::failed(DoctorCheck::Kinds, Exit::Failed, format!("it does not serve {}", names.join(", ")))
        .help("install the definitions, or choose other clusters for these apps")
}

async fn missing_rights<'n>(client: &Client, needs: &'n RequiredRights) -> Result<Vec<&'n Right>, Error> {
    let all: Vec<&Right> = needs.rights.keys().collect();
    // A right in several namespaces may be granted everywhere: one request instead of many.
    let mut spread: BTreeMap<Right, usize> = BTreeMap::new();
    for right in all.iter().filter(|right| right.name.is_none() && right.namespace.is_some()) {
        *spread.entry(without_namespace(right)).or_default() += 1;
    }
    let spread: Vec<Right> = spread.into_iter().filter(|(_, places)| *places > 1).map(|it| it.0).collect();
    let refused: BTreeSet<&Right> =
        refused_rights(client, spread.iter().collect()).await?.into_iter().collect();
    let granted: BTreeSet<&Right> = spread.iter().filter(|right| !refused.contains(right)).collect();
    let open = all.into_iter().filter(|right| {
        right.name.is_some() || right.namespace.is_none() || !granted.contains(&without_namespace(right))
    });
    refused_rights(client, open.collect()).await
}

fn without_namespace(right: &Right) -> Right {
    Right { namespace: None, ..right.clone() }
}

/// The denied ones of some rights, in order.
async fn refused_rights<'n>(client: &Client, rights: Vec<&'n Right>) -> Result<Vec<&'n Right>, Error> {
    let asked = rights.into_iter().map(|right| async move {
        let question = AccessQuestion {
            verb: right.verb.as_str(),
            group: &right.group,
            resource: &right.resource,
            namespace: right.namespace.as_deref(),
            name: right.name.as_deref(),
        };
        client.is_allowed(question).await.map(|may| (!may).then_some(right))
    });
    let answers: Vec<_> = futures::stream::iter(asked).buffered(MAX_PARALLEL_REVIEWS).collect().await;
    let refused: Result<Vec<_>, Error> = answers.into_iter().collect();
    Ok(refused?.into_iter().flatten().collect())
}

fn rights_finding(
    missing: &[&Right],
    needs: &RequiredRights,
    instance: &str,
    cluster: &crate::model::ClusterName,
) -> DoctorFinding {
    let all = count_noun(needs.rights.len(), "right");
    if missing.is_empty() {
        return DoctorFinding::passed(
            DoctorCheck::Rights,
            format!("all {all} that the repository needs are there"),
        );
    }
    let message = format!("{} of {all} missing", missing.len());
    let is_vital = |right: &&Right| needs.rights.get(*right).is_some_and(|reason| !reason.is_optional());
    let mut finding = if missing.iter().any(is_vital) {
        DoctorFinding::failed(DoctorCheck::Rights, Exit::Denied, message)
    } else {
        DoctorFinding::warning(
            DoctorCheck::Rights,
            format!("{message}; tutti works without it, but shows less"),
        )
    };
    let mut by_role: BTreeMap<Option<&Arc<str>>, Vec<&Right>> = BTreeMap::new();
    for right in missing {
        by_role.entry(right.namespace.as_ref()).or_default().push(right);
    }
    let name = access::role_name(instance);
    finding.missing = by_role
        .into_iter()
        .map(|(namespace, rights)| MissingRights {
            role: match namespace {
                Some(namespace) => format!("Role {name} in namespace {namespace}"),
                None => format!("ClusterRole {name}"),
            },
            rights: rights.iter().map(ToString::to_string).collect(),
            rules: access::rules_for(rights),
        })
        .collect();
    finding.help(format!("`tutti cluster rbac {cluster}` prints all that it needs"))
}
