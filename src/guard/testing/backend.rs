//! A backend with one resource, for the fixture.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering},
};

use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use super::message::{read_request, type_of};

/// Returns the whole answer to a read with this head, which is in lower case.
pub(super) type AnswerRead = fn(&str) -> String;

/// A backend with one resource, which holds `one`.
pub(super) struct Backend {
    pub(super) content: Mutex<Vec<u8>>,
    pub(super) writes: AtomicUsize,
    /// The head of the last write, in lower case.
    pub(super) last_write: Mutex<String>,
    /// The heads of all reads, in lower case.
    pub(super) reads: Mutex<Vec<String>>,
    /// The answer to reads, if it is not the content.
    pub(super) answer_read: Mutex<Option<AnswerRead>>,
    /// The status that refuses each request without [`OWNER`]'s credentials; 0 if none is refused.
    pub(super) refusal: AtomicU16,
    /// The status that refuses each write; 0 if none is refused.
    pub(super) write_refusal: AtomicU16,
    /// True if each resource is shown as a collection.
    pub(super) has_only_folders: AtomicBool,
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            content: Mutex::new(b"one".to_vec()),
            writes: AtomicUsize::new(0),
            last_write: Mutex::default(),
            reads: Mutex::default(),
            answer_read: Mutex::default(),
            refusal: AtomicU16::new(0),
            write_refusal: AtomicU16::new(0),
            has_only_folders: AtomicBool::new(false),
        }
    }
}

impl Backend {
    /// Serves all clients that connect.
    pub(super) fn listen(self: Arc<Self>, listener: TcpListener) {
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&self).serve(stream));
            }
        });
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        while let Some((head, body)) = read_request(&mut stream).await {
            let status = self.refusal.load(Ordering::Relaxed);
            if status != 0 && !head.contains("authorization: owner") {
                stream.write_all(refused(status, head.starts_with("head ")).as_bytes()).await.unwrap();
                continue;
            }
            if head.starts_with("propfind ") {
                let has_only_folders = self.has_only_folders.load(Ordering::Relaxed);
                let asked = if has_only_folders { "propfind /folder " } else { &head };
                stream.write_all(type_of(asked).as_bytes()).await.unwrap();
                continue;
            }
            let mut content = self.content.lock().await;
            let is_get = head.starts_with("get ");
            let answer = if is_get || head.starts_with("head ") {
                let answer = self.answer_read.lock().await.map_or_else(
                    || {
                        let content = String::from_utf8_lossy(&content);
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len())
                    },
                    |answer_read| answer_read(&head),
                );
                self.reads.lock().await.push(head);
                let length = if is_get { answer.len() } else { answer.find("\r\n\r\n").expect("a head") + 4 };
                answer.into_bytes()[..length].to_vec()
            } else if let status @ 1.. = self.write_refusal.load(Ordering::Relaxed) {
                refused(status, false).into_bytes()
            } else {
                self.writes.fetch_add(1, Ordering::Relaxed);
                *content = body;
                *self.last_write.lock().await = head;
                b"HTTP/1.1 204 No Content\r\nETag: \"of-the-backend\"\r\n\r\n".to_vec()
            };
            drop(content);
            stream.write_all(&answer).await.unwrap();
        }
    }
}

/// Returns the answer to any request of a client without rights.
fn refused(status: u16, is_head: bool) -> String {
    let content = if is_head { "" } else { "no rights" };
    let fields = "WWW-Authenticate: Basic\r\nLocation: /login\r\nContent-Type: text/plain";
    format!("HTTP/1.1 {status} Refused\r\n{fields}\r\nContent-Length: 9\r\n\r\n{content}")
}
