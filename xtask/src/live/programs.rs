//! `live build`: the programs that the clusters and Gitea run, built into the cache.

pub fn build() -> anyhow::Result<live::TierPrograms> {
    let programs = live::TierPrograms::ensure(&|line| println!("{line}"))?;
    println!("programs are in {}", live::cache_folder()?.display());
    Ok(programs)
}
