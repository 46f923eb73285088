//! Interim answers, and clients that wait for one.

use crate::{
    invariants::Rule,
    script::{Act, Case, Fields, Framing, Step, fields, plain},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [interims(), many(), expected(), unexpected()].concat()
}

/// Of each kind, before an answer.
fn interims() -> Vec<Case> {
    let mut cases = Vec::new();
    for status in [100, 102, 103, 104, 199] {
        for method in ["GET", "PUT"] {
            let mut acts = plain(200, "plain");
            acts.insert(1, Act::Interim(status, fields(&[("Link", "</a.css>; rel=preload"), ("X-Interim", "1")])));
            let name = format!("interim/{status}-before-{}", method.to_lowercase());
            cases.push(with_body(Case::new(name, method)).acts(acts).rule(Rule::Answer(200)).rule(Rule::Interims(1)));
        }
    }
    let mut different = plain(200, "plain");
    for status in [103, 100, 102, 103] {
        different.insert(1, Act::Interim(status, Fields::new()));
    }
    cases.push(Case::new("interim/of-several-kinds", "GET").acts(different).rule(Rule::Answer(200)));
    let mut early = plain(200, "plain");
    early.insert(0, Act::Interim(103, Fields::new()));
    let post = Case::new("interim/before-the-body-is-read", "POST");
    let steps = vec![
        Step::Head,
        Step::Wait(When::Arrived(1)),
        Step::IsRead,
        Step::Part(b"body".to_vec()),
        Step::End(Fields::new()),
    ];
    cases.push(post.steps(Framing::Length(4), steps).acts(early).rule(Rule::Answer(200)));
    cases
}

fn with_body(case: Case) -> Case {
    if case.method == "GET" { case } else { case.body(Framing::Length(4), "body") }
}

fn many() -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [2, 8, 16, 200] {
        for method in ["GET", "PUT"] {
            let mut acts = plain(200, "plain");
            let interims = vec![Act::Interim(103, fields(&[("Link", "</a>")])); count];
            acts.splice(1..1, interims);
            let case = with_body(Case::new(format!("interims/{count}-before-{}", method.to_lowercase()), method));
            let rule = if count > 100 { Rule::BadGateway } else { Rule::Answer(200) };
            cases.push(case.acts(acts).rule(rule));
        }
    }
    cases
}

/// `Expect: 100-continue`.
fn expected() -> Vec<Case> {
    let mut cases = Vec::new();
    let waiting =
        || vec![Step::Head, Step::Wait(When::Interim(1)), Step::Part(b"body".to_vec()), Step::End(Fields::new())];
    let at_once = || vec![Step::Head, Step::Part(b"body".to_vec()), Step::End(Fields::new())];
    let granted = || [vec![Act::Interim(100, Fields::new())], plain(200, "plain")].concat();
    for (framing_name, framing) in [("with-length", Framing::Length(4)), ("in-chunks", Framing::Chunked)] {
        for method in ["PUT", "POST"] {
            let expects = |name: &str| {
                let name = format!("expect/{}-{framing_name}-{name}", method.to_lowercase());
                Case::new(name, method).with(&[("Expect", "100-continue")])
            };
            cases.push(expects("granted").steps(framing, waiting()).acts(granted()).rule(Rule::Answer(200)));
            cases.push(expects("sent-at-once").steps(framing, at_once()).acts(granted()).rule(Rule::Answer(200)));
            cases.push(expects("never-granted").steps(framing, at_once()).rule(Rule::Answer(200)));
            for status in [200, 401, 413, 417] {
                let case = expects(&format!("answered-{status}-at-once"));
                let acts = plain(status, "at once")[1..].to_vec();
                cases.push(case.steps(framing, vec![Step::Head]).acts(acts).rule(Rule::Answer(status)));
            }
        }
    }
    for method in ["GET", "PUT", "DELETE"] {
        let name = format!("expect/{}-without-a-body", method.to_lowercase());
        cases.push(Case::new(name, method).with(&[("Expect", "100-continue")]).rule(Rule::Answer(200)));
    }
    cases
}

/// A 100 that no client waits for.
fn unexpected() -> Vec<Case> {
    let acts = || [vec![Act::Interim(100, Fields::new())], plain(200, "plain")].concat();
    let get = Case::new("interim/100-nobody-waits-for-get", "GET").acts(acts());
    let put = Case::new("interim/100-nobody-waits-for-put", "PUT").body(Framing::Length(4), "body").acts(acts());
    vec![get.rule(Rule::Answer(200)), put.rule(Rule::Answer(200))]
}
