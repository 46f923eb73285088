//! Connections whose next body is in the chunked coding, on the way to pingora.
//!
//! # Design
//!
//! *How does pingora refuse a body that it would accept?* [`spoil`] replaces what follows the first malformed octet. So
//! pingora ends the body and the connection.

use pingora::protocols::Stream;

use crate::{
    core::{chunks::ChunkScan, request_line::has_field},
    upstream::tapped::{Tap, Tapped, spoil},
};

/// Scans a chunked body that begins in these bytes, after a head of this length.
pub(super) fn watch(stream: Stream, bytes: &mut [u8], head_length: usize) -> Stream {
    let (head, body) = bytes.split_at_mut(head_length);
    // Whatever stands between the name and the colon, a parser may take it for this field.
    if !has_field(head, b"transfer-encoding") {
        return stream;
    }
    let mut tap = ChunkScan::default();
    tap.received(body);
    Box::new(Tapped { stream, tap })
}

/// Returns the connection without the scan, after the body has ended.
pub(super) fn unwatch(stream: Stream) -> Stream {
    Tapped::<ChunkScan>::untap(stream).unwrap_or_else(|unwatched| unwatched)
}

impl Tap for ChunkScan {
    fn received(&mut self, bytes: &mut [u8]) {
        let in_order = self.look(bytes);
        spoil(bytes, in_order);
    }
}
