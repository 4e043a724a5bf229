//! The commit and time of the source that a release is built from.

use std::env;
use std::process::Command;

use anyhow::Context;
use jiff::Timestamp;

use super::{build, root};

pub struct BuildOrigin {
    /// The commit, with `-modified` when the checkout is another.
    pub revision: String,
    /// Seconds since 1970: the time of the commit, or `SOURCE_DATE_EPOCH`.
    pub time: u64,
}

impl BuildOrigin {
    pub fn read() -> anyhow::Result<Self> {
        let help = "a release is made from a Git checkout";
        let mut revision = git(&["rev-parse", "HEAD"]).context(help)?;
        if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
            revision += "-modified";
        }
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let time = time
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH is {time:?}: seconds since 1970 are expected"))?;
        Ok(Self { revision, time })
    }

    /// As RFC 3339 has it, in UTC.
    pub fn timestamp(&self) -> anyhow::Result<String> {
        let second = i64::try_from(self.time).context("the time of the release is out of range")?;
        Ok(Timestamp::from_second(second).context("the time of the release is out of range")?.to_string())
    }
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.current_dir(root()).args(arguments);
    Ok(build::text(command)?.trim().to_owned())
}
