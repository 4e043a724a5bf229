//! Checks the rendered objects of an app against the kinds and registries that its project allows.

use serde_json::Value;

use super::codes;
use super::render_job::RenderJob;
use super::render_output::ObjectsById;
use crate::model::{Diagnostic, ProjectRestrictions, RenderedObject};

pub fn check(job: &RenderJob<'_>, found: &ObjectsById) -> Vec<Diagnostic> {
    let Some((project, of_project)) = job.fleet.project_of(job.app) else { return Vec::new() };
    let Some(allow) = &of_project.allow else { return Vec::new() };
    let refuse = |code, object: &RenderedObject, what: &str, help: String| {
        let message =
            format!("{} {what}, and {} does not allow it", job.describe(&object.id), project.title());
        job.error(code, message)
            .at(object.source.clone())
            .help(help)
            .related(allow.location.clone(), "the limits of the project")
    };
    let mut wrong = Vec::new();
    for (object, _) in found.values() {
        if !allow.allows_object_kind(&object.kind.group, &object.kind.kind) {
            let help = format!("allowed kinds: {}", join_names(allow.kinds.as_deref()));
            wrong.push(refuse(
                codes::KIND_NOT_ALLOWED,
                object,
                &format!("is of the kind {}", object.kind.kind),
                help,
            ));
        }
        for image in disallowed_images(&object.body.fields(), allow) {
            let help = format!("allowed registries: {}", join_names(allow.registries.as_deref()));
            let what = match &object.encrypted_values {
                Some(_) => "runs an image of another registry".to_owned(),
                None => format!("runs the image {image}"),
            };
            wrong.push(refuse(codes::IMAGE_NOT_ALLOWED, object, &what, help));
        }
    }
    wrong
}

fn join_names(words: Option<&[String]>) -> String {
    words.unwrap_or_default().join(", ")
}

/// Images outside the allowed registries, each once. Containers have the same list names in every kind.
fn disallowed_images<'a>(body: &'a Value, allow: &ProjectRestrictions) -> Vec<&'a str> {
    let mut images = Vec::new();
    collect(body, &mut images);
    images.retain(|image| !allow.allows_image(image));
    images.sort_unstable();
    images.dedup();
    images
}

fn collect<'a>(value: &'a Value, images: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let ("containers" | "initContainers" | "ephemeralContainers", Value::Array(list)) =
                    (name.as_str(), value)
                {
                    images.extend(list.iter().filter_map(|item| item.get("image")?.as_str()));
                }
                if let ("volumes", Value::Array(list)) = (name.as_str(), value) {
                    images.extend(list.iter().filter_map(|item| item.pointer("/image/reference")?.as_str()));
                }
                collect(value, images);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, images)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet::{Target, assemble};
    use crate::manifest;
    use crate::model::{AppId, NoCharts, Snapshot};
    use crate::render::render;

    const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";

    fn check(allow: &str, expected: &[&str]) {
        let project = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{allow: {{{allow}}}}}\n"
        );
        let web = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: web, namespace: shop}\nspec: \
                   {workloadType: Deployment, developLanguage: go, runType: server, image: 'a.io/shop/web:1', port: 80}\n";
        let files = [("clusters/bj1.yaml", CLUSTER), ("p.yaml", &project), ("apps/web/app.yaml", web)];
        let snapshot = Snapshot::of_texts(files);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        assert!(fleet.is_valid(), "{:#?}", fleet.diagnostics);
        let target = Target { app: AppId::new("shop", "web"), cluster: "bj1".into() };
        let wrong = render(&fleet, &snapshot, &NoCharts, &target).err().unwrap_or_default();
        let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn project_limits_kinds_and_registries() {
        check("registries: [a.io/shop], kinds: [Component, Deployment, Service]", &[]);
        check(
            "registries: [b.io], kinds: [Deployment]",
            &[
                "error[E3071]: Service shop/web on bj1 is of the kind Service, and Project shop does not allow it \
                 at shipped/templates/base/service.yaml.j2:1:1",
                "error[E3072]: Deployment shop/web on bj1 runs the image a.io/shop/web:1, and Project shop does not \
                 allow it at shipped/templates/workload/deployment/deployment.yaml.j2:1:1",
            ],
        );
    }
}
