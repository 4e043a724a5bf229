//! Passes each event to the part of the controller that handles it.

use super::event::Event;
use super::state::{ControllerState, RELOAD_FIRST};

impl ControllerState {
    pub fn handle(&mut self, event: Event) {
        self.is_overview_outdated = true;
        match event {
            Event::Wake | Event::Registered => self.load(),
            Event::Elected => self.handle_elected(),
            Event::Hint(hint) => {
                self.awaited_commit = hint.after;
                self.awaited_pause = RELOAD_FIRST;
                self.load();
            }
            Event::Loaded(Ok(loaded)) => self.handle_loaded(*loaded),
            Event::Loaded(Err(error)) => self.handle_load_failure(error),
            Event::Rendered { number, renders, heads, admission } => {
                self.handle_rendered(number, *renders, &heads, admission);
            }
            Event::RenderCrashed { number } => {
                tracing::error!(
                    "the renderer crashed, which is a fault of tutti: the next commit is rendered again"
                );
                self.renders.mark_crashed(number);
            }
            Event::ChartArrived => {
                if self.renders.chart_arrived() {
                    self.render();
                }
            }
            Event::AgreementAnswered { asked, answer } => {
                let apps = self.agreements.record_answer(&asked, answer);
                apps.iter().for_each(|app| self.rollout_apps.decide_soon(app));
            }
            Event::PastAppRead { app, revision, past } => {
                self.handle_past_app(&app, &revision, past.map(|past| *past))
            }
            Event::Cluster { cluster, epoch, news } => self.handle_cluster_news(&cluster, epoch, news),
            Event::Reconciled { target, number, epoch, outcome } => {
                self.handle_reconciled(&target, number, epoch, *outcome);
            }
            Event::ReconcileCrashed { target, number, error } => self.handle_crash(&target, number, error),
            Event::ObjectDeleted { candidate, epoch, result } => {
                self.handle_deleted(&candidate, epoch, result)
            }
            Event::PodsListed(listed) => self.handle_pods_listed(*listed),
            Event::CrashLogRead { told, crash, line } => self.handle_crash_log(*told, crash, line),
            Event::ForgeTokenRead { reference, token } => self.handle_token(&reference, token),
            Event::UnfinishedCommit { revision, left } => self.handle_unfinished_commit(&revision, left),
            Event::PostedStatusesRead { number } => self.handle_posted_statuses(number),
        }
    }

    /// This process begins to write. The effect is that of another mode of the instance. As at a start, the statuses of the
    /// previous leader are read back from the forge.
    fn handle_elected(&mut self) {
        self.settings.is_standby = false;
        self.begin_posting();
        self.render();
    }
}
