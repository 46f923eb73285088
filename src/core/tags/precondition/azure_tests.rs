//! Azure's verdicts, beside those of RFC 9110 if the two differ.

use http::Method;

use super::*;
use crate::core::tags::{
    entity_tag::EntityTag,
    http_date::HttpDate,
    precondition::{Combination, TagCondition, judge as judge_by},
    told_dates::FirstDate,
    validators::{Modified, Validators},
};

/// The last change of the current representation, in Unix seconds.
const MODIFIED: u64 = 1_000;

fn tag(text: &'static str) -> TagCondition {
    TagCondition::Tags(vec![EntityTag::strong(text).unwrap()])
}

fn present(modified: Option<u64>) -> Representation {
    let modified =
        modified.map(|at| Modified { date: HttpDate::from_unix_seconds(at), strong: true, first: FirstDate::ANY });
    Representation::Present(Validators { tag: Some(EntityTag::strong("now").unwrap()), modified })
}

/// Conditions from words: `m` If-Match, `n` If-None-Match, `u` If-Unmodified-Since, `s` If-Modified-Since. Each is
/// followed by `+` if it is true of the current representation, by `-` if it is false, or by `*` for any.
fn conditions(words: &str) -> Preconditions {
    let mut conditions = Preconditions { combination: Combination::Azure, ..Preconditions::default() };
    let date = |at| Some(HttpDate::from_unix_seconds(at));
    for word in words.split_whitespace() {
        match word {
            "m+" => conditions.if_match = Some(tag("now")),
            "m-" => conditions.if_match = Some(tag("then")),
            "m*" => conditions.if_match = Some(TagCondition::Any),
            "n+" => conditions.if_none_match = Some(tag("then")),
            "n-" => conditions.if_none_match = Some(tag("now")),
            "n*" => conditions.if_none_match = Some(TagCondition::Any),
            "u+" => conditions.if_unmodified_since = date(MODIFIED),
            "u-" => conditions.if_unmodified_since = date(MODIFIED - 1),
            "s+" => conditions.if_modified_since = date(MODIFIED - 1),
            "s-" => conditions.if_modified_since = date(MODIFIED),
            _ => panic!("{word} is no condition"),
        }
    }
    conditions
}

fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Pass => "pass",
        Judgement::NotModified => "304",
        Judgement::Failed { .. } => "412",
        Judgement::Unknowable => "?",
    }
}

fn verdict(method: &Method, words: &str, current: &Representation) -> &'static str {
    word(judge_by(method, &conditions(words), current, MatchRule::Strong))
}

#[test]
fn a_read_needs_both_that_guard_it_and_one_of_those_that_refresh_it() {
    for (words, expected) in [
        ("", "pass"),
        ("m+", "pass"),
        ("m-", "412"),
        ("m*", "pass"),
        ("u+", "pass"),
        ("u-", "412"),
        ("m+ u+", "pass"),
        ("m+ u-", "412"),
        ("m- u+", "412"),
        ("n+", "pass"),
        ("n-", "304"),
        ("s+", "pass"),
        ("s-", "304"),
        ("n- s-", "304"),
        ("n- s+", "pass"),
        ("n+ s-", "pass"),
        ("m+ u+ n- s-", "304"),
        ("m- u+ n+ s+", "412"),
    ] {
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(verdict(&method, words, &present(Some(MODIFIED))), expected, "{method} {words}");
        }
    }
}

#[test]
fn a_write_needs_its_one_condition_or_the_first_of_its_pair() {
    for (words, expected) in [
        ("", "pass"),
        ("m+", "pass"),
        ("m-", "412"),
        ("m*", "pass"),
        ("u+", "pass"),
        ("u-", "412"),
        ("m+ u-", "pass"),
        ("m- u+", "412"),
        ("n+", "pass"),
        ("n-", "412"),
        ("n*", "412"),
        ("s+", "pass"),
        ("s-", "412"),
        ("n+ s-", "pass"),
        ("n- s+", "412"),
    ] {
        for method in [Method::PUT, Method::DELETE] {
            assert_eq!(verdict(&method, words, &present(Some(MODIFIED))), expected, "{method} {words}");
        }
    }
}

#[test]
fn what_is_missing_meets_all_but_a_demand_for_it() {
    for words in ["n+", "n-", "n*", "u-", "s-", "n- s-"] {
        assert_eq!(verdict(&Method::PUT, words, &Representation::Absent), "pass", "{words}");
    }
    for words in ["m+", "m*", "m- u+"] {
        assert_eq!(verdict(&Method::PUT, words, &Representation::Absent), "412", "{words}");
    }
}

#[test]
fn what_cannot_be_compared_decides_nothing() {
    for method in [Method::GET, Method::PUT] {
        for words in ["u+", "s+"] {
            assert_eq!(verdict(&method, words, &present(None)), "?", "{method} {words}");
        }
        for words in ["m+", "n*", "u+", "s-"] {
            assert_eq!(verdict(&method, words, &Representation::Unknown), "?", "{method} {words}");
        }
        assert_eq!(verdict(&method, "", &Representation::Unknown), "pass");
    }
}

/// RFC 9110 section 13.2.2 demands otherwise.
#[test]
fn the_rules_of_http_are_others() {
    let by_http = |method: &Method, words: &str| {
        let conditions = Preconditions { combination: Combination::Rfc9110, ..conditions(words) };
        word(judge_by(method, &conditions, &present(Some(MODIFIED)), MatchRule::Strong))
    };
    for (method, words, azure, http) in [
        (Method::GET, "m+ u-", "412", "pass"),
        (Method::GET, "n- s+", "pass", "304"),
        (Method::PUT, "s-", "412", "pass"),
    ] {
        assert_eq!(
            (verdict(&method, words, &present(Some(MODIFIED))), by_http(&method, words)),
            (azure, http),
            "{words}"
        );
    }
}
