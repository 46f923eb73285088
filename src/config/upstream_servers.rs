//! The servers of an upstream, and the weight of each.

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

use http::uri::Authority;

use super::{
    check::{Check, Limit},
    listen::host_and_port,
    table::ValueKind,
    written::{Number, Text, Texts},
};

/// The beginning of a server that is reached over TLS.
pub(super) const SCHEME: &str = "https://";

/// The servers of an upstream. Its terms are the name of the upstream, and the position of its table.
pub(super) struct Servers;

impl ValueKind<Vec<String>> for Servers {
    type Written = Option<Texts>;
    type Terms = (String, Range<usize>);

    fn read(check: &mut Check<'_>, _key: &str, list: Option<&Texts>, (name, place): Self::Terms) -> Vec<String> {
        const HINT: &str = r#"write servers = ["127.0.0.1:9000"]"#;
        let Some(list) = list else {
            if !check.written.unreadable(&["upstreams", &name, "servers"]) {
                check.hinted(place, format!("upstream {name:?} has no servers"), HINT);
            }
            return Vec::new();
        };
        if list.get_ref().is_empty() {
            check.hinted(list.span(), format!("upstream {name:?} has no server in its list"), HINT);
        }
        let secure = list.get_ref().iter().filter(|text| is_secure(text)).count();
        if (1..list.get_ref().len()).contains(&secure) {
            check.hinted(list.span(), "some servers use https and some do not", "write all of them as https://");
        }
        check.each(list, server)
    }
}

/// True if a server is reached over TLS.
pub(super) fn is_secure(server: &Text) -> bool {
    server.get_ref().starts_with(SCHEME)
}

fn server(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let address = text.get_ref().as_str();
    if let Some(path) = address.strip_prefix("unix:") {
        if !path.starts_with('/') {
            let hint = r#"write "unix:/run/backend.sock""#;
            check.hinted(text.span(), format!("server {address:?} has no absolute path"), hint);
        }
        return Some(address.to_owned());
    }
    let address = &address_of(address);
    match host_and_port(address) {
        Ok(0) => check.problem(text.span(), format!("server {address:?} has port 0, on which no server can listen")),
        Ok(_) => return Some(address.to_ascii_lowercase()),
        Err(what) => {
            let bare = address.trim_start_matches("http://").split('/').next().unwrap_or_default();
            let example = if bare.is_empty() || bare.contains([':', '@']) {
                "127.0.0.1:9000".to_owned()
            } else {
                format!("{bare}:80")
            };
            check.hinted(
                text.span(),
                format!("server {address:?} {what}"),
                format!("write host:port, for example {example:?}"),
            );
        }
    }
    None
}

/// Returns the `host:port` of a server; the default port of `https://` is 443.
pub(super) fn address_of(server: &str) -> String {
    let Some(address) = server.strip_prefix(SCHEME) else { return server.to_owned() };
    let address = address.strip_suffix('/').unwrap_or(address);
    let has_port = address.parse::<Authority>().is_ok_and(|authority| authority.port().is_some());
    if has_port { address.to_owned() } else { format!("{address}:443") }
}

/// The weight of each server. Its term are the servers.
pub(super) struct Weights;

impl ValueKind<BTreeMap<String, u32>> for Weights {
    type Written = BTreeMap<Text, Number>;
    type Terms = (Vec<String>, RangeInclusive<usize>);

    fn read(
        check: &mut Check<'_>,
        key: &str,
        written: &Self::Written,
        (servers, range): Self::Terms,
    ) -> BTreeMap<String, u32> {
        let limit = Limit { key, default: 1, min: *range.start(), max: *range.end() };
        let mut weights: BTreeMap<String, u32> = servers.iter().map(|server| (server.clone(), 1)).collect();
        for (server, weight) in written {
            if let Some(known) = servers.iter().find(|known| known.eq_ignore_ascii_case(server.get_ref())) {
                let weight = u32::try_from(check.count(Some(weight), limit)).unwrap_or(1);
                weights.insert(known.clone(), weight);
            } else if !servers.is_empty() {
                // A server that could not be read has been reported.
                let message = format!("{key} names {:?}, which is not one of the servers", server.get_ref());
                check.hinted(server.span(), message, format!("the servers are {}", servers.join(", ")));
            }
        }
        weights
    }
}
