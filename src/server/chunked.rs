//! Connections whose next body is in the chunked coding, on the way to pingora.
//!
//! # Design
//!
//! *How does pingora refuse a body that it would accept?* From the first malformed octet on, pingora reads carriage
//! returns, and no chunked body has two of them at its framing. So pingora ends the body and the connection, as after
//! any other body that it cannot read.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use async_trait::async_trait;
use bytes::BytesMut;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::SslDigest,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::core::{
    chunks::ChunkScan,
    head::{HeadScan, HeadState},
};

/// The field that names a transfer coding.
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";

/// The octet that pingora reads in place of malformed ones.
const SPOILED: u8 = b'\r';

/// A connection on which a chunked body comes next.
#[derive(Debug)]
struct Chunked {
    stream: Stream,
    scan: ChunkScan,
}

/// Scans a chunked body that begins in these bytes, after their head.
pub(super) fn watch(stream: Stream, bytes: &mut BytesMut) -> Stream {
    let mut head = HeadScan::default();
    if head.look(bytes) != HeadState::Complete {
        return stream;
    }
    let (head, body) = bytes.split_at_mut(head.end());
    let is_coded = head.split(|octet| *octet == b'\n').any(|line| {
        line.get(..TRANSFER_ENCODING.len()).is_some_and(|name| name.eq_ignore_ascii_case(TRANSFER_ENCODING))
    });
    if !is_coded {
        return stream;
    }
    let mut scan = ChunkScan::default();
    spoil(&mut scan, body);
    Box::new(Chunked { stream, scan })
}

/// Returns the connection without the scan, after the body has ended.
pub(super) fn unwatch(stream: Stream) -> Stream {
    if !stream.as_any().is::<Chunked>() {
        return stream;
    }
    match stream.into_any().downcast::<Chunked>() {
        Ok(chunked) => chunked.stream,
        Err(_other) => unreachable!("the type was checked above"),
    }
}

fn spoil(scan: &mut ChunkScan, bytes: &mut [u8]) {
    let in_order = scan.look(bytes);
    bytes.iter_mut().skip(in_order).for_each(|octet| *octet = SPOILED);
}

impl AsyncRead for Chunked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        spoil(&mut self.scan, buffer.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Chunked {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Chunked {
    async fn shutdown(&mut self) {
        self.stream.shutdown().await;
    }
}

impl UniqueID for Chunked {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Chunked {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for Chunked {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> std::time::Duration {
        self.stream.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> std::time::Duration {
        self.stream.get_write_pending_time()
    }
}

impl GetProxyDigest for Chunked {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for Chunked {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

#[async_trait]
impl Peek for Chunked {
    async fn try_peek(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        self.stream.try_peek(buffer).await
    }
}
