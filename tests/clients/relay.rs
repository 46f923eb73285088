//! A way to a server on which some writes meet the faults of networks.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// The fate of a PUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, and so does its answer.
    Arrives,
    /// The connection breaks before it has arrived.
    IsLost,
    /// The connection breaks when it was answered, before the answer has arrived.
    IsNotAnswered,
    /// The relay answers that no server has time for it.
    IsSentAway,
}

pub struct Relay {
    addr: SocketAddr,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    task: AbortHandle,
}

impl Relay {
    /// A relay to this server, on which PUTs meet these fates in their order. All later ones arrive.
    pub async fn to(server: SocketAddr, fates: &[Fate]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let fates = Arc::new(Mutex::new(VecDeque::from(fates.to_vec())));
        let drawn = Arc::clone(&fates);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                tokio::spawn(carry(client, server, Arc::clone(&drawn)));
            }
        });
        Self { addr, fates, task: task.abort_handle() }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The fates that no PUT has met so far.
    pub fn left(&self) -> Vec<Fate> {
        self.fates.lock().unwrap().iter().copied().collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries the exchanges of one connection, until it ends or fate ends it. Clients send one request after the other.
async fn carry(mut client: TcpStream, mut server: TcpStream, fates: Arc<Mutex<VecDeque<Fate>>>) {
    let (mut request, mut answer) = ([0; 16_384], [0; 16_384]);
    let mut fate = Fate::Arrives;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(length @ 1..) = read else { return };
                if request[..length].starts_with(b"PUT ") {
                    fate = fates.lock().unwrap().pop_front().unwrap_or(Fate::Arrives);
                }
                match fate {
                    Fate::IsLost => return,
                    Fate::IsSentAway => return send_away(client).await,
                    Fate::Arrives | Fate::IsNotAnswered if server.write_all(&request[..length]).await.is_err() => return,
                    Fate::Arrives | Fate::IsNotAnswered => {}
                }
            }
            read = server.read(&mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if fate == Fate::IsNotAnswered || client.write_all(&answer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn send_away(mut client: TcpStream) {
    let head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // A client that has gone meanwhile needs no answer.
    let _gone = client.write_all(head.as_bytes()).await;
    let _gone = client.shutdown().await;
    // Bytes that are still in flight must not reset the connection before the client has read the answer.
    while let Ok(1..) = client.read(&mut [0; 256]).await {}
}
