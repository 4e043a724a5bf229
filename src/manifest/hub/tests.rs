use super::{Hub, migrate};
use crate::manifest::kinds::ManifestKind;
use crate::manifest::read::ReadContext;
use crate::manifest::yaml::{YamlNode, YamlNodeKind, parse};
use crate::manifest::{Manifests, read};
use crate::model::{AppSpec, ClusterName, Diagnostic, DiagnosticScope, RolloutGroup, Snapshot, WaveOrder};

const APPSET: &str = include_str!("../../../tests/fixtures/seeds/appset.yaml");
const COMPONENT: &str = include_str!("../../../tests/fixtures/seeds/component.yaml");

fn read_texts(texts: &[(&str, &str)]) -> Manifests {
    read(&Snapshot::of_texts(texts.iter().copied()))
}

/// Every mistake as `code line:column path: message`.
fn told(mistakes: &[Diagnostic]) -> Vec<String> {
    let told = |mistake: &Diagnostic| {
        let start = mistake.location.as_ref().unwrap().start;
        let path = mistake.path.as_deref().unwrap_or("-");
        format!("{} {}:{} {path}: {}", mistake.code, start.line, start.column, mistake.message)
    };
    mistakes.iter().map(told).collect()
}

fn hub_of(texts: &[(&str, &str)]) -> Hub {
    let (hub, mistakes) = Hub::of(&Snapshot::of_texts(texts.iter().copied()));
    assert_eq!(told(&mistakes), Vec::<String>::new());
    hub
}

fn node(text: &str) -> YamlNode {
    let (mut documents, mistakes) = parse("x.yaml", text);
    assert_eq!(told(&mistakes), Vec::<String>::new(), "{text}");
    documents.remove(0).root
}

fn to_hub(hub: &Hub, kind: ManifestKind, mut node: YamlNode) -> Result<YamlNode, Vec<String>> {
    let mut reading = ReadContext::new("x.yaml", DiagnosticScope::Instance);
    hub.to_hub(kind, &mut node, &mut reading);
    if reading.mistakes.is_empty() { Ok(node) } else { Err(told(&reading.mistakes)) }
}

fn to_version(
    hub: &Hub,
    kind: ManifestKind,
    version: &str,
    mut node: YamlNode,
) -> Result<YamlNode, Vec<String>> {
    let mut reading = ReadContext::new("x.yaml", DiagnosticScope::Instance);
    hub.to_version(kind, version, &mut node, &mut reading);
    if reading.mistakes.is_empty() { Ok(node) } else { Err(told(&reading.mistakes)) }
}

fn with_version(text: &str, version: &str) -> String {
    let (_, rest) = text.split_once('\n').unwrap();
    format!("apiVersion: {version}\n{rest}")
}

#[test]
fn the_sample_component_is_read_in_every_version() {
    let native = read_texts(&[("x.yaml", &with_version(COMPONENT, "tutti.dev/v1alpha1"))]);
    assert_eq!(told(&native.diagnostics), Vec::<String>::new());
    let versions = hub_of(&[]).versions(ManifestKind::Component).len();
    assert_eq!(versions, 8);
    for version in hub_of(&[]).versions(ManifestKind::Component) {
        let read = read_texts(&[("x.yaml", &with_version(COMPONENT, version))]);
        assert_eq!(told(&read.diagnostics), Vec::<String>::new(), "{version}");
        assert_eq!(read.apps, native.apps, "{version}");
    }
}

#[test]
fn the_sample_appset_is_read_whole() {
    let read = read_texts(&[("x.yaml", APPSET)]);
    assert_eq!(told(&read.diagnostics), Vec::<String>::new());
    let AppSpec::AppSet(set) = &read.apps[0].spec else { panic!("{:?}", read.apps) };
    assert_eq!((set.replicas, set.min_ready_seconds, set.clusters.len()), (Some(10), Some(10), 2));
    let groups: Vec<&str> =
        set.clusters.iter().flat_map(|cluster| &cluster.pod_sets).map(|set| set.group()).collect();
    assert_eq!(groups, ["canary", "blue", "green", "canary", "blue", "green"]);
    let WaveOrder::Groups(groups) = &read.apps[0].rollout.order else { panic!("{:?}", read.apps) };
    assert_eq!(groups.groups, [RolloutGroup::Canary, RolloutGroup::Blue, RolloutGroup::Green]);
    assert_eq!(groups.canary_clusters, [ClusterName::from("tcc-bj4-dks-test-01")]);
    assert!(groups.needs_confirmation);
}

fn component(version: &str, balancer: &str) -> String {
    with_version(COMPONENT, version) + &format!("  svc:\n    type: {balancer}\n")
}

#[test]
fn conversion_of_the_documented_example() {
    let hub = hub_of(&[]);
    let old = node(&component("component.luojilab.com/v1alpha", "aliyun-slb"));
    let new = to_hub(&hub, ManifestKind::Component, old.clone()).unwrap();
    let wanted = node(&component("tutti.dev/v1alpha1", "luoji-slb"));
    assert_eq!(new.to_json(), wanted.to_json());
    // Once more changes nothing.
    assert_eq!(to_hub(&hub, ManifestKind::Component, new.clone()).unwrap(), new);
    assert_eq!(
        to_version(&hub, ManifestKind::Component, "component.luojilab.com/v1alpha", new.clone()).unwrap(),
        old
    );
    let beta = to_version(&hub, ManifestKind::Component, "component.luojilab.com/v1beta", new).unwrap();
    assert_eq!(beta.to_json(), node(&component("component.luojilab.com/v1beta", "luoji-slb")).to_json());
    // What it becomes in the end.
    let read = read_texts(&[("x.yaml", &component("luojilab.com/v1alpha1", "aliyun-slb"))]);
    assert_eq!(told(&read.diagnostics), Vec::<String>::new());
    let AppSpec::Component(component) = &read.apps[0].spec else { panic!("{:?}", read.apps) };
    assert_eq!(
        component.values["service"],
        serde_json::json!({"type": "LoadBalancer", "loadBalancerClass": "luoji-slb"})
    );
}

#[test]
fn fields_unknown_to_a_version_are_refused() {
    let hub = hub_of(&[]);
    let check = |kind, version: Option<&str>, text: &str, expected: &str| {
        let found = match version {
            Some(version) => to_version(&hub, kind, version, node(text)),
            None => to_hub(&hub, kind, node(text)),
        };
        assert_eq!(found.unwrap_err(), [expected], "{text}");
    };
    check(
        ManifestKind::Component,
        None,
        &component("luojilab.com/v1alpha", "luoji-slb"),
        "E1221 12:11 spec.svc.type: `type` cannot be \"luoji-slb\" in luojilab.com/v1alpha",
    );
    check(
        ManifestKind::Component,
        Some("luojilab.com/v1alpha"),
        &component("tutti.dev/v1alpha1", "aliyun-slb"),
        "E1221 12:11 spec.svc.type: `type` cannot be \"aliyun-slb\" in luojilab.com/v1alpha",
    );
    let native = "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nspec:\n  prune: never\n";
    let refused = "E1221 4:3 spec.prune: workload.dmall.com/v1beta1 has no `spec.prune`";
    check(ManifestKind::AppSet, Some("workload.dmall.com/v1beta1"), native, refused);
    check(ManifestKind::AppSet, None, &with_version(native, "workload.dmall.com/v1beta1"), refused);
}

const RULES: &str = "apiVersion: tutti.dev/v1alpha1
kind: Conversion
metadata: {name: house}
spec:
  kind: Component
  versions: [house.example.com/v1]
  rules:
    - {field: spec.language, rename: developLanguage}
    - {field: 'spec.parts[].kind', values: {old: new, new: old}}
    - {field: 'spec.parts[].size', absent: true}
";

#[test]
fn a_repository_brings_versions_of_its_own() {
    let rules = ("plugins/conversion/house/2/rules.yaml", RULES);
    let text = with_version(COMPONENT, "house.example.com/v1").replace("developLanguage", "language");
    let read = read_texts(&[rules, ("x.yaml", &text)]);
    assert_eq!(told(&read.diagnostics), Vec::<String>::new());
    assert_eq!(read.apps.len(), 1);
    // The highest revision counts: in the first, nothing has another name.
    let first = RULES.split_inclusive('\n').take(6).collect::<String>();
    let read = read_texts(&[rules, ("plugins/conversion/house/1/rules.yaml", &first), ("x.yaml", &text)]);
    assert_eq!(told(&read.diagnostics), Vec::<String>::new());
    let text = with_version(COMPONENT, "house.example.com/v1");
    let read = read_texts(&[rules, ("x.yaml", &text)]);
    assert_eq!(
        told(&read.diagnostics),
        ["E1221 7:3 spec.developLanguage: house.example.com/v1 has no `spec.developLanguage`"]
    );
}

#[test]
fn a_repository_replaces_a_shipped_conversion() {
    let rules =
        include_str!("shipped/luoji-slb.yaml").replace("aliyun-slb: luoji-slb", "aliyun-slb: other-slb");
    let texts = [
        ("plugins/conversion/luoji-slb/1/x.yaml", rules.as_str()),
        ("plugins/conversion/house/1/x.yaml", RULES),
    ];
    let new = to_hub(
        &hub_of(&texts),
        ManifestKind::Component,
        node(&component("luojilab.com/v1alpha", "aliyun-slb")),
    )
    .unwrap();
    assert_eq!(new.find(&["spec", "svc", "type"]).unwrap().as_str(), Some("other-slb"));
}

#[test]
fn mistakes_in_a_conversion() {
    let bad = "apiVersion: tutti.dev/v1alpha1
kind: Conversion
metadata: {name: home}
spec:
  kind: Objects
  versions: [tutti.dev/v1alpha1]
  rules:
    - {field: metadata.name, rename: title}
    - {field: spec.a, rename: b, absent: true}
    - {field: spec.a, values: {u: z, v: z}}
    - {field: 'spec.a[]', rename: b}
    - {field: spec.a, absent: false}
    - {field: spec.a}
";
    let read = read_texts(&[
        ("plugins/conversion/house/1/x.yaml", bad),
        ("plugins/conversion/x.yaml", RULES),
        ("rules.yaml", RULES),
        ("new.yaml", &with_version(COMPONENT, "tutti.dev/v1alpha1").replace("nginx", "other")),
        ("old.yaml", COMPONENT),
    ]);
    assert_eq!(
        told(&read.diagnostics),
        [
            "E1222 1:13 apiVersion: component.luojilab.com/v1alpha1 cannot be read: a conversion has an error",
            "E1222 3:18 metadata.name: the conversion is called \"home\", and its folder \"house\"",
            "E1204 5:9 spec.kind: `kind` cannot be \"Objects\"",
            "E1206 6:14 spec.versions[0]: tutti.dev/v1alpha1 is converted to nothing",
            "E1206 8:15 spec.rules[0].field: \"metadata.name\" is not a field of a spec",
            "E1208 9:8 spec.rules[1]: a rule has exactly one of rename, values and absent",
            "E1206 10:41 spec.rules[2].values.v: \"u\" and \"v\" both become \"z\"",
            "E1206 11:7 spec.rules[3]: the items of a list have no name",
            "E1206 12:31 spec.rules[4].absent: `absent` is true, or not there",
            "E1208 13:8 spec.rules[5]: a rule has exactly one of rename, values and absent",
            "E1222 1:1 -: no conversion can have this path",
            "E1110 2:7 kind: a Conversion is read from plugins/conversion/, and not from here",
        ]
    );
    assert_eq!(read.apps.len(), 1, "the native one");
    let twice = RULES.replace("[house.example.com/v1]", "[luojilab.com/v1beta]");
    let text = twice.clone() + "---\n" + &twice;
    let (_, mistakes) = Hub::of(&Snapshot::of_texts([("plugins/conversion/house/1/x.yaml", text.as_str())]));
    assert_eq!(mistakes.len(), 3);
    assert_eq!(mistakes[0].message, "two rules for one field of luojilab.com/v1beta");
}

#[test]
fn migration_edits_only_differences() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let hub = hub_of(&[]);
        match (migrate::migrate(&hub, "x.yaml", text, None), expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.text, expected);
                let again = migrate::migrate(&hub, "x.yaml", expected, None).unwrap();
                assert_eq!((again.text.as_str(), again.documents.len()), (expected, 0));
            }
            (Err(found), Err(expected)) => assert_eq!(told(&found), [expected], "{text}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    };
    let old = "apiVersion: luojilab.com/v1alpha\nkind: Component\n";
    let new = "apiVersion: tutti.dev/v1alpha1\nkind: Component\n";
    check("# nothing\n", Ok("# nothing\n"));
    check(old, Ok(new));
    check(
        &format!("\u{feff}{}", old.replace('\n', "\r\n")),
        Ok(&format!("\u{feff}{}", new.replace('\n', "\r\n"))),
    );
    check(
        &format!("a: {{é: '汉', {}}}\n---\n{old}", "b: [1, 2]"),
        Ok(&format!("a: {{é: '汉', {}}}\n---\n{new}", "b: [1, 2]")),
    );
    check(
        &format!("{old}spec: {{svc: {{\"type\": \"aliyun\\x2dslb\"}}}} # é\n"),
        Ok(&format!("{new}spec: {{svc: {{\"type\": \"luoji-slb\"}}}} # é\n")),
    );
    // An anchor: its text is not the value alone, and others may use it.
    check(
        &format!("{old}spec: {{note: &lb aliyun-slb, svc: {{type: *lb}}}}\n"),
        Err(
            "E1221 3:14 -: this cannot be migrated in place: it is not written plainly, or an alias shares it",
        ),
    );
    check(
        &format!("{old}spec: {{other: &svc {{type: aliyun-slb}}, svc: *svc}}\n"),
        Err(
            "E1221 1:1 -: this cannot be migrated in place: it is not written plainly, or an alias shares it",
        ),
    );
    check("a: b: c\n", Err("E1102 1:5 -: invalid YAML: mapping values are not allowed in this context"));
}

/// Documents made of the words that rules speak of, with values of every kind between.
mod made_up {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    const NAMES: [&str; 9] =
        ["svc", "type", "language", "developLanguage", "parts", "kind", "size", "prune", "paused"];
    const WORDS: [&str; 6] = ["aliyun-slb", "luoji-slb", "old", "new", "other", "8080"];

    fn value(random: &mut StdRng, depth: usize) -> YamlNode {
        let kind = match random.random_range(0..if depth > 3 { 4 } else { 9 }) {
            0 => YamlNodeKind::Null,
            1 => YamlNodeKind::Bool(true, "yes".into()),
            2 => YamlNodeKind::Int(8080.into(), "8080".into()),
            3 | 4 => YamlNodeKind::String(WORDS[random.random_range(0..WORDS.len())].to_owned()),
            5 | 6 => {
                YamlNodeKind::Seq((0..random.random_range(0..3)).map(|_| value(random, depth + 1)).collect())
            }
            _ => map(random, depth),
        };
        at(random, kind)
    }

    fn map(random: &mut StdRng, depth: usize) -> YamlNodeKind {
        let mut names: Vec<&str> = NAMES.into_iter().filter(|_| random.random_bool(0.4)).collect();
        names.sort_by_key(|_| random.random::<u32>());
        let entry = |name: &str| {
            let value = value(random, depth + 1);
            let (start, end) = (value.start, value.end);
            crate::manifest::yaml::YamlEntry { key: name.to_owned(), start, end, value }
        };
        YamlNodeKind::Map(names.into_iter().map(entry).collect())
    }

    fn at(random: &mut StdRng, kind: YamlNodeKind) -> YamlNode {
        let start = crate::model::TextPosition { line: random.random_range(1..99), column: 1 };
        YamlNode { kind, start, end: start }
    }

    fn document(random: &mut StdRng, version: &str) -> YamlNode {
        let mut root = node(&format!("apiVersion: {version}\nkind: X\nspec: x\n"));
        if let YamlNodeKind::Map(entries) = &mut root.kind {
            let spec = map(random, 0);
            entries[2].value = at(random, spec);
        }
        root
    }

    /// Whether every refusal names a field that the document has, where it stands.
    fn names_fields(refusals: &[String]) -> bool {
        !refusals.is_empty()
            && refusals.iter().all(|told| told.starts_with("E1221 ") && told.contains(" spec."))
    }

    #[test]
    fn conversion_there_and_back_is_lossless() {
        let hub = hub_of(&[("plugins/conversion/house/1/x.yaml", RULES)]);
        let mut random = StdRng::seed_from_u64(5);
        let (mut same, mut refused) = ([0, 0], [0, 0]);
        for (kind, version) in [
            (ManifestKind::Component, "luojilab.com/v1alpha"),
            (ManifestKind::Component, "luojilab.com/v1beta"),
            (ManifestKind::Component, "house.example.com/v1"),
            (ManifestKind::AppSet, "workload.dmall.com/v1beta1"),
        ] {
            for _ in 0..2_000 {
                let foreign = document(&mut random, version);
                match to_hub(&hub, kind, foreign.clone()) {
                    Ok(converted) => {
                        assert_eq!(to_hub(&hub, kind, converted.clone()).unwrap(), converted, "idempotent");
                        assert_eq!(to_version(&hub, kind, version, converted).unwrap(), foreign);
                        same[0] += 1;
                    }
                    Err(refusals) => {
                        assert!(names_fields(&refusals), "{refusals:?}");
                        refused[0] += 1;
                    }
                }
                let native = document(&mut random, "tutti.dev/v1alpha1");
                match to_version(&hub, kind, version, native.clone()) {
                    Ok(converted) => {
                        assert_eq!(to_hub(&hub, kind, converted).unwrap(), native);
                        same[1] += 1;
                    }
                    Err(refusals) => {
                        assert!(names_fields(&refusals), "{refusals:?}");
                        refused[1] += 1;
                    }
                }
            }
        }
        assert!(same.iter().chain(&refused).all(|count| *count > 500), "{same:?} {refused:?}");
    }
}
