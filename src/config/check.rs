//! The checks that all parts of the file use. Each returns a value within its range, or the default.

use std::{fmt::Display, ops::Range, path::PathBuf, time::Duration};

use toml::Spanned;

use super::{
    problem::{Problem, Source},
    section::WrittenKeys,
    units::{self, DURATION_HINT, SIZE_HINT},
    words::{Word, similar},
    written::{DurationForm, Number, SizeForm, Text, WordForm, Written},
};

/// A key with its default and its range, both ends included. A value above the range nearly always has a wrong unit, and
/// the least value is the least that the program still works with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit<'a, T> {
    /// The key as users write it.
    pub(super) key: &'a str,
    pub(super) default: T,
    pub(super) min: T,
    pub(super) max: T,
}

/// The file under check, with the problems and warnings so far.
pub(super) struct Check<'a> {
    pub(super) source: Source<'a>,
    pub(super) written: &'a WrittenKeys,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Check<'_> {
    /// Reports a problem.
    pub(super) fn problem(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.problems.push(self.source.problem(span, message));
    }

    /// Reports a problem with a hint on how to solve it.
    pub(super) fn hinted(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(self.source.problem(span, message).hint(hint));
    }

    /// Reports a key if it is written, and wrong.
    pub(super) fn refuse<T, F>(
        &mut self,
        value: Option<&Written<T, F>>,
        is_wrong: bool,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if let Some(value) = value.filter(|_| is_wrong) {
            self.hinted(value.span(), message, hint);
        }
    }

    /// Reads the path of a file or directory, which is absolute.
    pub(super) fn absolute_path(&mut self, key: &str, text: &Text, hint: impl Into<String>) -> PathBuf {
        let path = PathBuf::from(text.get_ref());
        let message = format!("{key} is {:?}, which is no absolute path", text.get_ref());
        self.refuse(Some(text), !path.is_absolute(), message, hint);
        path
    }

    /// Warns of a setting that is allowed but rarely meant.
    pub(super) fn warn(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.warnings.push(self.source.problem(span, message).hint(hint));
    }

    /// Reports a problem with the file as a whole.
    pub(super) fn whole(&mut self, message: &str, hint: &str) {
        self.problems.push(Problem::of_source(self.source.name, message).hint(hint));
    }

    pub(super) fn duration(
        &mut self,
        value: Option<&Written<String, DurationForm>>,
        limit: Limit<'_, Duration>,
    ) -> Duration {
        let parsed = self.parsed(value, limit.key, "duration", DURATION_HINT, units::duration);
        self.within(parsed, limit, units::show_duration)
    }

    pub(super) fn bytes(&mut self, value: Option<&Written<String, SizeForm>>, limit: Limit<'_, u64>) -> u64 {
        let parsed = self.parsed(value, limit.key, "size", SIZE_HINT, units::size);
        self.within(parsed, limit, units::show_size)
    }

    /// Reads the size of data that is held in memory.
    pub(super) fn memory(&mut self, value: Option<&Written<String, SizeForm>>, limit: Limit<'_, u64>) -> usize {
        // On a machine whose address space is smaller than the value, the value means all that it can address.
        usize::try_from(self.bytes(value, limit)).unwrap_or(usize::MAX)
    }

    pub(super) fn count(&mut self, value: Option<&Number>, limit: Limit<'_, usize>) -> usize {
        let Some(value) = value else { return limit.default };
        let number = *value.get_ref();
        // A negative number is below every minimum, so the same message reports it.
        let parsed = usize::try_from(number).ok().filter(|count| (limit.min..=limit.max).contains(count));
        parsed.unwrap_or_else(|| {
            let bounds = format!("{} is {number}, it is from {} to {}", limit.key, limit.min, limit.max);
            self.problem(value.span(), bounds);
            limit.default
        })
    }

    /// Reads a word of a closed set.
    pub(super) fn word<T: Word>(&mut self, key: &str, value: Option<&Written<String, WordForm<T>>>) -> Option<T> {
        let value = value?;
        let word = value.get_ref();
        let found = T::of(word);
        if found.is_none() {
            let known = T::WORDS.iter().map(|(word, _)| *word);
            let forms = known.clone().chain(T::FORMS.iter().copied());
            let list = forms.map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
            let hint = similar(word, known)
                .map_or_else(|| format!("it is one of {list}"), |meant| format!("did you mean {meant:?}?"));
            self.hinted(value.span(), format!("{key} cannot be {word:?}"), hint);
        }
        found
    }

    /// Checks a name that appears in logs and keys.
    pub(super) fn name(&mut self, what: &str, value: &Text) {
        let name = value.get_ref();
        if name.is_empty() || name.chars().any(|each| each.is_control() || each.is_whitespace()) {
            self.problem(value.span(), format!("{what} is {name:?}: a name has no blanks and is not empty"));
        }
    }

    /// Reads each element of a list, and reports repetitions.
    pub(super) fn each<T: PartialEq, F>(
        &mut self,
        list: &Written<Vec<Written<String, F>>>,
        mut read: impl FnMut(&mut Self, &Written<String, F>) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for text in list.get_ref() {
            match read(self, text) {
                Some(element) if found.contains(&element) => {
                    self.problem(text.span(), format!("{:?} stands twice in the list", text.get_ref()));
                }
                Some(element) => found.push(element),
                None => {}
            }
        }
        found
    }

    fn parsed<T, F>(
        &mut self,
        value: Option<&Written<String, F>>,
        key: &str,
        what: &str,
        hint: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let value = value?;
        let parsed = parse(value.get_ref());
        if parsed.is_none() {
            self.hinted(value.span(), format!("{key} is {:?}, which is no {what}", value.get_ref()), hint);
        }
        parsed.map(|parsed| Spanned::new(value.span(), parsed))
    }

    fn within<T, S>(&mut self, value: Option<Spanned<T>>, limit: Limit<'_, T>, show: fn(T) -> S) -> T
    where
        T: PartialOrd + Copy,
        S: Display,
    {
        let Some(value) = value else { return limit.default };
        let (span, number) = (value.span(), value.into_inner());
        if number > limit.max {
            self.problem(span, format!("{} is {}, the limit is {}", limit.key, show(number), show(limit.max)));
        } else if number < limit.min {
            self.problem(span, format!("{} is {}, the least is {}", limit.key, show(number), show(limit.min)));
        } else {
            return number;
        }
        limit.default
    }
}
