//! Findings about writes that put back the bytes that were read.

use http::{StatusCode, header};

use super::{
    finding::Finding,
    received::{ReceivedAnswer, shown},
};

const WRONG: &str = "wrong tag";

/// Answers to writes that must be refused.
#[derive(Clone, Debug)]
pub(super) struct RefusedAnswers {
    /// To a PUT with If-Match and a tag that no state has.
    pub(super) wrong_match: ReceivedAnswer,
    /// To a PUT without a condition. Absent if nothing judges the first one.
    pub(super) unconditional: Option<ReceivedAnswer>,
}

/// Judges writes that must be refused.
pub(super) fn refused(answers: &RefusedAnswers) -> Vec<Finding> {
    let mut findings = vec![wrong_match(&answers.wrong_match)];
    findings.extend(answers.unconditional.as_ref().map(unconditional));
    findings
}

fn wrong_match(answer: &ReceivedAnswer) -> Finding {
    let status = answer.status.as_u16();
    match answer.status {
        StatusCode::PRECONDITION_FAILED => Finding::ok(WRONG, "A write with a wrong tag is answered 412."),
        StatusCode::PRECONDITION_REQUIRED => Finding::problem(
            WRONG,
            "A write with If-Match is answered 428: If-Match did not arrive.",
            "Let the gateway in front of ifmatch pass If-Match on (nginx: remove proxy_set_header If-Match \"\").",
        ),
        success if success.is_success() => Finding::problem(
            WRONG,
            format!("A write with a wrong tag is answered {status}: it was applied."),
            "Put ifmatch with policy = \"optimistic\" in front of the backend. If it is there, set observe = false and \
             require = \"always\", and let gateways pass If-Match on. If it says etag = \"delegate\", the backend does not \
             check If-Match: set etag = \"upstream\".",
        ),
        _ => Finding::note(
            WRONG,
            format!("A write with a wrong tag is answered {status}, which says nothing about the tag."),
            "Give the URL of a resource that takes PUT, and credentials that may write with -H.",
        ),
    }
}

fn unconditional(answer: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "no condition";
    let status = answer.status.as_u16();
    if answer.status.is_success() {
        let sentence = format!("A write without a condition is answered {status}: it was applied.");
        return Finding::problem(CHECK, sentence, "Set require = \"always\": such a write then gets 428.");
    }
    if answer.status.is_client_error() {
        return Finding::ok(CHECK, format!("A write without a condition is answered {status}."));
    }
    let sentence = format!("A write without a condition is answered {status}, not 428.");
    Finding::note(CHECK, sentence, "Look into the log of ifmatch.")
}

/// Answers to two writes with the current tag, one directly after the other, and to the reads beside them.
#[derive(Clone, Debug)]
pub(super) struct WriteAnswers {
    /// To a read, more than a second after any write of `doctor`.
    pub(super) before: ReceivedAnswer,
    pub(super) first_write: ReceivedAnswer,
    /// To a read directly after the first write.
    pub(super) first_read: ReceivedAnswer,
    pub(super) second_write: ReceivedAnswer,
    pub(super) second_read: ReceivedAnswer,
    /// To a read more than a second later.
    pub(super) settled: ReceivedAnswer,
}

impl WriteAnswers {
    /// True if the server applied both writes within one second of its clock.
    pub(super) fn share_a_second(&self) -> bool {
        let date = |answer: &ReceivedAnswer| answer.date(header::DATE);
        date(&self.first_write).is_some() && date(&self.first_write) == date(&self.second_write)
    }

    /// True if the tags differ, which those of one write in each of two seconds do.
    pub(super) fn may_be_of_two_seconds(&self) -> bool {
        let [before, first, second] = [&self.before, &self.first_read, &self.second_read].map(ReceivedAnswer::tag);
        self.second_write.status.is_success() && before != first && first != second
    }

    /// The last two of three writes.
    pub(super) fn followed_by(self, third_write: ReceivedAnswer, third_read: ReceivedAnswer) -> Self {
        Self {
            before: self.first_read,
            first_write: self.second_write,
            first_read: self.second_read,
            second_write: third_write,
            second_read: third_read,
            settled: self.settled,
        }
    }

    /// True if the first read still showed the state before the first write.
    fn lagged(&self) -> bool {
        self.first_read.tag() == self.before.tag() && self.settled.tag() != self.before.tag()
    }
}

/// Judges two writes with the current tag.
pub(super) fn accepted(answers: &WriteAnswers) -> Vec<Finding> {
    let write = write(&answers.first_write);
    if !answers.first_write.status.is_success() {
        return vec![write];
    }
    let mut findings = vec![write, told_tag(answers), read_after_write(answers)];
    if !answers.lagged() {
        findings.push(two_writes(answers));
    }
    findings
}

fn write(answer: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "right tag";
    let status = answer.status.as_u16();
    match answer.status {
        success if success.is_success() => {
            Finding::ok(CHECK, format!("A write with the tag that was read is answered {status}."))
        }
        StatusCode::PRECONDITION_FAILED => Finding::problem(
            CHECK,
            "A write with the tag that was read is answered 412.",
            "If the tag is weak or has a suffix, set accept_weak_own or etag_suffixes; else let no \
             cache answer the read.",
        ),
        _ => Finding::problem(
            CHECK,
            format!("A write with the tag that was read is answered {status}."),
            "Look for this status in the access log of each hop: the hop that answers with it must let the write pass.",
        ),
    }
}

fn told_tag(answers: &WriteAnswers) -> Finding {
    const CHECK: &str = "tag in the answer";
    let Some(told) = answers.first_write.tag() else {
        return Finding::note(
            CHECK,
            "The answer to a write has no tag.",
            "Clients must read before their next write. Set on_write = \"probe\" and etag_after_write = \"always\" to \
             spare them that.",
        );
    };
    if answers.lagged() || answers.first_read.tag().as_ref() == Some(&told) {
        return Finding::ok(CHECK, format!("The answer to a write has the new tag {}.", shown(&told)));
    }
    let read = answers.first_read.tag().as_ref().map_or_else(|| "none".to_owned(), shown);
    Finding::problem(
        CHECK,
        format!("The answer to a write has the tag {}, and the read after it {read}.", shown(&told)),
        "Set etag = \"content\". If the backend changes the resource after its answer, let clients \
         read before each write.",
    )
}

fn read_after_write(answers: &WriteAnswers) -> Finding {
    const CHECK: &str = "read after write";
    if answers.lagged() {
        return Finding::problem(
            CHECK,
            "A read directly after a write shows the state before it; a second later it shows the new one.",
            "Let ifmatch's upstream name the server that takes the writes, not a replica: ifmatch needs a read that \
             follows a write to show it.",
        );
    }
    if let Some(field) = answers.first_read.cached_by() {
        let sentence = format!("A cache answers the read directly after a write ({field}).");
        return Finding::problem(CHECK, sentence, "Let the cache pass these paths, or drop what a write changes.");
    }
    Finding::ok(CHECK, "A read directly after a write shows no older state.")
}

fn two_writes(answers: &WriteAnswers) -> Finding {
    const CHECK: &str = "two writes";
    let [before, first, second] = [&answers.before, &answers.first_read, &answers.second_read].map(ReceivedAnswer::tag);
    if !answers.second_write.status.is_success() {
        let status = answers.second_write.status.as_u16();
        let sentence = format!("A second write with the tag read after the first is answered {status}.");
        return Finding::problem(CHECK, sentence, "Look for another writer, or a tag that changes by itself.");
    }
    if first != second {
        return Finding::ok(CHECK, "Two writes directly after each other have different tags.");
    }
    if before == first {
        return Finding::ok(CHECK, "The same bytes keep their tag: it is made of the content.");
    }
    if !answers.share_a_second() {
        let sentence = "Two writes have one tag, but no Date shows that they fell into one second.";
        return Finding::note(CHECK, sentence, "Keep unique_tags = false.");
    }
    let sentence = "Two writes within a second have one tag: it is coarse.";
    let remedy = "Set unique_tags = false, or etag = \"content\", by which only equal bytes have one tag.";
    if answers.second_read.names_ifmatch() {
        return Finding::problem(CHECK, sentence, remedy);
    }
    Finding::note(CHECK, sentence, "In front of this backend keep unique_tags = false, or set etag = \"content\".")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            finding::{Severity, summary},
            received::received,
        },
        *,
    };

    const DATE: (&str, &str) = ("Date", "Sun, 06 Nov 1994 12:00:00 GMT");
    const LATER: (&str, &str) = ("Date", "Sun, 06 Nov 1994 12:00:01 GMT");
    const IFMATCH: (&str, &str) = ("Via", "1.1 ifmatch");

    fn read(tag: &str) -> ReceivedAnswer {
        received(200, &[("ETag", tag), IFMATCH], "x")
    }

    /// Tags of the read before, after the first write, after the second one, and later; all writes tell theirs.
    fn tags([before, first, second, settled]: [&str; 4]) -> WriteAnswers {
        let write = |tag| received(204, &[("ETag", tag), DATE], "");
        WriteAnswers {
            before: read(before),
            first_write: write(if first == before && settled != before { settled } else { first }),
            first_read: read(first),
            second_write: write(second),
            second_read: read(second),
            settled: read(settled),
        }
    }

    fn of(answers: &WriteAnswers, check: &str) -> Severity {
        let findings = accepted(answers);
        let found = findings.iter().find(|finding| finding.check == check);
        found.unwrap_or_else(|| panic!("{check} is missing: {findings:?}")).severity
    }

    #[test]
    fn writes_that_must_be_refused_are() {
        for (wrong, without, expected) in [
            (412, Some(428), &[Severity::Ok, Severity::Ok][..]),
            (412, Some(204), &[Severity::Ok, Severity::Problem]),
            (412, Some(500), &[Severity::Ok, Severity::Note]),
            (428, None, &[Severity::Problem]),
            (204, None, &[Severity::Problem]),
            (405, None, &[Severity::Note]),
        ] {
            let status = |status| received(status, &[], "");
            let answers = RefusedAnswers { wrong_match: status(wrong), unconditional: without.map(status) };
            let found = refused(&answers).iter().map(|finding| finding.severity).collect::<Vec<_>>();
            assert_eq!(found, expected, "{wrong} {without:?}");
        }
    }

    #[test]
    fn a_new_tag_for_each_write_is_ok() {
        let checks = ["right tag", "tag in the answer", "read after write", "two writes"];
        let findings = accepted(&tags(["\"a\"", "\"b\"", "\"c\"", "\"c\""]));
        assert_eq!(summary(&findings), checks.map(|check| (check, Severity::Ok)));
    }

    #[test]
    fn a_tag_of_the_content_stays() {
        assert_eq!(of(&tags(["\"a\""; 4]), "two writes"), Severity::Ok);
    }

    #[test]
    fn one_tag_for_two_writes_is_coarse() {
        let coarse = tags(["\"a\"", "\"b\"", "\"b\"", "\"b\""]);
        assert_eq!(of(&coarse, "two writes"), Severity::Problem);
        let bare = received(200, &[("ETag", "\"b\"")], "x");
        let direct = WriteAnswers { second_read: bare, ..coarse.clone() };
        assert_eq!(of(&direct, "two writes"), Severity::Note);
        let apart = WriteAnswers { second_write: received(204, &[LATER], ""), ..coarse };
        assert_eq!(of(&apart, "two writes"), Severity::Note);
    }

    #[test]
    fn a_read_that_shows_the_state_before_lags() {
        let findings = accepted(&tags(["\"a\"", "\"a\"", "\"a\"", "\"b\""]));
        assert_eq!(summary(&findings).last(), Some(&("read after write", Severity::Problem)));
        assert_eq!(summary(&findings)[1], ("tag in the answer", Severity::Ok));
    }

    #[test]
    fn a_cached_read_after_a_write_is_a_problem() {
        let mut answers = tags(["\"a\""; 4]);
        answers.first_read = received(200, &[("ETag", "\"a\""), ("Age", "9")], "x");
        assert_eq!(of(&answers, "read after write"), Severity::Problem);
    }

    #[test]
    fn the_tag_that_a_write_tells_is_that_of_the_read_after_it() {
        let good = tags(["\"a\"", "\"b\"", "\"c\"", "\"c\""]);
        let silent = WriteAnswers { first_write: received(204, &[DATE], ""), ..good.clone() };
        assert_eq!(of(&silent, "tag in the answer"), Severity::Note);
        let other = WriteAnswers { first_write: received(204, &[DATE, ("ETag", "\"z\"")], ""), ..good };
        assert_eq!(of(&other, "tag in the answer"), Severity::Problem);
    }

    #[test]
    fn a_write_with_the_right_tag_that_is_refused_is_a_problem() {
        let good = tags(["\"a\"", "\"b\"", "\"c\"", "\"c\""]);
        for status in [412, 428, 502] {
            let answers = WriteAnswers { first_write: received(status, &[], ""), ..good.clone() };
            assert_eq!(summary(&accepted(&answers)), [("right tag", Severity::Problem)], "{status}");
        }
        let answers = WriteAnswers { second_write: received(412, &[], ""), ..good };
        assert_eq!(of(&answers, "two writes"), Severity::Problem);
    }
}
