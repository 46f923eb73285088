//! Connections to the backend that are used again, and end at that moment.

use crate::{
    invariants::Rule,
    script::{Act, Case, Step, plain},
    stage::When,
};

const GET: &str = "GET /first HTTP/1.1\r\nHost: {host}\r\n\r\n";

/// The first request gets an answer; the second finds its connection closed.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, second) in [
        ("get", "GET /second HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("head", "HEAD /second HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("get-with-body", "GET /second HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nget"),
        ("put", "PUT /second HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nput"),
        ("post", "POST /second HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\npost"),
        ("delete", "DELETE /second HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ] {
        for (how, act) in [("closes", Act::Close), ("resets", Act::Abort)] {
            let mut case = Case::raw(format!("reuse/{method}-whose-connection-{how}"), GET);
            case.steps.extend([Step::Wait(When::Done), Step::IsRead, Step::Raw(second.as_bytes().to_vec())]);
            case.keeps_connections = true;
            let ends = vec![Act::Wait(When::Whole), act];
            case.acts = vec![plain(200, "first"), ends, plain(200, "again")];
            let second = if method == "head" { "HEAD" } else { "GET" };
            let case = case.methods(&["GET", second]);
            // The treatment of content in a GET is a matter of taste.
            let rule = (method != "get-with-body").then_some(Rule::Resent(matches!(method, "get" | "head")));
            cases.push(if let Some(rule) = rule { case.rule(rule) } else { case });
        }
    }
    cases
}
