//! The plan comment of a pull request: found by its marker and author, and edited in place.

use crate::cluster::WritePermit;
use crate::forge::{Client, Comment, Error};

#[derive(Clone, Debug, Default)]
pub struct Sticky {
    /// Id and body.
    known: Option<(i64, String)>,
    /// Whether the comments were listed.
    is_searched: bool,
}

/// Identifies the comment among others of the same author.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub pull: u64,
    pub me: &'a str,
    pub marker: &'a str,
}

impl Sticky {
    pub fn says(&self, body: &str) -> bool {
        self.known.as_ref().is_some_and(|(_, known)| known == body)
    }

    /// Sets the body. A comment that a person deleted is created again. `None`: no write permit.
    pub async fn write(
        &mut self,
        forge: &Client,
        permit: &WritePermit,
        place: Place<'_>,
        body: &str,
    ) -> Result<Option<()>, Error> {
        if !self.is_searched {
            let comments = forge.comments(place.pull).await?;
            self.known = ours(&comments, place).map(|comment| (comment.id, comment.body.clone()));
            self.is_searched = true;
        }
        if self.says(body) {
            return Ok(Some(()));
        }
        if let Some((id, _)) = self.known {
            match permit.write(Box::pin(forge.edit_comment(id, body))).await {
                None => return Ok(None),
                Some(Ok(_)) => {
                    self.known = Some((id, body.to_owned()));
                    return Ok(Some(()));
                }
                // Deleted at the forge.
                Some(Err(Error::Refused { status: 404, .. } | Error::RepositoryNotFound { .. })) => {
                    self.known = None;
                }
                Some(Err(error)) => return Err(error),
            }
        }
        match permit.write(Box::pin(forge.create_comment(place.pull, body))).await {
            None => Ok(None),
            // The request may have succeeded nevertheless.
            Some(Err(error)) => {
                self.is_searched = false;
                Err(error)
            }
            Some(Ok(created)) => {
                self.known = Some((created.id, body.to_owned()));
                Ok(Some(()))
            }
        }
    }
}

/// The oldest one: two processes may have created one each.
fn ours<'a>(comments: &'a [Comment], place: Place<'_>) -> Option<&'a Comment> {
    let is_ours = |comment: &&Comment| {
        comment.author.eq_ignore_ascii_case(place.me) && comment.body.trim_start().starts_with(place.marker)
    };
    comments.iter().filter(is_ours).min_by_key(|comment| comment.id)
}
