//! The first link that `tutti why` names for apps broken at each link, read from its transcript. A transcript with a
//! wrong link fails too.

use std::collections::BTreeMap;
use std::path::Path;

/// Argument and, for each block: clusters, sign of the first unhealthy link, link, place, who may change it, and the
/// start of the advice.
const EXPECTED_LINKS: [(&str, &[&str]); 22] = [
    ("well", &["t1 is well"]),
    (
        "denied",
        &[
            "t1 ✗ policy, apps/denied/app.yaml:10:13, who may write apps/denied/ or policies/, change the object",
        ],
    ),
    (
        "unjudged",
        &["t1 ✗ policy, apps/unjudged/objects/settings.yaml:1:1, who may write apps/unjudged/ or \
             policies/, add the field"],
    ),
    (
        "paused",
        &["t1 ✗ rollout, apps/paused/app.yaml:3:18, who may write apps/paused/, remove `paused: true`"],
    ),
    (
        "soaks",
        &["p1 … rollout, rings.yaml:1:1, who may write rings.yaml, wait, or shorten `soak`", "t1 is well"],
    ),
    (
        "asks",
        &[
            "p1 ✗ rollout, rings.yaml:1:1, who may write approvals/ or apps/asks/, tutti approve rollout default/asks --through prod",
            "s1 is well",
        ],
    ),
    (
        "behind",
        &[
            "t1 ✗ health, apps/behind/app.yaml:3:18, who may write apps/behind/, fix the app",
            "p1 … rollout, -, who may write apps/behind/, tutti why default/behind --cluster t1",
        ],
    ),
    (
        "frozen",
        &[
            "t1 … rollout, policies/freeze.yaml:3:18, who may write approvals/ (an override, by release-managers) or policies/, wait",
        ],
    ),
    (
        "follows",
        &["t1 … rollout, apps/follows/app.yaml:10:28, who may write apps/follows/, tutti why default/fails"],
    ),
    (
        "pinned",
        &[
            "p1 ✗ rollout, apps/pinned/pins/prod.yaml:1:10, who may write approvals/ or apps/pinned/, tutti approve rollout default/pinned",
            "t1 is well",
        ],
    ),
    (
        "nowhere",
        &["- ✗ source, apps/nowhere/app.yaml:9:14, who may write apps/nowhere/, compare its placement"],
    ),
    (
        "keptout",
        &[
            "tainted ✗ apply, clusters/tainted.yaml:3:18, who may write apps/keptout/ or clusters/, add a toleration",
        ],
    ),
    (
        "far",
        &["away ✗ apply, clusters/away.yaml:3:18, the operator of the cluster or of tutti, or who may \
             write clusters/, tutti doctor away"],
    ),
    ("taken", &["t1 ✗ apply, apps/taken/objects/service.yaml:1:1, who may write apps/taken/, -"]),
    ("refused", &["t1 ✗ apply, apps/refused/objects/one.yaml:1:1, who may write apps/refused/, -"]),
    ("deletes", &["t1 ✗ apply, -, who may write approvals/, tutti approve DIGEST"]),
    ("fails", &["t1 ✗ health, apps/fails/app.yaml:3:18, who may write apps/fails/, fix the app"]),
    ("typo", &["- ✗ source, apps/typo/app.yaml:10:3, who may write apps/typo/, valid: "]),
    ("language", &["t1 ✗ source, apps/language/app.yaml:3:18, who may write apps/language/, valid: "]),
    ("garbled", &["- ✗ source, apps/garbled/app.yaml:10:1, who may write apps/garbled/, a key needs"]),
    ("layer", &["t1 ✗ render, apps/layer/layer/settings.yaml.j2:4:20, who may write apps/layer/, valid: "]),
    ("guarded", &["t1 ✗ policy, policies/guard.yaml:7:19, who may write policies/, fix the policy"]),
];

const LINK_NAMES: [&str; 6] = ["source", "render", "policy", "rollout", "apply", "health"];

#[test]
fn first_broken_link_is_named() {
    let transcript = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/why.txt");
    let transcript = std::fs::read_to_string(transcript).expect("a transcript");
    let mut expected: BTreeMap<&str, &[&str]> = EXPECTED_LINKS.into_iter().collect();
    for answer in transcript.split("\n$") {
        let (command, answer) = answer.split_once('\n').unwrap_or((answer, ""));
        let Some(app) = command.strip_prefix(" tutti why ") else { continue };
        let Some(expected) = expected.remove(app) else { continue };
        let told: Vec<String> = link_chains(answer).iter().map(|block| chain_summary(block)).collect();
        let is_told = told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected));
        assert!(is_told && told.len() == expected.len(), "{app}: {told:#?} is not {expected:#?}");
        let code = if expected == ["t1 is well"] { None } else { Some("? 1") };
        assert_eq!(answer.lines().find(|line| line.starts_with("? ")), code, "{app}");
    }
    assert!(expected.is_empty(), "not asked: {expected:?}");
}

/// The chains: a heading and its lines.
fn link_chains(answer: &str) -> Vec<Vec<&str>> {
    let all = answer.split("\n\n").map(|block| block.lines().collect::<Vec<_>>());
    all.filter(|block| block.get(1).is_some_and(|line| line.contains(LINK_NAMES[0]))).collect()
}

fn chain_summary(block: &[&str]) -> String {
    let heading = block[0].split(": ").next().unwrap_or_default();
    let cluster = heading.split_once(" on ").and_then(|(_, on)| on.split(' ').next()).unwrap_or("-");
    let links: Vec<(usize, &str, &str)> = (1..)
        .zip(&block[1..])
        .filter_map(|(at, line)| {
            let (sign, rest) =
                line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split_once(' ')?;
            Some((at, sign, rest.split(' ').next()?))
        })
        .collect();
    assert_eq!(links.iter().map(|(_, _, link)| *link).collect::<Vec<_>>(), LINK_NAMES, "{block:#?}");
    let Some(first) = links.iter().position(|(_, sign, _)| *sign != "✓") else {
        return format!("{cluster} is well");
    };
    assert!(links[first + 1..].iter().all(|(_, sign, _)| *sign == "·"), "{block:#?}");
    let (at, sign, link) = links[first];
    let below: Vec<&str> = block[at + 1..].iter().map(|line| line.trim()).collect();
    let below = &below[..below.iter().position(|line| line.starts_with('·')).unwrap_or(below.len())];
    let said = |label: &str| {
        let line = below.iter().find_map(|line| line.strip_prefix(label)?.strip_prefix(' '));
        line.unwrap_or("-").trim()
    };
    format!("{cluster} {sign} {link}, {}, {}, {}", said("at"), said("by"), said("do"))
}
