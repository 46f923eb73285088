//! The changes that routes make to paths on the way to the upstream (`strip_prefix`, `add_prefix`).

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::{HostHeader, Upstream, raw::Text},
    core::{
        http::{
            path_mapping::PathMapping,
            request_target::{KeptInNames, NormalPath, normalize},
        },
        policy::{GuardRules, ProbeAuth},
        route::PathPattern,
    },
};

/// Returns the mapping of a route, and the paths that the upstream receives through it.
pub(super) fn mapping(
    check: &mut Check<'_>,
    keys: RouteLayers<'_>,
    path: &PathPattern,
) -> Option<(PathMapping, PathPattern)> {
    let strip = keys.get(|raw| &raw.strip_prefix);
    let stripped = prefix(check, "strip_prefix", strip)?;
    let added = prefix(check, "add_prefix", keys.get(|raw| &raw.add_prefix))?;
    let Some(rest) = path.without(&stripped) else {
        if let Some(text) = strip {
            let message = format!("the path {path} does not begin with strip_prefix {:?}", text.get_ref());
            let hint = format!("write path = \"{}{path}\", or another strip_prefix", stripped.as_str());
            check.hinted(text.span(), message, hint);
        }
        return None;
    };
    let mapping = PathMapping::new(&stripped, &added);
    let mapping = if path.ignores_case() { mapping.ignoring_case() } else { mapping };
    Some((mapping, rest.under(&added)))
}

/// Checks the prefixes of `[defaults]` alone.
pub(super) fn values(check: &mut Check<'_>, keys: RouteLayers<'_>) {
    let _ = prefix(check, "strip_prefix", keys.get(|raw| &raw.strip_prefix));
    let _ = prefix(check, "add_prefix", keys.get(|raw| &raw.add_prefix));
}

/// Reports signed probes if each server has its own `Host`: the signature covers the host, before a server is chosen.
pub(super) fn refuse_unsignable(check: &mut Check<'_>, keys: RouteLayers<'_>, upstream: &Upstream, guard: &GuardRules) {
    check.refuse(
        keys.get(|raw| &raw.probe_auth),
        guard.probe_auth == ProbeAuth::SigV4 && upstream.host_header == HostHeader::Upstream,
        format!("probes are signed for a host, and upstream {:?} has host_header = \"upstream\"", upstream.name),
        "write the host that the servers answer to: host_header = \"s3.example.com\"",
    );
}

/// Returns a prefix, by default the root; `None` if a problem with it was reported.
fn prefix(check: &mut Check<'_>, key: &str, value: Option<&Text>) -> Option<NormalPath> {
    let root = normalize(b"/", KeptInNames::NOTHING).ok();
    let Some(value) = value.filter(|text| !text.get_ref().is_empty()) else { return root };
    let text = value.get_ref();
    match normalize(text.as_bytes(), KeptInNames::NOTHING) {
        Ok(normal) if normal.as_str() == text && text != "/" && !text.contains(['{', '}']) => Some(normal),
        Ok(normal) if normal.as_str() != "/" && !text.contains(['{', '}']) => {
            let message = format!("{key} is {text:?}, which is not in normal form");
            check.hinted(value.span(), message, format!("write {:?}", normal.as_str()));
            None
        }
        Ok(_) | Err(_) => {
            let message = format!("{key} is {text:?}, which is no path to put before others");
            check.hinted(value.span(), message, "write a path such as \"/api\", or leave it out");
            None
        }
    }
}
