//! Bodies of every size and framing, and statuses with and without them.

use crate::{
    script::{Act, Case, Fields, Framing, fields, plain},
    stage::When,
};

const SIZES: [usize; 9] = [0, 1, 2, 100, 8_191, 8_192, 65_535, 65_537, 1_000_000];

pub fn cases() -> Vec<Case> {
    [requests(), answers(), statuses(), heads(), pieces()].concat()
}

/// Bytes that repeat nowhere soon.
pub fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from((at * at + at / 7) % 251).expect("below 251")).collect()
}

fn requests() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["PUT", "POST", "GET", "DELETE"] {
        for size in SIZES {
            let name = format!("bodies/{}-of-{size}", method.to_lowercase());
            cases.push(Case::new(format!("{name}-with-length"), method).body(Framing::Length(size), bytes(size)));
            cases.push(Case::new(format!("{name}-in-chunks"), method).body(Framing::Chunked, bytes(size)));
        }
        cases.push(Case::new(format!("bodies/{}-without-framing", method.to_lowercase()), method));
    }
    cases
}

fn answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in SIZES {
        let body = bytes(size);
        let length = size.to_string();
        let framings: [(&str, Fields); 3] = [
            ("with-length", fields(&[("Content-Length", &length)])),
            ("in-chunks", fields(&[("Transfer-Encoding", "chunked")])),
            ("until-close", fields(&[("Connection", "close")])),
        ];
        for (name, fields) in framings {
            let mut acts = vec![Act::Wait(When::Whole), Act::Head(200, fields)];
            if size > 0 {
                acts.push(Act::Data(body.clone()));
            }
            acts.push(Act::End(Fields::new()));
            if name == "until-close" {
                acts.push(Act::Close);
            }
            let mut case = Case::new(format!("bodies/answer-of-{size}-{name}"), "GET").acts(acts);
            // Where there are streams, the end of the connection says nothing of one of them.
            case.only_backend_of_http_1 = name == "until-close";
            cases.push(case);
        }
    }
    cases
}

/// With a length that belongs to what a HEAD or a 304 would bring.
fn statuses() -> Vec<Case> {
    let statuses = (200..=208).chain([226, 299]).chain(300..=308).chain([399]).chain(400..=418).chain(421..=431);
    let statuses = statuses.chain([451, 499]).chain(500..=511).chain([520, 599, 600, 999]);
    let of = |status: u16| {
        let bare = matches!(status, 204 | 205 | 304);
        let body = if bare { "" } else { "of a status" };
        Case::new(format!("statuses/{status}"), "GET").acts(plain(status, body))
    };
    let mut cases: Vec<Case> = statuses.map(of).collect();
    for line in
        ["HTTP/1.1 99 Low", "HTTP/1.1 1000 High", "HTTP/1.1 200", "HTTP/1.0 200 OK", "HTTP/2.0 200 OK", "ICY 200 OK"]
    {
        let name = line.to_lowercase().replace([' ', '/', '.'], "-");
        let case = Case::new(format!("statuses/line-{name}"), "GET");
        cases.push(case.answer(format!("{line}\r\nContent-Length: 2\r\n\r\nok")));
    }
    cases
}

fn heads() -> Vec<Case> {
    let mut cases = Vec::new();
    for (status, length) in [(200, "5"), (200, "0"), (204, "5"), (304, "5"), (404, "5"), (205, "0")] {
        for method in ["HEAD", "GET"] {
            if method == "GET" && !matches!(status, 204 | 304) {
                continue;
            }
            let acts = vec![
                Act::Wait(When::Whole),
                Act::Head(status, fields(&[("Content-Length", length), ("X-Kind", "bare")])),
                Act::End(Fields::new()),
            ];
            let name = format!("statuses/{}-{status}-of-length-{length}", method.to_lowercase());
            cases.push(Case::new(name, method).acts(acts));
        }
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    cases.push(Case::new("statuses/head-in-chunks", "HEAD").answer(chunked));
    let both = "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    cases.push(Case::new("statuses/get-204-in-chunks", "GET").answer(both));
    cases
}

/// One byte at a time.
fn pieces() -> Vec<Case> {
    let body = bytes(300);
    let single: Vec<&[u8]> = body.chunks(1).collect();
    let parts = |name: &str, framing| Case::new(format!("bodies/{name}"), "PUT").parts(framing, &single);
    let acts = |head: Fields| {
        let data = single.iter().map(|piece| Act::Data(piece.to_vec()));
        let begin = [Act::Wait(When::Whole), Act::Head(200, head)];
        begin.into_iter().chain(data).chain([Act::End(Fields::new())]).collect::<Vec<_>>()
    };
    vec![
        parts("request-by-the-byte-in-chunks", Framing::Chunked),
        parts("request-by-the-byte-with-length", Framing::Length(300)),
        Case::new("bodies/answer-by-the-byte-in-chunks", "GET").acts(acts(fields(&[("Transfer-Encoding", "chunked")]))),
        Case::new("bodies/answer-by-the-byte-with-length", "GET").acts(acts(fields(&[("Content-Length", "300")]))),
    ]
}
