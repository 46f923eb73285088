//! Tests of guarded requests while the store fails, at each moment and in each way (DESIGN, section 3, rule 12).

use http::{HeaderName, Method};

use super::testing::{Fault, Fixture, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseGuards, LeaseRules, TagSource},
        records::record::Availability,
        resource::ResourceKey,
        route::{PathPattern, TouchTemplate},
        tags::json::JsonPointer,
    },
    testing::guard,
};

const FAULTS: [Fault; 3] = [Fault::Unavailable, Fault::Hangs, Fault::AnswerLost];
/// A time longer than any mark or doubt lasts.
const LONG_MILLISECONDS: u64 = 10 * 60 * 1000;

/// Returns the number of store operations of a write with the current tag.
async fn operations_of_a_write(etag: TagSource) -> u64 {
    let fixture = Fixture::new(etag).await;
    let tag = fixture.tag().await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    assert_eq!(fixture.put(&tag, "two").await.status, 204);
    fixture.store.operations()
}

/// Only an operator can help, so the client gets no request to come back.
#[tokio::test]
async fn a_store_that_has_lost_writes_is_told_apart_from_one_that_does_not_answer() {
    let fixture = Fixture::new(TagSource::Content).await;
    let tag = fixture.tag().await;
    for (fault, retries) in [(Fault::Unavailable, true), (Fault::LostWrites, false)] {
        fixture.store.fail(fault, When::From(0));
        let response = fixture.put(&tag, "two").await;
        assert_eq!((response.status, response.field("retry-after").is_some()), (503, retries), "{fault:?}");
        assert_eq!(response.body.contains("has lost writes"), !retries, "{fault:?}: {}", response.body);
    }
    assert_eq!(fixture.writes(), 0);
}

/// For any failure of any operation, there are two outcomes. Either no byte was sent and the client gets 503, or the
/// write was sent once and the client gets the upstream's answer. The answer has no tag if the record could not be
/// settled. Afterwards no write overwrites the applied one.
#[tokio::test]
async fn a_write_fails_closed_whatever_operation_of_the_store_fails() {
    for etag in [TagSource::Content, TagSource::Version] {
        let operations = operations_of_a_write(etag.clone()).await;
        assert!(operations >= 4, "{operations}");
        for fault in FAULTS {
            for number in 0..operations {
                for when in [When::Once(number), When::From(number)] {
                    write_while_failing(etag.clone(), fault, when).await;
                }
            }
        }
    }
}

async fn write_while_failing(etag: TagSource, fault: Fault, when: When) {
    let case = format!("{etag:?} {fault:?} {when:?}");
    let fixture = Fixture::new(etag).await;
    let tag = fixture.tag().await;
    fixture.store.fail(fault, when);
    let response = fixture.put(&tag, "two").await;
    let applied = match fixture.writes() {
        0 => {
            assert_eq!(response.status, 503, "{case}: {}", response.head);
            assert!(response.head.to_ascii_lowercase().contains("\r\nretry-after: "), "{case}: {}", response.head);
            false
        }
        1 => {
            assert_eq!((response.status, response.tag()), (204, None), "{case}: {}", response.head);
            true
        }
        more => panic!("{case}: {more} writes were sent"),
    };

    fixture.store.fail(fault, When::Never);
    fixture.store.pass(LONG_MILLISECONDS);
    let mut next = fixture.put(&tag, "three").await;
    if next.status == 409 {
        // The first attempt has made a doubt of the mark.
        fixture.store.pass(LONG_MILLISECONDS);
        next = fixture.put(&tag, "three").await;
    }
    if applied {
        assert_eq!((next.status, &*fixture.content().await), (412, "two"), "{case}");
    }
    let tag = fixture.tag().await;
    assert_eq!(fixture.put(&tag, "four").await.status, 204, "{case}");
    assert_eq!(fixture.content().await, "four", "{case}");
}

/// Like the test above, but for a write that touches another resource. Both are free in the end, and no byte is sent
/// before both are marked.
#[tokio::test]
async fn a_write_that_touches_fails_closed_whatever_operation_of_the_store_fails() {
    // The path of the fixture's requests has a key other than that of the requests.
    let path = PathPattern::parse("/doc").unwrap();
    let touches = vec![TouchTemplate::parse("/doc", &path).unwrap()];
    let guard = GuardRules { etag: TagSource::Version, other_writers: false, also_changes: touches, ..guard() };
    let before_sending = {
        let fixture = Fixture::with(guard.clone()).await;
        let tag = fixture.tag().await;
        fixture.store.fail(Fault::Unavailable, When::Never);
        assert_eq!(fixture.put(&tag, "two").await.status, 204);
        // Each of the two marks ends with a swap.
        fixture.store.operations() - 2
    };
    assert!(before_sending >= 4, "{before_sending}: two marks take a read and a swap each");
    for fault in FAULTS {
        for number in 0..before_sending + 2 {
            for when in [When::Once(number), When::From(number)] {
                let writes = touch_while_failing(&guard, fault, when).await;
                assert_eq!(writes, usize::from(number >= before_sending), "{fault:?} {when:?}");
            }
        }
    }
}

/// Returns the number of writes that were sent.
async fn touch_while_failing(guard: &GuardRules, fault: Fault, when: When) -> usize {
    let case = format!("{fault:?} {when:?}");
    let fixture = Fixture::with(guard.clone()).await;
    let tag = fixture.tag().await;
    fixture.store.fail(fault, when);
    let response = fixture.put(&tag, "two").await;
    let writes = fixture.writes();
    assert_eq!(response.status, if writes == 0 { 503 } else { 204 }, "{case}: {}", response.head);
    fixture.store.fail(fault, When::Never);
    for _ in 0..3 {
        // A write that its owner could not settle ends with time and with the next writes.
        fixture.store.pass(LONG_MILLISECONDS);
        fixture.put(&fixture.tag().await, "three").await;
    }
    assert_eq!(fixture.put(&fixture.tag().await, "four").await.status, 204, "{case}");
    let other = fixture.store.look(&ResourceKey::from_text("backend:/doc")).await;
    assert_eq!(other.availability(), Availability::Free, "{case}");
    assert_eq!(other.version(), other.revision, "{case}: it was touched last by that write");
    writes
}

/// Rule 12 for writes that need no claim.
#[tokio::test]
async fn an_unclaimed_write_fails_closed_too() {
    for fault in FAULTS {
        let fixture = Fixture::new(TagSource::Version).await;
        fixture.store.fail(fault, When::From(0));
        assert_eq!(fixture.send(Method::POST, "", "two").await.status, 503, "{fault:?}");
        assert_eq!(fixture.writes(), 0, "{fault:?}");
    }
}

/// After the exchange the upstream's answer stands, and the mark keeps other writes away until it has become a doubt.
#[tokio::test]
async fn a_write_that_cannot_be_settled_holds_others_back() {
    for fault in [Fault::Unavailable, Fault::Hangs] {
        let fixture = Fixture::new(TagSource::Version).await;
        let tag = fixture.tag().await;
        let before_settling = operations_of_a_write(TagSource::Version).await - 1;
        fixture.store.fail(fault, When::Once(before_settling));
        let response = fixture.put(&tag, "two").await;
        assert_eq!((response.status, response.tag()), (204, None), "{fault:?}");
        let next = fixture.put(&tag, "three").await;
        assert_eq!((next.status, fixture.writes()), (409, 1), "{fault:?}: {}", next.head);
    }
}

/// Rule 12: a read that a lease may guard fails while the holder cannot be known. A read with a lease id does not pass
/// unjudged either.
#[tokio::test]
async fn a_read_that_a_lease_may_guard_fails_closed() {
    let lease = |guards| Some(LeaseRules { guards, ..rules() });
    let id = "Lease-Id: 11111111-1111-4111-8111-111111111111\r\n";
    for (lease, fields, status) in [
        (lease(LeaseGuards::ReadAndWrite), "", 503),
        (lease(LeaseGuards::Write), "", 200),
        (lease(LeaseGuards::Write), id, 503),
        (None, id, 503),
    ] {
        let fixture = Fixture::with(GuardRules { lease, ..guard() }).await;
        fixture.store.fail(Fault::Unavailable, When::From(0));
        assert_eq!(fixture.send(Method::GET, fields, "").await.status, status, "{fields}");
    }
}

/// A read never depends on the store, but without the store it has no version to be labelled with.
#[tokio::test]
async fn reads_pass_without_the_store() {
    for fault in FAULTS {
        let fixture = Fixture::new(TagSource::Version).await;
        fixture.store.fail(fault, When::From(0));
        let response = fixture.send(Method::GET, "If-None-Match: \"x\"\r\n", "").await;
        assert_eq!((response.status, response.tag()), (200, None), "{fault:?}");
    }
}

/// A backend whose tag is the same in all states.
fn with_one_tag(head: &str) -> String {
    let fields = "ETag: \"t\"\r\nX-Rev: t\r\nContent-Type: application/json";
    if head.contains("\r\nif-none-match: \"t\"\r\n") {
        return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n\r\n");
    }
    if head.contains("\r\nrange: ") && head.contains("\r\nif-range: \"t\"\r\n") {
        return format!(
            "HTTP/1.1 206 Partial Content\r\n{fields}\r\nContent-Range: bytes 0-1/11\r\nContent-Length: 2\r\n\r\n{{\""
        );
    }
    format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: 11\r\n\r\n{{\"rev\":\"t\"}}")
}

/// Rule 2: a write has its answer, and the store has missed its end. Until it is known to be over, a tag of the backend may
/// be that of the state before.
#[tokio::test]
async fn no_copy_is_confirmed_after_an_answered_write_whatever_operation_of_the_store_fails() {
    let header = TagSource::Header(HeaderName::from_static("x-rev"));
    let json = TagSource::Json(JsonPointer::parse("/rev").expect("a pointer"));
    let mut unrecorded = 0;
    for etag in [TagSource::Upstream, TagSource::Delegate, header, json] {
        for (number, earlier) in (0..8).flat_map(|number| [(number, false), (number, true)]) {
            let case = format!("{etag:?}, operation {number}, written before: {earlier}");
            let fixture = Fixture::with(GuardRules { etag: etag.clone(), ..guard() }).await;
            fixture.answer_reads(with_one_tag).await;
            if earlier {
                assert_eq!(fixture.put(&fixture.tag().await, "one").await.status, 204, "{case}");
            }
            let tag = fixture.tag().await;
            fixture.store.fail(Fault::Unavailable, When::From(number));
            let answered = fixture.put(&tag, "two").await.status;
            fixture.store.fail(Fault::Unavailable, When::Never);
            if answered != 204 {
                continue;
            }
            unrecorded += 1;
            let copy = fixture.send(Method::GET, &format!("If-None-Match: {tag}\r\n"), "").await;
            assert_eq!(copy.status, 200, "{case}: the copy is of the state before");
            let range = format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n");
            assert_eq!(fixture.send(Method::GET, &range, "").await.status, 200, "{case}: a part of another state");
        }
    }
    assert!(unrecorded >= 4, "the end of a write is missed in some run of each source");
}
