use http::HeaderMap;
use tokio::io::{DuplexStream, duplex};

use super::*;

/// A connection that has brought a request with this body, and the side of its client.
fn connection(body: ReceivedBody, bytes: &[u8]) -> (Http1, DuplexStream) {
    let (client, server) = duplex(1 << 16);
    (Http1::new(Box::new(server), BytesMut::from(bytes), body, true), client)
}

fn head(fields: &[(&'static str, &'static str)]) -> Box<ResponseHeader> {
    let mut head = Box::new(ResponseHeader::build(200, None).unwrap());
    for (name, value) in fields {
        head.insert_header(*name, *value).unwrap();
    }
    head
}

/// Ends the request. Returns the bytes that the client has read, and the rest of the next request.
async fn ended(mut wire: Http1, mut client: DuplexStream) -> (String, Option<Vec<u8>>) {
    while wire.next_piece().await.is_ok_and(|piece| piece.is_some()) {}
    let stays = wire.finish().await;
    let left = wire.into_connection().1.to_vec();
    let left = stays.then_some(left);
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    (read, left)
}

#[tokio::test]
async fn what_follows_a_request_is_left_to_the_next_one_if_it_may_be_one() {
    let next = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    for (follows, connection_field, left) in [
        ("", "keep-alive", Some("")),
        ("\r\n\r\n", "keep-alive", Some("")),
        (next, "keep-alive", Some(next)),
        ("\r\nGET /b HTTP/1.1\r\n\r\nbody", "keep-alive", Some("GET /b HTTP/1.1\r\n\r\nbody")),
        ("GET /b HT", "close", None),
        ("X", "close", None),
        ("\0", "close", None),
    ] {
        let (mut wire, client) = connection(ReceivedBody::Length(3), format!("put{follows}").as_bytes());
        assert_eq!(wire.next_piece().await.unwrap().unwrap(), "put");
        wire.begin(&Method::PUT, head(&[("Content-Length", "0")]));
        wire.write_piece(Bytes::new(), true).await.unwrap();
        let (read, kept) = ended(wire, client).await;
        assert!(read.contains(&format!("Connection: {connection_field}\r\n")), "{follows:?}: {read}");
        assert_eq!(kept.as_deref(), left.map(str::as_bytes), "{follows:?}");
    }
}

#[tokio::test]
async fn each_piece_of_an_answer_is_sent_at_once() {
    for (fields, first, second) in [
        (("Content-Length", "6"), "one", "two"),
        (("Transfer-Encoding", "chunked"), "3\r\none\r\n", "3\r\ntwo\r\n0\r\n\r\n"),
    ] {
        let (mut wire, mut client) = connection(ReceivedBody::Length(0), b"");
        wire.begin(&Method::GET, head(&[fields]));
        let mut read = [0; 512];
        for (piece, is_last, expected) in [("one", false, first), ("two", true, second)] {
            assert_eq!(wire.write_piece(piece.into(), is_last).await.unwrap(), 3);
            let length = client.read(&mut read).await.unwrap();
            assert!(read[..length].ends_with(expected.as_bytes()), "{}", read[..length].escape_ascii());
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_length_that_it_declares_or_ends_its_connection() {
    for (method, declared, pieces, sent, stays) in [
        (Method::GET, "3", &["onetwo"][..], "one", true),
        (Method::GET, "6", &["one"], "one", false),
        (Method::HEAD, "6", &["one"], "", true),
    ] {
        let (mut wire, client) = connection(ReceivedBody::Length(0), b"");
        wire.begin(&method, head(&[("Content-Length", declared)]));
        for piece in pieces {
            wire.write_piece(Bytes::from(*piece), false).await.unwrap();
        }
        wire.write_piece(Bytes::new(), true).await.unwrap();
        let (read, left) = ended(wire, client).await;
        assert!(read.ends_with(&format!("\r\n\r\n{sent}")), "{read}");
        assert_eq!(left.is_some(), stays, "{method} {declared} {pieces:?}");
    }
}

/// RFC 9112 section 7.1.2.
#[tokio::test]
async fn trailers_end_a_chunked_answer() {
    let (mut wire, client) = connection(ReceivedBody::Length(0), b"");
    wire.begin(&Method::GET, head(&[("Transfer-Encoding", "chunked")]));
    wire.write_piece("one".into(), false).await.unwrap();
    let trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("x-sum"), http::HeaderValue::from_static("abc"))]);
    wire.write_trailers(&trailers).await.unwrap();
    let (read, left) = ended(wire, client).await;
    assert!(read.ends_with("\r\n\r\n3\r\none\r\n0\r\nx-sum: abc\r\n\r\n"), "{read}");
    assert!(left.is_some());
}

/// Bytes that a tunnel brings belong to no request.
#[tokio::test]
async fn a_tunnel_passes_all_that_comes() {
    let (mut wire, mut client) = connection(ReceivedBody::Length(0), b"\0frame");
    let mut switching = head(&[("Upgrade", "websocket")]);
    switching.set_status(101).unwrap();
    wire.begin(&Method::GET, switching);
    wire.flush().await.unwrap();
    assert_eq!(wire.next_piece().await.unwrap().unwrap(), "\0frame");
    wire.write_piece("down".into(), false).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(wire.next_piece().await.unwrap(), None);
    let (read, left) = ended(wire, client).await;
    assert!(read.starts_with("HTTP/1.1 101 ") && read.ends_with("\r\n\r\ndown"), "{read}");
    assert_eq!(left, None);
}
