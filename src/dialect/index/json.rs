//! Indexes in JSON. A document is read once, and only the names in it are kept.

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::MalformedIndex;

/// The token that stands for each element of a list.
const EACH: &str = "*";

/// Takes a name.
type Add<'a> = &'a mut dyn FnMut(String);

/// Reads the names at this place of a document: texts, whole numbers, and lists of them.
pub(super) fn read(document: &[u8], tokens: &[String], add: Add<'_>) -> Result<(), MalformedIndex> {
    let text = String::from_utf8_lossy(document);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let is_there = NamesAt { tokens, add }.deserialize(&mut deserializer).map_err(|_error| MalformedIndex)?;
    deserializer.end().map_err(|_error| MalformedIndex)?;
    if is_there { Ok(()) } else { Err(MalformedIndex) }
}

/// Reads the names of the files in a document of nginx.
pub(super) fn read_nginx(document: &[u8], add: Add<'_>) -> Result<(), MalformedIndex> {
    let text = String::from_utf8_lossy(document);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    (&mut deserializer).deserialize_seq(Files(add)).map_err(|_error| MalformedIndex)?;
    deserializer.end().map_err(|_error| MalformedIndex)
}

/// An entry of nginx's list.
#[derive(Deserialize)]
struct ListedFile {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

struct Files<'a>(Add<'a>);

impl<'de> Visitor<'de> for Files<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of files")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(ListedFile { name, kind }) = entries.next_element()? {
            if kind == "file" {
                (self.0)(name);
            }
        }
        Ok(())
    }
}

/// The names at a place below the value that is read next. It tells whether there is such a place.
struct NamesAt<'t, 'a> {
    tokens: &'t [String],
    add: Add<'a>,
}

impl NamesAt<'_, '_> {
    fn name(self, name: String) -> bool {
        if self.tokens.is_empty() {
            (self.add)(name);
        }
        self.tokens.is_empty()
    }
}

impl<'de> DeserializeSeed<'de> for NamesAt<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NamesAt<'_, '_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.name(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(self.name(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(self.name(number.to_string()))
    }

    fn visit_f64<E>(self, _number: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        // Some servers write an empty list so.
        Ok(matches!(self.tokens, [] | [_]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<bool, A::Error> {
        let below = match self.tokens.split_first() {
            None => &[][..],
            Some((token, below)) if token == EACH => below,
            Some(_) => {
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
        };
        while elements.next_element_seed(NamesAt { tokens: below, add: &mut *self.add })?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let (step, mut is_there) = (self.tokens.split_first(), false);
        while let Some(name) = members.next_key::<String>()? {
            match step {
                Some((token, below)) if name == *token => {
                    is_there |= members.next_value_seed(NamesAt { tokens: below, add: &mut *self.add })?;
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(is_there)
    }
}
