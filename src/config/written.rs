//! Values as a file has them: each with its position, and with its form for the JSON Schema.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::words::Word;

/// A value and its position. `F` describes its form in the JSON Schema.
pub(super) struct Written<T, F = T> {
    value: Spanned<T>,
    form: PhantomData<F>,
}

/// A text.
pub(super) type Text = Written<String>;
/// A whole number.
pub(super) type Number = Written<i64>;
/// A number with a fraction.
pub(super) type Ratio = Written<f64>;
/// True or false.
pub(super) type WrittenFlag = Written<bool>;
/// A list of texts.
pub(super) type Texts = Written<Vec<Text>>;

/// The form of a duration: `"1h 30m"`.
pub(super) struct DurationForm;
/// The form of a size: `"64KiB"`.
pub(super) struct SizeForm;
/// The form of a word for a `T`.
pub(super) struct WordForm<T>(PhantomData<T>);

/// A duration as the file spells it.
pub(super) type WrittenTime = Written<String, DurationForm>;
/// A size as the file spells it.
pub(super) type WrittenSize = Written<String, SizeForm>;
/// A word for a value.
pub(super) type WrittenWord<T> = Written<String, WordForm<T>>;

/// The pattern of a text whose value comes from the environment.
const VARIABLE: &str = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}";

impl<T, F> Written<T, F> {
    /// Returns the value.
    pub(super) fn get_ref(&self) -> &T {
        self.value.get_ref()
    }

    /// Returns the position of the value in the text.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }
}

impl<'de, T: Deserialize<'de>, F> Deserialize<'de> for Written<T, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(|value| Self { value, form: PhantomData })
    }
}

impl<T: fmt::Debug, F> fmt::Debug for Written<T, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get_ref().fmt(formatter)
    }
}

impl<T: PartialEq, F> PartialEq for Written<T, F> {
    fn eq(&self, other: &Self) -> bool {
        self.get_ref() == other.get_ref()
    }
}

impl<T: Eq, F> Eq for Written<T, F> {}

impl<T: PartialOrd, F> PartialOrd for Written<T, F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.get_ref().partial_cmp(other.get_ref())
    }
}

impl<T: Ord, F> Ord for Written<T, F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get_ref().cmp(other.get_ref())
    }
}

impl<T, F: JsonSchema> JsonSchema for Written<T, F> {
    fn inline_schema() -> bool {
        F::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        F::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        F::json_schema(generator)
    }
}

/// Implements the schema of a form that is a pattern of texts.
macro_rules! pattern {
    ($form:ty, $name:literal, $pattern:expr, $example:literal) => {
        impl JsonSchema for $form {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                let pattern = format!("^({})$|{VARIABLE}", $pattern);
                json_schema!({ "type": "string", "pattern": pattern, "examples": [$example] })
            }
        }
    };
}

pattern!(DurationForm, "duration", r"\s*([0-9]+(\.[0-9]+)?\s*[a-zA-Zµ]+\s*)+", "1h 30m");
pattern!(SizeForm, "size", r"\s*[0-9]+\s*([KMGT]i?)?B\s*", "64KiB");

impl<T: Word> JsonSchema for WordForm<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
        // A form is a word with a part of the user's choice behind a colon: "header:NAME".
        let forms = T::FORMS.iter().filter_map(|form| form.split_once(':')).map(|(word, _)| format!("^{word}:."));
        let patterns: Vec<_> = forms.chain([VARIABLE.to_owned()]).collect();
        json_schema!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": patterns.join("|") }] })
    }
}
