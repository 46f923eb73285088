//! Parts of representations whose tags are ours. P17: If-Range by weak or stale tags; P18: HEAD says something else than
//! GET.

use std::{net::SocketAddr, process::Command};

use crate::support::{
    backend::{Answer, Backend, Request},
    nginx::Nginx,
    proxy::Proxy,
    raw::{put_if_match, send},
    response::Response,
    source::{self, CONTENT, CONTENT_EXCLUSIVE, VERSION},
};

const TEXT: &str = "0123456789";
/// Larger than `max_hash_size` below.
const LARGE: usize = 3000;
const SMALL_HASH: &str = "max_hash_size = \"1KiB\"";

async fn read(addr: SocketAddr, method: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, "/doc", fields, "").await
}

fn range_of(response: &Response) -> (u16, &str, Option<&str>) {
    (response.status, response.text(), response.header("content-range"))
}

/// A backend that answers one range of bytes, as most do, or the whole.
fn ranged(request: &Request, body: &str, headers: &[(&str, &str)]) -> Answer {
    let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let answer = match range {
        Some((first, last)) => {
            let first: usize = first.parse().expect("a number");
            let last = last.parse().unwrap_or(body.len() - 1).min(body.len() - 1);
            let content_range = format!("bytes {first}-{last}/{}", body.len());
            Answer::status(206).header("Content-Range", &content_range).body(&body[first..=last])
        }
        None => Answer::status(200).body(body),
    };
    headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value))
}

/// RFC 9110 section 14: the backend of these knows nothing of ranges.
#[tokio::test]
async fn p17_a_part_is_cut_out_of_what_a_content_tag_is_made_of() {
    for source in [CONTENT, CONTENT_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", TEXT).await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let whole = read(addr, "GET", &[]).await;
        assert_eq!(whole.header("accept-ranges"), Some("bytes"), "{source}");
        let cases = [
            ("bytes=2-4", (206, "234", Some("bytes 2-4/10"))),
            ("bytes=7-", (206, "789", Some("bytes 7-9/10"))),
            ("bytes=-2", (206, "89", Some("bytes 8-9/10"))),
            ("bytes=0-1,4-5", (200, TEXT, None)),
            ("lines=1-2", (200, TEXT, None)),
            ("bytes=10-", (416, "", Some("bytes */10"))),
        ];
        for (range, expected) in cases {
            let part = read(addr, "GET", &[("Range", range)]).await;
            assert_eq!(range_of(&part), expected, "{source}: {range}");
            assert_eq!(part.header("content-length"), Some(expected.1.len().to_string().as_str()), "{source}: {range}");
            let tag = (expected.0 != 416).then(|| whole.etag());
            assert_eq!(part.header("etag"), tag.as_deref(), "{source}: {range}");
        }
        assert!(backend.requests().iter().all(|request| request.header("range").is_none()), "{source}");
    }
}

/// A tag that is read out of the body says nothing of its other bytes: a part of one and a part of another could meet.
#[tokio::test]
async fn p17_no_part_is_cut_out_of_what_a_json_tag_is_read_from() {
    const JSON: &str = "{\"version\": 7, \"text\": \"one\"}";
    let backend = Backend::start().await;
    backend.put("/doc", JSON);
    let proxy = Proxy::to(backend.addr()).route("etag = \"json:/version\"\nhash_wait = \"10s\"").start().await;
    for condition in ["\"7\"", "\"6\""] {
        let answer = read(proxy.addr(), "GET", &[("Range", "bytes=0-8"), ("If-Range", condition)]).await;
        assert_eq!((answer.status, answer.text(), answer.etag()), (200, JSON, "\"7\"".to_owned()));
    }
}

/// RFC 9110 section 13.1.5: a strong tag that is current, or the whole.
#[tokio::test]
async fn p17_a_part_is_answered_only_where_if_range_names_the_current_tag() {
    for source in [CONTENT, CONTENT_EXCLUSIVE, VERSION] {
        let (backend, setup) = source.start("/doc", "old").await;
        backend.always("GET", "/doc", |request| ranged(request, TEXT, &[]));
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = read(addr, "GET", &[]).await.etag();
        let part = read(addr, "GET", &[("Range", "bytes=8-"), ("If-Range", &tag)]).await;
        assert_eq!((range_of(&part), part.etag()), ((206, "89", Some("bytes 8-9/10")), tag.clone()), "{source}");
        let weak = format!("W/{tag}");
        for condition in [weak.as_str(), "\"old\"", "Sun, 06 Nov 1994 08:49:37 GMT", "junk"] {
            let whole = read(addr, "GET", &[("Range", "bytes=8-"), ("If-Range", condition)]).await;
            assert_eq!(range_of(&whole), (200, TEXT, None), "{source}: {condition}");
        }
        let same = read(addr, "GET", &[("Range", "bytes=8-"), ("If-None-Match", &tag)]).await;
        assert_eq!(same.status, 304, "{source}: the other conditions go first");
        read(addr, "GET", &[("Range", "bytes=8-"), ("If-Match", "\"old\"")]).await.refused(412, "precondition-failed");
    }
}

/// The tag of a part is in the part's own head.
#[tokio::test]
async fn p17_a_part_is_judged_by_its_own_field() {
    let backend = Backend::start().await;
    backend.always("GET", "/doc", |request| ranged(request, TEXT, &[("X-Version", "7")]));
    let proxy = Proxy::to(backend.addr()).route("etag = \"header:X-Version\"").start().await;
    let addr = proxy.addr();
    for (condition, expected) in [("\"7\"", (206, "89", Some("bytes 8-9/10"))), ("\"6\"", (200, TEXT, None))] {
        let answer = read(addr, "GET", &[("Range", "bytes=8-"), ("If-Range", condition)]).await;
        assert_eq!((range_of(&answer), answer.etag()), (expected, "\"7\"".to_owned()), "{condition}");
    }
    backend.once("GET", "/doc", Answer::status(416).header("Content-Range", "bytes */3"));
    let whole = read(addr, "GET", &[("Range", "bytes=8-"), ("If-Range", "\"6\"")]).await;
    assert_eq!(range_of(&whole), (200, TEXT, None), "what If-Range names has other bytes");
}

/// A body that is too large for a tag of its bytes still comes in parts.
#[tokio::test]
async fn p17_a_part_of_a_large_body_is_asked_for() {
    for source in [CONTENT, CONTENT_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", "").await;
        let large = "x".repeat(LARGE);
        backend.always("GET", "/doc", move |request| ranged(request, &large, &[]));
        let proxy = setup.route(SMALL_HASH).start().await;
        let addr = proxy.addr();
        let whole = read(addr, "GET", &[]).await;
        let tag = whole.header("etag").map(str::to_owned);
        assert_eq!(tag.is_some(), source == CONTENT_EXCLUSIVE, "{source}: that of the version, or none");
        let part = read(addr, "GET", &[("Range", "bytes=2998-")]).await;
        assert_eq!(range_of(&part), (206, "xx", Some("bytes 2998-2999/3000")), "{source}");
        assert_eq!(part.header("etag"), tag.as_deref(), "{source}");
        let stale = read(addr, "GET", &[("Range", "bytes=2998-"), ("If-Range", "\"old\"")]).await;
        assert_eq!((stale.status, stale.body.len()), (200, LARGE), "{source}");
        if let Some(tag) = tag {
            let part = read(addr, "GET", &[("Range", "bytes=2998-"), ("If-Range", &tag)]).await;
            assert_eq!((part.status, part.etag()), (206, tag), "{source}");
        }
        let several = read(addr, "GET", &[("Range", "bytes=0-1,4-5")]).await;
        assert_eq!((several.status, several.body.len()), (200, LARGE), "{source}");
    }
}

/// A part and the tag of the version that was current before a write are of two states.
#[tokio::test]
async fn p17_a_part_of_a_large_body_that_was_written_meanwhile_has_no_old_tag() {
    let (backend, setup) = CONTENT_EXCLUSIVE.start("/doc", &"x".repeat(LARGE)).await;
    let proxy = setup.route(SMALL_HASH).route("require = \"never\"").start().await;
    let addr = proxy.addr();
    let tag = read(addr, "GET", &[]).await.etag();
    let held = backend.hold_where(|request| request.header("range").is_some());
    let reader = tokio::spawn(async move { read(addr, "GET", &[("Range", "bytes=2998-")]).await });
    let part = held.arrived().await;
    let new = "y".repeat(LARGE);
    assert_eq!(send(addr, "PUT", "/doc", &[], &new).await.status, 204);
    part.answer(Answer::status(206).header("Content-Range", "bytes 2998-2999/3000").body("yy")).await;
    let answer = reader.await.unwrap();
    assert_eq!((answer.status, answer.text()), (200, new.as_str()), "the whole, of which no part is put together");
    assert_eq!(answer.etag(), tag, "it may be older than the content, never newer");
    put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
}

/// The same while the write is in flight: whether its content is there already cannot be known.
#[tokio::test]
async fn p17_beside_a_write_no_part_of_a_large_body_is_asked_for() {
    let (backend, setup) = CONTENT_EXCLUSIVE.start("/doc", &"x".repeat(LARGE)).await;
    let proxy = setup.route(SMALL_HASH).route("require = \"never\"").start().await;
    let addr = proxy.addr();
    let held = backend.hold("PUT", "/doc");
    let writer = tokio::spawn(async move { send(addr, "PUT", "/doc", &[], "y".repeat(LARGE)).await });
    let mut write = held.arrived().await;
    write.apply().await;
    assert_eq!(read(addr, "GET", &[("Range", "bytes=2998-")]).await.status, 200);
    assert_eq!(backend.seen("GET", "/doc").iter().filter(|request| request.header("range").is_some()).count(), 0);
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
}

/// RFC 9110 section 9.3.2.
#[tokio::test]
async fn p18_head_says_what_get_says() {
    for source in source::ALL {
        for size in [0, 10, LARGE] {
            let (_backend, setup) = source.start("/doc", &"x".repeat(size)).await;
            let proxy = setup.route(SMALL_HASH).start().await;
            let addr = proxy.addr();
            for fields in [&[][..], &[("Range", "bytes=0-0")]] {
                let whole = read(addr, "GET", &[]).await;
                let head = read(addr, "HEAD", fields).await;
                assert_eq!(head.status, 200, "{source}, {size} bytes");
                for name in ["etag", "content-length", "content-type", "accept-ranges", "last-modified"] {
                    assert_eq!(head.header(name), whole.header(name), "{source}, {size} bytes: {name}");
                }
            }
            let Some(tag) = read(addr, "GET", &[]).await.header("etag").map(str::to_owned) else { continue };
            for (fields, status) in [([("If-None-Match", tag.as_str())], 304), ([("If-Match", "\"old\"")], 412)] {
                for method in ["GET", "HEAD"] {
                    assert_eq!(read(addr, method, &fields).await.status, status, "{source}, {size} bytes: {method}");
                }
            }
        }
    }
}

/// curl breaks off and goes on, with nothing but what it was given.
struct Download {
    directory: tempfile::TempDir,
    addr: SocketAddr,
}

impl Download {
    fn new(addr: SocketAddr) -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory"), addr }
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("file")
    }

    /// Runs curl with these arguments, the target last; its exit code.
    async fn curl(&self, arguments: &[&str]) -> i32 {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "60", "--output"]).arg(self.file()).args(arguments);
        command.arg(format!("http://{}/doc", self.addr));
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
        let output = output.expect("curl is missing: run `make setup-test`");
        output.status.code().expect("it ends by itself")
    }
}

/// Real files behind a real server, and curl: `-r`, and a download that goes on where it was broken off.
#[tokio::test]
async fn p17_curl_reads_parts_and_resumes_downloads() {
    let text = (0..400).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let setups = [
        ("content", ""),
        ("content, too large", "max_hash_size = \"1KiB\""),
        ("version, too large", "max_hash_size = \"1KiB\"\nother_writers = false"),
        ("version", "etag = \"version\"\nother_writers = false"),
    ];
    for (name, lines) in setups {
        let nginx = Nginx::with("etag off;").await;
        std::fs::write(nginx.root().join("doc"), &text).expect("a file");
        let proxy = Proxy::to(nginx.addr()).route("hash_wait = \"10s\"").route(lines).start().await;
        // The host that curl names is part of what a version's tag stands for.
        let host = [("Host", &*proxy.addr().to_string())];
        let tag = read(proxy.addr(), "GET", &host).await.header("etag").map(str::to_owned);
        let download = Download::new(proxy.addr());
        let content = || std::fs::read_to_string(download.file()).expect("a file");
        assert_eq!(download.curl(&["-r", "5-9"]).await, 0, "{name}");
        assert_eq!(content(), text[5..=9], "{name}");
        let first_part = &text[..1500];
        std::fs::write(download.file(), first_part).expect("a file");
        assert_eq!(download.curl(&["-C", "-"]).await, 0, "{name}");
        assert_eq!(content(), text, "{name}");
        let Some(tag) = tag else { continue };
        let current = format!("If-Range: {tag}");
        std::fs::write(download.file(), first_part).expect("a file");
        assert_eq!(download.curl(&["-C", "-", "-H", &current]).await, 0, "{name}");
        assert_eq!(content(), text, "{name}");
        std::fs::write(nginx.root().join("doc"), text.replace("line", "LINE")).expect("a file");
        std::fs::write(download.file(), first_part).expect("a file");
        if name == "content" {
            // curl's code for a server that answers a range with the whole: it appends nothing of another state.
            assert_eq!(download.curl(&["-C", "-", "-H", &current]).await, 33, "{name}");
            assert_eq!(content(), first_part, "{name}");
        }
    }
}
