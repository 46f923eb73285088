//! The same client over HTTP/2, without TLS (prior knowledge).

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use h2::{
    Reason, SendStream,
    client::{ResponseFuture, SendRequest},
};
use http::{Request, Response};
use tokio::net::TcpStream;

use crate::{
    backend::Play,
    backend_http2::{end, map, send},
    client::is_read,
    script::{Case, Framing, Step},
    stage::{End, Message, Stage, lines_of},
};

pub async fn play(addr: SocketAddr, host: &str, play: &Play) {
    let Play { case, stage } = play;
    let stream = TcpStream::connect(addr).await.expect("the proxy accepts");
    stream.set_nodelay(true).expect("TCP_NODELAY");
    let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let driver = tokio::spawn({
        let stage = Arc::clone(stage);
        async move {
            let over = match connection.await {
                Ok(()) => "closed".to_owned(),
                Err(error) => cut(&error),
            };
            stage.note(|seen| seen.client_over = Some(over));
        }
    });
    // A stream that is given up before its end would be reset.
    let _stream = exchange(addr, &requests, host, play).await;
    stage.note(|seen| seen.is_played = true);
    let aborts = case.steps.iter().any(|step| matches!(step, Step::Abort));
    if !aborts && !stage.answered(1).await {
        stage.note(|seen| seen.client.push("waited in vain for an answer".to_owned()));
    }
    let stays = stays(requests, host).await;
    let told = if stays { "the connection stays" } else { "the connection does not stay" };
    stage.note(|seen| seen.client.push(told.to_owned()));
    driver.abort();
}

fn head(case: &Case, host: &str) -> Option<Request<()>> {
    let target =
        if case.target.starts_with('/') { format!("http://{host}{}", case.target) } else { case.target.clone() };
    let mut request = Request::builder().method(case.method.as_str()).uri(target).body(()).ok()?;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = map(&case.fields);
    if let Framing::Length(length) = case.framing {
        request.headers_mut().insert("content-length", length.into());
    }
    Some(request)
}

async fn exchange(
    addr: SocketAddr,
    requests: &SendRequest<Bytes>,
    host: &str,
    play: &Play,
) -> Option<SendStream<Bytes>> {
    let Play { case, stage } = play;
    let is_whole = case.framing == Framing::Nothing;
    let request = head(case, host).expect("a request that HTTP/2 can carry");
    let Ok(mut ready) = requests.clone().ready().await else { return None };
    let (response, mut body) = ready.send_request(request, is_whole).expect("a request that HTTP/2 can carry");
    let reading = tokio::spawn(read(response, Arc::clone(stage)));
    for step in &case.steps {
        let done = match step {
            Step::Raw(_) => panic!("only over HTTP/1.1"),
            Step::Head => Some(()),
            Step::Part(bytes) => send(&mut body, bytes).await,
            Step::End(trailers) => end(&mut body, trailers),
            Step::Wait(when) => {
                if !stage.until_answered_or(*when).await {
                    stage.note(|seen| seen.client.push(format!("waited in vain: {when:?}")));
                }
                Some(())
            }
            Step::IsRead => {
                is_read(addr).await;
                Some(())
            }
            Step::HalfClose if is_whole => Some(()),
            Step::HalfClose => end(&mut body, &vec![]),
            Step::Abort => {
                body.send_reset(Reason::CANCEL);
                reading.abort();
                let _cancelled = reading.await;
                stage.note(|seen| seen.client_over = Some("aborted".to_owned()));
                return None;
            }
        };
        if done.is_none() {
            break;
        }
    }
    Some(body)
}

/// True if the connection serves one request more.
async fn stays(requests: SendRequest<Bytes>, host: &str) -> bool {
    let again = async {
        let request = Request::get(format!("http://{host}/after")).version(http::Version::HTTP_2).body(()).ok()?;
        let (response, _) = requests.ready().await.ok()?.send_request(request, true).ok()?;
        response.await.ok().filter(|response| response.headers().contains_key("x-after"))
    };
    tokio::time::timeout(crate::support::wait::DEADLINE, again).await.ok().flatten().is_some()
}

fn message(response: &Response<()>) -> Message {
    let first = format!("HTTP/2 {}", response.status().as_u16());
    Message::new(lines_of([first], response.headers()), "stream")
}

fn cut(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) if error.is_reset() => format!("reset: {reason:?}"),
        Some(reason) => format!("connection: {reason:?}"),
        None => "connection lost".to_owned(),
    }
}

async fn read(mut response: ResponseFuture, stage: Arc<Stage>) {
    let set = |set: &dyn Fn(&mut Message)| stage.note(|seen| set(seen.answers.last_mut().expect("it has just come")));
    while let Some(Ok(early)) = std::future::poll_fn(|context| response.poll_informational(context)).await {
        stage.note(|seen| seen.answers.push(message(&early)));
        set(&|answer| answer.end = End::Whole);
    }
    let response = match response.await {
        Ok(response) => response,
        Err(error) => return stage.note(|seen| seen.client_over = Some(cut(&error))),
    };
    let (head, mut body) = response.into_parts();
    stage.note(|seen| seen.answers.push(message(&Response::from_parts(head, ()))));
    if body.is_end_stream() {
        set(&|answer| answer.framing = "none");
    }
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                // It fails only on a stream that is over.
                let _over = body.flow_control().release_capacity(piece.len());
                set(&|answer| answer.body.extend(&piece));
            }
            Err(error) => return set(&|answer| answer.end = End::Cut(cut(&error))),
        }
    }
    match body.trailers().await {
        Ok(trailers) => set(&|answer| {
            answer.trailers = trailers.as_ref().map(|trailers| lines_of([], trailers)).unwrap_or_default();
            answer.end = End::Whole;
        }),
        Err(error) => set(&|answer| answer.end = End::Cut(cut(&error))),
    }
}
