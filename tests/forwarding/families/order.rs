//! More than one request on a connection, and more than a request.

use crate::{
    invariants::Rule,
    script::{Act, Case, Fields, Framing, Step, plain},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [after(), while_asked(), pipelined(), half_closed()].concat()
}

const GET: &str = "GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n";
const GET_OF_NOTHING: &str = "GET /a HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n";
const PUT: &str = "PUT /b HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nput";
const POST_IN_CHUNKS: &str =
    "POST /c HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";

const REQUESTS: [(&str, &str); 4] =
    [("get", GET), ("get-of-nothing", GET_OF_NOTHING), ("put", PUT), ("post-in-chunks", POST_IN_CHUNKS)];

const MORE: [(&str, &str); 5] =
    [("a-byte", "X"), ("crlf", "\r\n"), ("nul", "\0"), ("half-a-request", "GET /h HT"), ("many-crlf", "\r\n\r\n\r\n")];

/// In one piece with the request.
fn after() -> Vec<Case> {
    let mut cases = Vec::new();
    for (request, bytes) in REQUESTS {
        for (name, more) in MORE {
            let case = Case::raw(format!("after/{request}-and-{name}"), format!("{bytes}{more}"));
            cases.push(case.rule(Rule::Answer(200)));
        }
    }
    cases
}

/// While the backend has the request.
fn while_asked() -> Vec<Case> {
    let mut cases = Vec::new();
    for (request, bytes) in REQUESTS {
        for (name, more) in MORE {
            let mut case = Case::raw(format!("meanwhile/{request}-and-{name}"), bytes);
            case.steps.extend([Step::Wait(When::Arrived(1)), Step::Raw(more.as_bytes().to_vec()), Step::IsRead]);
            let mut acts = plain(200, "plain");
            acts.insert(1, Act::Wait(When::Played));
            cases.push(case.acts(acts).rule(Rule::Answer(200)));
        }
    }
    cases
}

fn pipelined() -> Vec<Case> {
    let bodies: &[&str] = &["first", "second", "third"];
    let acts: Vec<Vec<Act>> = bodies.iter().map(|body| plain(200, body)).collect();
    let mut cases = Vec::new();
    for (first, one) in REQUESTS {
        for (second, two) in REQUESTS {
            let mut case = Case::raw(format!("pipelined/{first}-and-{second}"), format!("{one}{two}"));
            case.acts.clone_from(&acts);
            cases.push(case.methods(&["GET", "GET"]).rule(Rule::InOrder(&["first", "second"])));
        }
    }
    let mut three = Case::raw("pipelined/three-gets", GET.repeat(3)).methods(&["GET", "GET", "GET"]);
    three.acts.clone_from(&acts);
    cases.push(three.rule(Rule::InOrder(&["first", "second", "third"])));
    for (request, bytes) in REQUESTS {
        let mut case = Case::raw(format!("pipelined/{request}-while-the-first-is-answered"), GET);
        case.steps.extend([Step::Wait(When::Arrived(1)), Step::Raw(bytes.as_bytes().to_vec()), Step::IsRead]);
        case.acts.clone_from(&acts);
        case.acts[0].insert(1, Act::Wait(When::Played));
        cases.push(case.methods(&["GET", "GET"]).rule(Rule::InOrder(&["first", "second"])));
    }
    cases
}

/// FIN after the request: its sender still listens.
fn half_closed() -> Vec<Case> {
    let mut cases = Vec::new();
    for (request, bytes) in REQUESTS {
        let mut at_once = Case::raw(format!("half-close/{request}-at-once"), bytes);
        at_once.steps.push(Step::HalfClose);
        let mut meanwhile = Case::raw(format!("half-close/{request}-meanwhile"), bytes);
        meanwhile.steps.extend([Step::Wait(When::Arrived(1)), Step::HalfClose, Step::IsRead]);
        meanwhile.acts[0].insert(1, Act::Wait(When::Played));
        cases.extend([at_once.rule(Rule::MayBeSilent), meanwhile.rule(Rule::MayBeSilent)]);
    }
    let mut slow = Case::new("half-close/after-a-slow-body", "PUT");
    slow = slow.steps(
        Framing::Length(6),
        vec![
            Step::Head,
            Step::Part(b"one".to_vec()),
            Step::Wait(When::Taken(3)),
            Step::Part(b"two".to_vec()),
            Step::End(Fields::new()),
            Step::HalfClose,
        ],
    );
    cases.push(slow.rule(Rule::Answer(200)));
    cases
}
