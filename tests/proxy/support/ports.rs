//! Free loopback ports.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU16, Ordering},
};

use tokio::net::TcpSocket;

/// Below the range that systems take the ports of outgoing connections from, so that no connection takes one at random.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Returns a loopback address without a listener, and only once. Should another program take it nevertheless, the
/// caller tries again with the next when its server cannot bind it.
pub fn free() -> SocketAddr {
    for _ in 0..COUNT {
        let addr = SocketAddr::from((own_host(), FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT));
        if is_free(addr) {
            return addr;
        }
    }
    panic!("no loopback port is free between {FIRST} and {}", FIRST + COUNT);
}

/// True if a server could listen there. The look itself never listens: a child that another thread starts meanwhile
/// holds copies of all sockets until its program begins, and would accept clients without an answer.
pub fn is_free(addr: SocketAddr) -> bool {
    let bind = || -> io::Result<()> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(addr)
    };
    bind().is_ok()
}

/// A loopback host of this process alone. Two runs of the tests that looked for ports of one host would now and then
/// connect to each other's servers.
fn own_host() -> Ipv4Addr {
    // All of 127.0.0.0/8 is loopback, and no process number has more than 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, middle, low)
}
