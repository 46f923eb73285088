//! Reading from and writing to a connection of HTTP/1.1, with a client or a server on its other side.

use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Poll, ready},
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

/// The number of bytes that a reader takes at once if it may wait for long.
pub(crate) const AHEAD_BYTES_MAX: usize = 4 * 1024;
/// The longest piece of content that is copied behind what precedes it.
const JOINED_BYTES: usize = 16 * 1024;

/// Reads what has arrived on a connection. A connection that waits holds no memory for it.
pub(crate) async fn read_ahead(stream: &mut (impl AsyncRead + Unpin), ahead: &mut BytesMut) -> io::Result<usize> {
    poll_fn(|context| {
        let mut room = [MaybeUninit::uninit(); AHEAD_BYTES_MAX];
        let mut piece = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut piece))?;
        ahead.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().len()))
    })
    .await
}

/// Writes a piece of content with what stands before it and after it. A short one is a single write.
pub(crate) async fn write_piece(
    stream: &mut (impl AsyncWrite + Unpin),
    mut before: BytesMut,
    piece: Bytes,
    after: &'static [u8],
) -> io::Result<()> {
    if piece.len() <= JOINED_BYTES {
        before.put_slice(&piece);
        before.put_slice(after);
        stream.write_all(&before).await?;
    } else {
        stream.write_all_buf(&mut before.chain(piece).chain(after)).await?;
    }
    stream.flush().await
}
