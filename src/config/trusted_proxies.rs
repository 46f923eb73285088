//! The proxies in front of this one.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{
    check::Check,
    table::{InWords, ValueKind},
    written::Texts,
};

/// The word for all peers that connect over a unix socket.
const UNIX: &str = "unix";

/// The proxies in front of this one that it trusts (`trusted_proxies`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// The networks of the trusted proxies.
    pub networks: Vec<IpNet>,
    /// True if peers that connect over a unix socket are trusted.
    pub over_unix: bool,
}

impl TrustedProxies {
    /// Returns whether a peer is trusted; a peer without an address came over a unix socket.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.over_unix, |address| self.networks.iter().any(|network| network.contains(&address)))
    }
}

/// Networks, addresses, and the word for peers over a unix socket.
pub(super) struct Peers;

impl ValueKind<TrustedProxies> for Peers {
    type Written = Option<Texts>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Texts>, (): ()) -> TrustedProxies {
        const HINT: &str = r#"write "10.0.0.0/8", "192.0.2.1", "2001:db8::/32" or "unix""#;
        let Some(value) = written else { return TrustedProxies::default() };
        let networks = check.each(value, |check, text| {
            let written = text.get_ref().as_str();
            if written == UNIX {
                return None;
            }
            let network = written.parse::<IpNet>().or_else(|_| written.parse::<IpAddr>().map(IpNet::from));
            if network.is_err() {
                check.hinted(text.span(), format!("{key}: {written:?} is not a network"), HINT);
            }
            let network = network.ok();
            if network.is_some_and(|network| network.prefix_len() == 0) {
                let message = format!("{key} has {written:?}: every client can say where it comes from");
                check.warn(text.span(), message, "write the networks of the proxies in front of this one");
            }
            network
        });
        TrustedProxies { networks, over_unix: value.get_ref().iter().any(|text| text.get_ref() == UNIX) }
    }
}

impl InWords for TrustedProxies {
    fn shown(&self) -> Value {
        let networks = self.networks.iter().map(ToString::to_string);
        networks.chain(self.over_unix.then(|| UNIX.to_owned())).collect()
    }
}
