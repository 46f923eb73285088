//! The header with which a balancer of connections names the client of each (the PROXY protocol, versions 1 and 2).
//!
//! # Design
//!
//! *Why does each connection not show it?* The protocol forbids it: a peer that may send a header may name any client. So
//! the configuration names the balancers, and each of their connections begins with a header.
//!
//! *Why byte by byte in version 1?* The header has no length, and what follows it belongs to the next protocol.

use std::net::SocketAddr;

use ppp::{HeaderResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The beginning of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The version and the command of a balancer that connects for itself.
const V2_LOCAL: u8 = 0x20;
/// The bytes of a header of version 2 before its addresses. The last two are the number of the others.
const V2_BYTES: usize = 16;
/// The most bytes of addresses and additions of version 2. Balancers send less than 100, and with certificates 1 KiB.
const V2_REST_MAX: usize = 4 * 1024;
/// The most bytes of a header of version 1.
const V1_MAX: usize = 107;

/// Why a connection has no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoProxyHeader {
    /// It has ended.
    Gone,
    /// It begins with something else.
    Other,
}

/// Reads the header of a connection, and nothing behind it. Returns the client; none if the balancer connects for
/// itself, as its health checks do.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<SocketAddr>, NoProxyHeader> {
    let mut header = vec![0; SIGNATURE.len()];
    read_exact(stream, &mut header).await?;
    if header == SIGNATURE {
        extend(stream, &mut header, V2_BYTES - SIGNATURE.len()).await?;
        let rest = header.last_chunk::<2>().map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes)));
        if rest > V2_REST_MAX {
            return Err(NoProxyHeader::Other);
        }
        extend(stream, &mut header, rest).await?;
    } else {
        while header.starts_with(b"PROXY ") && !header.ends_with(b"\n") && header.len() < V1_MAX {
            extend(stream, &mut header, 1).await?;
        }
    }
    client(&header)
}

async fn extend(
    stream: &mut (impl AsyncRead + Unpin),
    header: &mut Vec<u8>,
    bytes: usize,
) -> Result<(), NoProxyHeader> {
    let known = header.len();
    header.resize(known + bytes, 0);
    read_exact(stream, header.get_mut(known..).unwrap_or_default()).await
}

async fn read_exact(stream: &mut (impl AsyncRead + Unpin), bytes: &mut [u8]) -> Result<(), NoProxyHeader> {
    stream.read_exact(bytes).await.map(|_| ()).map_err(|_error| NoProxyHeader::Gone)
}

/// Returns the client that a whole header names.
fn client(header: &[u8]) -> Result<Option<SocketAddr>, NoProxyHeader> {
    // A balancer that connects for itself names no addresses, and what stands in their place has no meaning.
    if header.starts_with(SIGNATURE) && header.get(SIGNATURE.len()) == Some(&V2_LOCAL) {
        return Ok(None);
    }
    match HeaderResult::parse(header) {
        HeaderResult::V1(Ok(header)) => Ok(match header.addresses {
            v1::Addresses::Tcp4(told) => Some((told.source_address, told.source_port).into()),
            v1::Addresses::Tcp6(told) => Some((told.source_address, told.source_port).into()),
            v1::Addresses::Unknown => None,
        }),
        HeaderResult::V2(Ok(header)) => Ok(match header.addresses {
            v2::Addresses::IPv4(told) => Some((told.source_address, told.source_port).into()),
            v2::Addresses::IPv6(told) => Some((told.source_address, told.source_port).into()),
            v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
        }),
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => Err(NoProxyHeader::Other),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// The bytes behind each header.
    const NEXT: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    fn version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[0x20 | command, family][..], &length, addresses].concat()
    }

    async fn told(header: &[u8]) -> Result<Option<SocketAddr>, NoProxyHeader> {
        let sent = [header, NEXT].concat();
        let mut stream = sent.as_slice();
        let client = read(&mut stream).await?;
        assert_eq!(stream, NEXT, "nothing behind the header is read");
        Ok(client)
    }

    #[tokio::test]
    async fn a_header_of_either_version_names_the_client() {
        let ipv4 = [&[192, 0, 2, 7, 127, 0, 0, 1][..], &[0x30, 0x39, 0x1f, 0x90]].concat();
        let mut ipv6 = [0; 36];
        (ipv6[0], ipv6[15], ipv6[32], ipv6[33]) = (0x20, 9, 0x30, 0x39);
        // Additions follow the addresses: here one without effect, and one that goes on behind the header.
        let with_addition = [ipv4.as_slice(), &[4, 0, 2, 0, 0], &[4, 0xff, 0xff, 0]].concat();
        let address = ["ffff"; 8].join(":");
        let longest = format!("PROXY UNKNOWN {address} {address} 65535 65535\r\n");
        assert_eq!(longest.len(), V1_MAX);
        for (header, client) in [
            (b"PROXY TCP4 192.0.2.7 127.0.0.1 12345 8080\r\n".to_vec(), Some("192.0.2.7:12345")),
            (b"PROXY TCP6 2000::9 ::1 12345 8080\r\n".to_vec(), Some("[2000::9]:12345")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (longest.as_bytes().to_vec(), None),
            (version_2(1, 0x11, &ipv4), Some("192.0.2.7:12345")),
            (version_2(1, 0x11, &with_addition), Some("192.0.2.7:12345")),
            (version_2(1, 0x21, &ipv6), Some("[2000::9]:12345")),
            (version_2(1, 0x00, &[]), None),
            (version_2(1, 0x31, &[0; 216]), None),
            // The balancer itself asks whether the server is well.
            (version_2(0, 0x00, &[]), None),
            (version_2(0, 0x11, &ipv4), None),
            (version_2(0, 0x11, &[]), None),
            (version_2(0, 0xff, &[1, 2, 3]), None),
        ] {
            let expected = client.map(|client| client.parse().unwrap());
            assert_eq!(told(&header).await, Ok(expected), "{}", header.escape_ascii());
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_whole_header_has_no_client() {
        let endless = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        for header in [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00",
            b"PROXY TCP4 192.0.2.7 127.0.0.1 12345\r\n",
            b"PROXY TCP4 192.0.2.700 127.0.0.1 12345 8080\r\n",
            b"PROXY TCP5 192.0.2.7 127.0.0.1 12345 8080\r\n",
            endless.as_slice(),
            &version_2(1, 0x11, &[192, 0, 2]),
            &version_2(2, 0x11, &[0; 12]),
            &version_2(1, 0x11, &[0; V2_REST_MAX + 1]),
        ] {
            let mut sent = header;
            assert_eq!(read(&mut sent).await, Err(NoProxyHeader::Other), "{}", header.escape_ascii());
        }
        let (text, binary) = (b"PROXY TCP4 192.0.2.7 127.0.0.1 12345 8080\r\n", version_2(1, 0x11, &[0; 12]));
        for header in [text.as_slice(), &binary] {
            for end in 0..header.len() {
                let mut sent = &header[..end];
                assert_eq!(read(&mut sent).await, Err(NoProxyHeader::Gone), "{}", header[..end].escape_ascii());
            }
        }
    }

    /// A header may come in any pieces.
    #[tokio::test]
    async fn a_slow_header_is_read_as_a_fast_one() {
        for header in [&b"PROXY TCP4 192.0.2.7 127.0.0.1 12345 8080\r\n"[..], &version_2(1, 0x11, &[1; 12])] {
            let (mut balancer, mut server) = tokio::io::duplex(1);
            let sending = async {
                balancer.write_all(header).await.unwrap();
                balancer.write_all(NEXT).await.unwrap();
            };
            let reading = async {
                assert!(matches!(read(&mut server).await, Ok(Some(_))), "{}", header.escape_ascii());
                let mut next = [0; NEXT.len()];
                server.read_exact(&mut next).await.unwrap();
                assert_eq!(next, NEXT);
            };
            tokio::join!(sending, reading);
        }
    }
}
