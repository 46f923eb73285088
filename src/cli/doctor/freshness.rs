//! Findings about caches and dates, from answers to reads without conditions.

use http::header;

use super::{finding::Finding, received::ReceivedAnswer, tags::PlainAnswers};

/// How far the requests of `doctor` reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No cache says that it has answered.
    Open,
    /// A cache answers, unless a request asks it to pass on.
    PastCache,
    /// A cache gives every answer.
    Cache,
}

/// Returns how far the requests reach that got these answers.
pub(super) fn reach(answers: &PlainAnswers) -> Reach {
    if answers.fresh.cached_by().is_some() {
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
    match answers.cached_by() {
        Some(field) => Finding::note(
            CHECK,
            format!("A cache answers reads ({field}), but not those with Cache-Control: no-cache."),
            "Let a client whose write was refused read again with Cache-Control: no-cache.",
        ),
        None => Finding::ok(CHECK, "No field says that a cache answered."),
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
        PlainAnswers { read: of(read), again: of(again), head: of(&[]), fresh: of(fresh) }
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
