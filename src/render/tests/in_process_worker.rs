//! Worker renders equal local renders: [`super::run`] compares both in every test.

use std::time::Duration;

use parking_lot::Mutex;

use crate::model::{
    RenderFailure, RenderFailureCause, RenderWait, TemplateRequest, TemplateResponse, TemplateWorkers,
};
use crate::render::{DigestedText, WorkerTemplates};

use super::*;

/// A worker in this process.
#[derive(Debug, Default)]
pub struct InProcessWorker {
    desk: Mutex<WorkerTemplates>,
    reports: bool,
}

impl TemplateWorkers for InProcessWorker {
    fn run_task(
        &self,
        request: &TemplateRequest<'_>,
        _: RenderWait<'_>,
    ) -> Result<TemplateResponse, RenderFailure> {
        let digests: Vec<String> = request.cached.iter().map(|kept| kept.digest.to_string()).collect();
        let told = |index: usize| DigestedText { digest: &digests[index], text: &request.cached[index].text };
        let report = self.reports.then_some((|_, _| {}) as fn(usize, usize));
        let answer = self.desk.lock().render(told(0), told(1), &request.body, report);
        let body = answer.expect("a request").into_bytes();
        Ok(TemplateResponse { body, took: Duration::ZERO })
    }
}

/// Instrumented templates render the same texts.
pub fn reporting() -> TemplatesOnly<InProcessWorker> {
    TemplatesOnly(InProcessWorker { reports: true, ..InProcessWorker::default() })
}

#[derive(Debug)]
struct EndingWorkers(Mutex<usize>);

impl TemplateWorkers for EndingWorkers {
    fn run_task(
        &self,
        _: &TemplateRequest<'_>,
        _: RenderWait<'_>,
    ) -> Result<TemplateResponse, RenderFailure> {
        *self.0.lock() += 1;
        Err(RenderFailure { cause: RenderFailureCause::Stack, place: Some("0:3".to_owned()) })
    }
}

#[test]
fn app_stops_after_two_ended_workers() {
    let clusters: Vec<(String, String)> = (1..9)
        .map(|number| {
            let name = format!("bj{number}");
            (format!("clusters/{name}.yaml"), CLUSTER.replace("name: bj1", &format!("name: {name}")))
        })
        .collect();
    let mut files: Vec<(&str, &str)> =
        clusters.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("apps/web/app.yaml", WEB));
    files.push(("apps/web/layer/a.yaml.j2", "a: {{ cluster.name }}\n"));
    let snapshot = Snapshot::of_texts(files);
    let fleet = fleet(&snapshot);
    let ends = TemplatesOnly(EndingWorkers(Mutex::new(0)));
    let renders =
        crate::render::FleetRenderer::new(&fleet, &snapshot, &ends).render_all(&mut Default::default());
    assert_eq!((*ends.0.0.lock(), renders.results().count()), (2, 8));
    for result in renders.results() {
        let mistakes = result.as_ref().expect_err("it ended");
        assert_eq!(mistakes[0].code, "E3009");
        assert_eq!(mistakes[0].location.as_ref().map(|it| it.start.line), Some(3));
    }
}

/// Takes a fixed time, and is cut off if nobody waits that long.
#[derive(Debug)]
struct SlowWorkers {
    time: Duration,
    waited: Mutex<Vec<Duration>>,
}

impl TemplateWorkers for SlowWorkers {
    fn run_task(
        &self,
        request: &TemplateRequest<'_>,
        wait: RenderWait<'_>,
    ) -> Result<TemplateResponse, RenderFailure> {
        self.waited.lock().push(wait.time);
        let cause = match wait.time < self.time {
            true => RenderFailureCause::Postponed,
            false => RenderFailureCause::Stack,
        };
        assert!(request.time >= Duration::from_secs(2));
        Err(RenderFailure { cause, place: None })
    }
}

/// A slow app that is first by name, and a new fast one.
#[test]
fn slow_app_waits_until_others_are_rendered() {
    let snapshot = Snapshot::of_texts([
        ("clusters/bj1.yaml", CLUSTER),
        ("apps/a/app.yaml", &WEB.replace("name: web", "name: a")),
        ("apps/a/layer/a.yaml.j2", "a: b\n"),
        ("apps/b/app.yaml", &WEB.replace("name: web", "name: b")),
    ]);
    let fleet = fleet(&snapshot);
    let slow = TemplatesOnly(SlowWorkers { time: Duration::from_secs(1), waited: Mutex::default() });
    let mut memory = crate::render::RenderCache::default();
    let mut turn = || {
        let renders = crate::render::FleetRenderer::new(&fleet, &snapshot, &slow).render_while(
            &mut memory,
            crate::render::Pacing { goes_on: &|| true, clock: &|| Duration::ZERO },
        );
        let of = |app: &str| renders.of_app(&AppId::new("default", app)).next().expect("a target").1.clone();
        let words = |result: Result<_, Vec<Diagnostic>>| result.map_or_else(|it| it[0].code, |_| "ok");
        (words(of("a")), words(of("b")), renders.is_complete())
    };
    assert_eq!(turn(), ("E3998", "ok", false));
    assert_eq!(turn(), ("E3009", "ok", true));
    let waited = slow.0.waited.lock().clone();
    let quarters: Vec<u128> = waited.iter().map(|it| it.as_millis().div_ceil(250)).collect();
    assert_eq!(quarters, [1, 4]);
}
