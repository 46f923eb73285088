//! Reads a table of the file key by key, so that every wrong key is reported.

use std::{borrow::Cow, collections::BTreeMap, mem, ops::Range};

use serde::de::DeserializeOwned;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    problem::{Problem, Source},
    words::similar,
    written::{Number, Text, Written},
};

/// One key, as the schema and the reference page show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The tables and the key, separated by dots. A table with a name of the user's choice is `NAME`.
    pub path: String,
    /// The meaning of the key, in one sentence.
    pub sentence: String,
    /// The least and the largest value, as a file spells them.
    pub bounds: Option<(String, String)>,
    /// True if only a start reads it.
    pub at_start: bool,
}

/// The mirror of a table.
pub(super) trait Keys: DeserializeOwned + 'static {
    /// The keys, each with the shape of the tables in its value.
    const SHAPES: &'static [(&'static str, Option<Shape>)];

    /// Adds the keys of the table, and of the tables in it. `at_start` says that only a start reads any of them.
    fn list(at: &str, at_start: bool, found: &mut Vec<Key>);
}

/// A table of the file, and the table that stands in for the keys that it does not have.
#[derive(Debug)]
pub(super) struct Layers<'a, T> {
    /// The table itself.
    pub(super) own: &'a T,
    /// The other one; the table itself if there is none.
    pub(super) defaults: &'a T,
}

impl<T> Clone for Layers<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Layers<'_, T> {}

impl<'a, T> Layers<'a, T> {
    /// Returns a table without another one.
    pub(super) fn only(own: &'a T) -> Self {
        Self { own, defaults: own }
    }

    /// Returns the same part of both.
    pub(super) fn part<U>(self, part: fn(&'a T) -> &'a U) -> Layers<'a, U> {
        Layers { own: part(self.own), defaults: part(self.defaults) }
    }

    /// Returns a key of the table itself, else that of the other.
    pub(super) fn get<U>(self, key: fn(&'a T) -> &'a Option<U>) -> Option<&'a U> {
        key(self.own).as_ref().or(key(self.defaults).as_ref())
    }
}

/// The kinds of fields that a mirror can have.
pub(super) trait Form: Sized + 'static {
    /// The part in force of the table itself and of the one that stands in for its keys.
    type InForce<'a>;

    /// The shape of the tables in the value, if there are any.
    const SHAPE: Option<Shape> = None;

    /// Returns the part in force.
    fn in_force(written: Layers<'_, Self>) -> Self::InForce<'_>;

    /// Adds the keys of these tables.
    fn list(_at: &str, _at_start: bool, _found: &mut Vec<Key>) {}
}

impl<T: 'static, F: 'static> Form for Option<Written<T, F>> {
    type InForce<'a> = Option<&'a Written<T, F>>;

    fn in_force(written: Layers<'_, Self>) -> Self::InForce<'_> {
        written.get(|value| value)
    }
}

impl Form for BTreeMap<Text, Number> {
    type InForce<'a> = &'a Self;

    fn in_force(written: Layers<'_, Self>) -> Self::InForce<'_> {
        written.own
    }
}

impl<K: Keys> Form for BTreeMap<Text, Written<K>> {
    type InForce<'a> = &'a Self;

    const SHAPE: Option<Shape> = Some(Shape::NamedTables(clean::<K>));

    fn in_force(written: Layers<'_, Self>) -> Self::InForce<'_> {
        written.own
    }

    fn list(at: &str, at_start: bool, found: &mut Vec<Key>) {
        K::list(&format!("{at}NAME."), at_start, found);
    }
}

impl<K: Keys> Form for Vec<Written<K>> {
    type InForce<'a> = &'a Self;

    const SHAPE: Option<Shape> = Some(Shape::ListOfTables(clean::<K>));

    fn in_force(written: Layers<'_, Self>) -> Self::InForce<'_> {
        written.own
    }

    fn list(at: &str, at_start: bool, found: &mut Vec<Key>) {
        K::list(at, at_start, found);
    }
}

/// The shape of tables whose keys are also checked one by one.
pub(super) enum Shape {
    Table(Clean),
    NamedTables(Clean),
    ListOfTables(Clean),
}

type KeyText<'i> = Spanned<Cow<'i, str>>;

type Clean = fn(&mut Reader<'_>, &mut DeTable<'_>, &[String]);

/// The keys of a file, right or wrong, by their path (list elements count from 0).
#[derive(Debug, Default)]
pub(super) struct WrittenKeys(BTreeMap<Vec<String>, WrittenKey>);

#[derive(Debug)]
struct WrittenKey {
    span: Range<usize>,
    readable: bool,
}

impl WrittenKeys {
    /// Returns whether the file has this key, or a misspelling of it, but no value could be read from it.
    pub(super) fn unreadable(&self, path: &[&str]) -> bool {
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        self.0.get(&path).is_some_and(|key| !key.readable)
    }

    /// Returns the keys directly under a table and their positions.
    pub(super) fn keys_of(&self, table: &[&str]) -> impl Iterator<Item = (&str, Range<usize>)> {
        let table: Vec<String> = table.iter().map(|name| (*name).to_owned()).collect();
        // A table and all that is in it are neighbours.
        let keys = self.0.range(table.clone()..).map_while(move |(path, key)| {
            let (name, parents) = path.split_last()?;
            path.starts_with(&table).then(|| (parents == table).then(|| (name.as_str(), key.span.clone())))
        });
        keys.flatten()
    }
}

/// The state of a reading: the source, the keys found in it, and the problems so far.
pub(super) struct Reader<'a> {
    pub(super) source: Source<'a>,
    pub(super) written: WrittenKeys,
    pub(super) problems: Vec<Problem>,
}

/// Removes from a table every entry that `T` cannot be read from, and reports it.
pub(super) fn clean<'i, T: Keys>(reader: &mut Reader<'_>, table: &mut DeTable<'i>, path: &[String]) {
    let keep = |(key, mut value): (KeyText<'i>, Spanned<DeValue<'i>>)| {
        let path = below(path, key.get_ref());
        let known = names::<T>().contains(&key.get_ref().as_ref());
        let readable =
            if known { reader.value::<T>(&key, &mut value, &path) } else { reader.unknown_key::<T>(&key, &path) };
        reader.written.0.insert(path, WrittenKey { span: key.span(), readable });
        readable.then_some((key, value))
    };
    *table = mem::take(table).into_iter().filter_map(keep).collect();
}

fn below(path: &[String], key: &str) -> Vec<String> {
    [path, &[key.to_owned()]].concat()
}

impl Shape {
    /// Cleans the tables in a value. A value of another shape is left to the code that reads it.
    fn clean(&self, reader: &mut Reader<'_>, value: &mut Spanned<DeValue<'_>>, path: &[String]) {
        match (self, value.get_mut()) {
            (Self::Table(clean), DeValue::Table(table)) => clean(reader, table, path),
            (Self::NamedTables(clean), DeValue::Table(tables)) => {
                for (name, table) in tables.iter_mut() {
                    Self::Table(*clean).clean(reader, table, &below(path, name.get_ref()));
                }
            }
            (Self::ListOfTables(clean), DeValue::Array(list)) => {
                for (index, table) in list.iter_mut().enumerate() {
                    Self::Table(*clean).clean(reader, table, &below(path, &index.to_string()));
                }
            }
            _ => {}
        }
    }
}

impl Reader<'_> {
    /// Returns whether the value of a known key could be read.
    fn value<T: Keys>(&mut self, key: &KeyText<'_>, value: &mut Spanned<DeValue<'_>>, path: &[String]) -> bool {
        if let Some((_, Some(shape))) = T::SHAPES.iter().find(|(name, _)| name == key.get_ref()) {
            shape.clean(self, value, path);
        }
        let alone = [(key.clone(), value.clone())].into_iter().collect::<DeTable<'_>>();
        let read = T::deserialize(toml::de::Deserializer::from(Spanned::new(key.span(), alone)));
        read.map_err(|error| self.problems.push(wrong_value(self.source, key.get_ref(), &error))).is_ok()
    }

    fn unknown_key<T: Keys>(&mut self, key: &KeyText<'_>, path: &[String]) -> bool {
        let name = key.get_ref().as_ref();
        let known = names::<T>();
        let problem = self.source.problem(key.span(), format!("unknown key `{name}`"));
        let problem = match similar(name, known.iter().copied()) {
            Some(meant) => {
                // A misspelt key is one problem: the key that was meant is not reported as missing too.
                let parent = path.split_last().map(|(_, parent)| parent).unwrap_or_default();
                self.written.0.entry(below(parent, meant)).or_insert(WrittenKey { span: key.span(), readable: false });
                problem.hint(format!("did you mean `{meant}`?"))
            }
            None => problem.hint(format!("the keys of this table are: {}", known.join(", "))),
        };
        self.problems.push(problem);
        false
    }
}

/// Describes an error of serde in terms of the file: "`threads` takes a whole number, not string "four"".
pub(super) fn wrong_value(source: Source<'_>, key: &str, error: &toml::de::Error) -> Problem {
    let problem = |message: String| source.problem(error.span().unwrap_or_default(), message);
    let found = error.message().trim_start_matches("invalid type: ");
    let Some((found, expected)) = found.split_once(", expected ") else { return problem(format!("`{key}`: {found}")) };
    let expected = match expected {
        "i64" => "a whole number",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        structure if structure.starts_with("struct ") => "a table",
        other => other,
    };
    let problem = problem(format!("`{key}` takes {expected}, not {}", found.trim_end_matches(" as i128")));
    if expected == "a string" && found.starts_with("integer") {
        return problem.hint(r#"durations and sizes are written with a unit: "30s", "1MiB""#);
    }
    problem
}

/// Returns the names of the keys of a table.
pub(super) fn names<T: Keys>() -> Vec<&'static str> {
    T::SHAPES.iter().map(|(name, _)| *name).collect()
}
