//! Rollout commands of the real binary; `transcripts/rollout*.txt` has their output.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::folders::read;
use crate::support::manifests::{INSTANCE, component};
use crate::support::persistent_fixture::PersistentCommandFixture;

const RINGS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {matchLabels: {environment: test}}, confirm: true}
    - {name: prod, clusters: {matchLabels: {environment: prod}}}
";

/// The last line of standard error.
fn last_line(errors: &str) -> &str {
    errors.lines().last().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_ends_on_missing_image() {
    let stage = PersistentCommandFixture::of_fixture("waves").await;
    tokio::task::block_in_place(|| {
        assert_eq!(stage.run("tutti run --once").2, 0);
        stage.run("sed -i s/pay:v1/pay:broken/ apps/pay/app.yaml && git commit -qam Broken");
        let (_, errors, code) = stage.run("tutti run --once");
        assert_eq!((last_line(&errors).contains("ImagePullBackOff"), code), (true, 3), "{errors}");
        let (output, errors, code) = stage.run("tutti rollout watch pay");
        assert_eq!((last_line(&errors).contains("ImagePullBackOff"), code), (true, 3), "{output}{errors}");
        assert!(output.contains("… prod  0/2  waits"), "{output}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn app_sets_are_shown_as_they_change() {
    let stage = PersistentCommandFixture::of_fixture("waves").await;
    tokio::task::block_in_place(|| {
        assert_eq!(stage.run("tutti run --once").2, 0);
        let mut watch = stage.command("tutti get as -w").stdout(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
        fn until(lines: &mut impl Iterator<Item = std::io::Result<String>>, word: &str) {
            let has_it = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains(word));
            assert!(lines.any(has_it), "it ended without {word}");
        }
        until(&mut lines, "NAMESPACE  NAME  DESIRED  AVAILABLE  UNAVAILABLE  VERSION  STATUS   AGE");
        // Running pods are known before the first output.
        let first = lines.next().expect("a line").expect("text");
        assert!(first.contains(" v3 ") && first.contains("Running"), "{first}");
        stage.run("sed -i s/v3/v4/ apps/bbcc/app.yaml && git commit -qam v4");
        assert_eq!(stage.run("tutti run --once").2, 1);
        until(&mut lines, "WaitingConfirm");
        until(&mut lines, "tutti approve rollout default/bbcc --through canary");
        let stopped = Command::new("kill").args(["-INT", &watch.id().to_string()]).status().expect("it runs");
        assert!(stopped.success());
        assert_eq!(watch.wait().expect("it ends").code(), Some(130));
    });
}

/// 20 clusters in test, 80 in prod.
fn hundred_clusters() -> Vec<(String, String)> {
    let cluster = |number: usize| {
        let environment = if number < 20 { "test" } else { "prod" };
        let name = format!("cluster-{number:03}");
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, labels: {{environment: {environment}}}}}\n\
             spec: {{connection: {{kubeconfig: {{path: {name}.kubeconfig}}}}}}\n"
        );
        (format!("clusters/{name}.yaml"), text)
    };
    let others = [
        ("tutti.yaml", INSTANCE.to_owned()),
        ("rings.yaml", RINGS.to_owned()),
        ("apps/pay/app.yaml", component("pay", "registry.example.com/pay:v1")),
    ];
    (0..100).map(cluster).chain(others.map(|(path, text)| (path.to_owned(), text))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_for_hundred_clusters_is_bounded() {
    let stage = PersistentCommandFixture::new(&hundred_clusters()).await;
    tokio::task::block_in_place(|| {
        let check = |command: &str, expected: &str| {
            let (output, errors, _) = stage.run_with(command, |program| {
                program.env("COLUMNS", "100");
            });
            let longest = output.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            assert!(longest <= 100, "{command}: {longest}\n{output}");
            assert!(output.contains(expected), "{command}:\n{output}{errors}");
        };
        check("tutti run --once", "default/pay  ✓ 20/20 Running v1  ✓ 80/80 Running v1");
        stage.run("sed -i s/pay:v1/pay:v2/ apps/pay/app.yaml && git commit -qam v2");
        check(
            "tutti run --once",
            "default/pay is Waiting on cluster-020, cluster-021, cluster-022, cluster-023",
        );
        check(
            "tutti rollout get pay",
            "cluster-020, cluster-021, cluster-022, cluster-023 and 76 more: wave test",
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollout_is_not_done_without_its_clusters() {
    let stage = PersistentCommandFixture::of_fixture("waves").await;
    tokio::task::block_in_place(|| {
        assert_eq!(stage.run("tutti run --once").2, 0);
        let check = |command: &str, heading: &str, ending: &str| {
            let (output, errors, code) = stage.run(command);
            assert_eq!(
                (output.lines().next().unwrap_or_default(), code),
                (heading, 6),
                "{command}: {errors}"
            );
            assert!(last_line(&errors).contains(ending), "{command}: {errors}");
        };
        let none = "--kubeconfigs /nonexistent";
        check(
            &format!("tutti rollout watch bbcc {none}"),
            "default/bbcc 76aa08d720ec: not done, left out: bj4, bj5",
            "ends with 6: clusters bj4, bj5: kubeconfig /nonexistent/bj4.kubeconfig",
        );
        check(
            &format!("tutti approve rollout bbcc {none}"),
            "",
            "the gates of default/bbcc are not known: clusters bj4, bj5: kubeconfig",
        );
        stage.run("mv ../bj5.kubeconfig ../away");
        let heading = "default/pay 0807c1c3535b: not done, left out: bj5";
        check("tutti rollout watch pay", heading, "ends with 6: cluster bj5: kubeconfig ./bj5.kubeconfig");
        check("tutti rollout get pay", heading, "");
        let (output, ..) = stage.run("tutti get ad");
        assert!(
            output.contains("bj5      default    bbcc  -        -          -            -        Unknown  -"),
            "{output}"
        );
        stage.run("mv ../away ../bj5.kubeconfig");
        assert_eq!(stage.run("tutti rollout watch pay").2, 0);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollout_of_invalid_app_is_an_error() {
    let stage = PersistentCommandFixture::of_fixture("waves").await;
    tokio::task::block_in_place(|| {
        let check = |edit: &str, error: &str| {
            stage.run(&format!("{edit} && git commit -qam Mistake"));
            for command in
                ["rollout get bbcc", "rollout watch bbcc", "rollout history bbcc", "approve rollout bbcc"]
            {
                let (output, errors, code) = stage.run(&format!("tutti {command}"));
                assert_eq!((output.as_str(), code), ("", 2), "{command}: {errors}");
                assert!(errors.starts_with("error[E"), "{command} shows no place: {errors}");
                assert!(last_line(&errors).contains(error), "{command}: {errors}");
            }
            stage.run("git revert --no-edit HEAD");
        };
        let two_tags =
            "sed -i \"s/blue, replicas: 2/&, image: 'registry.example.com\\/bbcc:v9'/\" apps/bbcc/app.yaml";
        check(two_tags, "of default/bbcc cannot be read: error[E2014]");
        check("echo ' x: [' >> apps/bbcc/app.yaml", "app bbcc cannot be read: error[E1102]");
        check("echo 'x: 1' >> tutti.yaml", "app bbcc cannot be read: error[E1201]");
        check("echo 'x: 1' >> rings.yaml", "app bbcc cannot be read: error[E1201]");
        stage.run("echo 'x: 1' >> rings.yaml && git commit -qam Mistake");
        let (output, errors, code) = stage.run("tutti rollout get");
        assert_eq!((output.as_str(), code), ("", 2), "{errors}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_tables_fit_the_width() {
    let example = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/repo"));
    let stage = PersistentCommandFixture::new(&example).await;
    tokio::task::block_in_place(|| {
        stage.run("tutti run --once");
        stage.run(
            "sed -i s/1.4.2/1.5.0/ apps/*/*.yaml && sed -i s/v4/v5/ apps/*/*.yaml && git commit -qam Next",
        );
        stage.run("tutti run --once");
        for command in [
            "rollout get",
            "get targets",
            "plan",
            "get ad --all",
            "get",
            "get as",
            "rollout history shop-web",
        ] {
            let (output, errors, _) = stage.run_with(&format!("tutti {command}"), |program| {
                program.env("COLUMNS", "100");
            });
            let longest = output.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            assert!((20..=100).contains(&longest), "{command}: {longest}\n{output}{errors}");
        }
    });
}
