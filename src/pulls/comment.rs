//! The plan comment of a pull request: found by its marker and author, and edited in place.

use crate::cluster::WritePermit;
use crate::forge::{Comment, Error, ForgeClient};

#[derive(Clone, Debug, Default)]
pub struct PullComment {
    /// Id and body.
    written: Option<(i64, String)>,
    /// Whether the comments were listed.
    is_loaded: bool,
}

/// Identifies the comment among others of the same author.
#[derive(Clone, Copy, Debug)]
pub struct CommentKey<'a> {
    pub pull: u64,
    pub author: &'a str,
    pub marker: &'a str,
}

impl PullComment {
    pub fn has_body(&self, body: &str) -> bool {
        self.written.as_ref().is_some_and(|(_, known)| known == body)
    }

    /// Sets the body. A comment that a person deleted is created again. `None`: no write permit.
    pub async fn write(
        &mut self,
        forge: &ForgeClient,
        permit: &WritePermit,
        place: CommentKey<'_>,
        body: &str,
    ) -> Result<Option<()>, Error> {
        if !self.is_loaded {
            let comments = forge.comments(place.pull).await?;
            self.written = own_comment(&comments, place).map(|comment| (comment.id, comment.body.clone()));
            self.is_loaded = true;
        }
        if self.has_body(body) {
            return Ok(Some(()));
        }
        if let Some((id, _)) = self.written {
            match permit.write(Box::pin(forge.edit_comment(id, body))).await {
                None => return Ok(None),
                Some(Ok(_)) => {
                    self.written = Some((id, body.to_owned()));
                    return Ok(Some(()));
                }
                // Deleted at the forge.
                Some(Err(Error::Refused { status: 404, .. } | Error::RepositoryNotFound { .. })) => {
                    self.written = None;
                }
                Some(Err(error)) => return Err(error),
            }
        }
        match permit.write(Box::pin(forge.create_comment(place.pull, body))).await {
            None => Ok(None),
            // The request may have succeeded nevertheless.
            Some(Err(error)) => {
                self.is_loaded = false;
                Err(error)
            }
            Some(Ok(created)) => {
                self.written = Some((created.id, body.to_owned()));
                Ok(Some(()))
            }
        }
    }
}

/// The oldest one: two processes may have created one each.
fn own_comment<'a>(comments: &'a [Comment], place: CommentKey<'_>) -> Option<&'a Comment> {
    let is_ours = |comment: &&Comment| {
        comment.author.eq_ignore_ascii_case(place.author)
            && comment.body.trim_start().starts_with(place.marker)
    };
    comments.iter().filter(is_ours).min_by_key(|comment| comment.id)
}
