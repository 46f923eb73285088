//! The rules that hold for each exchange, with any proxy.

use crate::{
    run::Lane,
    script::{Act, Case, Step},
    stage::{End, Message, Seen, When},
};

/// A rule for some cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Crumbs of HTTP/2 become this one line of HTTP/1.1 (RFC 9113 section 8.2.3).
    Cookie(&'static str),
    /// The client gets the answer of the backend, and the whole of it.
    Answer(u16),
    /// The answers come in the order of the requests; what is not answered follows an answer that ends the connection.
    InOrder(&'static [&'static str]),
    /// 502: what the backend says is no answer.
    BadGateway,
    /// Trailers with this name and value reach the backend.
    RequestTrailer(&'static str, &'static str),
    /// Trailers with this name and value reach the client.
    AnswerTrailer(&'static str, &'static str),
    /// This number of interim heads reaches the client, or none of a backend of HTTP/2, whose library hides them.
    Interims(usize),
    /// The answer of the backend breaks off, and so does what the client gets, unless that is a 502.
    Broken,
    /// It may get no answer: what such a request means is a matter of taste.
    MayBeSilent,
    /// The backend notices that the client has gone.
    Noticed,
    /// A request whose connection was closed instead of an answer is sent again, or is not.
    Resent(bool),
    /// Bytes pass both ways: these reach the backend, those the client.
    Tunnel(&'static str, &'static str),
}

/// Returns the rules that are broken, each in a few words.
pub fn broken(case: &Case, lane: Lane, seen: &Seen) -> Vec<String> {
    let particular = case.rules.iter().filter(|rule| !holds(**rule, lane, seen)).map(kind);
    let general: [(&str, bool); 5] = [
        ("no more requests than were sent", is_not_smuggled(case, seen)),
        ("bodies of requests are equal", has_equal_requests(case, seen)),
        ("bodies of answers are equal", has_equal_answer(case, seen)),
        ("nobody waits in vain", waits_for_nothing(seen)),
        ("everybody is answered", is_answered(case, seen)),
    ];
    let general = general.into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what.to_owned());
    particular.chain(general).collect()
}

/// The name of a rule, without what belongs to one case.
fn kind(rule: &Rule) -> String {
    format!("{rule:?}").split('(').next().unwrap_or_default().to_owned()
}

fn holds(rule: Rule, lane: Lane, seen: &Seen) -> bool {
    let last = finals(seen).last().copied();
    let status = last.map_or(0, Message::status);
    match rule {
        Rule::Cookie(joined) => {
            lane.from_http_1
                || !lane.to_http_1
                || seen.requests.iter().all(|request| request.values("cookie") == [joined])
        }
        Rule::Answer(expected) => status == expected && last.is_some_and(|answer| answer.end == End::Whole),
        Rule::InOrder(bodies) => {
            let answers = finals(seen);
            let found: Vec<&[u8]> = answers.iter().map(|answer| answer.body.as_slice()).collect();
            let expected: Vec<&[u8]> = bodies.iter().take(found.len()).map(|body| body.as_bytes()).collect();
            let is_told = last.is_some_and(|answer| answer.values("connection").contains(&"close"));
            !found.is_empty() && found == expected && (found.len() == bodies.len() || is_told)
        }
        Rule::BadGateway => status == 502 && finals(seen).len() == 1,
        Rule::RequestTrailer(name, value) => {
            seen.requests.last().is_some_and(|request| request.trailing(name) == [value])
        }
        Rule::AnswerTrailer(name, value) => last.is_some_and(|answer| answer.trailing(name) == [value]),
        Rule::Interims(count) => {
            let relayed = if lane.to_http_1 { count } else { 0 };
            seen.answers.len() - finals(seen).len() == relayed
        }
        Rule::Broken => last.is_none_or(|answer| status == 502 || answer.end != End::Whole),
        Rule::MayBeSilent => true,
        Rule::Resent(true) => status == 200 && seen.requests.len() == 3,
        Rule::Resent(false) => status == 502 && seen.requests.len() == 2,
        Rule::Noticed => seen.has(When::Noticed),
        Rule::Tunnel(up, down) => {
            let up_came = seen.requests.last().is_some_and(|request| request.body == up.as_bytes());
            up_came && last.is_some_and(|answer| answer.body == down.as_bytes())
        }
    }
}

fn finals(seen: &Seen) -> Vec<&Message> {
    seen.answers.iter().filter(|answer| !answer.is_interim()).collect()
}

fn is_not_smuggled(case: &Case, seen: &Seen) -> bool {
    let is_malformed = seen.backend.iter().any(|note| note.starts_with("no request"));
    // One that is sent again has a rule of its own.
    (case.keeps_connections || seen.requests.len() <= case.sent()) && !is_malformed
}

/// A request that was broken off is none, and must not seem whole.
fn has_equal_requests(case: &Case, seen: &Seen) -> bool {
    let whole = seen.requests.iter().filter(|request| request.end == End::Whole);
    let is_aborted = case.steps.iter().any(|step| matches!(step, Step::Abort)) && case.sent_body().is_none();
    match case.sent_body() {
        Some(sent) if !case.is_tunnel => whole.into_iter().all(|request| request.body == sent),
        None if is_aborted => whole.into_iter().next().is_none(),
        _ => true,
    }
}

fn has_equal_answer(case: &Case, seen: &Seen) -> bool {
    let Some(expected) = case.answered_body() else { return true };
    let scripted =
        case.acts[0].iter().find_map(|act| if let Act::Head(status, _) = act { Some(*status) } else { None });
    let answers = finals(seen).into_iter().filter(|answer| scripted == Some(answer.status()));
    let mut whole = answers.filter(|answer| answer.end == End::Whole && !matches!(answer.status(), 204 | 304));
    whole.all(|answer| answer.body == expected)
}

fn waits_for_nothing(seen: &Seen) -> bool {
    let notes = seen.backend.iter().chain(&seen.client);
    !notes
        .into_iter()
        .any(|note| note.starts_with("waited in vain") || note == "still open" || note.contains("gets no answer"))
}

fn is_answered(case: &Case, seen: &Seen) -> bool {
    let goes = case.steps.iter().any(|step| matches!(step, Step::Abort));
    let may_be_silent = case.rules.iter().any(|rule| matches!(rule, Rule::Broken | Rule::MayBeSilent));
    goes || may_be_silent || !finals(seen).is_empty()
}
