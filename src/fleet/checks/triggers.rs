//! Checks that the static names in triggers exist. Names from a payload are checked on delivery.

use super::CheckInput;
use crate::fleet::{codes, trigger_files};
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, DiagnosticScope, Location, Trigger, TriggerTarget};

pub fn triggers_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    facts.manifests.triggers.iter().flat_map(|trigger| trigger_errors(trigger, facts)).collect()
}

fn trigger_errors(trigger: &Trigger, facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let title = format!("Trigger {}", trigger.name);
    let mut error = |place: &Location, message: String, help: String| {
        let error = Diagnostic::error(
            codes::TRIGGER_UNKNOWN_NAME,
            message,
            DiagnosticScope::File(place.file.clone()),
        );
        found.push(error.at(place.clone()).help(help));
    };
    let receivers: Vec<&str> = facts
        .manifests
        .instance
        .iter()
        .flat_map(|instance| &instance.receivers)
        .map(|receiver| receiver.name.as_str())
        .collect();
    if let (Some(name), Some(place)) = (&trigger.receiver, &trigger.receiver_location)
        && !receivers.contains(&name.as_str())
    {
        let message = format!("{title} is of receiver {name}, which tutti.yaml does not have");
        error(place, message, suggest(name, &receivers, &receivers));
    }
    let app =
        trigger.app.template.constant().map(|name| (name, trigger_files::find_app(name, facts.app_names())));
    if let Some((name, Err(help))) = &app {
        error(&trigger.app.location, format!("{title} is of app {name}, which does not exist"), help.clone());
    }
    match &trigger.target {
        TriggerTarget::Pin { ring } => {
            let rings: Vec<&str> = facts.rings.iter().map(|ring| ring.name.as_str()).collect();
            if let Some(name) = ring.template.constant().filter(|name| !rings.contains(name)) {
                let message = format!("{title} is of ring {name}, which does not exist");
                error(&ring.location, message, suggest(name, &rings, &rings));
            }
        }
        TriggerTarget::Field { file, .. } => {
            let Some((named, (_, Ok(id)))) = file.template.constant().zip(app) else { return found };
            let apps = &facts.manifests.apps;
            let app = apps.iter().find(|app| app.id == id);
            let checked = app.map(|app| trigger_files::writable_file(app, named, apps, facts.snapshot));
            if let Some(Err((mistake, help))) = checked {
                error(&file.location, format!("{title} writes {named:?}, which {mistake}"), help);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::Snapshot;

    const INSTANCE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {receivers: [{name: drone, type: gitea, secrets: [{env: TUTTI_SECRET_D}]}]}\n";
    const PAY: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: pay, namespace: shop}\nspec: {files: [o.txt]}\n";
    const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}}]}\n";

    /// `line:column code: message; help` of each mistake of a trigger.
    fn mistakes_of(file: &str, spec: &str) -> Vec<String> {
        let trigger = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: release}}\nspec:\n{spec}"
        );
        let snapshot = Snapshot::of_texts([
            ("tutti.yaml", INSTANCE),
            ("rings.yaml", RINGS),
            ("apps/pay/app.yaml", PAY),
            ("apps/pay/o.txt", ""),
            ("apps/pay/values.yml", "apiVersion: v1\nkind: ConfigMap\n"),
            (file, &*trigger),
        ]);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        let of_it =
            fleet.diagnostics.iter().filter(|it| it.location.as_ref().is_some_and(|it| it.file == file));
        let told: Vec<String> = of_it
            .map(|it| {
                let start = it.location.as_ref().map(|it| it.start).expect("a place");
                assert!(it.help.is_some() || matches!(it.code, "E1202" | "E1203"), "{it}");
                format!("{}:{} {}: {}", start.line, start.column, it.code, it.message)
            })
            .collect();
        assert_eq!(fleet.triggers.is_empty(), !told.is_empty(), "one with an error is not used: {told:?}");
        told
    }

    #[track_caller]
    fn check(spec: &str, expected: &[&str]) {
        assert_eq!(mistakes_of("triggers/release.yaml", spec), expected, "{spec}");
    }

    #[test]
    fn mistakes_have_their_place() {
        let token = "  token: {secretRef: {env: TUTTI_SECRET_A}}\n";
        let set = "  set: {app: pay, version: v1, ring: '{{ ring }}'}\n";
        check(&format!("{token}{set}"), &[]);
        check(
            &format!("  receiver: drone\n  match: {{a.b: [x, 7, true]}}\n{set}  action: {{write: none}}\n"),
            &[],
        );
        check(set, &["4:1 E1208: a trigger has a `receiver`, a `token` or both"]);
        check(
            &format!("  receiver: drone\n{set}"),
            &["5:13 E1202: `match` is missing: without it, every delivery of the receiver would fit"],
        );
        check(
            &format!("  receiver: dron\n  match: {{a: b}}\n{set}"),
            &["5:13 E2121: Trigger release is of receiver dron, which tutti.yaml does not have"],
        );
        check(&format!("{token}  match: {{}}\n{set}"), &["6:10 E1206: `match` fits every payload"]);
        check(
            &format!("{token}  match: {{a..b: x}}\n{set}"),
            &["6:11 E1206: \"a..b\" is not a path of a payload"],
        );
        check(
            &format!("{token}  match: {{a: [], b: '[', c: 1.5}}\n{set}"),
            &[
                "6:14 E1206: `a` fits nothing",
                "6:21 E1209: \"[\" is not a pattern: unclosed character class; missing ']'",
                "6:29 E1203: `c` must be a text, a whole number or a boolean, not the number 1.5",
            ],
        );
        check(
            "  token: hunter2\n  set: {app: pay, version: v1, ring: test}\n",
            &["5:10 E1207: `spec.token` is a value, but it must be a reference"],
        );
        check(
            "  token: {secretRef: hunter2}\n  set: {app: pay, version: v1, ring: test}\n",
            &["5:22 E1207: `spec.token.secretRef` is a value, but it must be a reference"],
        );
        check(token, &["4:1 E1202: `set` is missing"]);
        check(
            &format!("{token}  set: {{app: pay}}\n"),
            &[
                "6:3 E1208: `set` has exactly one of `version` and `image`",
                "6:3 E1208: `set` has either `ring`, or `file` and `field`",
            ],
        );
        check(
            &format!("{token}  set: {{app: pay, version: v1, ring: prod}}\n"),
            &["6:38 E2121: Trigger release is of ring prod, which does not exist"],
        );
        check(
            &format!("{token}  set: {{app: pai, version: v1, ring: test}}\n"),
            &["6:14 E2121: Trigger release is of app pai, which does not exist"],
        );
        check(
            &format!("{token}  set: {{app: pay, version: 'v{{{{ a', ring: test}}\n"),
            &["6:30 E1206: `version`: `{{` without its `}}`"],
        );
        check(
            &format!("{token}  set: {{app: pay, version: v1.{{{{ a | upper }}}}, ring: test}}\n")
                .replace("version: v1.{{ a | upper }}", "version: \"{{ a | upper }}\""),
            &["6:29 E1206: `version`: unknown filter `upper`; there are strip_ref and default('…')"],
        );
        check(
            &format!("{token}  set: {{app: ' ', version: v1, ring: test}}\n"),
            &["6:14 E1206: `app` is empty"],
        );
        check(
            &format!("{token}{set}  action: {{write: push}}\n"),
            &["7:19 E1204: `write` cannot be \"push\""],
        );
        check(&format!("{token}{set}  extra: 1\n"), &["7:3 E1201: unknown field `extra` in `spec`"]);
    }

    #[test]
    fn trigger_writes_a_field_of_its_app() {
        let of = |file: &str, field: &str| {
            format!(
                "  token: {{secretRef: {{env: TUTTI_SECRET_A}}}}\n  set: {{app: pay, image: '{{{{ i }}}}', file: {file}, field: {field}}}\n"
            )
        };
        check(&of("values.yml", "image"), &[]);
        check(&of("values.yml", "'[kind=ConfigMap].data.image'"), &[]);
        check(
            &of("../../tutti.yaml", "spec.mode"),
            &["6:43 E2121: Trigger release writes \"../../tutti.yaml\", which is not the path of a YAML \
                 file in the folder of the app"],
        );
        check(
            &of("none.yaml", "image"),
            &["6:43 E2121: Trigger release writes \"none.yaml\", which does not exist"],
        );
        for field in ["kind", "metadata.name", "apiVersion", "'[kind=X].metadata.labels.a'"] {
            let told = mistakes_of("triggers/release.yaml", &of("values.yml", field));
            assert!(told.len() == 1 && told[0].contains("identifies the object"), "{field}: {told:?}");
        }
        for field in ["a..b", "a.", "'a:b'", "'[x]'", "'a{b}'"] {
            let told = mistakes_of("triggers/release.yaml", &of("values.yml", field));
            assert!(told.len() == 1 && told[0].contains("is not a path of a field"), "{field}: {told:?}");
        }
    }

    #[test]
    fn trigger_elsewhere_is_not_read() {
        let spec =
            "  token: {secretRef: {env: TUTTI_SECRET_A}}\n  set: {app: pay, version: v1, ring: test}\n";
        let expected = ["2:7 E1110: a Trigger is read from triggers/, and not from here"];
        assert_eq!(mistakes_of("apps/pay/trigger.yaml", spec), expected);
        assert_eq!(mistakes_of("trigger.yaml", spec), expected);
        assert_eq!(mistakes_of("triggers/of-shop/release.yaml", spec), [""; 0]);
    }

    #[test]
    fn duplicate_triggers_are_errors() {
        let trigger = "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {name: a}\nspec: {token: {secretRef: {env: TUTTI_SECRET_A}}, set: {app: pay, version: v1, ring: test}}\n";
        let snapshot = Snapshot::of_texts([
            ("apps/pay/app.yaml", PAY),
            ("apps/pay/o.txt", ""),
            ("rings.yaml", RINGS),
            ("triggers/a.yaml", trigger),
            ("triggers/b.yaml", trigger),
        ]);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        let told: Vec<_> =
            fleet.diagnostics.iter().filter(|it| it.is_error()).map(|it| it.message.as_str()).collect();
        assert_eq!(told, ["Trigger a has the identity of Trigger a at triggers/a.yaml:3:18"]);
        assert_eq!(fleet.triggers["a"].location.file, "triggers/a.yaml");
    }
}
