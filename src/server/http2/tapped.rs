//! A connection that is watched, and whose writes are gathered.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes that are gathered before they are written: as many as a record of TLS has.
const GATHERED_BYTES_MAX: usize = 16 * 1024;

/// The watcher of a connection.
pub(super) trait Tap: Unpin {
    /// True if the connection may be read from.
    fn may_read(&self) -> bool {
        true
    }

    /// Looks at bytes that were received.
    fn received(&mut self, _bytes: &[u8]) {}

    /// Counts bytes that were written.
    fn wrote(&mut self, bytes: usize);

    /// True if writes are gathered at this moment, and flushes are put off.
    fn gathers(&self) -> bool {
        false
    }

    /// Notes how many bytes were gathered, and wait for a flush.
    fn holds(&mut self, _bytes: usize) {}
}

/// A connection with its watcher.
pub(super) struct Tapped<S, T> {
    stream: S,
    tap: T,
    /// The gathered bytes.
    held: BytesMut,
}

impl<S: AsyncWrite + Unpin, T: Tap> Tapped<S, T> {
    pub(super) fn new(stream: S, tap: T) -> Self {
        Self { stream, tap, held: BytesMut::new() }
    }

    /// Gathers bytes, perhaps after earlier ones have been written, if there can be room for all of them. Returns how many
    /// they are. Otherwise, nothing is held any more.
    fn poll_gather<'a>(
        &mut self,
        context: &mut Context<'_>,
        slices: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Poll<io::Result<Option<usize>>> {
        let bytes: usize = slices.clone().map(<[u8]>::len).sum();
        let is_gathered = self.tap.gathers() && bytes <= GATHERED_BYTES_MAX;
        if !is_gathered || self.held.len() + bytes > GATHERED_BYTES_MAX {
            ready!(self.poll_held(context))?;
        }
        if !is_gathered {
            return Poll::Ready(Ok(None));
        }
        if self.held.is_empty() {
            self.held.reserve(GATHERED_BYTES_MAX);
        }
        slices.for_each(|slice| self.held.extend_from_slice(slice));
        self.tap.holds(self.held.len());
        Poll::Ready(Ok(Some(bytes)))
    }

    /// Writes the gathered bytes.
    fn poll_held(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.tap.wrote(written);
            self.held.advance(written);
            self.tap.holds(self.held.len());
        }
        // A connection that waits keeps no room for answers.
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.tap.wrote(bytes);
        }
        written
    }
}

impl<S: AsyncRead + Unpin, T: Tap> AsyncRead for Tapped<S, T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.tap.may_read() {
            return Poll::Pending;
        }
        let before = bytes.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, bytes))?;
        self.tap.received(bytes.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, T: Tap> AsyncWrite for Tapped<S, T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(gathered) = ready!(self.poll_gather(context, std::iter::once(bytes)))? {
            return Poll::Ready(Ok(gathered));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(gathered) = ready!(self.poll_gather(context, slices.iter().map(|slice| &**slice)))? {
            return Poll::Ready(Ok(gathered));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tap.gathers() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_held(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
