//! From text to the raw mirror, with every unknown key and every value of a wrong type reported, not only the first.
//!
//! Serde stops at the first thing that it does not like. So each key is first read alone; what cannot be read is
//! reported and taken out, and the table that is left cannot fail.

use std::{borrow::Cow, cell::Cell, collections::BTreeMap, mem, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value},
    forward_to_deserialize_any,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    problem::{Problem, Source},
    raw::File,
    words::similar,
};

/// A table of the raw mirror.
pub(super) trait Section: DeserializeOwned {
    /// What stands under one of its keys.
    fn shape(_key: &str) -> Shape {
        Shape::Value
    }
}

/// What stands under a key: a value, or tables whose keys are looked at one by one too.
pub(super) enum Shape {
    Value,
    Table(Clean),
    NamedTables(Clean),
    ListOfTables(Clean),
}

type Name<'i> = Spanned<Cow<'i, str>>;

type Clean = fn(&mut Reader<'_>, &mut DeTable<'_>, &[String]);

/// The keys that a file has, right or wrong, by their path (list elements count from 0).
#[derive(Debug, Default)]
pub(super) struct Written(BTreeMap<Vec<String>, Key>);

#[derive(Debug)]
struct Key {
    span: Range<usize>,
    readable: bool,
}

impl Written {
    /// Whether the file has this key, or a misspelling of it, but nothing could be read from there.
    pub(super) fn unreadable(&self, path: &[&str]) -> bool {
        self.0.iter().any(|(each, key)| each == path && !key.readable)
    }

    /// The keys directly under a table, and where they stand.
    pub(super) fn keys_of(&self, table: &[&str]) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.0.iter().filter_map(move |(path, key)| match path.split_last() {
            Some((name, parents)) if parents == table => Some((name.as_str(), key.span.clone())),
            _ => None,
        })
    }
}

/// What has been found so far.
pub(super) struct Reader<'a> {
    source: Source<'a>,
    written: Written,
    problems: Vec<Problem>,
}

/// What could be read of a text, the keys that it has, and what could not be read. After an error of syntax nothing is
/// read: what follows from it would only hide it.
pub(super) fn read(source: Source<'_>) -> (Option<File>, Written, Vec<Problem>) {
    let (mut tree, errors) = DeTable::parse_recoverable(source.text);
    let mut reader = Reader { source, written: Written::default(), problems: Vec::new() };
    if !errors.is_empty() {
        let syntax = |error: &toml::de::Error| source.problem(error.span().unwrap_or_default(), error.message());
        return (None, reader.written, errors.iter().map(syntax).collect());
    }
    clean::<File>(&mut reader, tree.get_mut(), &[]);
    let file = File::deserialize(toml::de::Deserializer::from(tree));
    let file = file.map_err(|error| reader.problems.push(wrong_value(source, "the file", &error))).ok();
    (file, reader.written, reader.problems)
}

/// Takes everything out of a table that `T` cannot be read from, and reports it.
pub(super) fn clean<'i, T: Section>(reader: &mut Reader<'_>, table: &mut DeTable<'i>, path: &[String]) {
    let keep = |(key, mut value): (Name<'i>, Spanned<DeValue<'i>>)| {
        let path = below(path, key.get_ref());
        let known = field_names::<T>().contains(&key.get_ref().as_ref());
        let readable =
            if known { reader.value::<T>(&key, &mut value, &path) } else { reader.unknown_key::<T>(&key, &path) };
        reader.written.0.insert(path, Key { span: key.span(), readable });
        readable.then_some((key, value))
    };
    *table = mem::take(table).into_iter().filter_map(keep).collect();
}

fn below(path: &[String], key: &str) -> Vec<String> {
    [path, &[key.to_owned()]].concat()
}

impl Shape {
    /// Looks at the tables in a value; a value of another shape is left for whoever reads it.
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
    /// Whether the value of a known key could be read.
    fn value<T: Section>(&mut self, key: &Name<'_>, value: &mut Spanned<DeValue<'_>>, path: &[String]) -> bool {
        T::shape(key.get_ref()).clean(self, value, path);
        let alone = [(key.clone(), value.clone())].into_iter().collect::<DeTable<'_>>();
        let read = T::deserialize(toml::de::Deserializer::from(Spanned::new(key.span(), alone)));
        read.map_err(|error| self.problems.push(wrong_value(self.source, key.get_ref(), &error))).is_ok()
    }

    fn unknown_key<T: Section>(&mut self, key: &Name<'_>, path: &[String]) -> bool {
        let name = key.get_ref().as_ref();
        let known = field_names::<T>();
        let problem = self.source.problem(key.span(), format!("unknown key `{name}`"));
        let problem = match similar(name, known.iter().copied()) {
            Some(meant) => {
                // A misspelt key is one problem, not also a missing one.
                let parent = path.split_last().map(|(_, parent)| parent).unwrap_or_default();
                self.written.0.entry(below(parent, meant)).or_insert(Key { span: key.span(), readable: false });
                problem.hint(format!("did you mean `{meant}`?"))
            }
            None => problem.hint(format!("the keys here are: {}", known.join(", "))),
        };
        self.problems.push(problem);
        false
    }
}

/// What serde found, in the words of the file's reader: "`threads` takes a whole number, not string "four"".
fn wrong_value(source: Source<'_>, key: &str, error: &toml::de::Error) -> Problem {
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

/// The names of a struct's fields, as serde tells them to a deserializer.
pub(super) fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let names: Cell<&'static [&'static str]> = Cell::new(&[]);
    // It fails by design: the names are all that is asked for.
    let _ = T::deserialize(FieldNames(&names));
    names.get()
}

struct FieldNames<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(value::Error::custom("no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (_, _, problems) = read(Source { name: "f", text });
        problems.iter().map(|problem| problem.message().to_owned()).collect()
    }

    #[test]
    fn reads_what_is_right_beside_what_is_wrong() {
        let text = "[server]\nthreads = 3\nbody_max = 7\n[[routes]]\npath = \"/a\"\nclaim = { max_wait = 1 }";
        let (file, written, problems) = read(Source { name: "f", text });
        let file = file.expect("the rest of the file is read");
        assert_eq!(file.server.threads.map(Spanned::into_inner), Some(3));
        assert_eq!(problems.len(), 2);
        assert!(written.unreadable(&["routes", "0", "claim", "max_wait"]));
        assert!(!written.unreadable(&["routes", "0", "path"]));
    }

    #[test]
    fn says_which_type_a_key_takes() {
        let cases = [
            ("server = 3", "`server` takes a table, not integer `3`"),
            ("routes = 3", "`routes` takes a list, not integer `3`"),
            ("[server]\nthreads = \"four\"", "`threads` takes a whole number, not string \"four\""),
            (
                "[server]\nthreads = 9999999999999999999999",
                "`threads` takes a whole number, not integer `9999999999999999999999`",
            ),
            ("[server]\nlisten = \"a\"", "`listen` takes a list, not string \"a\""),
            ("[server]\nlisten = [\"a\", 3]", "`listen` takes a string, not integer `3`"),
            ("[defaults]\nobserve = 1", "`observe` takes true or false, not integer `1`"),
        ];
        for (text, expected) in cases {
            assert_eq!(problems(text), [expected], "{text}");
        }
    }

    #[test]
    fn reports_every_error_of_syntax_and_nothing_else() {
        let found = problems("[server]\nbody_timeout = 5s\nbody_max = 1MiB\nunknown = 1\n");
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
