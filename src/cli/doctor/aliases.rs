//! Findings about other names of the resource: its path in another letter case, with a format at its end, and with an
//! encoded slash (DESIGN, section 3, rule 18).
//!
//! # Design
//!
//! *Why is a name that ifmatch judges only a note?* Reads by two names have the same tag if the backend shows the same
//! bytes, whether ifmatch has one key for them or two. Only a tag that is refused by the other name proves two.

use http::StatusCode;

use super::{finding::Finding, received::ReceivedAnswer};

/// A way to make another name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alias {
    LetterCase,
    Format(&'static str),
    EncodedSlash,
}

/// The formats that frameworks accept at the end of a path.
const FORMATS: [&str; 2] = [".json", ".xml"];
/// The end of a name that no resource has.
const NO_NAME: &str = "-ifmatch-doctor";

impl Alias {
    /// All of them.
    pub(super) const ALL: [Self; 4] =
        [Self::LetterCase, Self::Format(FORMATS[0]), Self::Format(FORMATS[1]), Self::EncodedSlash];

    /// The other name of a path; `None` if it has none.
    pub(super) fn of(self, path: &str) -> Option<String> {
        match self {
            Self::LetterCase => in_other_case(path),
            Self::Format(format) => match path.strip_suffix(format) {
                Some(name) => Some(name.to_owned()).filter(|name| !name.ends_with('/')),
                None => (!path.ends_with('/') && !FORMATS.iter().any(|format| path.ends_with(format)))
                    .then(|| format!("{path}{format}")),
            },
            Self::EncodedSlash => {
                let (folder, name) = path.rsplit_once('/')?;
                (!folder.is_empty() && !name.is_empty()).then(|| format!("{folder}%2F{name}"))
            }
        }
    }

    fn check(self) -> &'static str {
        match self {
            Self::LetterCase => "letter case",
            Self::Format(_) => "format",
            Self::EncodedSlash => "encoded slash",
        }
    }

    /// The key of the configuration that makes it no other name.
    fn remedy(self) -> String {
        match self {
            Self::LetterCase => "Set ignore_case = true in the upstream".to_owned(),
            Self::Format(format) => {
                format!("Add a route whose path ends with {{id}}{format}, and give it the key of the other route")
            }
            Self::EncodedSlash => "Set encoded_slash = \"refuse\" on the route".to_owned(),
        }
    }
}

/// The path with the case of its ASCII letters changed, but not that of its encodings.
fn in_other_case(path: &str) -> Option<String> {
    let mut digits = 0;
    let change = |letter: char| {
        if letter == '%' {
            digits = 2;
            return letter;
        }
        let is_digit = digits > 0;
        digits -= i32::from(is_digit);
        match letter {
            _ if is_digit => letter,
            _ if letter.is_ascii_uppercase() => letter.to_ascii_lowercase(),
            _ => letter.to_ascii_uppercase(),
        }
    };
    let changed: String = path.chars().map(change).collect();
    (changed != path).then_some(changed)
}

/// A name that no resource has, unless the backend answers all names.
pub(super) fn no_name(path: &str) -> String {
    format!("{}{NO_NAME}", path.trim_end_matches('/'))
}

/// Answers to reads by another name.
#[derive(Clone, Debug)]
pub(super) struct AliasAnswers {
    pub(super) alias: Alias,
    /// The path.
    pub(super) name: String,
    pub(super) read: ReceivedAnswer,
    /// To If-Match with a tag that no state has, and with the tag that the resource has by its own name.
    pub(super) matches: [ReceivedAnswer; 2],
}

impl AliasAnswers {
    fn is_same(&self, read: &ReceivedAnswer) -> bool {
        let is_format = matches!(self.alias, Alias::Format(_));
        let same_tag = self.read.tag().is_some_and(|tag| read.tag() == Some(tag));
        self.read.status == StatusCode::OK && (is_format || same_tag || self.read.body == read.body)
    }
}

/// Judges the answers. `read` is the answer by the resource's own name, and `judges` says whether If-Match is judged
/// there. `anything` is the answer by a name that no resource has.
pub(super) fn judge(
    read: &ReceivedAnswer,
    judges: bool,
    anything: &ReceivedAnswer,
    answers: &[AliasAnswers],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for answers in answers {
        let finding = of_name(read, judges, anything, answers);
        // Of two formats, the one that is another name counts.
        match findings.last_mut().filter(|last| last.check == finding.check) {
            Some(last) if last.remedy.is_none() => *last = finding,
            Some(_) => {}
            None => findings.push(finding),
        }
    }
    findings
}

fn of_name(read: &ReceivedAnswer, judges: bool, anything: &ReceivedAnswer, answers: &AliasAnswers) -> Finding {
    let AliasAnswers { alias, name, .. } = answers;
    let (check, status) = (alias.check(), answers.read.status.as_u16());
    if !answers.is_same(read) {
        return Finding::ok(check, format!("{name} is answered {status}, and not as the resource."));
    }
    if anything.status == StatusCode::OK {
        let sentence = format!("Not tried: each name is answered {}.", anything.status.as_u16());
        return Finding::note(check, sentence, "Ask the authors of the backend for other names of one resource.");
    }
    let [wrong, own] = answers.matches.each_ref().map(|answer| answer.status);
    let is_judged = wrong == StatusCode::PRECONDITION_FAILED;
    let remedy = alias.remedy();
    match (judges, alias) {
        (false, Alias::EncodedSlash) => {
            Finding::ok(check, format!("{name} is the resource: encoded_slash = \"refuse\", the default, is right."))
        }
        (false, _) => Finding::note(check, format!("{name} is answered, too."), format!("{remedy}.")),
        (true, Alias::EncodedSlash) => {
            let sentence = format!("{name} is the resource, and has a key of its own.");
            Finding::problem(check, sentence, format!("{remedy}: the backend decodes %2F."))
        }
        (true, _) if !is_judged => Finding::problem(
            check,
            format!("{name} is answered, too, and no tag is checked there."),
            format!("{remedy}."),
        ),
        (true, _) if !own.is_success() => {
            let sentence = format!("{name} is answered, too, and the tag of the resource is refused there.");
            Finding::problem(check, sentence, format!("{remedy}."))
        }
        (true, _) => Finding::note(
            check,
            format!("{name} is answered, too. Reads do not show whether both names have one key."),
            format!("{remedy}, unless the configuration has it: see `ifmatch explain`."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{finding::Severity, received::received},
        *,
    };

    #[test]
    fn other_names_are_made_of_the_path() {
        let [case, json, xml, slash] = Alias::ALL;
        for (alias, path, name) in [
            (case, "/Docs/a%2fb", Some("/dOCS/A%2fB")),
            (case, "/1/%C3%84", None),
            (json, "/docs/a", Some("/docs/a.json")),
            (json, "/docs/a.json", Some("/docs/a")),
            (xml, "/docs/a.json", None),
            (json, "/docs/", None),
            (slash, "/docs/a", Some("/docs%2Fa")),
            (slash, "/docs", None),
            (slash, "/docs/", None),
        ] {
            assert_eq!(alias.of(path).as_deref(), name, "{alias:?} {path}");
        }
        assert_eq!(no_name("/docs/"), "/docs-ifmatch-doctor");
    }

    fn found(alias: Alias, judges: bool, statuses: [u16; 3]) -> (Severity, String) {
        let [read, wrong, own] = statuses.map(|status| received(status, &[], "x"));
        let answers = AliasAnswers { alias, name: "/X".to_owned(), read, matches: [wrong, own] };
        let findings = judge(&received(200, &[], "x"), judges, &received(404, &[], ""), &[answers]);
        let [finding] = findings.as_slice() else { panic!("one finding: {findings:?}") };
        (finding.severity, finding.remedy.clone().unwrap_or_default())
    }

    /// Rule 18: what the operator has to say is found, and the key is named.
    #[test]
    fn another_name_of_the_resource_has_the_key_that_is_missing() {
        let [case, json, _, slash] = Alias::ALL;
        for (alias, judges, statuses, severity, key) in [
            (case, true, [404, 404, 404], Severity::Ok, ""),
            (case, true, [200, 200, 200], Severity::Problem, "ignore_case = true"),
            (case, true, [200, 412, 412], Severity::Problem, "ignore_case = true"),
            (case, true, [200, 412, 200], Severity::Note, "ignore_case = true"),
            (case, false, [200, 200, 200], Severity::Note, "ignore_case = true"),
            (json, true, [200, 412, 412], Severity::Problem, "{id}.json"),
            (json, false, [406, 406, 406], Severity::Ok, ""),
            (slash, true, [400, 400, 400], Severity::Ok, ""),
            (slash, true, [200, 412, 200], Severity::Problem, "encoded_slash = \"refuse\""),
            (slash, false, [200, 200, 200], Severity::Ok, ""),
        ] {
            let (found, remedy) = found(alias, judges, statuses);
            assert_eq!(found, severity, "{alias:?} {judges} {statuses:?}");
            assert!(remedy.contains(key), "{remedy}");
        }
    }

    #[test]
    fn where_each_name_is_answered_none_is_another_one() {
        let same = received(200, &[], "x");
        let answers = AliasAnswers {
            alias: Alias::LetterCase,
            name: "/X".to_owned(),
            read: same.clone(),
            matches: [same.clone(), same.clone()],
        };
        let other = AliasAnswers { read: received(200, &[], "y"), ..answers.clone() };
        assert_eq!(judge(&same, true, &same, &[answers])[0].severity, Severity::Note);
        assert_eq!(judge(&same, true, &received(404, &[], ""), &[other])[0].severity, Severity::Ok);
    }

    #[test]
    fn of_two_formats_the_one_that_is_answered_is_reported() {
        let of = |format, status| AliasAnswers {
            alias: Alias::Format(format),
            name: format!("/x{format}"),
            read: received(status, &[], "y"),
            matches: [received(status, &[], ""), received(status, &[], "")],
        };
        for (statuses, name) in [([404, 200], "/x.xml"), ([200, 404], "/x.json"), ([404, 404], "/x.xml")] {
            let answers = [of(".json", statuses[0]), of(".xml", statuses[1])];
            let findings = judge(&received(200, &[], "x"), true, &received(404, &[], ""), &answers);
            assert_eq!(findings.len(), 1);
            assert!(findings[0].sentence.starts_with(name), "{findings:?}");
        }
    }
}
