//! Findings about the tag on its way back, from answers to reads with conditions.

use http::StatusCode;

use super::{
    finding::{Finding, Severity},
    received::ReceivedAnswer,
};

/// Answers to reads with conditions. The tag is the one that a GET showed.
#[derive(Clone, Debug)]
pub(super) struct ConditionalAnswers {
    /// To If-Match with a tag that no state has.
    pub(super) wrong_match: ReceivedAnswer,
    /// To If-Match with the tag.
    pub(super) own_match: ReceivedAnswer,
    /// To If-Match with another tag and the tag.
    pub(super) list_match: ReceivedAnswer,
    /// To If-None-Match with the tag, with the form of the field.
    pub(super) none_match: [(&'static str, ReceivedAnswer); 3],
    /// To Range and If-Range with a tag that no state has. Absent if the body is empty.
    pub(super) wrong_range: Option<ReceivedAnswer>,
}

impl ConditionalAnswers {
    /// True if anything on the way judges If-Match of reads.
    pub(super) fn judges(&self) -> bool {
        self.wrong_match.status == StatusCode::PRECONDITION_FAILED
    }
}

/// Judges the answers to conditions. `read` is the answer to a read without any. If its tag is not `is_stable`, an answer
/// that calls the tag another one says nothing.
pub(super) fn judge(read: &ReceivedAnswer, answers: &ConditionalAnswers, is_stable: bool) -> Vec<Finding> {
    let is_refused = answers.judges() && !answers.own_match.status.is_success();
    let mut findings = Vec::new();
    findings.extend((is_stable || !is_refused).then(|| if_match(read, answers)));
    findings.extend(if_match_list(answers).filter(|finding| is_stable || finding.severity == Severity::Ok));
    findings.extend(Some(if_none_match(answers)).filter(|finding| is_stable || finding.severity == Severity::Ok));
    findings.extend(answers.wrong_range.as_ref().map(if_range));
    findings
}

fn if_match(read: &ReceivedAnswer, answers: &ConditionalAnswers) -> Finding {
    const CHECK: &str = "If-Match";
    if answers.judges() {
        return match answers.own_match.status {
            status if status.is_success() => {
                Finding::ok(CHECK, "A read with a wrong tag is answered 412, with the right tag it passes.")
            }
            status if read.tag().is_some_and(|tag| tag.is_weak()) => Finding::problem(
                CHECK,
                format!("The tag is weak, and a read that sends it back is answered {}.", status.as_u16()),
                "Set accept_weak_own = true if a gateway in front of ifmatch makes the tag weak, or compare = \
                 \"opaque\" if the backend does.",
            ),
            status => Finding::problem(
                CHECK,
                format!("A read that sends the tag back is answered {}.", status.as_u16()),
                "Run doctor against each hop behind this one: one of them changes ETag or If-Match, or a cache shows \
                 an old tag.",
            ),
        };
    }
    let status = answers.wrong_match.status.as_u16();
    let sentence = format!("A read with a wrong tag is answered {status}, not 412.");
    let is_cached = answers.wrong_match.cached_by().is_some();
    if read.names_ifmatch() && answers.wrong_match.status.is_success() && !is_cached {
        let remedy = "Let the gateway in front of ifmatch pass If-Match on (nginx: remove proxy_set_header If-Match \
                      \"\"). If none removes it, the route is not guarded: set policy = \
                        \"optimistic\" and observe = false.";
        return Finding::problem(CHECK, sentence, remedy);
    }
    Finding::note(CHECK, sentence, "Run doctor with --write: writes show whether If-Match arrives.")
}

fn if_match_list(answers: &ConditionalAnswers) -> Option<Finding> {
    const CHECK: &str = "If-Match list";
    let is_known = answers.judges() && answers.own_match.status.is_success();
    let status = answers.list_match.status;
    is_known.then(|| {
        if status.is_success() {
            return Finding::ok(CHECK, "A list of tags that holds the right one passes.");
        }
        let sentence = format!("A list of tags that holds the right one is answered {}.", status.as_u16());
        Finding::problem(CHECK, sentence, "Let clients send one tag: a hop other than ifmatch reads no lists.")
    })
}

fn if_none_match(answers: &ConditionalAnswers) -> Finding {
    const CHECK: &str = "If-None-Match";
    let forms = answers.none_match.iter().filter(|(_, answer)| answer.status != StatusCode::NOT_MODIFIED);
    let forms = forms.map(|(form, answer)| format!("{form}: {}", answer.status.as_u16())).collect::<Vec<_>>();
    if forms.is_empty() {
        return Finding::ok(CHECK, "A read with the tag, alone, in a list or weak, is answered 304.");
    }
    Finding::note(
        CHECK,
        format!("A read with the tag is not answered 304 ({}).", forms.join(", ")),
        "Each such read costs a whole body; no update is lost. Let gateways pass If-None-Match on.",
    )
}

fn if_range(wrong_range: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "If-Range";
    if wrong_range.status == StatusCode::PARTIAL_CONTENT {
        return Finding::problem(
            CHECK,
            "A range with a wrong tag in If-Range is answered 206: a client would join parts of two states.",
            "Let gateways pass If-Range on, or remove Range together with it.",
        );
    }
    Finding::ok(CHECK, "A range with a wrong tag in If-Range is not answered 206.")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{finding::summary, received::received},
        *,
    };

    fn status(status: u16) -> ReceivedAnswer {
        received(status, &[], "")
    }

    fn good() -> ConditionalAnswers {
        ConditionalAnswers {
            wrong_match: status(412),
            own_match: status(200),
            list_match: status(200),
            none_match: ["alone", "list", "weak"].map(|form| (form, status(304))),
            wrong_range: Some(status(200)),
        }
    }

    fn read(fields: &[(&str, &str)]) -> ReceivedAnswer {
        received(200, fields, "x")
    }

    const IFMATCH: (&str, &str) = ("Via", "1.1 ifmatch");

    #[test]
    fn conditions_that_are_judged_are_ok() {
        let checks = ["If-Match", "If-Match list", "If-None-Match", "If-Range"];
        for is_stable in [true, false] {
            let found = summary(&judge(&read(&[]), &good(), is_stable));
            assert_eq!(found, checks.map(|check| (check, Severity::Ok)));
        }
        let empty = ConditionalAnswers { wrong_range: None, ..good() };
        assert_eq!(judge(&read(&[]), &empty, true).len(), 3);
    }

    #[test]
    fn a_tag_that_is_refused_is_a_problem_with_the_remedy_of_its_kind() {
        let refused = ConditionalAnswers { own_match: status(412), list_match: status(412), ..good() };
        for (tag, remedy) in [("W/\"a\"", "accept_weak_own"), ("\"a\"", "each hop")] {
            let findings = judge(&read(&[("ETag", tag)]), &refused, true);
            assert_eq!(summary(&findings)[..2], [("If-Match", Severity::Problem), ("If-None-Match", Severity::Ok)]);
            assert!(findings[0].remedy.as_ref().is_some_and(|text| text.contains(remedy)), "{findings:?}");
        }
    }

    #[test]
    fn a_wrong_tag_that_passes_ifmatch_is_a_problem_unless_a_cache_answers() {
        let passed = |fields: &[(&str, &str)]| ConditionalAnswers { wrong_match: received(200, fields, ""), ..good() };
        for (through, answers, severity) in [
            (&[IFMATCH][..], passed(&[]), Severity::Problem),
            (&[IFMATCH][..], passed(&[("Age", "3")]), Severity::Note),
            (&[][..], passed(&[]), Severity::Note),
            (&[IFMATCH][..], ConditionalAnswers { wrong_match: status(502), ..good() }, Severity::Note),
        ] {
            for is_stable in [true, false] {
                let findings = judge(&read(through), &answers, is_stable);
                assert_eq!(summary(&findings)[0], ("If-Match", severity), "{through:?} {answers:?}");
                assert!(!findings.iter().any(|finding| finding.check == "If-Match list"));
            }
        }
    }

    #[test]
    fn a_tag_that_changes_at_each_read_is_not_expected_to_pass() {
        let refused = ConditionalAnswers {
            own_match: status(412),
            list_match: status(412),
            none_match: ["alone", "list", "weak"].map(|form| (form, status(200))),
            ..good()
        };
        assert_eq!(summary(&judge(&read(&[]), &refused, false)), [("If-Range", Severity::Ok)]);
    }

    #[test]
    fn a_list_that_is_refused_is_a_problem() {
        let answers = ConditionalAnswers { list_match: status(412), ..good() };
        assert_eq!(summary(&judge(&read(&[]), &answers, true))[1], ("If-Match list", Severity::Problem));
    }

    #[test]
    fn forms_that_are_not_answered_304_are_named() {
        let mut answers = good();
        answers.none_match[2].1 = status(200);
        let finding = if_none_match(&answers);
        assert_eq!((finding.severity, finding.sentence.contains("(weak: 200)")), (Severity::Note, true));
    }

    #[test]
    fn a_part_despite_a_wrong_tag_is_a_problem() {
        assert_eq!(if_range(&status(206)).severity, Severity::Problem);
        assert_eq!(if_range(&status(200)).severity, Severity::Ok);
    }
}
