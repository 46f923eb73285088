//! What an exchange over HTTP/2 (RFC 9113) has that one over HTTP/1.1 has not.

use http::{Uri, header, uri::PathAndQuery};
use pingora::{Error, ErrorType, http::RequestHeader};

/// Gives a head for HTTP/1.1 the form of HTTP/2: the target and Host become pseudo-fields (section 8.3.1). The fields
/// that end at a hop are gone already.
///
/// The error says that the head cannot be written: HTTP/2 as it is implemented here has no room for octets beyond UTF-8.
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
    Ok(())
}

/// Whether an error says that the server has not acted on the request, and will not: it refused the stream (section 8.7),
/// or it left before it took the stream (section 6.8).
pub(super) fn is_unprocessed(error: &Error) -> bool {
    error.root_cause().downcast_ref::<h2::Error>().is_some_and(|cause| {
        let refused = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        // The library says so only of streams after the last one that the server names.
        cause.is_remote() && (refused || cause.is_go_away())
    })
}

#[cfg(test)]
mod tests;
