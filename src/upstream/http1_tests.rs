//! Requests and responses on a connection whose other side is the test.

use http::header::CONTENT_LENGTH;
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

/// An exchange, and the side of its server.
fn exchange(method: &str, fields: &[(&'static str, &'static str)]) -> (Http1Exchange, DuplexStream) {
    let (ours, theirs) = duplex(1 << 20);
    let mut session = Http1Exchange::new(Box::new(ours));
    session.begin(&request(method, b"/a?b", fields)).expect("a head");
    (session, theirs)
}

fn request(method: &str, target: &[u8], fields: &[(&'static str, &'static str)]) -> RequestHeader {
    let mut head = RequestHeader::build(method, target, None).unwrap();
    for (name, value) in fields {
        head.append_header(*name, *value).unwrap();
    }
    head
}

/// Returns what the server has received.
async fn received(session: Http1Exchange, mut server: DuplexStream) -> String {
    drop(session);
    let mut received = String::new();
    server.read_to_string(&mut received).await.unwrap();
    received
}

/// A response as it was read.
struct Answered {
    status: u16,
    fields: Vec<(String, String)>,
    /// The content, if it has an end.
    content: Option<String>,
    /// True if the connection can be used again.
    is_kept: bool,
}

/// Reads a response. Its connection ends behind it unless it `stays`.
async fn answered(method: &str, response: &str, stays: bool) -> Option<Answered> {
    let (mut session, mut server) = exchange(method, &[]);
    server.write_all(response.as_bytes()).await.unwrap();
    let _held = stays.then_some(server);
    let head = loop {
        let head = session.read_head().await.ok()?;
        if !head.status.is_informational() {
            break head;
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = head.case_header_iter().map(|(name, value)| (text(name.as_slice()), text(value.as_bytes()))).collect();
    let mut content = Vec::new();
    let has_end = loop {
        match session.next_piece().await {
            Ok(None) => break true,
            Ok(Some(piece)) => content.extend_from_slice(&piece),
            Err(_) => break false,
        }
    };
    let content = has_end.then(|| text(&content));
    Some(Answered { status: head.status.as_u16(), fields, content, is_kept: session.into_idle().is_some() })
}

#[tokio::test]
async fn a_head_is_sent_with_the_first_piece_of_its_body_or_alone() {
    let (mut session, server) = exchange("PUT", &[("Host", "a"), ("x-B", "1"), ("Content-Length", "4")]);
    assert!(!session.held.is_empty());
    session.send(Some(Bytes::from_static(b"body, and more"))).await.ok().unwrap();
    session.send(None).await.ok().unwrap();
    let expected = "PUT /a?b HTTP/1.1\r\nHost: a\r\nx-B: 1\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(received(session, server).await, expected);
    let (mut session, server) = exchange("POST", &[("Transfer-Encoding", "chunked")]);
    session.flush().await.ok().unwrap();
    session.send(Some(Bytes::from_static(b"one"))).await.ok().unwrap();
    session.send(None).await.ok().unwrap();
    let expected = "POST /a?b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
    assert_eq!(received(session, server).await, expected);
}

#[tokio::test]
async fn a_request_that_lacks_what_it_announced_does_not_end() {
    let (mut session, _server) = exchange("PUT", &[("Content-Length", "4")]);
    session.send(Some(Bytes::from_static(b"bod"))).await.ok().unwrap();
    assert!(session.send(None).await.is_err());
}

#[test]
fn what_would_have_another_meaning_on_the_wire_is_not_written() {
    // A target that is no path is kept as it is.
    for target in [&b"a\r\nX: y"[..], b"a b", b"a\0"] {
        assert!(lines(&request("GET", target, &[])).is_none(), "{}", target.escape_ascii());
    }
    let mut head = request("GET", b"/", &[]);
    head.set_version(Version::HTTP_2);
    assert!(lines(&head).is_none());
    assert!(lines(&request("GET", b"/", &[])).is_some());
}

/// RFC 9112 section 6.3.
#[tokio::test]
async fn a_body_ends_where_its_framing_says_and_its_connection_stays_only_if_both_know() {
    for (method, response, content, is_kept) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Some("hello"), true),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", Some("hello"), true),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: Close\r\n\r\nhello", Some("hello"), false),
        ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", Some("hello"), false),
        ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", Some("hello"), true),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", Some("hello"), false),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\nX: y\r\n\r\n",
            Some("hello"),
            true,
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
            Some(""),
            false,
        ),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Some(""), true),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Some(""), true),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Some(""), true),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", Some(""), true),
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", Some(""), true),
        // The content that these announce may still come.
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Some(""), false),
        ("GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Some(""), false),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", Some(""), false),
        ("GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Some(""), true),
    ] {
        let answered = answered(method, response, true).await.unwrap_or_else(|| panic!("{response:?}"));
        assert_eq!(answered.content.as_deref(), content, "{method} {response:?}");
        assert_eq!(answered.is_kept, is_kept, "{method} {response:?}");
    }
}

/// A body that breaks off has no end, so that it never gets a tag.
#[tokio::test]
async fn a_body_without_an_end_is_broken_unless_its_connection_is_its_end() {
    for (response, content) in [
        ("HTTP/1.1 200 OK\r\n\r\nhello", Some("hello")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\r\nmore", None),
    ] {
        let answered = answered("GET", response, false).await.unwrap();
        assert_eq!(answered.content.as_deref(), content, "{response:?}");
        assert!(!answered.is_kept, "{response:?}");
    }
}

#[tokio::test]
async fn what_is_no_response_is_refused() {
    for response in [
        "\x16\x03\x01",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y",
    ] {
        assert!(answered("GET", response, false).await.is_none(), "{response:?}");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(FIELDS_MAX + 1));
    assert!(answered("GET", &many, false).await.is_none());
}

#[tokio::test]
async fn a_head_without_an_end_is_given_up() {
    let (mut session, mut server) = exchange("GET", &[]);
    let endless = tokio::spawn(async move { while server.write_all(&[b'x'; 4096]).await.is_ok() {} });
    assert!(session.read_head().await.is_err());
    drop(session);
    endless.await.unwrap();
}

#[tokio::test]
async fn fields_keep_their_spelling_and_folded_ones_become_one_line() {
    let response = "\r\nHTTP/1.1 201 Made\r\nX-a: 1\r\nx-A : 2\r\nY: one,\r\n  two\r\nContent-Length: 5\r\n\
                    Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let answered = answered("GET", response, true).await.unwrap();
    let fields: Vec<_> = answered.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("X-a", "1"), ("x-A", "2"), ("Y", "one, two"), ("Transfer-Encoding", "chunked")];
    assert_eq!((answered.status, &*fields), (201, &expected[..]), "a coding takes precedence over a length");
}

/// A response may come in any pieces, and a reader may stop waiting for one and wait again.
#[tokio::test]
async fn a_response_comes_in_any_pieces() {
    let (mut session, mut server) = exchange("GET", &[]);
    let large = "x".repeat(200_000);
    let response = format!("HTTP/1.1 200 OK\r\n{CONTENT_LENGTH}: 200000\r\n\r\n{large}");
    let (begin, rest) = response.split_at(60);
    for octet in begin.bytes() {
        server.write_all(&[octet]).await.unwrap();
        tokio::select! {
            biased;
            head = session.read_head() => assert_eq!(head.ok().unwrap().status, 200),
            () = std::future::ready(()) => {}
        }
        if session.body.is_some() {
            break;
        }
    }
    let at = begin.find("\r\n\r\n").unwrap() + 4;
    let sending = async { server.write_all([&begin[at..], rest].concat().as_bytes()).await.unwrap() };
    let reading = async {
        let mut content = Vec::new();
        while let Some(piece) = session.next_piece().await.ok().unwrap() {
            content.extend_from_slice(&piece);
        }
        content
    };
    let ((), content) = tokio::join!(sending, reading);
    assert!(content == large.as_bytes());
}
