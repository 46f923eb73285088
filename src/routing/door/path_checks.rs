//! The readings of a path that the door refuses, because they could reach another resource than the one that is judged.

use std::sync::Arc;

use crate::{
    config::Route,
    core::{
        http::request_target::{
            AmbiguousTarget, EncodedSlash, KeptInNames, NormalPath, decode_slashes, holds_encoded_slash, normalize,
        },
        refusal::{Code, Refusal},
    },
    routing::table::RoutingTable,
};

/// Refuses a path with another reading by which it could reach a guarded resource. `taken` is the place and the route
/// that it takes in its normal form.
pub(super) fn check_path(
    table: &RoutingTable,
    host: &str,
    (path, normal): (&[u8], &NormalPath),
    (index, route): (usize, &Route),
) -> Result<(), Refusal> {
    // A path in normal form is spelled like the route that it takes.
    let is_normal = path == normal.as_str().as_bytes();
    let spelled = if is_normal { None } else { table.find_raw(host, path).filter(|&other| other != index) };
    check_readings(path, route, spelled, table.routes())?;
    check_decoded(table, host, path, (index, route))
}

/// The refusal of a request whose fields name a path.
pub(super) fn second_path() -> Refusal {
    let detail = "leave out the fields that name another path than the target does: X-Original-URL, X-Rewrite-URL, \
                  Script-Name, X-Script-Name and Path-Info";
    Refusal::new(Code::AmbiguousTarget, detail)
}

/// Refuses a path that has another reading by which it could reach a guarded resource. `spelled` is the other route,
/// which the path takes as spelled.
fn check_readings(path: &[u8], route: &Route, spelled: Option<usize>, routes: &[Arc<Route>]) -> Result<(), Refusal> {
    let other = spelled.and_then(|index| routes.get(index));
    if let Some(other) = other
        && (route.is_protected() || other.is_protected())
    {
        let detail = "the path takes one route as it is spelled and another when it is decoded; send it in normal form";
        return Err(Refusal::new(Code::AmbiguousTarget, detail));
    }
    if route.is_protected() && route.enforced().is_none() {
        return check_kept(path, KeptInNames { encoded_slash: EncodedSlash::Keep, ..route.kept });
    }
    Ok(())
}

/// Refuses a path with a part of a name that the route does not keep.
pub(super) fn check_kept(path: &[u8], kept: KeptInNames) -> Result<(), Refusal> {
    // Also one in a part that a dot segment removes: a server that cuts parameters off never sees the dots.
    let holds_parameter = path.contains(&b';') || path.windows(3).any(|octets| octets.eq_ignore_ascii_case(b"%3b"));
    if !holds_parameter && !holds_encoded_slash(path) {
        return Ok(());
    }
    normalize(path, kept).map(drop).map_err(ambiguous)
}

/// Refuses a path whose encoded slashes could be read as slashes, so that it reaches a guarded resource from a route
/// that is not guarded. `taken` is the place and the route that it takes as it is.
fn check_decoded(
    table: &RoutingTable,
    host: &str,
    path: &[u8],
    (index, route): (usize, &Route),
) -> Result<(), Refusal> {
    let is_open = route.is_protected() && route.enforced().is_none();
    if !is_open || route.kept.encoded_slash == EncodedSlash::Keep || !holds_encoded_slash(path) {
        return Ok(());
    }
    let decoded = decode_slashes(path);
    let normal = normalize(&decoded, KeptInNames::ALL).map_err(ambiguous)?;
    let is_same = table.find(host, &normal).is_some_and(|found| found.index == index)
        && table.find_raw(host, &decoded) == Some(index)
        && route.mapping.agrees(&decoded, &normal);
    if is_same { Ok(()) } else { Err(ambiguous(AmbiguousTarget::EncodedSlash)) }
}

pub(super) fn ambiguous(what: AmbiguousTarget) -> Refusal {
    Refusal::new(Code::AmbiguousTarget, what.to_string())
}

/// The refusal of a path whose beginning cannot be replaced, or that would then lead elsewhere.
pub(super) fn not_below(route: &Route) -> Refusal {
    let strip = route.mapping.strip();
    let detail =
        format!("send the path in normal form{}{strip}", if strip.is_empty() { "" } else { ", beginning with " });
    Refusal::new(Code::AmbiguousTarget, detail)
}
