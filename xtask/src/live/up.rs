//! `live up`: build what is missing, leave a holder behind, wait until it says that all is ready.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::{programs, tier_state};

#[derive(Args)]
pub struct UpOptions {
    /// Number of clusters (about 500 MB of memory each)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub clusters: u32,
    /// Names of the clusters; default: cluster-1, cluster-2, …
    #[arg(long, value_delimiter = ',', conflicts_with = "clusters")]
    pub names: Vec<String>,
    /// Start no Gitea
    #[arg(long)]
    pub no_gitea: bool,
}

impl UpOptions {
    pub fn setup(&self) -> live::LiveSetup {
        let setup = match self.names.is_empty() {
            true => live::LiveSetup::new(self.clusters as usize),
            false => live::LiveSetup::named(&self.names),
        };
        if self.no_gitea { setup.without_gitea() } else { setup }
    }

    fn to_arguments(&self) -> Vec<String> {
        let mut words = match self.names.is_empty() {
            true => vec!["--clusters".to_owned(), self.clusters.to_string()],
            false => vec!["--names".to_owned(), self.names.join(",")],
        };
        words.extend(self.no_gitea.then(|| "--no-gitea".to_owned()));
        words
    }
}

pub fn run(options: &UpOptions) -> anyhow::Result<()> {
    if let Some(running) = tier_state::read()? {
        if running.holder.is_running() {
            running.print();
            bail!("already up; `cargo xtask live down` stops it");
        }
        tier_state::remove()?;
    }
    programs::build()?;

    let log = tier_state::log_path()?;
    let output = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
    let program = std::env::current_exe().context("failed to find this program")?;
    let mut holder = Command::new(program)
        .args(["live", "hold"])
        .args(options.to_arguments())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        // Ctrl-C on the terminal is not for the holder.
        .process_group(0)
        .spawn()
        .context("failed to start the holder")?;
    loop {
        if let Some(status) = holder.try_wait()? {
            bail!("the holder ended with {status}:\n{}", fs::read_to_string(&log).unwrap_or_default());
        }
        if let Some(state) = tier_state::read()? {
            state.print();
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
}
