//! Every combination of method, conditional fields and current representation, against an oracle that is written
//! step by step from the text of RFC 9110 sections 13.1 and 13.2 and shares no code with the program.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::match_same_arms, clippy::if_not_else, reason = "the oracle has a line for each sentence of the text")]

use http::{HeaderMap, Method, header};
use ifmatch::core::{
    policy::Require,
    tags::{
        entity_tag::EntityTag,
        http_date::HttpDate,
        precondition::{
            ConditionField, Judgement, MatchRule, Preconditions, Requirement, judge, range_applies, requirement,
        },
        told_dates::FirstDate,
        validators::{Modified, Representation, Validators},
    },
};

/// A tag as the oracle sees it: whether it is weak, and its name.
type Tag = (bool, &'static str);

/// The content of a list field, without its spelling.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Absent,
    Star,
    Tags(&'static [Tag]),
    Malformed,
}

const LISTS: [(&[&str], List); 12] = [
    (&[], List::Absent),
    (&["*"], List::Star),
    (&["\"*\""], List::Tags(&[(false, "*")])),
    (&["\"v1\""], List::Tags(&[(false, "v1")])),
    (&["W/\"v1\""], List::Tags(&[(true, "v1")])),
    (&["\"v2\""], List::Tags(&[(false, "v2")])),
    (&["\"v0\", \"v1\""], List::Tags(&[(false, "v0"), (false, "v1")])),
    (&["\"v1\"", "W/\"v0\""], List::Tags(&[(false, "v1"), (true, "v0")])),
    (&["W/\"v1\",, \"v2\""], List::Tags(&[(true, "v1"), (false, "v2")])),
    (&["W/\"v0\"", "W/\"v2\""], List::Tags(&[(true, "v0"), (true, "v2")])),
    (&["v1"], List::Malformed),
    (&["\"v1\", *"], List::Malformed),
];

/// The content of a date field: a second, if exactly one date can be read.
const DATES: [(&[&str], Option<u64>); 7] = [
    (&[], None),
    (&["Sun, 06 Nov 1994 08:49:36 GMT"], Some(784_111_776)),
    (&["Sun, 06 Nov 1994 08:49:37 GMT"], Some(784_111_777)),
    (&["Sunday, 06-Nov-94 08:49:38 GMT"], Some(784_111_778)),
    (&["6 November 1994"], None),
    (&["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"], None),
    (&["Sun, 06 Nov 1994 08:49:36 GMT, Sun, 06 Nov 1994 08:49:38 GMT"], None),
];

/// The modification date of every representation that has one.
const MODIFIED: u64 = 784_111_777;

/// The current representation as the oracle sees it.
#[derive(Clone, Copy, Debug)]
enum Now {
    Unknown,
    Absent,
    Present { tag: Option<Tag>, modified_strong: Option<bool> },
}

fn representations() -> Vec<Now> {
    let mut all = vec![Now::Unknown, Now::Absent];
    for tag in [None, Some((false, "v1")), Some((true, "v1")), Some((false, "*"))] {
        all.extend([None, Some(true), Some(false)].map(|modified_strong| Now::Present { tag, modified_strong }));
    }
    all
}

impl Now {
    fn to_representation(self) -> Representation {
        match self {
            Now::Unknown => Representation::Unknown,
            Now::Absent => Representation::Absent,
            Now::Present { tag, modified_strong } => Representation::Present(Validators {
                tag: tag
                    .map(|(weak, name)| if weak { EntityTag::weak(name) } else { EntityTag::strong(name) }.unwrap()),
                modified: modified_strong.map(|strong| Modified {
                    date: HttpDate::from_unix_seconds(MODIFIED),
                    strong,
                    first: FirstDate::ANY,
                }),
            }),
        }
    }
}

/// One request's conditional fields.
#[derive(Clone, Copy)]
struct Request {
    matching: (&'static [&'static str], List),
    none_matching: (&'static [&'static str], List),
    modified_since: (&'static [&'static str], Option<u64>),
    unmodified_since: (&'static [&'static str], Option<u64>),
}

fn requests() -> impl Iterator<Item = Request> {
    LISTS.into_iter().flat_map(|matching| {
        LISTS.into_iter().flat_map(move |none_matching| {
            DATES.into_iter().flat_map(move |modified_since| {
                DATES.into_iter().map(move |unmodified_since| Request {
                    matching,
                    none_matching,
                    modified_since,
                    unmodified_since,
                })
            })
        })
    })
}

impl Request {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, lines) in [
            (header::IF_MATCH, self.matching.0),
            (header::IF_NONE_MATCH, self.none_matching.0),
            (header::IF_MODIFIED_SINCE, self.modified_since.0),
            (header::IF_UNMODIFIED_SINCE, self.unmodified_since.0),
        ] {
            for line in lines {
                headers.append(&name, line.parse().unwrap());
            }
        }
        headers
    }
}

/// One condition, evaluated by the section that defines it.
#[derive(Clone, Copy, PartialEq)]
enum Truth {
    True,
    False,
    /// The section says that the field must be ignored.
    Ignored,
    Unknown,
}

/// Section 13.1.1. A malformed list is one that a read has dropped.
fn evaluate_if_match(list: List, now: Now) -> Truth {
    let strongly_equal = |a: Tag, b: Tag| !a.0 && !b.0 && a.1 == b.1;
    match (list, now) {
        (List::Absent | List::Malformed, _) => Truth::Ignored,
        (_, Now::Unknown) => Truth::Unknown,
        (_, Now::Absent) => Truth::False,
        (List::Star, Now::Present { .. }) => Truth::True,
        (List::Tags(_), Now::Present { tag: None, .. }) => Truth::False,
        (List::Tags(listed), Now::Present { tag: Some(current), .. }) => {
            if listed.iter().any(|tag| strongly_equal(*tag, current)) { Truth::True } else { Truth::False }
        }
    }
}

/// Section 13.1.2.
fn evaluate_if_none_match(list: List, now: Now) -> Truth {
    let weakly_equal = |a: Tag, b: Tag| a.1 == b.1;
    match (list, now) {
        (List::Absent | List::Malformed, _) => Truth::Ignored,
        (_, Now::Unknown) => Truth::Unknown,
        (_, Now::Absent) => Truth::True,
        (List::Star, Now::Present { .. }) => Truth::False,
        (List::Tags(_), Now::Present { tag: None, .. }) => Truth::True,
        (List::Tags(listed), Now::Present { tag: Some(current), .. }) => {
            if listed.iter().any(|tag| weakly_equal(*tag, current)) { Truth::False } else { Truth::True }
        }
    }
}

/// Section 13.1.4. A weak date may be that of two states, so none that is equal to it counts (section 8.8.2.2).
fn evaluate_unmodified(date: Option<u64>, now: Now) -> Truth {
    match (date, now) {
        (Some(MODIFIED), Now::Present { modified_strong: Some(false), .. }) => Truth::False,
        _ => evaluate_date(date, now, |later| !later),
    }
}

/// Sections 13.1.3 and 13.1.4: `true_if` gets whether the representation is later than the date given.
fn evaluate_date(date: Option<u64>, now: Now, true_if: impl Fn(bool) -> bool) -> Truth {
    match (date, now) {
        (None, _) | (_, Now::Absent | Now::Present { modified_strong: None, .. }) => Truth::Ignored,
        (Some(_), Now::Unknown) => Truth::Unknown,
        (Some(date), Now::Present { .. }) if true_if(MODIFIED > date) => Truth::True,
        (Some(_), Now::Present { .. }) => Truth::False,
    }
}

/// Section 13.2.2, step by step; `Err` is the judgement that ends it.
fn oracle(method: &Method, request: &Request, now: Now) -> Result<(), Judgement> {
    if ["CONNECT", "OPTIONS", "TRACE"].contains(&method.as_str()) {
        return Ok(());
    }
    let retrieval = ["GET", "HEAD"].contains(&method.as_str());
    let step = |truth: Truth, if_false: Judgement| match truth {
        Truth::True | Truth::Ignored => Ok(()),
        Truth::False => Err(if_false),
        Truth::Unknown => Err(Judgement::Unknowable),
    };
    let failed = |field| Judgement::Failed { field, weak_tag: false };
    if request.matching.1 != List::Absent {
        let weak_tag = match (request.matching.1, now) {
            (List::Tags(listed), Now::Present { tag: Some((_, name)), .. }) => listed.contains(&(true, name)),
            _ => false,
        };
        let truth = evaluate_if_match(request.matching.1, now);
        step(truth, Judgement::Failed { field: ConditionField::IfMatch, weak_tag })?;
    } else {
        let truth = evaluate_unmodified(request.unmodified_since.1, now);
        step(truth, failed(ConditionField::IfUnmodifiedSince))?;
    }
    if request.none_matching.1 != List::Absent {
        let if_false = if retrieval { Judgement::NotModified } else { failed(ConditionField::IfNoneMatch) };
        step(evaluate_if_none_match(request.none_matching.1, now), if_false)
    } else if retrieval {
        step(evaluate_date(request.modified_since.1, now, |later| later), Judgement::NotModified)
    } else {
        Ok(())
    }
}

fn methods() -> Vec<Method> {
    ["GET", "HEAD", "PUT", "PATCH", "DELETE", "POST", "QUERY", "PROPFIND", "OPTIONS", "TRACE", "CONNECT"]
        .map(|name| name.parse().unwrap())
        .to_vec()
}

/// RFC 9110 section 13.2.2.
#[test]
fn every_combination_is_judged_as_the_rfc_says() {
    let representations: Vec<_> = representations().into_iter().map(|now| (now, now.to_representation())).collect();
    let mut reached = std::collections::HashMap::new();
    for request in requests() {
        let headers = request.headers();
        let conditions = Preconditions::parse_for_read(&headers);
        for method in methods() {
            for (now, current) in &representations {
                let judged = judge(&method, &conditions, current, MatchRule::Strong);
                let expected = oracle(&method, &request, *now).err().unwrap_or(Judgement::Pass);
                assert_eq!(judged, expected, "{method} {headers:?} with {now:?}");
                *reached.entry(format!("{judged:?}")).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(reached.len(), 7, "some judgement was never reached: {reached:?}");
}

/// RFC 9110 section 13.1: on a guarded write a list that cannot be read is an error, and all else reads as on a read.
#[test]
fn the_strict_reading_differs_from_the_lenient_one_in_malformed_lists_alone() {
    for request in requests() {
        let headers = request.headers();
        let strict = Preconditions::parse(&headers).map_err(|error| error.field);
        let expected = match (request.matching.1, request.none_matching.1) {
            (List::Malformed, _) => Err(ConditionField::IfMatch),
            (_, List::Malformed) => Err(ConditionField::IfNoneMatch),
            _ => Ok(Preconditions::parse_for_read(&headers)),
        };
        assert_eq!(strict, expected, "{headers:?}");
    }
}

/// DESIGN section 5, as a list of what protects.
fn required(require: Require, allow_any: bool, request: &Request, now: Now) -> Requirement {
    let by_date = match now {
        _ if request.matching.1 != List::Absent || request.unmodified_since.1.is_none() => Some(false),
        Now::Unknown => None,
        Now::Present { modified_strong: Some(_), .. } => Some(true),
        Now::Absent | Now::Present { .. } => Some(false),
    };
    let by_tag = matches!(request.matching.1, List::Tags(_))
        || request.matching.1 == List::Star && allow_any
        || request.none_matching.1 == List::Star;
    match (require, by_tag, by_date, now) {
        (Require::Never, ..) | (_, true, ..) | (_, _, Some(true), _) => Requirement::Satisfied,
        (Require::Existing, _, _, Now::Absent) => Requirement::Satisfied,
        (Require::Existing, _, _, Now::Unknown) | (_, _, None, _) => Requirement::NeedsExistence,
        (Require::Existing | Require::Always, false, Some(false), _) => Requirement::Missing,
    }
}

/// RFC 6585 section 3.
#[test]
fn every_combination_is_required_as_the_design_says() {
    let well_formed = |request: &Request| Preconditions::parse(&request.headers()).ok();
    for (request, conditions) in requests().filter_map(|request| well_formed(&request).map(|read| (request, read))) {
        for now in representations() {
            for require in [Require::Never, Require::Existing, Require::Always] {
                for allow_any in [false, true] {
                    assert_eq!(
                        requirement(require, allow_any, &conditions, &now.to_representation()),
                        required(require, allow_any, &request, now),
                        "{require:?}, allow_any {allow_any}, {conditions:?} with {now:?}"
                    );
                }
            }
        }
    }
}

/// RFC 9110 section 13.1.5: strong tags alone, and dates that are strong and exactly the same.
#[test]
fn every_if_range_is_decided_as_the_rfc_says() {
    enum Range {
        Always,
        IfTag(Tag),
        IfDate(u64),
        Never,
    }
    let dates = DATES.map(|(lines, date)| match (lines, date) {
        ([], _) => (lines, Range::Always),
        (_, Some(date)) => (lines, Range::IfDate(date)),
        (_, None) => (lines, Range::Never),
    });
    let tags: [(&[&str], Range); 7] = [
        (&[" \"v1\" "], Range::IfTag((false, "v1"))),
        (&["W/\"v1\""], Range::IfTag((true, "v1"))),
        (&["\"v2\""], Range::IfTag((false, "v2"))),
        (&["\"v1\", \"v1\""], Range::Never),
        (&["\"v1\"", "\"v1\""], Range::Never),
        (&["v1"], Range::Never),
        (&["*"], Range::Never),
    ];
    for (lines, range) in dates.into_iter().chain(tags) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_RANGE, line.parse().unwrap());
        }
        let conditions = Preconditions::parse(&headers).unwrap();
        for now in representations() {
            let expected = match (&range, now) {
                (Range::Always, _) => true,
                (Range::IfTag((false, name)), Now::Present { tag: Some((false, current)), .. }) => *name == current,
                (Range::IfDate(date), Now::Present { modified_strong: Some(true), .. }) => *date == MODIFIED,
                _ => false,
            };
            assert_eq!(range_applies(&conditions, &now.to_representation()), expected, "{lines:?} with {now:?}");
        }
    }
}

/// DESIGN section 6: `If-Match` compares incarnation and version, and never the variant; it stays a strong comparison.
#[test]
fn version_tags_match_in_every_variant_of_the_version() {
    let passes = Judgement::Pass;
    let fails = |weak_tag| Judgement::Failed { field: ConditionField::IfMatch, weak_tag };
    for (current, if_match, expected) in [
        ("\"i-7-a\"", "\"i-7-a\"", passes),
        ("\"i-7-a\"", "\"i-7-b\"", passes),
        ("\"i-7-a\"", "\"i-8-a\", \"i-7-b\"", passes),
        ("\"i-7-a\"", "*", passes),
        ("\"i-7-a\"", "\"i-8-a\"", fails(false)),
        ("\"i-7-a\"", "\"j-7-a\"", fails(false)),
        ("\"i-7-a\"", "\"i-7\"", fails(false)),
        ("\"i-7-a\"", "\"i-7-a-b\"", fails(false)),
        ("\"i-7-a\"", "\"i-71-a\"", fails(false)),
        ("\"i-7-a\"", "W/\"i-7-b\"", fails(true)),
        ("\"i-7-a\"", "W/\"i-8-a\"", fails(false)),
        ("W/\"i-7-a\"", "\"i-7-a\"", fails(false)),
        ("\"i\"", "\"i\"", passes),
        ("\"i\"", "\"j\"", fails(false)),
        ("\"i-7\"", "\"i\"", fails(false)),
    ] {
        let headers = HeaderMap::from_iter([(header::IF_MATCH, if_match.parse().unwrap())]);
        let tag = EntityTag::parse(current.as_bytes()).ok();
        let current = Representation::Present(Validators { tag, modified: None });
        let conditions = Preconditions::parse(&headers).unwrap();
        let judged = judge(&Method::PUT, &conditions, &current, MatchRule::Version);
        assert_eq!(judged, expected, "{if_match} with {current:?}");
    }
}

/// DESIGN section 6: `If-None-Match` looks at the selected variant alone.
#[test]
fn if_none_match_compares_version_tags_as_a_whole() {
    let tag = EntityTag::strong("i-7-a").ok();
    let current = Representation::Present(Validators { tag, modified: None });
    for (if_none_match, expected) in
        [("W/\"i-7-a\"", Judgement::NotModified), ("\"i-7-b\"", Judgement::Pass), ("\"i-8-a\"", Judgement::Pass)]
    {
        let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, if_none_match.parse().unwrap())]);
        let conditions = Preconditions::parse_for_read(&headers);
        assert_eq!(judge(&Method::GET, &conditions, &current, MatchRule::Version), expected, "{if_none_match}");
    }
}

/// DESIGN section 6: what a content tag says of its variant is left out where `If-Match` compares it.
#[test]
fn if_match_compares_the_bytes_that_content_tags_name() {
    let (bytes, others) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee");
    let fails = |weak_tag| Judgement::Failed { field: ConditionField::IfMatch, weak_tag };
    for (current, if_match, expected) in [
        (format!("\"{bytes}\""), format!("\"{bytes}-00000001\""), Judgement::Pass),
        (format!("\"{bytes}-00000002\""), format!("\"{bytes}-00000001\""), Judgement::Pass),
        (format!("\"{bytes}\""), format!("\"{others}\""), fails(false)),
        (format!("\"{bytes}-00000001\""), format!("\"{others}-00000001\""), fails(false)),
        (format!("\"{bytes}\""), format!("W/\"{bytes}-00000001\""), fails(true)),
        // Versions of one store begin alike.
        ("\"0123456789abcdef-7-00000001\"".into(), "\"0123456789abcdef-8-00000001\"".into(), fails(false)),
    ] {
        let headers = HeaderMap::from_iter([(header::IF_MATCH, if_match.parse().unwrap())]);
        let tag = EntityTag::parse(current.as_bytes()).ok();
        let current = Representation::Present(Validators { tag, modified: None });
        let conditions = Preconditions::parse(&headers).unwrap();
        let judged = judge(&Method::PUT, &conditions, &current, MatchRule::Content);
        assert_eq!(judged, expected, "{if_match} with {current:?}");
    }
}

/// DESIGN section 5, `compare = "opaque"`: `If-Match` compares whole tags; all else is as it was.
#[test]
fn opaque_comparison_is_equality_of_the_whole_tag() {
    let failed = |weak_tag| Judgement::Failed { field: ConditionField::IfMatch, weak_tag };
    for (if_match, current, expected) in [
        ("W/\"v1\"", "W/\"v1\"", Judgement::Pass),
        ("\"v1\"", "\"v1\"", Judgement::Pass),
        ("\"v0\", W/\"v1\"", "W/\"v1\"", Judgement::Pass),
        ("*", "W/\"v1\"", Judgement::Pass),
        ("\"v1\"", "W/\"v1\"", failed(false)),
        ("W/\"v1\"", "\"v1\"", failed(true)),
        ("W/\"v0\"", "W/\"v1\"", failed(false)),
        ("\"i-7-a\"", "\"i-7-b\"", failed(false)),
    ] {
        let headers = HeaderMap::from_iter([(header::IF_MATCH, if_match.parse().unwrap())]);
        let tag = EntityTag::parse(current.as_bytes()).ok();
        let current = Representation::Present(Validators { tag, modified: None });
        let conditions = Preconditions::parse(&headers).unwrap();
        assert_eq!(
            judge(&Method::PUT, &conditions, &current, MatchRule::Opaque),
            expected,
            "{if_match} of {current:?}"
        );
    }
    let representations: Vec<_> = representations().into_iter().map(Now::to_representation).collect();
    for request in requests().filter(|request| matches!(request.matching.1, List::Absent | List::Star)) {
        let conditions = Preconditions::parse_for_read(&request.headers());
        for method in methods() {
            for current in &representations {
                let strongly = judge(&method, &conditions, current, MatchRule::Strong);
                assert_eq!(
                    judge(&method, &conditions, current, MatchRule::Opaque),
                    strongly,
                    "{method} {conditions:?}"
                );
            }
        }
    }
}
