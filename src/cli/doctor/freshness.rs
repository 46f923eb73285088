//! Findings about caches and dates, from answers to reads without conditions.

use http::{StatusCode, header};

use super::{finding::Finding, received::ReceivedAnswer, tags::PlainAnswers};

/// How far the requests of `doctor` reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No cache says that it has answered.
    Open,
    /// A cache answers, unless a request asks it to pass on.
    PastCache,
    /// A cache gives every answer, or old ones.
    Cache,
}

/// The state in those reads whose answers no cache keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unkept {
    /// The state that all reads show.
    Same,
    /// Another state than all reads that a cache can have kept.
    Newer,
    /// Nothing: the query is part of what the backend answers, or the resource changes meanwhile.
    Undecided,
}

fn unkept(answers: &PlainAnswers) -> Unkept {
    let PlainAnswers { fresh, unkept: [one, other], last, .. } = answers;
    if one.status != StatusCode::OK || !one.shows_the_same(other) || !fresh.shows_the_same(last) {
        return Unkept::Undecided;
    }
    if one.shows_the_same(fresh) { Unkept::Same } else { Unkept::Newer }
}

/// Returns how far the requests reach that got these answers.
pub(super) fn reach(answers: &PlainAnswers) -> Reach {
    if answers.fresh.cached_by().is_some() || unkept(answers) == Unkept::Newer {
        Reach::Cache
    } else if answers.cached_by().is_some() {
        Reach::PastCache
    } else {
        Reach::Open
    }
}

/// Judges whether the answers are fresh.
pub(super) fn cache(answers: &PlainAnswers) -> Finding {
    const CHECK: &str = "cache";
    if let Some(field) = answers.fresh.cached_by() {
        return Finding::problem(
            CHECK,
            format!(
                "A cache answers even reads with Cache-Control: no-cache ({field}), so nothing behind it can be checked."
            ),
            "Let the cache pass these paths (Varnish: return (pass)). Behind ifmatch it makes ifmatch judge by old \
             tags; in front of it, a client whose write was refused reads the old tag again.",
        );
    }
    let unkept = unkept(answers);
    if unkept == Unkept::Newer {
        return Finding::problem(
            CHECK,
            "Two reads with an unknown parameter in the query show another state than those without: a cache gives old \
             answers, and no field says so.",
            "Let the cache pass these paths (nginx: proxy_cache off, or proxy_no_cache and proxy_cache_bypass). If no cache \
             is on the way, the backend heeds the unknown parameter: give its URL with one.",
        );
    }
    match answers.cached_by() {
        Some(field) => Finding::note(
            CHECK,
            format!("A cache answers reads ({field}), but not those with Cache-Control: no-cache."),
            "Let a client whose write was refused read again with Cache-Control: no-cache.",
        ),
        None if unkept == Unkept::Same => Finding::ok(
            CHECK,
            "No field says that a cache answered, and a read that none can have kept shows the same.",
        ),
        None => Finding::ok(CHECK, "No field says that a cache answered. One that says nothing is not ruled out."),
    }
}

/// Judges whether the dates can tell two states apart.
pub(super) fn date(answers: &PlainAnswers) -> Finding {
    const CHECK: &str = "Last-Modified";
    const REMEDY: &str = "Let clients send If-Match, not If-Unmodified-Since.";
    let modified = |received: &ReceivedAnswer| received.date(header::LAST_MODIFIED);
    let PlainAnswers { read, again, .. } = answers;
    let (Some(changed), Some(now)) = (modified(read), read.date(header::DATE)) else {
        return Finding::ok(CHECK, "The answer has no two dates to compare.");
    };
    if read.body == again.body && modified(again) != Some(changed) {
        return Finding::note(CHECK, "Last-Modified changes while the bytes do not.", REMEDY);
    }
    if changed > now {
        let sentence = "Last-Modified is later than Date: the clocks of the backend and of a gateway differ.";
        return Finding::note(CHECK, sentence, format!("Set the clock that is wrong. {REMEDY}"));
    }
    if changed == now {
        let sentence = "Last-Modified is the same second as Date: it cannot tell two writes of that second apart.";
        return Finding::note(CHECK, sentence, REMEDY);
    }
    Finding::ok(CHECK, "Last-Modified is earlier than Date.")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{finding::Severity, received::received},
        *,
    };

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 12:00:01 GMT";

    fn answers(read: &[(&str, &str)], again: &[(&str, &str)], fresh: &[(&str, &str)]) -> PlainAnswers {
        let of = |fields| received(200, fields, "x");
        let unkept = [of(fresh), of(fresh)];
        PlainAnswers { read: of(read), again: of(again), head: of(&[]), fresh: of(fresh), unkept, last: of(fresh) }
    }

    #[test]
    fn a_cache_that_says_nothing_is_found_by_reads_that_it_has_not_kept() {
        let of = |unkept: [(u16, &str); 2], last: &str| {
            let unkept = unkept.map(|(status, body)| received(status, &[], body));
            let answers = PlainAnswers { unkept, last: received(200, &[], last), ..answers(&[], &[], &[]) };
            (cache(&answers).severity, reach(&answers))
        };
        let well = (Severity::Ok, Reach::Open);
        assert_eq!(of([(200, "new"), (200, "new")], "x"), (Severity::Problem, Reach::Cache));
        assert_eq!(of([(200, "x"), (200, "x")], "x"), well);
        assert_eq!(of([(200, "new"), (200, "newer")], "x"), well, "each query has an answer of its own");
        assert_eq!(of([(404, "new"), (404, "new")], "x"), well, "the query is part of the name");
        assert_eq!(of([(200, "new"), (200, "new")], "new"), well, "the resource was written meanwhile");
    }

    #[test]
    fn a_cache_that_answers_no_cache_is_a_problem() {
        let aged = &[("Age", "3")][..];
        for (again, fresh, expected) in [
            (aged, aged, (Severity::Problem, Reach::Cache)),
            (aged, &[], (Severity::Note, Reach::PastCache)),
            (&[], &[], (Severity::Ok, Reach::Open)),
        ] {
            let answers = answers(&[], again, fresh);
            assert_eq!((cache(&answers).severity, reach(&answers)), expected);
        }
    }

    #[test]
    fn a_date_is_strong_if_it_is_past() {
        for (modified, now, later, severity) in [
            (Some(NOON), Some(LATER), NOON, Severity::Ok),
            (Some(NOON), Some(NOON), NOON, Severity::Note),
            (Some(LATER), Some(NOON), LATER, Severity::Note),
            (Some(NOON), Some(LATER), LATER, Severity::Note),
            (None, Some(LATER), NOON, Severity::Ok),
            (Some(NOON), None, NOON, Severity::Ok),
        ] {
            let fields = [("Last-Modified", modified), ("Date", now)];
            let fields = fields.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect::<Vec<_>>();
            let found = date(&answers(&fields, &[("Last-Modified", later)], &[]));
            assert_eq!(found.severity, severity, "{modified:?} {now:?} {later:?}");
        }
    }
}
