//! Reads HTTP/1 requests for servers of tests.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

#[derive(Debug)]
pub struct Http1Request {
    pub method: String,
    /// With the query.
    pub target: String,
    /// The request line and the headers, unchanged.
    pub head: String,
    pub body: Vec<u8>,
}

/// The next request of a connection; `None` at its end.
pub async fn read_request(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Http1Request>> {
    let mut head = String::new();
    if stream.read_line(&mut head).await? == 0 {
        return Ok(None);
    }
    let mut parts = head.split_whitespace().map(str::to_owned);
    let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let begin = head.len();
        if stream.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
        let line = head[begin..].trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Http1Request { method, target, head, body }))
}
