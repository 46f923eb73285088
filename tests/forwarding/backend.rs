//! A backend that plays the part of one case at a time: this file listens, and speaks HTTP/1.1.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex as Turn, Notify, mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    backend_http2,
    output::Output,
    script::{Act, Case},
    stage::{End, FLOOD_STOPPED, Message, Stage, When, ending, lines},
    support::message::{Framing, Reader, Wire},
};

/// The request by which a client finds out whether its connection stays. It is no part of any case.
const AFTER: &str = "GET /after HTTP/1.1";

/// The case that is played at the moment.
#[derive(Clone)]
pub struct Play {
    pub case: Arc<Case>,
    pub stage: Arc<Stage>,
}

impl Play {
    /// Notes that a request has come, and tells what becomes of it.
    pub fn arrives(&self, request: Message) -> Vec<Act> {
        let mut number = 0;
        self.stage.note(|seen| {
            number = seen.requests.len();
            seen.requests.push(request);
        });
        self.case.acts[number.min(self.case.acts.len() - 1)].clone()
    }

    /// True if what a step waits for has happened; it is noted if not.
    pub async fn waits(&self, when: When) -> bool {
        let happened = self.stage.until(when).await;
        if !happened {
            self.stage.note(|seen| seen.backend.push(format!("waited in vain: {when:?}")));
        }
        happened
    }
}

/// A listener, and the case that its connections play.
pub struct Backend {
    pub addr: SocketAddr,
    now: Arc<Mutex<Option<Play>>>,
    curtain: mpsc::Sender<oneshot::Sender<()>>,
}

impl Backend {
    pub async fn start(speaks_http_2: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let addr = listener.local_addr().expect("a bound listener");
        let (now, (curtain, falls)) = (Arc::new(Mutex::new(None)), mpsc::channel(1));
        tokio::spawn(accept(listener, speaks_http_2, Arc::clone(&now), falls));
        Self { addr, now, curtain }
    }

    /// From now on this is played.
    pub fn begins(&self, play: Play) {
        *self.now.lock().expect("nobody panics with it") = Some(play);
    }

    /// Ends the connections of what was played.
    pub async fn ends(&self) {
        *self.now.lock().expect("nobody panics with it") = None;
        let (fallen, falls) = oneshot::channel();
        self.curtain.send(fallen).await.expect("it listens until the test ends");
        falls.await.expect("all connections end");
    }
}

async fn accept(
    listener: TcpListener,
    speaks_http_2: bool,
    now: Arc<Mutex<Option<Play>>>,
    mut curtain: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            fallen = curtain.recv() => {
                let Some(fallen) = fallen else { return };
                connections.shutdown().await;
                fallen.send(()).expect("it is waited for");
            }
            accepted = listener.accept() => {
                let (stream, _) = accepted.expect("a connection");
                // Between two cases no request is expected.
                let Some(play) = now.lock().expect("nobody panics with it").clone() else { continue };
                connections.spawn(async move {
                    if speaks_http_2 {
                        backend_http2::serve(stream, &play).await;
                    } else {
                        serve(stream, &play).await;
                    }
                });
            }
        }
    }
}

async fn serve(stream: TcpStream, play: &Play) {
    let Wire { mut reader, writer } = Wire::new(stream);
    let (output, gone) = (Arc::new(Turn::new(Some(Output::new(writer)))), Arc::new(Notify::new()));
    let mut acting = JoinSet::new();
    let reads = async {
        loop {
            match reader.read_head().await {
                Ok(Some(head)) if head.start_line == AFTER => {
                    let answer = b"HTTP/1.1 200 OK\r\nX-After: yes\r\nContent-Length: 0\r\n\r\n";
                    let mut turn = output.lock().await;
                    let Some(output) = turn.as_mut() else { return };
                    // A proxy that asks no more sees no answer.
                    let _sent_or_not = output.raw(answer).await;
                }
                Ok(Some(head)) => {
                    let switches = play.case.is_tunnel;
                    let framing = Framing::of(&head.headers, Framing::Length(0));
                    let framing = if switches { Ok(Framing::UntilClose) } else { framing };
                    let Ok(framing) = framing else {
                        return play.stage.note(|seen| seen.backend.push(format!("{framing:?}")));
                    };
                    let acts = play.arrives(Message::new(lines(&head.bytes), name(framing)));
                    acting.spawn(perform(acts, play.clone(), Arc::clone(&output), Arc::clone(&gone)));
                    if !read_body(&mut reader, framing, play).await {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    return play.stage.note(|seen| seen.backend.push(format!("no request: {}", ending(&error))));
                }
                Err(_over) => return,
            }
        }
    };
    tokio::select! {
        () = reads => {}
        () = gone.notified() => return,
    }
    // The client may have closed its half, and still listen.
    while acting.join_next().await.is_some() {}
}

pub fn name(framing: Framing) -> &'static str {
    match framing {
        Framing::Length(0) => "none",
        Framing::Length(_) => "length",
        Framing::Chunked => "chunked",
        Framing::UntilClose => "until close",
    }
}

/// True if it came to its end.
async fn read_body(reader: &mut Reader, framing: Framing, play: &Play) -> bool {
    let note = |note: &dyn Fn(&mut Message)| {
        play.stage.note(|seen| note(seen.requests.last_mut().expect("it has just come")));
    };
    let read = reader.read_body(framing, |piece| note(&|request| request.body.extend(piece))).await;
    note(&|request| match &read {
        Ok(trailers) => {
            request.trailers = trailers.0.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            request.end = End::Whole;
        }
        Err(error) => request.end = End::Cut(ending(error)),
    });
    read.is_ok()
}

async fn perform(acts: Vec<Act>, play: Play, output: Arc<Turn<Option<Output>>>, gone: Arc<Notify>) {
    let mut turn = output.lock().await;
    for act in acts {
        let Some(output) = turn.as_mut() else { return };
        let sent = match act {
            Act::Wait(when) => {
                if !play.waits(when).await {
                    return;
                }
                Ok(())
            }
            Act::Interim(status, fields) => output.head(&format!("HTTP/1.1 {status} Interim"), &fields).await,
            Act::Head(status, fields) => output.head(&format!("HTTP/1.1 {status} Final"), &fields).await,
            Act::Data(bytes) => output.part(&bytes).await,
            Act::End(trailers) => output.end(&trailers).await,
            Act::Raw(bytes) => output.raw(&bytes).await,
            Act::Close => output.half_close().await,
            Act::Echo => echo(output, &play).await,
            Act::Flood(mebibytes) => flood(output, &play, mebibytes).await,
            Act::Abort => {
                turn.take().expect("it is still there").abort();
                return gone.notify_one();
            }
        };
        // It depends on the moment whether a write fails, so the comparison is about what the other side sees.
        if sent.is_err() {
            return;
        }
    }
}

async fn echo(output: &mut Output, play: &Play) -> std::io::Result<()> {
    let mut sent = 0;
    loop {
        let request = play.stage.seen().requests.last().expect("it is being answered").clone();
        let piece = &request.body[sent..];
        if !piece.is_empty() {
            output.part(piece).await?;
        } else if request.end != End::Open {
            return Ok(());
        }
        sent = request.body.len();
        // It ends too, and then there is no more of it.
        tokio::select! {
            _ = play.stage.until(When::Taken(sent + 1)) => {}
            _ = play.stage.until(When::Whole) => {}
        }
    }
}

async fn flood(output: &mut Output, play: &Play, mebibytes: usize) -> std::io::Result<()> {
    for _ in 0..16 * mebibytes {
        if output.part(&vec![b'f'; 64 * 1024]).await.is_err() {
            play.stage.note(|seen| seen.backend.push(FLOOD_STOPPED.to_owned()));
            return Ok(());
        }
    }
    play.stage.note(|seen| seen.backend.push("the flood was taken".to_owned()));
    Ok(())
}
