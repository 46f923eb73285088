//! Scanners of the bytes on a connection, which read each byte once.

pub mod chunks;
pub mod head;
pub mod http2_frames;
pub mod received_body;
pub mod request_line;
pub mod sent_body;
