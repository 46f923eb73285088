//! Odd responses, read as a slow and plain reading of RFC 9112 reads them, in whatever pieces they come.

use proptest::{collection::vec, prelude::*, sample::select};
use tokio::{
    io::{AsyncWriteExt as _, duplex},
    runtime::Builder,
    task::yield_now,
};

use super::*;
use crate::upstream::link::is_framed;

const INTERIM: [&str; 2] = ["HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints"];
/// The beginnings of final responses, the plain ones first.
const BEGINNINGS: [&str; 18] = [
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 205 Reset Content",
    "HTTP/1.1 412",
    "HTTP/1.1 999 caf\u{e9}",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 099 OK",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1  200 OK",
    "HTTP/1.1 200 O\rK",
    "HTTP/1.2 200 OK",
    "HTTP/2.0 200 OK",
    "http/1.1 200 OK",
    "<html>",
    "",
];
/// Fields, the plain ones first.
const FIELDS: [&str; 40] = [
    "Content-Length: 5",
    "Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "X: y",
    "X:",
    "Connection: close",
    "Connection: keep-alive",
    "content-length:5",
    "Content-Length: 0",
    "transfer-encoding:\tChunked ",
    "Connection: x, Close",
    "Content-Length : 5",
    "Transfer-Encoding\t: chunked",
    "Content-Length: 5, 5",
    "Content-Length: 05",
    "Content-Length: 6",
    "Content-Length: 5, 6",
    "Content-Length: 5,",
    "Content-Length:",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length: 5\r\n 0",
    "Content-Length: 5\r\n\t",
    "Content-Length: 18446744073709551621",
    "Transfer-Encoding:",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding: chun\r\n ked",
    "Transfer-Encoding: \u{b}chunked",
    "X: y\r\n\tz",
    "X: a\0b",
    "X: a\rb",
    "No colon",
    ": no name",
];
/// Pieces of bodies, the plain ones first.
const PIECES: [&str; 26] = [
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "hello",
    "0\r\nX: y\r\n\r\n",
    "5;a=b\r\nhello\r\n",
    "005 ; a=\"b\"\r\nhello\r\n",
    "A\r\n0123456789\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "5\nhello\r\n",
    "5\r\nhello\n",
    "5\r\nhello!\r\n",
    "5\r\nhell\r\n",
    "5;a\nb\r\nhello\r\n",
    "5;a\rb\r\nhello\r\n",
    "5 5\r\nhello\r\n",
    "0x5\r\nhello\r\n",
    "-5\r\nhello\r\n",
    "0000000000000005\r\nhello\r\n",
    "FFFFFFFFFFFFFFF\r\nhello\r\n",
    "10000000000000005\r\nhello\r\n",
    "0\r\nX: y\n\r\n",
    "0\r\nX: a\0b\r\n\r\n",
    "0\r\nX: a\rb\r\n\r\n",
    "0\r\n\n",
    "\r\n",
    "\0",
];

/// A response as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    status: u16,
    content: Vec<u8>,
    /// True if the content has an end.
    is_whole: bool,
    /// True if the connection can be used again.
    is_kept: bool,
}

/// The beginning of a response.
struct PlainHead {
    status: u16,
    is_http_1_0: bool,
    /// The names in lower case.
    fields: Vec<(String, String)>,
}

impl PlainHead {
    fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
    }

    fn has_option(&self, option: &str) -> bool {
        let options = self.all("connection").join(",");
        options.split(',').any(|other| other.trim().eq_ignore_ascii_case(option))
    }
}

/// Removes a line, which may end with a line feed alone.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|octet| *octet == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn is_text(octets: &[u8]) -> bool {
    octets.iter().all(|octet| matches!(octet, b'\t' | b' '..=b'~' | 0x80..))
}

/// Removes a head. `None` if it does not end, or is malformed.
fn plain_head(rest: &mut &[u8]) -> Option<PlainHead> {
    let mut beginning = line(rest)?;
    while beginning.is_empty() {
        beginning = line(rest)?;
    }
    let mut lines: Vec<Vec<u8>> = Vec::new();
    loop {
        match line(rest)? {
            b"" => break,
            // A folded line goes on with the one before it.
            folded @ [b' ' | b'\t', ..] => {
                let before = lines.last_mut()?;
                before.push(b' ');
                before.extend_from_slice(folded);
            }
            other => lines.push(other.to_vec()),
        }
    }
    let is_http_1_0 = beginning.starts_with(b"HTTP/1.0 ");
    let words = beginning.strip_prefix(b"HTTP/1.0 ").or_else(|| beginning.strip_prefix(b"HTTP/1.1 "))?;
    let (status, reason) = words.split_at_checked(3)?;
    let is_status = status.iter().all(u8::is_ascii_digit) && status[0] != b'0';
    if !is_status || !is_text(reason) || !(reason.is_empty() || reason.starts_with(b" ")) {
        return None;
    }
    let fields = lines.iter().map(|line| {
        let colon = line.iter().position(|octet| *octet == b':')?;
        let name = line[..colon].trim_ascii_end();
        let is_name = !name.is_empty() && name.iter().all(|octet| octet.is_ascii_alphanumeric() || *octet == b'-');
        let value = String::from_utf8_lossy(&line[colon + 1..]).trim_matches([' ', '\t']).to_owned();
        (is_name && is_text(line)).then(|| (String::from_utf8_lossy(name).to_lowercase(), value))
    });
    let status = String::from_utf8_lossy(status).parse().ok()?;
    Some(PlainHead { status, is_http_1_0, fields: fields.collect::<Option<_>>()? })
}

/// Removes chunks and their trailer fields. Returns the content, and whether it has an end.
fn plain_chunks(rest: &mut &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    let is_whole = next_chunks(rest, &mut content).is_some();
    (content, is_whole)
}

/// Removes a line that ends as it has to.
fn whole_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|octet| *octet == b'\n')?;
    let line = rest[..end].strip_suffix(b"\r").filter(|line| !line.contains(&b'\r'))?;
    *rest = &rest[end + 1..];
    Some(line)
}

fn next_chunks(rest: &mut &[u8], content: &mut Vec<u8>) -> Option<()> {
    loop {
        let line = whole_line(rest)?;
        let digits = line.iter().take_while(|octet| octet.is_ascii_hexdigit()).count();
        let extension = line[digits..].trim_ascii_start();
        let is_extension = extension.is_empty() || extension[0] == b';';
        if !(1..=15).contains(&digits) || !is_extension || !is_text(&line[digits..]) {
            return None;
        }
        let size = usize::from_str_radix(&String::from_utf8_lossy(&line[..digits]), 16).ok()?;
        if size == 0 {
            break;
        }
        content.extend_from_slice(&rest[..size.min(rest.len())]);
        *rest = rest.get(size..).unwrap_or_default().strip_prefix(b"\r\n")?;
    }
    loop {
        let line = whole_line(rest)?;
        if line.is_empty() {
            return Some(());
        }
        if line.contains(&b'\0') {
            return None;
        }
    }
}

/// Returns the reading of these bytes, behind which the connection ends.
fn plain_reading(is_to_head: bool, bytes: &[u8]) -> Option<Reading> {
    let mut rest = bytes;
    let head = loop {
        let head = plain_head(&mut rest)?;
        if head.status >= 200 {
            break head;
        }
    };
    let (codings, lengths) = (head.all("transfer-encoding"), head.all("content-length"));
    let is_bodiless = is_to_head || matches!(head.status, 204 | 304);
    let mut length = None;
    if codings.is_empty() {
        for member in lengths.iter().flat_map(|line| line.split(',')) {
            let member = member.trim_matches([' ', '\t']);
            let is_number = !member.is_empty() && member.bytes().all(|octet| octet.is_ascii_digit());
            let number = member.parse::<u64>().ok().filter(|_| is_number)?;
            if *length.get_or_insert(number) != number {
                return None;
            }
        }
    } else if codings.len() > 1 || !codings[0].eq_ignore_ascii_case("chunked") {
        return None;
    }
    let has_one_reading = match (codings.is_empty(), head.status) {
        (true, 204) => length.is_none_or(|length| length == 0),
        (true, _) => true,
        (false, status) => status != 204 && !head.is_http_1_0 && lengths.is_empty(),
    };
    let (content, is_whole, has_end) = if is_bodiless {
        (Vec::new(), true, true)
    } else if !codings.is_empty() {
        let (content, is_whole) = plain_chunks(&mut rest);
        (content, is_whole, true)
    } else if let Some(length) = length {
        let there = rest.len().min(usize::try_from(length).unwrap());
        let content = rest[..there].to_vec();
        rest = &rest[there..];
        (content, there as u64 == length, true)
    } else {
        (std::mem::take(&mut rest).to_vec(), true, false)
    };
    let wants_connection = !head.has_option("close") && (!head.is_http_1_0 || head.has_option("keep-alive"));
    let is_kept = is_whole && has_end && has_one_reading && wants_connection && rest.is_empty();
    Some(Reading { status: head.status, content, is_whole, is_kept })
}

/// Returns what the exchange reads. No more than `room` bytes arrive at once, and the reader often stops waiting.
async fn reading(method: &str, bytes: &[u8], room: usize) -> Option<Reading> {
    let (ours, mut server) = duplex(room);
    let mut exchange = Http1Exchange::new(Box::new(ours));
    exchange.begin(&RequestHeader::build(method, b"/", None).unwrap()).expect("a head");
    let sending = async move {
        // The reader may refuse the rest.
        let _ = server.write_all(bytes).await;
    };
    let reading = async move {
        let head = loop {
            let head = tokio::select! {
                biased;
                head = exchange.read_head() => head.ok()?,
                () = yield_now() => continue,
            };
            if !head.status.is_informational() {
                break head;
            }
        };
        if !is_framed(&head) {
            return None;
        }
        let mut content = Vec::new();
        let is_whole = loop {
            tokio::select! {
                biased;
                piece = exchange.next_piece() => match piece {
                    Ok(Some(piece)) => content.extend_from_slice(&piece),
                    outcome => break outcome.is_ok(),
                },
                () = yield_now() => {}
            }
        };
        let is_kept = match exchange.into_idle() {
            // Bytes behind the response would be seen before the next exchange.
            Some(mut stream) => stream.read_u8().await.is_err(),
            None => false,
        };
        Some(Reading { status: head.status.as_u16(), content, is_whole, is_kept })
    };
    tokio::join!(sending, reading).1
}

/// One of a list whose plain members stand first.
fn mostly(list: &'static [&'static str], plain: usize) -> impl Strategy<Value = &'static str> {
    prop_oneof![7 => select(&list[..plain]), 1 => select(list)]
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![60 => Just("\r\n"), 2 => Just("\n"), 1 => Just("\r\r\n"), 1 => Just("\r")]
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim = (select(&INTERIM[..]), vec(mostly(&FIELDS, 12), 0..2));
    let last = (mostly(&BEGINNINGS, 7), vec(mostly(&FIELDS, 12), 0..4));
    let heads = (vec(interim, 0..2), last).prop_map(|(mut heads, last)| {
        heads.push(last);
        heads
    });
    (heads, vec(line_end(), 12), vec(mostly(&PIECES, 4), 0..4)).prop_map(|(heads, ends, pieces)| {
        let mut ends = ends.into_iter().cycle();
        let mut text = String::new();
        for (beginning, fields) in heads {
            for line in [beginning].into_iter().chain(fields).chain([""]) {
                text.push_str(line);
                text.extend(ends.next());
            }
        }
        text.extend(pieces);
        text.chars().map(|character| u8::try_from(character).expect("Latin-1")).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// Rule 2: what is read of a response, and whether its connection is used again, is what RFC 9112 says of it.
    #[test]
    fn a_response_is_read_as_a_plain_reader_reads_it(
        method in select(vec!["GET", "GET", "GET", "PUT", "HEAD"]),
        bytes in response(),
        room in select(vec![1, 2, 3, 7, 64, 4096, 1 << 16]),
    ) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(reading(method, &bytes, room));
        prop_assert_eq!(read, plain_reading(method == "HEAD", &bytes), "{} {}", method, bytes.escape_ascii());
    }
}
