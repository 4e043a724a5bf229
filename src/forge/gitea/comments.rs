//! Comments of a pull request.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::Client;
use super::http::Call;
use super::pulls::{Named, time};
use crate::forge::{Comment, Error, Operation};

const READ_COMMENTS: Call = Call(Operation::ReadComments, "read comments");
const CREATE_COMMENT: Call = Call(Operation::WriteComment, "write a comment");
const EDIT_COMMENT: Call = Call(Operation::WriteComment, "edit a comment");
const REACT: Call = Call(Operation::WriteComment, "react to a comment");

impl Client {
    pub(in crate::forge) async fn comments(&self, number: u64) -> Result<Vec<Comment>, Error> {
        let answered: Vec<Answered> = self.list(READ_COMMENTS, self.issue_url(number, "comments")).await?;
        Ok(answered.into_iter().map(Answered::into_comment).collect())
    }

    pub(in crate::forge) async fn create_comment(&self, number: u64, body: &str) -> Result<Comment, Error> {
        let url = self.issue_url(number, "comments");
        let answer = self.write(CREATE_COMMENT, Method::POST, url, Some(&json!({"body": body}))).await?;
        self.understood(CREATE_COMMENT, &answer).map(Answered::into_comment)
    }

    pub(in crate::forge) async fn edit_comment(&self, id: i64, body: &str) -> Result<(), Error> {
        let url = self.repository_url(&["issues", "comments", &id.to_string()]);
        self.write(EDIT_COMMENT, Method::PATCH, url, Some(&json!({"body": body}))).await.map(drop)
    }

    pub(in crate::forge) async fn react(&self, id: i64, reaction: &str) -> Result<(), Error> {
        let url = self.repository_url(&["issues", "comments", &id.to_string(), "reactions"]);
        self.write(REACT, Method::POST, url, Some(&json!({"content": reaction}))).await.map(drop)
    }
}

#[derive(Deserialize)]
struct Answered {
    id: i64,
    user: Option<Named>,
    body: Option<String>,
    created_at: Option<String>,
}

impl Answered {
    fn into_comment(self) -> Comment {
        Comment {
            id: self.id,
            author: self.user.map(|user| user.login).unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            created: time(self.created_at.as_deref()),
        }
    }
}
