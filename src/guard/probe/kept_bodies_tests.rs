//! Tests of the tags that the proxy makes of the content that was sent.

use http::Method;

use crate::{
    core::{
        policy::{GuardRules, TagAfterWrite, TagSource},
        tags::json::JsonPointer,
    },
    guard::testing::{Fixture, Response},
    testing::guard,
};

/// A backend with other writers that has kept enough bodies after one.
async fn kept_one() -> Fixture {
    let fixture = Fixture::with(GuardRules { verbatim_after: 1, ..guard() }).await;
    assert_eq!(save(&fixture, "", "two").await.1, 2);
    fixture
}

/// Sends a PUT on the state that a read shows. Returns the answer, and the number of reads that the PUT has cost.
async fn save(fixture: &Fixture, fields: &str, body: &str) -> (Response, usize) {
    let tag = fixture.send(Method::GET, fields, "").await.tag().expect("a tag").to_owned();
    let before = fixture.reads().await.len();
    let saved = fixture.send(Method::PUT, &format!("If-Match: {tag}\r\n{fields}"), body).await;
    assert_eq!(saved.status, 204, "{}", saved.body);
    (saved, fixture.reads().await.len() - before)
}

/// Shows the same for any content that was sent.
fn changed(_: &str) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nchanged".to_owned()
}

/// Shows two variants.
fn flavoured(head: &str) -> String {
    let body = if head.contains("x-flavour: sour") { "lemon" } else { "honey" };
    format!("HTTP/1.1 200 OK\r\nVary: X-Flavour\r\nContent-Length: 5\r\n\r\n{body}")
}

#[tokio::test]
async fn a_put_does_without_its_re_read_once_enough_have_shown_what_was_sent() {
    let fixture = Fixture::with(GuardRules { verbatim_after: 2, ..guard() }).await;
    for (number, reads) in [(1, 2), (2, 2), (3, 1), (4, 1)] {
        let (saved, cost) = save(&fixture, "", &format!("state {number}")).await;
        assert_eq!(cost, reads, "{number}");
        assert_eq!(saved.tag(), Some(fixture.tag().await.as_str()), "{number}");
    }
}

#[tokio::test]
async fn one_put_in_a_hundred_is_read_again() {
    let fixture = kept_one().await;
    let mut tag = fixture.tag().await;
    for round in 1..=2 {
        let before = fixture.reads().await.len();
        for number in 0..100 {
            let saved = fixture.put(&tag, &format!("{round} {number}")).await;
            tag = saved.tag().expect("a tag").to_owned();
        }
        assert_eq!(fixture.reads().await.len() - before, 101);
    }
}

#[tokio::test]
async fn each_put_is_read_again_where_no_row_is_long_enough() {
    let fixture = Fixture::with(GuardRules { verbatim_after: 0, ..guard() }).await;
    for number in 0..3 {
        assert_eq!(save(&fixture, "", &format!("state {number}")).await.1, 2, "{number}");
    }
}

/// The promise: a wrong tag overwrites nothing, no matter who has written meanwhile, and no client is locked out.
#[tokio::test]
async fn a_tag_of_a_body_that_the_backend_has_changed_fits_no_state() {
    let fixture = kept_one().await;
    fixture.answer_reads(changed).await;
    let (saved, cost) = save(&fixture, "", "mine").await;
    let wrong = saved.tag().expect("a tag").to_owned();
    assert_eq!((cost, fixture.tag().await == wrong), (1, false));
    let writes = fixture.writes();
    assert_eq!(fixture.put(&wrong, "more").await.status, 412);
    assert_eq!((fixture.writes(), fixture.content().await.as_str()), (writes, "mine"));

    let (saved, cost) = save(&fixture, "", "again").await;
    assert_eq!((cost, saved.tag()), (2, None), "the refusal has shown that the backend changes bodies");
}

#[tokio::test]
async fn a_tag_that_was_told_does_not_overwrite_what_others_wrote() {
    let fixture = kept_one().await;
    let (saved, _) = save(&fixture, "", "mine").await;
    fixture.write_late("theirs").await;
    assert_eq!(fixture.put(saved.tag().expect("a tag"), "more").await.status, 412);
    assert_eq!(fixture.content().await, "theirs");
    assert_eq!(save(&fixture, "", "agreed").await.1, 2);
}

#[tokio::test]
async fn a_check_that_shows_something_else_ends_the_row() {
    let fixture = kept_one().await;
    let mut tag = fixture.tag().await;
    for number in 0..99 {
        tag = fixture.put(&tag, &format!("{number}")).await.tag().expect("a tag").to_owned();
    }
    fixture.answer_reads(changed).await;
    assert_eq!(save(&fixture, "", "mine").await.1, 2);
    fixture.answer_reads(|_| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nequal".to_owned()).await;
    for (number, reads) in [(1, 2), (2, 2), (3, 1)] {
        assert_eq!(save(&fixture, "", "equal").await.1, reads, "the row must be twice as long: {number}");
    }
}

/// Kinds of bodies that a backend may change in different ways are not mixed.
#[tokio::test]
async fn bodies_of_each_type_have_a_row_of_their_own() {
    let fixture = kept_one().await;
    let json = "Content-Type: application/json\r\n";
    for (fields, reads) in [(json, 2), (json, 1), ("", 1), ("Content-Type: text/plain\r\n", 2)] {
        assert_eq!(save(&fixture, fields, "{}").await.1, reads, "{fields}");
    }
}

#[tokio::test]
async fn no_tag_is_told_of_a_body_that_does_not_show_its_state() {
    let fixture = kept_one().await;
    for fields in ["Content-Encoding: gzip\r\n", "Content-Range: bytes 0-2/9\r\n"] {
        for _ in 0..2 {
            assert_eq!(save(&fixture, fields, "two").await.1, 2, "{fields}");
        }
    }
    let long = "x".repeat(2048);
    let max_hash_size_bytes = 1024;
    let pointer = JsonPointer::parse("/at").expect("a pointer");
    for (rules, body, reads) in [
        (GuardRules { other_writers: false, ..guard() }, "two", 1),
        (GuardRules { tag_after_write: TagAfterWrite::Always, ..guard() }, "two", 2),
        (GuardRules { ignored_json: vec![pointer.clone()], ..guard() }, "two", 2),
        (GuardRules { tag_member: Some(pointer), ..guard() }, "two", 2),
        (GuardRules { etag: TagSource::Json(JsonPointer::parse("/v").expect("a pointer")), ..guard() }, "{\"v\":1}", 2),
    ] {
        let etag = rules.etag.clone();
        let fixture = Fixture::with(GuardRules { verbatim_after: 1, ..rules }).await;
        fixture.write_late("{\"v\":1}").await;
        for _ in 0..2 {
            assert_eq!(save(&fixture, "", body).await.1, reads, "{etag:?}");
            fixture.write_late("{\"v\":1}").await;
        }
    }
    let fixture = Fixture::with(GuardRules { verbatim_after: 1, max_hash_size_bytes, ..guard() }).await;
    assert_eq!(save(&fixture, "", "two").await.1, 2);
    let (saved, cost) = save(&fixture, "", &long).await;
    assert_eq!((cost, saved.tag()), (2, None), "no read shows a tag of so long a body");
}

/// The fields that `Vary` named at the last re-read are part of the tag.
#[tokio::test]
async fn a_tag_that_is_told_names_its_variant() {
    let fixture = Fixture::with(GuardRules { verbatim_after: 1, ..guard() }).await;
    fixture.answer_reads(flavoured).await;
    let sweet = "X-Flavour: sweet\r\n";
    assert_eq!(save(&fixture, sweet, "honey").await.1, 2);
    let (saved, cost) = save(&fixture, sweet, "honey").await;
    assert_eq!((cost, saved.tag()), (1, fixture.send(Method::GET, sweet, "").await.tag()));
    let (other, _) = save(&fixture, "X-Flavour: sour\r\n", "honey").await;
    assert_ne!(other.tag(), saved.tag());

    fixture.answer_reads(|_| "HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 5\r\n\r\nhoney".to_owned()).await;
    let (saved, cost) = save(&fixture, sweet, "honey").await;
    let (told, read) = (saved.tag().expect("a tag"), fixture.send(Method::GET, sweet, "").await);
    assert_eq!((cost, Some(told) == read.tag()), (1, false), "it names another variant, of the same bytes");
    assert_eq!(fixture.send(Method::PUT, &format!("{sweet}If-Match: {told}\r\n"), "honey").await.status, 204);
}
