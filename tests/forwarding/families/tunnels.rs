//! Protocols that change, asked for and not.

use crate::{
    invariants::Rule,
    script::{Act, Case, Framing, Step, fields},
    stage::When,
};

pub fn cases() -> Vec<Case> {
    [unasked(), handshakes()].concat()
}

fn switch(fields_more: &[(&str, &str)]) -> Act {
    let all = [&[("Connection", "Upgrade"), ("Upgrade", "websocket")], fields_more].concat();
    Act::Head(101, fields(&all))
}

/// 101 without an Upgrade of the client.
fn unasked() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["GET", "HEAD", "PUT", "POST", "OPTIONS"] {
        let case = Case::new(format!("switched/{}-unasked", method.to_lowercase()), method);
        let case = if matches!(method, "PUT" | "POST") { case.body(Framing::Length(4), "body") } else { case };
        let mut case = case.acts(vec![Act::Wait(When::Whole), switch(&[]), Act::Data(b"raw".to_vec()), Act::Close]);
        case.only_backend_of_http_1 = true;
        cases.push(case.rule(Rule::BadGateway));
    }
    for (name, pairs) in [
        ("without-connection", &[("Upgrade", "websocket")][..]),
        ("h2c", &[("Connection", "Upgrade"), ("Upgrade", "h2c")]),
        ("unknown", &[("Connection", "Upgrade"), ("Upgrade", "foo/2")]),
    ] {
        let mut case = Case::new(format!("switched/upgrade-{name}"), "GET").with(pairs);
        case.acts = vec![vec![Act::Wait(When::Whole), switch(&[]), Act::Data(b"raw".to_vec()), Act::Close]];
        (case.only_backend_of_http_1, case.only_client_of_http_1) = (true, true);
        cases.push(case.rule(Rule::BadGateway));
    }
    cases
}

/// Of WebSocket.
fn handshakes() -> Vec<Case> {
    let handshake = |name: &str, method: &str| {
        let mut case = Case::new(format!("websocket/{name}"), method).with(&[
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]);
        case.only_client_of_http_1 = true;
        case
    };
    let mut cases = Vec::new();
    for (name, ends) in [("half-closes", Step::HalfClose), ("waits", Step::Wait(When::Dismissed))] {
        let mut opened = handshake(&format!("opened-and-the-client-{name}"), "GET");
        opened.steps =
            vec![Step::Head, Step::Wait(When::Answered(1)), Step::Raw(b"up".to_vec()), Step::Wait(When::Read(4)), ends];
        let accept = [("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")];
        opened.acts = vec![vec![switch(&accept), Act::Wait(When::Taken(2)), Act::Raw(b"down".to_vec()), Act::Close]];
        (opened.is_tunnel, opened.only_backend_of_http_1) = (true, true);
        cases.push(opened.rule(Rule::Tunnel("up", "down")));
    }
    let mut at_once = handshake("opened-with-bytes-behind-the-head", "GET");
    at_once.steps = vec![Step::Head, Step::Wait(When::Read(4)), Step::Raw(b"up".to_vec()), Step::Wait(When::Taken(2))];
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\ndown";
    at_once.acts = vec![vec![Act::Raw(head.as_bytes().to_vec()), Act::Wait(When::Taken(2)), Act::Close]];
    (at_once.is_tunnel, at_once.only_backend_of_http_1) = (true, true);
    cases.push(at_once.rule(Rule::Tunnel("up", "down")));
    for status in [200, 400, 403, 404, 426, 503] {
        cases.push(
            handshake(&format!("refused-{status}"), "GET")
                .acts(crate::script::plain(status, "no"))
                .rule(Rule::Answer(status)),
        );
    }
    for method in ["HEAD", "OPTIONS", "POST"] {
        let acts = crate::script::plain(200, if method == "HEAD" { "" } else { "no" });
        cases.push(handshake(&format!("by-{}", method.to_lowercase()), method).acts(acts));
    }
    let mut closes = handshake("closed-at-once", "GET");
    closes.acts = vec![vec![Act::Wait(When::Whole), Act::Close]];
    cases.push(closes.rule(Rule::Broken));
    cases
}
