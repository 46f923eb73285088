//! Upstreams that are this proxy itself. A request would go round until its head is too large.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::check::Check;
use crate::config::{Listen, raw::Text, upstream::UpstreamKeys, written::Written};

/// Reports each server that is an address on which the proxy itself listens.
pub(super) fn refuse(check: &mut Check<'_>, upstreams: &BTreeMap<Text, Written<UpstreamKeys>>, own: &[Listen]) {
    for (name, table) in upstreams {
        for text in table.get_ref().servers.iter().flat_map(Written::get_ref) {
            if own.iter().any(|listen| is_reached(text.get_ref(), listen)) {
                let message =
                    format!("upstream {:?} is this proxy itself: it listens on {:?}", name.get_ref(), text.get_ref());
                check.hinted(text.span(), message, "write the address of the backend, or listen on another one");
            }
        }
    }
}

/// True if a connection to a server arrives at a listener. A name other than `localhost` is not resolved: it may mean
/// another machine where the file is used.
fn is_reached(server: &str, listen: &Listen) -> bool {
    let server = server.split_once("://").map_or(server, |(_, place)| place);
    let own = match listen {
        Listen::Unix(path) => return server.strip_prefix("unix:").is_some_and(|server| path.as_os_str() == server),
        Listen::Tcp(own) | Listen::Tls(own) => own,
    };
    let (Some((server, port)), Some((own, own_port))) = (server.rsplit_once(':'), own.rsplit_once(':')) else {
        return false;
    };
    let are_one = |server: &IpAddr| addresses(own).iter().any(|own| takes(*own, *server));
    port == own_port && (server.eq_ignore_ascii_case(own) || addresses(server).iter().any(are_one))
}

/// The addresses that a host is by its text alone.
fn addresses(host: &str) -> Vec<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    host.trim_matches(['[', ']']).parse().into_iter().collect()
}

/// True if a listener at one address takes a connection to another. One to `0.0.0.0` goes to this machine.
fn takes(own: IpAddr, server: IpAddr) -> bool {
    let is_of_own_family = own.is_ipv4() == server.is_ipv4();
    let localhost: IpAddr = if server.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let server = if server.is_unspecified() { localhost } else { server };
    own == server || own.is_unspecified() && server.is_loopback() && (is_of_own_family || own.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_the_proxy_if_its_address_is_one_of_its_own() {
        let tcp = |address: &str| Listen::Tcp(address.to_owned());
        for (server, listen, expected) in [
            ("127.0.0.1:80", tcp("127.0.0.1:80"), true),
            ("http://127.0.0.1:80", tcp("127.0.0.1:80"), true),
            ("127.0.0.1:80", Listen::Tls("127.0.0.1:80".to_owned()), true),
            ("localhost:80", tcp("127.0.0.1:80"), true),
            ("[::1]:80", tcp("localhost:80"), true),
            ("127.0.0.9:80", tcp("0.0.0.0:80"), true),
            ("127.0.0.1:80", tcp("[::]:80"), true),
            ("0.0.0.0:80", tcp("127.0.0.1:80"), true),
            ("Proxy.example:80", tcp("proxy.example:80"), true),
            ("unix:/run/a", Listen::Unix("/run/a".into()), true),
            ("127.0.0.1:81", tcp("127.0.0.1:80"), false),
            ("127.0.0.2:80", tcp("127.0.0.1:80"), false),
            ("[::1]:80", tcp("127.0.0.1:80"), false),
            ("[::1]:80", tcp("0.0.0.0:80"), false),
            ("192.0.2.1:80", tcp("0.0.0.0:80"), false),
            ("app:80", tcp("0.0.0.0:80"), false),
            ("unix:/run/b", Listen::Unix("/run/a".into()), false),
            ("unix:/run/a", tcp("127.0.0.1:80"), false),
        ] {
            assert_eq!(is_reached(server, &listen), expected, "{server} {listen:?}");
        }
    }
}
