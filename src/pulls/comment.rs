//! The one comment of a pull request: found again by its marker and its author, and edited in place.

use crate::cluster::WritePermit;
use crate::forge::{Client, Comment, Error};

/// What is known of the comment of a pull request.
#[derive(Clone, Debug, Default)]
pub struct Sticky {
    /// Where it is, and what it says.
    known: Option<(i64, String)>,
    /// It was looked for.
    is_searched: bool,
}

/// Whose comment, and how it is told from others of the same author.
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

    /// Brings the comment to this body. One that somebody deleted is written anew. `None`: this process may not write.
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
                // It was deleted.
                Some(Err(Error::Refused { status: 404, .. } | Error::RepositoryNotFound { .. })) => {
                    self.known = None;
                }
                Some(Err(error)) => return Err(error),
            }
        }
        match permit.write(Box::pin(forge.create_comment(place.pull, body))).await {
            None => Ok(None),
            // It may have been written all the same.
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

/// The oldest of ours: two processes may have written one each.
fn ours<'a>(comments: &'a [Comment], place: Place<'_>) -> Option<&'a Comment> {
    let is_ours = |comment: &&Comment| {
        comment.author.eq_ignore_ascii_case(place.me) && comment.body.trim_start().starts_with(place.marker)
    };
    comments.iter().filter(is_ours).min_by_key(|comment| comment.id)
}
