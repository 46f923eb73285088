//! The same backend over HTTP/2, without TLS.

use std::sync::Arc;

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use tokio::{net::TcpStream, sync::Notify, task::JoinSet};

use crate::{
    backend::Play,
    script::{Act, Fields},
    stage::{End, FLOOD_STOPPED, Message, When, lines_of},
};

pub async fn serve(stream: TcpStream, play: &Play) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    // The library takes many small frames for a flood; here they are a case.
    let handshake = h2::server::Builder::new().data_frame_budget(1_000_000).handshake(stream).await;
    let Ok(mut connection) = handshake else { return };
    let gone = Arc::new(Notify::new());
    let (mut acting, mut noting) = (JoinSet::new(), JoinSet::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = gone.notified() => return,
        };
        let Some(Ok((request, mut answer))) = accepted else {
            // Reads and floods in flight break off with the connection, and that is noted.
            drop(connection);
            while noting.join_next().await.is_some() {}
            return;
        };
        if request.uri().path() == "/after" {
            let yes = Response::builder().header("x-after", "yes").body(()).expect("a response");
            // A proxy that asks no more sees no answer.
            let _sent_or_not = answer.send_response(yes, true);
            continue;
        }
        let (head, body) = request.into_parts();
        let pseudo = [
            format!("{} {}", head.method, head.uri.path_and_query().map_or("", |target| target.as_str())),
            format!(":authority: {}", head.uri.authority().map_or("", |authority| authority.as_str())),
        ];
        let framing = if body.is_end_stream() { "none" } else { "stream" };
        let acts = play.arrives(Message::new(lines_of(pseudo, &head.headers), framing));
        noting.spawn(read(body, play.clone()));
        let floods = acts.iter().any(|act| matches!(act, Act::Flood(_)));
        let tasks = if floods { &mut noting } else { &mut acting };
        tasks.spawn(perform(acts, answer, play.clone(), Arc::clone(&gone)));
    }
}

async fn read(mut body: RecvStream, play: Play) {
    let note = |note: &dyn Fn(&mut Message)| {
        play.stage.note(|seen| note(seen.requests.last_mut().expect("it has just come")));
    };
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else {
            return note(&|request| request.end = End::Cut("reset".to_owned()));
        };
        // It fails only on a stream that is over.
        let _over = body.flow_control().release_capacity(piece.len());
        note(&|request| request.body.extend(&piece));
    }
    match body.trailers().await {
        Ok(trailers) => note(&|request| {
            request.trailers = trailers.as_ref().map(|trailers| lines_of([], trailers)).unwrap_or_default();
            request.end = End::Whole;
        }),
        Err(_) => note(&|request| request.end = End::Cut("reset".to_owned())),
    }
}

/// The fields, without those of a connection of HTTP/1.1.
pub fn map(fields: &Fields) -> HeaderMap {
    let of_connection = ["connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"];
    let end_to_end = fields.iter().filter(|(name, _)| !of_connection.contains(&&*name.to_ascii_lowercase()));
    let field = |(name, value): &(String, String)| {
        let octets: Vec<u8> = value.chars().map(|character| u8::try_from(character).expect("Latin-1")).collect();
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        (name, HeaderValue::from_bytes(&octets).expect("a value"))
    };
    let mut map = HeaderMap::new();
    end_to_end.map(field).for_each(|(name, value)| {
        map.append(name, value);
    });
    map
}

fn head(status: u16, fields: &Fields) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    *response.headers_mut() = map(fields);
    response
}

/// Sends a piece up to the limit of flow control; `None` if the other side takes no more.
pub async fn send(stream: &mut SendStream<Bytes>, bytes: &[u8]) -> Option<()> {
    let mut rest = Bytes::copy_from_slice(bytes);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let capacity = std::future::poll_fn(|context| stream.poll_capacity(context)).await?.ok()?;
        let piece = rest.split_to(capacity.min(rest.len()));
        stream.send_data(piece, false).ok()?;
    }
    Some(())
}

/// Ends a stream.
pub fn end(stream: &mut SendStream<Bytes>, trailers: &Fields) -> Option<()> {
    if trailers.is_empty() {
        return stream.send_data(Bytes::new(), true).ok();
    }
    stream.send_trailers(map(trailers)).ok()
}

async fn perform(acts: Vec<Act>, mut answer: SendResponse<Bytes>, play: Play, gone: Arc<Notify>) {
    let mut stream = None;
    let mut acts = acts.into_iter().peekable();
    while let Some(act) = acts.next() {
        let done = match (act, &mut stream) {
            (Act::Wait(when), _) => play.waits(when).await.then_some(()),
            (Act::Interim(status, fields), _) => answer.send_informational(head(status, &fields)).ok(),
            (Act::Head(status, fields), _) => {
                let is_last = matches!(acts.peek(), Some(Act::End(trailers)) if trailers.is_empty());
                let sent = answer.send_response(head(status, &fields), is_last).ok();
                if is_last {
                    return;
                }
                stream = sent;
                stream.is_some().then_some(())
            }
            (Act::Data(bytes), Some(stream)) => send(stream, &bytes).await,
            (Act::End(trailers), Some(stream)) => end(stream, &trailers),
            (Act::Echo, Some(stream)) => echo(stream, &play).await,
            (Act::Flood(mebibytes), Some(stream)) => flood(stream, &play, mebibytes).await,
            (Act::Close, _) => return gone.notify_one(),
            (Act::Abort, _) => return answer.send_reset(Reason::INTERNAL_ERROR),
            (act, _) => panic!("{act:?} has no place there over HTTP/2"),
        };
        if done.is_none() {
            return;
        }
    }
}

async fn echo(stream: &mut SendStream<Bytes>, play: &Play) -> Option<()> {
    let mut sent = 0;
    loop {
        let request = play.stage.seen().requests.last()?.clone();
        let piece = &request.body[sent..];
        if !piece.is_empty() {
            send(stream, piece).await?;
        } else if request.end != End::Open {
            return Some(());
        }
        sent = request.body.len();
        tokio::select! {
            _ = play.stage.until(When::Taken(sent + 1)) => {}
            _ = play.stage.until(When::Whole) => {}
        }
    }
}

async fn flood(stream: &mut SendStream<Bytes>, play: &Play, mebibytes: usize) -> Option<()> {
    for _ in 0..16 * mebibytes {
        if send(stream, &vec![b'f'; 64 * 1024]).await.is_none() {
            play.stage.note(|seen| seen.backend.push(FLOOD_STOPPED.to_owned()));
            return Some(());
        }
    }
    play.stage.note(|seen| seen.backend.push("the flood was taken".to_owned()));
    Some(())
}
