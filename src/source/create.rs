//! Creates a repository from a folder, for the demo.

use std::path::Path;

use git2::{ConfigLevel, IndexAddOption, Repository, RepositoryInitOptions};

use super::Error;
use crate::model::Revision;

/// Makes `folder` a repository with one commit of everything in it, on branch `main`.
pub fn create(folder: &Path, message: &str) -> Result<Revision, Error> {
    commit_all(folder, message)
        .map_err(|error| Error::Folder { path: folder.to_owned(), message: error.message().to_owned() })
}

fn commit_all(folder: &Path, message: &str) -> Result<Revision, git2::Error> {
    let repository = Repository::init_opts(folder, RepositoryInitOptions::new().initial_head("main"))?;
    let mut index = repository.index()?;
    index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    // Users without a configured Git identity must be able to commit to the demo repository.
    if repository.signature().is_err() {
        let mut config = repository.config()?.open_level(ConfigLevel::Local)?;
        config.set_str("user.name", "tutti demo")?;
        config.set_str("user.email", "demo@tutti.dev")?;
    }
    let signature = repository.signature()?;
    let commit = repository.commit(Some("HEAD"), &signature, &signature, message, &tree, &[])?;
    Ok(Revision::from(commit.to_string().as_str()))
}
