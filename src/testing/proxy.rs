//! A proxy in a thread, and backends and clients that block.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::sync::watch;

use super::{PATIENCE, configuration::config};
use crate::{
    clock::BootClock,
    config::Route,
    generation::{Live, Serving},
    guard::{Guard, StartHold},
    proxy::Gateway,
    server::{self, Listeners, Stop},
    store::{
        Incarnation,
        memory::{MemoryStore, Room},
    },
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A proxy in its own thread.
///
/// It serves until the process ends. Pingora remembers a worker runtime by the number of its thread. The threads of a
/// later proxy would find a dead runtime under their number. Tests of a stop use whole processes.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// Starts a proxy with these routes.
    pub(crate) fn start(routes: Vec<Route>) -> Self {
        let config = config(routes);
        let listeners = Listeners::bind(&config.server.listen).expect("a free port");
        let address = listeners.addresses().next().expect("one address").parse().expect("a socket address");
        let server = config.server.clone();
        let config = Arc::new(config);
        let store = MemoryStore::new(Arc::new(BootClock), Incarnation(7), Room { records: 1000, bytes: 1 << 30 }, DAY);
        let serving = Serving::new(Arc::clone(&config), |table| {
            Guard::new(&config, table, Arc::default(), Arc::new(store), 1, StartHold::none())
        });
        let gateway = Gateway::new(Arc::new(Live::new(serving)));
        thread::spawn(move || {
            let (_never_asked, stop) = watch::channel(Stop::Not);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(server::run(listeners, &server, gateway, stop)).expect("a server");
        });
        Self { address }
    }

    /// Connects to the proxy.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }
}

/// Reads one HTTP/1.1 message: its head as text, and its body by Content-Length.
pub(crate) fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut octet = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut octet).expect("a message"), 1, "it ends after {:?}", head.escape_ascii());
        head.extend(octet);
    }
    let head = String::from_utf8(head).expect("a head of ASCII");
    let mut body = vec![0; content_length(&head)];
    stream.read_exact(&mut body).expect("the whole body");
    (head, body)
}

fn content_length(head: &str) -> usize {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse().expect("a length"))
}

/// Starts a backend that passes each connection to a function. Its thread ends with the test.
pub(crate) fn backend(mut serve: impl FnMut(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"));
        }
    });
    address
}

/// Answers one request with 200 and an empty body.
pub(crate) fn answer_ok(stream: &mut TcpStream) -> String {
    let (head, _) = read_message(stream);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("the proxy reads");
    head
}
