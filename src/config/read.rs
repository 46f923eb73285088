//! Reads a text into the raw mirror, and reports every unknown key and every value of a wrong type, not only the first.
//!
//! Serde stops at its first error. So each key is first read alone, an entry that cannot be read is reported and
//! removed, and the table that is left cannot fail.

use serde::Deserialize as _;
use toml::de::DeTable;

use super::{
    environment::{Lookup, Replacement},
    problem::{Problem, Replaced, Source},
    raw::File,
    section::{Reader, WrittenKeys, clean, wrong_value},
};

/// A text that was read.
pub(super) struct Reading {
    /// The parts that could be read; `None` after an error of syntax.
    pub(super) file: Option<File>,
    /// The keys of the text.
    pub(super) written: WrittenKeys,
    /// The problems so far.
    pub(super) problems: Vec<Problem>,
    /// The texts with variables of the environment.
    pub(super) replaced: Vec<Replaced>,
    /// The problems with these variables.
    pub(super) of_variables: Vec<Problem>,
}

/// Reads a text. After a syntax error nothing is read: the problems that follow from it would only hide it.
pub(super) fn read(source: Source<'_>, environment: Lookup<'_>) -> Reading {
    let (mut tree, errors) = DeTable::parse_recoverable(source.text);
    let mut reader = Reader { source, written: WrittenKeys::default(), problems: Vec::new() };
    if !errors.is_empty() {
        let syntax = |error: &toml::de::Error| source.problem(error.span().unwrap_or_default(), error.message());
        let problems = errors.iter().map(syntax).collect();
        return Reading {
            file: None,
            written: reader.written,
            problems,
            replaced: Vec::new(),
            of_variables: Vec::new(),
        };
    }
    let mut variables = Replacement { source, lookup: environment, replaced: Vec::new(), problems: Vec::new() };
    variables.table(tree.get_mut());
    clean::<File>(&mut reader, tree.get_mut(), &[]);
    let file = File::deserialize(toml::de::Deserializer::from(tree));
    let file = file.map_err(|error| reader.problems.push(wrong_value(source, "the file", &error))).ok();
    Reading {
        file,
        written: reader.written,
        problems: reader.problems,
        replaced: variables.replaced,
        of_variables: variables.problems,
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn problems(text: &str) -> Vec<String> {
        read(Source { name: "f", text }, &|_| None)
            .problems
            .iter()
            .map(|problem| problem.message().to_owned())
            .collect()
    }

    #[test]
    fn reads_what_is_right_beside_what_is_wrong() {
        let text = "[server]\nthreads = 3\nmax_body_size = 7\n[[routes]]\npath = \"/a\"\nclaim = { max_wait = 1 }";
        let Reading { file, written, problems, .. } = read(Source { name: "f", text }, &|_| None);
        let file = file.expect("the rest of the file is read");
        assert_eq!(file.server.threads.map(|threads| *threads.get_ref()), Some(3));
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
        let found = problems("[server]\nbody_timeout = 5s\nmax_body_size = 1MiB\nunknown = 1\n");
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
