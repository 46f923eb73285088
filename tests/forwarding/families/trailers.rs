//! Trailers, both ways.

use crate::{
    invariants::Rule,
    script::{Act, Case, Framing, Step, fields},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [of_requests(), of_answers()].concat()
}

fn of_requests() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["PUT", "POST", "GET"] {
        for (name, body) in [("a-body", &b"body"[..]), ("no-body", b"")] {
            for is_announced in [false, true] {
                let told = if is_announced { "announced" } else { "sudden" };
                let mut steps = vec![Step::Head, Step::Part(body.to_vec()), Step::End(fields(&[("X-Sum", "abc")]))];
                steps.retain(|step| !matches!(step, Step::Part(part) if part.is_empty()));
                let case = Case::new(format!("trailers/{}-of-{name}-{told}", method.to_lowercase()), method);
                let case = if is_announced { case.with(&[("Trailer", "X-Sum")]) } else { case };
                cases.push(case.steps(Framing::Chunked, steps).rule(Rule::RequestTrailer("X-Sum", "abc")));
            }
        }
    }
    for name in ["Host", "Content-Length", "Transfer-Encoding", "If-Match", "Cookie"] {
        let case = Case::raw(
            format!("trailers/request-with-{}", name.to_lowercase()),
            format!("PUT /a HTTP/1.1\r\nHost: {{host}}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{name}: 1\r\n\r\n"),
        );
        cases.push(case);
    }
    cases
}

fn of_answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, body) in [("a-body", &b"body"[..]), ("no-body", b"")] {
        for method in ["GET", "POST"] {
            for (asks, te) in [("te", &[("TE", "trailers")][..]), ("no-te", &[])] {
                let head = fields(&[("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum")]);
                let mut acts = vec![Act::Wait(When::Whole), Act::Head(200, head)];
                if !body.is_empty() {
                    acts.push(Act::Data(body.to_vec()));
                }
                acts.push(Act::End(fields(&[("X-Sum", "abc"), ("grpc-status", "0")])));
                let case = Case::new(format!("trailers/answer-to-{}-of-{name}-{asks}", method.to_lowercase()), method);
                let case = case.with(te).acts(acts).rule(Rule::Answer(200));
                cases.push(if te.is_empty() { case } else { case.rule(Rule::AnswerTrailer("X-Sum", "abc")) });
            }
        }
    }
    cases
}
