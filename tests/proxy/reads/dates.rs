//! Modification dates: a second is long, and two states of a resource may share one.

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    source::{self, Source},
};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// RFC 9110 section 8.8.2.2: a client that has read a resource in the second of its modification cannot name that state
/// by the second. It does not get the date, since nothing in a later request would show that the date is worthless.
#[tokio::test]
async fn a_second_write_in_the_same_second_is_not_lost() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "").await;
        let proxy = setup.start().await;
        let dated =
            |sent| Answer::status(200).header("Last-Modified", MODIFIED).header("Date", sent).header("ETag", "\"t\"");
        backend.once("GET", "/doc", dated(MODIFIED).body("one"));
        let read = get(proxy.addr(), "/doc").await;
        // In the same second another client writes "two"; the next second begins.
        backend.always("*", "/doc", move |request| match request.method.as_str() {
            "PUT" => Answer::status(204),
            _ => dated(LATER).body("two"),
        });
        let date = read.header("last-modified").map(|date| ("If-Unmodified-Since", date));
        let written = put(proxy.addr(), "/doc", date.as_slice(), "based on one").await;
        written.refused(428, "precondition-required");
        assert_eq!(backend.count("PUT", "/doc"), 0, "{source}");
    }
}

/// A date that is a second older than its response names one state.
#[tokio::test]
async fn a_strong_modification_date_is_passed_on() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "").await;
        let proxy = setup.start().await;
        let dated = |sent| Answer::status(200).header("Last-Modified", MODIFIED).header("Date", sent).body("one");
        backend.once("GET", "/doc", dated(LATER));
        assert_eq!(get(proxy.addr(), "/doc").await.header("last-modified"), Some(MODIFIED), "{source}");
        backend.once("GET", "/doc", dated(MODIFIED));
        assert_eq!(get(proxy.addr(), "/doc").await.header("last-modified"), None, "{source}");
        backend.once("PUT", "/doc", dated(MODIFIED).applied());
        let tag = [("If-None-Match", "*")];
        assert_eq!(send(proxy.addr(), "PUT", "/doc", &tag, "x").await.header("last-modified"), None, "{source}");
    }
}

/// A proxy before a backend that shows this date in each answer, and sends its answers at that one.
async fn at_backend(source: Source, modified: &'static str, sent: &'static str) -> (Backend, Proxy) {
    let (backend, setup) = source.start("/doc", "").await;
    backend.always("*", "/doc", move |request| match request.method.as_str() {
        "PUT" | "DELETE" => Answer::status(204).header("Date", sent),
        _ => {
            let dated = Answer::status(200).header("Last-Modified", modified).header("Date", sent);
            dated.header("ETag", "\"t\"").body("one")
        }
    });
    (backend, setup.start().await)
}

/// Rule 2: a date that does not move, of whole minutes or from the client, is that of one state all the same.
#[tokio::test]
async fn of_two_writes_with_one_date_one_passes() {
    for source in source::ALL.into_iter().chain([DELEGATE]) {
        let (backend, proxy) = at_backend(source, MODIFIED, LATER).await;
        let addr = proxy.addr();
        let read = get(addr, "/doc").await;
        let date = [("If-Unmodified-Since", read.header("last-modified").unwrap())];
        assert_eq!(put(addr, "/doc", &date, "two").await.status, 204, "{source}");
        for _ in 0..2 {
            let problem = put(addr, "/doc", &date, "three").await.refused(412, "precondition-failed");
            assert!(problem.json["detail"].as_str().unwrap().contains("send its ETag in If-Match"), "{source}");
        }
        assert_eq!(backend.count("PUT", "/doc"), 1, "{source}: refused means untouched");
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "three").await.status, 204, "{source}: the tag names the state");
    }
}

/// The backend's own tags, which it is said to judge.
const DELEGATE: Source = Source::of_tags("etag = \"delegate\"");

/// Rule 2: a date that is older than the current one is stale, even if the current one is of this second.
#[tokio::test]
async fn a_stale_date_is_refused_as_false() {
    for source in source::ALL {
        let (backend, proxy) = at_backend(source, LATER, LATER).await;
        let stale = [("If-Unmodified-Since", MODIFIED)];
        put(proxy.addr(), "/doc", &stale, "two").await.refused(412, "precondition-failed");
        assert_eq!(backend.count("PUT", "/doc"), 0, "{source}");
    }
}

/// Rule 2: a date that no answer can have told yet is later than all of them.
#[tokio::test]
async fn a_later_date_is_later_however_weak_the_current_one_is() {
    for source in source::ALL {
        let (_backend, proxy) = at_backend(source, LATER, LATER).await;
        let tomorrow = [("If-Unmodified-Since", "Mon, 07 Nov 1994 08:49:37 GMT")];
        for _ in 0..2 {
            assert_eq!(put(proxy.addr(), "/doc", &tomorrow, "two").await.status, 204, "{source}");
        }
    }
}

/// Rule 2: the refusal of a write says that its date could not be used.
#[tokio::test]
async fn a_date_that_could_not_be_compared_is_told_of() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        for date in [MODIFIED, "yesterday"] {
            let written = put(proxy.addr(), "/doc", &[("If-Unmodified-Since", date)], "two").await;
            let problem = written.refused(428, "precondition-required");
            let detail = problem.json["detail"].as_str().unwrap();
            assert!(detail.contains("If-Unmodified-Since does not count"), "{source} {date}: {detail}");
        }
        assert_eq!(backend.count("PUT", "/doc"), 0, "{source}");
    }
}

/// Rule 2: a part is asked for by a date only if that is the current state's alone.
#[tokio::test]
async fn a_part_by_a_date_of_an_earlier_state_is_the_whole() {
    for source in source::ALL {
        let (backend, proxy) = at_backend(source, MODIFIED, LATER).await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "one").await.status, 204);
        let fields = [("Range", "bytes=1-1"), ("If-Range", MODIFIED)];
        let read = send(addr, "GET", "/doc", &fields, "").await;
        assert_eq!((read.status, read.text()), (200, "one"), "{source}");
        let seen = backend.seen("GET", "/doc").pop().unwrap();
        assert_eq!(seen.header("range"), None, "{source}");
    }
}
