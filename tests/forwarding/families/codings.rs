//! Transfer codings and chunks that are odd, and messages that break off.

use crate::{
    invariants::Rule,
    script::{Act, Case, Fields, Framing, Step, fields},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [of_answers(), of_requests(), broken(), gone()].concat()
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn of_answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["GET", "PUT"] {
        let case = |family: &str, name: &str| {
            let case = Case::new(format!("{family}/{}-answered-{name}", method.to_lowercase()), method);
            if method == "PUT" { case.body(Framing::Length(4), "body") } else { case }
        };
        for (name, coding) in [
            ("gzip", "gzip"),
            ("gzip-chunked", "gzip, chunked"),
            ("xchunked", "xchunked"),
            ("identity", "identity"),
            ("chunked-twice", "chunked, chunked"),
            ("chunked-in-two-lines", "chunked\r\nTransfer-Encoding: chunked"),
            ("chunked-then-gzip", "chunked, gzip"),
        ] {
            let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n3\r\none\r\n0\r\n\r\n");
            cases.push(case("codings", name).answer(answer).rule(Rule::BadGateway));
        }
        for (name, answer) in [
            ("capitals", CHUNKED.replace("chunked", "CHUNKED") + "3\r\none\r\n0\r\n\r\n"),
            ("extensions", format!("{CHUNKED}3;a=b;c=\"d e\"\r\none\r\n0;last\r\n\r\n")),
            ("leading-zeros", format!("{CHUNKED}0003\r\none\r\n000\r\n\r\n")),
            ("length-too", CHUNKED.replace("Transfer", "Content-Length: 3\r\nTransfer") + "3\r\none\r\n0\r\n\r\n"),
            ("more-than-its-length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nonetwo".to_owned()),
            ("more-than-its-chunks", format!("{CHUNKED}3\r\none\r\n0\r\n\r\nmore")),
            ("version-1-0", "HTTP/1.0 200 OK\r\n\r\nuntil close".to_owned()),
            (
                "version-1-0-keep-alive",
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\none".to_owned(),
            ),
        ] {
            cases.push(case("chunks", name).answer(answer));
        }
        for (name, answer) in [
            ("short-length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_owned()),
            ("no-last-chunk", format!("{CHUNKED}3\r\none\r\n")),
            ("half-a-chunk", format!("{CHUNKED}9\r\nshort")),
            ("no-end-of-trailers", format!("{CHUNKED}3\r\none\r\n0\r\n")),
            ("chunk-without-size", format!("{CHUNKED}3\r\none\r\n\r\n\r\n")),
            ("chunk-of-no-number", format!("{CHUNKED}zz\r\none\r\n0\r\n\r\n")),
            ("chunk-of-a-huge-number", format!("{CHUNKED}ffffffffffffffffff\r\none\r\n0\r\n\r\n")),
            ("chunk-longer-than-said", format!("{CHUNKED}3\r\nonetwo\r\n0\r\n\r\n")),
            ("half-a-head", "HTTP/1.1 200 OK\r\nContent-Le".to_owned()),
            ("nothing", String::new()),
            ("no-http", "nonsense\r\n\r\n".to_owned()),
        ] {
            cases.push(case("truncated", name).answer(answer).rule(Rule::Broken));
        }
    }
    cases
}

/// As bytes; a refusal is an answer too.
fn of_requests() -> Vec<Case> {
    let put = |name: &str, lines: &str, body: &str| {
        Case::raw(format!("codings/request-{name}"), format!("PUT /a HTTP/1.1\r\nHost: {{host}}\r\n{lines}\r\n{body}"))
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    let body = "3\r\none\r\n0\r\n\r\n";
    vec![
        put("capitals", "Transfer-Encoding: CHUNKED\r\n", body),
        put("gzip", "Transfer-Encoding: gzip\r\n", body),
        put("gzip-chunked", "Transfer-Encoding: gzip, chunked\r\n", body),
        put("chunked-gzip", "Transfer-Encoding: chunked, gzip\r\n", body),
        put("identity", "Transfer-Encoding: identity\r\n", body),
        put("twice", &chunked.repeat(2), body),
        put("list", "Transfer-Encoding: chunked, chunked\r\n", body),
        put("unknown", "Transfer-Encoding: xchunked\r\n", body),
        put("empty", "Transfer-Encoding:\r\n", body),
        put("length-too", &format!("Content-Length: 13\r\n{chunked}"), body),
        put("short-length-too", &format!("Content-Length: 3\r\n{chunked}"), body),
        put("extensions", chunked, "3;a=b\r\none\r\n0;z\r\n\r\n"),
        put("line-feed-in-an-extension", chunked, "3;a\nb\r\none\r\n0\r\n\r\n"),
        put("no-size", chunked, "\r\none\r\n0\r\n\r\n"),
        put("no-number", chunked, "zz\r\none\r\n0\r\n\r\n"),
        put("huge-number", chunked, "ffffffffffffffffff\r\none\r\n0\r\n\r\n"),
        put("longer-than-said", chunked, "3\r\nonetwo\r\n0\r\n\r\n"),
        put("line-feeds-alone", chunked, "3\none\n0\n\n"),
        put("sign", chunked, "+3\r\none\r\n0\r\n\r\n"),
        put("space", chunked, "3 \r\none\r\n0\r\n\r\n"),
    ]
}

/// The backend closes at once, or resets, at any step.
fn broken() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["GET", "PUT", "POST"] {
        let of = |name: &str, acts: Vec<Act>| {
            let case = Case::new(format!("backend-gone/{}-{name}", method.to_lowercase()), method);
            let case = if method == "GET" { case } else { case.body(Framing::Length(4), "body") };
            case.acts(acts).rule(Rule::Broken)
        };
        let head = |fields: Fields| Act::Head(200, fields);
        for (name, act) in [("closes", Act::Close), ("resets", Act::Abort)] {
            let whole = Act::Wait(When::Whole);
            cases.push(of(&format!("{name}-at-once"), vec![whole.clone(), act.clone()]));
            let interim = Act::Interim(103, Fields::new());
            cases.push(of(&format!("{name}-after-103"), vec![whole.clone(), interim, act.clone()]));
            for (framing, field) in [("length", ("Content-Length", "9")), ("chunks", ("Transfer-Encoding", "chunked"))]
            {
                let begin =
                    [whole.clone(), head(fields(&[field])), Act::Data(b"part".to_vec()), Act::Wait(When::Read(4))];
                let acts = begin.into_iter().chain([act.clone()]).collect();
                cases.push(of(&format!("{name}-in-a-body-with-{framing}"), acts));
            }
        }
    }
    cases
}

/// The client goes away, and the backend sees it.
fn gone() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, framing) in [("with-length", Framing::Length(9)), ("in-chunks", Framing::Chunked)] {
        for method in ["PUT", "POST"] {
            let steps = vec![Step::Head, Step::Part(b"half".to_vec()), Step::Wait(When::Taken(4)), Step::Abort];
            let case = Case::new(format!("client-gone/in-{}-{name}", method.to_lowercase()), method);
            let acts = vec![Act::Wait(When::Whole)];
            cases.push(case.steps(framing, steps).acts(acts).rule(Rule::Noticed));
        }
    }
    for (name, head) in
        [("with-length", ("Content-Length", "67108864")), ("in-chunks", ("Transfer-Encoding", "chunked"))]
    {
        let steps = vec![Step::Head, Step::Wait(When::Read(100_000)), Step::Abort];
        let case = Case::new(format!("client-gone/in-an-answer-{name}"), "GET").steps(Framing::Nothing, steps);
        let acts =
            vec![Act::Wait(When::Whole), Act::Head(200, fields(&[head])), Act::Flood(64), Act::End(Fields::new())];
        cases.push(case.acts(acts).rule(Rule::Noticed));
    }
    cases
}
