//! The kinds of values that the keys of a table have.

use std::{borrow::Cow, collections::BTreeMap, ops::RangeInclusive, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use super::{
    check::{Check, Limit},
    section::{Form, Layers},
    table::{Bound, InForce, InWords, Section, ValueKind},
    units::{show_duration, show_size},
    words::Word,
    written::{Number, Ratio, Text, Texts, Written, WrittenFlag, WrittenSize, WrittenTime, WrittenWord},
};
use crate::core::tags::{json::JsonPointer, version_source::VersionSource};

/// A whole number.
pub(super) struct Count;
/// A number of bytes, written with a unit.
pub(super) struct Size;
/// A duration, written with a unit.
pub(super) struct Time;
/// A part of a whole, from 0 to 1.
pub(super) struct Fraction;
/// True or false.
pub(super) struct Flag;
/// A word of a closed set.
pub(super) struct OneOf;
/// A list of words of a closed set.
pub(super) struct SomeOf;
/// A name that appears in logs and keys.
pub(super) struct PlainName;
/// An absolute path, with the hint for any other one.
pub(super) struct Path;
/// A list whose elements a function reads.
pub(super) struct List;
/// A table within the table.
pub(super) struct Table;

// The type of a whole number in a row, which has no other reason for its type.
impl Bound for i32 {
    fn spelled(&self) -> Cow<'static, str> {
        self.to_string().into()
    }
}

impl Bound for u64 {
    fn spelled(&self) -> Cow<'static, str> {
        show_size(*self).into()
    }
}

impl Bound for Duration {
    fn spelled(&self) -> Cow<'static, str> {
        show_duration(*self).into()
    }
}

fn limit<T: Copy>(key: &str, (default, range): (T, RangeInclusive<T>)) -> Limit<'_, T> {
    Limit { key, default, min: *range.start(), max: *range.end() }
}

impl ValueKind<usize> for Count {
    type Written = Option<Number>;
    type Terms = (usize, RangeInclusive<usize>);

    fn read(check: &mut Check<'_>, key: &str, number: Option<&Number>, terms: Self::Terms) -> usize {
        check.count(number, limit(key, terms))
    }
}

impl ValueKind<u64> for Size {
    type Written = Option<WrittenSize>;
    type Terms = (u64, RangeInclusive<u64>);

    fn read(check: &mut Check<'_>, key: &str, size: Option<&WrittenSize>, terms: Self::Terms) -> u64 {
        check.bytes(size, limit(key, terms))
    }

    fn show(value: &u64) -> Value {
        show_size(*value).into()
    }
}

/// The size of data that is held in memory.
impl ValueKind<usize> for Size {
    type Written = Option<WrittenSize>;
    type Terms = (u64, RangeInclusive<u64>);

    fn read(check: &mut Check<'_>, key: &str, size: Option<&WrittenSize>, terms: Self::Terms) -> usize {
        check.memory(size, limit(key, terms))
    }

    fn show(value: &usize) -> Value {
        show_size(*value as u64).into()
    }
}

impl ValueKind<Duration> for Time {
    type Written = Option<WrittenTime>;
    type Terms = (Duration, RangeInclusive<Duration>);

    fn read(check: &mut Check<'_>, key: &str, time: Option<&WrittenTime>, terms: Self::Terms) -> Duration {
        check.duration(time, limit(key, terms))
    }
}

impl ValueKind<Option<Duration>> for Time {
    type Written = Option<WrittenTime>;
    type Terms = (Option<Duration>, RangeInclusive<Duration>);

    fn read(
        check: &mut Check<'_>,
        key: &str,
        time: Option<&WrittenTime>,
        (default, range): Self::Terms,
    ) -> Option<Duration> {
        // A wrong value is a problem, and the program does not start with its substitute.
        time.map(|time| check.duration(Some(time), limit(key, (*range.end(), range)))).or(default)
    }
}

impl ValueKind<f64> for Fraction {
    type Written = Option<Ratio>;
    type Terms = f64;

    fn read(check: &mut Check<'_>, key: &str, ratio: Option<&Ratio>, default: f64) -> f64 {
        let Some(ratio) = ratio else { return default };
        let fraction = *ratio.get_ref();
        if !(0.0..=1.0).contains(&fraction) {
            check.hinted(ratio.span(), format!("{key} is {fraction}"), "it is from 0 (no trace) to 1 (every trace)");
        }
        fraction
    }
}

impl ValueKind<bool> for Flag {
    type Written = Option<WrittenFlag>;
    type Terms = bool;

    fn read(_check: &mut Check<'_>, _key: &str, flag: Option<&WrittenFlag>, default: bool) -> bool {
        flag.map_or(default, |flag| *flag.get_ref())
    }
}

impl<V: Word> ValueKind<V> for OneOf {
    type Written = Option<WrittenWord<V>>;
    type Terms = V;

    fn read(check: &mut Check<'_>, key: &str, word: Option<&WrittenWord<V>>, default: V) -> V {
        check.word(key, word).unwrap_or(default)
    }
}

impl<V: Word> ValueKind<Vec<V>> for SomeOf {
    type Written = Option<Written<Vec<WrittenWord<V>>>>;
    type Terms = &'static [V];

    fn read(check: &mut Check<'_>, key: &str, list: InForce<'_, Self::Written>, default: Self::Terms) -> Vec<V> {
        list.map_or_else(|| default.to_vec(), |list| check.each(list, |check, text| check.word(key, Some(text))))
    }
}

impl<V: From<String> + InWords> ValueKind<V> for PlainName {
    type Written = Option<Text>;
    type Terms = String;

    fn read(check: &mut Check<'_>, key: &str, name: Option<&Text>, default: String) -> V {
        let Some(name) = name else { return default.into() };
        check.name(key, name);
        name.get_ref().clone().into()
    }
}

impl ValueKind<PathBuf> for Path {
    type Written = Option<Text>;
    type Terms = (&'static str, &'static str);

    fn read(check: &mut Check<'_>, key: &str, path: Option<&Text>, (default, hint): Self::Terms) -> PathBuf {
        path.map_or_else(|| default.into(), |path| check.absolute_path(key, path, hint))
    }
}

impl ValueKind<Option<PathBuf>> for Path {
    type Written = Option<Text>;
    type Terms = &'static str;

    fn read(check: &mut Check<'_>, key: &str, path: Option<&Text>, hint: &'static str) -> Option<PathBuf> {
        path.map(|path| check.absolute_path(key, path, hint))
    }
}

impl<E: PartialEq + InWords> ValueKind<Vec<E>> for List {
    type Written = Option<Texts>;
    type Terms = (Vec<E>, fn(&mut Check<'_>, &Text) -> Option<E>);

    fn read(check: &mut Check<'_>, _key: &str, list: Option<&Texts>, (default, read): Self::Terms) -> Vec<E> {
        list.map_or(default, |list| check.each(list, read))
    }
}

impl<V: Section<Keys: for<'a> Form<InForce<'a> = Layers<'a, V::Keys>>>> ValueKind<V> for Table {
    type Written = V::Keys;
    type Terms = V::Given;

    fn read(check: &mut Check<'_>, key: &str, written: Layers<'_, V::Keys>, given: V::Given) -> V {
        V::read(check, &format!("{key}."), written, given)
    }
}

impl<V: Word> InWords for V {
    fn shown(&self) -> Value {
        self.spelled().into()
    }
}

impl InWords for Duration {
    fn shown(&self) -> Value {
        show_duration(*self).into()
    }
}

impl<V: InWords> InWords for Option<V> {
    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Null, V::shown)
    }
}

impl<V: InWords> InWords for Vec<V> {
    fn shown(&self) -> Value {
        self.iter().map(V::shown).collect()
    }
}

/// Shows values of these types as JSON has them.
macro_rules! as_json {
    ($($value:ty),*) => {
        $(impl InWords for $value {
            fn shown(&self) -> Value {
                json!(self)
            }
        })*
    };
}

/// Shows values of these types as texts.
macro_rules! as_text {
    ($($value:ty),*) => {
        $(impl InWords for $value {
            fn shown(&self) -> Value {
                self.to_string().into()
            }
        })*
    };
}

as_json!(usize, u64, f64, bool, String, Box<str>, PathBuf, BTreeMap<String, u32>);
as_text!(http::Method, http::HeaderName, JsonPointer, VersionSource);
