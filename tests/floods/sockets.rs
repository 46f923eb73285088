//! Connections that come from an address of their choice: all of 127.0.0.0/8 is this machine.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use tokio::net::{TcpSocket, TcpStream};

use crate::support::wait::within;

/// Where the honest client comes from.
pub const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Where a flood comes from that has one address.
pub const FLOOD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// Where a flood comes from that has several addresses.
pub const fn flood(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 1, number))
}

/// A connection from this address.
pub async fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    let stream = within("a connection", socket.connect(to)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// So many connections from the address of floods.
pub async fn connections(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        streams.push(connect_from(FLOOD, to).await.expect("the server accepts"));
    }
    streams
}
