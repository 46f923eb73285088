//! The `[server]` table.

use std::{path::PathBuf, thread};

use super::{
    super::{Listen, Server, limits, raw, raw::Text, units::show_size, written::Written},
    balancing,
    check::Check,
    tls,
    upstreams::host_and_port,
};

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";
const DEFAULT_SPOOL_DIR: &str = "/var/tmp";

pub(super) fn server(check: &mut Check<'_>, raw: &raw::Server) -> Server {
    let server = Server {
        listen: listeners(check, raw),
        threads: match check.count(raw.threads.as_ref(), limits::THREADS) {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        },
        max_body_memory_bytes: check.memory(raw.max_body_memory.as_ref(), limits::MAX_BODY_MEMORY),
        max_body_memory_total_bytes: check.memory(raw.max_body_memory_total.as_ref(), limits::MAX_BODY_MEMORY_TOTAL),
        max_body_size_bytes: check.bytes(raw.max_body_size.as_ref(), limits::MAX_BODY_SIZE),
        max_spool_size_bytes: check.bytes(raw.max_spool_size.as_ref(), limits::MAX_SPOOL_SIZE),
        body_timeout: check.duration(raw.body_timeout.as_ref(), limits::BODY_TIMEOUT),
        spool_dir: spool_dir(check, raw.spool_dir.as_ref()),
        max_staged_uploads: check.count(raw.max_staged_uploads.as_ref(), limits::MAX_STAGED_UPLOADS),
        max_staged_blocks: check.count(raw.max_staged_blocks.as_ref(), limits::MAX_STAGED_BLOCKS),
        staged_block_ttl: check.duration(raw.staged_block_ttl.as_ref(), limits::STAGED_BLOCK_TTL),
        max_target_bytes: check.memory(raw.max_target_size.as_ref(), limits::MAX_TARGET_SIZE),
        max_claim_waiters: check.count(raw.max_claim_waiters.as_ref(), limits::MAX_CLAIM_WAITERS),
        trusted_proxies: balancing::trusted_proxies(check, raw.trusted_proxies.as_ref()),
        underscores: check.word("underscores", raw.underscores.as_ref()).unwrap_or_default(),
        keepalive_timeout: check.duration(raw.keepalive_timeout.as_ref(), limits::KEEPALIVE_TIMEOUT),
        header_timeout: check.duration(raw.header_timeout.as_ref(), limits::HEADER_TIMEOUT),
        max_header_bytes: check.memory(raw.max_header_size.as_ref(), limits::MAX_HEADER_SIZE),
        max_header_memory_bytes: check.memory(raw.max_header_memory_total.as_ref(), limits::MAX_HEADER_MEMORY_TOTAL),
        max_connections: check.count(raw.max_connections.as_ref(), limits::CLIENT_CONNECTIONS),
        max_connections_per_client: check
            .count(raw.max_connections_per_client.as_ref(), limits::CONNECTIONS_PER_CLIENT),
        shutdown_timeout: check.duration(raw.shutdown_timeout.as_ref(), limits::SHUTDOWN_TIMEOUT),
        control_socket: raw
            .control_socket
            .as_ref()
            .map(|value| check.absolute_path("control_socket", value, r#"write "/run/ifmatch/control.sock""#)),
        watch: raw.watch.as_ref().is_some_and(|flag| *flag.get_ref()),
        tls: tls::server(check, &raw.tls),
    };
    tls::refuse_missing(check, raw, &server);
    totals(check, raw, &server);
    server
}

/// Reports a total that is below the limit for one request: every request of that size would be refused.
fn totals(check: &mut Check<'_>, raw: &raw::Server, server: &Server) {
    if server.max_body_memory_bytes > server.max_body_memory_total_bytes
        && let Some(span) = raw.max_body_memory.as_ref().or(raw.max_body_memory_total.as_ref()).map(Written::span)
    {
        let one = show_size(server.max_body_memory_bytes as u64);
        let all = show_size(server.max_body_memory_total_bytes as u64);
        check.problem(
            span,
            format!("max_body_memory is {one} for one request, and max_body_memory_total {all} for all"),
        );
    }
    if server.max_body_size_bytes > server.max_spool_size_bytes
        && let Some(span) = raw.max_body_size.as_ref().or(raw.max_spool_size.as_ref()).map(Written::span)
    {
        let (one, all) = (show_size(server.max_body_size_bytes), show_size(server.max_spool_size_bytes));
        check.problem(span, format!("max_body_size is {one} for one request, and max_spool_size {all} for all"));
    }
}

fn listeners(check: &mut Check<'_>, raw: &raw::Server) -> Vec<Listen> {
    let Some(list) = &raw.listen else { return vec![Listen::Tcp(DEFAULT_LISTEN.to_owned())] };
    if list.get_ref().is_empty() {
        check.hinted(list.span(), "listen is empty", format!("leave it out for {DEFAULT_LISTEN:?}"));
    }
    check.each(list, listener)
}

/// Reads one listening address.
pub(super) fn listener(check: &mut Check<'_>, text: &Text) -> Option<Listen> {
    const HINT: &str =
        r#"write "127.0.0.1:8080", "0.0.0.0:80", "[::]:80", "tls:0.0.0.0:443" or "unix:/run/ifmatch.sock""#;
    let address = text.get_ref();
    if let Some(path) = address.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            check.hinted(text.span(), format!("listen address {address:?} has no absolute path"), HINT);
        }
        return Some(Listen::Unix(path));
    }
    let over_tls = address.strip_prefix("tls:");
    match host_and_port(over_tls.unwrap_or(address)) {
        Ok(_) => Some(over_tls.map_or_else(
            || Listen::Tcp(address.to_ascii_lowercase()),
            |address| Listen::Tls(address.to_ascii_lowercase()),
        )),
        Err(what) => {
            check.hinted(text.span(), format!("listen address {address:?} {what}"), HINT);
            None
        }
    }
}

fn spool_dir(check: &mut Check<'_>, value: Option<&Text>) -> PathBuf {
    let Some(value) = value else { return PathBuf::from(DEFAULT_SPOOL_DIR) };
    check.absolute_path("spool_dir", value, format!("write {DEFAULT_SPOOL_DIR:?}, or another directory on a disk"))
}
