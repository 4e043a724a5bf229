//! `live status`: what runs and how to reach it.

use anyhow::bail;

use super::tier_state;

pub fn run() -> anyhow::Result<()> {
    let Some(state) = tier_state::read()? else {
        println!("nothing is up; start with `cargo xtask live up --clusters 4`");
        return Ok(());
    };
    let running = state.processes.iter().filter(|process| process.is_running()).count();
    if !state.holder.is_running() {
        bail!(
            "the holder (process {}) is gone, {running} of its processes run: clean up with `cargo xtask live down`",
            state.holder.id()
        );
    }
    state.print();
    println!("{running} of {} processes run", state.processes.len());
    Ok(())
}
