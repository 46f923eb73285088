//! Requests for queues in Azure's dialect, and what their answers say.

use std::{io, net::SocketAddr};

use super::{
    raw::{Connection, send},
    response::Response,
};

/// A message that a worker has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub id: String,
    pub receipt: String,
    pub count: u64,
    pub text: String,
}

impl Taken {
    /// The messages of an answer, in their order.
    #[track_caller]
    pub fn all(response: &Response) -> Vec<Self> {
        assert_eq!(response.status, 200, "{response:?}");
        response.text().split("<QueueMessage>").skip(1).map(Self::of).collect()
    }

    fn of(message: &str) -> Self {
        let element = |name: &str| {
            let value = message.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
            value.map(|(value, _)| value.to_owned()).expect("the element")
        };
        let count = element("DequeueCount").parse().expect("a number");
        Self { id: element("MessageId"), receipt: element("PopReceipt"), count, text: element("MessageText") }
    }

    /// The target of a request about this message.
    pub fn target(&self, queue: &str) -> String {
        format!("/{queue}/messages/{}?popreceipt={}", self.id, self.receipt)
    }
}

/// The body of a message.
pub fn body_of(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// Creates a queue.
pub async fn create(addr: SocketAddr, queue: &str) {
    let created = send(addr, "PUT", &format!("/{queue}"), &[], "").await;
    assert_eq!(created.status, 201, "{created:?}");
}

/// Puts a message.
pub async fn put(addr: SocketAddr, queue: &str, text: &str) -> Response {
    let response = send(addr, "POST", &format!("/{queue}/messages"), &[], body_of(text)).await;
    assert_eq!(response.status, 201, "{response:?}");
    response
}

/// Takes messages: so many at most, hidden for so many seconds.
pub async fn take(addr: SocketAddr, queue: &str, (count, seconds): (usize, u32)) -> Vec<Taken> {
    Taken::all(&send(addr, "GET", &taking(queue, (count, seconds)), &[], "").await)
}

/// Takes the next message over a connection; `None` if there is none.
pub async fn try_take(connection: &mut Connection, queue: &str, seconds: u32) -> io::Result<Option<Taken>> {
    let response = connection.try_exchange("GET", &taking(queue, (1, seconds)), &[], "").await?;
    if response.status != 200 {
        return Ok(None);
    }
    Ok(Taken::all(&response).pop())
}

fn taking(queue: &str, (count, seconds): (usize, u32)) -> String {
    format!("/{queue}/messages?numofmessages={count}&visibilitytimeout={seconds}")
}
