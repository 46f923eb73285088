//! The parts of an exchange that only HTTP/2 (RFC 9113) needs.

use http::{Uri, header, uri::PathAndQuery};
use pingora::{Error, ErrorType, http::RequestHeader};

use super::fields::FieldsOfHead as _;

/// Converts an HTTP/1.1 head to HTTP/2: the target and Host become pseudo-fields (section 8.3.1). The hop-by-hop
/// fields are already gone.
///
/// Fails if the head cannot be written: this implementation of HTTP/2 has no room for octets beyond UTF-8.
pub(super) fn to_http2(head: &mut RequestHeader, is_tls: bool) -> pingora::Result<()> {
    let unwritable = || Error::new(ErrorType::InvalidHTTPHeader);
    if !head.raw_path_is_utf8() {
        return Err(unwritable());
    }
    let target = PathAndQuery::try_from(head.raw_path()).map_err(|_bad| unwritable())?;
    let host = head.headers.get(header::HOST).map(|host| host.as_bytes().to_vec()).ok_or_else(unwritable)?;
    let uri = Uri::builder().scheme(if is_tls { "https" } else { "http" }).authority(host).path_and_query(target);
    head.set_uri(uri.build().map_err(|_bad| unwritable())?);
    head.remove_header(&header::HOST);
    // Frames are the framing of HTTP/2 (section 8.2.2).
    head.remove(&header::TRANSFER_ENCODING);
    Ok(())
}

/// True if an error shows that the server has not acted on the request and will not. Either it refused the stream
/// (section 8.7), or it left before it took the stream (section 6.8).
pub(super) fn is_unprocessed(error: &Error) -> bool {
    error.root_cause().downcast_ref::<h2::Error>().is_some_and(|cause| {
        let refused = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        // The library reports this only for streams after the last one that the server names.
        cause.is_remote() && (refused || cause.is_go_away())
    })
}

#[cfg(test)]
mod tests;
