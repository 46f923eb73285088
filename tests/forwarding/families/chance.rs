//! Random ordinary requests: bodies in pieces of any size, fields and answers in any mixture.

use crate::{
    families::bodies::bytes,
    invariants::Rule,
    script::{Act, Case, Fields, Framing, Step, fields},
    stage::When,
    support::random::Random,
};

const CASES: usize = 60;

pub fn cases() -> Vec<Case> {
    let mut random = Random::new("forwarding");
    (0..CASES).map(|number| case(&mut random, number)).collect()
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len())]
}

fn case(random: &mut Random, number: usize) -> Case {
    let method = one_of(random, &["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "PROPFIND"]);
    let status = one_of(random, &[200, 201, 203, 206, 302, 400, 404, 409, 500, 503]);
    let mut case = Case::new(format!("chance/{number}"), method);
    for field in 0..random.below(8) {
        let value = "v".repeat(random.below(200));
        case = case.with(&[(&format!("X-Field-{field}"), &value)]);
    }
    let case = request(random, case);
    let acts = answer(random, status);
    case.acts(acts).rule(Rule::Answer(status))
}

fn request(random: &mut Random, case: Case) -> Case {
    let body = bytes(one_of(random, &[0, 1, 10, 1_000, 70_000, 300_000]));
    let framing = match random.below(3) {
        0 => return case,
        1 => Framing::Chunked,
        _ => Framing::Length(body.len()),
    };
    let mut steps = vec![Step::Head];
    steps.extend(pieces(random, &body).map(Step::Part));
    steps.push(Step::End(Fields::new()));
    case.steps(framing, steps)
}

fn answer(random: &mut Random, status: u16) -> Vec<Act> {
    let body = bytes(one_of(random, &[0, 1, 10, 1_000, 70_000, 300_000]));
    let length = body.len().to_string();
    let framing = if random.is_one_of(50) { ("Transfer-Encoding", "chunked") } else { ("Content-Length", &*length) };
    let mut acts = vec![Act::Wait(When::Whole)];
    acts.extend(vec![Act::Interim(103, fields(&[("Link", "</a>")])); random.below(3)]);
    acts.push(Act::Head(status, fields(&[framing, ("X-Kind", "chance")])));
    acts.extend(pieces(random, &body).map(Act::Data));
    acts.push(Act::End(Fields::new()));
    acts
}

/// A body, cut anywhere.
fn pieces<'body>(random: &mut Random, body: &'body [u8]) -> impl Iterator<Item = Vec<u8>> + use<'body> {
    let size = 1 + random.below(body.len().max(1));
    // Enough of them, and not thousands.
    body.chunks(size.max(body.len() / 50)).map(<[u8]>::to_vec)
}
