//! `live down`: stop exactly what `up` started.

use std::time::Duration;

use anyhow::bail;

use super::tier_state;

pub fn run() -> anyhow::Result<()> {
    let Some(state) = tier_state::read()? else {
        println!("nothing is up");
        return Ok(());
    };
    state.holder.signal("TERM")?;
    if !state.holder.wait(Duration::from_secs(20)) {
        state.holder.signal("KILL")?;
    }
    // They end with the holder; this is for a machine without `setpriv`, or a holder that was killed.
    for process in &state.processes {
        if !process.wait(Duration::from_secs(5)) {
            process.signal("KILL")?;
            process.wait(Duration::from_secs(5));
        }
    }
    let left: Vec<_> =
        state.processes.iter().chain([&state.holder]).filter(|process| process.is_running()).collect();
    if !left.is_empty() {
        bail!("failed to stop {left:?}");
    }
    tier_state::remove()?;
    println!(
        "stopped {} clusters{}",
        state.clusters.len(),
        if state.gitea.is_some() { " and Gitea" } else { "" }
    );
    Ok(())
}
