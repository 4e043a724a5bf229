//! Content of the files that `init` and `new` write.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::arguments::{InitArgs, NewAppArgs, NewClusterArgs, NewNotificationArgs, NewServerArgs};
use crate::cli::import::scalar;

pub const GITIGNORE: &str = "\
# Ways to clusters are secrets: they are kept where tutti runs (--kubeconfigs DIR).
*.kubeconfig
kubeconfig*
";

pub const README: &str = "\
# Config repository

What the clusters run, read by [tutti](https://tutti.dev).

    tutti new cluster NAME        clusters/NAME.yaml: a cluster and the way to it
    tutti new app NAME            apps/NAME/app.yaml: what runs
    tutti new template LAYER      templates/LAYER/: values and templates that many apps share
    tutti lint                    every error, with its place
    tutti render APP              the Kubernetes objects of an app
    tutti plan --worktree         what a commit of this folder would change
";

fn schema(kind: &str) -> String {
    format!(
        "# yaml-language-server: $schema=https://tutti.dev/schemas/v1alpha1/{}.json\napiVersion: tutti.dev/v1alpha1\nkind: {kind}\n",
        kind.to_lowercase()
    )
}

pub fn instance(args: &InitArgs) -> String {
    let mode = if args.observe { "observe" } else { "enforce" };
    let mut text = format!(
        "{}metadata:\n  # Objects carry it as label tutti.dev/managed-by; the field manager is tutti-{name}.\n  name: {name}\nspec:\n  \
         # observe: plan and report, write to no cluster. enforce: bring the clusters to what stands here.\n  mode: {mode}\n",
        schema("Instance"),
        name = scalar(&args.name),
    );
    if let (Some(url), Some(repository)) = (&args.forge, &args.forge_repository) {
        // From the mounted Secret, or from the environment.
        let (token, hook) = match args.install {
            Some(_) => ("file: token", "file: hook"),
            None => ("env: TUTTI_SECRET_GITEA", "env: TUTTI_SECRET_HOOK"),
        };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  # Commit statuses go here; the token is where tutti runs, never in this file.\n  forge:\n    type: gitea\n    \
             url: {}\n    repository: {}\n    credentials: {{token: {{{token}}}}}\n  \
             # A push is seen at once: a webhook of this forge to /hooks/v1/gitea.\n  receivers:\n    \
             - {{name: gitea, type: gitea, secrets: [{{{hook}}}]}}\n",
            quoted(url),
            quoted(repository),
        );
    }
    let _ = write!(
        text,
        "  defaults:\n    # Of apps whose manifest names no namespace.\n    namespace: {}\n  caps:\n    \
         # A commit that deletes more than this waits for an approval.\n    deletes: 10\n    deletePercent: 20\n",
        scalar(&args.namespace),
    );
    text
}

pub fn cluster(args: &NewClusterArgs, labels: &BTreeMap<&str, &str>) -> String {
    let mut text = format!("{}metadata:\n  name: {}\n", schema("Cluster"), scalar(&args.name));
    if labels.is_empty() {
        text.push_str("  # labels: {environment: prod}    for selectors of rings, layers and apps\n");
    } else {
        let _ = writeln!(text, "  # For selectors of rings, layers and apps.\n  labels: {}", map(labels));
    }
    text.push_str("spec:\n  connection:\n");
    if args.sandbox {
        text.push_str(
            "    # Embedded in the process and empty at each start: to try things out.\n    sandbox: {}\n",
        );
    } else if args.in_cluster {
        text.push_str("    # The service account of the pod that tutti runs in.\n    inCluster: {}\n");
    } else {
        let path = args.kubeconfig.clone().unwrap_or_else(|| format!("{}.kubeconfig", args.name));
        let context = args.context.as_ref().map_or(String::new(), |it| format!(", context: {}", quoted(it)));
        let _ = write!(
            text,
            "    # Relative to --kubeconfigs, and never kept in this repository.\n    kubeconfig: {{path: {}{context}}}\n",
            quoted(&path),
        );
    }
    text
}

pub fn notification(args: &NewNotificationArgs) -> String {
    let variable = args.name.to_uppercase().replace(['-', '.'], "_");
    let mut text = format!(
        "{}metadata:\n  name: {}\nspec:\n  service: {}\n  \
         # A reference to the address, never the address itself: everybody who knows it can send messages \
         there.\n  \
         url: {{env: TUTTI_SECRET_{variable}_URL}}\n",
        schema("Notification"),
        scalar(&args.name),
        scalar(&args.service),
    );
    match &*args.service {
        "email" => text.push_str("  from: tutti@example.com\n  to: [team@example.com]\n"),
        "feishu" | "dingtalk" | "generic" => {
            let _ = writeln!(
                text,
                "  # What messages are signed with.\n  # secret: {{env: TUTTI_SECRET_{variable}_KEY}}"
            );
        }
        _ => {}
    }
    let _ = write!(
        text,
        "  language: {}\n  # select: {{rings: [prod], phases: [waiting, failed]}}    without it: everything\n  \
         # quietHours: [{{from: \"22:00\", to: \"08:00\", timeZone: Asia/Shanghai, except: [failed]}}]\n",
        scalar(&args.language),
    );
    text
}

pub fn server(args: &NewServerArgs) -> String {
    let mut text = format!("{}metadata:\n  name: {}\nspec:\n", schema("Server"), scalar(&args.name));
    let given = [("address", &args.address), ("provider", &args.provider), ("cluster", &args.cluster)];
    for (field, value) in given {
        let _ = value.iter().try_for_each(|value| writeln!(text, "  {field}: {}", quoted(value)));
    }
    let _ = write!(
        text,
        "  # The last day, and how long before it a message is sent.\n  expiresAt: {}\n  warnBefore: 14d\n",
        scalar(&args.expires)
    );
    text
}

fn metadata(kind: &str, args: &NewAppArgs) -> String {
    let mut text = format!("{}metadata:\n  name: {}\n", schema(kind), scalar(&args.name));
    if let Some(namespace) = &args.namespace {
        let _ = writeln!(text, "  namespace: {}", scalar(namespace));
    }
    text.push_str("spec:\n");
    if args.adopt {
        text.push_str(
            "  # Takes over existing objects; remove this line when that is done.\n  adopt: true\n",
        );
    }
    text
}

fn image(args: &NewAppArgs) -> String {
    quoted(&args.image.clone().unwrap_or_else(|| format!("registry.example.com/{}:1.0.0", args.name)))
}

fn port(args: &NewAppArgs) -> Option<u16> {
    args.port.or_else(|| (args.run_type == "server").then_some(8080))
}

pub fn component(args: &NewAppArgs) -> String {
    let mut text = metadata("Component", args);
    let _ = write!(
        text,
        "  # Each of these three is a layer of values and templates: `tutti templates list`.\n  workloadType: {}\n  \
         developLanguage: {}\n  runType: {}\n  image: {}\n",
        scalar(&args.workload),
        scalar(&args.language),
        scalar(&args.run_type),
        image(args),
    );
    if let Some(port) = port(args) {
        let _ = writeln!(text, "  # That the container listens on; a server gets a Service.\n  port: {port}");
    }
    let schedule = args
        .schedule
        .as_deref()
        .or_else(|| args.workload.eq_ignore_ascii_case("CronJob").then_some("0 3 * * *"));
    if let Some(schedule) = schedule {
        let _ = writeln!(text, "  schedule: {}", quoted(schedule));
    }
    if let Some(replicas) = args.replicas {
        let _ = writeln!(text, "  # For each cluster.\n  replicas: {replicas}");
    }
    text.push_str(
        "  # env: {LOG_LEVEL: info}\n  # resources: {requests: {cpu: 100m, memory: 128Mi}}\n  \
         # placement: {clusters: {matchLabels: {environment: prod}}}    without it: every cluster\n",
    );
    text
}

pub fn app_set(args: &NewAppArgs, clusters: &[&str]) -> String {
    let mut text = metadata("AppSet", args).replacen(
        "spec:\n",
        &format!(
            "  # The layers that it is made from, beside its deployType.\n  labels: {{tutti.dev/language: {}, tutti.dev/runType: {}}}\nspec:\n",
            scalar(&args.language), scalar(&args.run_type),
        ),
        1,
    );
    let ports =
        port(args).map_or(String::new(), |port| format!("            ports: [{{containerPort: {port}}}]\n"));
    let _ = write!(
        text,
        "  podSpec:\n    deployType: {}\n    # Merged over the layers, containers by \
         name.\n    template:\n      spec:\n        \
         containers:\n          - name: {}\n            image: {}\n{ports}  # Groups of equal pods, cluster by cluster.\n  \
         clusterTopology:\n    clusters:\n",
        args.workload.to_lowercase(),
        scalar(&args.name),
        image(args),
    );
    for cluster in clusters {
        let _ = write!(
            text,
            "      - name: {}\n        podSets:\n          - {{name: {}, replicas: {}}}\n",
            scalar(cluster),
            scalar(&args.name),
            args.replicas.unwrap_or(2),
        );
    }
    text
}

pub fn objects(args: &NewAppArgs) -> String {
    format!(
        "{}  # Relative to this file; a file .yaml.j2 is a template, all others are applied as they are.\n  \
         files: [objects/*.yaml]\n  \
         # placement: {{clusters: {{matchLabels: {{environment: prod}}}}}}    without it: every cluster\n",
        metadata("Objects", args)
    )
}

/// The manifest of tutti's own app.
pub fn installation(cluster: &str) -> String {
    format!(
        "{}metadata:\n  name: tutti\n  namespace: tutti-system\nspec:\n  \
         # The manifests, relative to this file. An upgrade is a commit with another tag in objects/deployment.yaml.\n  \
         files: [objects/*.yaml]\n  \
         # The cluster that tutti runs in, and no other.\n  placement: {{clusters: {{names: [{}]}}}}\n  \
         # Takes over what `kubectl apply` installed.\n  adopt: true\n  \
         # tutti does not delete itself: what leaves this folder stays in the cluster.\n  prune: never\n",
        schema("Objects"),
        scalar(cluster),
    )
}

pub fn settings(args: &NewAppArgs) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  # Its namespace is the app's, unless it names one.\n  name: {}\ndata:\n  level: info\n",
        scalar(&args.name)
    )
}

pub fn values(layer: &str, shipped: Option<&str>) -> String {
    let order = "base < workload < language < runType < cluster < app < podSet";
    let head = format!(
        "# Values of the layer {layer}: {order}.\n# Maps merge, lists replace, null deletes. `tutti templates list` shows what is shipped.\n"
    );
    match shipped {
        Some(text) => format!("{head}# In the place of the shipped file, of which this is a copy.\n\n{text}"),
        None => format!("{head}{{}}\n"),
    }
}

pub fn layer(name: &str, labels: &BTreeMap<&str, &str>) -> String {
    let selector = if labels.is_empty() {
        format!("{{names: [{}]}}", scalar(name))
    } else {
        format!("{{matchLabels: {}}}", map(labels))
    };
    format!(
        "# The clusters of this layer. Names are more specific than labels, more labels than fewer.\nclusters: {selector}\n"
    )
}

pub fn template(file: &str) -> String {
    format!(
        "{{#- Extends the next lower {file}. Blocks that may be filled: name, spec, pod, container, containers.\n    \
         `tutti render APP` shows what comes of it. -#}}\n{{% extends parent %}}\n"
    )
}

fn map(entries: &BTreeMap<&str, &str>) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}: {}", scalar(key), scalar(value))).collect();
    format!("{{{}}}", entries.join(", "))
}

/// Quoted inside braces unless plain.
fn quoted(text: &str) -> String {
    let plain = scalar(text);
    if plain == text { plain } else { serde_json::Value::from(text).to_string() }
}
