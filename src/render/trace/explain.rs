//! Explains each field of an object: its writer, and the values that it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::files::{Input, Role, layer_name};
use super::leaves::Leaf;
use super::reach::{self, Altered, How};
use super::runs::Stage;
use super::{Key, Made};
use crate::fleet::Target;
use crate::model::{Location, ObjectId, Snapshot};
use crate::render::Renderer;

/// An object, field by field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedObject {
    pub id: ObjectId,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// `spec.template.spec.containers[0].image`.
    pub path: String,
    /// `None`: it is secret.
    pub value: Option<Value>,
    pub written: Written,
    /// The values that it equals or is computed from.
    pub from: Vec<Origin>,
    /// The values that decide whether it exists.
    pub because: Vec<Origin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum Written {
    Template(Place),
    File(Place),
    Patch(Place),
    Manifest(Place),
    /// A label or annotation of ours, or a default namespace.
    Tutti,
}

impl Written {
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Template(place) | Self::File(place) | Self::Patch(place) | Self::Manifest(place) => {
                Some(place)
            }
            Self::Tutti => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `cluster zone`, `app`.
    pub layer: String,
    pub file: String,
    pub line: u32,
}

/// `apps/web/app.yaml:7 (app)`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.file, self.line, self.layer)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Origin {
    #[serde(flatten)]
    pub place: Place,
    /// Within its document.
    pub path: String,
    pub value: Option<Value>,
    /// The overridden values of lower layers, highest first.
    pub overrides: Vec<Self>,
}

/// `None`: the target does not render.
pub fn explain(renderer: &Renderer<'_>, target: &Target) -> Option<Vec<ExplainedObject>> {
    let stage = Stage::new(renderer.job(target)?)?;
    let made = stage.marked()?;
    let reached = Reached::of(&stage, &made, &|_, _| true);
    let mut objects: BTreeMap<ObjectId, ExplainedObject> = BTreeMap::new();
    for one in &made {
        let id = one.object.id.clone();
        objects.entry(id.clone()).or_insert_with(|| {
            let body = one.object.body.fields();
            let field = |(path, value): (String, &Value)| reached.field(&stage, one, path, value);
            ExplainedObject { id, fields: reach::leaves(&body).map(field).collect() }
        });
    }
    Some(objects.into_values().collect())
}

/// More values than this are not traced for [`set_at`]: each takes a render.
const MOST_VALUES: usize = 64;

/// The positions of fields: the value in a file, else the line of the template or file that writes the field or its parent.
pub fn set_at(
    renderer: &Renderer<'_>,
    target: &Target,
    fields: &BTreeSet<(ObjectId, String)>,
) -> BTreeMap<(ObjectId, String), Location> {
    let traced = || {
        let stage = Stage::new(renderer.job(target)?)?;
        let made = stage.marked()?;
        let is_small = stage.inputs.iter().map(|input| input.leaves.len()).sum::<usize>() <= MOST_VALUES;
        let reached = Reached::of(&stage, &made, &|_, _| is_small);
        let place = |(id, path): &(ObjectId, String)| {
            let of_object: Vec<&Made> = made.iter().filter(|one| one.object.id == *id).collect();
            let value = of_object.iter().find_map(|one| {
                let reaching = reached.by_field.get(&(one.key.clone(), path.clone()))?.iter();
                let (_, (input, leaf)) = reaching.filter(|(how, _)| *how != How::Switched).min()?;
                Some(stage.inputs.get(*input)?.leaves.get(*leaf)?.location.clone())
            });
            let within = std::iter::successors(Some(path.as_str()), |path| Some(path.rsplit_once('.')?.0));
            let written =
                || within.clone().find_map(|path| of_object.iter().find_map(|one| one.fields.get(path)));
            // A shipped file has no position in the repository.
            let is_there = |it: &Location| renderer.snapshot.text(&it.file).is_some();
            value.filter(is_there).or_else(|| written().cloned().filter(is_there))
        };
        Some(fields.iter().filter_map(|field| Some((field.clone(), place(field)?))).collect())
    };
    traced().unwrap_or_default()
}

/// More differing values than this are not traced: each takes a render.
const MOST_TRACED: usize = 16;

/// The positions of values that differ from another revision, for the fields that they reach. Empty if the target does not
/// render, or if too much differs.
pub fn changed_lines(
    renderer: &Renderer<'_>,
    target: &Target,
    base: &Snapshot,
    fields: &BTreeSet<(ObjectId, String)>,
) -> BTreeMap<(ObjectId, String), Place> {
    let traced = || {
        let stage = Stage::new(renderer.job(target)?)?;
        let known = stage.inputs.iter().map(|input| {
            // Shipped files are equal in every revision.
            let is_shipped = renderer.snapshot.text(&input.path).is_none();
            input.values_in(if is_shipped { &input.text } else { base.text(&input.path).unwrap_or_default() })
        });
        let known: Vec<BTreeSet<(String, String)>> = known.collect();
        let differs = |number: usize, leaf: &Leaf| {
            known
                .get(number)
                .is_some_and(|known| !known.contains(&(leaf.path.clone(), leaf.value.to_string())))
        };
        let all = stage.inputs.iter().enumerate();
        let differing =
            all.flat_map(|(number, input)| input.leaves.iter().filter(move |leaf| differs(number, leaf)));
        if !(1..=MOST_TRACED).contains(&differing.count()) {
            return None;
        }
        let made = stage.marked()?;
        let reached = Reached::of(&stage, &made, &differs);
        let mut places = BTreeMap::new();
        for one in &made {
            for wanted in fields.iter().filter(|(id, _)| *id == one.object.id) {
                let best =
                    reached.by_field.get(&(one.key.clone(), wanted.1.clone())).into_iter().flatten().min();
                let place = best.and_then(|(_, (input, leaf))| {
                    let input = stage.inputs.get(*input)?;
                    Some(place_of(input, input.leaves.get(*leaf)?))
                });
                if let Some(place) = place {
                    places.entry(wanted.clone()).or_insert(place);
                }
            }
        }
        Some(places)
    };
    traced().unwrap_or_default()
}

/// The index of an input, and of a leaf in it.
type Number = (usize, usize);

/// Which values reach which fields.
struct Reached {
    by_field: BTreeMap<(Key, String), Vec<(How, Number)>>,
}

impl Reached {
    /// `wanted` filters the traced values.
    fn of(stage: &Stage<'_>, made: &[Made], wanted: &dyn Fn(usize, &Leaf) -> bool) -> Self {
        let mut by_field: BTreeMap<_, Vec<(How, Number)>> = BTreeMap::new();
        for (number, input) in stage.inputs.iter().enumerate() {
            for (index, leaf) in input.leaves.iter().enumerate().filter(|(_, leaf)| wanted(number, leaf)) {
                let Some((other, after)) = stage.with(input, leaf) else { continue };
                let altered = Altered { old: &leaf.value, new: &other, chooses: chooses(input, leaf) };
                for (field, how) in reach::changed(made, &after, altered) {
                    by_field.entry(field).or_default().push((how, (number, index)));
                }
            }
        }
        Self { by_field }
    }

    fn field(&self, stage: &Stage<'_>, made: &Made, path: String, value: &Value) -> Field {
        let secret = made.object.holds_secrets();
        let empty = Vec::new();
        let reached = self.by_field.get(&(made.key.clone(), path.clone())).unwrap_or(&empty);
        let leaf = |(input, leaf): Number| {
            let input = stage.inputs.get(input)?;
            Some((input, input.leaves.get(leaf)?))
        };
        // Highest layer first; within a file, equal values before computed ones.
        let mut by_rank: Vec<_> =
            reached.iter().filter_map(|(how, number)| Some((*how, leaf(*number)?))).collect();
        by_rank
            .sort_by_key(|(how, (input, leaf))| (*how, std::cmp::Reverse(input.role), leaf.location.clone()));
        let (switched, direct): (Vec<_>, Vec<_>) =
            by_rank.into_iter().partition(|(how, _)| *how == How::Switched);
        let written = writer(made, &path, &direct);
        let names = |(how, (input, leaf)): &(How, (&Input, &Leaf))| {
            // The writer itself is not repeated as an origin.
            let told = matches!(&written, Written::Patch(place) | Written::Manifest(place)
                if *how == How::Copied && *place == place_of(input, leaf));
            (!told).then(|| origin(stage, input, leaf, secret))
        };
        let from: Vec<Origin> = direct.iter().filter_map(names).collect();
        let because: Vec<Origin> = switched.iter().filter_map(names).collect();
        Field { path, value: (!secret).then(|| value.clone()), written, from, because }
    }
}

type Reaching<'i> = (How, (&'i Input, &'i Leaf));

fn writer(made: &Made, path: &str, direct: &[Reaching<'_>]) -> Written {
    let of_role = |role: Role| direct.iter().filter(move |(_, (input, _))| input.role == role);
    let patch = of_role(Role::Patch).chain(of_role(Role::App).filter(|(_, (_, leaf))| is_patch(leaf)));
    if let Some((_, (input, leaf))) = patch.last() {
        return Written::Patch(place_of(input, leaf));
    }
    let mut of_app = of_role(Role::App).filter(|(how, _)| *how == How::Copied);
    if let Some((_, (input, leaf))) = of_app.find(|(_, (_, leaf))| is_overlay(leaf)) {
        return Written::Manifest(place_of(input, leaf));
    }
    if let Some(location) = written_at(made, path) {
        let layer = layer_name(&location.file);
        let place = Place { layer, file: location.file.clone(), line: location.start.line };
        return if place.file.ends_with(".j2") { Written::Template(place) } else { Written::File(place) };
    }
    match direct.first() {
        Some((_, (input, leaf))) if !path.contains("tutti.dev/") => Written::Manifest(place_of(input, leaf)),
        _ => Written::Tutti,
    }
}

/// Whether layers are selected by this value.
fn chooses(input: &Input, leaf: &Leaf) -> bool {
    const OF_APP: [&str; 4] =
        ["spec.workloadType", "spec.developLanguage", "spec.runType", "spec.podSpec.deployType"];
    match input.role {
        Role::App => {
            OF_APP.contains(&leaf.path.as_str()) || leaf.path.starts_with("metadata.labels.tutti.dev/")
        }
        Role::Cluster => leaf.path.starts_with("metadata."),
        Role::Rings => true,
        Role::Values | Role::Patch | Role::Pin | Role::Instance => false,
    }
}

/// Whether the value is merged over template output.
fn is_overlay(leaf: &Leaf) -> bool {
    leaf.path.starts_with("spec.podSpec.template.") || leaf.path.starts_with("spec.labels.")
}

fn is_patch(leaf: &Leaf) -> bool {
    leaf.path.starts_with("spec.patches[")
}

fn written_at<'m>(made: &'m Made, path: &str) -> Option<&'m Location> {
    made.fields.get(path).or_else(|| {
        // Canonical form moved stringData of a Secret to data.
        let key = path.strip_prefix("data.")?;
        made.fields.get(&format!("stringData.{key}"))
    })
}

fn place_of(input: &Input, leaf: &Leaf) -> Place {
    Place {
        layer: match (input.role, leaf.path.starts_with("spec.clusterTopology.")) {
            (Role::App, true) => "podSet".to_owned(),
            _ => input.layer.clone(),
        },
        file: leaf.location.file.clone(),
        line: leaf.location.start.line,
    }
}

fn origin(stage: &Stage<'_>, input: &Input, leaf: &Leaf, secret: bool) -> Origin {
    let one = |input: &Input, leaf: &Leaf| Origin {
        place: place_of(input, leaf),
        path: leaf.path.clone(),
        value: (!secret).then(|| leaf.value.clone()),
        overrides: Vec::new(),
    };
    let mut origin = one(input, leaf);
    if let Some(path) = value_path(input, leaf) {
        let below = stage.inputs.iter().filter(|lower| lower.role == Role::Values);
        let below: Vec<&Input> = match input.role {
            Role::Values => below.take_while(|lower| lower.path != input.path).collect(),
            _ => below.collect(),
        };
        for lower in below.into_iter().rev() {
            let same = lower.leaves.iter().filter(|lower| overlaps(&lower.path, &path));
            origin.overrides.extend(same.map(|leaf| one(lower, leaf)));
        }
    }
    origin
}

fn overlaps(one: &str, other: &str) -> bool {
    reach::holds(one, other) || reach::holds(other, one)
}

/// The path under `values` that a leaf sets.
fn value_path(input: &Input, leaf: &Leaf) -> Option<String> {
    match input.role {
        Role::Values => Some(leaf.path.clone()),
        Role::App if leaf.path.starts_with("spec.clusterTopology.") => {
            let name = leaf.path.rsplit('.').next()?;
            ["replicas", "image"].contains(&name).then(|| name.to_owned())
        }
        Role::App if leaf.path.starts_with("spec.podSpec.template.") => {
            let ends = [
                ("containers[0].image", "image"),
                ("ports[0].containerPort", "port"),
                ("containers[0].name", "container"),
            ];
            ends.into_iter().find(|(end, _)| leaf.path.ends_with(end)).map(|(_, value)| value.to_owned())
        }
        Role::App if leaf.path == "spec.updateStrategy.minReadySeconds" => Some("minReadySeconds".to_owned()),
        Role::App => leaf.path.strip_prefix("spec.").map(str::to_owned),
        _ => None,
    }
}
