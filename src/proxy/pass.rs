//! The changes of the unguarded path in the two heads of an exchange.
//!
//! End-to-end fields pass unchanged (RFC 9110 section 7.6), and `Via` is appended in both directions (section 7.6.3).
//! A client's `Fencing-Token` is removed: upstreams trust that field, and only the proxy may write it.

use http::{HeaderName, header};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
};

use super::{context::Context, handshake};
use crate::{
    config::Route,
    core::http::{
        fields::{is_for_guard, is_ours},
        request_target::split_authority,
    },
    downstream::session::ClientSession,
    upstream::{
        fields::{HeadError, end_hop, forwarded_head, remove_own},
        references::rewrite_references,
        via::via,
    },
};

/// Returns the head of a request as the upstream receives it.
pub(super) fn request_to_upstream(session: &ClientSession, context: &Context) -> Result<Box<RequestHeader>, HeadError> {
    let has_content = !session.is_empty();
    let is_judged = context.entry.route.as_ref().is_some_and(|route| route.guard.is_some());
    let is_unwanted = |name: &HeaderName| {
        is_ours(name)
            || is_judged && is_for_guard(name) && name != header::EXPECT
            || context.handshake.is_some() && handshake::is_condition(name)
    };
    let may_send_trailers = context.entry.route.as_ref().is_some_and(|route| route.upstream.http2);
    let mut head = forwarded_head(session.request(), (has_content, may_send_trailers), is_unwanted)?;
    if let Some(handshake) = &context.handshake {
        handshake::add_fence(handshake, &mut head)?;
    }
    if let Some(route) = context.entry.route.as_ref().filter(|route| !route.mapping.is_identity()) {
        map_request(&mut head, route)?;
    }
    Ok(head)
}

/// Gives the target, and the `Destination` of a COPY or MOVE (RFC 4918 section 10.3), the prefix that the upstream
/// uses.
fn map_request(request: &mut RequestHeader, route: &Route) -> pingora::Result<()> {
    let cannot = || Error::explain(ErrorType::InvalidHTTPHeader, "a target without the prefix of its route");
    let target = route.mapping.to_upstream(request.raw_path()).ok_or_else(cannot)?;
    request.set_raw_path(&target)?;
    let Some(destination) = request.headers.get("destination").and_then(|value| str::from_utf8(value.as_bytes()).ok())
    else {
        return Ok(());
    };
    if let Some((beginning, _, path)) = split_authority(destination)
        && let Some(path) = route.mapping.to_upstream(path.as_bytes())
    {
        let mapped = [beginning.as_bytes(), &path].concat();
        request.insert_header("Destination", mapped)?;
    }
    Ok(())
}

/// Makes the changes that the client sees in a response.
pub(super) fn response_from_upstream(
    client: &RequestHeader,
    context: &Context,
    response: &mut ResponseHeader,
) -> pingora::Result<()> {
    if context.entry.route.as_ref().is_some_and(|route| route.enforced().is_some()) {
        remove_own(response);
    }
    if !response.status.is_informational() {
        end_hop(response);
        if let Some(route) = context.entry.route.as_ref().filter(|route| route.renames_resources()) {
            rewrite_references(response, route, client)?;
        }
        response.append_header("Via", via(response.version))?;
    }
    Ok(())
}
