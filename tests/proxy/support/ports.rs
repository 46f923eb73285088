//! Free loopback ports.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range that systems take the ports of outgoing connections from, so that nobody takes one by chance.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A loopback address that nobody listens on, and that is given once. Should another program take it nevertheless, the
/// caller tries again with the next when its server cannot bind it.
pub fn free() -> SocketAddr {
    for _ in 0..COUNT {
        let addr = SocketAddr::from((own_host(), FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT));
        if TcpListener::bind(addr).is_ok() {
            return addr;
        }
    }
    panic!("no loopback port is free between {FIRST} and {}", FIRST + COUNT);
}

/// A loopback host of this process alone. Two runs of the tests that looked for ports of one host would now and then
/// connect to each other's servers, or to the listener of the look itself.
fn own_host() -> Ipv4Addr {
    // All of 127.0.0.0/8 is loopback, and no process number has more than 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, middle, low)
}
