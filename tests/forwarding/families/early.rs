//! Answers that come before the backend has the body, and bodies that pass both ways at once.

use crate::{
    families::bodies::bytes,
    invariants::Rule,
    script::{Act, Case, Fields, Framing, Step, fields},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [answers(), duplex(), slow()].concat()
}

/// The rest of the body follows the answer; the client waits for its head before.
fn answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for status in [200, 201, 204, 303, 400, 401, 403, 404, 409, 413, 500, 503] {
        for (name, framing) in [("with-length", Framing::Length(8)), ("in-chunks", Framing::Chunked)] {
            let body: &[u8] = if status == 204 { b"" } else { b"early" };
            let steps = vec![
                Step::Head,
                Step::Part(b"half".to_vec()),
                Step::Wait(When::Answered(1)),
                Step::Part(b"rest".to_vec()),
                Step::End(Fields::new()),
            ];
            let length = body.len().to_string();
            let head = if body.is_empty() { Fields::new() } else { fields(&[("Content-Length", &length)]) };
            let acts = vec![
                Act::Wait(When::Taken(4)),
                Act::Head(status, head),
                Act::Data(body.to_vec()),
                Act::End(Fields::new()),
            ];
            let acts = acts.into_iter().filter(|act| !matches!(act, Act::Data(data) if data.is_empty())).collect();
            let case = Case::new(format!("early/{status}-to-a-body-{name}"), "POST").steps(framing, steps);
            cases.push(case.acts(acts).rule(Rule::Answer(status)));
        }
    }
    for status in [200, 413] {
        let acts = vec![
            Act::Head(status, fields(&[("Content-Length", "5"), ("Connection", "close")])),
            Act::Data(b"early".to_vec()),
            Act::End(Fields::new()),
            Act::Close,
        ];
        let steps = vec![Step::Head, Step::Part(bytes(100)), Step::Wait(When::Done)];
        let case = Case::new(format!("early/{status}-and-a-close"), "PUT").steps(Framing::Length(5_000), steps);
        let mut case = case.acts(acts).rule(Rule::Answer(status));
        case.only_backend_of_http_1 = true;
        cases.push(case);
    }
    cases
}

/// Each piece comes back before the next is sent, as calls of gRPC do.
fn duplex() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, framing) in [("with-length", Framing::Length(20)), ("in-chunks", Framing::Chunked)] {
        for method in ["POST", "PUT", "GET"] {
            let mut steps = vec![Step::Head];
            for round in 1..=5 {
                steps.extend([Step::Part(b"ping".to_vec()), Step::Wait(When::Read(4 * round))]);
            }
            steps.push(Step::End(Fields::new()));
            let acts = vec![
                Act::Head(200, fields(&[("Transfer-Encoding", "chunked"), ("Content-Type", "application/grpc")])),
                Act::Echo,
                Act::End(fields(&[("grpc-status", "0")])),
            ];
            let case =
                Case::new(format!("duplex/{}-{name}", method.to_lowercase()), method).with(&[("TE", "trailers")]);
            cases.push(
                case.steps(framing, steps)
                    .acts(acts)
                    .rule(Rule::Tunnel("pingpingpingpingping", "pingpingpingpingping")),
            );
        }
    }
    cases
}

/// Answers that come piece by piece, each when the one before has been read.
fn slow() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, head) in [("in-chunks", ("Transfer-Encoding", "chunked")), ("with-length", ("Content-Length", "20"))] {
        let mut acts = vec![Act::Wait(When::Whole), Act::Head(200, fields(&[head]))];
        for round in 1..=5 {
            acts.extend([Act::Data(b"tick".to_vec()), Act::Wait(When::Read(4 * round))]);
        }
        acts.push(Act::End(Fields::new()));
        cases.push(Case::new(format!("slow/answer-{name}"), "GET").acts(acts).rule(Rule::Answer(200)));
    }
    let mut steps = vec![Step::Head];
    for round in 1..=5 {
        steps.extend([Step::Part(b"tick".to_vec()), Step::Wait(When::Taken(4 * round))]);
    }
    steps.push(Step::End(Fields::new()));
    for (name, framing) in [("with-length", Framing::Length(20)), ("in-chunks", Framing::Chunked)] {
        let case = Case::new(format!("slow/request-{name}"), "PUT").steps(framing, steps.clone());
        cases.push(case.rule(Rule::Answer(200)));
    }
    cases
}
