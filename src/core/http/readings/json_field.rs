//! Header fields that hold JSON: one spelling for each value.
//!
//! # Design
//!
//! *Why is a value that is only nearly JSON refused?* `['a']` is no JSON, but lenient readers take it for `["a"]`.
//!
//! *Why are numbers read as doubles?* Readers that tell 1 from 1.0 then share one resource, which costs a refusal.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, de::IoRead};

use super::{body_name::NextMember, folding::simple_fold};

/// The one spelling of a JSON value in a header field. `None` if the text is not JSON, or has a second reading: it is
/// not ASCII, an object has one member twice in any letter case, or a number is too large for a double.
pub fn json_field(text: &[u8]) -> Option<String> {
    if !text.is_ascii() {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::new(IoRead::new(text));
    let Spelled(spelled) = Deserialize::deserialize(&mut deserializer).ok()?;
    deserializer.end().ok().map(|()| spelled)
}

/// A value in its one spelling.
struct Spelled(String);

impl<'de> Deserialize<'de> for Spelled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value with one reading")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<String, E> {
        number(&integer.to_string())
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<String, E> {
        number(&integer.to_string())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(Value::from(text).to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<String, A::Error> {
        let mut spelled = Vec::new();
        while let Some(Spelled(element)) = elements.next_element()? {
            spelled.push(element);
        }
        Ok(format!("[{}]", spelled.join(",")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<String, A::Error> {
        let mut spelled: Vec<(String, String)> = Vec::new();
        while let Some(member) = members.next_key()? {
            let NextMember::Named(name) = member else { return number(&members.next_value::<String>()?) };
            if spelled.iter().any(|(other, _)| simple_fold(other) == simple_fold(&name)) {
                return Err(A::Error::custom("readers differ on which of two members counts"));
            }
            let Spelled(value) = members.next_value()?;
            spelled.push((name, value));
        }
        spelled.sort();
        let members = spelled.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(name)));
        Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    }
}

/// Returns the one spelling of all numbers that are the same double.
fn number<E: Error>(digits: &str) -> Result<String, E> {
    match digits.parse::<f64>() {
        // The sum makes 0 of -0.
        Ok(double) if double.is_finite() => Ok((double + 0.0).to_string()),
        _ => Err(E::custom("the number is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 18: spellings of one value are one.
    #[test]
    fn one_value_has_one_spelling() {
        for (spellings, one) in [
            (&[r#"["a"]"#, r#"[ "a" ]"#, r#"["\u0061"]"#, "\t[\"a\"]\n"][..], r#"["a"]"#),
            (&["[1]", "[1.0]", "[1e0]", "[10e-1]"], "[1]"),
            (&["[0]", "[-0]", "[-0.0]"], "[0]"),
            (&["9007199254740992", "9007199254740993"], "9007199254740992"),
            (&[r#"["a\/b"]"#, r#"["a/b"]"#, r#"["a\u002fb"]"#], r#"["a/b"]"#),
            (&[r#"{"a": 1, "b": [null, true]}"#, r#"{"b":[null,true],"a":1.0}"#], r#"{"a":1,"b":[null,true]}"#),
            (&[r#"["1"]"#], r#"["1"]"#),
            (&[r#"["\u00e9"]"#], "[\"\u{e9}\"]"),
            (&["[{}]"], "[{}]"),
            (&["[]"], "[]"),
        ] {
            for spelling in spellings {
                assert_eq!(json_field(spelling.as_bytes()).as_deref(), Some(one), "{spelling}");
            }
        }
    }

    /// Rule 18: what a lenient reader takes for another value has no spelling.
    #[test]
    fn a_value_with_two_readings_has_none() {
        for text in [
            "",
            "a",
            "['a']",
            "[\"a\",]",
            "[\"a\"] x",
            "[\"a\"]//",
            "[\"a\"],[\"b\"]",
            "[01]",
            "[1e400]",
            "[NaN]",
            "[\"\u{e9}\"]",
            "[\"\\ud800\"]",
            "{\"a\": 1, \"a\": 1}",
            "{\"a\": 1, \"A\": 2}",
        ] {
            assert_eq!(json_field(text.as_bytes()), None, "{text}");
        }
        assert_eq!(json_field(&[b"[".repeat(10_000), b"]".repeat(10_000)].concat()), None);
        assert_ne!(json_field(br#"{"$serde_json::private::Number": "1"}"#).as_deref(), Some("1"));
    }
}
