//! Renders the routes of an app: an Ingress, or an HTTPRoute if a gateway is named.

use serde_json::{Map, Value, json};

use super::definitions::AppDefinedKinds;
use super::documents;
use super::object_document::ObjectDocument;
use super::render_job::RenderJob;
use super::render_output::ObjectsById;
use super::{codes, pod_sets};
use crate::model::{Diagnostic, ObjectId, Route, RouteEntryPoint, RoutePath, RouteSettings, RouteTls};

/// Adds the routes to the rendered objects, whose Services give the ports.
pub fn add_routes(job: &RenderJob<'_>, found: &mut ObjectsById) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let here = job.app.routes.iter().filter(|route| job.cluster.is_selected_by(&route.clusters));
    for route in here {
        let made = route_object(job, route, found).map_err(|mistake| vec![*mistake]).and_then(|object| {
            let source = route.location.clone();
            documents::finish_object(job, ObjectDocument::new(object, source), &AppDefinedKinds::default())
        });
        match made {
            Ok(object) => match found.get(&object.id) {
                Some((first, _)) => wrong.push(pod_sets::duplicate_object(job, first, &object)),
                None => {
                    found.insert(object.id.clone(), (object, String::new()));
                }
            },
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    wrong
}

fn route_object(
    job: &RenderJob<'_>,
    route: &Route,
    found: &ObjectsById,
) -> Result<Map<String, Value>, Box<Diagnostic>> {
    let settings = route.settings_in_ring(job.cluster.ring());
    let service = route.service.as_deref().unwrap_or(&job.app.id.name);
    let ports = service_ports(job, service, found);
    let mut paths = Vec::new();
    for path in settings.paths() {
        let port = service_port(job, route, &path, service, ports.as_deref())?;
        paths.push((path, port));
    }
    let object = match &settings.entry {
        Some(RouteEntryPoint::Gateway { namespace, name }) => {
            let gateway = match namespace {
                Some(namespace) => json!({"name": name, "namespace": namespace}),
                None => json!({"name": name}),
            };
            http_route(job, route, &settings, service, &paths, &gateway)
        }
        Some(RouteEntryPoint::Class(class)) => ingress(job, route, &settings, service, &paths, Some(class)),
        None => ingress(job, route, &settings, service, &paths, None),
    };
    match object {
        Value::Object(object) => Ok(object),
        _ => Ok(Map::new()),
    }
}

fn service_ports(job: &RenderJob<'_>, service: &str, found: &ObjectsById) -> Option<Vec<u64>> {
    let id = ObjectId::new("", "Service", Some(&job.app.id.namespace), service);
    let (object, _) = found.get(&id)?;
    let ports = object.body.field("/spec/ports")?;
    Some(ports.as_array()?.iter().filter_map(|port| port.get("port")?.as_u64()).collect())
}

fn service_port(
    job: &RenderJob<'_>,
    route: &Route,
    path: &RoutePath,
    service: &str,
    ports: Option<&[u64]>,
) -> Result<u64, Box<Diagnostic>> {
    let wrong = |message: String, help: &str| {
        Err(Box::new(job.error(codes::ROUTE, message).at(route.location.clone()).help(help)))
    };
    let wanted = path.port.map(u64::from);
    match (ports, wanted) {
        // The ports of a Service of another app are unknown here.
        (None, Some(port)) if route.service.is_some() => Ok(port),
        (None, _) => wrong(
            format!(
                "route {} leads to Service {service}, and {} renders none of that name",
                route.name, job.target
            ),
            "name the Service with `service`, and its port with `port` of each path",
        ),
        (Some(ports), Some(port)) if ports.contains(&port) => Ok(port),
        (Some(_), Some(port)) => wrong(
            format!("route {} leads to port {port} of Service {service}, which has no such port", route.name),
            "the port is that of the Service; without `port` it is its first one",
        ),
        (Some(ports), None) => match ports.first() {
            Some(port) => Ok(*port),
            None => wrong(
                format!("route {} leads to Service {service}, which has no port", route.name),
                "give the app a port",
            ),
        },
    }
}

fn ingress(
    job: &RenderJob<'_>,
    route: &Route,
    settings: &RouteSettings,
    service: &str,
    paths: &[(RoutePath, u64)],
    class: Option<&str>,
) -> Value {
    let path = |(path, port): &(RoutePath, u64)| {
        json!({
            "path": path.path,
            "pathType": if path.exact { "Exact" } else { "Prefix" },
            "backend": {"service": {"name": service, "port": {"number": port}}},
        })
    };
    let paths: Vec<Value> = paths.iter().map(path).collect();
    let mut spec = json!({"rules": [{"host": settings.host, "http": {"paths": paths}}]});
    let mut metadata = metadata(job, route);
    if let Some(class) = class {
        spec["ingressClassName"] = json!(class);
    }
    if let Some(tls) = &settings.tls {
        let secret = match tls {
            RouteTls::Secret(secret) => secret.clone(),
            RouteTls::Issuer(issuer) => {
                metadata["annotations"] = json!({"cert-manager.io/cluster-issuer": issuer});
                format!("{}-tls", route.name)
            }
        };
        spec["tls"] = json!([{"hosts": [settings.host], "secretName": secret}]);
    }
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec})
}

fn http_route(
    job: &RenderJob<'_>,
    route: &Route,
    settings: &RouteSettings,
    service: &str,
    paths: &[(RoutePath, u64)],
    gateway: &Value,
) -> Value {
    let rule = |(path, port): &(RoutePath, u64)| {
        let kind = if path.exact { "Exact" } else { "PathPrefix" };
        json!({
            "matches": [{"path": {"type": kind, "value": path.path}}],
            "backendRefs": [{"name": service, "port": port}],
        })
    };
    let rules: Vec<Value> = paths.iter().map(rule).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": metadata(job, route),
        "spec": {"parentRefs": [gateway], "hostnames": [settings.host], "rules": rules},
    })
}

fn metadata(job: &RenderJob<'_>, route: &Route) -> Value {
    json!({"name": route.name, "namespace": &*job.app.id.namespace, "labels": {"app": &*job.app.id.name}})
}

#[cfg(test)]
mod tests {
    use crate::fleet::{Target, assemble};
    use crate::manifest;
    use crate::model::{AppId, NoCharts, Snapshot};
    use crate::render::render;

    const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
    const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}}]}\n";

    /// One line for each route, without metadata; or the mistakes.
    fn check(routes: &str, beside: &str, expected: &[&str]) {
        let web = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: web}}\nspec: {{workloadType: Deployment, \
             developLanguage: go, runType: server, image: 'web:1', port: 8080, routes: [{routes}]}}\n"
        );
        let route = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Route\nmetadata: {{name: extra}}\nspec: {{{beside}}}\n"
        );
        let mut files =
            vec![("clusters/bj1.yaml", CLUSTER), ("rings.yaml", RINGS), ("apps/web/app.yaml", web.as_str())];
        if !beside.is_empty() {
            files.push(("apps/web/route.yaml", &route));
        }
        let snapshot = Snapshot::of_texts(files);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        assert!(fleet.is_valid(), "{:#?}", fleet.diagnostics);
        let target = Target { app: AppId::new("default", "web"), cluster: "bj1".into() };
        let told: Vec<String> = match render(&fleet, &snapshot, &NoCharts, &target) {
            Err(wrong) => wrong.iter().map(ToString::to_string).collect(),
            Ok(rendered) => rendered
                .objects
                .iter()
                .filter(|object| ["Ingress", "HTTPRoute"].contains(&&*object.id.kind))
                .map(|object| {
                    let fields = object.body.fields();
                    let issuer = fields.pointer("/metadata/annotations/cert-manager.io~1cluster-issuer");
                    let issuer = issuer.map_or_else(String::new, |issuer| format!(" by {issuer}"));
                    format!("{}{issuer} {}", object.id, fields["spec"]).replace('"', "")
                })
                .collect(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn route_renders_ingress() {
        check(
            "{host: a.io}",
            "",
            &["Ingress default/web {rules:[{host:a.io,http:{paths:[{path:/,pathType:Prefix,\
               backend:{service:{name:web,port:{number:8080}}}}]}}]}"],
        );
        check(
            "{host: a.io, paths: [{path: /api, port: 8080}, {path: /x, type: Exact}], tls: {issuer: le}, class: nginx}",
            "host: b.io, tls: {secret: cert}, service: other, paths: [{port: 81}]",
            &[
                "Ingress default/extra {rules:[{host:b.io,http:{paths:[{path:/,pathType:Prefix,\
                 backend:{service:{name:other,port:{number:81}}}}]}}],tls:[{hosts:[b.io],secretName:cert}]}",
                "Ingress default/web by le {rules:[{host:a.io,http:{paths:[{path:/api,pathType:Prefix,\
                 backend:{service:{name:web,port:{number:8080}}}},{path:/x,pathType:Exact,\
                 backend:{service:{name:web,port:{number:8080}}}}]}}],ingressClassName:nginx,\
                 tls:[{hosts:[a.io],secretName:web-tls}]}",
            ],
        );
    }

    #[test]
    fn route_with_gateway_renders_http_route() {
        check(
            "{host: a.io, gateway: infra/main, paths: [{path: /api}]}",
            "",
            &["HTTPRoute default/web {parentRefs:[{name:main,namespace:infra}],hostnames:[a.io],\
               rules:[{matches:[{path:{type:PathPrefix,value:/api}}],backendRefs:[{name:web,port:8080}]}]}"],
        );
    }

    #[test]
    fn route_depends_on_ring_and_cluster() {
        check(
            "{host: a.io, class: nginx, rings: {test: {host: t.a.io, class: traefik}}}",
            "",
            &["Ingress default/web {rules:[{host:t.a.io,http:{paths:[{path:/,pathType:Prefix,\
               backend:{service:{name:web,port:{number:8080}}}}]}}],ingressClassName:traefik}"],
        );
        check("{host: a.io, clusters: {names: [gz*]}}", "", &[]);
    }

    #[test]
    fn route_to_missing_service_is_refused() {
        check(
            "{host: a.io, paths: [{port: 81}]}",
            "host: b.io, service: other",
            &[
                "error[E3081]: route web leads to port 81 of Service web, which has no such port at apps/web/app.yaml:4:109",
                "error[E3081]: route extra leads to Service other, and default/web on bj1 renders none of that name \
                 at apps/web/route.yaml:3:18",
            ],
        );
    }
}
