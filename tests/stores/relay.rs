//! A way to an engine on which answers can be held back: questions arrive, and who asked does not know.

use std::net::SocketAddr;

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
    answers: watch::Sender<bool>,
    task: AbortHandle,
}

impl Relay {
    /// A relay to this server, which lets answers through.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let (answers, allowed) = watch::channel(true);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let ((client_reads, client_writes), (server_reads, server_writes)) =
                    (client.into_split(), server.into_split());
                connections.spawn(carry(client_reads, server_writes, None));
                connections.spawn(carry(server_reads, client_writes, Some(allowed.clone())));
            }
        });
        Self { addr, answers, task: task.abort_handle() }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Holds all answers back, or lets them through, those that were held back too.
    pub fn let_answers_through(&self, through: bool) {
        self.answers.send_replace(through);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut allowed: Option<watch::Receiver<bool>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if let Some(allowed) = &mut allowed
            && allowed.wait_for(|allowed| *allowed).await.is_err()
        {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
