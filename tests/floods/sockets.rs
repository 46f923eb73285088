//! Connections that come from an address of their choice: all of 127.0.0.0/8 is this machine.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use tokio::net::{TcpSocket, TcpStream};

use crate::support::wait::within;

/// The address of the honest client.
pub const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// The address of a flood from one address.
pub const FLOOD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// The addresses of a flood from several addresses.
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

/// Returns this number of connections from the address of floods.
pub async fn connections(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        streams.push(connect_from(FLOOD, to).await.expect("the server accepts"));
    }
    streams
}
