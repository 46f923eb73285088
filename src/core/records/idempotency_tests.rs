use http::HeaderValue;

use super::*;
use crate::{core::records::first_attempt::AttemptSender, testing::fields};

fn key(value: &str) -> Result<Option<Vec<u8>>, MalformedKey> {
    let mut headers = HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    key_of(&headers, &[IDEMPOTENCY_KEY])
}

#[test]
fn a_route_heeds_keys_or_demands_them_or_takes_no_notice() {
    let heeded = |idempotency, lines: &[(&'static str, &'static str)]| {
        let rules = GuardRules { idempotency, ..crate::testing::guard() };
        heeded_key(&fields(lines), &rules).map_err(|refusal| refusal.code)
    };
    let (readable, malformed) = (&[("idempotency-key", "\"a\"")][..], &[("idempotency-key", "\"a")][..]);
    for (idempotency, of_none, of_readable, of_malformed) in [
        (Idempotency::Off, Ok(None), Ok(None), Ok(None)),
        (Idempotency::Accept, Ok(None), Ok(Some(b"a".to_vec())), Err(Code::MalformedRequest)),
        (Idempotency::Required, Err(Code::IdempotencyKeyMissing), Ok(Some(b"a".to_vec())), Err(Code::MalformedRequest)),
    ] {
        assert_eq!(heeded(idempotency, &[]), of_none, "{idempotency:?}");
        assert_eq!(heeded(idempotency, readable), of_readable, "{idempotency:?}");
        assert_eq!(heeded(idempotency, malformed), of_malformed, "{idempotency:?}");
    }
}

fn fingerprint(target: &str, lines: &[(&'static str, &'static str)], body: &str) -> Fingerprint {
    Fingerprint::of((&Method::PUT, target.as_bytes()), &fields(lines), &blake3::hash(body.as_bytes()), &[])
}

fn sent(fingerprint: Fingerprint) -> SentWrite {
    SentWrite { fingerprint, sender: AttemptSender { owner: [1; 16], credentials: [2; 16] } }
}

fn answer() -> KeptAnswer {
    KeptAnswer { status: 201, fields: vec![("etag".to_owned(), b"\"1\"".to_vec())], body: None }
}

/// RFC 9651 section 3.3.3.
#[test]
fn a_key_is_a_quoted_string_or_the_same_without_quotes() {
    let longest = "k".repeat(KEY_BYTES_MAX);
    for (value, expected) in [
        ("\"8e03978e-40d5\"", "8e03978e-40d5"),
        ("8e03978e-40d5", "8e03978e-40d5"),
        (" \"a b\" ", "a b"),
        (r#""a\"b\\c""#, r#"a"b\c"#),
        ("\"a,b;c\"", "a,b;c"),
        (&longest, &longest),
    ] {
        assert_eq!(key(value), Ok(Some(expected.as_bytes().to_vec())), "{value}");
    }
}

/// RFC 9651 section 4.2.5.
#[test]
fn what_is_no_string_is_no_key() {
    let too_long = "k".repeat(KEY_BYTES_MAX + 1);
    for value in
        ["", "\"\"", "\"", "\"a", "\"a\"b", "\"a\";b=1", r#""\a""#, r#""a\"#, "a b", "a,b", "a\"b", "ä", &too_long]
    {
        assert_eq!(key(value), Err(MalformedKey), "{value}");
    }
    let twice = fields(&[("idempotency-key", "a"), ("idempotency-key", "a")]);
    assert_eq!(key_of(&twice, &[IDEMPOTENCY_KEY]), Err(MalformedKey));
}

#[test]
fn the_first_field_that_is_there_names_the_write() {
    let other = HeaderName::from_static("x-request");
    assert_eq!(key_of(&fields(&[("x-request", "a b")]), &[IDEMPOTENCY_KEY, other.clone()]), Ok(None));
    let names = [IDEMPOTENCY_KEY, other];
    assert_eq!(key_of(&HeaderMap::new(), &names), Ok(None));
    assert_eq!(key_of(&fields(&[("x-request", "b")]), &names), Ok(Some(b"b".to_vec())));
    assert_eq!(key_of(&fields(&[("x-request", "b"), ("idempotency-key", "a")]), &names), Ok(Some(b"a".to_vec())));
}

#[test]
fn whatever_changes_the_meaning_of_a_write_changes_its_fingerprint() {
    let lines = [("content-type", "text/plain"), ("if-match", "\"1\"")];
    let first = fingerprint("/a?b", &lines, "one");
    assert_eq!(first, fingerprint("/a?b", &lines, "one"));
    assert_eq!(first, fingerprint("/a?b", &[lines[1], lines[0]], "one"), "the order of fields means nothing");
    for (target, lines, body) in [
        ("/a", &lines[..], "one"),
        ("/a?b", &lines, "two"),
        ("/a?b", &lines[1..], "one"),
        ("/a?b", &[lines[0], lines[1], ("content-encoding", "gzip")], "one"),
        ("/a?b", &[lines[0], lines[1], lines[1]], "one"),
        ("/a?b", &[("content-type", "text/plain"), ("if-match", "\"2\"")], "one"),
        ("/a?b", &[("content-type", "text/plain"), ("if-none-match", "\"1\"")], "one"),
        ("/a?b", &[lines[0], lines[1], ("if", "(<urn:uuid:1>)")], "one"),
        ("/a?b", &[lines[0], lines[1], ("destination", "/b")], "one"),
        ("/a?b", &[lines[0], lines[1], ("overwrite", "F")], "one"),
        ("/a?b", &[lines[0], lines[1], ("depth", "0")], "one"),
    ] {
        assert_ne!(first, fingerprint(target, lines, body), "{target} {lines:?} {body}");
    }
    let body = blake3::hash(b"one");
    assert_ne!(first, Fingerprint::of((&Method::PATCH, b"/a?b"), &fields(&lines), &body, &[]));
}

/// Rule 21: fields of the attempt, credentials and the length of the content make no other write, in any number.
#[test]
fn what_belongs_to_one_attempt_is_no_part_of_the_fingerprint() {
    let first = fingerprint("/", &[("content-type", "a")], "one");
    for name in
        ["content-length", "date", "user-agent", "accept", "authorization", "cookie", "x-meta", "lease-id", "iffy"]
    {
        let lines = [("content-type", "a"), (name, "1"), (name, "2")];
        assert_eq!(fingerprint("/", &lines, "one"), first, "{name}");
    }
}

/// In some dialects other fields hold the content too.
#[test]
fn content_in_fields_of_a_dialect_counts() {
    let of = |value: &'static str| {
        let lines = fields(&[("x-ms-meta-color", value)]);
        Fingerprint::of((&Method::PUT, b"/"), &lines, &blake3::hash(b""), &["x-ms-meta-"])
    };
    assert_eq!(of("red"), of("red"));
    assert_ne!(of("red"), of("blue"));
}

/// draft-ietf-httpapi-idempotency-key-header-06 section 2.6.
#[test]
fn a_retry_gets_the_answer_of_the_first_attempt_once_it_is_there() {
    let same = sent(fingerprint("/", &[], "one"));
    let replay = Replay { answer: answer(), needs_permission: false };
    assert_eq!(recognise((same, Progress::Answered(answer())), same), Ok(replay));
    let in_flight = recognise((same, Progress::InFlight), same).unwrap_err();
    assert_eq!((in_flight.code, in_flight.in_doubt), (Code::IdempotencyInFlight, false));
    let left = Duration::from_secs(3);
    let in_doubt = recognise((same, Progress::InDoubt(left)), same).unwrap_err();
    assert_eq!((in_doubt.code, in_doubt.in_doubt), (Code::IdempotencyInFlight, true));
    assert_eq!(in_doubt.retry_after, Some(left));
    let unknown = recognise((same, Progress::Unknown), same).unwrap_err();
    assert_eq!((unknown.code, unknown.in_doubt, unknown.retry_after), (Code::IdempotencyOutcomeUnknown, false, None));
}

fn each_progress() -> [Progress; 4] {
    [Progress::Answered(answer()), Progress::InFlight, Progress::InDoubt(Duration::ZERO), Progress::Unknown]
}

#[test]
fn another_payload_is_told_nothing_of_the_first() {
    let (first, other) = (sent(fingerprint("/", &[], "one")), sent(fingerprint("/", &[], "two")));
    for progress in each_progress() {
        assert_eq!(recognise((first, progress), other).unwrap_err().code, Code::IdempotencyMismatch);
    }
}

/// Rule 21: only the owner of a key learns anything about its write.
#[test]
fn another_identity_is_told_nothing_of_the_first() {
    let first = sent(fingerprint("/", &[], "one"));
    for body in ["one", "two"] {
        let sender = AttemptSender { owner: [9; 16], ..first.sender };
        let other = SentWrite { sender, ..sent(fingerprint("/", &[], body)) };
        for progress in each_progress() {
            let refusal = recognise((first, progress), other).unwrap_err();
            assert_eq!((refusal.code, refusal.retry_after), (Code::IdempotencyKeyInUse, None));
        }
    }
}

/// Rule 21: the backend lets the new credentials of an owner read first.
#[test]
fn other_credentials_of_the_owner_need_permission() {
    let first = sent(fingerprint("/", &[], "one"));
    let sender = AttemptSender { credentials: [9; 16], ..first.sender };
    let replay = recognise((first, Progress::Answered(answer())), SentWrite { sender, ..first });
    assert_eq!(replay, Ok(Replay { answer: answer(), needs_permission: true }));
}

#[test]
fn a_replay_speaks_of_the_resource_and_not_of_the_first_exchange() {
    let answer = fields(&[
        ("etag", "\"1\""),
        ("location", "/a"),
        ("content-type", "text/plain"),
        ("content-location", "/a"),
        ("x-amz-version-id", "7"),
        ("set-cookie", "a=b"),
        ("date", "now"),
        ("content-length", "3"),
        ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ]);
    let names = |body: Option<Bytes>| {
        let kept = KeptAnswer::of(StatusCode::OK, &answer, body);
        let mut names: Vec<String> = kept.fields.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    };
    assert_eq!(names(None), ["content-location", "etag", "location", "x-amz-version-id"]);
    let with_body = ["content-location", "content-type", "etag", "location", "x-amz-version-id"];
    assert_eq!(names(Some(Bytes::from_static(b"one"))), with_body);
}
