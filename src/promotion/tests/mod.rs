mod edit;
mod gates;
mod table;
mod texts;
mod walks;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    AppRingState, AppRolloutState, CommitUndo, MAX_OPEN, PinChange, PromotionDecision, PromotionInput,
    PullRequest, PullRequestState, decide,
};
use crate::fleet::{Fleet, assemble};
use crate::manifest;
use crate::model::{AppId, Revision, Snapshot};

/// Name, more fields of its spec, pins by ring.
type App<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Rings in order, each with one cluster of its name: `test; pre: soak: 10m; prod: promotion: {mode: auto}`.
fn fleet(rings: &str, apps: &[App<'_>]) -> Fleet {
    let mut files = vec![(
        "tutti.yaml".to_owned(),
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: tutti}\nspec: {}\n".to_owned(),
    )];
    let mut list = String::new();
    for ring in rings.split(';').map(str::trim) {
        let (name, more) = ring.split_once(": ").unwrap_or((ring, ""));
        let comma = if more.is_empty() { "" } else { ", " };
        list.push_str(&format!("    - {{name: {name}, clusters: {{names: [{name}]}}{comma}{more}}}\n"));
        let cluster = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{connection: {{sandbox: {{}}}}}}\n"
        );
        files.push((format!("clusters/{name}.yaml"), cluster));
    }
    files.push((
        "rings.yaml".to_owned(),
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {{name: rings}}\nspec:\n  rings:\n{list}"
        ),
    ));
    for (name, more, pins) in apps {
        let comma = if more.is_empty() { "" } else { ", " };
        files.push((format!("apps/{name}/app.yaml"), format!("apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}}}\nspec: {{workloadType: Deployment, developLanguage: go, runType: worker, image: 'app:v1'{comma}{more}}}\n")));
        for (ring, version) in *pins {
            files.push((format!("apps/{name}/pins/{ring}.yaml"), format!("version: {version}\n")));
        }
    }
    let snapshot = Snapshot::of_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assemble(manifest::read(&snapshot), &snapshot)
}

fn id(name: &str) -> AppId {
    AppId::new("default", name)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

/// The state at one moment; a test changes the part that it is about.
struct Case {
    fleet: Fleet,
    rings: BTreeMap<(AppId, String), AppRingState>,
    rollouts: Vec<AppRolloutState>,
    undo: BTreeMap<Revision, CommitUndo>,
    requests: Vec<PullRequest>,
    unread: Option<&'static str>,
    limit: usize,
    now: Timestamp,
}

impl Case {
    fn new(rings: &str, apps: &[App<'_>]) -> Self {
        Self {
            fleet: fleet(rings, apps),
            rings: BTreeMap::new(),
            rollouts: Vec::new(),
            undo: BTreeMap::new(),
            requests: Vec::new(),
            unread: None,
            limit: MAX_OPEN,
            now: at(1_000_000),
        }
    }

    /// A ring runs a version, and has been done with it for a day.
    fn runs(mut self, app: &str, ring: &str, version: &str) -> Self {
        let state = AppRingState {
            units: 2,
            done: 2,
            version: version.to_owned(),
            done_since: Some(at(900_000)),
            ..AppRingState::default()
        };
        self.rings.insert((id(app), ring.to_owned()), state);
        self
    }

    fn state(&mut self, app: &str, ring: &str) -> &mut AppRingState {
        self.rings.get_mut(&(id(app), ring.to_owned())).expect("a ring that runs something")
    }

    fn request(
        &mut self,
        number: u64,
        branch: &str,
        state: PullRequestState,
        body: &str,
    ) -> &mut PullRequest {
        self.requests.push(PullRequest {
            number,
            branch: branch.to_owned(),
            head: Revision::from("abc"),
            body: body.to_owned(),
            state,
            has_foreign_commits: false,
            has_conflicts: false,
        });
        self.requests.last_mut().expect("it was pushed")
    }

    fn input(&self) -> PromotionInput<'_> {
        PromotionInput {
            fleet: &self.fleet,
            rings: &self.rings,
            rollouts: &self.rollouts,
            undo: &self.undo,
            pull_requests: &self.requests,
            unread_reason: self.unread,
            limit: self.limit,
            now: self.now,
            wall_time: self.now,
        }
    }

    fn decide(&self) -> PromotionDecision {
        decide(&self.input())
    }
}

fn pin(app: &str, ring: &str, from: &str, to: &str) -> PinChange {
    PinChange {
        app: id(app),
        file: format!("apps/{app}/pins/{ring}.yaml"),
        from: Some(from.to_owned()),
        to: to.to_owned(),
    }
}

/// A linear congruential generator: the same cases in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}
