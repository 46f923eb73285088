//! Spellings of paths and their normal forms (RFC 3986 sections 3.3, 5.2.4 and 6.2.2).

use proptest::{collection::vec, prelude::*, sample::select};

use super::{AmbiguousTarget::*, *};

const NOTHING: KeptInNames = KeptInNames::NOTHING;
const PARAMETERS: KeptInNames = KeptInNames { path_params: PathParameters::Keep, ..KeptInNames::NOTHING };
const SLASHES: KeptInNames = KeptInNames { encoded_slash: super::EncodedSlash::Keep, ..KeptInNames::NOTHING };

/// A spelling, what a route keeps, and the normal form or the refusal.
type Spelling = (&'static [u8], KeptInNames, Result<&'static str, AmbiguousTarget>);

const SPELLINGS: &[Spelling] = &[
    // Already normal.
    (b"/", NOTHING, Ok("/")),
    (b"/a", NOTHING, Ok("/a")),
    (b"/A", NOTHING, Ok("/A")),
    (b"/a/b.c/~d_-", NOTHING, Ok("/a/b.c/~d_-")),
    (b"/!$&'()*+,=:@", NOTHING, Ok("/!$&'()*+,=:@")),
    // Percent encodings.
    (b"/%61", NOTHING, Ok("/a")),
    (b"/%41%7e%2d", NOTHING, Ok("/A~-")),
    (b"/a%21", NOTHING, Ok("/a!")),
    (b"/a%2Bb", NOTHING, Ok("/a+b")),
    (b"/a%3ab%40c", NOTHING, Ok("/a:b@c")),
    (b"/a%20b", NOTHING, Ok("/a%20b")),
    (b"/a%3fb%23c", NOTHING, Ok("/a%3Fb%23c")),
    (b"/%c3%a9", NOTHING, Ok("/%C3%A9")),
    (b"/%C3%a9", NOTHING, Ok("/%C3%A9")),
    (b"/\xc3\xa9", NOTHING, Ok("/%C3%A9")),
    (b"/\xc3%A9", NOTHING, Ok("/%C3%A9")),
    (b"/%7b\"<>^`|}", NOTHING, Ok("/%7B%22%3C%3E%5E%60%7C%7D")),
    (b"/%252f", NOTHING, Ok("/%252f")),
    (b"/%252F", NOTHING, Ok("/%252F")),
    (b"/%2561", NOTHING, Ok("/%2561")),
    (b"/%25", NOTHING, Ok("/%25")),
    // Slashes and dot segments.
    (b"/a/", NOTHING, Ok("/a")),
    (b"/a//", NOTHING, Ok("/a")),
    (b"/a//b", NOTHING, Ok("/a/b")),
    (b"/a///b//", NOTHING, Ok("/a/b")),
    (b"/.", NOTHING, Ok("/")),
    (b"/a/./b", NOTHING, Ok("/a/b")),
    (b"/a/.", NOTHING, Ok("/a")),
    (b"/a/../b", NOTHING, Ok("/b")),
    (b"/a/b/..", NOTHING, Ok("/a")),
    (b"/a/..", NOTHING, Ok("/")),
    (b"/a/b/../../c", NOTHING, Ok("/c")),
    (b"/a/..//b", NOTHING, Ok("/b")),
    (b"/...", NOTHING, Ok("/...")),
    (b"/..a/.b", NOTHING, Ok("/..a/.b")),
    (b"/a%2eb", NOTHING, Ok("/a.b")),
    (b"/%2e%2e%2e", NOTHING, Ok("/...")),
    // Path parameters that are kept.
    (b"/a;x=1", PARAMETERS, Ok("/a;x=1")),
    (b"/a%3Bx=1", PARAMETERS, Ok("/a;x=1")),
    (b"/a%3bx%3d1", PARAMETERS, Ok("/a;x=1")),
    (b"/;", PARAMETERS, Ok("/;")),
    (b"/...;", PARAMETERS, Ok("/...;")),
    // Slashes that are kept.
    (b"/a%2Fb", SLASHES, Ok("/a%2Fb")),
    (b"/%61%2fb/c", SLASHES, Ok("/a%2Fb/c")),
    (b"/a%252Fb", SLASHES, Ok("/a%252Fb")),
    (b"/a%2Fb/../c", SLASHES, Ok("/c")),
    (b"/a%2F...", SLASHES, Ok("/a%2F...")),
    (b"/a%2F..", SLASHES, Err(EncodedDotSegment)),
    (b"/..%2Fa", SLASHES, Err(EncodedDotSegment)),
    (b"/a%2F.%2Fb", SLASHES, Err(EncodedDotSegment)),
    (b"/a%2F%2e%2E;x%2Fb", KeptInNames::ALL, Err(EncodedDotSegment)),
    (b"/a%5Cb", SLASHES, Err(Backslash)),
    (b"/a%2Fb;c", SLASHES, Err(PathParameter)),
    // Refused.
    (b"", NOTHING, Err(NotAPath)),
    (b"*", NOTHING, Err(NotAPath)),
    (b"a/b", NOTHING, Err(NotAPath)),
    (b"http://example.com/a", NOTHING, Err(NotAPath)),
    (b"%2fa", NOTHING, Err(NotAPath)),
    (b"/a?x", NOTHING, Err(NotAPath)),
    (b"//", NOTHING, Err(LeadingSlashes)),
    (b"//a/b", NOTHING, Err(LeadingSlashes)),
    (b"/A%2f", NOTHING, Err(EncodedSlash)),
    (b"/a%2Fb", NOTHING, Err(EncodedSlash)),
    (b"/..%2fa", NOTHING, Err(EncodedSlash)),
    (b"/a\\b", NOTHING, Err(Backslash)),
    (b"/a%5cb", NOTHING, Err(Backslash)),
    (b"/..%5C..", NOTHING, Err(Backslash)),
    (b"/%2e", NOTHING, Err(EncodedDotSegment)),
    (b"/a/%2e%2E/b", NOTHING, Err(EncodedDotSegment)),
    (b"/a/.%2e/b", NOTHING, Err(EncodedDotSegment)),
    (b"/a/%2e./b", NOTHING, Err(EncodedDotSegment)),
    (b"/a/..;x/b", PARAMETERS, Err(EncodedDotSegment)),
    (b"/a/.%3B", PARAMETERS, Err(EncodedDotSegment)),
    (b"/a/%2e%2e;/b", PARAMETERS, Err(EncodedDotSegment)),
    (b"/a\0", NOTHING, Err(Control)),
    (b"/a%00", NOTHING, Err(Control)),
    (b"/a%0d%0aX", NOTHING, Err(Control)),
    (b"/a\tb", NOTHING, Err(Control)),
    (b"/a%1f", NOTHING, Err(Control)),
    (b"/a\x7f", NOTHING, Err(Control)),
    (b"/a%7F", NOTHING, Err(Control)),
    (b"/a b", NOTHING, Err(Space)),
    (b"/a;x=1", NOTHING, Err(PathParameter)),
    (b"/a%3bx", NOTHING, Err(PathParameter)),
    (b"/a/..;/b", NOTHING, Err(PathParameter)),
    (b"/a#b", NOTHING, Err(Fragment)),
    (b"/a%", NOTHING, Err(BadPercentEncoding)),
    (b"/a%2", NOTHING, Err(BadPercentEncoding)),
    (b"/a%2/b", NOTHING, Err(BadPercentEncoding)),
    (b"/a%zz", NOTHING, Err(BadPercentEncoding)),
    (b"/a%%41", NOTHING, Err(BadPercentEncoding)),
    (b"/a%+1", NOTHING, Err(BadPercentEncoding)),
    (b"/a%u0041", NOTHING, Err(BadPercentEncoding)),
    (b"/\xff", NOTHING, Err(NotUtf8)),
    (b"/%FF", NOTHING, Err(NotUtf8)),
    (b"/%c3/%a9", NOTHING, Err(NotUtf8)),
    (b"/%C0%AF", NOTHING, Err(NotUtf8)),
    (b"/%c0%ae%c0%ae/a", NOTHING, Err(NotUtf8)),
    (b"/..", NOTHING, Err(AboveRoot)),
    (b"/../a", NOTHING, Err(AboveRoot)),
    (b"/a/../../b", NOTHING, Err(AboveRoot)),
    (b"/./../a", NOTHING, Err(AboveRoot)),
    (b"/a//../b", NOTHING, Err(ParentOfEmpty)),
    (b"/a//./../b", NOTHING, Err(ParentOfEmpty)),
    (b"/a//b/../../c", NOTHING, Err(ParentOfEmpty)),
];

/// RFC 3986 section 6.2.2, and the refusals of rule 10.
#[test]
fn every_spelling_has_its_normal_form_or_refusal() {
    for (spelled, kept, expected) in SPELLINGS {
        let normal = normalize(spelled, *kept);
        let found = normal.as_ref().map(NormalPath::as_str).map_err(|ambiguity| *ambiguity);
        assert_eq!(found, *expected, "{} with {kept:?}", spelled.escape_ascii());
    }
}

#[test]
fn refusals_say_what_is_wrong_without_quoting_the_request() {
    let refusal = normalize(b"/secret%2fname", NOTHING).unwrap_err().to_string();
    assert_eq!(refusal, "the path holds an encoded slash (%2F); use names without a slash, and \"/\" between them");
}

#[test]
fn segments_are_what_stands_between_the_slashes() {
    let segments = |path: &[u8]| normalize(path, NOTHING).unwrap().segments().map(str::to_owned).collect::<Vec<_>>();
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

fn kept() -> impl Strategy<Value = KeptInNames> {
    select(&[NOTHING, PARAMETERS, SLASHES, KeptInNames::ALL][..])
}

proptest! {
    #[test]
    fn a_normal_form_is_its_own_normal_form(spelled in spelling(), kept in kept()) {
        if let Ok(normal) = normalize(&spelled, kept) {
            prop_assert_eq!(normalize(normal.as_str().as_bytes(), kept), Ok(normal));
        }
    }

    #[test]
    fn a_normal_form_has_one_alphabet_and_no_odd_segments(spelled in spelling(), kept in kept()) {
        if let Ok(normal) = normalize(&spelled, kept) {
            prop_assert!(normal.as_str() == "/" || normal.as_str().split('/').skip(1).all(|segment| {
                !matches!(segment, "" | "." | "..") && segment.bytes().all(is_segment_character)
            }), "{}", normal.as_str());
        }
    }
}

/// RFC 3986 section 2.3; and nginx, among others, decodes the reserved characters too.
#[test]
fn encoding_an_octet_changes_no_accepted_name() {
    // An encoded percent sign or slash differs from a raw one, in any surroundings.
    for octet in (0..=u8::MAX).filter(|octet| !b"%/".contains(octet)) {
        if let Ok(raw) = normalize(&[b'/', b'x', octet], KeptInNames::ALL) {
            assert_eq!(normalize(format!("/x%{octet:02x}").as_bytes(), KeptInNames::ALL), Ok(raw), "{octet:#x}");
        }
    }
}
