//! A client that plays the part of a case over HTTP/1.1.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use tokio::{net::TcpStream, task::JoinHandle};

use crate::{
    backend::{Play, name},
    output::Output,
    script::{Case, Fields, Framing as Sent, Step},
    stage::{End, Message, Stage, When, ending, lines},
    support::{
        message::{Framing, Reader, Wire},
        raw::send,
    },
};

/// Plays the case, and tells whether the connection stayed.
pub async fn play(addr: SocketAddr, host: &str, play: &Play) {
    let Play { case, stage } = play;
    let stream = TcpStream::connect(addr).await.expect("the proxy accepts");
    let Wire { reader, writer } = Wire::new(stream);
    let mut methods: VecDeque<&str> = case.methods.iter().copied().collect();
    if methods.is_empty() {
        methods.push_back(if case.method == "HEAD" { "HEAD" } else { "GET" });
    }
    let methods = methods.iter().map(|method| (*method).to_owned()).collect();
    let reading = tokio::spawn(read(reader, methods, case.is_tunnel, Arc::clone(stage)));
    let mut output = Output::new(writer);
    for step in &case.steps {
        let sent = match step {
            Step::Raw(bytes) => output.raw(&with_host(bytes, host)).await,
            Step::Head => {
                let first = format!("{} {} HTTP/1.1", case.method, case.target);
                output.head(&first, &all_fields(case, host)).await
            }
            Step::Part(bytes) => output.part(bytes).await,
            Step::End(trailers) => output.end(trailers).await,
            Step::Wait(when) => {
                wait(stage, *when).await;
                Ok(())
            }
            Step::IsRead => {
                is_read(addr).await;
                Ok(())
            }
            Step::HalfClose => output.half_close().await,
            Step::Abort => {
                output.abort();
                reading.abort();
                let _cancelled = reading.await;
                return stage.note(|seen| seen.client_over = Some("aborted".to_owned()));
            }
        };
        // A proxy that has answered may read no more.
        if sent.is_err() {
            break;
        }
    }
    stage.note(|seen| seen.is_played = true);
    if !stage.answered(case.sent()).await {
        stage.note(|seen| seen.client.push("waited in vain for an answer".to_owned()));
    } else if !case.is_tunnel && !case.is_unfinished() {
        stays(&mut output, case, host, stage).await;
    }
    end(reading).await;
}

/// Waits until the one thread of the proxy has read what was sent to it.
pub async fn is_read(proxy: SocketAddr) {
    for _ in 0..3 {
        let response = send(proxy, "GET", "/none", &[("Host", "nowhere.test")], "").await;
        assert_eq!(response.status, 404);
    }
}

async fn end(reading: JoinHandle<()>) {
    reading.abort();
    let _cancelled = reading.await;
}

async fn wait(stage: &Stage, when: When) {
    if !stage.until_answered_or(when).await {
        stage.note(|seen| seen.client.push(format!("waited in vain: {when:?}")));
    }
}

fn with_host(bytes: &[u8], host: &str) -> Vec<u8> {
    let Some(at) = bytes.windows(6).position(|window| window == b"{host}") else { return bytes.to_vec() };
    [&bytes[..at], host.as_bytes(), &with_host(&bytes[at + 6..], host)].concat()
}

fn all_fields(case: &Case, host: &str) -> Fields {
    let framing = match case.framing {
        Sent::Nothing => None,
        Sent::Length(length) => Some(("Content-Length".to_owned(), length.to_string())),
        Sent::Chunked => Some(("Transfer-Encoding".to_owned(), "chunked".to_owned())),
    };
    [("Host".to_owned(), host.to_owned())].into_iter().chain(case.fields.iter().cloned()).chain(framing).collect()
}

/// Notes whether the connection serves one request more.
async fn stays(output: &mut Output, case: &Case, host: &str, stage: &Stage) {
    let seen = stage.seen();
    let Some(last) = seen.answers.last() else { return };
    let tells_close = last.values("connection").iter().any(|value| value.eq_ignore_ascii_case("close"));
    let is_closed_by_us = case.steps.iter().any(|step| matches!(step, Step::HalfClose));
    if tells_close || is_closed_by_us {
        if !stage.until(When::Dismissed).await {
            stage.note(|seen| seen.client.push("still open".to_owned()));
        }
        return;
    }
    // It may be closed by now, which the reader sees.
    let _sent_or_not = output.raw(format!("GET /after HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
    let answers = seen.answers.iter().filter(|answer| !answer.is_interim()).count();
    if !stage.answered(answers + 1).await {
        stage.note(|seen| seen.client.push("another request gets no answer".to_owned()));
    }
    stage.note(|seen| match seen.answers.iter().position(|answer| answer.values("x-after") == ["yes"]) {
        Some(_) if seen.client_over.is_none() => {
            seen.answers.pop();
            seen.client.push("the connection stays".to_owned());
        }
        _ => seen.client.push("the connection does not stay".to_owned()),
    });
}

async fn read(mut reader: Reader, mut methods: VecDeque<String>, is_tunnel: bool, stage: Arc<Stage>) {
    loop {
        let head = match reader.read_head().await {
            Ok(Some(head)) => head,
            Ok(None) => return stage.note(|seen| seen.client_over = Some("closed".to_owned())),
            Err(error) => return stage.note(|seen| seen.client_over = Some(ending(&error))),
        };
        let message = Message::new(lines(&head.bytes), "none");
        let status = message.status();
        let is_interim = message.is_interim();
        stage.note(|seen| seen.answers.push(message));
        if is_interim {
            set(&stage, |answer| answer.end = End::Whole);
            continue;
        }
        let method = methods.pop_front().unwrap_or_else(|| "GET".to_owned());
        let framing = match status {
            101 => Ok(Framing::UntilClose),
            _ if is_tunnel && method == "CONNECT" && status < 300 => Ok(Framing::UntilClose),
            _ if method == "HEAD" || matches!(status, 204 | 304) => Ok(Framing::Length(0)),
            _ => Framing::of(&head.headers, Framing::UntilClose),
        };
        let framing = match framing {
            Ok(framing) => framing,
            Err(error) => return stage.note(|seen| seen.client_over = Some(ending(&error))),
        };
        set(&stage, |answer| answer.framing = name(framing));
        let read = reader.read_body(framing, |piece| set(&stage, |answer| answer.body.extend(piece))).await;
        match read {
            Ok(trailers) => {
                let trailers = trailers.0.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                stage.note(|seen| {
                    let answer = seen.answers.last_mut().expect("it has just come");
                    (answer.trailers, answer.end) = (trailers, End::Whole);
                    if framing == Framing::UntilClose {
                        seen.client_over = Some("closed".to_owned());
                    }
                });
            }
            Err(error) => {
                return stage.note(|seen| {
                    seen.answers.last_mut().expect("it has just come").end = End::Cut(ending(&error));
                    seen.client_over = Some(ending(&error));
                });
            }
        }
    }
}

fn set(stage: &Stage, set: impl FnOnce(&mut Message)) {
    stage.note(|seen| set(seen.answers.last_mut().expect("it has just come")));
}
