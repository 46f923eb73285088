//! Requests that a test has taken into its own hands.

use std::sync::Arc;

use tokio::{
    io::AsyncWriteExt,
    sync::oneshot::{self, error::TryRecvError},
};

use super::{Answer, Request, Shared, exchange::Exchange};
use crate::support::{message::Wire, wait::within};

/// The claim on a request that is still to come.
pub struct Hold {
    receiver: oneshot::Receiver<Held>,
}

impl Hold {
    pub(super) fn new(receiver: oneshot::Receiver<Held>) -> Self {
        Self { receiver }
    }

    /// Waits until the head of the request is there. Its body is still unread.
    pub async fn arrived(self) -> Held {
        within("a request to reach the backend", self.receiver).await.expect("the backend lives")
    }

    /// Returns the request if it has arrived by now.
    pub fn try_arrived(&mut self) -> Option<Held> {
        match self.receiver.try_recv() {
            Ok(held) => Some(held),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => panic!("the backend is gone, or the request was taken before"),
        }
    }
}

/// A request whose head has come. Nothing happens to it but what the test says; dropped, its connection is closed.
pub struct Held {
    exchange: Exchange,
    give_back: oneshot::Sender<Wire>,
}

impl Held {
    pub(super) fn new(exchange: Exchange, give_back: oneshot::Sender<Wire>) -> Self {
        Self { exchange, give_back }
    }

    /// The request with what has been read of its body.
    pub fn request(&self) -> Request {
        self.exchange.request()
    }

    /// Reads the body to its end.
    pub async fn read_body(&mut self) -> Vec<u8> {
        within("a request body", self.exchange.read_body()).await.expect("a whole body");
        self.request().body
    }

    /// Reads the body and applies the write, as a plain server does before it answers.
    pub async fn apply(&mut self) {
        self.read_body().await;
        self.exchange.apply();
    }

    /// Reads the body and makes a write of it that can be applied at any time, even after the connection is closed.
    pub async fn write(&mut self) -> Write {
        self.read_body().await;
        Write { shared: Arc::clone(&self.exchange.shared), request: self.request() }
    }

    /// Returns the answer of a plain server to a read at this moment. A test may send it later, when it is old.
    pub fn stored(&self) -> Answer {
        self.exchange.shared.contents().read(&self.request().target)
    }

    /// Sends an answer; [`Answer::stored`] applies a write first. The connection then carries other requests.
    pub async fn answer(self, answer: Answer) {
        let Self { exchange, give_back } = self;
        if let Some(wire) = within("an answer to be sent", exchange.carry_out(answer)).await {
            // The backend may be gone already.
            let _unwanted = give_back.send(wire);
        }
    }

    /// Sends bytes of an answer, any part of it.
    pub async fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.exchange.wire.writer.write_all(bytes.as_ref());
        within("the proxy to take bytes of an answer", sent).await.expect("the proxy is connected");
    }

    /// Waits until the proxy has closed the connection.
    pub async fn peer_closed(&mut self) {
        within("the proxy to close its connection to the backend", self.exchange.peer_closed()).await;
    }

    /// Closes without an answer: FIN if the request was read, else RST by the system.
    pub fn close(self) {
        self.exchange.note("closed");
    }

    /// Closes with RST.
    pub fn reset(self) {
        self.exchange.note("reset");
        self.exchange.wire.reset();
    }
}

/// A write that a backend has received and not applied.
pub struct Write {
    shared: Arc<Shared>,
    request: Request,
}

impl Write {
    /// Applies it now.
    pub fn apply(self) {
        let Request { method, target, body, .. } = &self.request;
        let mut record = self.shared.record();
        self.shared.contents().apply(method, target, body);
        record.events.push(format!("{method} {target} applied late"));
    }
}
