//! Variables of the environment in the values of a file: `${NAME}`.
//!
//! *Why does no message show such a value?* It may be a secret, and reports go to terminals and logs. A problem with a
//! value from the environment names the variable alone.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::problem::{Problem, Replaced, Source};

/// Returns the value of a variable, if it is set.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces variables, and keeps account of it.
pub(super) struct Replacement<'a> {
    pub(super) source: Source<'a>,
    pub(super) lookup: Lookup<'a>,
    /// The texts with variables so far.
    pub(super) replaced: Vec<Replaced>,
    /// The problems with variables so far.
    pub(super) problems: Vec<Problem>,
}

impl Replacement<'_> {
    /// Replaces the variables in all texts below a table. `$${NAME}` stands for `${NAME}` itself.
    pub(super) fn table(&mut self, table: &mut DeTable<'_>) {
        table.iter_mut().for_each(|(_, value)| self.value(value));
    }

    fn value(&mut self, value: &mut Spanned<DeValue<'_>>) {
        let span = value.span();
        match value.get_mut() {
            DeValue::String(text) if text.contains("${") => {
                let (written, expanded) = (text.to_string(), expanded(text, self.lookup));
                let value = expanded
                    .map_err(|(message, hint)| {
                        self.problems.push(self.source.problem(span.clone(), message).hint(hint));
                    })
                    .ok();
                if let Some(value) = &value {
                    *text = value.clone().into();
                }
                self.replaced.push(Replaced { span, written, value });
            }
            DeValue::Array(list) => list.iter_mut().for_each(|each| self.value(each)),
            DeValue::Table(table) => self.table(table),
            _ => {}
        }
    }
}

/// Returns the text with the values of its variables, or a message with a hint.
fn expanded(text: &str, lookup: Lookup<'_>) -> Result<String, (String, String)> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(literal) = before.strip_suffix('$') {
            result.push_str(literal);
            result.push_str("${");
            rest = after;
            continue;
        }
        let is_name = |name: &&str| {
            let letters = |each: char| each.is_ascii_alphanumeric() || each == '_';
            !name.is_empty() && !name.starts_with(|each: char| each.is_ascii_digit()) && name.chars().all(letters)
        };
        let (name, following) = after.split_once('}').filter(|(name, _)| is_name(name)).ok_or_else(|| {
            let hint = "write ${NAME} with letters, digits and \"_\", or $${ for the characters themselves";
            ("after \"${\" the name of an environment variable and \"}\" must follow".to_owned(), hint.to_owned())
        })?;
        let value = lookup(name).ok_or_else(|| {
            let message = format!("the environment variable {name} is not set, or is not text");
            (message, format!("set {name} for this process, or write the value in place of ${{{name}}}"))
        })?;
        result.push_str(before);
        result.push_str(&value);
        rest = following;
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loaded, parse_with};

    fn lookup(name: &str) -> Option<String> {
        match name {
            "PORT" => Some("9000".to_owned()),
            "SECRET" => Some("hush hush".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    const REST: &str = "[[routes]]\npath = \"/{*rest}\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n";

    fn loaded(text: &str) -> Result<Loaded, String> {
        parse_with("f.toml", &format!("{text}\n{REST}"), &lookup).map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_variable_stands_for_its_value() {
        for (text, expected) in [
            ("127.0.0.1:${PORT}", "127.0.0.1:9000"),
            ("${EMPTY}${PORT}:${PORT}", "9000:9000"),
            ("$${PORT}", "${PORT}"),
            ("$PORT $$ {PORT}", "$PORT $$ {PORT}"),
            ("a$${b ${PORT}", "a${b 9000"),
        ] {
            assert_eq!(expanded(text, &lookup), Ok(expected.to_owned()), "{text}");
        }
        let config = loaded("[upstreams.docs]\nservers = [\"127.0.0.1:${PORT}\"]").expect("it is valid").config;
        assert_eq!(
            config.routes.first().map(|route| route.upstream.servers.clone()),
            Some(vec!["127.0.0.1:9000".into()])
        );
    }

    #[test]
    fn a_variable_that_is_not_set_is_a_problem() {
        let problems =
            loaded("[upstreams.docs]\nservers = [\"${NOWHERE}:80\", \"${a b}\", \"${\"]").expect_err("problems");
        assert!(problems.contains("f.toml:2:12: the environment variable NOWHERE is not set"), "{problems}");
        assert_eq!(problems.matches("the name of an environment variable").count(), 2, "{problems}");
        assert!(problems.ends_with("3 problems"), "{problems}");
    }

    #[test]
    fn no_problem_shows_a_value() {
        for text in [
            "[upstreams.docs]\nservers = [\"${SECRET}\"]",
            "[upstreams.docs]\nservers = [\"a:1\"]\ntimeout = \"${SECRET}\"",
            "[upstreams.docs]\nservers = [\"a:1\"]\n[server]\nthreads = \"${SECRET}\"",
            "[upstreams.docs]\nservers = [\"a:1\"]\n[server]\nlisten = \"${SECRET}\"",
            "[upstreams.docs]\nservers = [\"a:1\"]\nidentity = \"${SECRET}\"",
            "[upstreams.docs]\nservers = [\"a:1\"]\n[store]\nkind = \"disk\"\npath = \"x${SECRET}\"",
        ] {
            let problems = loaded(text).expect_err(text);
            assert!(problems.contains("${SECRET}") && !problems.contains("hush"), "{problems}");
        }
    }
}
