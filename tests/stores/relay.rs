//! A way to an engine on which answers can be held back: questions arrive, and who asked does not know. It can lead to
//! another engine later.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{AbortHandle, JoinSet},
};

pub struct Relay {
    addr: SocketAddr,
    server: watch::Sender<SocketAddr>,
    answers: watch::Sender<bool>,
    asked_bytes: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Relay {
    /// A relay to this server, which lets answers through.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let (answers, allowed) = watch::channel(true);
        let (server, mut current) = watch::channel(server);
        let asked_bytes = Arc::<AtomicUsize>::default();
        let asked = Arc::clone(&asked_bytes);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let client = tokio::select! {
                    Ok(()) = current.changed() => {
                        connections.shutdown().await;
                        continue;
                    }
                    Ok((client, _)) = listener.accept() => client,
                    else => return,
                };
                let server = *current.borrow();
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let ((client_reads, client_writes), (server_reads, server_writes)) =
                    (client.into_split(), server.into_split());
                let (asked, allowed) = (Arc::clone(&asked), allowed.clone());
                connections.spawn(carry(client_reads, server_writes, async move |bytes| {
                    asked.fetch_add(bytes, Ordering::SeqCst);
                    true
                }));
                connections.spawn(carry(server_reads, client_writes, async move |_| {
                    allowed.clone().wait_for(|allowed| *allowed).await.is_ok()
                }));
            }
        });
        Self { addr, server, answers, asked_bytes, task: task.abort_handle() }
    }

    /// Leads to another server from now on. All connections to the earlier one end.
    pub fn lead_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Holds all answers back, or lets them through, those that were held back too.
    pub fn let_answers_through(&self, through: bool) {
        self.answers.send_replace(through);
    }

    /// How many bytes of questions have come.
    pub fn asked_bytes(&self) -> usize {
        self.asked_bytes.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries what comes, as long as `may_pass` says so of each piece of so many bytes.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, may_pass: impl AsyncFn(usize) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !may_pass(length).await || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
