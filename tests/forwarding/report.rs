//! The events that were seen, as text by which two builds can be compared: nothing in it changes from run to run.

use std::fmt::Write;

use crate::{
    invariants::Rule,
    script::Case,
    stage::{End, Message, Seen},
};

/// A longer body is shown by its hash.
const BODY_BYTES_MAX: usize = 400;

/// One exchange: a line with its name, and what both sides have seen.
pub fn of(name: &str, case: &Case, seen: &Seen, host: &str) -> String {
    let mut text = format!("== {name}\n");
    let is_told = case.rules.contains(&Rule::Noticed);
    let is_refused = seen.answers.last().is_none_or(|answer| !answer.values("proxy-status").is_empty());
    for request in &seen.requests {
        let is_whole = request.end == End::Whole;
        // How much of a request went on before it was refused is a matter of moments.
        if is_told || !is_refused || (is_whole && !seen.answers.is_empty()) {
            let body = if case.is_tunnel {
                request.body.escape_ascii().to_string()
            } else if is_whole && !case.is_overtaken() {
                body(request, host)
            } else {
                "unfinished".to_owned()
            };
            write_message(&mut text, "backend", request, &body, host);
        }
    }
    for answer in &seen.answers {
        let is_left = answer.end != End::Whole && seen.client_over.as_deref() == Some("aborted");
        let body = if is_left { "unfinished".to_owned() } else { body(answer, host) };
        write_message(&mut text, "client", answer, &body, host);
    }
    let notes = seen.backend.iter().map(|note| ("backend", note.clone()));
    let notes = notes.chain(seen.client.iter().map(|note| ("client", note.clone())));
    let over = seen.client_over.iter().map(|over| ("client", format!("connection: {over}")));
    for (who, note) in notes.chain(over) {
        writeln!(text, "{who} ({note})").expect("a String takes all");
    }
    text
}

fn body(message: &Message, host: &str) -> String {
    let body = match &message.end {
        _ if message.body.len() <= BODY_BYTES_MAX => {
            format!("{} bytes \"{}\"", message.body.len(), masked(&message.body.escape_ascii().to_string(), host))
        }
        End::Whole => format!("{} bytes {}", message.body.len(), &blake3::hash(&message.body).to_hex()[..16]),
        // How much of it came is a matter of moments.
        End::Open | End::Cut(_) => "many bytes".to_owned(),
    };
    format!("{body} {:?}", message.end)
}

fn write_message(text: &mut String, who: &str, message: &Message, body: &str, host: &str) {
    for line in &message.head {
        writeln!(text, "{who}  {}", masked(line, host)).expect("a String takes all");
    }
    writeln!(text, "{who}  [{}] {body}", message.framing).expect("a String takes all");
    for line in &message.trailers {
        writeln!(text, "{who}  trailer {}", masked(line, host)).expect("a String takes all");
    }
}

/// A line without what differs from run to run: the moment, identifiers, ports, hosts.
fn masked(line: &str, host: &str) -> String {
    let lower = line.to_ascii_lowercase();
    if lower.starts_with("date:") {
        return "date: <now>".to_owned();
    }
    if lower.starts_with("traceparent:") {
        return "traceparent: <id>".to_owned();
    }
    let line = line.replace(host, "<host>");
    let mut text = String::new();
    let mut rest = line.as_str();
    while let Some(at) = rest.find("127.") {
        let end = rest[at..].find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ':');
        text += &rest[..at];
        text += "<address>";
        rest = end.map_or("", |end| &rest[at + end..]);
    }
    without_identifiers(&(text + rest))
}

/// Long hexadecimal numbers are names of traces and the like.
fn without_identifiers(line: &str) -> String {
    let is_identifier = |word: &str| word.len() >= 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    let words = line.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let word = |word: &str| {
        let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_identifier(name) { word.replace(name, "<id>") } else { word.to_owned() }
    };
    words.map(word).collect()
}
