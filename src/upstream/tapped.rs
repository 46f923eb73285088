//! Connections that are watched on their way to pingora.

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
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};

/// The octet that pingora reads in place of malformed ones.
const SPOILED: u8 = b'\r';

/// Spoils all bytes but the first ones, which are well-formed. From there on, pingora reads carriage returns, and no
/// chunked body has two of them at its framing. So pingora ends the body, as any other that it cannot read.
pub(crate) fn spoil(bytes: &mut [u8], well_formed: usize) {
    bytes.iter_mut().skip(well_formed).for_each(|octet| *octet = SPOILED);
}

/// The watcher of a connection.
pub(crate) trait Tap: Debug + Send + Sync + Unpin + 'static {
    /// True if the connection may be read from.
    fn may_read(&self) -> bool {
        true
    }

    /// Looks at bytes before pingora reads them, and may replace them.
    fn received(&mut self, _bytes: &mut [u8]) {}

    /// Counts bytes that were written.
    fn wrote(&mut self, _bytes: usize) {}

    /// True if the connection takes several buffers at once, if it can.
    fn takes_slices(&self) -> bool {
        true
    }

    /// True if a flush is passed on.
    fn flushes(&mut self) -> bool {
        true
    }
}

/// A connection, or the buffer in front of one.
pub(crate) trait Underlying: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin + 'static {
    /// Returns the connection.
    fn connection(&self) -> &Stream;

    /// Returns the connection, to be changed.
    fn connection_mut(&mut self) -> &mut Stream;
}

impl Underlying for Stream {
    fn connection(&self) -> &Stream {
        self
    }

    fn connection_mut(&mut self) -> &mut Stream {
        self
    }
}

impl Underlying for BufWriter<Stream> {
    fn connection(&self) -> &Stream {
        self.get_ref()
    }

    fn connection_mut(&mut self) -> &mut Stream {
        self.get_mut()
    }
}

/// A connection with its watcher.
#[derive(Debug)]
pub(crate) struct Tapped<T, C = Stream> {
    pub(crate) stream: C,
    pub(crate) tap: T,
}

impl<T: Tap, C: Underlying> Tapped<T, C> {
    /// Returns the connection without its watcher. The error is a connection that has no such watcher.
    pub(crate) fn untap(stream: Stream) -> Result<C, Stream> {
        if !stream.as_any().is::<Self>() {
            return Err(stream);
        }
        match stream.into_any().downcast::<Self>() {
            Ok(tapped) => Ok(tapped.stream),
            Err(_other) => unreachable!("the type was checked above"),
        }
    }

    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.tap.wrote(bytes);
        }
        written
    }
}

impl<T: Tap, C: Underlying> AsyncRead for Tapped<T, C> {
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

impl<T: Tap, C: Underlying> AsyncWrite for Tapped<T, C> {
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
        self.tap.takes_slices() && self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tap.flushes() { Pin::new(&mut self.stream).poll_flush(context) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[async_trait]
impl<T: Tap, C: Underlying> Shutdown for Tapped<T, C> {
    async fn shutdown(&mut self) {
        self.stream.connection_mut().shutdown().await;
    }
}

impl<T: Tap, C: Underlying> UniqueID for Tapped<T, C> {
    fn id(&self) -> UniqueIDType {
        self.stream.connection().id()
    }
}

impl<T: Tap, C: Underlying> Ssl for Tapped<T, C> {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.connection().get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.connection().selected_alpn_proto()
    }
}

impl<T: Tap, C: Underlying> GetTimingDigest for Tapped<T, C> {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.connection().get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.connection().get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.connection().get_write_pending_time()
    }
}

impl<T: Tap, C: Underlying> GetProxyDigest for Tapped<T, C> {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.connection().get_proxy_digest()
    }
}

impl<T: Tap, C: Underlying> GetSocketDigest for Tapped<T, C> {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.connection().get_socket_digest()
    }
}

#[async_trait]
impl<T: Tap, C: Underlying> Peek for Tapped<T, C> {
    async fn try_peek(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        self.stream.connection_mut().try_peek(buffer).await
    }
}
