//! Counts the renders of each commit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::fleet::Fleet;
use crate::render::{FleetRenderer, Pacing, RenderCache, Renders, is_awaited};

const OTHER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: job}\nspec: {workloadType: Deployment, developLanguage: java, runType: worker, image: 'job:1'}\n";
const OBJECTS: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: conf}\nspec: {files: [\"objects/*\"]}\n";
const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: b}\n";

fn cluster(name: &str, zone: &str) -> String {
    CLUSTER.replace("bj1", name).replace("zone: bj", &format!("zone: {zone}"))
}

/// A repository that changes by commit, with its cache of renders.
struct Commits {
    files: std::collections::BTreeMap<String, String>,
    log: Vec<Vec<String>>,
    memory: RenderCache,
}

impl Commits {
    /// Three apps on three clusters.
    fn new(more: &[(&str, &str)]) -> Self {
        let clusters = [("bj1", "bj"), ("bj2", "bj"), ("gz1", "gz")];
        let files = clusters.map(|(name, zone)| (format!("clusters/{name}.yaml"), cluster(name, zone)));
        let apps = [
            ("apps/web/app.yaml", WEB),
            ("apps/job/app.yaml", OTHER),
            ("apps/conf/app.yaml", OBJECTS),
            ("apps/conf/objects/a.yaml", CONFIG),
        ];
        let apps = apps.iter().chain(more).map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self {
            files: files.into_iter().chain(apps).collect(),
            log: Vec::new(),
            memory: RenderCache::default(),
        }
    }

    /// Changes files, renders, and compares with a render without cache.
    fn render(&mut self, changes: &[(&str, &str)]) -> Renders {
        let (snapshot, fleet) = self.commit(changes);
        let renders = FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut self.memory);
        let anew = FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
        assert_eq!(renders.apps, anew.apps);
        renders
    }

    /// Renders with time for `most` new targets.
    fn render_some(&mut self, changes: &[(&str, &str)], most: usize) -> Renders {
        let (snapshot, fleet) = self.commit(changes);
        let asked = AtomicUsize::new(0);
        // An app calls it once before it starts.
        let goes_on = || asked.fetch_add(1, Ordering::Relaxed) <= most;
        FleetRenderer::new(&fleet, &snapshot, &NoCharts)
            .render_while(&mut self.memory, Pacing { goes_on: &goes_on, clock: &|| Duration::ZERO })
    }

    fn commit(&mut self, changes: &[(&str, &str)]) -> (Snapshot, Fleet) {
        self.files.extend(changes.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let changed: Vec<String> = match self.log.len() {
            0 => self.files.keys().cloned().collect(),
            _ => changes.iter().map(|(path, _)| (*path).to_owned()).collect(),
        };
        self.log.push(changed);
        let mut snapshot =
            Snapshot::of_texts(self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        snapshot.revision = format!("c{}", self.log.len()).as_str().into();
        let history = Arc::make_mut(&mut snapshot.history);
        for (number, paths) in self.log.iter().rev().enumerate() {
            history.commits.push(format!("c{}", self.log.len() - number).as_str().into());
            for path in paths {
                let folders = path.match_indices('/').map(|(slash, _)| &path[..=slash]);
                for key in folders.chain([path.as_str()]) {
                    history.last_change_index.entry(key.to_owned()).or_insert(number);
                }
            }
        }
        let fleet = fleet(&snapshot);
        (snapshot, fleet)
    }

    #[track_caller]
    fn check(&mut self, changes: &[(&str, &str)], made: usize) {
        assert_eq!(self.render(changes).render_count, made, "{changes:?}");
    }
}

#[test]
fn equal_clusters_share_one_render() {
    let mut commits = Commits::new(&[]);
    let renders = commits.render(&[]);
    assert_eq!((renders.render_count, renders.results().count()), (3, 9));
    let objects = |cluster: &str| {
        let target = Target { app: AppId::new("default", "web"), cluster: cluster.into() };
        renders.get(&target).unwrap().1.as_ref().unwrap().objects.clone()
    };
    assert!(Arc::ptr_eq(&objects("bj1"), &objects("gz1")));
    commits.check(&[], 0);
    commits.check(&[("README.md", "hello"), ("apps/web/README.md", "web")], 0);
}

#[test]
fn unfinished_targets_are_rendered_later() {
    let mut commits = Commits::new(&[]);
    let awaited = |renders: &Renders| -> Vec<String> {
        let targets = renders.iter().filter(|(_, (_, result))| is_awaited(result));
        targets.map(|(target, _)| target.to_string()).collect()
    };
    let renders = commits.render_some(&[], 0);
    assert_eq!((awaited(&renders).len(), renders.render_count, renders.is_complete()), (9, 0, false));
    assert!(commits.render(&[]).is_complete());
    // Unchanged targets need no time.
    let renders = commits.render_some(&[("README.md", "hello")], 0);
    assert_eq!((awaited(&renders), renders.is_complete()), (vec![], true));
    let other = OBJECTS.replace("{name: conf}", "{name: conf, labels: {a: b}}");
    let renders = commits.render_some(&[("apps/conf/app.yaml", &other)], 0);
    assert_eq!(awaited(&renders), ["default/conf on bj1", "default/conf on bj2", "default/conf on gz1"]);
    commits.check(&[], 1);
    // Finished targets are not rendered again.
    let other = "{{ cluster.name }}";
    let renders = commits.render_some(&[("apps/web/layer/zone.yaml.j2", &zone(other))], 2);
    let is_some_awaited = !awaited(&renders).is_empty();
    assert!(is_some_awaited && renders.render_count > 0, "{:?} {}", awaited(&renders), renders.render_count);
    let made = renders.render_count;
    assert_eq!(made + commits.render(&[]).render_count, 3);
}

fn zone(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: zone}}\ndata: {{zone: '{value}'}}\n")
}

#[test]
fn commit_renders_only_affected_apps() {
    let mut commits = Commits::new(&[]);
    commits.check(&[], 3);
    commits.check(&[("apps/web/app.yaml", &WEB.replace("web:1", "web:2"))], 1);
    commits.check(&[("apps/conf/objects/a.yaml", &CONFIG.replace("b}", "c}"))], 1);
    commits.check(&[("apps/conf/objects/b.yaml", &CONFIG.replace("name: conf", "name: more"))], 1);
    commits.check(&[("templates/language/java/values.yaml", "env: {A: b}")], 1);
    commits.check(&[("templates/language/node/values.yaml", "env: {A: b}")], 0);
    commits.check(&[("apps/web/layer/values.yaml", "env: {A: b}")], 1);
    // Every app uses the base layer.
    commits.check(
        &[("templates/base/patches/a.yaml", "target: {kind: '*'}\nmerge: {metadata: {labels: {a: b}}}")],
        3,
    );
    commits.check(
        &[("tutti.yaml", "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: two}\n")],
        3,
    );
    commits.check(&[("clusters/gz2.yaml", &cluster("gz2", "gz"))], 0);
    commits.check(&[("clusters/gz1.yaml", &cluster("gz1", "gz").replace("10.0.0.1", "10.0.0.2"))], 0);
}

#[test]
fn cluster_layer_affects_only_its_clusters() {
    let zone = ("templates/cluster/gz/layer.yaml", "clusters: {matchLabels: {zone: gz}}");
    let mut commits = Commits::new(&[zone, ("templates/cluster/gz/values.yaml", "env: {ZONE: gz}")]);
    commits.check(&[], 6);
    commits.check(&[("templates/cluster/gz/values.yaml", "env: {ZONE: g}")], 3);
    let renders = commits.render(&[("templates/cluster/gz/values.yaml", "env: {ZONE: z}")]);
    let zones = |cluster: &str| {
        let target = Target { app: AppId::new("default", "web"), cluster: cluster.into() };
        let rendered = renders.get(&target).unwrap().1.clone().unwrap();
        body(&rendered, "Deployment", "web").pointer(&format!("{CONTAINER}/env/1")).cloned()
    };
    assert_eq!(zones("gz1"), Some(json!({"name": "ZONE", "value": "z"})));
    assert_eq!(zones("bj1"), None);
}

#[test]
fn clusters_with_equal_answers_share_render() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {zone: {{ cluster.labels.zone }}}\n";
    let mut commits = Commits::new(&[("apps/web/layer/config.yaml.j2", template)]);
    commits.check(&[], 2 + 2);
    commits.check(&[("clusters/bj2.yaml", &cluster("bj2", "sh"))], 1);
    commits.check(
        &[(
            "apps/web/layer/config.yaml.j2",
            &template.replace("cluster.labels.zone", "cluster | tojson | sha256"),
        )],
        3,
    );
    commits.check(&[("clusters/bj2.yaml", &cluster("bj2", "sz"))], 1);
    commits.check(
        &[(
            "apps/web/layer/config.yaml.j2",
            &template.replace("cluster.labels.zone", "'n' ~ (cluster.labels | length)"),
        )],
        3,
    );
    commits.check(
        &[(
            "apps/web/layer/config.yaml.j2",
            &template.replace("cluster.labels.zone", "'a' if cluster.labels.rack is defined else 'b'"),
        )],
        1,
    );
    let racked = cluster("bj2", "sz").replace("zone: sz", "zone: sz, rack: a");
    commits.check(&[("clusters/bj2.yaml", &racked)], 1);
    commits.check(
        &[(
            "apps/web/layer/config.yaml.j2",
            &template
                .replace("cluster.labels.zone", "'a' if cluster.capabilities is has('batch/v1') else 'b'"),
        )],
        1,
    );
    let old = racked.replace("spec: {", "spec: {version: '1.20', ");
    commits.check(&[("clusters/bj2.yaml", &old)], 0);
    commits.check(
        &[(
            "apps/web/layer/config.yaml.j2",
            &template
                .replace("cluster.labels.zone", "'a' if cluster.capabilities is has('policy/v1') else 'b'"),
        )],
        2,
    );
}

#[test]
fn defined_test_counts_as_question() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {gpu: \"{% if cluster.meta.gpu is defined %}yes{% endif %}\"}\n";
    let gpu = cluster("bj1", "bj").replace("spec: {", "spec: {meta: {gpu: {type: a100}}, ");
    let mut commits =
        Commits::new(&[("apps/web/layer/config.yaml.j2", template), ("clusters/bj1.yaml", &gpu)]);
    commits.check(&[], 2 + 2);
    commits.check(&[("clusters/bj1.yaml", &cluster("bj1", "bj"))], 0);
    commits.check(&[("clusters/gz1.yaml", &gpu.replace("bj1", "gz1"))], 1);
}

#[test]
fn render_sharing_ignores_cluster_order() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {zone: {{ cluster.labels.zone }}}\n";
    let zones: Vec<(String, String)> = (100..200)
        .map(|number| {
            let (name, zone) = (format!("c{number}"), format!("z{}", number % 40));
            (format!("clusters/{name}.yaml"), cluster(&name, &zone))
        })
        .collect();
    let files = zones.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<(&str, &str)> = files.chain([("apps/web/layer/config.yaml.j2", template)]).collect();
    let mut commits = Commits::new(&files);
    commits.check(&[], 2 + 40 + 2);
    commits.check(&[], 0);
    commits.check(&[("clusters/c200.yaml", &cluster("c200", "z39"))], 0);
}

#[test]
fn pin_affects_only_its_ring() {
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: bj, clusters: {matchLabels: {zone: bj}}}, {name: gz, clusters: {matchLabels: {zone: gz}}}]}\n";
    let mut commits = Commits::new(&[("rings.yaml", rings)]);
    commits.check(&[], 3);
    commits.check(&[("apps/web/pins/gz.yaml", "version: v2\n")], 1);
    commits.check(&[("apps/web/pins/gz.yaml", "version: v3\n")], 1);
    commits.check(&[("apps/web/pins/bj.yaml", "version: v3\n")], 0);
    commits.check(&[("apps/web/pins/bj.yaml", "version: v4\n")], 1);
}

#[test]
fn failed_render_is_not_cached() {
    let wrong = ("apps/web/layer/config.yaml.j2", "{{ nothing }}");
    let mut commits = Commits::new(&[wrong]);
    commits.check(&[], 2 + 3);
    commits.check(&[], 3);
    commits.check(&[(wrong.0, "{# nothing #}")], 1);
}
