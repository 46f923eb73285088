//! The key by which the proxy counts the requests of one client, if it distinguishes clients by their addresses.

use std::{
    hash::{Hash, Hasher},
    net::IpAddr,
};

/// The identity of one client, or of the few clients behind one address.
///
/// For IPv6 this is the first half of the address. A client with one address of a network can take any other, as often
/// as it likes (RFC 6177, RFC 8981).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The first 64 bits of an IPv6 address.
    V6([u8; 8]),
    /// No address: all clients that connect over a Unix socket, unless a trusted proxy distinguishes them.
    Local,
}

impl ClientAddress {
    /// Returns the address, or the first one of the network; `None` over a Unix socket.
    pub fn first_address(self) -> Option<IpAddr> {
        match self {
            Self::V4(octets) => Some(IpAddr::from(octets)),
            Self::V6(network) => {
                Some(IpAddr::from(u128::from(u64::from_be_bytes(network)).rotate_left(64).to_be_bytes()))
            }
            Self::Local => None,
        }
    }
}

impl Hash for ClientAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One number is hashed in a third of the time of a variant with octets, and each lease needs it several times.
        state.write_u64(match *self {
            Self::V4(address) => u64::from(u32::from_be_bytes(address)),
            Self::V6(network) => u64::from_be_bytes(network),
            Self::Local => u64::MAX,
        });
    }
}

impl From<Option<IpAddr>> for ClientAddress {
    fn from(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Local,
            Some(IpAddr::V4(address)) => Self::V4(address.octets()),
            Some(IpAddr::V6(address)) => {
                let network = address.octets().first_chunk().copied().unwrap_or_default();
                Self::V6(network)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ClientAddress {
        ClientAddress::from(Some(text.parse::<IpAddr>().expect("an address")))
    }

    #[test]
    fn an_address_counts_by_itself_and_a_network_of_ipv6_as_one() {
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"), "a dual-stack socket shows the same address");
        assert_ne!(ClientAddress::from(None), of("0.0.0.0"));
        for (text, first) in [("192.0.2.1", "192.0.2.1"), ("2001:db8:0:1::2", "2001:db8:0:1::")] {
            assert_eq!(of(text).first_address(), Some(first.parse::<IpAddr>().expect("an address")));
        }
        assert_eq!(ClientAddress::Local.first_address(), None);
    }
}
