//! The grammar of RFC 4918 section 10.4.2, and fields that break it.

use proptest::prelude::*;

use super::*;

const UUID: &str = "181d4fae-7d8c-11d0-a765-00a0c91e6bf2";

/// Writes a field in short: `t` is a lock, `u` an unknown token, `!` stands for `Not`.
fn shown(value: &str) -> Result<String, MalformedIf> {
    let part = |part: &IfPart| {
        let state = match &part.state {
            State::Locked(StateToken::Lock(id)) if id.reveal() == UUID => "t".to_owned(),
            State::Locked(StateToken::Lock(_)) => "other".to_owned(),
            State::Locked(StateToken::Unknown) => "u".to_owned(),
            State::Tagged(tag) => tag.to_header_value().to_str().expect("visible").to_owned(),
        };
        format!("{}{state}", if part.is_negated { "!" } else { "" })
    };
    let list = |list: &IfList| format!("({})", list.iter().map(part).collect::<Vec<_>>().join(" "));
    let group = |group: &Group| {
        let lists = group.lists.iter().map(list).collect::<String>();
        format!("{}{lists}", group.resource.as_deref().unwrap_or_default())
    };
    Ok(If::parse(value.as_bytes())?.groups().iter().map(group).collect::<Vec<_>>().join(" "))
}

#[test]
fn each_form_of_the_rfc_is_read() {
    let token = format!("<urn:uuid:{UUID}>");
    for (value, expected) in [
        (format!("({token})"), "(t)"),
        (format!("  (  {token} )  "), "(t)"),
        (format!("(<OpaqueLockToken:{}>)", UUID.to_uppercase()), "(t)"),
        (format!("({token} [\"I am an ETag\"])"), "no"),
        (format!("({token} [\"an-ETag\"]) ([\"another\"])"), "(t \"an-ETag\")(\"another\")"),
        (format!("({token}[W/\"a\"])"), "(t W/\"a\")"),
        (format!("(Not {token} <urn:uuid:58f202ac-22cf-11d1-b12d-002035b29092>)"), "(!t other)"),
        (format!("(not{token})(NOT [\"x\"])"), "(!t)(!\"x\")"),
        (format!("({token}) (Not <DAV:no-lock>)"), "(t)(!u)"),
        (format!("</specs/a.doc> ({token})"), "/specs/a.doc(t)"),
        (format!("<http://h/a> ({token})\t([\"t\"]) </b>([\"])(,<>\"])"), "http://h/a(t)(\"t\") /b(\"])(,<>\")"),
        (format!("(<{token}>)"), "no"),
        (format!("(<opaquelocktoken:{UUID}x>)"), "(u)"),
        (format!("(<opaquelocktoken:{}>)", UUID.replace('-', "")), "(u)"),
        (format!("(<opaquelocktoken:{{{UUID}}}>)"), "(u)"),
        (format!("(<{UUID}>)"), "(u)"),
    ] {
        let read = shown(&value).unwrap_or_else(|_| "no".to_owned());
        assert_eq!(read, expected, "{value}");
    }
}

#[test]
fn what_is_no_list_of_conditions_is_refused() {
    for value in [
        "",
        " ",
        "()",
        "( )",
        "(Not)",
        "(Not Not <a:b>)",
        "<a:b>",
        "</a> </b> (<a:b>)",
        "(<a:b>",
        "(<a:b)",
        "(a:b)",
        "(<a:b>) </a> (<a:b>)",
        "</a> (<a:b>) x",
        "(<a:b>),(<a:b>)",
        "([a])",
        "([\"a])",
        "([\"a\")",
        "([\"a\" \"b\"])",
        "([w/\"a\"])",
        "([\"a b\"])",
        "(<>)",
        "<> (<a:b>)",
        "(<a b>)",
        "(<a:\u{e4}>)",
        "[\"a\"]",
        "(<a:b>) )",
        "((<a:b>))",
    ] {
        assert_eq!(If::parse(value.as_bytes()), Err(MalformedIf::Grammar), "{value}");
    }
}

/// Rule 13: a field has a limit in bytes and in parts.
#[test]
fn a_field_has_limits() {
    let parts = |count: usize| format!("({})", "<a:b>".repeat(count));
    assert!(If::parse(parts(PARTS_MAX).as_bytes()).is_ok());
    assert_eq!(If::parse(parts(PARTS_MAX + 1).as_bytes()), Err(MalformedIf::TooLong));
    let lists = "(<a:b>)".repeat(PARTS_MAX + 1);
    assert_eq!(If::parse(lists.as_bytes()), Err(MalformedIf::TooLong));
    let long = |length: usize| format!("(<a:{}>)", "b".repeat(length - 6));
    assert!(If::parse(long(BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(If::parse(long(BYTES_MAX + 1).as_bytes()), Err(MalformedIf::TooLong));
}

/// RFC 4918 section 10.4.1: a token counts at any place.
#[test]
fn each_token_is_submitted() {
    let value = format!("</a> (Not <urn:uuid:{UUID}> <DAV:no-lock>) ([\"x\"] <opaquelocktoken:{UUID}>)");
    let submitted = If::parse(value.as_bytes()).expect("well-formed");
    let ids: Vec<_> = submitted.submitted().map(|id| id.reveal()).collect();
    assert_eq!(ids, [UUID, UUID]);
}

proptest! {
    #[test]
    fn no_value_makes_the_reader_panic(value in "[ -~]{0,64}|([(<>)\\[\\]\"Not ab:/W]){0,64}") {
        let _read = If::parse(value.as_bytes());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(value in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _read = If::parse(&value);
    }
}
