//! Checks that this build can send each notification, and that clusters of servers exist.

use super::CheckInput;
use crate::fleet::codes;
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, DiagnosticScope, InventoryServer, Notification, NotificationService};

/// Whether this build supports the service of a route.
pub fn can_be_sent(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let is_lost = |route: &Notification| {
        matches!(route.service, NotificationService::Email { .. }) && !cfg!(feature = "mail")
    };
    let lost = facts.manifests.notifications.iter().filter(|route| is_lost(route));
    let refuse = |route: &Notification| {
        let message = format!(
            "Notification {} is of service email, which this build of tutti does not have",
            route.name
        );
        let error =
            Diagnostic::error(codes::NO_MAIL, message, DiagnosticScope::File(route.location.file.clone()));
        error.at(route.location.clone()).help("build it with `--features mail`, or take another service")
    };
    lost.map(|route| refuse(route)).collect()
}

/// A warning only: a server may be bought before its cluster exists.
pub fn servers_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    if facts.has_unknown_clusters || facts.manifests.servers.is_empty() {
        return Vec::new();
    }
    let known = facts.cluster_names();
    let warn = |server: &InventoryServer| {
        let name = server.cluster.as_deref().filter(|name| !known.contains(name))?;
        let place = server.cluster_location.as_ref().unwrap_or(&server.location);
        let message = format!("Server {} is of cluster {name}, which is not registered", server.name);
        let warning = Diagnostic::warning(
            codes::SERVER_UNKNOWN_CLUSTER,
            message,
            DiagnosticScope::File(place.file.clone()),
        );
        Some(warning.at(place.clone()).help(suggest(name, &known, &known)))
    };
    facts.manifests.servers.iter().filter_map(|server| warn(server)).collect()
}

#[cfg(test)]
mod tests {
    use crate::fleet::{Fleet, assemble};
    use crate::manifest;
    use crate::model::{NotificationPhase, Snapshot};

    const PAY: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: pay, namespace: shop}\nspec: {files: [o.txt]}\n";
    const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: prod, clusters: {}}]}\n";
    const BJ: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj5}\nspec: {connection: {sandbox: {}}}\n";

    fn fleet(files: &[(&str, &str)]) -> Fleet {
        let usual = [
            ("rings.yaml", RINGS),
            ("clusters/bj5.yaml", BJ),
            ("apps/pay/app.yaml", PAY),
            ("apps/pay/o.txt", ""),
        ];
        let snapshot = Snapshot::of_texts(usual.into_iter().chain(files.iter().copied()));
        assemble(manifest::read(&snapshot), &snapshot)
    }

    fn manifest(kind: &str, spec: &str) -> String {
        format!("apiVersion: tutti.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n{spec}")
    }

    /// `line:column code: message; help` of each mistake.
    fn told(fleet: &Fleet) -> Vec<String> {
        let told = fleet.diagnostics.iter().map(|it| {
            let start = it.location.as_ref().map(|it| it.start).expect("a place");
            let help = it.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("{}:{} {}: {}{help}", start.line, start.column, it.code, it.message)
        });
        told.collect()
    }

    /// A route with an error is not used. It blocks deletes and nothing else.
    #[track_caller]
    fn check(spec: &str, expected: &[&str]) {
        let fleet = fleet(&[("notifications/a.yaml", &manifest("Notification", spec))]);
        assert_eq!(told(&fleet), expected, "{spec}");
        let is_wrong = fleet.diagnostics.iter().any(|it| it.is_error());
        assert_eq!(fleet.notifications.is_empty(), is_wrong, "{spec}");
        assert_eq!((fleet.is_usable(), fleet.targets().len()), (true, 1), "{spec}");
    }

    const CHAT: &str = "  service: feishu\n  url: {env: TUTTI_SECRET_A}\n";

    #[test]
    fn services_have_fields_of_their_own() {
        check(CHAT, &[]);
        check(&format!("{CHAT}  secret: {{file: key}}\n"), &[]);
        check("  service: slack\n  token: {file: bot}\n  channel: '#deploys'\n", &[]);
        check("  service: slack\n  url: {file: hook}\n", &[]);
        check(
            "  service: slack\n  token: {file: bot}\n",
            &[
                "4:1 E1202: `channel` is missing: service slack needs token, channel; write it in quotes, \"#deploys\": without them, # begins a comment",
            ],
        );
        check("  url: {file: hook}\n", &["4:1 E1202: `service` is missing"]);
        check(
            "  service: feichu\n  url: hunter2\n",
            &[
                "5:12 E1204: `service` cannot be \"feichu\"; did you mean `feishu`? valid: dingtalk, email, feishu, generic, slack, teams, wecom",
                "6:8 E1207: `spec.url` is a value, but it must be a reference; write a reference: \
                 {env: NAME}, {file: PATH} or {secret: {namespace, name, key}}; and change the secret, it is \
                 in the history now",
            ],
        );
        check(
            "  service: wecom\n  secret: {file: key}\n",
            &[
                "4:1 E1202: `url` is missing: service wecom needs url; write a reference to the address of the webhook, such as {env: TUTTI_SECRET_CHAT_URL}",
                "6:3 E1201: service wecom has no `secret`; it has url",
            ],
        );
        check(
            "  service: slack\n  url: {file: hook}\n  token: {file: bot}\n  channel: #deploys\n",
            &[
                "6:3 E1208: slack takes `url`, or `token` and `channel`; url is an incoming webhook; token and channel are those of a bot",
                "8:3 E1202: `channel` has no value; write it in quotes, \"#deploys\": without them, # begins a comment",
            ],
        );
        check(
            "  service: email\n  url: {file: mail}\n  from: Tutti <t@example.com>\n  to: []\n",
            &[
                "7:9 E1206: \"Tutti <t@example.com>\" is not a mail address; write it without a name: \
                 team@example.com",
                "8:7 E1206: `to` is empty; write a value, or remove the field",
            ],
        );
        check(
            &format!("{CHAT}  extra: 1\n  language: fr\n"),
            &[
                "7:3 E1201: unknown field `extra` in `spec`; valid: channel, from, language, quietHours, secret, select, service, to, token, url",
                "8:13 E1204: `language` cannot be \"fr\"; valid: en, zh",
            ],
        );
    }

    #[test]
    fn mail_needs_its_feature() {
        let mail =
            "  service: email\n  url: {file: mail}\n  from: tutti@example.com\n  to: [team@example.com]\n";
        let refused = "3:18 E2133: Notification a is of service email, which this build of tutti does not \
                       have; build it with `--features mail`, or take another service";
        let refused = [refused];
        check(mail, if cfg!(feature = "mail") { &[] } else { &refused });
    }

    #[test]
    fn notification_selectors_must_match() {
        let select = |select: &str| format!("{CHAT}  select: {{{select}}}\n");
        check(
            &select("apps: {names: [shop/*, '*']}, rings: [p*], clusters: {names: [bj5, 'b*'], ring: prod}"),
            &[],
        );
        check(
            &select("apps: {names: [shop/pya]}, rings: [prd], clusters: {names: [bj6], ring: test}"),
            &[
                "7:27 E2131: Notification a is of app shop/pya, which fits nothing; did you mean `shop/pay`? valid: shop/pay",
                "7:47 E2131: Notification a is of ring prd, which fits nothing; did you mean `prod`? valid: prod",
                "7:72 E2131: Notification a is of cluster bj6, which fits nothing; did you mean `bj5`? valid: bj5",
                "7:84 E2131: Notification a is of ring test, which fits nothing; valid: prod",
            ],
        );
        check(
            &select("apps: {}, rings: [], phases: [fialed, started]"),
            &[
                "7:18 E1206: `apps` is empty; write a value, or remove the field",
                "7:29 E1206: `rings` is empty; write a value, or remove the field",
                "7:42 E1204: `phases[0]` cannot be \"fialed\"; did you mean `failed`? valid: credential-ends, degraded, delete-waits, done, failed, held, merged, offline, online, opened, recovered, reverted, server-ends, started, waiting",
            ],
        );
        check(
            &select("rings: , apps: {names: ['['], matchLabels: {-a: b}}"),
            &[
                "7:12 E1202: `rings` has no value; write what it selects, or remove the field: without it, everything is selected",
                "7:36 E1209: \"[\" is not a pattern: unclosed character class; missing ']'; write namespace/name, or a pattern such as shop/*",
                "7:56 E1205: \"-a\" is not a valid label or annotation key; `name` or `domain.example/name`; letters, digits, `-`, `_` and `.`, at most 63 after the `/`",
            ],
        );
    }

    #[test]
    fn quiet_hours_need_times_and_a_zone() {
        let hours = |hours: &str| format!("{CHAT}  quietHours: [{{{hours}}}]\n");
        check(&hours("from: '22:00', to: '08:00', timeZone: Asia/Shanghai"), &[]);
        check(&hours("from: '00:00', to: '24:00', days: [Sat], timeZone: UTC, except: [failed]"), &[]);
        check(&hours("from: '22:00', to: '08:00'"), &["7:17 E1202: `timeZone` is missing"]);
        check(
            &hours("from: '24:00', to: 8am, days: [Monday], timeZone: Asia/Shanhai, except: []"),
            &[
                "7:23 E1206: \"24:00\" is not a time of day; write hours and minutes: \"22:00\"",
                "7:36 E1206: \"8am\" is not a time of day; write hours and minutes: \"22:00\"",
                "7:48 E1204: `days[0]` cannot be \"Monday\"; did you mean `Mon`? valid: Fri, Mon, Sat, Sun, Thu, Tue, Wed",
                "7:67 E1204: there is no time zone \"Asia/Shanhai\"; did you mean `Asia/Shanghai`?",
                "7:89 E1206: `except` is empty; write a value, or remove the field",
            ],
        );
        check(
            &hours("from: '08:00', to: '08:00', timeZone: Nowhere"),
            &[
                "7:36 E1206: the hours end when they begin; a whole day is {from: \"00:00\", to: \"24:00\"}",
                "7:55 E1204: there is no time zone \"Nowhere\"; write a name of the IANA database, such as Asia/Shanghai or UTC",
            ],
        );
        let route = manifest("Notification", &hours("from: '22:00', to: '08:00', timeZone: Asia/Shanghai"));
        let fleet = fleet(&[("notifications/a.yaml", &route)]);
        let now = "2026-11-27T23:00+08:00".parse().expect("a time");
        let end = fleet.notifications[0].quiet_until(now, NotificationPhase::Done);
        assert_eq!(end, "2026-11-28T08:00+08:00".parse().ok());
    }

    #[test]
    fn server_has_an_expiry_date() {
        let check = |spec: &str, expected: &[&str]| {
            let fleet = fleet(&[("servers/a.yaml", &manifest("Server", spec))]);
            assert_eq!(told(&fleet), expected, "{spec}");
            assert_eq!(fleet.servers.is_empty(), fleet.diagnostics.iter().any(|it| it.is_error()), "{spec}");
            fleet
        };
        let fleet = check("  expiresAt: 2027-01-31\n  cluster: bj5\n  meta: {cpu: 8}\n", &[]);
        let server = &fleet.servers[0];
        assert_eq!((server.expires.to_string().as_str(), server.warn_days), ("2027-01-31", 14));
        check(
            "  address: a b\n",
            &[
                "4:1 E1202: `expiresAt` is missing",
                "5:12 E1206: `address` must be one word, not the text \"a b\"; remove the spaces, or the field",
            ],
        );
        for date in ["2027-02-30", "27-01-31", "2027-1-31", "31.01.2027", "tomorrow", "2027-01-31T00:00"] {
            let expected =
                format!("5:14 E1206: {date:?} is not a date; write year, month and day: 2027-01-31");
            check(&format!("  expiresAt: {date}\n"), &[&expected]);
        }
        for days in ["14", "0d", "1000d", "14 d", "d", "+1d", "2h"] {
            let expected =
                format!("6:15 E1206: {days:?} is not a number of days; write whole days, from 1d to 999d");
            check(&format!("  expiresAt: 2027-01-31\n  warnBefore: \"{days}\"\n"), &[&expected]);
        }
        check(
            "  expiresAt: 2027-01-31\n  cluster: bj6\n",
            &[
                "6:12 E2132: Server a is of cluster bj6, which is not registered; did you mean `bj5`? valid: bj5",
            ],
        );
    }

    #[test]
    fn elsewhere_they_are_not_read() {
        for (kind, folder, spec) in
            [("Notification", "notifications/", CHAT), ("Server", "servers/", "  expiresAt: 2027-01-31\n")]
        {
            let text = manifest(kind, spec);
            let moved =
                format!("2:7 E1110: a {kind} is read from {folder}, and not from here; move the file there");
            assert_eq!(told(&fleet(&[("apps/pay/route.yaml", &text)])), [moved.as_str()]);
            assert_eq!(told(&fleet(&[("route.yaml", &text)])), [moved.as_str()]);
            assert_eq!(told(&fleet(&[(&format!("{folder}team/a.yml"), &text)])), [""; 0]);
            let (one, two) = (format!("{folder}a.yaml"), format!("{folder}b.yaml"));
            let twice = fleet(&[(&one, &text), (&two, &text)]);
            let expected = format!(
                "3:18 E2001: {kind} a has the identity of {kind} a at {one}:3:18; rename one of them, or give it another namespace"
            );
            assert_eq!(told(&twice), [expected]);
            assert_eq!(twice.notifications.len() + twice.servers.len(), 1, "the first is used");
        }
    }
}
