//! Clients that hold a stream open.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use http::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, DuplexStream},
    task::JoinHandle,
    time::{advance, timeout},
};

use super::{Fixture, fixture::LEASE, message::head};
use crate::testing;

/// A client that reads a stream of events. If this is dropped, the client has gone.
pub(crate) struct EventClient {
    connection: DuplexStream,
    served: JoinHandle<pingora::Result<()>>,
    received: String,
}

impl Fixture {
    /// Opens a stream by a lease operation on a resource.
    pub(crate) async fn hold(self: &Arc<Self>, resource: &str, fields: &str) -> EventClient {
        self.open((resource, LEASE), &Method::POST, fields).await
    }

    /// Opens a stream that watches a resource.
    pub(crate) async fn watch(self: &Arc<Self>, resource: &str) -> EventClient {
        self.open((resource, "/.watch/doc"), &Method::GET, "").await
    }

    async fn open(self: &Arc<Self>, (resource, path): (&str, &str), method: &Method, fields: &str) -> EventClient {
        let fields = format!("Accept: text/event-stream\r\n{fields}");
        let (session, connection) = testing::arrived(&head(path, method, &fields, 0)).await;
        let (fixture, request) = (Arc::clone(self), self.request((resource, path), method));
        let served = tokio::spawn(async move { testing::answer(&fixture.guards, session, &request).await });
        EventClient { connection, served, received: String::new() }
    }

    /// Ends the streams of this generation, as a reload or a stop does.
    pub(crate) fn end_streams(&self) {
        self.guards.end().come();
    }

    /// Lets time pass, for the process and for the store.
    pub(crate) async fn pass_seconds(&self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.store.pass(100);
            advance(Duration::from_millis(100)).await;
            // Tasks that waited for this moment act.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl EventClient {
    /// Returns the next event with its data.
    pub(crate) async fn event(&mut self) -> (String, Value) {
        loop {
            if let Some((before, rest)) = self.received.split_once("\ndata: ")
                && let Some((data, rest)) = rest.split_once("\n\n")
            {
                let name =
                    before.rsplit("event: ").next().and_then(|event| event.lines().next()).expect("a name").to_owned();
                let event = (name, serde_json::from_str(data).expect("JSON"));
                self.received = rest.to_owned();
                return event;
            }
            let mut bytes = [0; 4096];
            let read = timeout(Duration::from_secs(100), self.connection.read(&mut bytes)).await;
            let read = read.expect("an event").expect("a connection");
            assert_ne!(read, 0, "the stream has ended: {}", self.received);
            self.received.push_str(std::str::from_utf8(&bytes[..read]).expect("text"));
        }
    }

    /// Returns the next event with its data, if it has come.
    pub(crate) async fn heard(&mut self) -> Option<(String, Value)> {
        let mut bytes = [0; 4096];
        while let Some(Ok(read)) = self.connection.read(&mut bytes).now_or_never()
            && read > 0
        {
            self.received.push_str(std::str::from_utf8(&bytes[..read]).expect("text"));
        }
        if self.received.contains("\ndata: ") { Some(self.event().await) } else { None }
    }

    /// True if all was said, or the request was refused.
    pub(crate) fn has_ended(&self) -> bool {
        self.served.is_finished()
    }

    /// Reads to the end of the stream, and returns the bytes since the last event.
    pub(crate) async fn rest(mut self) -> String {
        self.served.await.expect("no panic").expect("an answer");
        let mut rest = std::mem::take(&mut self.received);
        self.connection.read_to_string(&mut rest).await.expect("text");
        rest
    }
}
