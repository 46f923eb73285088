//! The misuse of frames by a client (RFC 9113), and its results: the cases of h2spec, in our own words.
//!
//! Each case is sent after a proper beginning, and a PING after it. The first of these events is its outcome: the end
//! of the connection with a code (`GOAWAY 1`), that of a stream (`RST 1`), an answer, or only that of the PING. A
//! client over TLS sends the same cases, and none of them has another outcome there.

use std::{fmt::Write as _, io};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    arena::Arena,
    frames::{
        CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS,
        WINDOW_UPDATE, fields, frame,
    },
    sockets::{HONEST, connect_from},
    support::wait::within,
    tls::SecureArena,
};

const PUSH_PROMISE: u8 = 5;
const PADDED: u8 = 8;
const ACK: u8 = 1;

const PROTOCOL_ERROR: &str = "GOAWAY 1";
const FLOW_CONTROL_ERROR: &str = "GOAWAY 3";
const FRAME_SIZE_ERROR: &str = "GOAWAY 6";
/// The library below says `PROTOCOL_ERROR` if the standard has a code for what is wrong.
const LESS_EXACT: &str = "GOAWAY 1";
/// It ends the connection where ending the stream would do, which section 5.4.1 allows.
const HARDER: &str = "GOAWAY 1";
const STREAM_PROTOCOL_ERROR: &str = "RST 1";

/// A request of a stream that is open, or at its end.
fn request(flags: u8, stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &fields("PUT", "/rules", &[("if-none-match", "*")]))
}

/// A GET with these fields in the place of its own.
fn list(names_and_values: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in names_and_values {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("it is short"));
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

const METHOD: (&str, &str) = (":method", "GET");
const SCHEME: (&str, &str) = (":scheme", "http");
const AUTHORITY: (&str, &str) = (":authority", "a");
const PATH: (&str, &str) = (":path", "/warm");

/// A proper GET with one more field.
fn with(field: (&str, &str)) -> Vec<u8> {
    list(&[METHOD, SCHEME, AUTHORITY, PATH, field])
}

fn cases_of_connections() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let get = fields("GET", "/warm", &[]);
    vec![
        ("4.2: a frame above the limit", frame(DATA, 0, 1, &[0; 16_385]), FRAME_SIZE_ERROR),
        ("4.3: a field that no table has", frame(HEADERS, END_HEADERS, 1, &[0x80]), LESS_EXACT),
        ("5.1: data of an idle stream", frame(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
        ("5.1: a reset of an idle stream", frame(RST_STREAM, 0, 1, &[0; 4]), PROTOCOL_ERROR),
        ("5.1: a window of an idle stream", window(1, 1), PROTOCOL_ERROR),
        ("5.1.1: a stream of the server's", request(0, 2), PROTOCOL_ERROR),
        ("5.1.1: a stream before the last", [request(0, 5), request(0, 3)].concat(), PROTOCOL_ERROR),
        ("6.1: data of no stream", frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        ("6.1: more padding than data", [request(0, 1), frame(DATA, PADDED, 1, &[9, 0])].concat(), PROTOCOL_ERROR),
        ("6.2: fields of no stream", frame(HEADERS, END_HEADERS, 0, &get), PROTOCOL_ERROR),
        ("6.2: more padding than fields", frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0]), PROTOCOL_ERROR),
        ("6.3: a priority of no stream", frame(PRIORITY, 0, 0, &[0; 5]), PROTOCOL_ERROR),
        ("6.4: a reset of no stream", frame(RST_STREAM, 0, 0, &[0; 4]), PROTOCOL_ERROR),
        ("6.4: a reset of 3 bytes", [request(0, 1), frame(RST_STREAM, 0, 1, &[0; 3])].concat(), LESS_EXACT),
        ("6.5: an acknowledgement with settings", frame(SETTINGS, ACK, 0, &[0; 6]), LESS_EXACT),
        ("6.5: settings of a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL_ERROR),
        ("6.5: settings of 5 bytes", frame(SETTINGS, 0, 0, &[0; 5]), LESS_EXACT),
        ("6.5.2: ENABLE_PUSH = 2", setting(2, 2), PROTOCOL_ERROR),
        ("6.5.2: INITIAL_WINDOW_SIZE above 2^31", setting(4, 1 << 31), LESS_EXACT),
        ("6.5.2: MAX_FRAME_SIZE = 1", setting(5, 1), PROTOCOL_ERROR),
        ("6.6: a promise of a client's", frame(PUSH_PROMISE, END_HEADERS, 1, &get), PROTOCOL_ERROR),
        ("6.7: a ping of a stream", frame(PING, 0, 1, &[0; 8]), PROTOCOL_ERROR),
        ("6.7: a ping of 7 bytes", frame(PING, 0, 0, &[0; 7]), LESS_EXACT),
        ("6.8: a farewell of a stream", frame(GOAWAY, 0, 1, &[0; 8]), PROTOCOL_ERROR),
        ("6.9: a window that grows by nothing", window(0, 0), PROTOCOL_ERROR),
        ("6.9: a window of 3 bytes", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), LESS_EXACT),
        ("6.9.1: a window that grows too large", window(0, (1 << 31) - 1), FLOW_CONTROL_ERROR),
        ("6.10: a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &get), PROTOCOL_ERROR),
        (
            "6.10: something between a list and its continuation",
            [frame(HEADERS, 0, 1, &get), frame(PING, 0, 0, &[0; 8])].concat(),
            PROTOCOL_ERROR,
        ),
    ]
}

fn cases_of_streams() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let too_short = frame(HEADERS, END_HEADERS, 1, &fields("PUT", "/rules", &[("content-length", "5")]));
    vec![
        ("6.9: a window of a stream that grows by nothing", [request(0, 1), window(1, 0)].concat(), HARDER),
        ("6.9.1: one that grows too large", [request(0, 1), window(1, (1 << 31) - 1)].concat(), "RST 3"),
        ("8.2.1: a name in upper case", with(("Upper", "x")), HARDER),
        ("8.2.2: a field of the connection", with(("connection", "close")), STREAM_PROTOCOL_ERROR),
        ("8.2.2: TE beside trailers", with(("te", "gzip")), STREAM_PROTOCOL_ERROR),
        ("8.3: an unknown pseudo-field", with((":unknown", "x")), HARDER),
        ("8.3: one after a field", list(&[METHOD, SCHEME, AUTHORITY, ("a", "b"), PATH]), STREAM_PROTOCOL_ERROR),
        ("8.3: one of an answer", with((":status", "200")), STREAM_PROTOCOL_ERROR),
        ("8.3.1: no method", list(&[SCHEME, AUTHORITY, PATH]), STREAM_PROTOCOL_ERROR),
        ("8.3.1: no scheme", list(&[METHOD, AUTHORITY, PATH]), STREAM_PROTOCOL_ERROR),
        ("8.3.1: no path", list(&[METHOD, SCHEME, AUTHORITY]), STREAM_PROTOCOL_ERROR),
        ("8.3.1: an empty path", list(&[METHOD, SCHEME, AUTHORITY, (":path", "")]), STREAM_PROTOCOL_ERROR),
        ("8.3.1: two methods", list(&[METHOD, METHOD, SCHEME, AUTHORITY, PATH]), STREAM_PROTOCOL_ERROR),
        ("8.1.1: less than the length", [too_short.clone(), frame(DATA, END_STREAM, 1, b"x")].concat(), "RST 1"),
        ("8.1.1: more than the length", [too_short, frame(DATA, END_STREAM, 1, b"xxxxxx")].concat(), "RST 1"),
        ("4.1: a frame of no known type", frame(0xbb, 0xff, 0, b"x"), "PING"),
        ("5.5: a setting that nobody knows", setting(0xbb, 1), "PING"),
        ("6.3: a priority of an idle stream", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9]), "PING"),
    ]
}

/// Sends each case over a connection of its own, and compares what became of it.
async fn check<S: AsyncRead + AsyncWrite + Unpin>(
    connect: impl AsyncFn() -> S,
    cases: Vec<(&'static str, Vec<u8>, &'static str)>,
) {
    let mut wrong = String::new();
    for (name, bytes, expected) in cases {
        let mut stream = connect().await;
        let proper = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        let sent = [proper, bytes, frame(PING, 0, 0, b"is it on")].concat();
        send(&mut stream, &sent).await.expect("it is taken");
        let found = within("an outcome", outcome(&mut stream)).await;
        if found != expected {
            writeln!(wrong, "{name}: {found}, and not {expected}").expect("a String takes all");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Over TLS bytes may wait in the stream, until they are flushed.
async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

async fn outcome(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    let mut begun = [0; 9];
    let mut pings = 0;
    while stream.read_exact(&mut begun).await.is_ok() {
        let length = u32::from_be_bytes([0, begun[0], begun[1], begun[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if stream.read_exact(&mut payload).await.is_err() {
            break;
        }
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("a code"));
        match begun[3] {
            HEADERS => return "an answer".to_owned(),
            RST_STREAM => return format!("RST {}", code(0)),
            GOAWAY => return format!("GOAWAY {}", code(4)),
            // Answers to pings overtake resets; after a second one all that was to be said is said.
            PING if payload == b"is it on" && pings == 0 => {
                pings += 1;
                send(stream, &frame(PING, 0, 0, b"is it on")).await.expect("it goes on");
            }
            PING if payload == b"is it on" => return "PING".to_owned(),
            _ => {}
        }
    }
    "closed".to_owned()
}

async fn connect(arena: &Arena) -> TcpStream {
    connect_from(HONEST, arena.addr()).await.expect("it is let in")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_connection_ends_it() {
    let arena = Arena::start("").await;
    check(async || connect(&arena).await, cases_of_connections()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_stream_ends_that_alone() {
    let arena = Arena::start("").await;
    check(async || connect(&arena).await, cases_of_streams()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_connection_ends_it_over_tls() {
    let arena = SecureArena::start().await;
    check(async || arena.connect().await, cases_of_connections()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_stream_ends_that_alone_over_tls() {
    let arena = SecureArena::start().await;
    check(async || arena.connect().await, cases_of_streams()).await;
}
