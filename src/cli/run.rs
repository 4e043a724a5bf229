//! `tutti run`: reconciles continuously, or once.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};

use super::exit::{self, Exit};
use super::leadership::LEASE;
use super::output::{self, OutputFormat, tell};
use super::process::{ProcessArgs, ProcessSettings};
use super::progress;
use super::session::{ListenOptions, RepositoryUnreadable, RunOptions, Session};
use super::state_folder::StateFolder;
use super::timeout::timeout;
use super::{diagnostics, get};
use crate::api::SHORTEST_TOKEN;
use crate::controller::{RunEnding, RunUntil, resolve_operator_secret};
use crate::model::{SecretRef, redacted_address};
use crate::source;

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    process: ProcessArgs,
    /// Exit when nothing is left to do or to wait for
    #[arg(long)]
    once: bool,
    /// With --once: maximum time to wait, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = timeout, requires = "once")]
    timeout: Duration,
    /// Listen address for /live, /ready, /metrics and /api/v1; default: 127.0.0.1:8480, with --once any free port
    #[arg(long, env = "TUTTI_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// Listen address for webhooks, POST /hooks/v1/{receiver}; default: 127.0.0.1:8481, with --once any free port
    #[arg(long, env = "TUTTI_HOOKS_LISTEN", value_name = "ADDRESS")]
    hooks_listen: Option<String>,
    /// Environment variable with the token for /api/v1, at least 16 bytes; without a token, the API is disabled
    #[arg(long, env = "TUTTI_API_TOKEN_ENV", value_name = "NAME")]
    api_token_env: Option<String>,
    /// Lease of the leader in the home cluster; default: `tutti`, without a home cluster or with --once none. The default of NAMESPACE is that
    /// of the tutti pod or the home kubeconfig
    #[arg(long, env = "TUTTI_LEASE", value_name = "[NAMESPACE/]NAME")]
    lease: Option<String>,
    /// With --once: output format of the final state
    #[arg(short, long, value_enum, default_value_t, requires = "once")]
    output: OutputFormat,
    /// With --once: print one column for each cluster, regardless of the terminal width
    #[arg(long, requires = "once")]
    wide: bool,
}

/// The Lease to use; `None`: no election.
fn lease_name(args: &RunArgs, process: &ProcessSettings) -> anyhow::Result<Option<String>> {
    let named = args.lease.clone().or_else(|| process.lease.clone());
    let has_home = !process.connections.home.is_none();
    match named {
        Some(name) if !has_home => {
            bail!("--lease {name}: there is no home cluster; name one by --home-kubeconfig FILE")
        }
        Some(name) => Ok(Some(name)),
        None => Ok((has_home && !args.once).then(|| LEASE.to_owned())),
    }
}

async fn api_token(args: &RunArgs, process: &ProcessSettings) -> anyhow::Result<Option<SecretString>> {
    let of_flag = args.api_token_env.clone().map(SecretRef::Env);
    let Some(reference) = of_flag.or_else(|| process.api_token.clone()) else { return Ok(None) };
    let token = resolve_operator_secret(&reference, &process.connections.home.of_operator()).await?;
    if token.expose_secret().len() < SHORTEST_TOKEN {
        bail!("the token of the API has less than {SHORTEST_TOKEN} bytes: `openssl rand -hex 32` makes one");
    }
    Ok(Some(token))
}

pub async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let mut process = args.process.resolve(None).await?;
    process.connections.embeds_only_by_flag = !args.once;
    process.lease = lease_name(&args, &process)?;
    let api_token = api_token(&args, &process).await?;
    let (url, folder) = (&process.source.url, &process.source.state_folder);
    // A local repository is read in place, without state.
    let _state =
        (!source::is_local(url)).then(|| StateFolder::acquire(folder, &redacted_address(url))).transpose()?;
    let until = if args.once { RunUntil::Settled { timeout: args.timeout } } else { RunUntil::Stopped };
    // Several `run --once` may run in parallel: any free port.
    let (listen, hooks) =
        if args.once { ("127.0.0.1:0", "127.0.0.1:0") } else { ("127.0.0.1:8480", "127.0.0.1:8481") };
    let pick = |flag: Option<String>, file: &Option<String>, default: &str| {
        flag.or_else(|| file.clone()).unwrap_or_else(|| default.to_owned())
    };
    let doors = ListenOptions {
        listen: pick(args.listen, &process.listen, listen),
        hooks_listen: pick(args.hooks_listen, &process.hooks_listen, hooks),
        api_token,
    };
    let session = Session::start(
        &process,
        RunOptions { until, mode: None, foresee: false, serve: Some(doors), worktree: false },
    )
    .await?;
    let (leads, overview) = (session.wait_until_leader(), session.overview.clone());
    let shown = tokio::spawn(async move {
        // Only the leader prints progress.
        leads.await;
        progress::print_progress(overview).await;
    });
    let (ending, overview) = session.finish().await?;
    shown.abort();
    // Its output comes before the reason.
    let _ = shown.await;
    if let RunEnding::Unreadable(error) = ending {
        return Err(RepositoryUnreadable(error).into());
    }
    if args.once {
        diagnostics::print(&overview.diagnostics);
        match args.output {
            OutputFormat::Table => get::write_matrix(&overview, args.wide),
            format => output::write_value(format, &*overview)?,
        }
    }
    let exit = match ending {
        RunEnding::Stopped if !args.once => Exit::Ok,
        ref ending => exit::of_run(ending, &overview),
    };
    if let Some(reason) = exit::reason(exit, &overview) {
        tell!("ends with {}: {reason}", exit as u8);
    }
    Ok(exit)
}
