//! The names in a JSON body, and the bodies that readers understand differently.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, de::IoRead};

use super::*;

fn name(text: &[u8], pointer: &str) -> Result<Option<String>, ()> {
    let pointer = JsonPointer::parse(pointer).expect("a pointer");
    name_from_json(IoRead::new(text), &pointer).map_err(drop)
}

fn version(text: &[u8], pointer: &str) -> Result<Option<String>, ()> {
    let pointer = JsonPointer::parse(pointer).expect("a pointer");
    version_from_json(IoRead::new(text), &pointer).map_err(drop)
}

#[test]
fn a_member_names_a_resource() {
    for (text, at, expected) in [
        (r#"{"a": [1, {"b": [null, true, 1.5e400]}], "id": "a/b c"}"#, "/id", Some("a/b c")),
        (r#"{"id": -12}"#, "/id", Some("-12")),
        (r#"{"id": 0}"#, "/id", Some("0")),
        (r#"{"id": 9007199254740992}"#, "/id", Some("9007199254740992")),
        (r#"{"id": "9007199254740993"}"#, "/id", Some("9007199254740993")),
        (r#"{"meta": {"id": ""}, "id": 7}"#, "/meta/id", Some("")),
        (r#"{"\u0069d": "\u0037"}"#, "/id", Some("7")),
        (r#"{"ID ": 7, "_id": 8, "ids": 9}"#, "/id", None),
        (r#"{"meta": {}}"#, "/meta/id", None),
        ("{}", "/meta/id", None),
    ] {
        assert_eq!(name(text.as_bytes(), at), Ok(expected.map(str::to_owned)), "{text}");
    }
}

/// Rule 18: Go folds the names of members, and of two the last one counts.
#[test]
fn a_member_that_some_reader_takes_for_the_name_is_an_error() {
    for (text, at) in [
        (r#"{"id": 7, "id": 7}"#, "/id"),
        (r#"{"id": 7, "Id": 8}"#, "/id"),
        (r#"{"ID": 8}"#, "/id"),
        (r#"{"\u0131d": 8}"#, "/id"),
        (r#"{"ſku": 2}"#, "/sku"),
        (r#"{"sku": 1, "\u017fku": 2}"#, "/sku"),
        (r#"{"\u212aey": 2}"#, "/key"),
        (r#"{"key": 1, "\u212aey": 2}"#, "/key"),
        (r#"{"straẞe": 1}"#, "/straße"),
        (r#"{"meta": {"id": 1, "ID": 2}}"#, "/meta/id"),
        (r#"{"meta": {"id": 1}, "META": {"id": 2}}"#, "/meta/id"),
        (r#"{"meta": {"id": 1}, "meta": {}}"#, "/meta/id"),
        (r#"{"id\u0000x": 2}"#, "/id"),
        (r#"{"__proto__": {"id": 2}}"#, "/id"),
        (r#"{"meta": {"\u005f_proto__": {"id": 2}}}"#, "/meta/id"),
    ] {
        assert_eq!(name(text.as_bytes(), at), Err(()), "{text}");
    }
}

/// Rule 18: JavaScript reads each number as a double.
#[test]
fn a_number_that_readers_differ_on_is_an_error() {
    for number in [
        "7.0",
        "7e0",
        "0.7e1",
        "-0",
        "1e400",
        "9007199254740993",
        "-9007199254740993",
        "9007199254740994",
        "18446744073709551616",
        "123456789012345678901234567890",
        "07",
        "+7",
        "0x7",
        "NaN",
        "Infinity",
    ] {
        assert_eq!(name(format!("{{\"id\": {number}}}").as_bytes(), "/id"), Err(()), "{number}");
    }
}

/// Rule 18: a text that is JSON to some readers alone names nothing.
#[test]
fn a_text_with_two_readings_is_an_error() {
    for text in [
        &b""[..],
        b"id=7",
        b"7",
        b"null",
        b"\"id\"",
        b"[{\"id\": 7}]",
        b"{\"id\": 7} {\"id\": 8}",
        b"{\"id\": 7}//",
        b"{\"id\": 7, }",
        b"{\"id\": 7, /* */ \"a\": 1}",
        b"{'id': 7}",
        b"{id: 7}",
        b"{\"id\": 7",
        b"{\"id\": null}",
        b"{\"id\": true}",
        b"{\"id\": [\"7\"]}",
        b"{\"id\": {\"id\": 7}}",
        b"{\"id\": {\"$serde_json::private::Number\": \"7\"}}",
        b"{\"id\": \"\\ud800\"}",
        b"{\"id\": 7, \"a\": \"\\ud800\"}",
        b"{\"id\": 7, \"\\udc00\": 1}",
        b"{\"id\": 7, \"a\": \"\xff\"}",
        b"{\"id\": 7, \"a\": \"\xc3\", \"b\": \"\"}",
        b"{\"id\": 7, \"a\": \"\x01\"}",
        b"{\"id\": 7, \"a\": NaN}",
        b"\xef\xbb\xbf{\"id\": 7}",
        b"{\x00\"\x00i\x00d\x00\"\x00:\x007\x00}\x00",
        b"\x0c{\"id\": 7}",
    ] {
        assert_eq!(name(text, "/id"), Err(()), "{}", text.escape_ascii());
    }
    let deep = format!("{{\"id\": 7, \"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(name(deep.as_bytes(), "/id"), Err(()));
    assert_eq!(name(br#"{"ids": [7]}"#, "/ids/0"), Err(()));
    assert_eq!(name(br#"{"meta": 7}"#, "/meta/id"), Err(()));
    assert_eq!(name(br#"{"meta": null}"#, "/meta/id"), Err(()));
}

/// A client that creates an object has no version, and libraries of many languages send null or an empty text for it.
#[test]
fn null_and_an_empty_text_are_no_version() {
    for (text, at, expected) in [
        (r#"{"_rev": "2-b"}"#, "/_rev", Some("2-b")),
        (r#"{"_rev": 0}"#, "/_rev", Some("0")),
        (r#"{"_rev": " "}"#, "/_rev", Some(" ")),
        (r#"{"_rev": null}"#, "/_rev", None),
        (r#"{"_rev": ""}"#, "/_rev", None),
        (r#"{"metadata": {"resourceVersion": null}}"#, "/metadata/resourceVersion", None),
        (r#"{"metadata": {"resourceVersion": ""}}"#, "/metadata/resourceVersion", None),
        ("{}", "/metadata/resourceVersion", None),
    ] {
        assert_eq!(version(text.as_bytes(), at), Ok(expected.map(str::to_owned)), "{text}");
    }
}

/// Rule 18: the reader that finds no version in one member may find one in the other.
#[test]
fn no_version_beside_another_reading_is_an_error() {
    for text in [
        r#"{"_rev": null, "_rev": "1-a"}"#,
        r#"{"_rev": "", "_REV": "1-a"}"#,
        r#"{"_rev": false}"#,
        r#"{"_rev": []}"#,
        "null",
        "",
    ] {
        assert_eq!(version(text.as_bytes(), "/_rev"), Err(()), "{text}");
    }
}

/// The members of one object, in order, with their names as escapes were decoded.
type Members = Vec<(String, Value)>;

/// JavaScript: the exact name, the last of two, and numbers are doubles.
fn javascript(members: &[(String, Value)], wanted: &str) -> Option<String> {
    let object: Map<String, Value> = members.iter().cloned().collect();
    let proto = object.get("__proto__").and_then(|proto| proto.get(wanted));
    text_of_double(object.get(wanted).or(proto)?)
}

/// Returns the text that JavaScript makes of a value inside a text, such as a path.
fn text_of_double(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // Shorter than 1e21 it is a number without an exponent, and `-0` is `0`.
        Value::Number(number) => number.as_f64().map(|double| (double + 0.0).to_string()),
        _ => None,
    }
}

/// Go: the names are folded as Unicode says, and the last one counts. Integers are read as they are, others are errors.
fn go(members: &[(String, Value)], wanted: &str) -> Option<String> {
    let groups = |name: &str| name.chars().map(smallest_of_group).collect::<String>();
    let (_, value) = members.iter().rev().find(|(name, _)| groups(name) == groups(wanted))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => number.to_string().parse::<i64>().ok().map(|number| number.to_string()),
        _ => None,
    }
}

/// `unicode.SimpleFold`, for the letters of the generator.
fn smallest_of_group(character: char) -> char {
    match character {
        'ſ' | 's' => 'S',
        '\u{212A}' | 'k' => 'K',
        other => other.to_ascii_uppercase(),
    }
}

/// System.Text.Json: capitals of single characters (`OrdinalIgnoreCase`), the last one counts.
fn dot_net(members: &[(String, Value)], wanted: &str) -> Option<String> {
    let capitals = |name: &str| {
        let capital = |character: char| character.to_uppercase().next().unwrap_or(character);
        name.chars().map(capital).collect::<String>()
    };
    let (_, value) = members.iter().rev().find(|(name, _)| capitals(name) == capitals(wanted))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => number.to_string().parse::<i64>().ok().map(|number| number.to_string()),
        _ => None,
    }
}

/// Every spelling of a letter, raw or escaped, that some reader takes for it.
fn spelled(letter: char) -> impl Strategy<Value = String> {
    let letters: &[char] = match letter {
        's' => &['s', 'S', 'ſ'],
        'k' => &['k', 'K', '\u{212A}'],
        'i' => &['i', 'I', 'ı', 'İ'],
        'd' => &['d', 'D'],
        _ => &['u', 'U', 'x'],
    };
    (select(letters), any::<bool>()).prop_map(|(letter, is_escaped)| {
        if is_escaped { format!("\\u{:04x}", u32::from(letter)) } else { letter.to_string() }
    })
}

/// A member: its name is `skid` in any spelling, or another one.
fn member() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => ['s', 'k', 'i', 'd'].map(spelled).prop_map(|letters| letters.concat()),
        1 => vec(spelled('u'), 0..3).prop_map(|letters| letters.concat()),
        1 => Just("__proto__".to_owned()),
    ];
    let value = select(vec![
        "1",
        "\"1\"",
        "2",
        "\"2\"",
        "\"\\u0032\"",
        "2.0",
        "2e0",
        "-0",
        "0",
        "\"0\"",
        "null",
        "[2]",
        "{\"skid\": 2}",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "\"9007199254740993\"",
    ]);
    (name, value).prop_map(|(name, value)| format!("\"{name}\": {value}"))
}

/// The members of a text in their order, which a map would lose.
struct Ordered(Members);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members, A::Error> {
                let mut all = Members::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(All).map(Ordered)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// Rule 18: a body is an error, or each of three readers finds the resource that ifmatch finds.
    #[test]
    fn all_readers_find_the_same_resource(members in vec(member(), 0..4)) {
        let text = format!("{{{}}}", members.join(", "));
        let Ordered(members) = serde_json::from_str(&text).expect("JSON");
        if let Ok(named) = name(text.as_bytes(), "/skid") {
            for read in [javascript, go, dot_net] {
                prop_assert_eq!(read(&members, "skid"), named.clone(), "{}", &text);
            }
        }
    }
}
