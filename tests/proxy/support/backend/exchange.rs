//! One connection of a backend, and one request on it.

use std::{io, sync::Arc, time::Instant};

use tokio::{io::AsyncWriteExt, net::TcpStream, sync::oneshot};

use super::{
    Action, Answer, Request, Shared,
    answer::{Kind, response_bytes},
    held::Held,
};
use crate::support::message::{Framing, Headers, Wire};

/// Serves a connection until one side closes it.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let open = Open::count(shared);
    let mut wire = Wire::new(stream);
    for nth in 1.. {
        match next_request(&mut wire, &open, nth).await {
            Ok(Some(request)) => {
                let Some(returned) = serve_request(wire, &open.shared, request).await else { return };
                wire = returned;
            }
            Ok(None) => return,
            // A reset between two requests is a rude way to close, and no fault of the framing.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return,
            Err(error) => return open.shared.record().malformed.push(error.to_string()),
        }
    }
}

/// Counts an open connection while it lives.
struct Open {
    shared: Arc<Shared>,
    connection: usize,
}

impl Open {
    fn count(shared: Arc<Shared>) -> Self {
        let connection = {
            let mut record = shared.record();
            record.connections += 1;
            record.open_connections += 1;
            record.connections - 1
        };
        Self { shared, connection }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.record().open_connections -= 1;
    }
}

async fn next_request(wire: &mut Wire, open: &Open, nth: usize) -> io::Result<Option<Request>> {
    let Some(head) = wire.reader.read_head().await? else { return Ok(None) };
    Request::parse(head, open.connection, nth).map(Some)
}

/// Does with a request what the rules say. Gives the connection back when it may carry another.
async fn serve_request(wire: Wire, shared: &Arc<Shared>, request: Request) -> Option<Wire> {
    let action = shared.action_for(&request);
    let number = {
        let mut record = shared.record();
        record.requests.push(request.clone());
        let number = record.requests.len() - 1;
        record.note(number, "arrived");
        number
    };
    let mut exchange = Exchange { wire, shared: Arc::clone(shared), number, body_read: false };
    match action {
        Action::Hold(sender) => {
            let (give_back, returned) = oneshot::channel();
            // A hold that the test has dropped closes the connection.
            sender.send(Held::new(exchange, give_back)).ok()?;
            returned.await.ok()
        }
        Action::Once(answer) => exchange.carry_out(answer).await,
        Action::Always(answer) => exchange.carry_out(answer(&request)).await,
        Action::Served(answer) => {
            exchange.read_body().await.ok()?;
            let request = exchange.request();
            exchange.carry_out(answer(&request)).await
        }
    }
}

/// The fate of a connection after an answer.
enum After {
    KeepAlive,
    Close,
    Reset,
}

/// A request in flight, with its connection.
pub(super) struct Exchange {
    pub(super) wire: Wire,
    pub(super) shared: Arc<Shared>,
    number: usize,
    body_read: bool,
}

impl Exchange {
    /// The request with what has come of its body.
    pub(super) fn request(&self) -> Request {
        self.shared.record().requests[self.number].clone()
    }

    pub(super) fn note(&self, what: &str) {
        self.shared.record().note(self.number, what);
    }

    /// Reads the body to its end, after a 100 if the peer waits for one. Later calls do nothing.
    pub(super) async fn read_body(&mut self) -> io::Result<()> {
        if self.body_read {
            return Ok(());
        }
        self.body_read = true;
        let headers: Headers = self.request().headers;
        if headers.has_token("expect", "100-continue") {
            self.wire.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let framing = Framing::of(&headers, Framing::Length(0))?;
        let (shared, number) = (&self.shared, self.number);
        let keep = |piece: &[u8]| shared.record().requests[number].body.extend(piece);
        let read = self.wire.reader.read_body(framing, keep).await;
        let mut record = self.shared.record();
        match read {
            Ok(_trailers) => record.requests[number].complete = true,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    record.malformed.push(error.to_string());
                }
                record.note(number, "broken off");
                return Err(error);
            }
        }
        Ok(())
    }

    /// Applies a write to what is kept, and tells what a plain server would answer.
    pub(super) fn apply(&self) -> Answer {
        let Request { method, target, headers, body, .. } = self.request();
        if method == "OPTIONS" {
            return Answer::status(204);
        }
        if matches!(method.as_str(), "GET" | "HEAD") {
            return self.shared.contents().read(&target);
        }
        // One lock for both, so that no reader sees the new content before the event.
        let mut record = self.shared.record();
        let (answer, is_applied) = match transferred(&method, &headers) {
            Some(to) => {
                let overwrites = headers.get("overwrite") != Some("F");
                self.shared.contents().transfer(&method, &target, to, overwrites)
            }
            None => self.shared.contents().apply(&method, &target, &body),
        };
        if is_applied {
            record.note(self.number, "applied");
            record.applied.push((self.number, Instant::now()));
        }
        answer
    }

    /// Does what the answer says, and gives the connection back when it may carry another request.
    pub(super) async fn carry_out(mut self, answer: Answer) -> Option<Wire> {
        // An error means that the peer is gone; what it has done is recorded.
        match self.try_carry_out(answer).await.ok()? {
            After::KeepAlive => return Some(self.wire),
            After::Close => {}
            After::Reset => self.wire.reset(),
        }
        None
    }

    async fn try_carry_out(&mut self, answer: Answer) -> io::Result<After> {
        if !matches!(answer.kind, Kind::CloseAtHead) {
            self.read_body().await?;
        }
        if let Some(gate) = &answer.gate {
            gate.passed().await;
        }
        let stored = answer.applied.then(|| self.apply());
        let kind = match (answer.kind, stored) {
            (Kind::Stored, Some(stored)) => stored.kind,
            (kind, _) => kind,
        };
        self.wire.writer.write_all(&answer.early).await?;
        self.send(kind).await
    }

    async fn send(&mut self, kind: Kind) -> io::Result<After> {
        match kind {
            Kind::Status { status, headers, body } => {
                let request = self.request();
                self.note(&format!("answered {status}"));
                let bytes = response_bytes(&request.method, status, &headers, &body);
                self.wire.writer.write_all(&bytes).await?;
                let closing = |headers: &Headers| headers.has_token("connection", "close");
                let close = closing(&request.headers) || closing(&Headers(headers));
                Ok(if close { After::Close } else { After::KeepAlive })
            }
            Kind::Raw(bytes) => {
                self.note("answered in part");
                self.wire.writer.write_all(&bytes).await?;
                Ok(After::Close)
            }
            Kind::Close | Kind::CloseAtHead => {
                self.note("closed");
                Ok(After::Close)
            }
            Kind::Reset => {
                self.note("reset");
                Ok(After::Reset)
            }
            Kind::Never => {
                self.peer_closed().await;
                Ok(After::Close)
            }
            Kind::Stored => unreachable!("it was replaced by what is kept"),
        }
    }

    /// Waits until the peer has closed. Whatever it sends before that is no proper request.
    pub(super) async fn peer_closed(&mut self) {
        let mut stray = Vec::new();
        // FIN and RST are the same here.
        let _closed = self.wire.reader.read_body(Framing::UntilClose, |piece| stray.extend(piece)).await;
        if !stray.is_empty() {
            self.shared.record().malformed.push(format!("stray bytes: {:?}", String::from_utf8_lossy(&stray)));
        }
    }
}

/// Returns the path of the `Destination` of a COPY or MOVE.
fn transferred<'a>(method: &str, headers: &'a Headers) -> Option<&'a str> {
    let reference = headers.get("destination").filter(|_| matches!(method, "COPY" | "MOVE"))?;
    let path = reference.split_once("://").map_or(reference, |(_, rest)| rest);
    path.find('/').and_then(|start| path.get(start..))
}
