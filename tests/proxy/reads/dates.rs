//! Modification dates: a second is long, and two states of a resource may share one.

use crate::support::{
    backend::Answer,
    raw::{get, put, send},
    source,
};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// RFC 9110 section 8.8.2.2: who has read a resource in the second of its modification cannot name by that second what
/// it has read. The date is not told to it, since nothing in a later request would show that it is worth nothing.
#[tokio::test]
async fn a_second_write_in_the_same_second_is_not_lost() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "").await;
        let proxy = setup.start().await;
        let dated =
            |sent| Answer::status(200).header("Last-Modified", MODIFIED).header("Date", sent).header("ETag", "\"t\"");
        backend.once("GET", "/doc", dated(MODIFIED).body("one"));
        let read = get(proxy.addr(), "/doc").await;
        // In the same second somebody else writes "two"; the next second begins.
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
