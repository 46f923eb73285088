//! A client that reads server-sent events one by one.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{message::Wire, raw::request_bytes, wait::within};

/// An open stream of events.
pub struct Events {
    wire: Wire,
    text: String,
    /// The last time to wait before coming back that the stream has told, in milliseconds.
    pub retry: Option<u64>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Value,
}

impl Events {
    /// Opens the stream at a target, which must be one.
    pub async fn open(addr: SocketAddr, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::ask("GET", addr, target, headers).await
    }

    /// The same, by a POST.
    pub async fn post(addr: SocketAddr, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::ask("POST", addr, target, headers).await
    }

    async fn ask(method: &str, addr: SocketAddr, target: &str, headers: &[(&str, &str)]) -> Self {
        let mut wire = Wire::new(within("a connection", TcpStream::connect(addr)).await.expect("it is accepted"));
        let fields = [&[("Accept", "text/event-stream")], headers].concat();
        let request = request_bytes(method, target, &fields, b"");
        wire.writer.write_all(&request).await.expect("it takes the request");
        let head = within("a head", wire.reader.read_head()).await.expect("HTTP").expect("an answer");
        assert!(head.start_line.starts_with("HTTP/1.1 200 "), "{head:?}");
        assert_eq!(head.headers.get("content-type"), Some("text/event-stream"));
        assert_eq!(head.headers.get("cache-control"), Some("no-store"));
        Self { wire, text: String::new(), retry: None }
    }

    /// The next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Event> {
        within("an event", self.read()).await
    }

    /// The next event, which must come, with this name.
    #[track_caller]
    pub fn expect(&mut self, name: &'static str) -> impl Future<Output = Event> {
        let caller = std::panic::Location::caller();
        async move {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream has ended ({caller})"));
            assert_eq!(event.name, name, "{event:?} ({caller})");
            event
        }
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = self.event(&block) {
                    return Some(event);
                }
            }
            let chunk = self.wire.reader.read_chunk().await.expect("a stream that ends as it should")?;
            self.text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }

    fn event(&mut self, block: &str) -> Option<Event> {
        let (mut name, mut id, mut data) = (None, None, None);
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("event", value)) => name = Some(value.to_owned()),
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data = Some(serde_json::from_str(value).expect("JSON")),
                Some(("retry", value)) => self.retry = Some(value.parse().expect("a number")),
                _ => assert_eq!(line, ":", "no other line"),
            }
        }
        Some(Event { name: name?, id, data: data? })
    }
}
