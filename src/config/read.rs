//! Reads a text into the raw mirror, and reports every unknown key and every value of a wrong type, not only the first.
//!
//! Serde stops at its first error. So each key is first read alone, an entry that cannot be read is reported and
//! removed, and the table that is left cannot fail.

use serde::Deserialize as _;
use toml::de::DeTable;

use super::{
    problem::{Problem, Source},
    raw::File,
    section::{Reader, WrittenKeys, clean, wrong_value},
};

/// Returns what could be read of a text, the keys of the text, and the problems. After a syntax error nothing is read:
/// the problems that follow from it would only hide it.
pub(super) fn read(source: Source<'_>) -> (Option<File>, WrittenKeys, Vec<Problem>) {
    let (mut tree, errors) = DeTable::parse_recoverable(source.text);
    let mut reader = Reader { source, written: WrittenKeys::default(), problems: Vec::new() };
    if !errors.is_empty() {
        let syntax = |error: &toml::de::Error| source.problem(error.span().unwrap_or_default(), error.message());
        return (None, reader.written, errors.iter().map(syntax).collect());
    }
    clean::<File>(&mut reader, tree.get_mut(), &[]);
    let file = File::deserialize(toml::de::Deserializer::from(tree));
    let file = file.map_err(|error| reader.problems.push(wrong_value(source, "the file", &error))).ok();
    (file, reader.written, reader.problems)
}

#[cfg(test)]
mod tests {
    use toml::Spanned;

    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (_, _, problems) = read(Source { name: "f", text });
        problems.iter().map(|problem| problem.message().to_owned()).collect()
    }

    #[test]
    fn reads_what_is_right_beside_what_is_wrong() {
        let text = "[server]\nthreads = 3\nmax_body_size = 7\n[[routes]]\npath = \"/a\"\nclaim = { max_wait = 1 }";
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
        let found = problems("[server]\nbody_timeout = 5s\nmax_body_size = 1MiB\nunknown = 1\n");
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
