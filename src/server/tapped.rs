//! Connections whose bytes are watched on their way to pingora.

use std::{
    fmt::Debug,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::SslDigest,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The watcher of a connection.
pub(super) trait Tap: Debug + Send + Sync + Unpin + 'static {
    /// Whether the connection may be read from.
    fn may_read(&self) -> bool {
        true
    }

    /// Looks at bytes before pingora reads them, and may replace them.
    fn received(&mut self, bytes: &mut [u8]);

    /// Counts bytes that were written.
    fn wrote(&mut self, _bytes: usize) {}
}

/// A connection with its watcher.
#[derive(Debug)]
pub(super) struct Tapped<T> {
    pub(super) stream: Stream,
    pub(super) tap: T,
}

impl<T: Tap> Tapped<T> {
    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.tap.wrote(bytes);
        }
        written
    }
}

impl<T: Tap> AsyncRead for Tapped<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.tap.may_read() {
            return Poll::Pending;
        }
        let before = bytes.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, bytes))?;
        self.tap.received(bytes.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<T: Tap> AsyncWrite for Tapped<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[async_trait]
impl<T: Tap> Shutdown for Tapped<T> {
    async fn shutdown(&mut self) {
        self.stream.shutdown().await;
    }
}

impl<T: Tap> UniqueID for Tapped<T> {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl<T: Tap> Ssl for Tapped<T> {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl<T: Tap> GetTimingDigest for Tapped<T> {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.get_write_pending_time()
    }
}

impl<T: Tap> GetProxyDigest for Tapped<T> {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl<T: Tap> GetSocketDigest for Tapped<T> {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

#[async_trait]
impl<T: Tap> Peek for Tapped<T> {
    async fn try_peek(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        self.stream.try_peek(buffer).await
    }
}
