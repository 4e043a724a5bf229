//! Blocks bytes on write connections when the leader's term is over.
//!
//! A request waits between its permit check and the socket. The machine may suspend the process there and resume it
//! when another process leads. So the clock is checked again right before the bytes are sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::WritePermit;
use super::proxy::{ConnectError, Dialer};

/// Opens connections. Those under a permit break when it ends.
#[derive(Clone)]
pub(super) struct WriteFence {
    dial: Dialer,
    permit: Option<WritePermit>,
}

impl WriteFence {
    pub fn new(dial: Dialer, permit: Option<WritePermit>) -> Self {
        Self { dial, permit }
    }
}

impl Service<Uri> for WriteFence {
    type Response = FencedStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.dial.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (stream, permit) = (self.dial.call(to), self.permit.clone());
        async move { Ok(FencedStream { stream: stream.await?, permit }) }.boxed()
    }
}

pub(super) struct FencedStream<S> {
    stream: S,
    permit: Option<WritePermit>,
}

impl<S> FencedStream<S> {
    fn check(&self) -> io::Result<()> {
        match &self.permit {
            Some(permit) if !permit.is_in_term() => Err(io::Error::other("the term of this leader is over")),
            _ => Ok(()),
        }
    }
}

impl<S: Read + Unpin> Read for FencedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: Write + Unpin> Write for FencedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}

impl<S: Connection> Connection for FencedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures::future::poll_fn;
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;

    use super::*;
    use crate::cluster::LeaderTerm;

    #[tokio::test]
    async fn no_bytes_are_sent_after_the_term() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let term = Arc::new(LeaderTerm::default());
        let mut fenced =
            FencedStream { stream: TokioIo::new(ours), permit: Some(WritePermit::of(Arc::clone(&term))) };
        term.extend(Instant::now() + Duration::from_secs(60));
        let sent = poll_fn(|context| Pin::new(&mut fenced).poll_write(context, b"one")).await;
        assert_eq!(sent.expect("it is in its term"), 3);
        term.extend(Instant::now());
        let refused = poll_fn(|context| Pin::new(&mut fenced).poll_write(context, b"two")).await;
        assert!(refused.is_err());
        let parts = [IoSlice::new(b"three")];
        let refused = poll_fn(|context| Pin::new(&mut fenced).poll_write_vectored(context, &parts)).await;
        assert!(refused.is_err());
        drop(fenced);
        let mut arrived = String::new();
        theirs.read_to_string(&mut arrived).await.expect("a text");
        assert_eq!(arrived, "one");
    }
}
