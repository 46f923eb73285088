use proptest::prelude::*;
use serde_json::json;

use super::*;

fn place(text: &str) -> JsonPointer {
    JsonPointer::parse(text).expect(text)
}

fn tag(text: &str) -> EntityTag {
    EntityTag::parse(text.as_bytes()).expect(text)
}

fn rest(text: &str, pointer: &str) -> Option<String> {
    without_tag(text.as_bytes(), &place(pointer)).map(|taken| String::from_utf8(taken.rest).unwrap())
}

fn tagged(text: &str, pointer: &str) -> Option<String> {
    with_tag(text.as_bytes(), &place(pointer), Some(&tag("\"1\""))).map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn a_member_is_taken_out_with_one_comma() {
    for (text, left) in [
        (r#"{"t":1}"#, "{}"),
        (r#"{ "t" : 1 }"#, "{  }"),
        (r#"{"t":1, "b":2}"#, r#"{"b":2}"#),
        (r#"{ "t":1 , "b":2}"#, r#"{ "b":2}"#),
        (r#"{"a":1 , "t":2}"#, r#"{"a":1}"#),
        (r#"{"a":1 , "t":2 }"#, r#"{"a":1 }"#),
        (r#"{"a":[1,{"t":3}], "t":{"x":"}"} ,"b":"\"t\":"}"#, r#"{"a":[1,{"t":3}] ,"b":"\"t\":"}"#),
        (r#"{"\u0074":1,"b":2}"#, r#"{"b":2}"#),
        (r#"{"t":1,"b":2,"t":3}"#, r#"{"b":2}"#),
        (r#"{"t":1,"t":2,"b":3,"t":4,"t":5,"c":6}"#, r#"{"b":3,"c":6}"#),
        ("\n{\"t\":1}\n", "\n{}\n"),
    ] {
        assert_eq!(rest(text, "/t").as_deref(), Some(left), "{text}");
    }
    for text in ["", "1", "[]", "[{\"t\":1}]", "{}", r#"{"T":1}"#, r#"{"a":{"t":1}}"#, r#"{"t":1"#, r#"{"t":1}{}"#] {
        assert_eq!(rest(text, "/t"), None, "{text}");
    }
    assert_eq!(without_tag(b"{\"t\":\"\xff\"}", &place("/t")), None, "no UTF-8");
}

#[test]
fn an_object_that_held_nothing_else_goes_too() {
    for (text, left) in [
        (r#"{"a":1,"meta":{"t":1}}"#, r#"{"a":1}"#),
        (r#"{"meta":{"t":1},"a":1}"#, r#"{"a":1}"#),
        (r#"{"meta":{"x":{},"t":1},"a":1}"#, r#"{"meta":{"x":{}},"a":1}"#),
        (r#"{"meta":{"t":1},"meta":{"t":2,"b":3}}"#, r#"{"meta":{"b":3}}"#),
    ] {
        assert_eq!(rest(text, "/meta/t").as_deref(), Some(left), "{text}");
    }
    for text in [r#"{"meta":{}}"#, r#"{"meta":[{"t":1}]}"#, r#"{"meta":"t"}"#, r#"{"t":1}"#] {
        assert_eq!(rest(text, "/meta/t"), None, "{text}");
    }
}

#[test]
fn a_tag_is_put_in_exactly_as_its_field_has_it() {
    for (text, pointer, expected) in [
        ("{}", "/t", r#"{"t":"\"1\""}"#),
        ("{ }", "/t", r#"{"t":"\"1\"" }"#),
        (r#"{"a":1 }"#, "/t", r#"{"a":1,"t":"\"1\"" }"#),
        (r#"{"t":0,"a":1}"#, "/t", r#"{"a":1,"t":"\"1\""}"#),
        (r#"{"t":0,"a":1,"t":2}"#, "/t", r#"{"a":1,"t":"\"1\""}"#),
        (r#"{"a":1}"#, "/m/t", r#"{"a":1,"m":{"t":"\"1\""}}"#),
        (r#"{"m":{"a":{}}}"#, "/m/n/t", r#"{"m":{"a":{},"n":{"t":"\"1\""}}}"#),
        ("{}", "/@odata.etag", r#"{"@odata.etag":"\"1\""}"#),
        ("{}", "/a\"~1", r#"{"a\"/":"\"1\""}"#),
    ] {
        assert_eq!(tagged(text, pointer).as_deref(), Some(expected), "{text} {pointer}");
    }
    for (text, pointer) in [("[]", "/t"), ("1", "/t"), ("", "/t"), (r#"{"m":1}"#, "/m/t"), (r#"{"m":[]}"#, "/m/0")] {
        assert_eq!(tagged(text, pointer), None, "{text} {pointer}");
    }
    let weak = with_tag(b"{}", &place("/t"), Some(&tag("W/\"1\"")));
    assert_eq!(weak.as_deref(), Some(&br#"{"t":"W/\"1\""}"#[..]));
}

#[test]
fn without_a_tag_the_member_says_nothing() {
    assert_eq!(with_tag(br#"{"t":"old","a":1}"#, &place("/t"), None).as_deref(), Some(&br#"{"a":1}"#[..]));
    assert_eq!(with_tag(br#"{"a":1}"#, &place("/t"), None), None);
    // A place below the member of a list, or of a text, is no member of an object.
    assert_eq!(with_tag(br#"{"m":[]}"#, &place("/m/t"), Some(&tag("\"1\""))), None);
}

#[test]
fn a_member_that_occurs_twice_has_no_value() {
    let value = |text: &str| without_tag(text.as_bytes(), &place("/m/t")).expect(text).value;
    assert_eq!(value(r#"{"m":{"t":"\"1\""}}"#), Some(json!("\"1\"")));
    for text in [r#"{"m":{"t":1,"t":1}}"#, r#"{"m":{"t":1},"m":{}}"#, r#"{"m":{"t":1},"\u006d":2}"#] {
        assert_eq!(value(text), None, "{text}");
    }
}

/// A value as it may be spelled, beyond what programs hold.
fn spelled_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("123456789012345678901234567890.10".to_owned()),
        Just("1E400".to_owned()),
        Just("-0".to_owned()),
        Just(r#""\u0041\/\n\ud834\udd1e}{,:\"""#.to_owned()),
        "\"[a-z{}:, ]{0,5}\"",
    ];
    let blanks = "[ \n\t\r]{0,2}";
    leaf.prop_recursive(3, 16, 3, move |inner| {
        prop_oneof![
            prop::collection::vec((blanks, inner.clone()), 0..3).prop_map(|list| format!(
                "[{}]",
                list.iter().map(|(b, v)| format!("{b}{v}{b}")).collect::<Vec<_>>().join(",")
            )),
            members(inner).prop_map(|members| object(&members, "")),
        ]
    })
}

/// Members, none of which has the name of the tag or of an object around it.
fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<(String, String, String)>> {
    prop::collection::vec(("[ \n\t\r]{0,2}", r#""[a-l]{0,2}""#, value), 0..4)
}

fn object(members: &[(String, String, String)], end: &str) -> String {
    let members: Vec<_> =
        members.iter().map(|(blank, name, value)| format!("{blank}{name}{blank}:{blank}{value}{blank}")).collect();
    format!("{{{}{end}}}", members.join(","))
}

proptest! {
    /// The tag goes in and out, and no other byte has changed.
    #[test]
    fn a_text_without_the_member_stays_as_it_was(members in members(spelled_value()), end in "[ \n]{0,2}", deep: bool) {
        let text = object(&members, &end);
        let pointer = place(if deep { "/x/y/t" } else { "/t" });
        prop_assert_eq!(without_tag(text.as_bytes(), &pointer), None);
        let tagged = with_tag(text.as_bytes(), &pointer, Some(&tag("\"a\""))).expect("an object");
        let taken = without_tag(&tagged, &pointer).expect("the member");
        prop_assert_eq!(taken.value, Some(json!("\"a\"")));
        prop_assert_eq!(String::from_utf8(taken.rest).unwrap(), text);
    }

    /// Wherever the member stands, the others keep their bytes and their order.
    #[test]
    fn the_other_members_keep_their_bytes(
        members in members(spelled_value()), at in 0_usize..4, value in spelled_value(), around: bool,
    ) {
        let other = |(_, name, value): &(String, String, String)| (String::new(), name.clone(), value.clone());
        let others: Vec<_> = members.iter().map(other).collect();
        let mut with_member = others.clone();
        let (name, value) = if around { ("\"m\"", format!("{{\"t\":{value}}}")) } else { ("\"t\"", value) };
        with_member.insert(at.min(others.len()), (String::new(), name.to_owned(), value));
        let pointer = place(if around { "/m/t" } else { "/t" });
        let taken = without_tag(object(&with_member, "").as_bytes(), &pointer).expect("the member");
        prop_assert_eq!(String::from_utf8(taken.rest).unwrap(), object(&others, ""));
        prop_assert!(taken.value.is_some());
    }

    /// With any bytes, the edited text is JSON with the tag.
    #[test]
    fn what_is_edited_is_json(text in prop_oneof![any::<Vec<u8>>(), "[{}\\[\\]\",:t\\\\ 1u]{0,24}".prop_map(String::into_bytes)]) {
        if let Some(edited) = with_tag(&text, &place("/t"), Some(&tag("\"a\""))) {
            let read: serde_json::Map<String, Value> = serde_json::from_slice(&edited).expect("an object");
            prop_assert_eq!(read.get("t"), Some(&json!("\"a\"")));
        }
    }
}
