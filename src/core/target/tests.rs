//! Spellings of paths and their normal forms (RFC 3986 sections 3.3, 5.2.4 and 6.2.2).

use proptest::{collection::vec, prelude::*, sample::select};

use super::{AmbiguousTarget::*, PathParameters::*, *};

/// A spelling, what a route does with `;`, and the normal form or the refusal.
type Spelling = (&'static [u8], PathParameters, Result<&'static str, AmbiguousTarget>);

const SPELLINGS: &[Spelling] = &[
    // Already normal.
    (b"/", Refuse, Ok("/")),
    (b"/a", Refuse, Ok("/a")),
    (b"/A", Refuse, Ok("/A")),
    (b"/a/b.c/~d_-", Refuse, Ok("/a/b.c/~d_-")),
    (b"/!$&'()*+,=:@", Refuse, Ok("/!$&'()*+,=:@")),
    // Percent encodings.
    (b"/%61", Refuse, Ok("/a")),
    (b"/%41%7e%2d", Refuse, Ok("/A~-")),
    (b"/a%21", Refuse, Ok("/a!")),
    (b"/a%2Bb", Refuse, Ok("/a+b")),
    (b"/a%3ab%40c", Refuse, Ok("/a:b@c")),
    (b"/a%20b", Refuse, Ok("/a%20b")),
    (b"/a%3fb%23c", Refuse, Ok("/a%3Fb%23c")),
    (b"/%c3%a9", Refuse, Ok("/%C3%A9")),
    (b"/%C3%a9", Refuse, Ok("/%C3%A9")),
    (b"/\xc3\xa9", Refuse, Ok("/%C3%A9")),
    (b"/\xc3%A9", Refuse, Ok("/%C3%A9")),
    (b"/%7b\"<>^`|}", Refuse, Ok("/%7B%22%3C%3E%5E%60%7C%7D")),
    (b"/%252f", Refuse, Ok("/%252f")),
    (b"/%252F", Refuse, Ok("/%252F")),
    (b"/%2561", Refuse, Ok("/%2561")),
    (b"/%25", Refuse, Ok("/%25")),
    // Slashes and dot segments.
    (b"/a/", Refuse, Ok("/a")),
    (b"/a//", Refuse, Ok("/a")),
    (b"/a//b", Refuse, Ok("/a/b")),
    (b"/a///b//", Refuse, Ok("/a/b")),
    (b"/.", Refuse, Ok("/")),
    (b"/a/./b", Refuse, Ok("/a/b")),
    (b"/a/.", Refuse, Ok("/a")),
    (b"/a/../b", Refuse, Ok("/b")),
    (b"/a/b/..", Refuse, Ok("/a")),
    (b"/a/..", Refuse, Ok("/")),
    (b"/a/b/../../c", Refuse, Ok("/c")),
    (b"/a/..//b", Refuse, Ok("/b")),
    (b"/...", Refuse, Ok("/...")),
    (b"/..a/.b", Refuse, Ok("/..a/.b")),
    (b"/a%2eb", Refuse, Ok("/a.b")),
    (b"/%2e%2e%2e", Refuse, Ok("/...")),
    // Path parameters that are kept.
    (b"/a;x=1", Keep, Ok("/a;x=1")),
    (b"/a%3Bx=1", Keep, Ok("/a;x=1")),
    (b"/a%3bx%3d1", Keep, Ok("/a;x=1")),
    (b"/;", Keep, Ok("/;")),
    (b"/...;", Keep, Ok("/...;")),
    // Refused.
    (b"", Refuse, Err(NotAPath)),
    (b"*", Refuse, Err(NotAPath)),
    (b"a/b", Refuse, Err(NotAPath)),
    (b"http://example.com/a", Refuse, Err(NotAPath)),
    (b"%2fa", Refuse, Err(NotAPath)),
    (b"/a?x", Refuse, Err(NotAPath)),
    (b"//", Refuse, Err(LeadingSlashes)),
    (b"//a/b", Refuse, Err(LeadingSlashes)),
    (b"/A%2f", Refuse, Err(EncodedSlash)),
    (b"/a%2Fb", Refuse, Err(EncodedSlash)),
    (b"/..%2fa", Refuse, Err(EncodedSlash)),
    (b"/a\\b", Refuse, Err(Backslash)),
    (b"/a%5cb", Refuse, Err(Backslash)),
    (b"/..%5C..", Refuse, Err(Backslash)),
    (b"/%2e", Refuse, Err(EncodedDotSegment)),
    (b"/a/%2e%2E/b", Refuse, Err(EncodedDotSegment)),
    (b"/a/.%2e/b", Refuse, Err(EncodedDotSegment)),
    (b"/a/%2e./b", Refuse, Err(EncodedDotSegment)),
    (b"/a/..;x/b", Keep, Err(EncodedDotSegment)),
    (b"/a/.%3B", Keep, Err(EncodedDotSegment)),
    (b"/a/%2e%2e;/b", Keep, Err(EncodedDotSegment)),
    (b"/a\0", Refuse, Err(Control)),
    (b"/a%00", Refuse, Err(Control)),
    (b"/a%0d%0aX", Refuse, Err(Control)),
    (b"/a\tb", Refuse, Err(Control)),
    (b"/a%1f", Refuse, Err(Control)),
    (b"/a\x7f", Refuse, Err(Control)),
    (b"/a%7F", Refuse, Err(Control)),
    (b"/a b", Refuse, Err(Space)),
    (b"/a;x=1", Refuse, Err(PathParameter)),
    (b"/a%3bx", Refuse, Err(PathParameter)),
    (b"/a/..;/b", Refuse, Err(PathParameter)),
    (b"/a#b", Refuse, Err(Fragment)),
    (b"/a%", Refuse, Err(BadPercentEncoding)),
    (b"/a%2", Refuse, Err(BadPercentEncoding)),
    (b"/a%2/b", Refuse, Err(BadPercentEncoding)),
    (b"/a%zz", Refuse, Err(BadPercentEncoding)),
    (b"/a%%41", Refuse, Err(BadPercentEncoding)),
    (b"/a%+1", Refuse, Err(BadPercentEncoding)),
    (b"/a%u0041", Refuse, Err(BadPercentEncoding)),
    (b"/\xff", Refuse, Err(NotUtf8)),
    (b"/%FF", Refuse, Err(NotUtf8)),
    (b"/%c3/%a9", Refuse, Err(NotUtf8)),
    (b"/%C0%AF", Refuse, Err(NotUtf8)),
    (b"/%c0%ae%c0%ae/a", Refuse, Err(NotUtf8)),
    (b"/..", Refuse, Err(AboveRoot)),
    (b"/../a", Refuse, Err(AboveRoot)),
    (b"/a/../../b", Refuse, Err(AboveRoot)),
    (b"/./../a", Refuse, Err(AboveRoot)),
    (b"/a//../b", Refuse, Err(ParentOfEmpty)),
    (b"/a//./../b", Refuse, Err(ParentOfEmpty)),
    (b"/a//b/../../c", Refuse, Err(ParentOfEmpty)),
];

/// RFC 3986 section 6.2.2, and the refusals of rule 10.
#[test]
fn every_spelling_has_its_normal_form_or_refusal() {
    for (spelled, parameters, expected) in SPELLINGS {
        let normal = normalize(spelled, *parameters);
        let found = normal.as_ref().map(NormalPath::as_str).map_err(|ambiguity| *ambiguity);
        assert_eq!(found, *expected, "{} with {parameters:?}", spelled.escape_ascii());
    }
}

#[test]
fn refusals_say_what_is_wrong_without_quoting_the_request() {
    let refusal = normalize(b"/secret%2fname", Refuse).unwrap_err().to_string();
    assert_eq!(refusal, "the path holds an encoded slash (%2F); use names without a slash, and \"/\" between them");
}

#[test]
fn segments_are_what_stands_between_the_slashes() {
    let segments = |path: &[u8]| normalize(path, Refuse).unwrap().segments().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(segments(b"/"), [""; 0]);
    assert_eq!(segments(b"/a//%62/"), ["a", "b"]);
}

/// RFC 3986 section 3.4.
#[test]
fn the_query_begins_after_the_first_question_mark() {
    for target in [&b"/a"[..], b"/a?", b"/a?b?c=/d"] {
        let (path, query) = split_query(target);
        assert_eq!(join_query(path, query), target);
    }
    assert_eq!(split_query(b"/a"), (&b"/a"[..], None));
    assert_eq!(split_query(b"/a?"), (&b"/a"[..], Some(&b""[..])));
    assert_eq!(split_query(b"/a?b?c=/d"), (&b"/a"[..], Some(&b"b?c=/d"[..])));
}

/// Paths made of the pieces that servers read differently.
fn spelling() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"/",
        b"/",
        b"/",
        b".",
        b"..",
        b"%2e",
        b"a",
        b"%61",
        b"%41",
        b"!",
        b"%21",
        b"%2F",
        b";",
        b"%3b",
        b"\xc3\xa9",
        b"%c3%A9",
        b"\xff",
        b"%",
        b"%25",
        b"2f",
        b" ",
        b"%20",
        b"\\",
        b"#",
        b"?",
        b"\0",
        b"~",
        b"+",
    ];
    let pieces = vec(select(PIECES), 0..12).prop_map(|pieces| pieces.concat());
    pieces.prop_map(|tail| [b"/", tail.as_slice()].concat())
}

fn parameters() -> impl Strategy<Value = PathParameters> {
    select(&[Refuse, Keep][..])
}

proptest! {
    #[test]
    fn a_normal_form_is_its_own_normal_form(spelled in spelling(), parameters in parameters()) {
        if let Ok(normal) = normalize(&spelled, parameters) {
            prop_assert_eq!(normalize(normal.as_str().as_bytes(), parameters), Ok(normal));
        }
    }

    #[test]
    fn a_normal_form_has_one_alphabet_and_no_odd_segments(spelled in spelling(), parameters in parameters()) {
        if let Ok(normal) = normalize(&spelled, parameters) {
            prop_assert!(normal.as_str() == "/" || normal.as_str().split('/').skip(1).all(|segment| {
                !matches!(segment, "" | "." | "..") && segment.bytes().all(is_segment_character)
            }), "{}", normal.as_str());
        }
    }
}

/// RFC 3986 section 2.3; and nginx, among others, decodes the reserved characters too.
#[test]
fn encoding_an_octet_changes_no_accepted_name() {
    // An encoded percent sign or slash differs from a raw one, whatever stands around it.
    for octet in (0..=u8::MAX).filter(|octet| !b"%/".contains(octet)) {
        if let Ok(raw) = normalize(&[b'/', b'x', octet], Keep) {
            assert_eq!(normalize(format!("/x%{octet:02x}").as_bytes(), Keep), Ok(raw), "{octet:#x}");
        }
    }
}
