use serde_json::{Value, json};

use super::*;
use crate::health::{RolloutProgress, own_pods};
use crate::model::Digest;

const OPEN: fn(&ClusterName) -> SearchAccess = |_| SearchAccess::Open;

/// The searches, with a clock in tenths of a second.
struct Trial {
    searches: CauseSearches,
    begin: Instant,
}

fn target(app: &str) -> Target {
    Target { app: AppId::new("shop", app), cluster: ClusterName::from("one") }
}

fn object(namespace: &str, name: &str) -> ObjectId {
    ObjectId::new("apps", "Deployment", Some(namespace), name)
}

/// `status`: how many of its pods are ready, and how many are not; negative when it has failed.
fn deployment(namespace: &str, name: &str, generation: i64, ready: i64) -> UnhealthyWorkload {
    selected(namespace, name, &json!({"matchLabels": {"app": name}}), generation, ready)
}

fn selected(namespace: &str, name: &str, selector: &Value, generation: i64, ready: i64) -> UnhealthyWorkload {
    let status = json!({"observedGeneration": generation, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready});
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": name, "generation": generation},
        "spec": {"selector": selector}, "status": status});
    UnhealthyWorkload {
        object: object(namespace, name),
        hash: Digest::of(&generation.to_le_bytes()),
        pods: own_pods(&workload).expect("pods"),
        pod_count: 3,
        progress: RolloutProgress::of(&workload),
        has_failed: false,
        has_pods: true,
        is_urgent: false,
    }
}

fn failed(unhealthy: UnhealthyWorkload) -> UnhealthyWorkload {
    UnhealthyWorkload { has_failed: true, ..unhealthy }
}

impl Trial {
    fn new() -> Self {
        Self { searches: CauseSearches::default(), begin: Instant::now() }
    }

    fn at(&self, tenths: u64) -> Instant {
        self.begin + Duration::from_millis(tenths * 100)
    }

    /// One app of this name with these workloads.
    fn see(&mut self, tenths: u64, app: &str, unhealthy: Vec<UnhealthyWorkload>) {
        self.searches.update_unhealthy(&target(app), unhealthy, self.at(tenths));
    }

    fn take(&mut self, tenths: u64) -> Option<PodSearch> {
        self.searches.start_next_list(self.at(tenths), OPEN)
    }

    fn answer(&mut self, tenths: u64, search: &PodSearch) {
        for ((app, object), _) in &search.workloads {
            let target = Target { app: app.clone(), cluster: search.cluster.clone() };
            self.searches.mark_answered(&target, object, self.at(tenths));
        }
        self.searches.mark_listed(&search.cluster, &search.namespace);
    }

    /// Answers each search at once. Returns when they ran, in tenths of a second, and their selectors.
    fn run(&mut self, from: u64, to: u64, mut hands: impl FnMut(&mut Self, u64)) -> Vec<(u64, String)> {
        let mut lists = Vec::new();
        for tenths in from..=to {
            hands(self, tenths);
            while let Some(search) = self.take(tenths) {
                lists.push((tenths, search.selector.as_ref().map_or(String::new(), ToString::to_string)));
                self.answer(tenths, &search);
            }
        }
        lists
    }

    fn times(&mut self, from: u64, to: u64, hands: impl FnMut(&mut Self, u64)) -> Vec<u64> {
        self.run(from, to, hands).into_iter().map(|(tenths, _)| tenths).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn stuck_workload_is_searched_ever_more_seldom() {
    let mut trial = Trial::new();
    trial.see(0, "web", vec![deployment("shop", "web", 1, 0)]);
    let lists = trial.run(0, 3_000, |_, _| {});
    let times: Vec<u64> = lists.iter().map(|(tenths, _)| *tenths).collect();
    assert_eq!(times, [100, 150, 250, 450, 850, 1_450, 2_050, 2_650]);
    assert!(lists.iter().all(|(_, selector)| selector == "app=web"), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn progressing_workload_is_not_searched() {
    let mut trial = Trial::new();
    let lists = trial.times(0, 1_000, |trial, tenths| {
        if tenths % 90 == 0 {
            let ready = i64::try_from(tenths / 90).expect("a number");
            trial.see(tenths, "web", vec![deployment("shop", "web", 1, ready)]);
        }
    });
    assert_eq!(lists, Vec::<u64>::new());
    // A new commit every nine seconds.
    let mut trial = Trial::new();
    let lists = trial.times(0, 1_000, |trial, tenths| {
        let generation = i64::try_from(tenths / 90).expect("a number");
        trial.see(tenths, "web", vec![deployment("shop", "web", generation, 0)]);
    });
    assert_eq!(lists, Vec::<u64>::new());
}

#[tokio::test(start_paused = true)]
async fn urgent_search_runs_at_once() {
    let mut trial = Trial::new();
    trial.see(0, "web", vec![UnhealthyWorkload { is_urgent: true, ..deployment("shop", "web", 1, 0) }]);
    assert!(trial.searches.is_unanswered(&target("web"), trial.at(0)));
    assert_eq!(trial.times(0, 10, |_, _| {}), [0]);
    assert!(!trial.searches.is_unanswered(&target("web"), trial.at(10)));
    // A list without an answer is not waited for without end.
    trial.see(10, "api", vec![UnhealthyWorkload { is_urgent: true, ..deployment("shop", "api", 1, 0) }]);
    assert!(!trial.searches.is_unanswered(&target("api"), trial.at(200)));
}

#[tokio::test(start_paused = true)]
async fn failed_workload_is_searched_at_once() {
    let mut trial = Trial::new();
    trial.see(0, "web", vec![deployment("shop", "web", 1, 0)]);
    assert_eq!(trial.take(29), None);
    trial.see(30, "web", vec![failed(deployment("shop", "web", 1, 0))]);
    assert_eq!(trial.times(30, 200, |_, _| {}), [30, 80, 180]);
    // Another commit that fails at once is searched five seconds later at the earliest.
    trial.see(201, "web", vec![failed(deployment("shop", "web", 2, 0))]);
    assert_eq!(trial.times(201, 300, |_, _| {}), [230, 280]);
}

/// A container that crashes repeatedly is ready for a moment each time: that is no progress.
#[tokio::test(start_paused = true)]
async fn flapping_workload_counts_as_stuck() {
    let mut trial = Trial::new();
    let lists = trial.times(0, 600, |trial, tenths| {
        if tenths % 20 == 0 {
            trial.see(tenths, "web", vec![deployment("shop", "web", 1, i64::from(tenths % 40 == 20))]);
        }
    });
    assert_eq!(lists.first(), Some(&120), "{lists:?}");
    // Each change is searched, five seconds after the last search at the earliest.
    assert!(lists.windows(2).all(|pair| pair[1] - pair[0] == 50), "{lists:?}");
    // The same for a workload that is healthy or failed in every other moment.
    for fails in [false, true] {
        let mut trial = Trial::new();
        let lists = trial.times(0, 600, |trial, tenths| {
            let web = UnhealthyWorkload { has_failed: fails, ..deployment("shop", "web", 1, 2) };
            match tenths % 40 {
                0 => trial.see(tenths, "web", vec![web]),
                20 => trial.see(tenths, "web", Vec::new()),
                _ => {}
            }
        });
        assert!((4..=12).contains(&lists.len()), "{lists:?}");
        assert!(lists.windows(2).all(|pair| pair[1] - pair[0] >= 50), "{lists:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn workload_without_new_pods_is_not_listed() {
    let mut trial = Trial::new();
    let waiting = || UnhealthyWorkload { has_pods: false, ..deployment("shop", "web", 1, 0) };
    trial.see(0, "web", vec![waiting()]);
    assert_eq!(trial.times(0, 500, |_, _| {}), Vec::<u64>::new());
    assert!(!trial.searches.is_pending(&target("web"), &object("shop", "web"), trial.at(500)));
}

#[tokio::test(start_paused = true)]
async fn healthy_workload_is_forgotten() {
    let mut trial = Trial::new();
    trial.see(0, "web", vec![deployment("shop", "web", 1, 0)]);
    trial.see(90, "web", Vec::new());
    assert_eq!(trial.times(90, 1_000, |_, _| {}), Vec::<u64>::new());
    assert!(trial.searches.clusters.is_empty() && trial.searches.next_deadline().is_none());
    // The same for a target that is removed.
    trial.see(1_000, "web", vec![deployment("shop", "web", 1, 0)]);
    let search = trial.take(1_100).expect("a search");
    trial.searches.forget(&target("web"));
    trial.answer(1_101, &search);
    assert!(trial.searches.clusters.is_empty() && trial.searches.next_deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn one_list_serves_all_due_in_namespace() {
    let mut trial = Trial::new();
    for app in ["a", "b", "c"] {
        let both = ["api", "web"].map(|name| deployment("shop", &format!("{app}-{name}"), 1, 0));
        trial.see(0, app, both.to_vec());
    }
    trial.see(0, "d", vec![deployment("till", "d", 1, 0)]);
    let lists = trial.run(0, 110, |_, _| {});
    let all = "app in (a-api,a-web,b-api,b-web,c-api,c-web)";
    assert_eq!(lists, [(100, all.to_owned()), (105, "app=d".to_owned())]);
    // A workload that gets stuck a moment later waits for the next round.
    trial.see(111, "late", vec![failed(deployment("shop", "late", 1, 0))]);
    let lists = trial.run(111, 180, |_, _| {});
    let expected = [(140, "app=late".to_owned()), (155, "app=d".to_owned()), (180, all.to_owned())];
    assert_eq!(lists, expected);
}

#[tokio::test(start_paused = true)]
async fn selectors_are_united_by_their_labels() {
    let labels = |name: &str, tier: &str| json!({"matchLabels": {"app": name, "tier": tier}});
    let expression = json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    let mut trial = Trial::new();
    let all = vec![
        selected("shop", "a", &labels("a", "web"), 1, 0),
        selected("shop", "b", &labels("b", "web"), 1, 0),
        selected("shop", "c", &expression, 1, 0),
        deployment("shop", "d", 1, 0),
    ];
    trial.see(0, "shop", all);
    let lists: Vec<String> = trial.run(0, 120, |_, _| {}).into_iter().map(|(_, selector)| selector).collect();
    assert_eq!(lists, ["app in (a,b),tier=web", "app", "app=d"]);
}

#[tokio::test(start_paused = true)]
async fn only_changed_deadlines_are_scheduled() {
    let (mut cluster, begin) = (ClusterSearches::default(), Instant::now());
    let app = target("web").app;
    let mut see = |seconds: u64, failed_one: u64, ready: u64| {
        let unhealthy = (0..100).filter(|it| *it != ready).map(|number| {
            let it = deployment("shop", &format!("web-{number}"), 1, 0);
            UnhealthyWorkload { has_failed: number == failed_one, ..it }
        });
        cluster.update_unhealthy(&app, unhealthy.collect(), begin + Duration::from_secs(seconds)).len()
    };
    assert_eq!(see(0, 500, 500), 100);
    assert_eq!(see(1, 500, 500), 0);
    assert_eq!(see(2, 7, 500), 1);
    assert_eq!(see(3, 7, 8), 1);
    assert_eq!(see(4, 7, 8), 0);
}

#[tokio::test(start_paused = true)]
async fn at_most_two_lists_per_second() {
    let mut trial = Trial::new();
    for number in 0..100 {
        let name = format!("app-{number:03}");
        trial.see(0, &name, vec![failed(deployment(&name, &name, 1, 0))]);
    }
    let times = trial.times(0, 499, |_, _| {});
    assert_eq!(times, (0..100).map(|list| list * 5).collect::<Vec<_>>());
    // The workloads of one namespace are split into requests of limited size.
    let mut trial = Trial::new();
    for number in 0..1_000 {
        let name = format!("app-with-a-long-name-{number:04}");
        trial.see(0, &name, vec![failed(deployment("shop", &name, 1, 0))]);
    }
    let mut served = 0;
    for tenths in 0..100 {
        while let Some(search) = trial.take(tenths) {
            assert!(search.selector.as_ref().is_some_and(|it| it.to_string().len() < 2_100), "{search:?}");
            assert_eq!(search.limit, 500);
            served += search.workloads.iter().filter(|((_, object), _)| object.name.len() > 4).count();
            trial.answer(tenths, &search);
        }
    }
    assert!(served >= 1_000, "{served}");
}

#[tokio::test(start_paused = true)]
async fn slow_cluster_gets_two_lists_at_once() {
    let mut trial = Trial::new();
    for name in ["a", "b", "c"] {
        trial.see(0, name, vec![failed(deployment(name, name, 1, 0))]);
    }
    let (first, _second) = (trial.take(0).expect("a list"), trial.take(5).expect("a list"));
    assert_eq!(trial.take(1_000), None);
    trial.answer(1_000, &first);
    assert_eq!(trial.take(1_000).map(|it| it.namespace), Some("c".into()));
}

#[tokio::test(start_paused = true)]
async fn throttled_or_unreachable_cluster_gets_no_list() {
    let mut trial = Trial::new();
    trial.see(0, "web", vec![failed(deployment("shop", "web", 1, 0))]);
    let until = trial.at(300);
    assert_eq!(trial.searches.start_next_list(trial.at(0), |_| SearchAccess::Throttled(until)), None);
    assert_eq!(trial.searches.next_deadline(), Some(until));
    assert_eq!(trial.searches.start_next_list(until, |_| SearchAccess::NotReady), None);
    // No deadline before it is back.
    assert_eq!(trial.searches.next_deadline(), None);
    trial.see(310, "api", vec![failed(deployment("shop", "api", 1, 0))]);
    assert_eq!(trial.searches.next_deadline(), None);
    trial.searches.connected(&"one".into());
    assert_eq!(trial.take(350).map(|search| search.workloads.len()), Some(2));
}

#[tokio::test(start_paused = true)]
async fn removed_target_or_cluster_leaves_nothing() {
    let mut trial = Trial::new();
    let without_pods = || UnhealthyWorkload { has_pods: false, ..deployment("shop", "api", 1, 0) };
    trial.see(0, "web", vec![failed(deployment("shop", "web", 1, 0)), without_pods()]);
    trial.see(0, "api", vec![without_pods()]);
    trial.searches.forget(&target("web"));
    assert_eq!(trial.searches.next_deadline(), None);
    trial.searches.forget(&target("api"));
    assert!(trial.searches.clusters.is_empty());
    // Also while a list is in progress, which is answered later.
    trial.see(0, "web", vec![failed(deployment("shop", "web", 1, 0)), without_pods()]);
    let search = trial.take(0).expect("a list");
    trial.searches.forget_cluster(&"one".into());
    assert!(trial.searches.clusters.is_empty() && trial.searches.next_deadline().is_none());
    trial.answer(10, &search);
    assert!(trial.searches.clusters.is_empty() && trial.searches.next_deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn workload_that_was_cut_off_is_listed_alone() {
    let mut trial = Trial::new();
    trial.see(0, "shop", ["a", "b"].map(|name| failed(deployment("shop", name, 1, 0))).to_vec());
    let search = trial.take(0).expect("a list");
    assert_eq!((search.limit, search.workloads.len()), (100, 2));
    trial.searches.mark_answered(&target("shop"), &object("shop", "a"), trial.at(1));
    trial.searches.mark_cut_off(&target("shop"), &object("shop", "b"), trial.at(1));
    trial.searches.mark_listed(&search.cluster, &search.namespace);
    let next = trial.run(2, 85, |_, _| {});
    assert_eq!(next, [(40, "app=b".to_owned()), (80, "app=a".to_owned())], "{next:?}");
    // After its answer, it is listed with the others again.
    let failed_anew = ["a", "b"].map(|name| failed(deployment("shop", name, 2, 0)));
    trial.see(300, "shop", failed_anew.to_vec());
    let again = trial.run(300, 320, |_, _| {});
    assert_eq!(again, [(300, "app in (a,b)".to_owned())], "{again:?}");
}

/// A thousand stuck workloads with four pods each: each list holds all pods of its workloads.
#[tokio::test(start_paused = true)]
async fn list_takes_only_workloads_whose_pods_fit() {
    let mut trial = Trial::new();
    for number in 0..1_000 {
        let name = format!("app-{number:03}");
        let four = UnhealthyWorkload { pod_count: 4, ..deployment("shop", &name, 1, 0) };
        trial.see(0, &name, vec![failed(four)]);
    }
    let (mut lists, mut served) = (0, BTreeSet::new());
    for tenths in 0..50 {
        while let Some(search) = trial.take(tenths) {
            assert!(search.workloads.len() * 4 <= search.limit as usize && search.limit <= 500, "{search:?}");
            lists += 1;
            served.extend(search.workloads.iter().map(|(workload, _)| workload.clone()));
            trial.answer(tenths, &search);
        }
    }
    assert_eq!((lists, served.len()), (8, 1_000));
    // A workload with more pods than a list holds is listed alone, and few of its pods.
    let mut trial = Trial::new();
    let of = |name: &str, pod_count: u32| UnhealthyWorkload {
        pod_count,
        ..failed(deployment("shop", name, 1, 0))
    };
    trial.see(0, "shop", vec![of("a", 2_000), of("b", 300), of("c", 100), of("d", 200)]);
    let lists = trial.run(0, 20, |_, _| {});
    let expected = [(0, "app=a".to_owned()), (5, "app in (b,c)".to_owned()), (10, "app=d".to_owned())];
    assert_eq!(lists, expected);
}

#[tokio::test(start_paused = true)]
async fn bare_pod_needs_no_list() {
    let mut trial = Trial::new();
    let pod = ObjectId::new("", "Pod", Some("shop"), "web");
    trial.see(
        0,
        "web",
        vec![UnhealthyWorkload { object: pod, pods: OwnPods::Itself, ..deployment("shop", "web", 1, 0) }],
    );
    let search = trial.take(100).expect("a search");
    assert_eq!(search.selector, None);
    trial.answer(100, &search);
    assert_eq!(trial.run(101, 150, |_, _| {}), [(150, String::new())]);
}

#[tokio::test(start_paused = true)]
async fn cause_is_pending_until_searched() {
    let (web, id) = (target("web"), object("shop", "web"));
    let mut trial = Trial::new();
    let said = |trial: &Trial, tenths| {
        let now = trial.at(tenths);
        (trial.searches.is_pending(&web, &id, now), trial.searches.is_awaited(&web, now))
    };
    assert_eq!(said(&trial, 0), (false, false));
    trial.see(0, "web", vec![deployment("shop", "web", 1, 0)]);
    assert_eq!(said(&trial, 99), (false, false), "it may still get on");
    assert_eq!(said(&trial, 100), (true, false));
    trial.see(101, "web", vec![failed(deployment("shop", "web", 1, 0))]);
    assert_eq!(said(&trial, 101), (true, true));
    assert_eq!(said(&trial, 101 + 151), (true, false), "a run ends all the same");
    let search = trial.take(101).expect("a list");
    assert_eq!(said(&trial, 110), (true, true));
    trial.answer(110, &search);
    assert_eq!(said(&trial, 400), (false, false));
}

#[tokio::test(start_paused = true)]
async fn failure_soon_after_list_is_awaited() {
    let web = target("web");
    let mut trial = Trial::new();
    trial.see(0, "web", vec![deployment("shop", "web", 1, 0)]);
    let search = trial.take(100).expect("a list");
    trial.answer(101, &search);
    assert!(!trial.searches.is_awaited(&web, trial.at(110)));
    trial.see(110, "web", vec![failed(deployment("shop", "web", 1, 0))]);
    assert_eq!(trial.take(110), None, "no sooner than five seconds after");
    assert!(trial.searches.is_awaited(&web, trial.at(110)));
    let search = trial.take(160).expect("a list");
    assert!(trial.searches.is_awaited(&web, trial.at(160)));
    trial.answer(161, &search);
    assert!(!trial.searches.is_awaited(&web, trial.at(161)));
}

/// Whatever is due, each list costs no more than its workloads.
#[tokio::test(start_paused = true)]
async fn briefly_stuck_large_rollout_is_listed_seldom() {
    let mut trial = Trial::new();
    // A thousand apps, each stuck for 12 s some time within five minutes.
    let name = |number: u64| format!("app-{number:04}");
    let lists = trial.times(0, 3_300, |trial, tenths| {
        if tenths < 3_000 && tenths % 3 == 0 {
            let name = name(tenths / 3);
            trial.see(tenths, &name, vec![deployment("shop", &name, 1, 0)]);
        }
        if tenths >= 120 && tenths % 3 == 0 && tenths < 3_120 {
            trial.see(tenths, &name((tenths - 120) / 3), Vec::new());
        }
    });
    assert!((50..=100).contains(&lists.len()), "{} lists", lists.len());
}
