//! Whose requests count together where clients are told apart by their addresses.

use std::net::IpAddr;

/// What one client, or a few behind one address, is known by.
///
/// Of an IPv6 address that is its first half: whoever has one address of such a network can take any other of it, as often
/// as it likes (RFC 6177, RFC 8981).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientAddress {
    /// An address of IPv4.
    V4([u8; 4]),
    /// The first 64 bits of one of IPv6.
    V6([u8; 8]),
    /// None: all who come over a unix socket, unless a trusted proxy tells them apart.
    Local,
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
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"), "it is the same, seen by a socket for both");
        assert_ne!(ClientAddress::from(None), of("0.0.0.0"));
    }
}
