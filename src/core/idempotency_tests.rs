use http::HeaderValue;

use super::*;

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let field =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    lines.iter().map(field).collect()
}

fn key(value: &str) -> Result<Option<Vec<u8>>, MalformedKey> {
    let mut headers = HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    key_of(&headers, &[IDEMPOTENCY_KEY])
}

fn fingerprint(target: &str, lines: &[(&'static str, &'static str)], body: &str) -> Fingerprint {
    Fingerprint::of(target.as_bytes(), &fields(lines), &blake3::hash(body.as_bytes()))
}

fn success() -> Success {
    Success { status: 201, fields: vec![("etag".to_owned(), b"\"1\"".to_vec())], body: None }
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
        ("/a?b", &[lines[0], lines[1], ("x-meta", "a")], "one"),
        ("/a?b", &[lines[0], lines[1], lines[1]], "one"),
        ("/a?b", &[("content-type", "text/plain"), ("if-match", "\"2\"")], "one"),
        ("/a?b", &[("content-type", "text/plain"), ("if-none-match", "\"1\"")], "one"),
    ] {
        assert_ne!(first, fingerprint(target, lines, body), "{target} {lines:?} {body}");
    }
}

#[test]
fn what_belongs_to_one_attempt_is_no_part_of_the_fingerprint() {
    let first = fingerprint("/", &[("x-meta", "a")], "one");
    for field in FRAMING.iter().chain(&[header::CONNECTION, header::TE]).chain(&OF_THE_ATTEMPT) {
        let lines =
            fields(&[("x-meta", "a")]).into_iter().chain([(Some(field.clone()), HeaderValue::from_static("1"))]);
        let headers = lines.filter_map(|(name, value)| Some((name?, value))).collect();
        assert_eq!(Fingerprint::of(b"/", &headers, &blake3::hash(b"one")), first, "{field}");
    }
}

/// The fields that a signature covers are part of the credentials.
#[test]
fn the_attempt_counts_where_it_is_signed() {
    for credentials in ["SharedKey alice:MQ==", "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu/s3/aws4_request"] {
        let at = |date| fingerprint("/", &[("authorization", credentials), ("x-amz-date", date)], "one");
        assert_eq!(at("1"), at("1"));
        assert_ne!(at("1"), at("2"), "{credentials}");
    }
    let at = |date| fingerprint("/", &[("authorization", "Bearer a"), ("x-amz-date", date)], "one");
    assert_eq!(at("1"), at("2"));
}

/// draft-ietf-httpapi-idempotency-key-header-06 section 2.6.
#[test]
fn a_retry_gets_the_answer_of_the_first_attempt_only_if_that_was_a_success() {
    let same = fingerprint("/", &[], "one");
    assert_eq!(recognise((same, Progress::Succeeded(success())), same), Ok(success()));
    let in_flight = recognise((same, Progress::InFlight), same).unwrap_err();
    assert_eq!((in_flight.code, in_flight.in_doubt), (Code::IdempotencyInFlight, false));
    let left = Duration::from_secs(3);
    let in_doubt = recognise((same, Progress::InDoubt(left)), same).unwrap_err();
    assert_eq!((in_doubt.code, in_doubt.in_doubt), (Code::IdempotencyInFlight, true));
    assert_eq!(in_doubt.retry_after, Some(left));
}

#[test]
fn another_payload_is_told_nothing_of_the_first() {
    let (first, other) = (fingerprint("/", &[], "one"), fingerprint("/", &[], "two"));
    for progress in [Progress::InFlight, Progress::InDoubt(Duration::ZERO), Progress::Succeeded(success())] {
        assert_eq!(recognise((first, progress), other).unwrap_err().code, Code::IdempotencyMismatch);
    }
}

/// DESIGN, section 3, rule 3: a doubt is neither a success nor a failure.
#[test]
fn only_what_the_upstream_took_is_remembered_as_a_success() {
    for (answered, in_doubt, expected) in [
        (Some(200), false, End::Success(StatusCode::OK)),
        (Some(202), false, End::Success(StatusCode::ACCEPTED)),
        (Some(200), true, End::Doubt),
        (Some(502), false, End::Doubt),
        (Some(504), false, End::Doubt),
        (None, true, End::Doubt),
        (Some(500), false, End::Nothing),
        (Some(303), false, End::Nothing),
        (Some(412), false, End::Nothing),
        (None, false, End::Nothing),
    ] {
        let answered = answered.map(|status| StatusCode::from_u16(status).unwrap());
        assert_eq!(End::of(answered, in_doubt), expected, "{answered:?} {in_doubt}");
    }
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
        let success = Success::of(StatusCode::OK, &answer, body);
        let mut names: Vec<String> = success.fields.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    };
    assert_eq!(names(None), ["content-location", "etag", "location", "x-amz-version-id"]);
    let with_body = ["content-location", "content-type", "etag", "location", "x-amz-version-id"];
    assert_eq!(names(Some(Bytes::from_static(b"one"))), with_body);
}
