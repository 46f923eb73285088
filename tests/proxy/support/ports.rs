//! Free loopback ports.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range that systems take the ports of outgoing connections from, so that nobody takes one by chance.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A loopback address that nobody listens on. Never the same one twice in a process; another process may still take
/// it, so the caller tries again with the next when its server cannot bind it.
pub fn free() -> SocketAddr {
    let start = u16::try_from(std::process::id() * 131 % u32::from(COUNT)).expect("smaller than COUNT");
    for _ in 0..COUNT {
        let offset = (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset));
        if TcpListener::bind(addr).is_ok() {
            return addr;
        }
    }
    panic!("no loopback port is free between {FIRST} and {}", FIRST + COUNT);
}
