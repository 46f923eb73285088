//! One declaration for each key. A table of the file is a [`section!`], and each row of it is a key: its sentence, the
//! type that the program sees, the [`ValueKind`] of its value with the default, and its range.
//!
//! # Design
//!
//! *What does a row become?* The field of the program's struct, the field of the mirror that reads the file, and the
//! reading itself. It also becomes the line of the admin view, and the entry of the list of keys that need a restart.
//! From its [`Key`](super::Key), the JSON Schema and the reference page take the range and the sentence.
//!
//! *Which rules are in no row?* Those over several keys: `validate` has them.
//!
//! *Which keys stand under `by hand`?* Those without a default or a value of their own. The mirror has them, and code in
//! `validate` reads them. `path`, `upstream` and `policy` must be there. `key`, `also_changes` and `writes_to` mean
//! something only together with the captures of the path. `path_params` and `encoded_slash` also count on routes
//! without a guard, which have no section. Which of the connection keys of a store count depends on its `kind`.
//!
//! *Why a macro?* The type and the mirror differ from key to key, so no list of values could make both.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    check::Check,
    section::{Form, Keys, Layers},
};

/// A struct of the program that a table of the file fills.
pub(super) trait Section: InWords + Sized {
    /// The mirror of the table.
    type Keys: Keys;
    /// The facts beside the table that the reading needs.
    type Given;

    /// Reads all keys. `at` is the path of the table in messages, with a dot at its end.
    fn read(check: &mut Check<'_>, at: &str, written: Layers<'_, Self::Keys>, given: Self::Given) -> Self;

    /// Returns the keys that only a start reads, and that differ.
    fn differing_at_start(&self, other: &Self) -> Vec<&'static str>;

    /// Returns this section, with the running process's values for the keys that only a start reads.
    fn beside(self, running: &Self) -> Self;
}

/// How the value of a key is written, read and shown; `V` is what the program sees.
pub(super) trait ValueKind<V: InWords> {
    /// The field of the mirror.
    type Written: Form;
    /// The terms in a row: the default, and the range.
    type Terms;

    /// Returns the value, or the default if the key is absent or wrong.
    fn read(check: &mut Check<'_>, key: &str, written: InForce<'_, Self::Written>, terms: Self::Terms) -> V;

    /// Shows a value in the words of the file.
    fn show(value: &V) -> Value {
        value.shown()
    }
}

/// A value that is shown in the words of the file.
pub(super) trait InWords {
    /// Returns the value in these words.
    fn shown(&self) -> Value;
}

/// The part of a key's written values that is in force.
pub(super) type InForce<'a, W> = <W as Form>::InForce<'a>;

/// The end of a range, as a file spells it.
pub(super) trait Bound {
    /// Returns the text.
    fn spelled(&self) -> Cow<'static, str>;
}

/// Declares a table of the file, row by row:
///
/// ```text
/// /// SENTENCE
/// FIELD["KEY"]: TYPE = KIND(DEFAULT) in RANGE, restart;
/// ```
///
/// `["KEY"]` stands where the field has another name than the key. `in RANGE` stands where the kind has one, and `,
/// restart` where only a start reads the key. `pub struct` declares the struct too, and `fills` uses one of a room
/// below. A default can name the fields of the rows above.
macro_rules! section {
    ($(#[$about:meta])* $visible:vis struct $section:ident of $keys:ident $(given ($($given:ident: $given_type:ty),+))? {
        $($body:tt)*
    }) => {
        section!(@struct [$(#[$about])*] $visible $section { $($body)* });
        section!(fills $section of $keys $(given ($($given: $given_type),+))? { $($body)* });
    };
    (@struct [$($about:tt)*] $visible:vis $section:ident {
        $(by hand { $($by_hand:tt)* })?
        $($(#[doc = $sentence:literal])+ $field:ident $([$key:tt])?: $value:ty =
            $kind:ident($($default:expr),*) $(in $bounds:expr)? $(, $start:ident)?;)*
        $(besides { $($(#[doc = $other_about:literal])+ $other:ident: $other_type:ty = $made:expr;)* })?
    }) => {
        $($about)*
        $visible struct $section {
            $($(#[doc = $sentence])+ pub $field: $value,)*
            $($($(#[doc = $other_about])+ pub $other: $other_type,)*)?
        }
    };
    (fills $section:ident of $keys:ident $(given ($($given:ident: $given_type:ty),+))? {
        $(by hand { $($by_hand:tt)* })?
        $($(#[doc = $sentence:literal])+ $field:ident $([$key:tt])?: $value:ty =
            $kind:ident($($default:expr),*) $(in $bounds:expr)? $(, $start:ident)?;)*
        $(besides { $($(#[doc = $other_about:literal])+ $other:ident: $other_type:ty = $made:expr;)* })?
    }) => {
        section!(keys $keys {
            $($($by_hand)*)?
            $($(#[doc = $sentence])+ $field $([$key])?: <$kind as $crate::config::table::ValueKind<$value>>::Written
                $(where $bounds)? $(, $start)?;)*
        });

        impl $crate::config::table::InWords for $section {
            fn shown(&self) -> serde_json::Value {
                let mut keys = serde_json::Map::new();
                $(keys.insert(
                    section!(@name $field $($key)?).to_owned(),
                    <$kind as $crate::config::table::ValueKind<$value>>::show(&self.$field),
                );)*
                serde_json::Value::Object(keys)
            }
        }

        impl $crate::config::table::Section for $section {
            type Keys = $keys;
            type Given = ($($($given_type,)+)?);

            fn read(
                check: &mut $crate::config::check::Check<'_>,
                at: &str,
                written: $crate::config::section::Layers<'_, $keys>,
                given: Self::Given,
            ) -> Self {
                let ($($($given,)+)?) = given;
                $(let $field: $value = <$kind as $crate::config::table::ValueKind<$value>>::read(
                    check,
                    &format!("{at}{}", section!(@name $field $($key)?)),
                    $crate::config::section::Form::in_force(written.part(|keys| &keys.$field)),
                    section!(@terms ($($default),*) $($bounds)?),
                );)*
                $($(let $other: $other_type = $made;)*)?
                Self { $($field,)* $($($other,)*)? }
            }

            fn differing_at_start(&self, other: &Self) -> Vec<&'static str> {
                // A table may have no such key.
                let _ = other;
                let differs: &[(&'static str, bool)] = &[
                    $((section!(@name $field $($key)?), section!(@differs $($start)? (self.$field) (other.$field))),)*
                ];
                differs.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
            }

            fn beside(self, running: &Self) -> Self {
                let _ = running;
                $(let $field = section!(@kept $($start)? (self.$field) (running.$field));)*
                Self { $($field,)* $($($other: self.$other,)*)? }
            }
        }
    };
    (keys $keys:ident {
        $($(#[doc = $sentence:literal])+ $field:ident $([$key:tt])?: $written:ty $(where $bounds:expr)?
            $(, $start:ident)?;)*
    }) => {
        #[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct $keys {
            $($(#[doc = $sentence])+ $(#[serde(rename = $key)])? pub(super) $field: $written,)*
        }

        impl $crate::config::section::Keys for $keys {
            const SHAPES: &'static [(&'static str, Option<$crate::config::section::Shape>)] =
                &[$((section!(@name $field $($key)?), <$written as $crate::config::section::Form>::SHAPE),)*];

            fn list(at: &str, at_start: bool, found: &mut Vec<$crate::config::section::Key>) {
                $(
                    let path = format!("{at}{}", section!(@name $field $($key)?));
                    let at_start_alone = at_start || !stringify!($($start)?).is_empty();
                    let bounds = [$($crate::config::table::bounds(&$bounds))?];
                    let sentence = concat!($($sentence),+).trim().to_owned();
                    found.push($crate::config::section::Key {
                        path: path.clone(),
                        sentence,
                        bounds: bounds.into_iter().next(),
                        at_start: at_start_alone,
                    });
                    <$written as $crate::config::section::Form>::list(&format!("{path}."), at_start_alone, found);
                )*
            }
        }

        impl $crate::config::section::Form for $keys {
            type InForce<'a> = $crate::config::section::Layers<'a, Self>;

            const SHAPE: Option<$crate::config::section::Shape> =
                Some($crate::config::section::Shape::Table($crate::config::section::clean::<$keys>));

            fn in_force(written: $crate::config::section::Layers<'_, Self>) -> Self::InForce<'_> {
                written
            }

            fn list(at: &str, at_start: bool, found: &mut Vec<$crate::config::section::Key>) {
                <$keys as $crate::config::section::Keys>::list(at, at_start, found);
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:tt) => { $key };
    (@terms ($($default:expr),*)) => { ($($default),*) };
    (@terms ($($default:expr),*) $bounds:expr) => { ($($default,)* $bounds) };
    (@differs ($own:expr) ($other:expr)) => { false };
    (@differs restart ($own:expr) ($other:expr)) => { $own != $other };
    (@kept ($own:expr) ($running:expr)) => { $own };
    (@kept restart ($own:expr) ($running:expr)) => { $running.clone() };
}
pub(super) use section;

/// Returns the ends of a range, as a file spells them.
pub(super) fn bounds<B: Bound>(range: &std::ops::RangeInclusive<B>) -> (String, String) {
    (range.start().spelled().into_owned(), range.end().spelled().into_owned())
}

/// Returns the section of a table without any key.
#[cfg(test)]
pub(super) fn of_an_empty_table<S: Section<Keys: Default, Given = ()>>() -> S {
    let (source, written) = (super::problem::Source { name: "", text: "" }, super::section::WrittenKeys::default());
    let mut check = Check { source, written: &written, problems: Vec::new(), warnings: Vec::new() };
    S::read(&mut check, "", Layers::only(&S::Keys::default()), ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::config::{
        kinds::{Count, Flag, Time},
        problem::Source,
        section::{Key, WrittenKeys},
        units::{ms, seconds},
    };

    section! {
        /// A table of this test.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) struct Engine of EngineKeys {
            /// The number of cylinders.
            cylinders: usize = Count(4) in 1..=16, restart;
            /// The number of valves.
            valve_count["valves"]: usize = Count(cylinders * 2) in 2..=64;
            /// How long it may take to start.
            max_start_time: Duration = Time(seconds(2)) in ms(10)..=seconds(60);
            /// True if it is a diesel.
            diesel: bool = Flag(false);
        }
    }

    /// Reads a text, and returns the messages of its problems.
    fn read(text: &str) -> (Engine, Vec<String>) {
        let (source, written) = (Source { name: "", text }, WrittenKeys::default());
        let mut check = Check { source, written: &written, problems: Vec::new(), warnings: Vec::new() };
        let keys: EngineKeys = toml::from_str(text).expect("the keys are known");
        let engine = Engine::read(&mut check, "engine.", Layers::only(&keys), ());
        (engine, check.problems.iter().map(|problem| problem.message().to_owned()).collect())
    }

    /// One row is all that a key needs: nothing else here names `cylinders` or `valves`.
    #[test]
    fn a_row_makes_all_forms_of_its_key() {
        let (engine, problems) = read("cylinders = 6\nmax_start_time = \"1s\"");
        assert_eq!(engine, Engine { cylinders: 6, valve_count: 12, max_start_time: seconds(1), diesel: false });
        assert_eq!(problems, [""; 0]);
        assert_eq!(read("cylinders = 99").1, ["engine.cylinders is 99, it is from 1 to 16"]);
        assert_eq!(read("valves = 1").1, ["engine.valves is 1, it is from 2 to 64"]);
        assert!(toml::from_str::<EngineKeys>("valve_count = 2").is_err(), "the field's name is no key");

        let shown = json!({ "cylinders": 6, "valves": 12, "max_start_time": "1s", "diesel": false });
        assert_eq!(engine.shown(), shown);

        let later = read("cylinders = 8\nvalves = 4\ndiesel = true").0;
        assert_eq!(engine.differing_at_start(&later), ["cylinders"]);
        assert_eq!(later.clone().beside(&engine), Engine { cylinders: 6, ..later });

        let mut listed = Vec::new();
        <EngineKeys as Keys>::list("engine.", false, &mut listed);
        let key = |path: &str, sentence: &str, bounds: Option<(&str, &str)>, at_start| Key {
            path: format!("engine.{path}"),
            sentence: sentence.to_owned(),
            bounds: bounds.map(|(least, most)| (least.to_owned(), most.to_owned())),
            at_start,
        };
        let expected = [
            key("cylinders", "The number of cylinders.", Some(("1", "16")), true),
            key("valves", "The number of valves.", Some(("2", "64")), false),
            key("max_start_time", "How long it may take to start.", Some(("10ms", "1m")), false),
            key("diesel", "True if it is a diesel.", None, false),
        ];
        assert_eq!(listed, expected);

        let schema = schemars::schema_for!(EngineKeys);
        assert_eq!(schema.pointer("/properties/valves/description"), Some(&json!("The number of valves.")));
        assert_eq!(schema.pointer("/additionalProperties"), Some(&json!(false)));
    }
}
