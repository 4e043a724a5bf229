//! Routes: kind Route, and `routes` of an app.

use std::collections::BTreeMap;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{placement, read_envelope, spec_fields};
use crate::manifest::RouteManifest;
use crate::model::{ClusterSelector, Route, RouteEntryPoint, RoutePath, RouteSettings, RouteTls};

/// Kind Route: `spec.app` names the app; without it, the app whose manifest is in the same folder.
pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<RouteManifest> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, true, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let app = fields.optional("app", reading).map(|app| reading.name(&app, NameRule::Subdomain));
    let name = metadata.as_ref().map_or("", |metadata| metadata.name.as_str());
    let location = metadata.as_ref().map(|metadata| metadata.location.clone());
    let mut route = read_fields(fields, name, reading)?;
    let metadata = metadata?;
    route.location = location?;
    let app = app.map_or(Some(None), |app| app.map(Some))?;
    Some(RouteManifest { namespace: metadata.namespace, app, route })
}

/// `routes` of a spec; a route without a name has that of the app.
pub fn list(fields: &mut ManifestFields<'_>, app: &str, reading: &mut ReadContext<'_>) -> Vec<Route> {
    let Some(items) = fields.optional("routes", reading).and_then(|list| reading.list(&list)) else {
        return Vec::new();
    };
    let mut routes: Vec<(Route, ManifestValue<'_>)> = Vec::new();
    for item in items {
        let Some(route) = read_inline(&item, app, reading) else { continue };
        if let Some((_, first)) = routes.iter().find(|(known, _)| known.name == route.name) {
            reading.duplicate(&route.name, &item, first);
        }
        routes.push((route, item));
    }
    routes.into_iter().map(|(route, _)| route).collect()
}

fn read_inline(value: &ManifestValue<'_>, app: &str, reading: &mut ReadContext<'_>) -> Option<Route> {
    let mut fields = ManifestFields::of(value, reading)?;
    let name = match fields.optional("name", reading) {
        Some(name) => reading.name(&name, NameRule::Subdomain),
        None => Some(app.to_owned()),
    };
    let mut route = read_fields(fields, &name?, reading)?;
    route.location = reading.location(value.node);
    Some(route)
}

fn read_fields(mut fields: ManifestFields<'_>, name: &str, reading: &mut ReadContext<'_>) -> Option<Route> {
    let place = fields.location().clone();
    let service = fields.optional("service", reading).map(|service| reading.name(&service, NameRule::Label));
    let clusters = match fields.optional_selector("clusters", reading) {
        Some(clusters) => placement::selector(&clusters, true, reading),
        None => Some(ClusterSelector::default()),
    };
    let host = fields.required("host", reading);
    let mut settings = read_settings(&mut fields, reading);
    settings.host = host.and_then(|host| read_host(&host, reading));
    let mut rings = BTreeMap::new();
    let of_rings = fields.optional("rings", reading).and_then(|rings| reading.entries(&rings));
    for (ring, value) in of_rings.unwrap_or_default() {
        let Some(mut own) = ManifestFields::of(&value, reading) else { continue };
        let host = own.optional("host", reading).and_then(|host| read_host(&host, reading));
        let settings = RouteSettings { host, ..read_settings(&mut own, reading) };
        own.finish(reading);
        rings.insert(ring.to_owned(), settings);
    }
    fields.finish(reading);
    let service = service.map_or(Some(None), |service| service.map(Some))?;
    let route = Route {
        name: name.to_owned(),
        service,
        clusters: clusters?,
        settings,
        rings,
        location: place.clone(),
    };
    let all = route.rings.keys().map(|ring| Some(ring.as_str())).chain([None]);
    let both = |settings: RouteSettings| {
        settings.tls.is_some() && matches!(settings.entry, Some(RouteEntryPoint::Gateway { .. }))
    };
    if all.map(|ring| route.settings_in_ring(ring)).any(both) {
        let message = "a route has `tls` and goes through a gateway";
        reading
            .mistake(codes::NOT_EXACTLY_ONE, message, place, "")
            .help("the certificate belongs to the listener of the gateway: remove `tls`");
    }
    Some(route)
}

/// All but the host, which only rings may leave out.
fn read_settings(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> RouteSettings {
    let help = "name paths, or remove the field: without it, the route is for all of the host";
    let paths =
        fields.optional_with_value("paths", help, reading).and_then(|paths| read_paths(&paths, reading));
    let tls = fields.optional("tls", reading).and_then(|tls| read_tls(&tls, reading));
    let class = fields.optional("class", reading);
    let gateway = fields.optional("gateway", reading);
    let entry = match (class, gateway) {
        (Some(_), Some(gateway)) => {
            let place = gateway.name_location.clone().unwrap_or_else(|| reading.location(gateway.node));
            reading
                .mistake(
                    codes::NOT_EXACTLY_ONE,
                    "a route has `class` or `gateway`, not both",
                    place,
                    &gateway.path,
                )
                .help("`class` makes an Ingress, `gateway` an HTTPRoute");
            None
        }
        (Some(class), None) => reading.name(&class, NameRule::Subdomain).map(RouteEntryPoint::Class),
        (None, Some(gateway)) => read_gateway(&gateway, reading),
        (None, None) => None,
    };
    RouteSettings { host: None, paths, tls, entry }
}

/// A host, or `*.` and one.
fn read_host(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.text(value)?;
    if NameRule::Subdomain.fits(text.strip_prefix("*.").unwrap_or(&text)) && text.contains('.') {
        return Some(text);
    }
    let help = "the name alone, in lower case, without https:// and port: shop.example.com or *.example.com";
    reading.bad_value(value, format!("{text:?} is not a host"), help);
    None
}

fn read_paths(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<RoutePath>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(
            value,
            "`paths` is empty",
            "name one, or remove the field: that is all of the host",
        );
    }
    let paths: Vec<_> = items.iter().map(|item| read_path(item, reading)).collect();
    paths.into_iter().collect()
}

fn read_path(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<RoutePath> {
    let mut fields = ManifestFields::of(value, reading)?;
    let help = "write a path, or remove the field: without it, the route is for all of the host";
    let path = match fields.optional_with_value("path", help, reading) {
        Some(path) => read_path_text(&path, reading),
        None => Some("/".to_owned()),
    };
    let exact = match fields.optional("type", reading) {
        Some(kind) => reading.choice(&kind, &[("Prefix", false), ("Exact", true)], &[], false),
        None => Some(false),
    };
    let port = fields.optional("port", reading).map(|port| reading.count(&port, 1..=65_535));
    fields.finish(reading);
    Some(RoutePath { path: path?, exact: exact?, port: port.map_or(Some(None), |port| port.map(Some))? })
}

fn read_path_text(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.word(value)?;
    let odd = ["//", "/./", "/../", "%2f", "%2F", "#", "?"].iter().any(|part| text.contains(part));
    if text.starts_with('/') && !odd && !text.ends_with("/..") && !text.ends_with("/.") {
        return Some(text);
    }
    reading.bad_value(value, format!("{text:?} is not a path"), "it begins with `/`, for example /api");
    None
}

fn read_tls(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<RouteTls> {
    let mut fields = ManifestFields::of(value, reading)?;
    let secret = fields.optional("secret", reading);
    let issuer = fields.optional("issuer", reading);
    let place = fields.location().clone();
    fields.finish(reading);
    match (secret, issuer) {
        (Some(secret), None) => reading.name(&secret, NameRule::Subdomain).map(RouteTls::Secret),
        (None, Some(issuer)) => reading.name(&issuer, NameRule::Subdomain).map(RouteTls::Issuer),
        _ => {
            let message = "`tls` has exactly one of secret and issuer";
            reading
                .mistake(codes::NOT_EXACTLY_ONE, message, place, &value.path)
                .help("`secret` names a Secret beside the app, `issuer` a ClusterIssuer of cert-manager");
            None
        }
    }
}

/// `name` of the app's namespace, or `namespace/name`.
fn read_gateway(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<RouteEntryPoint> {
    let text = reading.text(value)?;
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text.as_str()),
    };
    if NameRule::Subdomain.fits(name) && namespace.is_none_or(|namespace| NameRule::Label.fits(namespace)) {
        return Some(RouteEntryPoint::Gateway {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        });
    }
    let location = reading.location(value.node);
    reading
        .mistake(codes::BAD_NAME, format!("{text:?} is not a gateway"), location, &value.path)
        .help("write its name, or namespace/name when it lives in another namespace");
    None
}

#[cfg(test)]
mod tests {
    use crate::manifest;
    use crate::model::Snapshot;

    /// Every mistake of a Route with this spec, in order: a part of its one line.
    fn check(spec: &str, expected: &[&str]) {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Route\nmetadata: {{name: web}}\nspec: {{{spec}}}\n"
        );
        let manifests = manifest::read(&Snapshot::of_texts([("apps/web/route.yaml", text.as_str())]));
        let told: Vec<String> = manifests.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, part) in told.iter().zip(expected) {
            assert!(told.contains(part), "{told} has not {part}");
        }
        assert_eq!(manifests.routes.len(), usize::from(expected.is_empty()));
    }

    #[test]
    fn mistakes_have_their_places() {
        check("host: '*.example.com', tls: {secret: cert}, class: nginx", &[]);
        check("hots: a.io", &["E1202]: `host` is missing", "E1201]: unknown field `hots`"]);
        check("host: 'https://a.io'", &["E1206]: \"https://a.io\" is not a host"]);
        check("host: a.io, class: nginx, gateway: main", &["E1208]: a route has `class` or `gateway`"]);
        check("host: a.io, gateway: a/b/c", &["E1205]: \"a/b/c\" is not a gateway"]);
        check("host: a.io, tls: {}", &["E1208]: `tls` has exactly one of secret and issuer"]);
        check(
            "host: a.io, tls: {issuer: le}, rings: {prod: {gateway: main}}",
            &["E1208]: a route has `tls` and goes through a gateway"],
        );
        check(
            "host: a.io, paths: [{path: api}, {type: Regex}, {port: 0}]",
            &["\"api\" is not a path", "E1204]: `type` cannot be \"Regex\"", "`port` must be from 1"],
        );
    }
}
