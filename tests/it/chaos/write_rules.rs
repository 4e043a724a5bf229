//! Checks one write against the repository at one commit.

use serde_json::Value;

use super::desired::{ClusterLifecycle, DesiredRepository, PruneMode};
use super::live_state;
use super::object::{ChaosObjectId, first_extra_path, first_missing_path};

fn check_writable(wanted: &DesiredRepository, cluster: &str) -> Result<(), String> {
    if wanted.observe_mode {
        return Err("the instance only observes".to_owned());
    }
    match wanted.clusters.get(cluster) {
        Some(ClusterLifecycle::Maintaining) => Err("the cluster is in maintenance".to_owned()),
        Some(ClusterLifecycle::Ready | ClusterLifecycle::Removed) => Ok(()),
        None => Err("there is no such cluster".to_owned()),
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}

/// An applied or created object must equal what the author wrote.
pub fn may_apply(
    wanted: &DesiredRepository,
    cluster: &str,
    name: &ChaosObjectId,
    body: &Value,
) -> Result<(), String> {
    check_writable(wanted, cluster)?;
    let id = annotation(body, "tutti.dev/app").trim_start_matches("default/");
    let app = wanted.apps.get(id).ok_or_else(|| format!("{id} is no app"))?;
    if app.paused {
        return Err(format!("{id} is paused"));
    }
    if app.mistake.is_some() {
        return Err(format!("{id} has an error"));
    }
    if !wanted.owners(cluster, name).any(|(owner, _)| owner == id) {
        return Err(format!("{id} does not render it there"));
    }
    if (annotation(body, "tutti.dev/prune") == "keep") != (app.prune == PruneMode::Never) {
        return Err("whether it stays is not as its app says".to_owned());
    }
    let objects = app.objects(id);
    match objects.iter().find(|(known, _)| known == name) {
        Some((_, said)) => {
            let verdict = check_content(&live_state::as_stored(said), body);
            verdict.map_err(|why| format!("it is of another commit: {why}"))
        }
        None => Err("it is of another commit: nothing is said of it".to_owned()),
    }
}

/// Compares the sent object with the author's. Replicas that an autoscaler sets are left out.
fn check_content(wanted: &Value, sent: &Value) -> Result<(), String> {
    let mut wanted = wanted.clone();
    if sent["spec"]["replicas"].is_null()
        && let Some(spec) = wanted.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("replicas");
    }
    first_missing_path(&wanted, sent, "").or_else(|| first_extra_path(&wanted, sent, "")).map_or(Ok(()), Err)
}

pub fn may_delete(
    wanted: &DesiredRepository,
    cluster: &str,
    name: &ChaosObjectId,
    body: &Value,
    live: Option<&Value>,
) -> Result<(), String> {
    check_writable(wanted, cluster)?;
    if !wanted.is_valid() {
        return Err("the repository has errors".to_owned());
    }
    if let Some((id, _)) = wanted.owners(cluster, name).next() {
        return Err(format!("{id} wants it"));
    }
    let meant = &body["preconditions"];
    if meant["uid"].is_null() || meant["resourceVersion"].is_null() {
        return Err("it does not say which object it means".to_owned());
    }
    let is_it = |live: &&Value| ["uid", "resourceVersion"].iter().all(|it| live["metadata"][it] == meant[it]);
    // The server refuses to delete an object that was replaced meanwhile.
    let Some(live) = live.filter(is_it) else { return Ok(()) };
    if live["metadata"]["labels"]["tutti.dev/managed-by"] != "main"
        || annotation(live, "tutti.dev/origin") != name.origin()
    {
        return Err("it is not ours".to_owned());
    }
    if annotation(live, "tutti.dev/prune") == "keep" {
        return Err("it is to stay".to_owned());
    }
    let approved = (cluster.to_owned(), meant["uid"].as_str().unwrap_or_default().to_owned());
    if name.kind.deletes_contents() && !wanted.approved_deletes.contains(&approved) {
        return Err("nobody approved it".to_owned());
    }
    match wanted.apps.get(annotation(live, "tutti.dev/app").trim_start_matches("default/")) {
        Some(app) if app.paused => Err("its app is paused".to_owned()),
        Some(app) if app.prune == PruneMode::Never => Err("its app never prunes".to_owned()),
        _ => Ok(()),
    }
}

/// A Namespace or definition must not be deleted, even if approved, while it contains an object of ours or one that an app
/// renders.
pub fn may_delete_contents(
    wanted: &DesiredRepository,
    cluster: &str,
    name: &ChaosObjectId,
    inside: &[String],
) -> Result<(), String> {
    let is_inside = |other: &ChaosObjectId| other.kind.container().as_ref() == Some(name);
    if let Some((id, _, other, _)) = wanted.objects_on(cluster).find(|(_, _, other, _)| is_inside(other)) {
        return Err(format!("{other}, which {id} wants, is of it"));
    }
    inside.first().map_or(Ok(()), |first| Err(format!("{first} would go with it")))
}
