//! Finds a route of notifications by its name.

use std::sync::Arc;

use anyhow::bail;

use crate::manifest::read::nearest;
use crate::model::Notification;

pub fn route_named<'r>(routes: &'r [Arc<Notification>], name: &str) -> anyhow::Result<&'r Arc<Notification>> {
    let Some(route) = routes.iter().find(|route| route.name == name) else {
        let known: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
        let near = match nearest(name, &known) {
            Some(near) => format!("; did you mean {near}?"),
            None if known.is_empty() => String::new(),
            None => format!("; there are {}", known.join(", ")),
        };
        bail!("no route {name} in notifications/{near}")
    };
    Ok(route)
}
