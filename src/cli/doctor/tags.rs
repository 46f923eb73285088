//! Findings about the tag on its way to the client, from answers to requests without conditions.

use http::header;

use super::{
    finding::Finding,
    received::{ReceivedAnswer, shown},
};
use crate::core::tags::entity_tag::EntityTag;

/// Answers to reads without conditions.
#[derive(Clone, Debug)]
pub(super) struct PlainAnswers {
    /// To a GET.
    pub(super) read: ReceivedAnswer,
    /// To the same GET, more than a second later.
    pub(super) again: ReceivedAnswer,
    /// To a HEAD.
    pub(super) head: ReceivedAnswer,
    /// To a GET with `Cache-Control: no-cache`.
    pub(super) fresh: ReceivedAnswer,
    /// To two such requests, each with another parameter in the query that no client has sent before.
    pub(super) unkept: [ReceivedAnswer; 2],
    /// To the same request as `fresh`, after those.
    pub(super) last: ReceivedAnswer,
}

impl PlainAnswers {
    /// True if the tag is the same from read to read. If not, no condition with it can be expected to pass.
    pub(super) fn has_stable_tag(&self) -> bool {
        self.read.tag() == self.again.tag()
    }

    /// Returns the name of the field by which a cache says that it gave one of the usual answers.
    pub(super) fn cached_by(&self) -> Option<&'static str> {
        [&self.read, &self.again, &self.head].into_iter().find_map(ReceivedAnswer::cached_by)
    }
}

/// Judges the tag, and its way without compression.
pub(super) fn judge(answers: &PlainAnswers) -> Vec<Finding> {
    let mut findings = of_answer(&answers.read);
    if answers.read.tag().is_some() {
        findings.push(stability(answers));
        findings.extend(answers.has_stable_tag().then(|| head(answers)));
    }
    findings
}

/// Judges the facts that one answer alone shows.
pub(super) fn of_answer(read: &ReceivedAnswer) -> Vec<Finding> {
    vec![way(read), tag(read)]
}

fn way(read: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "way";
    if read.names_ifmatch() {
        return Finding::ok(CHECK, "The answer came through ifmatch.");
    }
    Finding::note(
        CHECK,
        "No field of the answer names ifmatch.",
        "Send these requests through ifmatch. If they already pass it, a gateway in front removes Via.",
    )
}

fn tag(read: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "tag";
    if let Some(tag) = read.entity_tag() {
        if tag.is_weak() {
            return Finding::note(
                CHECK,
                format!("The answer has the weak tag {}.", shown(&tag)),
                "If-Match matches it only with compare = \"opaque\" if the backend makes it weak, or with \
                 accept_weak_own = true if a gateway in front of ifmatch does.",
            );
        }
        return Finding::ok(CHECK, format!("The answer has the strong tag {}.", shown(&tag)));
    }
    if let Some((name, tag)) = read.mirrored_tag() {
        return Finding::note(
            CHECK,
            format!("The answer has no ETag, but {name} with the tag {}.", shown(&tag)),
            format!("Clients that take the tag from {name} can write; a gateway in front of ifmatch removes ETag."),
        );
    }
    if read.fields.contains_key(header::ETAG) {
        let sentence = "The value of ETag is no entity-tag: it has no double quotes, or forbidden characters.";
        return Finding::problem(CHECK, sentence, "Set etag = \"content\": ifmatch then makes the tag.");
    }
    let remedy = if read.names_ifmatch() {
        "If a gateway in front of ifmatch removes ETag, set mirror_header = \"X-ETag\", and let clients read that \
         field. If ifmatch gave no tag: its store may not answer (ifmatch health --writes); else guard the route, or \
         raise max_hash_size or hash_wait."
    } else {
        "Put ifmatch in front of the backend with etag = \"content\": it makes a tag of each body."
    };
    Finding::problem(CHECK, "The answer has no tag.", remedy)
}

fn stability(answers: &PlainAnswers) -> Finding {
    const CHECK: &str = "stability";
    let PlainAnswers { read, again, .. } = answers;
    let (before, after) = (tag_text(read), tag_text(again));
    match (read.body == again.body, before == after) {
        (true, true) => Finding::ok(CHECK, "Two reads a second apart have the same bytes and the same tag."),
        (true, false) => Finding::problem(
            CHECK,
            format!(
                "Two reads of the same bytes have two tags, {before} and {after}: no check that needs one is made."
            ),
            "Set etag = \"content\": the same bytes then have one tag.",
        ),
        (false, false) => Finding::problem(
            CHECK,
            "Two reads a second apart have different bytes and different tags: no check that needs one tag is made.",
            "If no client wrote meanwhile, the body says when it was made: set ignore_json to the members that change, \
             with etag = \"content\".",
        ),
        (false, true) if read.names_ifmatch() => Finding::note(
            CHECK,
            "Two reads have different bytes and the same tag.",
            "This is right if ignore_json leaves out all that differs.",
        ),
        (false, true) => Finding::problem(
            CHECK,
            "Two reads have different bytes and the same tag.",
            "Set etag = \"content\": the tag then changes with the bytes.",
        ),
    }
}

/// No write is judged by HEAD alone, so a HEAD that shows something else than GET misleads only clients that ask by HEAD.
fn head(answers: &PlainAnswers) -> Finding {
    const CHECK: &str = "HEAD";
    let (read, head) = (answers.again.tag(), answers.head.tag());
    let is_same = match (&read, &head) {
        // A gateway that weakens tags may do so for bodies alone (accept_weak_own).
        (Some(read), Some(head)) => read.weak_matches(head),
        _ => read == head,
    };
    if answers.head.status.is_success() && is_same {
        return Finding::ok(CHECK, "HEAD shows the tag that GET shows.");
    }
    let sentence = if !answers.head.status.is_success() || head.is_none() {
        format!("HEAD is answered {} without the tag that GET shows.", answers.head.status.as_u16())
    } else {
        format!("HEAD shows {}, GET {}.", tag_text(&answers.head), tag_text(&answers.again))
    };
    Finding::note(
        CHECK,
        sentence,
        "Let clients take the tag from GET. Before ifmatch refuses a write by what HEAD shows, it asks by GET too. \
         To spare that second request, let the backend answer HEAD as it answers GET.",
    )
}

fn tag_text(received: &ReceivedAnswer) -> String {
    received.tag().as_ref().map_or_else(|| "none".to_owned(), shown)
}

/// Gateways compress no shorter answers: the limits that their documents recommend are from 20 to 1,500 bytes.
const COMPRESSED_BYTES_MIN: usize = 1_500;

/// The answer to a GET with `Accept-Encoding`, and to one that sends the tag of that answer back in If-Match.
#[derive(Clone, Debug)]
pub(super) struct CodedAnswers {
    pub(super) coding: &'static str,
    pub(super) read: ReceivedAnswer,
    /// Absent if the answer has no tag.
    pub(super) sent_back: Option<ReceivedAnswer>,
}

/// Judges the tag that comes with a content coding. `judges` says whether anything on the way judges If-Match of reads.
/// `None` if the tag differs, and may do so without any coding (it is not `is_stable`).
pub(super) fn coded(plain: &EntityTag, answers: &CodedAnswers, judges: bool, is_stable: bool) -> Option<Finding> {
    match answers.read.tag() {
        Some(tag) if tag == *plain => Some(Finding::ok(answers.coding, unchanged(&answers.read))),
        Some(tag) => is_stable.then(|| changed((plain, &tag), answers, judges)),
        None => Some(Finding::problem(
            answers.coding,
            "With this Accept-Encoding the answer has no tag.",
            "Set mirror_header = \"X-ETag\" and let clients read that field, or compress nothing in front of ifmatch.",
        )),
    }
}

/// Judges a tag that is another one with a content coding.
fn changed((plain, tag): (&EntityTag, &EntityTag), answers: &CodedAnswers, judges: bool) -> Finding {
    let CodedAnswers { coding, sent_back, .. } = answers;
    let accepted = sent_back.as_ref().is_some_and(|answer| answer.status.is_success());
    let (change, remedy) = change(plain, tag);
    match (judges, accepted) {
        (true, true) => Finding::ok(coding, format!("The tag {change}, and is accepted in If-Match.")),
        (true, false) => Finding::problem(coding, format!("The tag {change}, and is refused in If-Match."), remedy),
        (false, _) => Finding::note(coding, format!("The tag {change}."), remedy),
    }
}

/// Says what an answer with the plain tag proves.
fn unchanged(read: &ReceivedAnswer) -> String {
    match read.body.len() {
        _ if read.is_coded() => "The answer is compressed, and its tag is unchanged.".to_owned(),
        short if short < COMPRESSED_BYTES_MIN => {
            format!("The answer is not compressed. It has only {short} bytes: test a larger resource, too.")
        }
        _ => "The answer is not compressed, and its tag is unchanged.".to_owned(),
    }
}

/// Returns what became of a tag, and the remedy.
fn change(plain: &EntityTag, tag: &EntityTag) -> (String, String) {
    if tag.weak_matches(plain) {
        return (format!("is {}", shown(tag)), "Set accept_weak_own = true.".to_owned());
    }
    if let Some(suffix) = tag.opaque().strip_prefix(plain.opaque()) {
        let suffix = String::from_utf8_lossy(suffix);
        let weak = if tag.is_weak() { " Set accept_weak_own = true as well." } else { "" };
        return (format!("has the suffix {suffix}"), format!("Set etag_suffixes = [\"{suffix}\"].{weak}"));
    }
    let remedy = "Set etag = \"content\": a tag of any coding of the current state then passes. Compress nothing in \
                  front of ifmatch if the gateway that compresses makes tags of its own.";
    (format!("is another one, {}", shown(tag)), remedy.to_owned())
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

    const IFMATCH: (&str, &str) = ("Via", "1.1 ifmatch");

    fn read(tag: &str, body: &str) -> ReceivedAnswer {
        received(200, &[("ETag", tag), IFMATCH], body)
    }

    fn answers(read: ReceivedAnswer, again: ReceivedAnswer, head: ReceivedAnswer) -> PlainAnswers {
        let unkept = [again.clone(), again.clone()];
        PlainAnswers { fresh: again.clone(), last: again.clone(), unkept, read, again, head }
    }

    #[test]
    fn a_good_tag_is_no_problem() {
        let one = read("\"a\"", "x");
        let findings = judge(&answers(one.clone(), one.clone(), read("\"a\"", "")));
        let ok = ["way", "tag", "stability", "HEAD"].map(|check| (check, Severity::Ok));
        assert_eq!(summary(&findings), ok);
        assert_eq!(findings[1].sentence, "The answer has the strong tag \"a\".");
        let weak = tag(&read("W/\"a\"", "x"));
        assert_eq!(weak.severity, Severity::Note);
        assert!(weak.remedy.is_some_and(|text| text.contains("compare = \"opaque\"")));
    }

    #[test]
    fn without_a_tag_nothing_more_is_said_of_it() {
        let bare = received(200, &[IFMATCH], "x");
        let findings = judge(&answers(bare.clone(), bare.clone(), bare));
        assert_eq!(summary(&findings), [("way", Severity::Ok), ("tag", Severity::Problem)]);
    }

    #[test]
    fn an_answer_without_ifmatch_is_noted() {
        assert_eq!(way(&received(200, &[], "")).severity, Severity::Note);
    }

    #[test]
    fn a_missing_tag_has_the_remedy_of_its_place() {
        for (fields, severity, remedy) in [
            (&[][..], Severity::Problem, "etag = \"content\""),
            (&[IFMATCH][..], Severity::Problem, "mirror_header"),
            (&[("ETag", "a")][..], Severity::Problem, "ifmatch then makes the tag"),
            (&[("X-ETag", "\"a\"")][..], Severity::Note, "x-etag can write"),
        ] {
            let finding = tag(&received(200, fields, ""));
            assert_eq!(finding.severity, severity, "{fields:?}");
            assert!(finding.remedy.as_ref().is_some_and(|text| text.contains(remedy)), "{finding:?}");
        }
    }

    #[test]
    fn bytes_and_tags_change_together() {
        let of = |first: ReceivedAnswer, second: ReceivedAnswer| {
            let finding = stability(&answers(first, second.clone(), second));
            (finding.severity, finding.remedy.unwrap_or_default())
        };
        assert_eq!(of(read("\"a\"", "x"), read("\"a\"", "x")).0, Severity::Ok);
        for (second, severity, remedy) in [
            (read("\"b\"", "x"), Severity::Problem, "etag = \"content\""),
            (read("\"b\"", "y"), Severity::Problem, "ignore_json"),
            (read("\"a\"", "y"), Severity::Note, "ignore_json"),
        ] {
            let found = of(read("\"a\"", "x"), second.clone());
            assert_eq!(found.0, severity, "{second:?}");
            assert!(found.1.contains(remedy), "{}", found.1);
        }
        let bare = |body| received(200, &[("ETag", "\"a\"")], body);
        assert_eq!(of(bare("x"), bare("y")).0, Severity::Problem);
    }

    #[test]
    fn what_head_shows_counts_if_reads_show_one_tag() {
        let of = |second| summary(&judge(&answers(read("\"a\"", "x"), read(second, "y"), read("\"c\"", ""))));
        let [way, tag] = ["way", "tag"].map(|check| (check, Severity::Ok));
        assert_eq!(of("\"b\""), [way, tag, ("stability", Severity::Problem)]);
        assert_eq!(of("\"a\""), [way, tag, ("stability", Severity::Note), ("HEAD", Severity::Note)]);
    }

    #[test]
    fn head_shows_what_get_shows() {
        let of = |head_answer| head(&answers(read("\"a\"", "x"), read("\"a\"", "x"), head_answer));
        assert_eq!(of(read("\"a\"", "")).severity, Severity::Ok);
        assert_eq!(of(read("W/\"a\"", "")).severity, Severity::Ok, "a gateway weakens the tags of bodies alone");
        for (other, sentence) in [
            (read("\"b\"", ""), "HEAD shows \"b\", GET \"a\"."),
            (received(200, &[], ""), "HEAD is answered 200 without the tag that GET shows."),
            (received(405, &[("ETag", "\"a\"")], ""), "HEAD is answered 405 without the tag that GET shows."),
        ] {
            let finding = of(other);
            assert_eq!((finding.severity, finding.sentence.as_str()), (Severity::Note, sentence));
            assert!(finding.remedy.is_some_and(|text| text.contains("take the tag from GET")));
        }
    }

    #[test]
    fn a_changed_tag_is_a_problem_if_it_is_refused() {
        let plain = EntityTag::strong("a").expect("a tag");
        let of = |tag: &str, status: u16, judges| {
            let read = received(200, &[("ETag", tag), ("Content-Encoding", "gzip")], "");
            let answers = CodedAnswers { coding: "gzip", read, sent_back: Some(received(status, &[], "")) };
            let finding = coded(&plain, &answers, judges, true).expect("the tag is stable");
            assert_eq!(coded(&plain, &answers, judges, false).is_some(), tag == "\"a\"", "{tag}");
            (finding.severity, finding.remedy.unwrap_or_default())
        };
        assert_eq!(of("\"a\"", 200, true).0, Severity::Ok);
        for (tag, remedy) in [
            ("W/\"a\"", "Set accept_weak_own = true."),
            ("\"a-gzip\"", "Set etag_suffixes = [\"-gzip\"]."),
            ("W/\"a-gzip\"", "Set etag_suffixes = [\"-gzip\"]. Set accept_weak_own = true as well."),
        ] {
            assert_eq!(of(tag, 412, true), (Severity::Problem, remedy.to_owned()));
            assert_eq!(of(tag, 200, false), (Severity::Note, remedy.to_owned()));
            assert_eq!(of(tag, 200, true).0, Severity::Ok);
        }
        let (severity, remedy) = of("\"b\"", 412, true);
        assert_eq!(severity, Severity::Problem);
        assert!(remedy.contains("etag = \"content\""), "{remedy}");
    }

    #[test]
    fn a_tag_that_compression_removes_is_a_problem() {
        let plain = EntityTag::strong("a").expect("a tag");
        let told = |body: &str| {
            let read = received(200, &[("ETag", "\"a\"")], body);
            coded(&plain, &CodedAnswers { coding: "gzip", read, sent_back: None }, true, true)
                .expect("a finding")
                .sentence
        };
        assert!(told("short").contains("only 5 bytes"), "{}", told("short"));
        assert!(told(&"x".repeat(COMPRESSED_BYTES_MIN)).contains("its tag is unchanged"));
        let answers = CodedAnswers { coding: "br", read: received(200, &[], ""), sent_back: None };
        let found = coded(&plain, &answers, true, false).map(|finding| finding.severity);
        assert_eq!(found, Some(Severity::Problem), "whatever the other tags do");
    }
}
