//! The rules over several keys of the `[server]` table.

use super::{
    super::{Server, server::ServerKeys, units::show_size, written::Written},
    check::Check,
    tls,
};

/// Reports keys that do not go together.
pub(super) fn rules(check: &mut Check<'_>, keys: &ServerKeys, server: &Server) {
    tls::server(check, &keys.tls, &server.tls);
    tls::refuse_missing(check, keys, server);
    totals(check, keys, server);
}

/// Reports a total that is below the limit for one request: every request of that size would be refused.
fn totals(check: &mut Check<'_>, keys: &ServerKeys, server: &Server) {
    if server.max_body_memory_bytes > server.max_body_memory_total_bytes
        && let Some(span) =
            keys.max_body_memory_bytes.as_ref().or(keys.max_body_memory_total_bytes.as_ref()).map(Written::span)
    {
        let one = show_size(server.max_body_memory_bytes as u64);
        let all = show_size(server.max_body_memory_total_bytes as u64);
        check.problem(
            span,
            format!("max_body_memory is {one} for one request, and max_body_memory_total {all} for all"),
        );
    }
    if server.max_body_size_bytes > server.max_spool_size_bytes
        && let Some(span) = keys.max_body_size_bytes.as_ref().or(keys.max_spool_size_bytes.as_ref()).map(Written::span)
    {
        let (one, all) = (show_size(server.max_body_size_bytes), show_size(server.max_spool_size_bytes));
        check.problem(span, format!("max_body_size is {one} for one request, and max_spool_size {all} for all"));
    }
}
