//! The meaning of a failure of pingora's proxying to the client.

use std::time::Duration;

use http::Method;
use pingora::{Error, ErrorSource, ErrorType};

use super::pass::OVERLOADED;
use crate::core::refusal::{Code, Refusal};

/// When a client may retry a busy server.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Returns the refusal that answers a failed exchange on an unguarded route, or `None` if the client itself is gone.
///
/// `connected` means that a connection to the upstream was made, so that a write may have reached it.
pub(super) fn refusal(error: &Error, method: &Method, connected: bool) -> Option<Refusal> {
    let refusal = match error.esource() {
        ErrorSource::Downstream => return downstream(error.etype()),
        ErrorSource::Upstream | ErrorSource::Internal | ErrorSource::Unset => upstream(error.etype()),
    };
    Some(if connected && !method.is_safe() { refusal.in_doubt() } else { refusal })
}

/// Whether the error is a timeout, rather than a failure.
pub(super) fn is_timeout(error: &Error) -> bool {
    matches!(error.etype(), ErrorType::ReadTimedout | ErrorType::WriteTimedout | ErrorType::ConnectTimedout)
}

fn downstream(kind: &ErrorType) -> Option<Refusal> {
    match kind {
        ErrorType::WriteError | ErrorType::WriteTimedout | ErrorType::ReadError | ErrorType::ConnectionClosed => None,
        ErrorType::ReadTimedout => {
            Some(Refusal::new(Code::BodyTimeout, "send the whole body without pausing for a minute"))
        }
        _ => Some(malformed_request()),
    }
}

/// Returns the refusal of a request that the parser does not take.
pub(crate) fn malformed_request() -> Refusal {
    Refusal::new(Code::MalformedRequest, "send a request that follows RFC 9110 and RFC 9112")
}

fn upstream(kind: &ErrorType) -> Refusal {
    match kind {
        kind if *kind == OVERLOADED => {
            Refusal::new(Code::Overloaded, "the upstream is at its connection limit; nothing was sent. Try again.")
                .retry_after(RETRY_SOON)
        }
        ErrorType::ConnectTimedout => {
            Refusal::new(Code::UpstreamConnectTimeout, "no server could be reached in time; try again later")
        }
        ErrorType::ConnectRefused | ErrorType::ConnectNoRoute | ErrorType::ConnectError | ErrorType::SocketError => {
            Refusal::new(Code::UpstreamUnreachable, "no server could be reached; try again later")
        }
        ErrorType::TLSHandshakeFailure => Refusal::new(
            Code::UpstreamInsecure,
            "the TLS handshake with the server failed, and nothing was sent: the log of this proxy has the reason",
        ),
        ErrorType::ReadTimedout | ErrorType::WriteTimedout => {
            Refusal::new(Code::UpstreamTimeout, "the server did not answer in time; read before you write again")
        }
        _ => Refusal::new(Code::UpstreamFailed, "the server gave no usable answer; read before you write again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: ErrorType, source: ErrorSource) -> Error {
        let mut error = *Error::new(kind);
        error.esource = source;
        error
    }

    #[test]
    fn a_refused_connection_is_no_doubt() {
        let error = failed(ErrorType::ConnectRefused, ErrorSource::Upstream);
        let refusal = refusal(&error, &Method::PUT, false).expect("a refusal");
        assert_eq!((refusal.code, refusal.in_doubt), (Code::UpstreamUnreachable, false));
    }

    #[test]
    fn a_write_that_got_no_answer_is_a_doubt() {
        let error = failed(ErrorType::ReadTimedout, ErrorSource::Upstream);
        let refusal = refusal(&error, &Method::PUT, true).expect("a refusal");
        assert_eq!((refusal.code, refusal.in_doubt), (Code::UpstreamTimeout, true));
    }

    #[test]
    fn a_read_that_got_no_answer_is_no_doubt() {
        let error = failed(ErrorType::ConnectionClosed, ErrorSource::Upstream);
        let refusal = refusal(&error, &Method::GET, true).expect("a refusal");
        assert_eq!((refusal.code, refusal.in_doubt), (Code::UpstreamFailed, false));
    }

    #[test]
    fn a_client_that_is_gone_is_not_answered() {
        let error = failed(ErrorType::ConnectionClosed, ErrorSource::Downstream);
        assert_eq!(refusal(&error, &Method::PUT, true), None);
    }
}
