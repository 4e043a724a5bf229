//! Comments of a pull request.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::GiteaClient;
use super::http::GiteaCall;
use super::pulls::{UserResponse, parse_time};
use crate::forge::{Comment, Error, ForgeOperation};

const READ_COMMENTS: GiteaCall = GiteaCall(ForgeOperation::ReadComments, "read comments");
const CREATE_COMMENT: GiteaCall = GiteaCall(ForgeOperation::WriteComment, "write a comment");
const EDIT_COMMENT: GiteaCall = GiteaCall(ForgeOperation::WriteComment, "edit a comment");
const REACT: GiteaCall = GiteaCall(ForgeOperation::WriteComment, "react to a comment");

impl GiteaClient {
    pub(in crate::forge) async fn comments(&self, number: u64) -> Result<Vec<Comment>, Error> {
        let answered: Vec<CommentResponse> =
            self.list(READ_COMMENTS, self.issue_url(number, "comments")).await?;
        Ok(answered.into_iter().map(CommentResponse::into_comment).collect())
    }

    pub(in crate::forge) async fn create_comment(&self, number: u64, body: &str) -> Result<Comment, Error> {
        let url = self.issue_url(number, "comments");
        let answer = self.write(CREATE_COMMENT, Method::POST, url, Some(&json!({"body": body}))).await?;
        self.parse(CREATE_COMMENT, &answer).map(CommentResponse::into_comment)
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
struct CommentResponse {
    id: i64,
    user: Option<UserResponse>,
    body: Option<String>,
    created_at: Option<String>,
}

impl CommentResponse {
    fn into_comment(self) -> Comment {
        Comment {
            id: self.id,
            author: self.user.map(|user| user.login).unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            created: parse_time(self.created_at.as_deref()),
        }
    }
}
